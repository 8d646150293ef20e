"""Seeded problems that several tests share."""

from __future__ import annotations

import numpy as np

from drhmm import Model
from drhmm.evidence.pool_members import KernelMember
from drhmm.evidence.pooled import pooled_evidence
from drhmm.features.frames import Framing


def transition_matrix(random, n_states, kind):
    """A random (S, S) matrix: "dense", "sparse" (half of the entries zero) or "left-right"."""
    matrix = random.dirichlet(np.ones(n_states), n_states)
    if kind == "sparse":
        matrix *= random.random((n_states, n_states)) < 0.5
        matrix += 1e-3 * np.eye(n_states)
    if kind == "left-right":
        matrix = np.triu(matrix) + 1e-3 * np.eye(n_states)
    return matrix / matrix.sum(axis=1, keepdims=True)


def evidence_problem(seed, n_frames, n_states, kind="dense", spread=2.0, missing=0.1):
    """Log ratios with missing rows, a transition matrix and start probabilities."""
    random = np.random.default_rng(seed)
    log_ratios = random.normal(size=(n_frames, n_states)) * spread
    log_ratios[random.random(n_frames) < missing] = np.nan
    startprob = random.dirichlet(np.ones(n_states))
    if kind == "left-right":
        startprob = np.eye(n_states)[0]
    return log_ratios, transition_matrix(random, n_states, kind), startprob


def blobs(seed, n_frames=300, n_states=3, separation=2.0, n_columns=2):
    """A labelled sequence of Gaussian clouds that takes turns between its states."""
    random = np.random.default_rng(seed)
    states = np.repeat(random.integers(n_states, size=n_frames // 10 + 1), 10)[:n_frames]
    states[: 2 * n_states] = np.repeat(np.arange(n_states), 2)
    means = separation * random.normal(size=(n_states, n_columns))
    return means[states] + random.normal(size=(n_frames, n_columns)), states


def rare_class():
    """Twenty frames of the class 1 in many thousands, far from all others, in five runs of four."""
    y = np.zeros(40_000, dtype=int)
    for run in range(5):
        y[4000 + 7000 * run : 4004 + 7000 * run] = 1
    return np.random.default_rng(0).normal(size=(len(y), 2)) + 8 * y[:, None], y


def kernel_evidence(framing, centers, sigma, theta, prior, floor, evidence_scale):
    """Evidence of kernels alone: a pool of one member."""
    return pooled_evidence(framing, prior, floor, [KernelMember(centers, theta, sigma, 0.01, evidence_scale)])


def two_islands():
    """A model of one column: 0 and 5 exclude one state each, and no transition leads from one state to the other."""
    evidence = kernel_evidence(
        Framing(np.zeros(1), np.ones(1)),
        centers=np.array([[0.0], [5.0]]),
        sigma=1.0,
        theta=np.array([[1.0, -1.0], [-1.0, 1.0]]),
        prior=np.full(2, 0.5),
        floor=0.0,
        evidence_scale=1.0,
    )
    return Model(np.array([0, 1]), np.eye(2), np.full(2, 0.5), np.full(2, 0.5), evidence)
