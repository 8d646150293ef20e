"""Seeded problems that all speed benchmarks share."""

from __future__ import annotations

import numpy as np


def evidence(n_frames, n_states, seed=0):
    """Log-likelihoods, a sticky transition matrix and uniform start probabilities."""
    random = np.random.default_rng(seed)
    transmat = np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
    np.fill_diagonal(transmat, 0.9 if n_states > 1 else 1.0)
    return random.normal(size=(n_frames, n_states)), transmat, np.full(n_states, 1 / n_states)
