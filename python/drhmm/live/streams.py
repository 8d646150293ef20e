"""Live sequences: posteriors of batch inference, one time step at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..chain.unknown_state import among_known
from ..data.checks import LONGEST_GAP, Array, as_matrix, as_sample, as_steps, check_integer, refuse_masked, thread_count
from ..data.columns import values_by_name
from ..exceptions import SnapshotError
from ..recursion import raise_failure
from . import snapshots
from .alarms import CAUSES, Alarm, AlarmHealth, ColumnShares, Episode

if TYPE_CHECKING:
    from ..model import Model

MOST_ROWS = 2**31

Rows = npt.NDArray[np.int64]


class _Live:
    """The common part of `Stream` and `StreamBatch`: native rows on a model."""

    _KIND: str
    _DOOR: str  # the method of `Model` that creates it

    def __init__(self, model: Model, lag: int = 0, alarm: Alarm | None = None) -> None:
        self._model = model
        if alarm is not None:
            model._check_alarm(alarm)
        self._alarm = alarm = alarm or model.own_alarm
        self._told: dict[tuple[int, bool], tuple[tuple[int, ...], ColumnShares]] = {}
        self._lag = check_integer(lag, "lag", low=0, high=snapshots.LONGEST_LAG)
        self._n_columns = model.n_features
        tuned = model.tuned("filter")
        streamed = tuned.evidence.streamed(model.novelty is not None)
        self._evaluate = None if isinstance(streamed, _core.PooledRatio) else streamed
        framing = model.evidence.framing
        self._live = _core.LiveStreams(
            chain=tuned.chain,
            mean=framing.mean,
            scale=framing.scale,
            window=framing.window,
            span=framing.span,
            n_known=model.n_states,
            lag=self._lag,
            ratio=streamed if isinstance(streamed, _core.PooledRatio) else None,
            levels=None if alarm is None else alarm.levels,
        )
        self._step_one = self._live.stepper()

    @property
    def model(self) -> Model:
        """The model of the stream."""
        return self._model

    @property
    def lag(self) -> int:
        """Delay of an answer in time steps."""
        return self._lag

    def snapshot(self) -> bytes:
        """Save the state as bytes for `Model.resume` or `Model.resume_batch`."""
        numbers = () if self._alarm is None else self._alarm.numbers()
        state = self._live.state() | {"alarm": np.array(numbers, dtype=np.float64)}
        return snapshots.pack(self._KIND, self._model, self._lag, state)

    def _restore(self, state: snapshots.State) -> None:
        try:
            self._live.restore(state)
        except ValueError as error:
            raise SnapshotError(f"the snapshot does not hold a state of the model: {error}") from None

    def _watched(self) -> Alarm:
        if self._alarm is None:
            raise ValueError(f"there is no alarm: pass model.{self._DOOR} one from model.alarm")
        return self._alarm

    def _episode(self, row: int, is_ended: bool = False) -> Episode | None:
        """Return the alarm of a row; its columns change only with higher evidence."""
        alarm = self._watched()
        places, columns = self._told.get((row, is_ended), ((), ()))
        found = self._live.alarm(row, is_ended, places)
        if found is None:
            return None
        (begin, end, peak, score, cause, places), frames = found
        if frames is not None:
            columns = alarm.columns_of(frames)
            self._told[row, is_ended] = places, columns
        return Episode(row, begin, end, peak, score, columns, CAUSES[cause])

    def _health(self, row: int) -> AlarmHealth:
        return self._watched().compared(*self._live.alarm_marks(row))

    def _raise(self, report: tuple[int, int, int, int], row: int, frame: int) -> None:
        raise_failure(report[0], row, frame, row if self._KIND == "batch" else frame, report[3])

    def _posterior(self, row: int, back: int = 0) -> Array:
        """Posterior p(x_t-back | y_1..y_t) of all states, the unknown last."""
        report, posterior = self._live.posterior(row, back)
        if report[0] != 0:
            self._raise(report, row, int(self._live.n_frames()[row]) - 1 - back)
        return posterior

    def _pending(self, row: int) -> Array:
        """Posteriors of all states at the k time steps of a row without an answer."""
        waiting = min(self._lag, int(self._live.n_frames()[row]))
        posteriors = [self._posterior(row, back) for back in reversed(range(waiting))]
        return np.array(posteriors).reshape(waiting, self._model.n_states + (self._model.novelty is not None))

    def _known(self, posteriors: Array) -> Array:
        return among_known(posteriors, self._model.n_states)


class Stream(_Live):
    """One live sequence on a model.

    Created by ``model.stream()``. Posteriors equal those of batch inference on the time steps so far. Use a stream in
    one thread at a time: concurrent calls raise a RuntimeError.

    Parameters
    ----------
    lag : int
        0 for filtering. With lag L, a time step is answered L time steps later, given these, too.
    alarm : Alarm, optional
        The alarm to raise, without waiting for the lag; by default that of `Model.with_alarm`.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(500, random_state=0)
    >>> model = drhmm.DensityRatioHMM(novelty=True, random_state=0).fit(X, y).model_
    >>> stream = model.stream(lag=2)
    >>> first, second, third = map(stream.step, X[:3])  # the third step answers the first
    >>> posterior = stream.step(None)  # a missing sample
    >>> posterior = stream.step(X[12], dt=9)  # nine time steps later
    >>> stream.pending().shape, stream.pending_novelty().shape  # no step has answered the last two
    ((2, 3), (2,))
    >>> model.resume(stream.snapshot()).n_frames
    5
    >>> stream.reset()
    >>> stream.n_frames
    0
    """

    _KIND = _DOOR = "stream"

    def __init__(self, model: Model, lag: int = 0, *, alarm: Alarm | None = None) -> None:
        super().__init__(model, lag, alarm)
        self._live.add(1)

    def __reduce__(self) -> tuple[Any, ...]:
        return resume_stream, (self._model, self.snapshot())

    def __repr__(self) -> str:
        return f"Stream(n_frames={self.n_frames}, lag={self._lag}, {self._model!r})"

    def _repr_html_(self) -> str:
        from ..judging.summary import stream_as_html

        return stream_as_html(self)

    def step(self, x: Any, dt: int = 1) -> Array | None:
        """Take one sample and answer.

        Parameters
        ----------
        x : array of shape (d,), mapping of column names to numbers, or None
            The sample; with None or a NaN in it, it is missing. A mapping needs a number or None for every column of
            the model; other columns are ignored.
        dt : int
            Steps of the chain since the last sample, at least 1; for the first sample, 1 is the start of the sequence.
            Gaps of any length are exact and cheap. Windows do not reach across gaps.

        Returns
        -------
        ndarray of shape (S,), or None
            Posterior given all time steps so far: of this time step, or with lag L of the one L time steps before (None
            at first). If the model has a state for the unknown, given that the state is known; see `novelty`. After an
            ImpossibleDataError, the stream is as before.
        """
        # The core takes arrays, lists and tuples of numbers, and an integer; Python handles everything else.
        answer = self._step_one(x, dt, self._evaluate)
        if answer is NotImplemented:
            if isinstance(x, Mapping):
                x = values_by_name(x, self._model.feature_names)
            self._model.check_names(x)
            x = as_sample(x, self._n_columns)
            dt = check_integer(dt, "dt", low=1, high=LONGEST_GAP)
            answer = self._step_one(x, dt, self._evaluate)
        if type(answer) is tuple:
            self._raise(answer, 0, self.n_frames)
        posterior: Array | None = answer
        return posterior

    @property
    def alarm(self) -> Episode | None:
        """The current alarm so far, or None."""
        return self._episode(0)

    @property
    def ended_alarm(self) -> Episode | None:
        """The alarm that ended at the newest time step, after its hold-off, or None."""
        return self._episode(0, is_ended=True)

    @property
    def alarm_sum(self) -> float:
        """The cumulative sum of evidence that the alarm compares with `sum_level`."""
        self._watched()
        return self._live.alarm_sum(0)

    @property
    def alarm_health(self) -> AlarmHealth:
        """The number of recent alarms, compared with the promise; see `Alarm.health`.

        It covers the time in which eight alarms are promised.
        """
        return self._health(0)

    @property
    def n_frames(self) -> int:
        """Number of time steps so far."""
        return int(self._live.n_frames()[0])

    @property
    def posterior(self) -> Array:
        """Filtered posterior of the newest time step; at first the start probabilities."""
        return self._known(self._posterior(0))

    @property
    def label(self) -> Any:
        """The most probable label of the newest time step, as a plain Python value."""
        return self._model.labels[int(self.posterior.argmax())]

    @property
    def novelty(self) -> float:
        """Probability of the unknown at the newest time step."""
        self._model.check_novelty()
        return float(self._posterior(0)[-1])

    @property
    def lagged_novelty(self) -> float | None:
        """Probability of the unknown `lag` time steps ago; None during the first ones."""
        self._model.check_novelty()
        return float(self._posterior(0, self._lag)[-1]) if self.n_frames > self._lag else None

    def pending(self) -> Array:
        """Posteriors (k, S) of the k = min(lag, n_frames) time steps without an answer."""
        return self._known(self._pending(0))

    def pending_novelty(self) -> Array:
        """Probability of the unknown at the time steps of `pending`, (k,)."""
        self._model.check_novelty()
        return self._pending(0)[:, -1]

    def reset(self) -> None:
        """Start a new sequence."""
        self._live.reset([0])


class StreamBatch(_Live):
    """Many live sequences on a model, stepped together in one native call.

    Created by ``model.stream_batch(n)`` with n sequences, at first, and at most `n_threads` threads for a step. Row i
    of every array belongs to sequence i. Rows can be added, reset and retired at any time. Methods and other arguments
    are as in `Stream`.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(500, random_state=0)
    >>> model = drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_
    >>> batch = model.stream_batch(4)
    >>> batch.step(X[:4]).shape
    (4, 3)
    >>> batch.step(X[4:8], active=[True, True, False, True])[2]  # nothing has arrived for row 2
    array([nan, nan, nan])
    >>> batch.reset([0])
    >>> batch.retire([1])
    >>> batch.add(2)  # the retired row, and a new one
    array([1, 4])
    >>> batch.n_frames
    array([0, 0, 1, 2, 0])
    >>> model.resume_batch(batch.snapshot()).pending(3).shape  # without a lag, every step has its answer
    (0, 3)
    """

    _KIND, _DOOR = "batch", "stream_batch"

    def __init__(
        self, model: Model, n: int = 0, lag: int = 0, *, n_threads: int | None = None, alarm: Alarm | None = None
    ) -> None:
        super().__init__(model, lag, alarm)
        thread_count(n_threads)
        self._n_threads = n_threads
        self._live.add(check_integer(n, "n", low=0, high=MOST_ROWS))

    def __reduce__(self) -> tuple[Any, ...]:
        return resume_batch, (self._model, self.snapshot(), self._n_threads)

    def __repr__(self) -> str:
        return f"StreamBatch({len(self)} rows, {self.live.sum()} live, lag={self._lag}, {self._model!r})"

    def __len__(self) -> int:
        return len(self._live.live())

    def step(self, X: Any, *, active: Any = None, dt: Any = 1) -> Array:
        """Take one sample for every active row and answer.

        As in `Stream.step`, with one answer per row: (n, S), NaN in rows that are inactive or have no answer yet. In an
        ImpossibleDataError, `sequence` is the row; no row changes.

        Parameters
        ----------
        X : array of shape (n, d)
            One sample for each row; with a NaN, it is missing. Inactive rows are ignored.
        active : array of bool, shape (n,), optional
            Rows with a new sample; no time passes in the others. By default all rows that are not retired.
        dt : int or array of int, shape (n,)
            Steps of the chain since the last sample of each row.
        """
        self._model.check_names(X)
        samples = as_matrix(X, "X")
        live = self._live.live()
        if samples.shape != (len(live), self._n_columns):
            raise ValueError(f"X must have shape {(len(live), self._n_columns)}, got {samples.shape}")
        steps = dt if isinstance(dt, list | tuple) or np.ndim(dt) > 0 else np.full(len(live), dt)
        checked = as_steps(steps, len(live)) if len(live) > 0 else np.ones(0, dtype=np.int64)
        mask = self._active(active, live)
        report, posteriors = self._live.step(samples, mask, checked, thread_count(self._n_threads), self._evaluate)
        if report[0] != 0:
            self._raise(report, report[1], int(self.n_frames[report[1]]))
        return posteriors

    @property
    def alarm(self) -> list[Episode | None]:
        """The current alarm of each row, or None."""
        self._watched()
        return [self._episode(row) for row in range(len(self))]

    @property
    def alarm_health(self) -> list[AlarmHealth]:
        """The health of each row's alarms, as in `Stream.alarm_health`."""
        self._watched()
        return [self._health(row) for row in range(len(self))]

    def _active(self, active: Any, live: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        if active is None:
            return live
        refuse_masked(active, "active")
        mask = np.array(active)
        if mask.dtype != np.bool_ or mask.shape != live.shape:
            raise ValueError(
                f"active must have one bool per row: shape {live.shape}, got shape {mask.shape} of dtype {mask.dtype}"
            )
        if (mask & ~live).any():
            raise ValueError(f"active is True for row {int(np.flatnonzero(mask & ~live)[0])}, which is retired")
        return mask

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """The rows in use, shape (n,)."""
        return self._live.live()

    @property
    def n_frames(self) -> Rows:
        """Number of time steps of each row so far, shape (n,)."""
        return self._live.n_frames()

    @property
    def posterior(self) -> Array:
        """Posterior of each row's newest time step, (n, S); NaN in retired rows."""
        return self._known(self._posteriors())

    @property
    def novelty(self) -> Array:
        """Probability of the unknown at each row's newest time step; NaN if retired."""
        self._model.check_novelty()
        return self._posteriors()[:, -1]

    def _posteriors(self) -> Array:
        report, posteriors = self._live.posteriors()
        if report[0] != 0:
            self._raise(report, report[1], int(self.n_frames[report[1]]) - 1)
        return posteriors

    def pending(self, row: int) -> Array:
        """Posteriors of unanswered time steps of a row, as `Stream.pending`."""
        (row,) = self._checked_rows([check_integer(row, "row", low=0)])
        return self._known(self._pending(row))

    def add(self, n: int = 1) -> Rows:
        """Start n sequences and return their rows: retired rows first, then new ones."""
        return self._live.add(check_integer(n, "n", low=1, high=MOST_ROWS))

    def reset(self, rows: Any) -> None:
        """Start new sequences in some rows."""
        self._live.reset(self._checked_rows(rows))

    def retire(self, rows: Any) -> None:
        """End some sequences; their rows stay empty until `add` uses them again."""
        self._live.retire(self._checked_rows(rows))

    def _checked_rows(self, rows: Any) -> list[int]:
        refuse_masked(rows, "rows")
        indices = np.atleast_1d(np.asarray(rows))
        if indices.ndim != 1 or (indices.size > 0 and indices.dtype.kind not in "iu"):
            raise ValueError(f"rows must be row numbers, got {rows!r}")
        live = self.live
        for row in indices.tolist():
            if not (0 <= row < len(live)):
                raise ValueError(f"there is no row {row}: rows are 0 to {len(live) - 1}")
            if not live[row]:
                raise ValueError(f"row {row} is retired")
        checked: list[int] = indices.tolist()
        return checked


def resume_stream(model: Model, data: bytes) -> Stream:
    """Resume a stream from a snapshot."""
    lag, state = snapshots.unpack("stream", model, data)
    if len(state["live"]) != 1 or not state["live"][0]:
        raise SnapshotError("the snapshot does not hold one live sequence")
    stream = Stream.__new__(Stream)
    _Live.__init__(stream, model, lag, _saved_alarm(model, state))
    stream._restore(state)
    return stream


def resume_batch(model: Model, data: bytes, n_threads: int | None = None) -> StreamBatch:
    """Resume a batch of streams from a snapshot."""
    lag, state = snapshots.unpack("batch", model, data)
    batch = StreamBatch(model, 0, lag, n_threads=n_threads, alarm=_saved_alarm(model, state))
    batch._restore(state)
    return batch


def _saved_alarm(model: Model, state: snapshots.State) -> Alarm | None:
    """Return the alarm in a snapshot."""
    numbers = state.pop("alarm")
    if len(numbers) == 0:
        return None
    try:
        return Alarm.from_numbers(model, numbers.tolist())
    except ValueError as error:
        raise SnapshotError(f"the snapshot does not hold an alarm: {error}") from None
