"""Evidence from the probabilities of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..data.checks import Array, check_choice, check_number, refuse_masked, without_evidence
from .learner import as_training, check_fitted, class_shares, hard_or_repeated


class FromClassifier(BaseEstimator):  # type: ignore[misc]
    """Density ratios from any scikit-learn classifier with `predict_proba`.

    w_i(y) = p(i | y) / p(i).

    Parameters
    ----------
    classifier : scikit-learn classifier
        The source fits a clone of it.
    prior : {"training", "uniform"}
        The class shares that the classifier's probabilities assume: those of the training frames, or equal ones (for
        a classifier with ``class_weight="balanced"``).
    floor : float
        Smallest probability, for balanced classes. It keeps one overconfident frame from excluding a state.
    """

    def __init__(self, classifier: Any, *, prior: str = "training", floor: float = 0.01) -> None:
        self.classifier, self.prior, self.floor = classifier, prior, floor

    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> FromClassifier:
        """Fit a clone of the classifier.

        Soft targets become weighted copies of each frame, or the likeliest class if fit has no `sample_weight`.
        """
        check_choice(self.prior, "prior", ("training", "uniform"))
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        if not callable(getattr(self.classifier, "predict_proba", None)):
            raise TypeError(f"classifier must have predict_proba; {self.classifier!r} has none")
        frames, targets, weights = as_training(frames, targets, sample_weight)
        rows, classes, more = hard_or_repeated(
            self.classifier.fit, repr(self.classifier), frames, targets, weights, sample_weight is not None
        )
        self.classifier_ = clone(self.classifier)
        self.classifier_.fit(rows, classes, **more)
        self.n_states_ = targets.shape[1]
        shares = class_shares(targets, weights)
        self.prior_ = shares if self.prior == "training" else np.full(self.n_states_, 1 / self.n_states_)
        return self

    def log_ratios(self, frames: Any) -> Array:
        """Return log p(i | y) / p(i), shape (n, S)."""
        check_fitted(self, "classifier_")
        refuse_masked(frames, "frames")
        probabilities = np.zeros((len(frames), self.n_states_))
        probabilities[:, self.classifier_.classes_] = self.classifier_.predict_proba(frames)
        # A class without frames has no prior to divide by; its probability is 0, too.
        prior = np.where(self.prior_ > 0, self.prior_, 1.0)
        with np.errstate(divide="ignore"):
            log_ratios: Array = np.log(np.maximum(probabilities / prior, self.floor * self.n_states_))
        return without_evidence(log_ratios)
