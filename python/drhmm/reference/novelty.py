"""Evidence for the unknown in numpy: scores, p-values, e-values and alarms.

A score measures how badly the known states explain a frame. Its p-value is the share of normal frames
with a score at least as large, and an e-value is evidence against "normal" whose mean over normal frames is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .features import Array
from .pool import _log_normals


def running_means(z: Array, span: int) -> Array:
    """Mean of the last `span` rows of a sequence (T, d); NaN if one is missing."""
    means = np.full(z.shape, np.nan)
    for t in range(span - 1, len(z)):
        rows = z[t - span + 1 : t + 1]
        means[t] = np.nan if np.isnan(rows).any() else rows.mean(axis=0)
    return means


def gaussian_score(frames: Array, means: Array, covariances: Array, shares: Array) -> Array:
    """-log sum_i p_i N(y; mu_i, Sigma_i), (n,), up to the constant (D / 2) log 2 pi."""
    logs = _log_normals(frames, means, covariances) + np.log(shares)
    best = logs.max(axis=1)
    score: Array = -best - np.log(np.exp(logs - best[:, None]).sum(axis=1))
    return score


def kernel_score(frames: Array, origin: Array, whitening: Array, centers: Array, weights: Array, width: float) -> Array:
    """Minus the log density of kernels on whitened frames, at least 1e-300, (n,).

    The density is sum_b weight_b exp(-d_b^2 / (2 width^2)), with the distance d_b of W (y - origin) from centre b.
    """
    white = (frames - origin) @ whitening.T
    distances = ((white[:, None, :] - centers) ** 2).sum(axis=2)
    density = np.exp(-distances / (2 * width**2)) @ weights
    score: Array = -np.log(np.maximum(density, 1e-300))
    return score


def surprise(scores: Array, knots: Array, pvalues: Array, shape: float, spread: float) -> Array:
    """-log p of scores: linear between knots, then a generalised Pareto tail."""
    excess = np.maximum(scores - knots[-1], 0) / spread
    tail = np.log1p(shape * excess) / shape if shape > 0 else excess
    # Of equal knots the first one counts, which has the largest p-value.
    distinct, first = np.unique(knots, return_index=True)
    inside = -np.log(np.interp(scores, distinct, pvalues[first]))
    result: Array = np.where(scores > knots[-1], tail - np.log(pvalues[-1]), inside)
    return result


def log_e(surprises: Array) -> Array:
    """Log e(p) from -log p: e(p) = (1 - p + p log p) / (p log^2 p).

    1/2 at p = 1, and 1 on average over uniform p.
    """
    size = np.maximum(surprises, 1e-3)
    exact = np.log(-np.expm1(-size) - size * np.exp(-size)) - 2 * np.log(size) + size
    small = np.minimum(surprises, 1e-3)
    near_one = np.log(0.5 - small / 3 + small**2 / 8 - small**3 / 30) + small
    result: Array = np.where(surprises < 1e-3, near_one, exact)
    return result


def pooled(log_es: Sequence[Array], scales: Sequence[float], joint: float = 1.0) -> Array:
    """Log w_* = joint log mean_k e_k^kappa_k; a mean of e-values is an e-value."""
    parts = np.array([scale * own for scale, own in zip(scales, log_es, strict=True)])
    best = parts.max(axis=0)
    result: Array = joint * (best + np.log(np.exp(parts - best).mean(axis=0)))
    return result


def episodes(log_evidence: Array, levels: tuple[float, float], hold_off: int, margin: float) -> list[tuple[int, int]]:
    """Begin and end of alarms, end excluded.

    A frame is high if the sum c_t = max(0, c_{t-1} + log w_*), limited to `margin` above its level, or its own log w_*
    is above its level. High frames belong to one episode if they are at most `hold_off` apart.
    """
    total, above = 0.0, []
    for t, value in enumerate(log_evidence):
        if np.isnan(value):
            continue
        total = min(max(0.0, total + value), levels[0] + margin)
        if total > levels[0] or value > levels[1]:
            above.append(t)
    found: list[tuple[int, int]] = []
    for t in above:
        if found and t - (found[-1][1] - 1) <= hold_off:
            found[-1] = found[-1][0], t + 1
        else:
            found.append((t, t + 1))
    return found
