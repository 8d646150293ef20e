"""Exact times, and the steps of the chain between rows."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .checks import LARGEST, LONGEST_GAP, Array, Lengths, Steps, check_number, shown
from .user_warnings import warn

#: Ticks per second of dates and durations.
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

#: 1980 and 2100 in seconds since 1970: numbers between them, in any of the units, are times since 1970.
YEARS = (315_532_800, 4_102_444_800)

#: Seconds per unit of time.
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}

#: Names of units, in the singular.
_WORDS = {"sec": "s", "second": "s", "min": "min", "minute": "min", "hour": "h", "day": "d", "week": "w"}

_TIME = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)?\s*([a-z]+)\s*")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

#: Digits of a second that datetime would drop.
_CUT_DIGITS = re.compile(r"[.,][0-9]{6}([0-9]+)")


#: The time of one step: a number in the unit of the times (seconds for dates), a duration, or text such as "1s".
Step: TypeAlias = "float | str | timedelta | np.timedelta64"


class StepSeconds(float):
    """The time of one step in seconds, for dates, durations and times since 1970."""

    unit = ""  # of times since 1970


class Seconds(Fraction):
    """Exact seconds since 1970 of a date with a fraction of a second."""

    def __str__(self) -> str:
        return f"{Decimal(self.numerator) / self.denominator:f}"


class WholeSeconds(int):
    """Seconds since 1970 of a date without a fraction."""


def moment(value: Any) -> Any:
    """Return a time as an exact number: numbers unchanged, ISO 8601 dates in seconds."""
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
    """Return a 64-bit integer exactly, other numbers as rounded."""
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
    """Return an array of times without loss: integers, dates, floats or objects."""
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


def epoch_unit(first: float, last: float) -> str | None:
    """Return the unit in which numbers are times from 1980 to 2100, or None."""
    return next((unit for unit, ticks in TICKS.items() if YEARS[0] <= first / ticks <= last / ticks < YEARS[1]), None)


def as_dates(times: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], str | None]:
    """Convert times since 1970 in any unit to dates; also return the unit."""
    if times.dtype.kind not in "iuf" or len(times) == 0:
        return times, "dates" if times.dtype.kind in "OMm" else None
    unit = epoch_unit(float(times.min()), float(times.max()))
    if unit is None:
        return times, None
    if times.dtype.kind != "f":
        return times.astype(np.int64).view(f"M8[{unit}]"), unit
    return np.rint(times * (1e6 / TICKS[unit])).astype(np.int64).view("M8[us]"), unit


def in_seconds(time: Any, step: float) -> tuple[Any, float]:
    """Convert a date or time since 1970 and its step to seconds; keep other numbers."""
    unit = None if isinstance(time, Seconds | WholeSeconds | np.generic) else epoch_unit(time, time)
    if unit is not None:
        step = step if isinstance(step, StepSeconds) else step / TICKS[unit]
        return Seconds(Fraction(time) / int(TICKS[unit])), step
    if isinstance(step, StepSeconds) and not isinstance(time, Seconds | WholeSeconds):
        raise ValueError(f"the time is a number without a known unit, but the step of {step:g} s has one")
    return time, step


def seconds_of(text: str) -> float | None:
    """Parse a time such as "7d", "d", "1.5 hours" or "200ms"; None if invalid."""
    found = _TIME.fullmatch(text.lower())
    unit = "" if found is None else _WORDS.get(found[2].removesuffix("s"), found[2])
    return None if found is None or unit not in UNITS else float(found[1] or 1) * UNITS[unit]


def as_step(step: Any, name: str = "step") -> float | None:
    """Parse the time of one step: a positive number, a duration, text, or None."""
    if step is None:
        return None
    if isinstance(step, str):
        seconds = seconds_of(step)
        if seconds is None:
            raise ValueError(
                f"{name} must be a positive number, or a number with a unit ({', '.join(UNITS)}), got {step!r}"
            )
        step = StepSeconds(seconds)
    elif isinstance(step, timedelta):  # pandas.Timedelta, too
        step = StepSeconds(step.total_seconds())
    elif isinstance(step, np.timedelta64):
        step = StepSeconds(step / np.timedelta64(1, "s"))
    number = check_number(step, name, low=0, low_open=True)
    return StepSeconds(number) if isinstance(step, StepSeconds) else number


_FRAMES = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(?:frames?|(?:time )?steps?)?\s*")


def frames_of(value: Any, name: str, step: float | None, *, low: float, remedy: str = "step") -> float:
    """Convert a time to a number of time steps.

    The time is a number, text such as "500 steps", or "7d" and "10 min" if the time of a step is known. Otherwise the
    error message suggests the argument `remedy`.
    """
    if not isinstance(value, str):
        return check_number(value, name, low=low, high=LARGEST)
    frames = _FRAMES.fullmatch(value)
    if frames is not None:
        return check_number(float(frames[1]), name, low=low, high=LARGEST)
    seconds = seconds_of(value)
    if seconds is None:
        raise ValueError(
            f"{name} must be a number of time steps or a time such as '7d', '12h', '10min', '30s', got {value!r}"
        )
    if step is None:
        raise ValueError(
            f"{name} is {value!r}, a time, and the model does not know the time of a step: give {remedy} as well, "
            "such as 10s, or a number of time steps instead"
        )
    return check_number(seconds / step, f"{name} of {value} in time steps", low=low, high=LARGEST)


#: The largest share of unusual distances without a warning (weekends: a fifth), and the fewest distances for one.
MOST_OTHERS = 1 / 6
FEWEST_DISTANCES = 10

#: The fewest rows along which a column must increase to be taken for a time column.
FEWEST_RISES = 50

#: Number of times to subtract at once.
BLOCK = 1 << 16

#: The step back of clocks at the end of daylight saving time: an hour, less the time between two rows.
AN_HOUR = (1800, 3600)


class TimeError(ValueError):
    """An invalid time in a row, or in all rows if ``row`` is None."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


def steps_between(before: float | None, now: float, step: float) -> int:
    """Count the steps between two times, at least 1; times must increase."""
    if before is None:
        return 1
    if now <= before:
        raise ValueError(_backwards(before, now))
    steps = (now - before) / step
    if not steps <= LONGEST_GAP:
        raise ValueError(_too_many(before, now, steps, step))
    return max(1, round(steps))


def usual_step(times: npt.NDArray[Any], lengths: Lengths) -> float:
    """Return the median time between rows of a sequence, in seconds for dates."""
    inside = np.flatnonzero(~_begins(lengths))
    differences = _differences(times[inside - 1], times[inside])
    if len(differences) == 0:
        raise TimeError("no sequence has two rows: the time of one step is unknown")
    if not np.median(differences) > 0:
        row = int(inside[np.flatnonzero(~(differences > 0))[0]])
        raise TimeError(_backwards(times[row - 1], times[row]), row)
    return float(f"{np.median(differences):.12g}")  # 0.02 from times such as 0.06 and 0.08, which are not exact


def gaps(times: npt.NDArray[Any], lengths: Lengths, step: float, name: str) -> Steps:
    """Count the steps before each row, 1 at the start of a sequence.

    The step is in seconds for dates and durations. Warns about a step that does not suit the column `name` of times.
    """
    if isinstance(step, StepSeconds) and times.dtype.kind not in "OMm":
        raise TimeError(f"times are numbers without a known unit, but the step of {step:g} s has one;")
    inside = np.flatnonzero(~_begins(lengths))
    steps = np.empty(len(inside))
    for begin in range(0, len(inside), BLOCK):
        rows = inside[begin : begin + BLOCK]
        before, now = times[rows - 1], times[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            part = _differences(before, now) / step
        wrong = np.flatnonzero(~((now > before) & (part <= LONGEST_GAP)))
        if len(wrong) > 0:
            place = int(wrong[0])
            pair, row = (before[place], now[place]), int(rows[place])
            if now[place] <= before[place]:
                raise TimeError(_backwards(*pair), row)
            if now[place] > before[place]:
                raise TimeError(_too_many(*pair, part[place], step), row)
            raise TimeError(f"the time is missing: {now[place]} after {before[place]}", row)
        steps[begin : begin + BLOCK] = part
    _warn_of_unsuitable_step(steps, step, times.dtype.kind in "OMm", name)
    dt = np.ones(len(times), dtype=np.int64)
    dt[inside] = np.maximum(np.rint(steps, out=steps), 1, out=steps)
    return dt


def warn_of_times_among_features(samples: Array, lengths: Lengths, names: Sequence[str], remedy: str) -> None:
    """Warn about a feature that increases from row to row, as times do."""
    inside = np.flatnonzero(~_begins(lengths))
    if len(inside) >= FEWEST_RISES:
        rises = (samples[inside] > samples[inside - 1]).all(axis=0)
        if rises.any():
            name = names[int(rises.argmax())]
            warn(
                f"the feature {name!r} increases from row to row, as a time does, and new data will be outside "
                f"the range of training: {remedy}"
            )


def _warn_of_unsuitable_step(steps: Array, step: float, in_seconds: bool, name: str) -> None:
    """Warn if the step differs from many distances or exceeds some of them."""
    shares = float(np.mean(steps >= 1.5)), float(np.mean(steps < 0.5))
    if len(steps) < FEWEST_DISTANCES or (sum(shares) <= MOST_OTHERS and shares[1] == 0):
        return
    unit = " s" if in_seconds else ""
    median = f"{float(np.median(steps)) * step:g}{unit}"
    usual = "" if median == f"{step:g}{unit}" else f", whose median distance is {median}"
    warn(
        f"column {name!r}: a step of {step:g}{unit} does not suit the times{usual}: {shares[0]:.1%} of the rows come "
        f"after a gap, and {shares[1]:.1%} are closer than half a step to the previous one. Give another step, or no "
        "column of times if the gaps mean nothing, such as weekends between business days"
    )


def _differences(before: npt.NDArray[Any], now: npt.NDArray[Any]) -> Array:
    """Subtract times exactly, in seconds for dates."""
    if now.dtype.kind in "Mm":
        ticks = TICKS[np.datetime_data(now.dtype)[0]]
        return _differences(before.view(np.int64), now.view(np.int64)) / ticks
    if now.dtype.kind not in "iu":
        return np.asarray(now - before, dtype=np.float64)
    # Modulo 2^64, a larger minus a smaller number never overflows.
    sizes = np.maximum(now, before).astype(np.uint64) - np.minimum(now, before).astype(np.uint64)
    return np.asarray(np.where(now >= before, 1.0, -1.0) * sizes, dtype=np.float64)


def _backwards(before: Any, now: Any) -> str:
    advice = "sort the rows of each sequence by time"
    if now == before:
        advice = "two rows of one sequence have the same time: leave one out, or give the column of the sequence"
    elif isinstance(now, np.datetime64) and AN_HOUR[0] <= (before - now) / np.timedelta64(1, "s") <= AN_HOUR[1]:
        advice += ", or use UTC if clocks went back at the end of daylight saving time, or time zones are mixed"
    return f"time does not increase: {_shown(now)} after {_shown(before)}; {advice}"


def _too_many(before: Any, now: Any, steps: float, step: float) -> str:
    return f"{steps:g} steps of {step:g} lie between {_shown(before)} and {_shown(now)}"


def _shown(time: Any) -> str:
    if isinstance(time, WholeSeconds | Seconds):
        for unit, ticks in TICKS.items():
            whole = int(time * int(ticks))
            if whole == time * int(ticks) and abs(whole) < 2**63:
                return str(np.array(whole).view(f"M8[{unit}]"))
    return f"{time:.17g}" if isinstance(time, float) else str(time)


def _begins(lengths: Lengths) -> npt.NDArray[np.bool_]:
    begins = np.zeros(sum(lengths), dtype=np.bool_)
    begins[np.cumsum([0, *lengths[:-1]])] = True
    return begins
