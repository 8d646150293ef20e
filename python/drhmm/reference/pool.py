"""The members of a pool of density ratios, their limits and their sum, in numpy.

Every member estimates l_i(y) = log p(y | i) - log p(y) from the same frames (N, D) and targets (N, S); ``prior`` is the
share of each class, (S,).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .features import Array


def least_ratio(n_states: int, floor: float = 0.02) -> float:
    """The smallest q_i / p_i of a member: floor S, and no more than one half."""
    return min(floor * n_states, 0.5)


def limited(ratios: Array, least: float) -> Array:
    """l_i = log max(q_i / p_i, least); NaN rows stay NaN, and all-zero rows become 0.

    Kernels underflow far from all centres: a ratio below 1e-290 counts as 0.
    """
    with np.errstate(divide="ignore"):
        log_ratios: Array = np.log(np.maximum(np.where(ratios < 1e-290, 0.0, ratios), least))
    log_ratios[np.isneginf(log_ratios).all(axis=1)] = 0.0
    return log_ratios


def gaussian_moments(frames: Array, targets: Array, weights: Array, variances: Array) -> tuple[Array, Array]:
    """Means (S, D), shrunk covariances (S, D, D) and the variances (D,) of all frames.

    Sigma_i = (scatter_i + (D + 1) u Sigma_pooled) / (n_i + (D + 1) u) + .01 diag(variances), u the mean weight.
    """
    n_columns = frames.shape[1]
    mass = weights[:, None] * targets
    unit = weights.sum() / len(weights)
    totals = mass.sum(axis=0)
    means = mass.T @ frames / np.maximum(totals, 1e-300)[:, None]
    scatter = np.array([((frames - mean).T * own) @ (frames - mean) for mean, own in zip(means, mass.T, strict=True)])
    pooled = scatter.sum(axis=0) / totals.sum()
    added = (n_columns + 1) * unit
    covariances = (scatter + added * pooled) / (totals + added)[:, None, None]
    return means, covariances + 0.01 * np.diag(variances)


def _log_normals(frames: Array, means: Array, covariances: Array) -> Array:
    """Log N(y; mu_i, Sigma_i), (n, S), up to the constant (D / 2) log 2 pi."""
    logs = np.empty((len(frames), len(means)))
    for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        centered = frames - mean
        distance = np.einsum("nd,nd->n", centered, np.linalg.solve(covariance, centered.T).T)
        logs[:, i] = -(distance + np.linalg.slogdet(covariance)[1]) / 2
    return logs


def gaussian_ratios(frames: Array, means: Array, covariances: Array, prior: Array) -> Array:
    """q_i / p_i = N(y; mu_i, Sigma_i) / sum_j p_j N(y; mu_j, Sigma_j), (n, S)."""
    logs = _log_normals(frames, means, covariances)
    logs -= logs.max(axis=1, keepdims=True)
    densities = np.exp(logs)
    ratios: Array = densities / (densities @ prior)[:, None]
    return ratios


def decile_edges(frames: Array) -> list[Array]:
    """The different deciles of each column."""
    return [np.unique(np.quantile(column, np.arange(1, 10) / 10)) for column in frames.T]


def additive_features(frames: Array, low: Array, high: Array, units: Array, edges: Sequence[Array]) -> Array:
    """Features 1, clipped values in units (D,), and indicators of bins."""
    indicators = [
        np.eye(len(own) + 1)[np.searchsorted(own, column, side="left")]
        for own, column in zip(edges, frames.T, strict=True)
    ]
    return np.hstack([np.ones((len(frames), 1)), np.clip(frames, low, high) / units, *indicators])


def additive_theta(features: Array, targets: Array, weights: Array, ridge: float = 10.0) -> Array:
    """Least squares with a ridge, relative to the mean weight, except the intercept."""
    penalty = ridge * weights.sum() / len(weights) * np.eye(features.shape[1])
    penalty[0, 0] = 0.0
    weighted = features * weights[:, None]
    theta: Array = np.linalg.solve(weighted.T @ features + penalty, weighted.T @ targets)
    return theta


def prior_shift(prior: Array) -> Array:
    """Log p_i - mean_j log p_j."""
    logs = np.log(prior)
    shift: Array = logs - logs.mean()
    return shift


def pooled(members: Sequence[Array], scales: Sequence[float], beta: float, prior: Array) -> Array:
    """Log w_i(y) = sum_m kappa_m l_i^(m) + (sum_m kappa_m) beta (log p_i - mean)."""
    total: Array = sum(scale * member for scale, member in zip(scales, members, strict=True)) + (
        sum(scales) * beta * prior_shift(prior)
    )
    return total
