"""Alarms with a given rate of false alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _core
from ..data.checks import LARGEST, Array, Steps, check_integer, check_number, thread_count
from ..data.sequences import Sequences
from ..data.user_warnings import warn

if TYPE_CHECKING:
    from ..model import Model

#: Largest excess of the cumulative sum over its level: more would only delay the end of an alarm.
MARGIN = 1.0

#: If the p-value of the number of alarms in quiet data is below this, the levels are too low.
TOO_UNLIKELY = 1e-3

#: Warn of a column that is missing in at least this share of the rows.
MOST_MISSING = 0.1

ColumnShares: TypeAlias = "tuple[tuple[str | int, float], ...]"

#: The exceeded level at a time step: none, that of the sum, or that of single time steps.
CAUSES = ("", "sum", "frame")


class _Rounded:
    """A dataclass that prints numbers with four digits, and keeps all of them."""

    def __repr__(self) -> str:
        shown = [f"{own.name}={_rounded(getattr(self, own.name))}" for own in fields(self) if own.repr]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


def _rounded(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_rounded, value))})"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


@dataclass(frozen=True, repr=False)
class Episode(_Rounded):
    """One alarm in a sequence: time steps ``begin`` to ``end``, end excluded.

    ``peak`` is the time step of the highest evidence and ``score`` its `novelty_score`, at most 230. ``columns`` has
    the unusual columns, largest first: name (or number) and share of the evidence in the four highest time steps.
    ``cause`` is the level exceeded at ``begin``: "frame" for single time steps, or "sum".

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
    columns: ColumnShares = ()
    cause: str = ""


@dataclass(frozen=True, repr=False)
class AlarmHealth(_Rounded):
    """The number of alarms in quiet data, compared with the promise.

    Returned by `Alarm.health` and by streams.

    Attributes
    ----------
    n_alarms, n_steps : int
        Number of alarms, and of time steps. A long alarm counts again after every ``hold_off`` time steps, or every
        `novelty_duration` if this is longer.
    expected : float
        Promised number of false alarms in this time.
    pvalue : float
        Probability of at least as many alarms if the promise holds.

    Examples
    --------
    >>> import drhmm
    >>> print(drhmm.AlarmHealth(n_alarms=2, n_steps=1440, expected=1.0, pvalue=0.264))
    2 alarms in 1440 time steps, 1 were promised
    """

    n_alarms: int
    n_steps: int
    expected: float
    pvalue: float

    @property
    def is_good(self) -> bool:
        """Whether the alarms agree with the promise: p-value of at least 0.001."""
        return self.pvalue >= TOO_UNLIKELY

    def __str__(self) -> str:
        alarms = "1 alarm" if self.n_alarms == 1 else f"{self.n_alarms} alarms"
        found = f"{alarms} in {self.n_steps} time steps, {self.expected:.3g} were promised"
        if self.is_good:
            return found
        return (
            f"levels too low for these data: {found} (p = {self.pvalue:.1g}); if nothing was wrong, take the levels of "
            "alarm.recalibrate(normal)"
        )


@dataclass(frozen=True, repr=False)
class Alarm(_Rounded):
    """Levels of evidence that normal time steps exceed at a chosen rate.

    Created by `Model.alarm`. An alarm begins when the cumulative sum of evidence for the unknown,
    c_t = max(0, c_{t-1} + log w_*), is above ``sum_level``, or log w_* itself is above ``frame_level``. It ends after
    ``hold_off`` time steps below both. The sum is at most 1 nat above its level, so that long alarms end without delay.

    Attributes
    ----------
    model : Model
        The model whose evidence is watched.
    sum_level, frame_level : float
        Levels of the sum and of single time steps, in nats.
    hold_off : int
        Time steps below both levels that end an alarm.
    false_alarms, per : float
        The chosen rate: this many false alarms in this many time steps.
    n_normal : int
        Number of normal time steps that set the levels.

    Examples
    --------
    >>> import drhmm
    >>> normal, _ = drhmm.datasets.sensors(3000, faults=(), random_state=0)
    >>> model = drhmm.DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
    >>> alarm = model.alarm(1, per=1440, hold_off=30)
    >>> X, truth = drhmm.datasets.sensors(3000, faults=("bias",), random_state=1)
    >>> len(alarm.episodes(X)) > 0
    True
    >>> alarm.health(normal).is_good, alarm.compared(9, 1440).is_good
    (True, False)
    >>> alarm = alarm.recalibrate(normal)
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

    @property
    def levels(self) -> tuple[float, float, int, int]:
        """Return levels, hold-off and time steps per counted alarm for the native core."""
        assert self.model.novelty is not None
        span = max(self.hold_off, round(self.model.novelty.duration), 1)
        return self.sum_level, self.frame_level, self.hold_off, span

    def numbers(self) -> tuple[float, ...]:
        """Return everything except the model."""
        return self.sum_level, self.frame_level, self.hold_off, self.false_alarms, self.per, self.n_normal

    @classmethod
    def from_numbers(cls, model: Model, numbers: Any) -> Alarm:
        """Restore an alarm from `numbers`."""
        sum_level, frame_level, hold_off, false_alarms, per, n_normal = (float(number) for number in numbers)
        if not (0 <= hold_off <= LARGEST and hold_off.is_integer() and n_normal >= 0 and n_normal.is_integer()):
            raise ValueError(f"invalid alarm with hold_off {hold_off:g} and {n_normal:g} normal time steps")
        check_number(false_alarms, "false_alarms", low=0, high=LARGEST, low_open=True)
        check_number(per, "per", low=1, high=LARGEST)
        return cls(model, sum_level, frame_level, int(hold_off), false_alarms, per, int(n_normal))

    def episodes(
        self, X: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None, n_threads: int | None = None
    ) -> list[Episode]:
        """Find the alarms in samples; parameters as in `Model.predict_proba`.

        Time steps count from the start of their sequence. The last episode of a sequence may still be going on. No
        alarm can begin where a value is missing: a warning names a column that is missing in at least 10 % of the rows.
        """
        return self._episodes_of(self.model.read(X, lengths, sequence_id, dt), n_threads)

    def _episodes_of(self, sequences: Sequences, n_threads: int | None = None) -> list[Episode]:
        """Find the alarms in sequences."""
        _warn_of_missing(sequences.samples, self.model.feature_names)
        return [
            episode
            for sequence, (scores, steps, samples) in enumerate(self._scored(sequences, n_threads))
            for episode in self.follow(scores, steps, samples, sequence)[1]
        ]

    def _scored(self, sequences: Sequences, n_threads: int | None) -> Iterator[tuple[Array, Steps | None, Array]]:
        """Return log w_*, gaps and samples of each sequence."""
        logs = self.model._log_evidence(sequences, thread_count(n_threads))
        first = 0
        for length in sequences.lengths:
            own = slice(first, first + length)
            yield logs[own], None if sequences.dt is None else sequences.dt[own], sequences.samples[own]
            first += length

    def follow(
        self, scores: Array, dt: Steps | None = None, samples: Array | None = None, sequence: int = 0
    ) -> tuple[Array, list[Episode]]:
        """Return the cumulative sum of scores (T,) and the episodes of one sequence.

        Without samples, episodes have no columns.
        """
        sums, found, _ = _core.follow_alarm(self.levels, scores, dt)
        framing, episodes = self.model.evidence.framing, []
        for begin, end, peak, score, cause, places in found:
            columns: ColumnShares = ()
            if samples is not None:
                pieces = [samples[_begin(dt, place, framing.reach) : place + 1] for place in places]
                sizes = [len(piece) for piece in pieces]
                frames = framing.frames_with_means(np.concatenate(pieces), sizes)
                columns = self.columns_of(frames[np.cumsum(sizes) - 1])
            episodes.append(Episode(sequence, begin, end, peak, score, columns, CAUSES[cause]))
        return sums, episodes

    def columns_of(self, frames: Array) -> ColumnShares:
        """Largest shares of columns in the evidence of frames (k, D), up to 90 %."""
        names = self.model.feature_names
        parts = self.model._novelty_evidence.by_column(frames, self.model.n_features)
        sums = np.maximum(parts.sum(axis=0), 0.0)
        if not sums.sum() > 0:
            return ()
        shares = sums / sums.sum()
        order = np.argsort(-shares, kind="stable")
        n_told = int(np.searchsorted(np.cumsum(shares[order]), 0.9)) + 1
        return tuple((int(j) if names is None else names[j], float(shares[j])) for j in order[:n_told])

    def recalibrate(
        self, normal: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None, n_threads: int | None = None
    ) -> Alarm:
        """Return this alarm with levels from other normal data, such as another day.

        Parameters are as in `Model.alarm`.
        """
        return self.model.alarm(
            self.false_alarms,
            self.per,
            self.hold_off,
            normal,
            lengths=lengths,
            sequence_id=sequence_id,
            dt=dt,
            n_threads=n_threads,
        )

    def health(
        self, X: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None, n_threads: int | None = None
    ) -> AlarmHealth:
        """Compare alarms with the promise; parameters as in `Model.predict_proba`."""
        n_alarms, n_steps = 0, 0
        for scores, steps, _ in self._scored(self.model.read(X, lengths, sequence_id, dt), n_threads):
            n_alarms += _core.follow_alarm(self.levels, scores, steps)[2]
            n_steps += len(scores) if steps is None else int(steps.sum())
        return self.compared(n_alarms, n_steps)

    def compared(self, n_alarms: int, n_steps: int) -> AlarmHealth:
        """Compare a number of alarms in a number of time steps with the promise."""
        from scipy.special import gammainc

        expected = self.false_alarms / self.per * n_steps
        pvalue = float(gammainc(n_alarms, expected)) if n_alarms > 0 else 1.0
        return AlarmHealth(n_alarms, n_steps, expected, pvalue)


def _begin(dt: Steps | None, place: int, reach: int) -> int:
    """Return the first of `reach` samples up to `place`, or that after a gap."""
    first = max(0, place - reach + 1)
    return first if dt is None else first + int(np.flatnonzero(dt[first : place + 1] > 1).max(initial=0))


def _warn_of_missing(samples: Array, names: Sequence[str] | None) -> None:
    """Warn of the column with the most missing values."""
    missing = np.isnan(samples).sum(axis=0)
    worst = int(missing.argmax())
    if missing[worst] >= max(MOST_MISSING * len(samples), 1):
        warn(
            f"column {worst if names is None else repr(names[worst])} is missing in {missing[worst]} of "
            f"{len(samples)} rows: no alarm can begin there"
        )
