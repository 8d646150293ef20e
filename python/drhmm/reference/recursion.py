"""Forward-backward in numpy: log domain, pairwise ratios, and enumeration.

``log_ratios`` has shape (T, S): row t is log w_i(y_t) up to a constant; -inf excludes a state, +inf excludes all
others, a row of NaN is a missing frame. ``transmat[i, j] = p(x_t = j | x_{t-1} = i)``.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from .features import Array

#: The index of the matrix that leads to each frame; the first entry is ignored.
Which = npt.NDArray[np.int64] | None


def prepare(log_ratios: Array) -> Array:
    """Replace missing rows by zeros, and rows with +inf by "these states only"."""
    evidence = np.where(np.isnan(log_ratios), 0.0, log_ratios)
    certain = np.isposinf(evidence)
    rows = certain.any(axis=1)
    evidence[rows] = np.where(certain[rows], 0.0, -np.inf)
    return evidence


def fill_gaps(log_ratios: Array, dt: npt.NDArray[np.int64]) -> tuple[Array, npt.NDArray[np.int64]]:
    """Add a missing frame for every step of a gap; return the rows of the frames."""
    rows = np.cumsum(dt) - 1
    filled = np.full((rows[-1] + 1, log_ratios.shape[1]), np.nan)
    filled[rows] = log_ratios
    return filled, rows


def log(values: Array) -> Array:
    """Logarithms, -inf for zeros."""
    with np.errstate(divide="ignore"):
        logarithm: Array = np.log(values)
    return logarithm


def _log_sum(values: Array, axis: int) -> Array:
    with np.errstate(invalid="ignore"):
        total: Array = np.logaddexp.reduce(values, axis=axis)
    return np.where(np.isneginf(values).all(axis=axis), -np.inf, total)


def _log_steps(transmat: Array, which: Which, n_frames: int) -> list[Array]:
    """The log matrix (S, S) into each frame, chosen by `which` from (K, S, S) or one."""
    logs = log(transmat)
    return list(logs[which]) if which is not None else [logs if logs.ndim == 2 else logs[0]] * n_frames


def forward(log_ratios: Array, transmat: Array, startprob: Array, which: Which = None) -> Array:
    """Log filtered ratios to the likeliest state, (T, S); raises on impossible data."""
    evidence, steps = prepare(log_ratios), _log_steps(transmat, which, len(log_ratios))
    alpha = np.empty_like(evidence)
    for t, row in enumerate(evidence):
        alpha[t] = row + (log(startprob) if t == 0 else _log_sum(alpha[t - 1][:, None] + steps[t], axis=0))
        pivot = alpha[t].max()
        if np.isneginf(pivot):
            raise ValueError(f"impossible data at time step {t}")
        alpha[t] -= pivot
    return alpha


def backward(log_ratios: Array, transmat: Array, which: Which = None) -> Array:
    """Log backward ratios to the likeliest state, shape (T, S)."""
    evidence, steps = prepare(log_ratios), _log_steps(transmat, which, len(log_ratios))
    beta = np.zeros_like(evidence)
    for t in range(len(evidence) - 2, -1, -1):
        beta[t] = _log_sum(steps[t + 1] + (evidence[t + 1] + beta[t + 1])[None, :], axis=1)
        beta[t] -= beta[t].max()
    return beta


def normalize(log_values: Array) -> Array:
    """Probabilities from log values, row by row."""
    values = np.exp(log_values - log_values.max(axis=1, keepdims=True))
    probabilities: Array = values / values.sum(axis=1, keepdims=True)
    return probabilities


def filter(log_ratios: Array, transmat: Array, startprob: Array) -> Array:  # noqa: A001
    """p(x_t = i | y_1..y_t)."""
    return normalize(forward(log_ratios, transmat, startprob))


def smooth(log_ratios: Array, transmat: Array, startprob: Array) -> Array:
    """p(x_t = i | y_1..y_T)."""
    return normalize(forward(log_ratios, transmat, startprob) + backward(log_ratios, transmat))


def log_likelihood(log_ratios: Array, transmat: Array, startprob: Array) -> float:
    """Log sum over paths of p(path) prod_t w(y_t), with w as given."""
    evidence, log_a = prepare(log_ratios), log(transmat)
    message = log(startprob) + evidence[0]
    for row in evidence[1:]:
        message = _log_sum(message[:, None] + log_a, axis=0) + row
    return float(_log_sum(message, axis=0))


def fixed_lag(log_ratios: Array, transmat: Array, startprob: Array, lag: int) -> Array:
    """p(x_t = i | y_1..y_min(t+lag, T)), by smoothing every prefix."""
    posteriors = np.empty_like(log_ratios)
    for t in range(len(log_ratios)):
        posteriors[t] = smooth(log_ratios[: t + lag + 1], transmat, startprob)[t]
    return posteriors


def viterbi(log_ratios: Array, transmat: Array, startprob: Array) -> npt.NDArray[np.int64]:
    """Most probable path; of equally probable predecessors the first state wins."""
    evidence, log_a = prepare(log_ratios), log(transmat)
    n, s = evidence.shape
    best = log(startprob) + evidence[0]
    origin = np.zeros((n, s), dtype=np.int64)
    for t in range(n):
        if t > 0:
            scores = best[:, None] + log_a
            origin[t] = scores.argmax(axis=0)
            best = scores.max(axis=0) + evidence[t]
        pivot = best.max()
        if np.isneginf(pivot):
            raise ValueError(f"impossible data at time step {t}")
        best = best - pivot
    path = np.empty(n, dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(n - 1, 0, -1):
        path[t - 1] = origin[t, path[t]]
    return path


def transition_posteriors(log_ratios: Array, transmat: Array, startprob: Array, which: Which = None) -> Array:
    """p(x_t = i, x_{t+1} = j | y_1..y_T), shape (T - 1, S, S)."""
    evidence, steps = prepare(log_ratios), _log_steps(transmat, which, len(log_ratios))
    alpha, beta = forward(log_ratios, transmat, startprob, which), backward(log_ratios, transmat, which)
    joint = np.empty((len(evidence) - 1, *steps[0].shape))
    for t in range(len(joint)):
        logs = alpha[t][:, None] + steps[t + 1] + (evidence[t + 1] + beta[t + 1])[None, :]
        joint[t] = np.exp(logs - logs.max())
        joint[t] /= joint[t].sum()
    return joint


def expected_transitions(log_ratios: Array, transmat: Array, startprob: Array) -> Array:
    """sum_t p(x_t = i, x_{t+1} = j | y_1..y_T), shape (S, S)."""
    counts: Array = transition_posteriors(log_ratios, transmat, startprob).sum(axis=0)
    return counts


def draw_paths(
    log_ratios: Array, transmat: Array, startprob: Array, uniforms: Array, which: Which = None
) -> npt.NDArray[np.int64]:
    """Draw posterior paths from uniform numbers (n, T) by backward sampling."""
    alpha, steps = forward(log_ratios, transmat, startprob, which), _log_steps(transmat, which, len(log_ratios))
    paths = np.empty(uniforms.shape, dtype=np.int64)
    for path, numbers in zip(paths, uniforms, strict=True):
        for t in range(len(alpha) - 1, -1, -1):
            logs = alpha[t] if t + 1 == len(alpha) else alpha[t] + steps[t + 1][:, path[t + 1]]
            weights = np.cumsum(np.exp(logs - logs.max()))
            path[t] = np.searchsorted(weights, numbers[t] * weights[-1], side="right")
    return paths


def stationary_distribution(transmat: Array) -> Array:
    """The left eigenvector of transmat for the eigenvalue 1."""
    values, vectors = np.linalg.eig(transmat.T)
    vector = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    shares: Array = vector / vector.sum()
    return shares


def path_log_probability(path: npt.NDArray[np.int64], log_ratios: Array, transmat: Array, startprob: Array) -> float:
    """Log probability of one path times its evidence, up to a constant."""
    evidence = prepare(log_ratios)
    total = log(startprob)[path[0]] + evidence[0, path[0]]
    for t in range(1, len(path)):
        total += log(transmat)[path[t - 1], path[t]] + evidence[t, path[t]]
    return float(total)


def enumerate_paths(log_ratios: Array, transmat: Array, startprob: Array) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Smoothed posteriors, expected transitions and best path from all S^T paths."""
    n, s = log_ratios.shape
    paths = np.array(list(itertools.product(range(s), repeat=n)))
    logs = np.array([path_log_probability(path, log_ratios, transmat, startprob) for path in paths])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    posteriors, counts = np.zeros((n, s)), np.zeros((s, s))
    for path, weight in zip(paths, weights, strict=True):
        posteriors[np.arange(n), path] += weight
        np.add.at(counts, (path[:-1], path[1:]), weight)
    return posteriors, counts, paths[logs.argmax()]


def pairwise_smooth(log_ratios: Array, transmat: Array, startprob: Array) -> tuple[Array, Array]:
    """Filtered and smoothed posteriors by recursions on S^2 ratios, as in the paper.

    The paper's indices are corrected: rf_ij(t) = w_ij(y_t) sum_k [ sum_k' A[k', j] / A[k, i] rf_k'k(t-1) ]^-1, and
    rb_ij(t) = sum_k [ sum_k' A[j, k'] / A[i, k] rb_k'k(t+1) w_k'k(y_{t+1}) ]^-1.

    Needs positive parameters and moderate evidence: this form has no scaling.
    """
    n, s = log_ratios.shape
    w = np.exp(log_ratios[:, :, None] - log_ratios[:, None, :])
    rf, rb = np.ones((n, s, s)), np.ones((n, s, s))
    rf[0] = startprob[:, None] / startprob[None, :] * w[0]
    for t in range(1, n):
        for i, j in itertools.product(range(s), repeat=2):
            inner = [sum(transmat[m, j] / transmat[k, i] * rf[t - 1, m, k] for m in range(s)) for k in range(s)]
            rf[t, i, j] = w[t, i, j] * sum(1 / value for value in inner)
    for t in range(n - 2, -1, -1):
        v = rb[t + 1] * w[t + 1]
        for i, j in itertools.product(range(s), repeat=2):
            inner = [sum(transmat[j, m] / transmat[i, k] * v[m, k] for m in range(s)) for k in range(s)]
            rb[t, i, j] = sum(1 / value for value in inner)
    filtered, smoothed = rf[:, :, 0], (rf * rb)[:, :, 0]
    return filtered / filtered.sum(axis=1, keepdims=True), smoothed / smoothed.sum(axis=1, keepdims=True)
