"""Text to numbers, labels and times, with one idea of what "nothing" is."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .._times import as_step
from .._validation import shown

#: Words, in lower case, that stand for a value that is not there.
MISSING = frozenset({"", "na", "nan", "null", "none"})

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

#: Digits of a second that datetime accepts and forgets.
_CUT_DIGITS = re.compile(r"[.,][0-9]{6}([0-9]+)")


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
        raise ValueError(f"not a number: {shown(text)}")
    if math.isinf(value):
        raise ValueError(f"an infinite value: {shown(text)}")
    return value


class Seconds(Fraction):
    """Seconds since 1970 of a date that has fractions of one: exact, which a float is not."""

    def __str__(self) -> str:
        return f"{Decimal(self.numerator) / self.denominator:f}"


class WholeSeconds(int):
    """Seconds since 1970 of a date without fractions."""


def moment(value: Any) -> Any:
    """A time as an exact number: numbers as they are, dates and times (ISO 8601, with hyphens) as seconds."""
    try:
        if isinstance(value, str):
            result = number(value)
        else:
            result = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except (ValueError, OverflowError):
        result = math.nan
    if math.isfinite(result):
        return result if isinstance(value, float) else _integer(value, result)
    if isinstance(value, str) and "-" in value:
        with contextlib.suppress(ValueError):
            return _seconds(value.strip().replace("Z", "+00:00"))
    raise ValueError(f"not a time: {shown(value)} (a number, or 2026-01-31T12:00:00)")


def _integer(value: str | int, rounded: float) -> int | float:
    """An integer of 64 bits with all its digits; another number as it was rounded."""
    try:
        whole = int(value)
    except ValueError:
        return rounded
    return whole if -(2**63) <= whole < 2**63 else rounded


def _seconds(text: str) -> WholeSeconds | Seconds:
    time = datetime.fromisoformat(text)
    since = (time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - _EPOCH
    microseconds, cut = since // _MICROSECOND, _CUT_DIGITS.search(text)
    if cut is not None:
        scale = 10 ** len(cut[1])
        return Seconds(microseconds * scale + int(cut[1]), 10**6 * scale)
    return Seconds(microseconds, 10**6) if microseconds % 10**6 else WholeSeconds(microseconds // 10**6)


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
    """The time of one step, a number or text with a unit; None if it is not known."""
    if isinstance(step, str):
        with contextlib.suppress(ValueError):
            step = float(step)
    return as_step(step, name)


def identity(value: Any) -> str:
    """A sequence by its name: text or an integer, the same for 1 in JSON and in CSV."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"not a name of a sequence: {shown(value)} (text or an integer)")
    name = str(value).strip()
    if not name:
        raise ValueError("there is no name of a sequence")
    return name
