"""Batch inference of the estimator, through the model it learned."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ._labels import UNKNOWN, as_labels, encode
from ._sequences import as_sequences, is_list_of_sequences
from ._tables import feature_names_of
from ._validation import as_weights
from .alarms import Alarm
from .model import Model
from .streaming import Stream


class BatchInference:
    """What an estimator with a fitted ``model_`` can be asked; the answers are the model's."""

    n_threads: int | None
    unknown: Any
    model_: Model

    def _fitted_model(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def _model_for(self, X: Any) -> Model:
        """The fitted model, after scikit-learn has compared the names of the columns of X with those of training."""
        model = self._fitted_model()
        feature_names_of(X)  # a ValueError where scikit-learn ignores names, or raises a TypeError
        if not is_list_of_sequences(X):
            validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        return model

    def predict(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        dt: Any = None,
        method: str = "smooth",
        lag: int | None = None,
        novelty_label: Any = None,
    ) -> Any:
        """Most probable label of each frame; see `Model.predict`."""
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

    def predict_proba(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        dt: Any = None,
        method: str = "smooth",
        lag: int | None = None,
    ) -> Any:
        """Probability of each state at each frame; see `Model.predict_proba`."""
        return self._model_for(X).predict_proba(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, method=method, lag=lag, n_threads=self.n_threads
        )

    def log_ratios(self, X: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None) -> Any:
        """Evidence of each frame; see `Model.log_ratios`."""
        return self._model_for(X).log_ratios(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads
        )

    def novelty_score(self, X: Any, *, lengths: Any = None, sequence_id: Any = None, dt: Any = None) -> Any:
        """How little the known states account for each frame; see `Model.novelty_score`."""
        return self._model_for(X).novelty_score(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads
        )

    def novelty_proba(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        dt: Any = None,
        method: str = "filter",
        lag: int | None = None,
    ) -> Any:
        """Probability that the state is none of the known ones; see `Model.novelty_proba`."""
        return self._model_for(X).novelty_proba(
            X, lengths=lengths, sequence_id=sequence_id, dt=dt, method=method, lag=lag, n_threads=self.n_threads
        )

    def stream(self, lag: int = 0, *, alarm: Alarm | None = None) -> Stream:
        """A live sequence on the model; see `Model.stream`."""
        return self._fitted_model().stream(lag, alarm=alarm)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `drhmm.load`; see `Model.save`."""
        self._fitted_model().save(path)

    def score(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        dt: Any = None,
        sample_weight: Any = None,
        method: str = "smooth",
    ) -> float:
        """Share of frames whose label `predict` gets right, weighted if weights are given.

        Frames of unknown label are left out.
        """
        model = self._model_for(X)  # read once: another thread may be fitting
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
