"""Times that are written down, numbers and dates, with all their digits."""

from __future__ import annotations

import contextlib
import math
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import shown

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

#: Digits of a second that datetime accepts and forgets.
_CUT_DIGITS = re.compile(r"[.,][0-9]{6}([0-9]+)")


class Seconds(Fraction):
    """Seconds since 1970 of a date that has fractions of one: exact, which a float is not."""

    def __str__(self) -> str:
        return f"{Decimal(self.numerator) / self.denominator:f}"


class WholeSeconds(int):
    """Seconds since 1970 of a date without fractions."""


def moment(value: Any) -> Any:
    """A time as an exact number: numbers as they are, dates and times (ISO 8601, with hyphens) as seconds."""
    try:
        is_number = isinstance(value, int | float | str) and not isinstance(value, bool) and "_" not in str(value)
        result = float(value) if is_number else math.nan
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


def exact(times: list[Any]) -> npt.NDArray[Any]:
    """Times of rows as an array that loses no digits: of integers, dates or numbers, or else of objects."""
    kinds = {type(time) for time in times}
    if kinds == {float}:
        return np.array(times)
    with contextlib.suppress(OverflowError):
        if kinds == {WholeSeconds}:
            return np.array(times, dtype=np.int64).view("M8[s]")
        if kinds <= {int, WholeSeconds}:
            return np.array(times, dtype=np.int64)
        if kinds <= {int, WholeSeconds, Seconds} and all(10**9 % time.denominator == 0 for time in times):
            ticks = [time.numerator * (10**9 // time.denominator) for time in times]
            return np.array(ticks, dtype=np.int64).view("M8[ns]")
    return np.array(times, dtype=object)
