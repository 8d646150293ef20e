"""The fitted model: immutable and shared by threads; numpy and native core only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ._inference import METHODS, PATH_METHODS, Inference, Method, PathMethod
from .data.checks import Array, Cores, thread_count
from .data.columns import remembered_step
from .data.labels import renamed
from .data.sequences import Data, Rows, Sequences
from .data.times import Step, StepSeconds
from .evidence.excursions import Excursions
from .evidence.pooled import PooledEvidence
from .evidence.unknown import NoveltyEvidence
from .features.frames import complete_rows
from .system.calls import by_name

if TYPE_CHECKING:
    from .judging.explanation import ColumnRanking, Explanation
    from .judging.suggestions import Suggestion
    from .live.alarms import Alarm
    from .live.streams import Stream, StreamBatch

__all__ = ["METHODS", "PATH_METHODS", "Method", "Model", "PathMethod"]


@dataclass(frozen=True, eq=False, repr=False)
class Model(Inference):
    """A fitted density ratio HMM: evidence, transitions and class labels.

    Obtained from ``DensityRatioHMM.fit(...).model_``. A model never changes; its arrays are read-only.

    Attributes
    ----------
    classes : ndarray of shape (S,)
        The label of each state.
    transmat, startprob : ndarray of shape (S, S), ndarray of shape (S,)
        p(x_t = j | x_{t-1} = i) and p(x_1 = i) of the chain that inference runs on.
    prior : ndarray of shape (S,)
        Share of each state among the training frames.
    evidence : PooledEvidence or SourceEvidence
        From samples to log ratios.
    novelty : Novelty or None
        Rate and duration of the state for the unknown.
    feature_names : tuple of str, or None
        Names of the columns, if the training data had names.
    settings : mapping
        The settings of the estimator that learned the model, as JSON.
    stages : Durations or None
        Durations of the states, if not those of a plain chain; see `durations`.
    tempering : Tempering or None
        The chain before it was tempered, if it was, and the end weights that smoothing and best paths add to the last
        time step of each sequence. Filtering, fixed lags and streams do not know where a sequence ends.
    kept_alarm : tuple of float, or None
        The numbers of the alarm from `with_alarm`; see `own_alarm`.
    other_tunings : mapping of str to Tuning
        Scales, temper and prior shift for "filter" and "frame", if they were learned; see `tunings`.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> model = drhmm.DensityRatioHMM(novelty=True, random_state=0).fit(X, y).model_
    >>> model
    Model(classes=[0, 1, 2], n_features=2, window=1, Novelty(rate=0.001, duration=50.0))
    >>> print(model.summary().splitlines()[1])
      label  share of time steps   start  mean stay  shape
    >>> path, live = model.predict(X, method="viterbi"), model.predict_proba(X, method="filter")
    >>> drhmm.recursion.filter(model.log_ratios(X), model.transmat, model.startprob).shape
    (300, 3)
    >>> model.gain(X) > 0, model.tuned("filter").tunings["smooth"] == model.tunings["filter"]
    (True, True)

    Find time steps far from everything known, and explain a label:

    >>> strange = [X[0], [X[0, 0], 50.0], [X[0, 0], 50.0]]
    >>> bool(model.novelty_score(strange)[1] > 0), bool(model.novelty_proba(strange)[-1] > 0.5)
    (True, True)
    >>> int(model.novelty_columns(strange)[1].argmax())  # the second column sticks out
    1
    >>> explained, stretches = model.explain(X, 100), model.suggest_labels(X, n=1)
    >>> sorted(model.rank_columns(X, n_frames=20, random_state=0).columns)
    ['column 0', 'column 1']

    Live, with one false alarm in 200 time steps, and in a file with names for the states:

    >>> model = model.with_alarm(model.alarm(1, per=200, hold_off=30))
    >>> stream, batch = model.stream(lag=2), model.stream_batch(4)
    >>> [stream.step(x) is None for x in X[:3]]  # the third step answers the first
    [True, True, False]
    >>> again, others = model.resume(stream.snapshot()), model.resume_batch(batch.snapshot())
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder, "model.drhmm"))
    ...     served = drhmm.load(pathlib.Path(folder, "model.drhmm"))
    >>> served.rename({0: "home", 1: "road", 2: "work"}).classes
    array(['home', 'road', 'work'], dtype='<U4')
    """

    def summary(self) -> str:
        """Summarise the model as text; a notebook shows tables.

        The states with their shares of the training frames and mean stays, typical values of each column in each state,
        transition probabilities as counted, and the choices of cross-validation.
        """
        from .judging.summary import Summary

        return str(Summary(self))

    def _repr_html_(self) -> str:
        from .judging.summary import Summary

        return Summary(self)._repr_html_()

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that identify everything inference depends on."""
        from .files.serialization import fingerprint_of

        return fingerprint_of(self)

    @by_name
    def novelty_score(
        self, X: Data, *, lengths: Rows = None, sequence_id: Rows = None, dt: Rows = None, n_threads: Cores = None
    ) -> Array:
        """Evidence for the unknown at each time step: log w_* in nats, (T,).

        Above 0 where the time step alone favours the unknown; NaN where a time step is missing. With
        ``novelty_evidence="paper"`` it is q_* = 1 - sum_i q_i(y_t), in [0, 1], close to 1 far from all training data.
        Arguments as in `predict_proba`.
        """
        self.check_novelty()
        sequences, threads, evidence = self.read(X, lengths, sequence_id, dt), thread_count(n_threads), self.evidence
        if evidence.novelty is not None:
            score = self._log_evidence(sequences, threads)
        else:
            assert isinstance(evidence, PooledEvidence)
            estimates = evidence.estimates(sequences.samples, sequences.unbroken, threads, sequences.is_single)
            score = np.clip(1 - estimates.sum(axis=1), 0.0, 1.0)
        return sequences.restore(score)

    def novelty_columns(self, X: Data, *, lengths: Rows = None, sequence_id: Rows = None, dt: Rows = None) -> Array:
        """Attribute the `novelty_score` of each time step to the columns, (T, d).

        Gaussians contribute the exact parts of the squared distance, kernels the difference when a column is left out.
        The parts of all samples of a column in the window, and of its running mean, are added up. NaN where a time step
        is missing.
        """
        evidence = self._novelty_evidence
        sequences = self.read(X, lengths, sequence_id, dt)
        return sequences.restore(self._by_column(sequences, evidence, np.arange(len(sequences.samples))))

    def _by_column(self, sequences: Sequences, evidence: NoveltyEvidence, rows: npt.NDArray[np.int64]) -> Array:
        """The parts of the columns at some rows, (n, d); NaN for missing time steps."""
        frames = self.evidence.framing.frames_with_means(sequences.samples, sequences.unbroken)[rows]
        complete = complete_rows(frames)
        parts = np.full((len(rows), self.n_features), np.nan)
        parts[complete] = evidence.by_column(frames[complete], self.n_features)
        return parts

    @by_name
    def novelty_proba(
        self,
        X: Data,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        method: Literal["filter", "smooth"] = "filter",
        lag: int | None = None,
        n_threads: Cores = None,
    ) -> Array:
        """Probability that the state of each time step is unknown, (T,).

        Needs a model with ``novelty=True``. By default given the past and the present, for alarms; with "smooth" given
        the whole sequence. Arguments as in `predict_proba`.
        """
        self.check_novelty()
        sequences, threads = self._checked(X, lengths, sequence_id, dt, method, ("filter", "smooth"), lag, n_threads)
        posteriors = self._all_posteriors(sequences, method, lag, threads)
        return sequences.restore(posteriors[:, -1])

    def explain(
        self,
        X: Data,
        frame: int | tuple[int, int],
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        n_threads: Cores = None,
    ) -> Explanation:
        """Explain the label of a time step by the parts of its log odds.

        `frame` is a row of X; where X is a list, the sequence and the row in it. Other arguments as in `predict_proba`.

        Notes
        -----
        The past is the evidence of earlier time steps, carried by the chain; the future is the change of the log odds
        by later ones. For the time step itself, columns have Shapley values: the change of the log ratio of typical
        frames when the column takes its value, on average over all orders of the columns. They are exact for up to nine
        columns, and from 64 orders for more (fewer beyond 75), where they still sum to the log ratio.
        """
        from .judging.explanation import explain

        sequences = self.read(X, lengths, sequence_id, dt)
        return explain(self, sequences, sequences.place(frame), thread_count(n_threads))

    def rank_columns(
        self,
        X: Data,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        n_frames: int = 200,
        random_state: Any = None,
        n_threads: Cores = None,
    ) -> ColumnRanking:
        """Rank columns by the mean size of their contributions to log odds.

        The ranking says how much a column moves the answers, right or wrong. To see whether a column helps,
        cross-validate without it.

        At most `n_frames` time steps are drawn, with the seed `random_state`. Other arguments as in `predict_proba`.
        """
        from .judging.explanation import rank_columns

        sequences = self.read(X, lengths, sequence_id, dt)
        return rank_columns(self, sequences, n_frames, random_state, thread_count(n_threads))

    def suggest_labels(
        self,
        X: Data,
        y: Any = None,
        *,
        n: int = 10,
        length: int = 10,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        random_state: Any = None,
        n_threads: Cores = None,
    ) -> list[Suggestion]:
        """Suggest stretches to label next: uncertain, and similar to many uncertain ones.

        The most helpful comes first. Label them, fit again, and ask again. Other arguments as in `predict_proba`.

        Parameters
        ----------
        y : array-like of shape (T,), or list of such arrays, optional
            The labels so far, as in `DensityRatioHMM.fit`: labelled rows are not suggested.
        n, length : int
            The most stretches, and the time steps of each. They are at least one length apart.
        random_state : int, RandomState or None
            Seed for drawing the rows to consider, at most 3,000.

        Notes
        -----
        The weight of a row is the entropy of its posterior. Each suggestion is the stretch with rows similar to the
        largest total weight, by a kernel of a quarter of the median distance between frames. Similar rows then lose
        weight.
        """
        from .judging.suggestions import suggest_labels

        sequences = self.read(X, lengths, sequence_id, dt)
        return suggest_labels(self, sequences, y, n, length, random_state, thread_count(n_threads))

    def alarm(
        self,
        false_alarms: float = 1,
        per: float | str = "7d",
        hold_off: float | str | None = None,
        normal: Any = None,
        *,
        step: Step | None = None,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        n_threads: Cores = None,
    ) -> Alarm:
        """Set up an alarm for the unknown with a given rate of false alarms.

        Warns if the normal time steps are fewer than those expected per false alarm.

        Parameters
        ----------
        false_alarms : float
            Expected number of false alarms in the time `per`.
        per : float or str
            Time steps, or a time such as "7d", "12 hours", "10min" or "30s".
        hold_off : float or str, optional
            An alarm ends after this many time steps, or this much time, without evidence above the level. By default
            "10min", or `novelty_duration` time steps if the time of a step is unknown.
        normal : array of shape (T, d), or list of such arrays, optional
            Samples of normal operation that the model did not learn from, with `lengths`, `sequence_id` and `dt` as in
            `predict_proba`. By default the training frames count as normal, each judged without its own block.
        step : float, str, timedelta or numpy.timedelta64, optional
            The time of one step: seconds, a duration, or text such as "10s"; by default that of the training data.
        """
        evidence = self._novelty_evidence
        excursions, source = evidence.excursions, "the training data"
        if normal is not None:
            sequences = self.read(normal, lengths, sequence_id, dt)
            logs = self._log_evidence(sequences, thread_count(n_threads))
            excursions = Excursions.of(logs, sequences.lengths, sequences.dt)
            source = "the normal data"
        elif not (lengths is None and sequence_id is None and dt is None):
            raise ValueError("lengths, sequence_id and dt belong to normal, which is not given")
        if step is None and isinstance(remembered := remembered_step(self), StepSeconds):
            step = remembered
        from .live.alarm_levels import make_alarm

        return make_alarm(self, excursions, false_alarms, per, hold_off, step, source)

    def rename(self, labels: Mapping[Any, Any]) -> Model:
        """Return the model with new labels by old ones, such as ``{0: "calm"}``.

        Other labels stay. Its fingerprint differs, so it cannot resume streams of this model.
        """
        return replace(self, classes=renamed(self.classes, labels))

    def with_alarm(self, alarm: Alarm | None) -> Model:
        """Return the model with an alarm for its streams and its file; None removes it."""
        if alarm is None:
            return replace(self, kept_alarm=None)
        self._check_alarm(alarm)
        return replace(self, kept_alarm=alarm.numbers())

    def _check_alarm(self, alarm: Alarm) -> None:
        if alarm.model is not self and alarm.model.fingerprint != self.fingerprint:
            raise ValueError("the alarm belongs to another model: its levels mean nothing here")

    @property
    def own_alarm(self) -> Alarm | None:
        """The alarm from `with_alarm`."""
        if self.kept_alarm is None:
            return None
        from .live.alarms import Alarm

        return Alarm.from_numbers(self, self.kept_alarm)

    def stream(self, lag: int = 0, *, alarm: Alarm | None = None) -> Stream:
        """Start a live sequence; arguments as in `Stream`."""
        from .live.streams import Stream

        return Stream(self, lag, alarm=alarm)

    def stream_batch(
        self, n: int = 0, lag: int = 0, *, n_threads: Cores = None, alarm: Alarm | None = None
    ) -> StreamBatch:
        """Start n live sequences that are stepped together; arguments as in `StreamBatch`."""
        from .live.streams import StreamBatch

        return StreamBatch(self, n, lag, n_threads=n_threads, alarm=alarm)

    def resume(self, snapshot: bytes) -> Stream:
        """Resume a stream from `Stream.snapshot`, or raise SnapshotError."""
        from .live.streams import resume_stream

        return resume_stream(self, snapshot)

    def resume_batch(self, snapshot: bytes, *, n_threads: Cores = None) -> StreamBatch:
        """Resume a batch of streams from `StreamBatch.snapshot`."""
        from .live.streams import resume_batch

        return resume_batch(self, snapshot, n_threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `drhmm.load`, usually with the ending ``.drhmm``.

        The file holds arrays and JSON (safetensors), never code: a ValueError refuses evidence that only pickle can
        save. The file is complete or absent: the bytes go to a temporary file in the same folder, then to the disk, and
        then the file is renamed.
        """
        from .files.model_file import save

        save(self, path)
