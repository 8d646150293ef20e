"""Least-squares density ratios between states, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .features import Array, squared_exponential
from .pool import least_ratio, limited

Folds = npt.NDArray[np.int64]


def gram_statistics(features: Array, targets: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
    """Phi^T W Phi, Phi^T W M and the class masses 1^T W M; each is a sum over frames."""
    weighted = features if weights is None else features * weights[:, None]
    mass = targets.sum(axis=0) if weights is None else weights @ targets
    return weighted.T @ features, weighted.T @ targets, mass


def solve_theta(gram: Array, moment: Array, rho: float) -> Array:
    """Theta = (G + rho I)^-1 H for all classes at once."""
    return np.asarray(np.linalg.solve(gram + rho * np.eye(len(gram)), moment), dtype=np.float64)


def posterior_estimates(frames: Array, centers: Array, sigma: float, theta: Array) -> Array:
    """theta_i^T phi(y), the unclipped estimate of p(x=i | y); rows of NaN stay NaN."""
    estimates: Array = squared_exponential(frames, centers, sigma) @ theta
    return estimates


def log_ratios(estimates: Array, prior: Array, floor: float, evidence_scale: float) -> Array:
    """Log w_i(y) = evidence_scale * log(q_i(y) / prior_i), up to a constant per row.

    q_i = max(theta_i^T phi, min(floor * S, 1/2) * prior_i): the floor is the same for every class once the prior is
    divided out. With floor 0 a frame that every class estimates as 0 carries no evidence: all w_ij = 1.
    """
    return evidence_scale * limited(estimates / prior, least_ratio(len(prior), floor))


def cross_validate(
    frames: Array, targets: Array, folds: Folds, centers: Array, sigma: float, relative_rhos: Sequence[float]
) -> tuple[Array, Array]:
    """Held-out squared loss by rho, summed over frames, and estimates (rhos, N, S).

    ``rho = relative_rho * number of training frames``. The native version computes the loss from Gram matrices alone.
    """
    features = squared_exponential(frames, centers, sigma)
    estimates = np.empty((len(relative_rhos), *targets.shape))
    for fold in np.unique(folds):
        held_out = folds == fold
        gram, moment, _ = gram_statistics(features[~held_out], targets[~held_out])
        for r, relative_rho in enumerate(relative_rhos):
            theta = solve_theta(gram, moment, relative_rho * np.sum(~held_out))
            estimates[r, held_out] = features[held_out] @ theta
    loss = ((estimates - targets) ** 2).sum(axis=(1, 2))
    return loss, estimates


def leave_one_out_scores(numerator: Array, denominator: Array, alpha: float, rho: float) -> Array:
    """Leave-one-out scores of a relative ratio, by learning without each pair.

    `numerator` and `denominator` are features of the two classes. Score i is the squared-error criterion
    alpha/2 w(nu_i)^2 + (1 - alpha)/2 w(de_i)^2 - w(nu_i) of w = theta^T phi learned without nu_i and de_i.
    """
    scores = []
    for i in range(min(len(numerator), len(denominator))):
        nu, de = np.delete(numerator, i, axis=0), np.delete(denominator, i, axis=0)
        gram = alpha * nu.T @ nu / len(nu) + (1 - alpha) * de.T @ de / len(de)
        theta = np.linalg.solve(gram + rho * np.eye(gram.shape[0]), nu.mean(axis=0))
        at_nu, at_de = numerator[i] @ theta, denominator[i] @ theta
        scores.append(alpha / 2 * at_nu**2 + (1 - alpha) / 2 * at_de**2 - at_nu)
    return np.array(scores)
