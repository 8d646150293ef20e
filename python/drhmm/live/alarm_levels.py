"""Alarm levels for a number of false alarms in normal data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..data.checks import LARGEST, Array, check_number
from ..data.times import as_step, frames_of
from ..data.user_warnings import warn
from ..evidence.excursions import HIGHEST, Excursions
from ..evidence.score_pvalues import pareto_tail
from .alarms import MARGIN, Alarm

if TYPE_CHECKING:
    from ..model import Model

#: Default hold-off, if the time of a step is known.
HOLD_OFF = "10min"

#: Declustered peaks for extrapolating a level. On ten seeds of `datasets.sensors`, one false alarm a week became 0.25
#: to 3 with 20 of them, and 0.25 to 1.5 with 40.
N_PEAKS = 40

#: Extrapolate if fewer false alarms than this are expected in the normal data.
REACH = 10

#: A span so long that no alarm counts twice.
NEVER = 1 << 53

#: Factor of the levels in the search.
FACTOR = 1.25


def make_alarm(
    model: Model, excursions: Excursions, false_alarms: Any, per: Any, hold_off: Any, step: Any, source: str
) -> Alarm:
    """Set levels by excursions of normal time steps; `source` names these in messages."""
    step = as_step(step)
    chosen = "the default hold_off" if hold_off is None else "hold_off"
    if hold_off is None:
        assert model.novelty is not None
        hold_off = model.novelty.duration if step is None else HOLD_OFF
    if isinstance(false_alarms, int | float) and false_alarms <= 0:
        raise ValueError(f"false_alarms must be positive, such as 0.1, got {false_alarms!r}: no level excludes them")
    asked = check_number(false_alarms, "false_alarms", low=0, high=LARGEST, low_open=True)
    period = frames_of(per, "per", step, low=1)
    pause = round(frames_of(hold_off, "hold_off", step, low=0))
    if excursions.n_frames == 0:
        raise ValueError(f"{source} have no complete time step to set the levels by")
    if pause >= period / asked:
        raise ValueError(
            f"{chosen} is {pause} time steps, too long for one false alarm in {period / asked:g}: an alarm must be "
            "able to end in less time; give a shorter hold_off"
        )
    if excursions.n_frames < period / asked:
        warn(
            f"{source} have {excursions.n_frames} time steps, fewer than the {period / asked:g} per false alarm: the "
            "level is extrapolated; give more normal data"
        )
    if excursions.n_outliers > 0:
        warn(
            f"{excursions.n_outliers} of {excursions.n_frames + excursions.n_outliers} time steps of {source} are far "
            "beyond all others and were left out as outliers"
        )
    expected = asked / period * excursions.n_frames
    search = _Search(excursions, pause)
    n_most = search.lower_until(expected)
    sum_level, frame_level = search.levels()
    if frame_level >= HIGHEST:
        raise ValueError(
            f"{asked:g} false alarm(s) in {period:g} time steps cannot be promised: too much of {source} has the "
            f"highest possible evidence for the unknown, {HIGHEST:g} nats; is it normal?"
        )
    if expected < REACH:
        sum_level, frame_level = search.beyond(expected)
    alarm = Alarm(model, sum_level, min(frame_level, HIGHEST - MARGIN), pause, asked, period, excursions.n_frames)
    health = alarm.compared(search.count(*alarm.levels), excursions.n_frames)
    if not health.is_good:
        raise ValueError(
            f"no levels keep the promise on {source} ({health.n_alarms} alarms in {health.n_steps} time steps, "
            f"{health.expected:.3g} asked for): many of them look unknown to the model; learn it from data "
            "like these"
        )
    if 0 < n_most < expected:
        raise ValueError(
            f"{asked:g} false alarm(s) in {period:g} time steps cannot be promised: with hold_off {pause}, "
            f"{source} have at most {n_most} in {excursions.n_frames}, whatever the levels; ask for at most 1 in "
            f"{math.ceil(excursions.n_frames / n_most)} time steps"
        )
    return alarm


class _Search:
    """Search for levels with a given number of alarms in normal data.

    One number sets both levels: the number of excursions above each of them.
    """

    def __init__(self, excursions: Excursions, hold_off: int) -> None:
        self._hold_off = hold_off
        self._places, self._values = excursions.places, excursions.values
        begins = np.append(0, np.cumsum(self._places[:, 2]))[:-1].astype(np.int64)
        sums = np.cumsum(self._values)
        before = np.append(0.0, sums)[begins]
        self._heights = (
            np.column_stack([np.maximum.reduceat(sums, begins) - before, np.maximum.reduceat(self._values, begins)])
            if len(begins) > 0
            else np.empty((0, 2))
        )
        self._ordered = np.vstack([-np.sort(-self._heights, axis=0), [0.0, 0.0]])
        # Lower excursions were not all kept.
        self._last = float(np.searchsorted(-self._ordered[:, 1], -excursions.least, side="right") - 1)
        self._n_above = self._last

    def levels(self, n_above: float | None = None) -> tuple[float, float]:
        """Return both levels, interpolated between excursions for a fraction."""
        place = self._n_above if n_above is None else n_above
        rest, rank = math.modf(place)
        low, high = self._ordered[min(int(rank) + 1, len(self._ordered) - 1)], self._ordered[int(rank)]
        sum_level, frame_level = (high + rest * (low - high)).tolist()
        return sum_level, frame_level

    def lower_until(self, expected: float) -> int:
        """Lower the levels while alarms are too few; return the most alarms found."""
        below, above, n_most = 0.0, max(1.0, expected / 2), 0
        while True:
            above = min(above, self._last)
            n_found = self._count(above)
            n_most = max(n_most, n_found)
            if n_found >= expected or above == self._last:
                break
            below, above = above, FACTOR * above
        if n_found < expected:
            self._n_above = self._last
            return n_most
        while above - below > 1e-3 * above:
            middle = (below + above) / 2
            if self._count(middle) < expected:
                below = middle
            else:
                above = middle
        self._n_above = below
        return n_most

    def beyond(self, expected: float) -> tuple[float, float]:
        """Levels from Pareto tails of the highest peaks, each for half of the alarms."""
        self.lower_until(REACH)
        reached = self.levels()
        self.lower_until(N_PEAKS)
        levels = []
        for least, level, heights in zip(reached, self.levels(), self._heights.T, strict=True):
            peaks = _declustered(self._places[heights > level], heights[heights > level], self._hold_off)
            ratio = math.log(max(2 * len(peaks) / expected, 1.0))
            shape, spread = pareto_tail(peaks - level)
            levels.append(max(least, level + spread * (math.expm1(shape * ratio) / shape if shape > 0 else ratio)))
        return levels[0], levels[1]

    def _count(self, n_above: float) -> int:
        """Count the alarms in the normal data, long ones once."""
        return self.count(*self.levels(n_above), self._hold_off, NEVER)

    def count(self, sum_level: float, frame_level: float, hold_off: int, span: int) -> int:
        """Count the alarms at these levels, long ones again after each span."""
        return _core.count_alarms((sum_level, frame_level, hold_off, span), self._places, self._values)


def _declustered(places: Array, heights: Array, hold_off: int) -> Array:
    """Heights of clusters of excursions at most `hold_off` time steps apart."""
    if len(places) == 0:
        return np.empty(0)
    sequence, first, size = places.T
    begins = np.ones(len(first), dtype=bool)
    begins[1:] = (sequence[1:] != sequence[:-1]) | (first[1:] - (first + size)[:-1] >= hold_off)
    peaks: Array = np.maximum.reduceat(heights, np.flatnonzero(begins))
    return peaks
