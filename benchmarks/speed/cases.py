"""Seeded problems that all speed benchmarks share."""

from __future__ import annotations

import numpy as np


def evidence(n_frames, n_states, seed=0):
    """Log-likelihoods, a sticky transition matrix and uniform start probabilities."""
    random = np.random.default_rng(seed)
    transmat = np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
    np.fill_diagonal(transmat, 0.9 if n_states > 1 else 1.0)
    return random.normal(size=(n_frames, n_states)), transmat, np.full(n_states, 1 / n_states)


def kernel_problem(n_frames, n_basis, n_columns):
    """A model with three states on kernels, and samples like those it was learned from."""
    from drhmm import DensityRatioHMM
    from drhmm.datasets import blobs

    X, y = blobs(max(2000, 2 * n_basis), random_state=0)
    X = X @ np.random.default_rng(0).normal(size=(2, n_columns))
    X += 0.3 * np.random.default_rng(1).normal(size=X.shape)
    settings = {"ratio": "least-squares", "sigma": 2.0, "rho": 3e-3, "evidence_scale": 1.0, "transition_temper": 1.0}
    model = DensityRatioHMM(n_basis=n_basis, random_state=0, **settings).fit(X, y).model_
    samples = np.resize(X, (n_frames, n_columns))
    return model, samples + 0.01 * np.random.default_rng(2).normal(size=samples.shape)


def blocked_estimates(model, X, block=1000):
    """Kernel expansions as one would write them in numpy: products, exponentials and products, block by block."""
    evidence_ = model.evidence
    centers, theta, gamma = evidence_.kernel.centers, evidence_.kernel.theta, -0.5 / evidence_.kernel.sigma**2
    result, norms = np.empty((len(X), theta.shape[1])), (centers**2).sum(axis=1)
    for first in range(0, len(X), block):
        frames = (X[first : first + block] - evidence_.framing.mean) / evidence_.framing.scale
        distances = (frames**2).sum(axis=1)[:, None] + norms - 2 * frames @ centers.T
        result[first : first + block] = np.exp(distances * gamma) @ theta
    return result
