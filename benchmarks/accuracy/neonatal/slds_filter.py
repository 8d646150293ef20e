"""Filtering of a switching linear dynamical system: one Gaussian for each switch setting (Gaussian sum, ADF, GPB2).

Every channel has a state of three numbers, (x_t, x_{t-1}, b_t): its value, the value before, and a slow baseline.

    x_t = first x_{t-1} + second x_{t-2} + to_baseline b_{t-1} + to_input u_t + drift + N(0, noise)
    b_t = b_{t-1} + baseline_return (baseline_mean - b_{t-1}) + N(0, baseline_noise)
    y_t = x_t + N(0, observation_noise)

The coefficients of x depend on the setting i before and the setting j after a step. Given the settings, channels are
independent. For each j, all i that may lead to it are predicted and updated by a Kalman filter, weighted by their
likelihood, and collapsed to the mean and covariance of their mixture. A missing value (NaN) skips the update of its
channel. All babies, settings and channels are stepped together: what takes time is the number of seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class System:
    """Parameters for C channels, B babies, M settings with P predecessors each.

    ``predecessors[j, p]`` is a setting that may lead to j, and ``transitions[b, j, p]`` the probability of that step;
    a step that is not listed is impossible. ``first``, ``second``, ``to_baseline``, ``to_input``, ``drift`` and
    ``noise`` have shape (C, B, M, P); where ``restart``, of the same shape, is true, x_{t-1} is forgotten and set to
    x_t.
    ``observation_noise`` has shape (C, B, M). ``baseline_return``, ``baseline_mean``, ``baseline_noise``,
    ``start_variance`` and ``start_baseline_variance`` have shape (C, B); ``start`` (B, M) are the probabilities of the
    settings before the first step.
    """

    predecessors: np.ndarray
    transitions: np.ndarray
    first: np.ndarray
    second: np.ndarray
    to_baseline: np.ndarray
    to_input: np.ndarray
    drift: np.ndarray
    noise: np.ndarray
    restart: np.ndarray
    baseline_return: np.ndarray
    baseline_mean: np.ndarray
    baseline_noise: np.ndarray
    observation_noise: np.ndarray
    start_variance: np.ndarray
    start_baseline_variance: np.ndarray
    start: np.ndarray


def start_state(system: System) -> np.ndarray:
    """Means of x, x before and b, then covariances 00, 01, 02, 11, 12, 22, shape (9, C, B, M).

    The baseline is normal around its mean, and both values around the baseline.
    """
    baseline, value = system.start_baseline_variance, system.start_variance + system.start_baseline_variance
    mean = system.baseline_mean
    parts = np.stack([mean, mean, mean, value, baseline, baseline, value, baseline, baseline])
    return np.repeat(parts[..., None], system.transitions.shape[1], axis=3)


def filtered(
    system: System,
    observations: np.ndarray,
    inputs: np.ndarray,
    log_floor: float = -np.inf,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """p(setting_t | y_1..t) of each baby, shape (T, B, M).

    Parameters
    ----------
    system : System
        Parameters.
    observations, inputs : ndarray of shape (T, C, B)
        y with NaN where missing, and u, which must not be NaN.
    log_floor : float
        The least that one second may say, as a log density of all its channels together: keeps one wild sample from
        deciding everything.
    progress : callable, optional
        Told the number of seconds done, now and then.

    Returns
    -------
    ndarray of shape (T, B, M)
        Probabilities of the settings.
    """
    state, posterior = start_state(system), system.start
    out = np.empty((len(observations), *posterior.shape), dtype=np.float32)
    with np.errstate(divide="ignore"):
        log_transitions = np.log(system.transitions)
    for t in range(len(observations)):
        state, posterior = step(system, state, posterior, log_transitions, observations[t], inputs[t], log_floor)
        out[t] = posterior
        if progress is not None and t % 500 == 499:
            progress(t + 1)
    return out


def step(
    system: System,
    state: np.ndarray,
    posterior: np.ndarray,
    log_transitions: np.ndarray,
    observation: np.ndarray,
    given: np.ndarray,
    log_floor: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One second: predict, update and collapse."""
    predicted = _predict(system, state, given)
    updated, log_likelihood = _update(predicted, observation, system.observation_noise)
    with np.errstate(divide="ignore"):
        log_weights = np.log(posterior)[:, system.predecessors] + log_transitions
    log_weights = log_weights + np.maximum(log_likelihood, log_floor)
    weights = np.exp(log_weights - log_weights.max(axis=(1, 2), keepdims=True))
    weights /= weights.sum(axis=(1, 2), keepdims=True)
    posterior = weights.sum(axis=2)
    # A setting that nothing leads to keeps equal weights: its Gaussian has no meaning, and must not be NaN.
    shares = (
        np.where(posterior[..., None] > 0, weights, 1.0)
        / np.where(posterior > 0, posterior, float(weights.shape[2]))[..., None]
    )
    return _collapse(updated, shares), posterior


def _predict(system: System, state: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Means and covariances one second later for every pair of settings, (9, C, B, M, P)."""
    x, before, base, s00, s01, s02, s11, s12, s22 = state[..., system.predecessors]
    first, second, level = system.first, system.second, system.to_baseline
    keep = (1 - system.baseline_return)[..., None, None]
    out = np.empty((9, *x.shape))
    np.multiply(system.to_input, given[..., None, None], out=out[0])
    out[0] += system.drift + first * x + second * before + level * base
    out[1] = x
    out[2] = keep * base + (system.baseline_return * system.baseline_mean)[..., None, None]
    with_x = first * s00 + second * s01 + level * s02
    with_before = first * s01 + second * s11 + level * s12
    with_base = first * s02 + second * s12 + level * s22
    out[3] = first * with_x + second * with_before + level * with_base + system.noise
    out[4] = with_x
    out[5] = keep * with_base
    out[6] = s00
    out[7] = keep * s02
    out[8] = keep**2 * s22 + system.baseline_noise[..., None, None]
    for forgotten, source in ((1, 0), (4, 3), (6, 3), (7, 5)):
        np.copyto(out[forgotten], out[source], where=system.restart)
    return out


def _update(predicted: np.ndarray, observation: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kalman update of every channel that is there, in place, and the log density of all of them, (B, M, P)."""
    seen = ~np.isnan(observation)
    there = seen[..., None, None]
    variance = predicted[3] + noise[..., None]
    error = np.where(seen, observation, 0.0)[..., None, None] - predicted[0]
    error *= there
    precision = there / variance
    log_likelihood = (-0.5 * (error * error * precision + there * (np.log(variance) + LOG_2_PI))).sum(axis=0)
    gains = predicted[3:6] * precision
    p00, p01, p02 = predicted[3].copy(), predicted[4].copy(), predicted[5].copy()
    predicted[0:3] += gains * error
    predicted[3:6] -= gains * p00
    predicted[6] -= gains[1] * p01
    predicted[7] -= gains[1] * p02
    predicted[8] -= gains[2] * p02
    return predicted, log_likelihood


def _collapse(updated: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Mean and covariance of the mixture over predecessors, (9, C, B, M)."""
    means = np.einsum("kcbmp,bmp->kcbm", updated[:3], shares)
    d0, d1, d2 = updated[:3] - means[..., None]
    for place, (left, right) in enumerate(((d0, d0), (d0, d1), (d0, d2), (d1, d1), (d1, d2), (d2, d2)), start=3):
        updated[place] += left * right
    covariances = np.einsum("kcbmp,bmp->kcbm", updated[3:], shares)
    return np.concatenate([means, covariances])
