"""Alarms in the user's units: so many false ones in so much time, from what normal time steps did."""

from __future__ import annotations

import itertools
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.checks import LARGEST, Array, Steps, check_integer, check_number, thread_count
from ..data.sequences import Sequences
from ..data.times import as_step, seconds_of
from ..data.user_warnings import warn
from ..evidence.score_pvalues import pareto_tail
from ..evidence.unknown import HIGHEST, Excursions

if TYPE_CHECKING:
    from ..model import Model

#: What ends an alarm by default, where the time of a frame is known.
HOLD_OFF = "10min"

_FRAMES = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(?:frames?|(?:time )?steps?)?\s*")

#: Declustered peaks that a level is extrapolated from, where there are so many. On ten seeds of `datasets.sensors`, one
#: false alarm a week became 0.25 to 3 with 20 of them, and 0.25 to 1.5 with 40.
N_PEAKS = 40

#: False alarms expected in the normal data from which on their own quantile is the level.
REACH = 10

#: How fast levels are lowered until there are as many alarms as asked for.
FACTOR = 1.25

#: How far above its level the cumulative sum counts: what is more would only delay the end of an alarm.
MARGIN = 1.0

#: Frames above a level that say which columns of an episode stick out, the first ones of it.
MOST_FRAMES = 50

#: Share of the rows in which a column may be missing without a warning.
MOST_MISSING = 0.1

#: What a frame may be above: nothing, the level of the sum, or that of single frames.
CAUSES = ("", "sum", "frame")


def frames_of(value: Any, name: str, step: float | None, *, low: float, remedy: str = "step") -> float:
    """A time as a number of time steps: a number, text such as "500 steps", or "7d", "10 min" with the time of a step.

    `remedy` is what gives the time of one step, for the message where it is not known.
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


@dataclass(frozen=True)
class Episode:
    """One alarm: time steps ``begin`` to ``end``, end excluded, of a sequence.

    ``peak`` is the time step of the highest evidence and ``score`` its `novelty_score`, at most 230. ``columns`` has
    the columns that stick out, most first: names (or numbers) and their share of the evidence, in the first 50 time
    steps above a level. ``cause`` is the level that was exceeded where the alarm began: "frame", that of single time
    steps, or "sum".

    Examples
    --------
    >>> import drhmm
    >>> normal, _ = drhmm.datasets.sensors(2000, faults=(), random_state=0)
    >>> model = drhmm.DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
    >>> X, fault = drhmm.datasets.sensors(1000, faults=("bias",), random_state=1)
    >>> for episode in model.alarm(1, per=1000, hold_off=30).episodes(X):
    ...     assert episode.begin <= episode.peak < episode.end
    """

    sequence: int
    begin: int
    end: int
    peak: int
    score: float
    columns: tuple[tuple[str | int, float], ...] = ()
    cause: str = ""


@dataclass(frozen=True)
class Alarm:
    """When to wake somebody: levels of evidence that normal time steps exceed as often as was asked for.

    Made by `Model.alarm`. An alarm begins at a time step at which the cumulative sum of evidence for the unknown,
    c_t = max(0, c_{t-1} + log w_*), is above ``sum_level``, or log w_* itself above ``frame_level``. It ends when
    neither has been for ``hold_off`` time steps. The sum is never more than 1 nat above its level: what has been going
    on for long ends as soon as the evidence does.

    Attributes
    ----------
    model : Model
        The model whose evidence is watched.
    sum_level, frame_level : float
        Levels of the sum and of single time steps, in nats.
    hold_off : int
        Time steps that end an alarm.
    false_alarms, per : float
        What was asked for: so many false alarms in so many time steps.
    n_normal : int
        Normal time steps that the levels come from.

    Examples
    --------
    >>> import drhmm
    >>> normal, _ = drhmm.datasets.sensors(3000, faults=(), random_state=0)
    >>> model = drhmm.DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
    >>> alarm = model.alarm(1, per=1440, hold_off=30)
    >>> X, truth = drhmm.datasets.sensors(3000, faults=("bias",), random_state=1)
    >>> len(alarm.episodes(X)) > 0
    True
    """

    model: Model = field(repr=False)
    sum_level: float
    frame_level: float
    hold_off: int
    false_alarms: float
    per: float
    n_normal: int

    def __post_init__(self) -> None:
        for name in ("sum_level", "frame_level"):
            check_number(getattr(self, name), name, low=0, high=LARGEST)
        check_integer(self.hold_off, "hold_off", low=0)

    def numbers(self) -> tuple[float, ...]:
        """Everything but the model."""
        return self.sum_level, self.frame_level, self.hold_off, self.false_alarms, self.per, self.n_normal

    @classmethod
    def from_numbers(cls, model: Model, numbers: Any) -> Alarm:
        """The opposite of `numbers`."""
        sum_level, frame_level, hold_off, false_alarms, per, n_normal = (float(number) for number in numbers)
        if not (0 <= hold_off <= LARGEST and hold_off.is_integer() and n_normal >= 0 and n_normal.is_integer()):
            raise ValueError(f"an alarm has hold_off {hold_off:g} and {n_normal:g} normal time steps")
        check_number(false_alarms, "false_alarms", low=0, high=LARGEST, low_open=True)
        check_number(per, "per", low=1, high=LARGEST)
        return cls(model, sum_level, frame_level, int(hold_off), false_alarms, per, int(n_normal))

    def episodes(
        self, X: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None, n_threads: int | None = None
    ) -> list[Episode]:
        """The alarms in sequences of samples; parameters as in `Model.predict_proba`.

        Time steps are counted from the begin of their sequence. The last episode of a sequence may still be going on.
        A time step with a missing value has no evidence, so that no alarm begins there: a warning names a column that
        is missing in a tenth of the rows or more.
        """
        return self._episodes_of(self.model.read(X, lengths, sequence_id, dt), n_threads)

    def _episodes_of(self, sequences: Sequences, n_threads: int | None = None) -> list[Episode]:
        """The same from sequences that have been read."""
        _warn_of_missing(sequences.samples, self.model.feature_names)
        logs = self.model._log_evidence(sequences, thread_count(n_threads))
        found, first = [], 0
        for sequence, length in enumerate(sequences.lengths):
            steps = None if sequences.dt is None else sequences.dt[first : first + length]
            own = logs[first : first + length]
            rows = sequences.samples[first : first + length]
            found += [replace(episode, sequence=sequence) for episode in self.follow(own, steps, rows)[1]]
            first += length
        return found

    def follow(
        self, scores: Array, dt: Steps | None = None, samples: Array | None = None
    ) -> tuple[Array, list[Episode]]:
        """The cumulative sum of scores (T,) of one sequence, and the episodes, with columns if there are samples."""
        watch, sums, found = Watch(self), [], []
        steps = [1] * len(scores) if dt is None else dt.tolist()
        rows = [None] * len(scores) if samples is None else samples
        for value, step, sample in zip(scores.tolist(), steps, rows, strict=True):
            ended = watch.step(value, step, sample)
            sums.append(watch.total)
            found += [] if ended is None else [ended]
        return np.array(sums), found + ([] if watch.episode is None else [watch.episode])

    def columns_of(self, sums: Array) -> tuple[tuple[str | int, float], ...]:
        """Columns and their shares of sums (d,), the largest first, until nine tenths are told."""
        if not sums.sum() > 0:
            return ()
        shares = sums / sums.sum()
        order = np.argsort(-shares, kind="stable")
        n_told = int(np.searchsorted(np.cumsum(shares[order]), 0.9)) + 1
        names = self.model.feature_names
        return tuple((int(j) if names is None else names[j], float(shares[j])) for j in order[:n_told])


class Watch:
    """The state of an alarm along one sequence."""

    #: Numbers of `state`, without those of the columns.
    SIZE = 9

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm
        self._framing = alarm.model.evidence.framing
        self.reset()

    def reset(self) -> None:
        """Forget every time step."""
        self.total = 0.0
        self.frame = -1  # the newest frame
        self.quiet = 0  # steps since the last frame above a level
        self.last = -1  # the last frame above a level
        self.peak = -1
        self.score = 0.0
        self.recent: deque[Array] = deque(maxlen=self._framing.window)  # standardised samples, the newest last
        self._end()

    def _end(self) -> None:
        """No alarm is going on."""
        self.begin = -1
        self.cause = 0  # the place among CAUSES
        self.n_told = 0  # frames that columns are told of
        self.told = np.zeros(self._framing.n_columns)  # what each column adds to their evidence

    def step(self, value: float, dt: int = 1, sample: Any = None) -> Episode | None:
        """Take log w_* of one more time step, NaN if it is missing; the episode that ends before it, if one does.

        Without its sample, nothing is known of columns.
        """
        alarm, ended, cause = self.alarm, None, 0
        self.frame += 1
        self.quiet += dt
        if value == value:
            value = min(value, HIGHEST)
            self.total, cause = advance(self.total, value, alarm.sum_level, alarm.frame_level)
        if self.begin >= 0 and self.quiet > alarm.hold_off:
            ended = self.episode
            self._end()
        if cause > 0:
            if self.begin < 0:
                self.begin, self.score, self.cause = self.frame, -math.inf, cause
            self.last, self.quiet = self.frame, 0
            if value > self.score:
                self.peak, self.score = self.frame, value
        if sample is not None and (cause > 0 or self._framing.window > 1):
            self._take(np.asarray(sample, dtype=np.float64), cause > 0)
        return ended

    def _take(self, sample: Array, is_above: bool) -> None:
        """Keep the samples of the newest time step, and add up the parts of its columns if it is above a level."""
        self.recent.append((sample - self._framing.mean) / self._framing.scale)
        if is_above and self.n_told < MOST_FRAMES:
            frame = np.concatenate(self.recent)[None]  # complete, as it has evidence
            parts = self.alarm.model._novelty_evidence.by_column(frame).reshape(-1, len(sample))
            self.told = self.told + np.maximum(parts.sum(axis=0), 0.0)
            self.n_told += 1

    @property
    def episode(self) -> Episode | None:
        """The episode that is going on."""
        if self.begin < 0:
            return None
        columns = self.alarm.columns_of(self.told)
        return Episode(0, self.begin, self.last + 1, self.peak, self.score, columns, CAUSES[self.cause])

    def state(self) -> tuple[float, ...]:
        """Everything that a snapshot needs beside the samples of the window."""
        counts = (self.frame, self.quiet, self.begin, self.last, self.peak, self.cause, self.n_told)
        return (self.total, self.score, *counts, *self.told.tolist())

    def restore(self, state: Any, past: Array) -> None:
        """The opposite of `state`, with the standardised samples of the window; a ValueError says what cannot be."""
        total, score, *counts = (float(number) for number in state[: self.SIZE])
        frame, quiet, begin, last, peak, cause, n_told = counts
        told = np.array(state[self.SIZE :], dtype=np.float64)
        if not (
            all(math.isfinite(number) and number.is_integer() and abs(number) < 2**53 for number in counts)
            and 0 <= total <= self.alarm.sum_level + MARGIN
            and quiet >= 0
            and math.isfinite(score)
            and -1 <= begin <= last <= frame
            and (begin < 0 or begin <= peak <= last)
            and 0 <= cause < len(CAUSES)
            and (cause > 0) == (begin >= 0)
            and 0 <= n_told <= MOST_FRAMES
            and ((told >= 0) & np.isfinite(told)).all()
        ):
            raise ValueError("the state of an alarm is none")
        self.total, self.score, self.told = total, score, told
        self.frame, self.quiet, self.begin, self.last, self.peak, self.cause, self.n_told = map(int, counts)
        self.recent.extend(past)


def _warn_of_missing(samples: Array, names: Sequence[str] | None) -> None:
    """Warn of the column that is missing most often, if it is so in many rows."""
    missing = np.isnan(samples).sum(axis=0)
    worst = int(missing.argmax())
    if missing[worst] >= max(MOST_MISSING * len(samples), 1):
        warn(
            f"column {worst if names is None else repr(names[worst])} is missing in {missing[worst]} of "
            f"{len(samples)} rows: no alarm can begin there"
        )


def make_alarm(
    model: Model, excursions: Excursions, false_alarms: Any, per: Any, hold_off: Any, step: Any, source: str
) -> Alarm:
    """Levels from excursions of normal time steps; `source` says in a warning what these are."""
    step = as_step(step)
    if hold_off is None:
        assert model.novelty is not None
        hold_off = model.novelty.duration if step is None else HOLD_OFF
    if isinstance(false_alarms, int | float) and false_alarms <= 0:
        raise ValueError(f"false_alarms must be positive, such as 0.1, got {false_alarms!r}: no level excludes them")
    asked = check_number(false_alarms, "false_alarms", low=0, high=LARGEST, low_open=True)
    period = frames_of(per, "per", step, low=1)
    pause = round(frames_of(hold_off, "hold_off", step, low=0))
    if excursions.n_frames == 0:
        raise ValueError(f"{source} have no complete time step: nothing says what is normal")
    if pause >= period / asked:
        raise ValueError(
            f"hold_off is {pause} time steps, and one false alarm in {period / asked:g} is asked for: an alarm must "
            "be able to end in less time than this"
        )
    if excursions.n_frames < period / asked:
        warn(
            f"{source} have {excursions.n_frames} time steps, fewer than the {period / asked:g} in which a false alarm "
            "is asked for: the level is extrapolated; give more normal data"
        )
    if excursions.n_outliers > 0:
        warn(
            f"{excursions.n_outliers} of {excursions.n_frames + excursions.n_outliers} time steps of {source} are far "
            "beyond all others and were left out as outliers: the levels are those of the rest"
        )
    expected = asked / period * excursions.n_frames
    search = _Search(excursions, pause)
    n_most = search.lower_until(expected)
    if 0 < n_most < expected:
        raise ValueError(
            f"{asked:g} false alarms in {period:g} time steps cannot be promised: with hold_off {pause}, {source} have "
            f"at most {n_most} in {excursions.n_frames}, whatever the levels; ask for at most 1 in "
            f"{math.ceil(excursions.n_frames / n_most)} time steps"
        )
    sum_level, frame_level = search.levels()
    if frame_level >= HIGHEST:
        raise ValueError(
            f"{asked:g} false alarms in {period:g} time steps cannot be promised: more of {source} have the highest "
            f"evidence for the unknown that there is, {HIGHEST:g} nats; are they normal?"
        )
    if expected < REACH:
        sum_level, frame_level = search.beyond(expected)
    return Alarm(model, sum_level, min(frame_level, HIGHEST - MARGIN), pause, asked, period, excursions.n_frames)


def advance(total: float, value: float, sum_level: float, frame_level: float) -> tuple[float, int]:
    """The sum after log w_* of one more frame, and what the frame is above, as a place among CAUSES."""
    total = min(max(0.0, total + value), sum_level + MARGIN)
    return total, 2 if value > frame_level else int(total > sum_level)


class _Search:
    """Levels at which alarms in normal data are as many as asked for.

    One number stands for both levels: so many excursions are above that of the sum, and so many above that of single
    frames.
    """

    def __init__(self, excursions: Excursions, hold_off: int) -> None:
        self._hold_off = hold_off
        self._places = excursions.places
        ends = np.cumsum(excursions.places[:, 2]).astype(np.int64)
        begins = ends - excursions.places[:, 2].astype(np.int64)
        self._values = [excursions.values[i:j].tolist() for i, j in zip(begins, ends, strict=True)]
        heights = np.array([[max(itertools.accumulate(own)), max(own)] for own in self._values]).reshape(-1, 2)
        self._heights = heights
        self._ordered = np.vstack([-np.sort(-heights, axis=0), [0.0, 0.0]])
        # Of lower excursions some are missing.
        self._last = float(np.searchsorted(-self._ordered[:, 1], -excursions.least, side="right") - 1)
        self._n_above = self._last

    def levels(self, n_above: float | None = None) -> tuple[float, float]:
        """The levels of the sum and of single frames, between those of two excursions if the number is no integer."""
        place = self._n_above if n_above is None else n_above
        rest, rank = math.modf(place)
        low, high = self._ordered[min(int(rank) + 1, len(self._ordered) - 1)], self._ordered[int(rank)]
        sum_level, frame_level = (high + rest * (low - high)).tolist()
        return sum_level, frame_level

    def lower_until(self, expected: float) -> int:
        """Go to the lowest levels with fewer alarms than expected; how many there can be, as far as that is known."""
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
        """Levels from generalised Pareto tails of the highest declustered peaks, either for half of the alarms."""
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
        """Alarms in the normal data, by the rule of `Watch`."""
        sum_level, frame_level = self.levels(n_above)
        n_found, owner, newest = 0, -1.0, 0.0
        for place in np.flatnonzero((self._heights > (sum_level, frame_level)).any(axis=1)).tolist():
            sequence, first, _ = self._places[place].tolist()
            total = 0.0
            for t, value in enumerate(self._values[place]):
                total, cause = advance(total, value, sum_level, frame_level)
                if cause > 0:
                    n_found += sequence != owner or first + t - newest > self._hold_off
                    owner, newest = sequence, first + t
        return n_found


def _declustered(places: Array, heights: Array, hold_off: int) -> Array:
    """Heights of clusters: excursions of one sequence that are at most `hold_off` time steps apart are of one."""
    if len(places) == 0:
        return np.empty(0)
    sequence, first, size = places.T
    begins = np.ones(len(first), dtype=bool)
    begins[1:] = (sequence[1:] != sequence[:-1]) | (first[1:] - (first + size)[:-1] >= hold_off)
    peaks: Array = np.maximum.reduceat(heights, np.flatnonzero(begins))
    return peaks
