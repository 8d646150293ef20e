"""Direct estimation of the ratio of two densities: uLSIF and RuLSIF."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import _core
from ..data.checks import Array, as_samples, check_integer, check_number, check_searched, read_only
from ..features.frames import choose_centers, median_distance, random_state_of
from ..tuning.kernel_search import DEFAULT_RHO, DEFAULT_SIGMA, SIGMA_GRID, pull
from .learner import as_training, check_fitted, check_masses, check_width

#: Values of rho, larger than for posteriors: a ratio has no upper bound, and leave-one-out overrates its peaks.
RHO_GRID = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)


class TwoClass(BaseEstimator):  # type: ignore[misc]
    """Density ratio of two states by uLSIF or RuLSIF.

    uLSIF is by Kanamori et al. (2009), RuLSIF by Yamada et al. (2011).

    Parameters
    ----------
    alpha : float in [0, 1)
        0 estimates p_1 / p_0 (uLSIF). A positive number estimates the relative ratio
        p_1 / (alpha p_1 + (1 - alpha) p_0), which is easier because it is at most 1 / alpha. `log_ratios` turns it back
        into p_1 / p_0.
    n_basis : int
        Number of kernel centres, drawn from the frames of state 1.
    sigma : float or {"cv", "default"}
        Kernel width: a number, by leave-one-out (without sample weights), or the median distance between centres.
    rho : float or {"cv", "default"}
        Regularisation: a number, by leave-one-out, or 0.003.
    floor : float
        Smallest estimate of a density's share, so that one frame cannot exclude a state.
    random_state
        As in `drhmm.DensityRatioHMM`.

    Attributes
    ----------
    theta_ : ndarray of shape (B,)
        (H + rho I)^-1 h with H the mean of phi phi^T under the denominator and h the mean of phi under state 1.
    centers_, sigma_, rho_
        The kernel centres, the kernel width and the regularisation in use.
    """

    def __init__(
        self,
        alpha: float = 0.0,
        n_basis: int = 200,
        sigma: float | str = "cv",
        rho: float | str = "cv",
        floor: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.alpha, self.n_basis, self.sigma, self.rho = alpha, n_basis, sigma, rho
        self.floor, self.random_state = floor, random_state

    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> TwoClass:
        """Learn from frames (N, D) and targets (N, 2)."""
        check_number(self.alpha, "alpha", low=0, high=1, high_open=True)
        check_integer(self.n_basis, "n_basis", low=1)
        check_searched(self.sigma, "sigma")
        check_searched(self.rho, "rho")
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        frames, targets, given = as_training(frames, targets, sample_weight)
        if targets.shape[1] != 2:
            raise ValueError(f"TwoClass is for two states, got {targets.shape[1]}; LeastSquares takes any number")
        weights = targets * given[:, None]
        check_masses(weights.sum(axis=0))
        labels = targets.argmax(axis=1)
        numerator, denominator = (np.ascontiguousarray(frames[labels == k]) for k in (1, 0))
        for state, own in ((1, numerator), (0, denominator)):
            if len(own) < 2:
                raise ValueError(f"state {state} has {len(own)} frames: two are needed to leave one out")
        centers = choose_centers(numerator, self.n_basis, random_state_of(self.random_state))
        sigma, rho = self._settings(numerator, denominator, centers)
        check_width(sigma, centers)
        theta = _solve(frames, weights, centers, self.alpha, sigma, rho)
        self.centers_, self.theta_, self.sigma_, self.rho_ = read_only(centers), read_only(theta), sigma, rho
        return self

    def _settings(self, numerator: Array, denominator: Array, centers: Array) -> tuple[float, float]:
        """Sigma and rho from numbers, defaults or leave-one-out."""
        median = median_distance(centers if len(centers) > 1 else numerator) if isinstance(self.sigma, str) else 1.0
        sigmas = _grid(self.sigma, median * np.array(SIGMA_GRID), median * DEFAULT_SIGMA)
        rhos = _grid(self.rho, np.array(RHO_GRID), DEFAULT_RHO)
        if len(sigmas) == len(rhos) == 1:
            return float(sigmas[0]), float(rhos[0])
        loss = np.empty((len(sigmas), len(rhos)))
        for s, sigma in enumerate(sigmas):
            nu, de = (_core.squared_exponential(frames, centers, sigma) for frames in (numerator, denominator))
            loss[s] = 2 * leave_one_out_scores(nu, de, self.alpha, rhos).sum(axis=0)
        penalty = pull(sigmas, rhos, median if self.sigma == "cv" else None, self.rho == "cv")
        best = np.unravel_index(np.argmin(loss + penalty), loss.shape)
        return float(sigmas[best[0]]), float(rhos[best[1]])

    def relative_ratio(self, frames: Any) -> Array:
        """p_1 / (alpha p_1 + (1 - alpha) p_0), non-negative, shape (n,)."""
        check_fitted(self, "centers_")
        features = _core.squared_exponential(as_samples(frames, "frames"), self.centers_, self.sigma_)
        ratio: Array = np.maximum(features @ self.theta_, 0.0)
        return ratio

    def log_ratios(self, frames: Any) -> Array:
        """Log densities of both states up to a constant, shape (n, 2)."""
        ratio = self.relative_ratio(frames)
        # A frame with a NaN is missing in both columns.
        log_ratios = np.where(np.isnan(ratio), np.nan, 0.0)[:, None].repeat(2, axis=1)
        with np.errstate(divide="ignore"):
            if self.alpha == 0:
                log_ratios[:, 1] = np.log(np.maximum(ratio, self.floor))
            else:
                # alpha r is the probability of state 1 in a mixture that holds a share alpha of it.
                share = np.clip(self.alpha * ratio, self.floor, 1 - self.floor)
                log_ratios[:, 1] = np.log(share / self.alpha)
                log_ratios[:, 0] = np.log((1 - share) / (1 - self.alpha))
        return log_ratios


def _grid(setting: float | str, grid: Array, default: float) -> Array:
    """Values to try for a setting that is a number, "default" or "cv"."""
    if setting == "cv":
        return grid
    return np.array([default if isinstance(setting, str) else setting], dtype=np.float64)


def _solve(frames: Array, weights: Array, centers: Array, alpha: float, sigma: float, rho: float) -> Array:
    """Theta = (alpha H_1 + (1 - alpha) H_0 + rho I)^-1 h_1 with weighted means."""
    gram = np.zeros((len(centers), len(centers)))
    for state, share in ((1, alpha), (0, 1 - alpha)):
        own = np.ascontiguousarray(weights[:, state])
        statistics = _core.GramStatistics(len(centers), 1)
        statistics.add(frames, np.ones((len(frames), 1)), own, centers, sigma)
        gram += share * statistics.gram / own.sum()
        if state == 1:
            moment = statistics.moment / own.sum()
    return _core.RegularizedGram(gram, rho).solve(moment)[:, 0]


def leave_one_out_scores(numerator: Array, denominator: Array, alpha: float, rhos: Array) -> Array:
    """Leave-one-out scores of the ratio of two samples of features, (n, rhos).

    With nu = phi(numerator_i) and de = phi(denominator_i) left out, the matrix to invert is P - a nu nu^T - b de de^T
    with P, a and b the same for every i; two applications of P^-1 and a 2 x 2 system give theta_i at nu and de. In the
    basis of the eigenvectors of P every rho is one more column.
    """
    n_nu, n_de = len(numerator), len(denominator)
    n = min(n_nu, n_de)
    base = alpha * (numerator.T @ numerator) / (n_nu - 1) + (1 - alpha) * (denominator.T @ denominator) / (n_de - 1)
    values, vectors = np.linalg.eigh(base)
    inverse = 1 / (np.maximum(values, 0.0)[:, None] + np.asarray(rhos))
    a, b = alpha / (n_nu - 1), (1 - alpha) / (n_de - 1)
    nu, de = numerator[:n] @ vectors, denominator[:n] @ vectors
    total = (numerator.sum(axis=0) @ vectors)[:, None] * inverse
    k_nn, k_nd, k_dd = (nu * nu) @ inverse, (nu * de) @ inverse, (de * de) @ inverse
    # P^-1 h_i at nu and de, with h_i = (sum of phi - nu) / (n_nu - 1)
    u_n = (nu @ total - k_nn) / (n_nu - 1)
    u_d = (de @ total - k_nd) / (n_nu - 1)
    # Woodbury: values + K C (I - K C)^-1 values = (I - K C)^-1 values, C = diag(a, b)
    determinant = (1 - a * k_nn) * (1 - b * k_dd) - a * b * k_nd**2
    at_nu = ((1 - b * k_dd) * u_n + b * k_nd * u_d) / determinant
    at_de = ((1 - a * k_nn) * u_d + a * k_nd * u_n) / determinant
    scores: Array = alpha / 2 * at_nu**2 + (1 - alpha) / 2 * at_de**2 - at_nu
    return scores
