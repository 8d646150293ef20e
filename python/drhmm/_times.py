"""Times to steps of the chain: which frames are missing between two rows of one sequence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._validation import LONGEST_GAP, Array, Lengths, Steps


class TimeError(ValueError):
    """What is wrong with the time of one row, or, where ``row`` is None, with all of them."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


def steps_between(before: float | None, now: float, step: float) -> int:
    """Steps of the chain between two times, at least 1; a ValueError if time does not increase."""
    if before is None:
        return 1
    if now <= before:
        raise ValueError(f"time does not increase: {now:.17g} after {before:.17g}")
    steps = (now - before) / step
    if not steps <= LONGEST_GAP:
        raise ValueError(f"{steps:g} steps of {step:g} lie between {before:.17g} and {now:.17g}")
    return max(1, round(steps))


def usual_step(times: Array, lengths: Lengths) -> float:
    """The median time between rows of one sequence."""
    differences = np.diff(times)[~_begins(lengths)[1:]]
    if len(differences) == 0 or not np.median(differences) > 0:
        raise TimeError("time does not increase: what is one step?")
    return float(np.median(differences))


def gaps(times: Array, lengths: Lengths, step: float) -> Steps:
    """Steps of the chain that lead to each row, 1 at the begin of a sequence: `steps_between` for all rows at once."""
    inside = np.flatnonzero(~_begins(lengths))
    before, now = times[inside - 1], times[inside]
    with np.errstate(over="ignore", invalid="ignore"):
        steps = (now - before) / step
    wrong = np.flatnonzero(~((now > before) & (steps <= LONGEST_GAP)))
    if len(wrong) > 0:
        place = int(wrong[0])
        try:
            steps_between(float(before[place]), float(now[place]), step)
        except ValueError as problem:
            raise TimeError(str(problem), int(inside[place])) from None
        raise TimeError(f"there is no time: {now[place]} after {before[place]}", int(inside[place]))
    dt = np.ones(len(times), dtype=np.int64)
    dt[inside] = np.maximum(np.rint(steps), 1).astype(np.int64)
    return dt


def _begins(lengths: Lengths) -> npt.NDArray[np.bool_]:
    begins = np.zeros(sum(lengths), dtype=np.bool_)
    begins[np.cumsum([0, *lengths[:-1]])] = True
    return begins
