"""Batch inference of the estimator, through the model it learned."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.checks import Array, as_weights
from .data.columns import remembered_columns
from .data.hints import by_name
from .data.labels import UNKNOWN, as_labels, encode
from .data.sequences import as_sequences, is_list_of_sequences
from .data.tables import feature_names_of
from .data.times import Step
from .live.alarms import Alarm
from .live.streams import Stream
from .model import Method, Model, PathMethod

if TYPE_CHECKING:
    from .judging.explanation import ColumnRanking, Explanation


class BatchInference:
    """What an estimator with a fitted ``model_`` can be asked; the answers are the model's."""

    n_threads: int | None
    unknown: Any
    model_: Model

    def _fitted_model(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def _model_for(self, X: npt.ArrayLike) -> Model:
        """The fitted model, after scikit-learn has compared the names of the columns of X with those of training."""
        model = self._fitted_model()
        if remembered_columns(model):
            model.check_names(X)  # says more than scikit-learn does
        feature_names_of(X)  # a ValueError where scikit-learn ignores names, or raises a TypeError
        if not is_list_of_sequences(X):
            validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        return model

    @by_name
    def predict(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
        method: PathMethod = "smooth",
        lag: int | None = None,
        novelty_label: Any = None,
    ) -> npt.NDArray[Any]:
        """Most probable label of each time step, or with ``method="viterbi"`` the most probable path.

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
            Steps of the chain since the row before, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.
        method : {"smooth", "filter", "frame", "viterbi"}
            Most probable labels given the whole sequence, given the past and the present, or given each time step
            alone; or "viterbi", the most probable path of each sequence.
        lag : int, optional
            With "smooth": given the past, the present and the next `lag` time steps only.
        novelty_label : object, optional
            The label of time steps at which the unknown is more probable than each known state. Without it, every time
            step gets the most probable known label.

        Returns
        -------
        ndarray of shape (T,), or list of such arrays
            Labels of training, and `novelty_label`.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> hmm.predict(X[:5]).shape
        (5,)
        >>> path = hmm.predict(X, method="viterbi", lengths=[100, 200])  # two sequences
        """
        return self._model_for(X).predict(
            X,
            lengths=lengths,
            sequence_id=sequence_id,
            dt=dt,
            method=method,
            lag=lag,
            novelty_label=novelty_label,
            n_threads=self.n_threads,
        )

    @by_name
    def predict_proba(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
        method: Method = "smooth",
        lag: int | None = None,
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
            Steps of the chain since the row before, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.
        method : {"smooth", "filter", "frame"}
            Given the whole sequence, given the past and the present, or given each time step alone.
        lag : int, optional
            With "smooth": given the past, the present and the next `lag` time steps only.

        Returns
        -------
        ndarray of shape (T, S), or list of such arrays
            Columns in the order of the classes; rows sum to 1. If the model has a state for the unknown, these are the
            probabilities given that the state is a known one; see `novelty_proba` for the other.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> afterwards, live = hmm.predict_proba(X), hmm.predict_proba(X, method="filter")
        >>> afterwards.shape
        (300, 3)
        """
        return self._model_for(X).predict_proba(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, method=method, lag=lag, n_threads=self.n_threads
        )

    @by_name
    def log_ratios(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
    ) -> Array:
        """Evidence of each time step for each state, as logarithms, up to a constant per row.

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
            Steps of the chain since the row before, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.

        Returns
        -------
        ndarray of shape (T, S), or list of such arrays
            log w_i(y_t), the log density of the observation in state i over that of all of them, to the power of the
            evidence scale; rows of NaN where a time step is missing. `drhmm.recursion` takes it as it is.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> hmm.log_ratios(X).shape
        (300, 3)
        """
        return self._model_for(X).log_ratios(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads
        )

    @by_name
    def novelty_score(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
    ) -> Array:
        """How little the known states account for each time step: log w_*, the evidence for the unknown in nats, (T,).

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
            Steps of the chain since the row before, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.

        Returns
        -------
        ndarray of shape (T,), or list of such arrays
            Above 0 where the time step alone speaks for the unknown; NaN where a time step is missing. With
            ``novelty_evidence="paper"`` it is q_* = 1 - sum_i q_i(y_t), in [0, 1], close to 1 far from all training
            data.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(novelty=True, random_state=0).fit(X, y)
        >>> bool(hmm.novelty_score([[50.0, 50.0]])[0] > 0)  # far from everything known
        True
        """
        return self._model_for(X).novelty_score(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads
        )

    @by_name
    def novelty_proba(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
        method: Literal["filter", "smooth"] = "filter",
        lag: int | None = None,
    ) -> Array:
        """Probability that the state at each time step is none of the known ones.

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
            Steps of the chain since the row before, if rows are not evenly spaced: k if k - 1 rows are missing. The
            first row of a sequence counts from its start, where it is 1. No window reaches across a gap.
        method : {"filter", "smooth"}
            Given the past and the present, for alarms, or given the whole sequence.
        lag : int, optional
            With "smooth": given the past, the present and the next `lag` time steps only.

        Returns
        -------
        ndarray of shape (T,), or list of such arrays
            Of a model that was learned with ``novelty=True``.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(novelty=True, random_state=0).fit(X, y)
        >>> bool(hmm.novelty_proba([X[0], [50.0, 50.0], [50.0, 50.0]])[-1] > 0.5)
        True
        """
        return self._model_for(X).novelty_proba(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, method=method, lag=lag, n_threads=self.n_threads
        )

    def explain(
        self,
        X: npt.ArrayLike,
        frame: int | tuple[int, int],
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
    ) -> Explanation:
        """Why a time step has its label; see `Model.explain`.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> explained = hmm.explain(X, 100)
        >>> bool(explained.label == hmm.predict(X)[100])
        True
        """
        return self._model_for(X).explain(
            X, frame, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads
        )

    def rank_columns(
        self,
        X: npt.ArrayLike,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
        n_frames: int = 200,
        random_state: Any = None,
    ) -> ColumnRanking:
        """How much each column matters; see `Model.rank_columns`.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> hmm.rank_columns(X, n_frames=20, random_state=0).n_frames
        20
        """
        return self._model_for(X).rank_columns(
            X,
            lengths=lengths,
            sequence_id=sequence_id,
            dt=dt,
            n_frames=n_frames,
            random_state=random_state,
            n_threads=self.n_threads,
        )

    def stream(self, lag: int = 0, *, alarm: Alarm | None = None) -> Stream:
        """A live sequence on the model; see `Model.stream`.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> stream = hmm.stream()
        >>> stream.step(X[0]).shape
        (3,)
        """
        return self._fitted_model().stream(lag, alarm=alarm)

    def alarm(
        self,
        false_alarms: float = 1,
        per: float | str = "7d",
        hold_off: float | str | None = None,
        normal: Any = None,
        *,
        step: Step | None = None,
        lengths: Any = None,
        sequence_id: Any = None,
        dt: Any = None,
    ) -> Alarm:
        """An alarm for the unknown, with so many false ones in so much time; see `Model.alarm`.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import sensors
        >>> normal, _ = sensors(2000, faults=(), random_state=0)
        >>> hmm = DensityRatioHMM(1, novelty=True, random_state=0).fit(normal)
        >>> hmm.alarm(1, per=1000, hold_off=30).hold_off
        30
        """
        return self._fitted_model().alarm(
            false_alarms,
            per,
            hold_off,
            normal,
            step=step,
            lengths=lengths,
            sequence_id=sequence_id,
            dt=dt,
            n_threads=self.n_threads,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `drhmm.load`; see `Model.save`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import drhmm
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hmm.save(Path(folder) / "model.drhmm")
        ...     served = drhmm.load(Path(folder) / "model.drhmm")
        >>> bool((served.predict(X) == hmm.predict(X)).all())
        True
        """
        self._fitted_model().save(path)

    @by_name
    def score(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence_id: npt.ArrayLike | None = None,
        dt: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        method: PathMethod = "smooth",
    ) -> float:
        """With labels, the share of time steps that `predict` gets right; without, the mean gain of a time step.

        Parameters
        ----------
        X : array of shape (T, d), or list of such arrays
            Samples.
        y : array of shape (T,), or list of such arrays, optional
            True labels; time steps of unknown label are left out. Without y, also of an estimator that was fitted with
            labels, the answer is not an accuracy but `Model.gain`: the log likelihood of a time step over that of
            independent time steps, in nats. Score sequences that were not learned from; more is better, and 0 is as
            good as no chain at all.
        lengths, sequence_id, dt
            As in `predict_proba`.
        sample_weight : array of shape (T,), or list of such arrays, optional
            Weight of each time step, with labels.
        method : {"smooth", "filter", "frame", "viterbi"}
            As in `predict`, with labels.

        Returns
        -------
        float
            Accuracy from 0 to 1, or a gain in nats per time step.

        Examples
        --------
        >>> from drhmm import DensityRatioHMM
        >>> from drhmm.datasets import blobs
        >>> X, y = blobs(300, random_state=0)
        >>> hmm = DensityRatioHMM(random_state=0).fit(X, y)
        >>> bool(hmm.score(X, y) > 0.8)  # accuracy
        True
        >>> bool(hmm.score(X) > 0)  # gain
        True
        """
        model = self._model_for(X)  # read once: another thread may be fitting
        if y is None:
            if sample_weight is not None:
                raise ValueError("sample_weight goes with y: without labels, score is the mean gain of a time step")
            return model.gain(X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads)
        predicted = model.predict(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, method=method, n_threads=self.n_threads
        )
        sequences = as_sequences(X, lengths, sequence_id)
        truth = encode(as_labels(y, sequences), model.classes, sequences, allow_unknown=True, unknown=self.unknown)
        guess = encode(as_labels(predicted, sequences), model.classes, sequences)
        known = truth != UNKNOWN
        if not known.any():
            raise ValueError("y has no known label to compare with")
        weights = None if sample_weight is None else as_weights(sample_weight, sequences)[known]
        if weights is not None and not weights.any():
            raise ValueError("y has no known label of positive sample_weight to compare with")
        return float(np.average(truth[known] == guess[known], weights=weights))
