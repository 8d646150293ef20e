"""Text to numbers, labels and times, with one idea of what "nothing" is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

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


def moment(value: str | float) -> float:
    """A time as a number: numbers as they are, dates and times (ISO 8601) as seconds."""
    if isinstance(value, str) and not is_missing(value):
        try:
            time = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            pass
        else:
            return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()
    try:
        result = number(value) if isinstance(value, str) else float(value)
    except ValueError:
        result = math.nan
    if math.isfinite(result):
        return result
    raise ValueError(f"not a time: {value!r} (a number, or a date and time as 2026-01-31T12:00:00)")


def labels(fields: Sequence[str]) -> npt.NDArray[Any]:
    """Labels as integers if they all are, as text otherwise; None where a field stands for nothing."""
    known = [text.strip() for text in fields if not is_missing(text)]
    convert: Any = int if all(_is_integer(text) for text in known) else str
    values = [None if is_missing(text) else convert(text.strip()) for text in fields]
    if len(known) == len(values):
        return np.array(values)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in "+-" else text
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def steps_between(before: float | None, now: float, step: float) -> int:
    """Steps of the chain between two times, at least 1; a ValueError if time does not increase."""
    if before is None:
        return 1
    if now <= before:
        raise ValueError(f"time does not increase: {now:.17g} after {before:.17g}")
    return max(1, round((now - before) / step))
