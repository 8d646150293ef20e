"""A chain whose transition probabilities are raised to a power, made into a proper chain again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._validation import Array, Lengths, read_only


def power(values: Array, temper: float) -> Array:
    """values^temper; zeros stay zeros."""
    return np.where(values > 0, values**temper, 0.0)


@dataclass(frozen=True)
class Tempering:
    """What a tempered chain was before, and what the last frame of a sequence adds.

    P = A^temper, elementwise, has the Perron value lambda and the right vector r. The chain of a model is then
    A'_ij = P_ij r_j / (lambda r_i) with the start pi'_i proportional to pi_i^temper r_i; `transmat` and `startprob` here
    are A and pi. Where a sequence is known to end, `end_weights`, -log r_i, are added to the evidence of its last frame:
    every path then has the weight pi^temper A^temper, up to a constant.
    """

    temper: float
    transmat: Array
    startprob: Array
    end_weights: Array

    def __post_init__(self) -> None:
        for name in ("transmat", "startprob", "end_weights"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def at_ends(self, evidence: Array, lengths: Lengths) -> Array:
        """Evidence (T, S) with the end weights at the last frame of each sequence; the unknown has none."""
        evidence = evidence.copy()
        last = np.cumsum(lengths) - 1
        n_states = len(self.end_weights)
        ends = np.where(np.isnan(evidence[last]), 0.0, evidence[last])
        ends[:, :n_states] += self.end_weights
        evidence[last] = ends
        return evidence


def tempered(transmat: Array, startprob: Array, temper: float, prior: Array) -> tuple[Array, Array, Tempering | None]:
    """A', pi' and how they came about; A and pi themselves for a temper of 1.

    The end weights have mean 0 under the class shares `prior`.
    """
    if temper == 1:
        return transmat, startprob, None
    weights = power(transmat, temper)
    log_r = np.log(_perron_vector(weights))
    log_r -= prior @ log_r
    r = np.exp(log_r)
    chain = weights * r / r[:, None]
    start = power(startprob, temper) * r
    tempering = Tempering(temper, transmat, startprob, -log_r)
    return chain / chain.sum(axis=1, keepdims=True), start / start.sum(), tempering


def _perron_vector(weights: Array) -> Array:
    """The right Perron vector, positive: by repeated squaring, which zeros in the chain cannot mislead.

    A chain that falls apart, or has states that lead nowhere, may have entries next to 0; they are held at 1e-12 of the
    largest, and rows of the tempered chain are divided by their sums afterwards.
    """
    powers = weights / weights.sum(axis=1).max()
    for _ in range(60):
        powers = powers @ powers
        powers /= powers.max()
    r = powers.sum(axis=1)
    vector: Array = np.maximum(r / r.max(), 1e-12)
    return vector
