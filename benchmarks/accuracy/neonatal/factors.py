"""Factors that are on or off: settings of all of them together, and chains of settings."""

from __future__ import annotations

import numpy as np

from .protocol import Patient, switching_matrix


def settings_of(n_factors: int) -> np.ndarray:
    """Every combination of factors, (2^n, n), bool; setting 0 has none on, and factor 0 changes slowest."""
    return (np.arange(2**n_factors)[:, None] >> np.arange(n_factors)[::-1]) % 2 == 1


def joint_transitions(single: list[np.ndarray]) -> np.ndarray:
    """Transition probabilities of independent factors, (2^n, 2^n): the Kronecker product of theirs."""
    joint = np.ones((1, 1))
    for matrix in single:
        joint = np.kron(joint, matrix)
    return joint


def one_at_a_time(joint: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """The same without steps in which two or more factors change; rows are made to sum to 1 again."""
    changes = (settings[:, None, :] != settings[None, :, :]).sum(axis=2)
    allowed = np.where(changes <= 1, joint, 0.0)
    return allowed / allowed.sum(axis=1, keepdims=True)


def stationary(single: list[np.ndarray]) -> np.ndarray:
    """Long-run shares of the settings of independent factors, (2^n,)."""
    shares = np.ones(1)
    for matrix in single:
        begin, end = matrix[0, 1], matrix[1, 0]
        shares = np.kron(shares, np.array([end, begin]) / (begin + end))
    return shares


def marginals(posterior: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """Probability that each factor is on, (..., n), from probabilities of the settings, (..., 2^n)."""
    return posterior @ settings.astype(float)


def chains_of(training: list[Patient], factors: tuple[str, ...]) -> list[np.ndarray]:
    """Transition probabilities of each factor from the intervals of training babies."""
    return [switching_matrix(training, factor) for factor in factors]
