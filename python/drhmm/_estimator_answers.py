"""Methods of a fitted estimator that call its model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.checks import as_weights
from .data.columns import remembered_columns
from .data.labels import UNKNOWN, as_labels, encode
from .data.sequences import Data, Rows, feature_names_of, is_list_of_sequences
from .model import PATH_METHODS, Model, PathMethod
from .system.calls import by_name

P = ParamSpec("P")
R = TypeVar("R")


def _twin(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make an estimator method from a model method; `n_threads` becomes a setting."""
    signature = inspect.signature(method)
    has_samples, has_threads = ("X" in signature.parameters), ("n_threads" in signature.parameters)

    @wraps(method)
    def answer(self: FittedAnswers, /, *arguments: P.args, **named: P.kwargs) -> R:
        X: Any = arguments[0] if arguments else named.get("X")
        model = self._model_for(X) if has_samples and X is not None else self._fitted_model()
        own: dict[str, Any] = {"n_threads": self.n_threads} if has_threads else {}
        return method(model, *arguments, **named, **own)

    own = [one for name, one in signature.parameters.items() if name != "n_threads"]
    answer.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    answer.__doc__ = f"{(method.__doc__ or '').splitlines()[0].rstrip('.')}; see `Model.{method.__name__}`."
    return answer


class FittedAnswers:
    """Methods that the fitted ``model_`` of an estimator answers."""

    n_threads: int | None
    unknown: Any
    model_: Model

    def _fitted_model(self) -> Model:
        try:
            return self.model_
        except AttributeError:
            check_is_fitted(self, "model_")
            raise

    def _model_for(self, X: Data) -> Model:
        """Return the fitted model after scikit-learn has checked the feature names of X."""
        model = self._fitted_model()
        names = feature_names_of(X)  # a ValueError where scikit-learn ignores names, or raises a TypeError
        if names == model.feature_names and getattr(X, "shape", ())[1:] == (model.n_features,):
            return model
        if names != model.feature_names and remembered_columns(model):
            model.check_names(X)  # says more than scikit-learn does
        if not is_list_of_sequences(X):
            validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        return model

    predict = _twin(Model.predict)
    predict_proba = _twin(Model.predict_proba)
    log_ratios = _twin(Model.log_ratios)
    novelty_score = _twin(Model.novelty_score)
    novelty_proba = _twin(Model.novelty_proba)
    explain = _twin(Model.explain)
    rank_columns = _twin(Model.rank_columns)
    suggest_labels = _twin(Model.suggest_labels)
    alarm = _twin(Model.alarm)
    stream = _twin(Model.stream)
    stream_batch = _twin(Model.stream_batch)
    resume = _twin(Model.resume)
    resume_batch = _twin(Model.resume_batch)
    summary = _twin(Model.summary)
    save = _twin(Model.save)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = not name.startswith("_") and (hasattr(Model, name) or name in Model.__dataclass_fields__)
            hint = f": the model has it, as in estimator.model_.{name}" if known else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    @by_name
    def score(
        self,
        X: Data,
        y: Rows = None,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        dt: Rows = None,
        sample_weight: Rows = None,
        method: PathMethod = "smooth",
    ) -> float:
        """Accuracy with labels; mean gain of a time step without.

        Parameters
        ----------
        X, lengths, sequence_id, dt, method
            As in `predict`.
        y : array of shape (T,), or list of such arrays, optional
            True labels; time steps with an unknown label are left out. Without y, even if the estimator was fitted with
            labels, the score is `Model.gain`, in nats. Score sequences that were not learned from.
        sample_weight : array of shape (T,), or list of such arrays, optional
            Weight of each time step, with labels.
        """
        model = self._model_for(X)  # read once: another thread may be fitting
        if y is None:
            if sample_weight is not None:
                raise ValueError("sample_weight goes with y: without labels, score is the mean gain of a time step")
            return model.gain(X, lengths=lengths, sequence_id=sequence_id, dt=dt, n_threads=self.n_threads)
        sequences, threads = model._checked(X, lengths, sequence_id, dt, method, PATH_METHODS, None, self.n_threads)
        truth = encode(as_labels(y, sequences), model.classes, sequences, allow_unknown=True, unknown=self.unknown)
        known = truth != UNKNOWN
        if not known.any():
            raise ValueError("y has no known label to compare with")
        weights = None if sample_weight is None else as_weights(sample_weight, sequences)[known]
        if weights is not None and not weights.any():
            raise ValueError("y has no known label of positive sample_weight to compare with")
        right = truth == model._states(sequences, method, None, threads)
        return float(np.average(right[known], weights=weights))
