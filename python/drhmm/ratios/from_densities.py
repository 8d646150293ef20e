"""Evidence from one density per state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from ..data.checks import Array, refuse_masked, without_evidence
from ..tuning.folds import N_FOLDS
from .learner import as_training, check_fitted, hard_or_repeated

#: Candidate bandwidths of kernel densities in mean standard deviations, and the most components of a mixture.
BANDWIDTHS = np.logspace(-1.3, 0.5, 10)
MOST_COMPONENTS = 8


class FromDensities(BaseEstimator):  # type: ignore[misc]
    """Density ratios from one density estimator per state: log w_i(y) = log p(y | i).

    Parameters
    ----------
    density : object with `fit` and `score_samples`, or {"kde", "gmm"}
        Cloned and fitted once per state. "kde" is scikit-learn's KernelDensity; cross-validation chooses the bandwidth.
        "gmm" is a GaussianMixture; BIC chooses the number of components. The model is then a KDE-HMM or a GMM-HMM.
    """

    def __init__(self, density: Any) -> None:
        self.density = density

    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> FromDensities:
        """Fit one clone of the density to the frames of each state."""
        frames, targets, weights = as_training(frames, targets, sample_weight)
        by_name = _BY_NAME.get(self.density) if isinstance(self.density, str) else None
        if by_name is None and not all(
            callable(getattr(self.density, name, None)) for name in ("fit", "score_samples")
        ):
            raise TypeError(
                f"density must be 'kde', 'gmm' or an object with fit and score_samples, got {self.density!r}"
            )
        rows, classes, more = hard_or_repeated(
            by_name or self.density.fit, repr(self.density), frames, targets, weights, sample_weight is not None
        )
        self.densities_ = []
        for state in range(targets.shape[1]):
            own = classes == state
            if not own.any():
                raise ValueError(f"state {state} has no frame to fit a density to")
            density = clone(self.density) if by_name is None else by_name(rows[own])
            if by_name is None:
                density.fit(rows[own], **{name: values[own] for name, values in more.items()})
            self.densities_.append(density)
        return self

    def log_ratios(self, frames: Any) -> Array:
        """Return log densities, shape (n, S)."""
        check_fitted(self, "densities_")
        refuse_masked(frames, "frames")
        return without_evidence(np.stack([density.score_samples(frames) for density in self.densities_], axis=1))


def _kernel_density(frames: Array) -> KernelDensity:
    """Gaussian kernel density with the bandwidth of the best held-out likelihood."""
    scale = float(np.mean(frames.std(axis=0))) or 1.0
    if len(frames) < N_FOLDS:
        return KernelDensity(bandwidth=scale).fit(frames)
    search = GridSearchCV(KernelDensity(), {"bandwidth": scale * BANDWIDTHS}, cv=KFold(N_FOLDS))
    return search.fit(frames).best_estimator_


def _gaussian_mixture(frames: Array) -> GaussianMixture:
    """Gaussian mixture with full covariances and the best BIC.

    A single frame counts twice, as a covariance needs two; regularisation sets the width of its Gaussian.
    """
    if len(frames) == 1:
        frames = np.repeat(frames, 2, axis=0)
    most = max(1, min(MOST_COMPONENTS, len(frames) // (2 * (frames.shape[1] + 1))))
    candidates = [
        GaussianMixture(n, reg_covar=1e-4, random_state=0, max_iter=200).fit(frames) for n in range(1, most + 1)
    ]
    return min(candidates, key=lambda mixture: float(mixture.bic(frames)))


_BY_NAME: dict[str, Callable[[Array], Any]] = {"kde": _kernel_density, "gmm": _gaussian_mixture}
