"""Text to numbers, labels and times, with one idea of what "nothing" is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from .._validation import check_number

#: Words, in lower case, that stand for a value that is not there.
MISSING = frozenset({"", "na", "nan", "null", "none"})


def is_missing(text: str) -> bool:
    """Whether a field stands for nothing."""
    return text.strip().lower() in MISSING


def number(text: str) -> float:
    """A finite number, or NaN for nothing; a ValueError in words for anything else."""
    if is_missing(text):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) or "_" in text:
        raise ValueError(f"not a number: {text!r}")
    if math.isinf(value):
        raise ValueError(f"an infinite value: {text!r}")
    return value


def moment(value: Any) -> float:
    """A time as a number: numbers as they are, dates and times (ISO 8601, with hyphens) as seconds."""
    try:
        if isinstance(value, str):
            result = number(value)
        else:
            result = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except (ValueError, OverflowError):
        result = math.nan
    if math.isfinite(result):
        return result
    if isinstance(value, str) and "-" in value:
        try:
            time = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            pass
        else:
            return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()
    shown = repr(value)
    raise ValueError(
        f"not a time: {shown if len(shown) <= 60 else shown[:57] + '...'} (a number, or 2026-01-31T12:00:00)"
    )


def labels(fields: Sequence[str]) -> npt.NDArray[Any]:
    """Labels as integers if they all are, as text otherwise; None where a field is empty.

    Every other word is a label, "none" and -1 among them: they must not be taken for unknown labels further on.
    """
    texts = [text.strip() for text in fields]
    known = [text for text in texts if text]
    convert: Any = int if all(_is_integer(text) for text in known) else str
    values = [convert(text) if text else None for text in texts]
    if len(known) == len(values) and -1 not in values:
        return np.array(values)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def checked_step(step: Any, name: str) -> float | None:
    """The time of one step, or None if it is not known."""
    return None if step is None else check_number(step, name, low=0, low_open=True)


def identity(value: Any) -> str:
    """A sequence by its name: text or an integer, the same for 1 in JSON and in CSV."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"not a name of a sequence: {value!r} (text or an integer)")
    name = str(value).strip()
    if not name:
        raise ValueError("there is no name of a sequence")
    return name
