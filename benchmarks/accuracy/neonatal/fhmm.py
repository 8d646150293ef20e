"""A factorial HMM: independent factors, one Gaussian for each combination of them, exact filtering.

Channels are measured from the normal median of their own baby. A factor replaces the Gaussian of the channels in which
it shows itself; where two factors share a channel, the later one in `FACTORS` has it. Channels of different factors are
independent, those of one factor have a full covariance matrix.
"""

from __future__ import annotations

import numpy as np

from drhmm import recursion

from .factors import chains_of, joint_transitions, marginals, settings_of, stationary
from .protocol import CHANNELS, CONDITIONS, Patient

#: Later factors overrule earlier ones in the channels that they share.
FACTORS = ("incubator open", "bradycardia", "temperature probe", "blood sample")

#: Variance of rounding to the resolution of a monitor: what no channel can fall below.
SMALLEST_VARIANCE = 0.01

Gaussian = tuple[np.ndarray, np.ndarray]


def deviations(patient: Patient) -> np.ndarray:
    """Channels minus their normal median, (n_samples, n_channels); NaN for dropouts and channels that are not there."""
    missing = np.full(patient.n_samples, np.nan)
    return np.stack([patient.values.get(c, missing) - patient.center.get(c, 0.0) for c in CHANNELS], axis=1)


def gaussian(frames: np.ndarray) -> Gaussian:
    """Mean and covariance of columns with gaps: means of what is there, covariances over complete rows.

    A column without values gets mean 0 and variance 1: it is never observed either. Where there are too few complete
    rows, the covariance is diagonal.
    """
    seen = ~np.isnan(frames).all(axis=0)
    mean, covariance = np.zeros(frames.shape[1]), np.eye(frames.shape[1])
    if seen.any():
        mean[seen] = np.nanmean(frames[:, seen], axis=0)
        covariance[seen, seen] = np.nanvar(frames[:, seen], axis=0)
        complete = frames[:, seen][~np.isnan(frames[:, seen]).any(axis=1)]
        if len(complete) > 10 * seen.sum() and seen.sum() > 1:
            covariance[np.ix_(seen, seen)] = np.cov(complete.T)
    return mean, covariance + SMALLEST_VARIANCE * np.eye(len(mean))


def combine(normal: Gaussian, factors: list[tuple[list[int], Gaussian]], setting: np.ndarray) -> Gaussian:
    """The Gaussian of one combination: the factors that are on replace their channels, one after the other."""
    mean, covariance = normal[0].copy(), normal[1].copy()
    for on, (channels, (own_mean, own_covariance)) in zip(setting, factors, strict=True):
        if on:
            mean[channels] = own_mean
            covariance[channels, :] = 0.0
            covariance[:, channels] = 0.0
            covariance[np.ix_(channels, channels)] = own_covariance
    return mean, covariance


def log_densities(frames: np.ndarray, gaussians: list[Gaussian]) -> np.ndarray:
    """Log density of the observed columns of each frame under each Gaussian, (n, len(gaussians)); 0 if none is."""
    out = np.zeros((len(frames), len(gaussians)))
    patterns, which = np.unique(~np.isnan(frames), axis=0, return_inverse=True)
    for p, seen in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == p)
        if not seen.any():
            continue
        part = frames[np.ix_(rows, seen)]
        for k, (mean, covariance) in enumerate(gaussians):
            factor = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
            whitened = np.linalg.solve(factor, (part - mean[seen]).T)
            constant = np.log(np.diag(factor)).sum() + 0.5 * seen.sum() * np.log(2 * np.pi)
            out[rows, k] = -0.5 * (whitened**2).sum(axis=0) - constant
    return out


def filtered(
    frames: np.ndarray, gaussians: list[Gaussian], chains: list[np.ndarray], start: np.ndarray | None = None
) -> np.ndarray:
    """p(setting_t | y_1..t), (n, 2^n_factors), exactly: one state of a chain for each combination."""
    first = stationary(chains) if start is None else start
    return recursion.filter(log_densities(frames, gaussians), joint_transitions(chains), first)


def run(test: Patient, training: list[Patient]) -> dict[str, np.ndarray]:
    """Filtered probabilities of all known conditions."""
    own = deviations(test)
    others = [(patient, deviations(patient)) for patient in training]
    factors = []
    for factor in FACTORS:
        channels = [CHANNELS.index(name) for name in CONDITIONS[factor][1] if name != "Incu.Air Temp"]
        frames = np.concatenate([frames[patient.truth[factor]][:, channels] for patient, frames in others])
        factors.append((channels, gaussian(frames)))
    settings = settings_of(len(FACTORS))
    normal = gaussian(own[test.normal])
    gaussians = [combine(normal, factors, setting) for setting in settings]
    posterior = filtered(own, gaussians, chains_of(training, FACTORS))
    return dict(zip(FACTORS, marginals(posterior, settings).T, strict=True))
