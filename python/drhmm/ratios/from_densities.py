"""Evidence from one density per state."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import pairwise_distances_chunked
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from sklearn.neighbors import KernelDensity

from ..data.checks import Array, refuse_masked, without_evidence
from .learner import as_training, check_fitted, hard_or_repeated


class FromDensities(BaseEstimator):  # type: ignore[misc]
    """Density ratios from one density estimator per state: log w_i(y) = log p(y | i).

    Parameters
    ----------
    density : object with `fit` and `score_samples`, or {"kde", "gmm"}
        Cloned and fitted once per state. "kde" is scikit-learn's KernelDensity; cross-validation chooses the bandwidth.
        "gmm" is a GaussianMixture; BIC chooses the number of components. The model is then a KDE-HMM or a GMM-HMM.

    Examples
    --------
    >>> import drhmm
    >>> from drhmm.ratios import FromDensities
    >>> kde_hmm = drhmm.DensityRatioHMM(ratio=FromDensities("kde"))
    >>> gmm_hmm = drhmm.DensityRatioHMM(ratio=FromDensities("gmm"))
    >>> frames, y = drhmm.datasets.blobs(60, random_state=0)
    >>> targets = (y[:, None] == [0, 1, 2]).astype(float)  # one-hot
    >>> FromDensities("gmm").fit(frames, targets).log_ratios(frames).shape
    (60, 3)
    """

    def __init__(self, density: Any) -> None:
        self.density = density

    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> FromDensities:
        """Fit one clone of the density to the frames of each state."""
        frames, targets, given = as_training(frames, targets, sample_weight)
        weights = None if sample_weight is None else given
        density = self._prototype()
        rows, classes, row_weights = hard_or_repeated(frames, targets, weights, density, "density=")
        densities = []
        for state in range(targets.shape[1]):
            own = classes == state
            if not own.any():
                raise ValueError(f"state {state} has no frame to fit a density to")
            more = {} if row_weights is None else {"sample_weight": row_weights[own]}
            densities.append(clone(density))
            densities[-1].fit(rows[own], **more)
        self.densities_ = densities
        return self

    def _prototype(self) -> Any:
        if isinstance(self.density, str):
            if self.density not in ("kde", "gmm"):
                raise ValueError(f"density must be 'kde', 'gmm' or an estimator, got {self.density!r}")
            return _BandwidthByCrossValidation() if self.density == "kde" else _ComponentsByBIC()
        for method in ("fit", "score_samples"):
            if not callable(getattr(self.density, method, None)):
                raise TypeError(f"density must have fit and score_samples; {self.density!r} has no {method}")
        return self.density

    def log_ratios(self, frames: Any) -> Array:
        """Return log densities, shape (n, S)."""
        check_fitted(self, "densities_")
        refuse_masked(frames, "frames")
        return without_evidence(np.stack([density.score_samples(frames) for density in self.densities_], axis=1))


class _BandwidthByCrossValidation(BaseEstimator):  # type: ignore[misc]
    """Gaussian kernel density with the bandwidth of the best held-out likelihood."""

    BANDWIDTHS = tuple(np.logspace(-1.3, 0.5, 10))

    def fit(self, frames: Array) -> _BandwidthByCrossValidation:
        scale = float(np.mean(frames.std(axis=0))) or 1.0
        widths = scale * np.array(self.BANDWIDTHS)
        best = scale if len(frames) < 5 else widths[np.argmax(held_out_log_likelihoods(frames, widths))]
        self.density_ = KernelDensity(bandwidth=float(best)).fit(frames)
        return self

    def score_samples(self, frames: Array) -> Array:
        log_density: Array = self.density_.score_samples(frames)
        return log_density


def held_out_log_likelihoods(frames: Array, widths: Array) -> Array:
    """Held-out log likelihood of all frames for each bandwidth.

    Each frame is scored by the other four fifths: log p(y) = log mean_k exp(-|y - y_k|^2 / (2 h^2)) - d log(h sqrt(2
    pi)). All bandwidths share one computation of distances.
    """
    scales = 1 / (2 * widths**2)
    log_likelihoods: Array = -len(frames) * frames.shape[1] * np.log(widths * np.sqrt(2 * np.pi))
    for training, held_out in KFold(5).split(frames):
        for squared in pairwise_distances_chunked(frames[held_out], frames[training], metric="sqeuclidean"):
            nearest = squared.min(axis=1, keepdims=True)
            squared -= nearest
            for k, scale in enumerate(scales):
                log_means = np.log(np.mean(np.exp(-scale * squared), axis=1))
                log_likelihoods[k] += np.sum(log_means - scale * nearest[:, 0])
    return log_likelihoods


class _ComponentsByBIC(BaseEstimator):  # type: ignore[misc]
    """Gaussian mixture with full covariances and the best BIC.

    A single frame counts twice, as a covariance needs two; regularisation sets the width of its Gaussian.
    """

    MOST = 8

    def fit(self, frames: Array) -> _ComponentsByBIC:
        if len(frames) == 1:
            frames = np.repeat(frames, 2, axis=0)
        most = max(1, min(self.MOST, len(frames) // (2 * (frames.shape[1] + 1))))
        candidates = [
            GaussianMixture(n, reg_covar=1e-4, random_state=0, max_iter=200).fit(frames) for n in range(1, most + 1)
        ]
        self.density_ = min(candidates, key=lambda mixture: float(mixture.bic(frames)))
        return self

    def score_samples(self, frames: Array) -> Array:
        log_density: Array = self.density_.score_samples(frames)
        return log_density
