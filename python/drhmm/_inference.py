"""Batch inference on a fitted model; needs numpy and the native core only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from . import _core, recursion
from .chain.durations import Durations, check_stages
from .chain.transitions import Tempering, tempered
from .chain.unknown_state import Novelty, among_known
from .data.checks import Array, Cores, as_startprob, as_transmat, check_choice, check_integer, read_only, thread_count
from .data.columns import names_mismatch, refuse_equal_names, step_as_text
from .data.labels import plain_labels
from .data.sequences import Data, Rows, Sequences, as_sequences, feature_names_of
from .data.user_warnings import warn
from .evidence.from_sources import Evidence
from .evidence.pooled import PooledEvidence
from .evidence.tunings import Tuning
from .evidence.unknown import NoveltyEvidence
from .exceptions import ImpossibleDataError
from .features.frames import complete_rows
from .recursion import native_chain
from .system.calls import by_name

if TYPE_CHECKING:
    from .model import Model

#: Kinds of posteriors: given the whole sequence, given the past and the present, or without the chain.
Method: TypeAlias = Literal["smooth", "filter", "frame"]

#: The same, and the most probable path.
PathMethod: TypeAlias = Literal["smooth", "filter", "frame", "viterbi"]

METHODS = get_args(Method)
PATH_METHODS = get_args(PathMethod)
#: The fewest rows for a warning that no row has evidence; fewer may be a gap in live data.
FEWEST_ROWS_TO_WARN = 50


@dataclass(frozen=True, eq=False)
class Inference:
    """The checked parts of a model, and inference on whole sequences; see `Model`."""

    classes: npt.NDArray[Any]
    transmat: Array
    startprob: Array
    prior: Array
    evidence: Evidence
    novelty: Novelty | None = None
    feature_names: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    stages: Durations | None = None
    tempering: Tempering | None = None
    kept_alarm: tuple[float, ...] | None = None
    other_tunings: Mapping[str, Tuning] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_states, names = len(self.classes), self.feature_names
        classes = self.classes.copy()
        classes.setflags(write=False)
        checked = {
            "classes": classes,
            "transmat": read_only(as_transmat(self.transmat, n_states)),
            "startprob": read_only(as_startprob(self.startprob, n_states)),
            "prior": read_only(as_startprob(self.prior, n_states, "prior")),
            "settings": MappingProxyType(dict(self.settings)),
            "other_tunings": MappingProxyType(dict(self.other_tunings)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.stages is not None:
            if self.tempering is not None:
                raise ValueError("a chain with stages cannot be tempered")
            check_stages(self.stages, self.transmat)
        if names is not None:
            if len(names) != self.n_features:
                raise ValueError(f"there are {len(names)} feature_names for {self.n_features} columns")
            refuse_equal_names(names, "feature_names")

    def __reduce__(self) -> tuple[object, ...]:
        parts = {item.name: getattr(self, item.name) for item in fields(self)}
        return type(self), tuple(
            (parts | {"settings": dict(self.settings), "other_tunings": dict(self.other_tunings)}).values()
        )

    def __repr__(self) -> str:
        source = "" if isinstance(self.evidence, PooledEvidence) else f", {self.evidence}"
        unknown = "" if self.novelty is None else f", {self.novelty}"
        stages = "" if self.stages is None else f", stages={self.stages.sizes.tolist()}"
        time = f", time_step={step_as_text(self.settings)}" if "time_step" in self.settings else ""
        return (
            f"Model(classes={self.classes.tolist()}, n_features={self.n_features}, window={self.window}"
            f"{source}{stages}{unknown}{time})"
        )

    @property
    def n_states(self) -> int:
        """Number of known states."""
        return len(self.classes)

    @property
    def labels(self) -> list[Any]:
        """The label of each state as a plain value of Python."""
        return plain_labels(self.classes)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.evidence.framing.mean)

    @property
    def window(self) -> int:
        """Samples per frame."""
        return self.evidence.framing.window

    def read(self, X: Data, lengths: Rows = None, sequence_id: Rows = None, dt: Rows = None) -> Sequences:
        """Read sequences with the columns of the model."""
        self.check_names(X)
        sequences = as_sequences(X, lengths, sequence_id, dt)
        n_columns = sequences.samples.shape[1]
        if n_columns != self.n_features:
            raise ValueError(f"X has {n_columns} features, but Model is expecting {self.n_features} features as input")
        return sequences

    def check_names(self, X: Data) -> None:
        """Raise ValueError if columns differ in name or order from training."""
        names, expected = feature_names_of(X), self.feature_names
        if names is None or expected is None or names == expected:
            return
        raise ValueError(names_mismatch(names, expected, getattr(getattr(X, "index", None), "names", ())))

    def check_novelty(self) -> None:
        """Raise ValueError if the model has no state for the unknown."""
        if self.novelty is None or not self.evidence.sees_novelty:
            raise ValueError("the model has no state for the unknown: learn it with novelty=True")

    @property
    def durations(self) -> Durations:
        """Durations of states: mean, shape, shortest stay and probabilities of lengths."""
        return Durations.geometric(self.transmat) if self.stages is None else self.stages

    @property
    def counted(self) -> Inference | Tempering:
        """The chain before tempering: its `transmat` and `startprob`."""
        return self.tempering or self

    @property
    def tunings(self) -> dict[str, Tuning]:
        """Scales, temper and prior shift by kind of answer; see `tuned`."""
        temper = 1.0 if self.tempering is None else self.tempering.temper
        return {"smooth": Tuning(self.evidence.scales, temper, self.evidence.prior_shift), **self.other_tunings}

    def tuned(self, kind: str) -> Model:
        """Return the model with the tuning of "filter" or "frame" throughout.

        Filtering, streams and lags of any length use "filter"; smoothing and paths use this model. Without such a
        tuning, return the model itself.
        """
        tuned: Any = self._tuned_models[kind] if kind in self.other_tunings else self
        return tuned  # type: ignore[no-any-return]

    @cached_property
    def _tuned_models(self) -> dict[str, Any]:
        chain, models = self.counted, {}
        for kind, tuning in self.other_tunings.items():
            transmat, startprob, tempering = tempered(chain.transmat, chain.startprob, tuning.temper, self.prior)
            models[kind] = replace(
                self,
                evidence=self.evidence.retuned(tuning),
                transmat=transmat,
                startprob=startprob,
                tempering=tempering,
                stages=self.stages if tuning.shapes else None,
                kept_alarm=None,
                other_tunings={},
            )
        return models

    @cached_property
    def _chains(self) -> tuple[_core.Chain, _core.Chain]:
        """The chain of the known states, and of all states, the unknown last; built once."""
        known = native_chain(self.transmat, self.startprob, self.stages)
        if self.novelty is None:
            return known, known
        return known, native_chain(self.transmat, self.startprob, self.stages, self.novelty, self.prior)

    @property
    def chain(self) -> _core.Chain:
        """The native chain of all states, the unknown last."""
        return self._chains[1]

    @property
    def _novelty_evidence(self) -> NoveltyEvidence:
        """The calibrated evidence for the unknown, or a ValueError."""
        self.check_novelty()
        if self.evidence.novelty is None:
            raise ValueError(
                "the model has no calibrated evidence for the unknown: learn it with novelty_evidence='calibrated'"
            )
        return self.evidence.novelty

    @by_name
    def log_ratios(
        self, X: Data, *, lengths: Rows = None, sequence_id: Rows = None, dt: Rows = None, n_threads: Cores = None
    ) -> Array:
        """Log evidence log w_i(y_t), (T, S), up to a constant per row.

        The log of the density of the observation in state i over that in all states, times the evidence scale; rows of
        NaN where a time step is missing. `drhmm.recursion` accepts it. Arguments as in `predict_proba`.
        """
        sequences = self.read(X, lengths, sequence_id, dt)
        return sequences.restore(self._evidence(sequences, thread_count(n_threads), with_novelty=False))

    def _evidence(self, sequences: Sequences, threads: int, with_novelty: bool) -> Array:
        """Evidence of known states, (T, S), or of all, (T, S + 1) with the unknown last."""
        if with_novelty:
            self.check_novelty()
        log_ratios = self.evidence.log_ratios_with_novelty if with_novelty else self.evidence.log_ratios
        return log_ratios(sequences.samples, sequences.unbroken, threads, sequences.is_single)

    def _recurse(
        self, name: str, evidence: Array, sequences: Sequences, threads: int, *lag: int, on: _core.Chain | None = None
    ) -> Any:
        """Run a recursion on a chain, by default on that with the states of the evidence."""
        chain = on or self._chains[evidence.shape[1] > len(self.classes)]
        if self.tempering is not None and name in ("smooth", "viterbi"):
            evidence = self.tempering.at_ends(evidence, sequences.lengths)
        try:
            return recursion.run(name, chain, evidence, sequences.lengths, sequences.dt, threads, *lag)
        except ImpossibleDataError as error:
            raise ImpossibleDataError(error.sequence, error.frame, sequences.row(error.row)) from None

    def _all_posteriors(
        self, sequences: Sequences, method: str, lag: int | None, threads: int, kind: str | None = None
    ) -> Array:
        """Posteriors of all states, the unknown last; `kind` selects another tuning."""
        tuned = self.tuned(kind or (method if lag is None else "filter"))
        if method == "frame":
            # Every frame is a sequence of its own with the training shares as its start. Without a tuning
            # for frames, the evidence scale, which corrects for correlated neighbours, does not apply.
            evidence = tuned._evidence(sequences, threads, with_novelty=False)
            evidence = evidence / self.evidence.evidence_scale if tuned is self else evidence
            alone = np.ones(len(evidence), dtype=np.int64)
            return recursion.filter(evidence, self.transmat, self.prior, lengths=alone, n_threads=threads)
        if tuned is not self:
            return tuned._all_posteriors(sequences, method, lag, threads)
        evidence = self._evidence(sequences, threads, self.novelty is not None)
        if lag is None:
            posteriors: Array = self._recurse(method, evidence, sequences, threads)
        else:
            lag = min(check_integer(lag, "lag", low=0), len(evidence))
            posteriors = self._recurse("fixed_lag", evidence, sequences, threads, lag)
        return posteriors

    @by_name
    def predict_proba(
        self,
        X: Data,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        method: Method = "smooth",
        lag: int | None = None,
        n_threads: Cores = None,
    ) -> Array:
        """Probability of each state at each time step.

        Parameters
        ----------
        X : array of shape (T, d), or list of such arrays
            Samples. A NaN makes every time step missing whose window contains it. Tables of pandas, polars and Arrow
            need the columns of training.
        lengths : sequence of int, optional
            Lengths of the sequences that X holds one after the other.
        sequence_id : array of shape (T,), optional
            The sequence that each row belongs to; rows of one sequence are in order but need not be adjacent.
        dt : array of int, shape (T,), or list of such arrays, optional
            Steps of the chain since the previous row, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.
        method : {"smooth", "filter", "frame"}
            Given the whole sequence, given the past and the present, or without the chain: from each time step with its
            window and its context.
        lag : int, optional
            With "smooth": given the past, the present and the next `lag` time steps only.
        n_threads : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray of shape (T, S), or list of such arrays
            Columns in the order of the classes; rows sum to 1. If the model has a state for the unknown, these are the
            probabilities given that the state is known; see `novelty_proba`.
        """
        sequences, threads = self._checked(X, lengths, sequence_id, dt, method, METHODS, lag, n_threads)
        return sequences.restore(self._known_posteriors(sequences, method, lag, threads))

    def _known_posteriors(self, sequences: Sequences, method: str, lag: int | None, threads: int) -> Array:
        """Posteriors (T, S) given that the state is known."""
        posteriors = self._all_posteriors(sequences, method, lag, threads)
        return posteriors if self.novelty is None else among_known(posteriors, self.n_states, sequences.row)

    def _checked(
        self,
        X: Data,
        lengths: Any,
        sequence_id: Any,
        dt: Any,
        method: str,
        methods: tuple[str, ...],
        lag: int | None,
        n_threads: Cores,
    ) -> tuple[Sequences, int]:
        self.check_method(method, methods, lag)
        sequences = self.read(X, lengths, sequence_id, dt)
        n_rows = len(sequences.samples)
        if n_rows >= FEWEST_ROWS_TO_WARN and not sequences.has_frame(self.window):
            needed = "" if self.window == 1 else f", or fewer than window={self.window} rows before it"
            warn(f"no row has evidence: every row of X has a NaN{needed}; the states are those of the chain alone")
        return sequences, thread_count(n_threads, n_rows)

    @staticmethod
    def check_method(method: str, methods: tuple[str, ...], lag: int | None) -> None:
        """Raise ValueError for an unknown method, or for a lag without smoothing."""
        check_choice(method, "method", methods)
        if lag is not None and method != "smooth":
            raise ValueError(f"lag={lag!r} goes with method='smooth', not {method!r}")

    @by_name
    def predict(
        self,
        X: Data,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        method: PathMethod = "smooth",
        lag: int | None = None,
        novelty_label: Any = None,
        n_threads: Cores = None,
    ) -> npt.NDArray[Any]:
        """Most probable label of each time step, or the most probable path.

        Parameters
        ----------
        X, lengths, sequence_id, dt, lag, n_threads
            As in `predict_proba`.
        method : {"smooth", "filter", "frame", "viterbi"}
            As in `predict_proba`; or "viterbi", the most probable path of each sequence.
        novelty_label : object, optional
            The label of time steps at which the unknown is more probable than each known state. Without it, every time
            step gets the most probable known label.

        Returns
        -------
        ndarray of shape (T,), or list of such arrays
            Labels of training, and `novelty_label`.
        """
        sequences, threads = self._checked(X, lengths, sequence_id, dt, method, PATH_METHODS, lag, n_threads)
        if novelty_label is not None:
            self.check_novelty()
            if method == "frame":
                raise ValueError("novelty_label goes with method='smooth', 'filter' or 'viterbi', not 'frame'")
        labels = self.classes if novelty_label is None else _with_label(self.classes, novelty_label)
        return sequences.restore(labels[self._states(sequences, method, lag, threads, novelty_label is not None)])

    def _states(
        self, sequences: Sequences, method: str, lag: int | None, threads: int, with_novelty: bool = False
    ) -> npt.NDArray[np.int64]:
        """Indices of the most probable states, or of the most probable path."""
        if method == "viterbi":
            evidence = self._evidence(sequences, threads, with_novelty)
            states: npt.NDArray[np.int64] = self._recurse("viterbi", evidence, sequences, threads)
        else:
            posteriors = self._all_posteriors if with_novelty else self._known_posteriors
            states = posteriors(sequences, method, lag, threads).argmax(axis=1)
        return states

    def _log_evidence(self, sequences: Sequences, threads: int) -> Array:
        """Log w_* of all rows, (T,)."""
        evidence = self._novelty_evidence
        frames = self.evidence.framing.frames_with_means(sequences.samples, sequences.unbroken)
        rows = np.flatnonzero(complete_rows(frames))
        logs = np.full(len(frames), np.nan)
        logs[rows] = evidence.log_evidence(frames[rows], threads)
        return logs

    @by_name
    def gain(
        self, X: Data, *, lengths: Rows = None, sequence_id: Rows = None, dt: Rows = None, n_threads: Cores = None
    ) -> float:
        """Log-likelihood gain per time step over a model without transitions.

        A score without labels, in nats per time step that is not missing. On sequences that the model did not learn
        from, it measures how well states and transitions predict the next time step: 0 is as good as no chain, and
        below 0 is worse. Use it to compare models of the same columns, even with different numbers of states; see
        `drhmm.select_states`. Arguments as in `predict_proba`.

        Notes
        -----
        The mean over time steps of log sum_i p(x_t = i | y_1..y_{t-1}) w_i(y_t) / sum_i p_i w_i(y_t), with the shares p
        of the states in training. The w are the density ratios before the evidence scale, and the chain is the one
        before tempering: scale and temper are tuned for labels and do not belong in a likelihood.
        """
        gains, counts = self.sequence_gains(self.read(X, lengths, sequence_id, dt), thread_count(n_threads))
        if not counts.any():
            raise ValueError("X has no complete frame to score")
        return float(gains.sum() / counts.sum())

    def sequence_gains(self, sequences: Sequences, n_threads: int) -> tuple[Array, npt.NDArray[np.int64]]:
        """The summed gain and the number of present time steps of each sequence."""
        evidence = self._evidence(sequences, n_threads, with_novelty=False) / self.evidence.evidence_scale
        certain = np.isposinf(evidence)
        rows = certain.any(axis=1)
        evidence[rows] = np.where(certain[rows], 0.0, -np.inf)  # only these states are possible
        present = ~np.isnan(evidence[:, 0])
        alone = np.zeros(len(evidence))
        with np.errstate(divide="ignore"):
            alone[present] = np.logaddexp.reduce(evidence[present] + np.log(self.prior), axis=1)
        begins = np.cumsum([0, *sequences.lengths[:-1]])
        counted = None if self.tempering is None else _core.Chain(self.counted.transmat, self.counted.startprob)
        together = self._recurse("log_likelihood", evidence, sequences, n_threads, on=counted)
        return together - np.add.reduceat(alone, begins), np.add.reduceat(present.astype(np.int64), begins)


def _with_label(classes: npt.NDArray[Any], label: Any) -> npt.NDArray[Any]:
    """Append a label to the classes, as objects if their dtype cannot hold it."""
    if label in classes.tolist():
        raise ValueError(f"novelty_label={label!r} is the label of a known class")
    extra = np.array([label])
    if extra.dtype.kind == classes.dtype.kind:
        return np.concatenate([classes, extra])
    mixed = np.empty(len(classes) + 1, dtype=object)
    mixed[:-1], mixed[-1] = classes, label
    return mixed
