"""A chain whose transition probabilities are raised to a power, made into a proper chain again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, FrozenArrays, Lengths


def power(values: Array, temper: float) -> Array:
    """values^temper; zeros stay zeros."""
    return np.where(values > 0, values**temper, 0.0)


@dataclass(frozen=True)
class Tempering(FrozenArrays):
    """What a tempered chain was before, and what the last time step of a sequence adds.

    P = A^temper, elementwise, has the Perron value lambda and the right vector r. The chain of a model is then
    A'_ij = P_ij r_j / (lambda r_i) with the start pi'_i proportional to pi_i^temper r_i; `transmat` and `startprob`
    here are A and pi. Where a sequence is known to end, `end_weights`, -log r_i, are added to the evidence of its last
    time step: every path then has the weight pi^temper A^temper, up to a constant.
    """

    temper: float
    transmat: Array
    startprob: Array
    end_weights: Array

    def at_ends(self, evidence: Array, lengths: Lengths) -> Array:
        """Evidence (T, S) with the end weights at the last time step of each sequence; the unknown has none."""
        evidence = evidence.copy()
        last = np.cumsum(lengths) - 1
        n_states = len(self.end_weights)
        ends = np.where(np.isnan(evidence[last]), 0.0, evidence[last])
        ends[:, :n_states] += self.end_weights
        evidence[last] = ends
        return evidence


def tempered(transmat: Array, startprob: Array, temper: float, prior: Array) -> tuple[Array, Array, Tempering | None]:
    """A', pi' and how they came about; A and pi themselves for a temper of 1.

    The end weights have mean 0 under the class shares `prior`. A ValueError names a state that cannot be reached: such
    a chain has no positive Perron vector, and its powers are no chain.
    """
    if temper == 1:
        return transmat, startprob, None
    if (cut_off := unreachable(transmat)) is not None:
        raise ValueError(
            f"transition_temper={temper:g} needs a chain in which every state can be reached from every other, but "
            f"state {cut_off[1]} cannot be reached from state {cut_off[0]}: use transition_temper=1"
        )
    weights = power(transmat, temper)
    log_r = np.log(_perron_vector(weights))
    log_r -= prior @ log_r
    r = np.exp(log_r)
    chain = weights * r / r[:, None]
    start = power(startprob, temper) * r
    tempering = Tempering(temper, transmat, startprob, -log_r)
    return chain / chain.sum(axis=1, keepdims=True), start / start.sum(), tempering


def _perron_vector(weights: Array) -> Array:
    """The right Perron vector of a chain whose states can all be reached, positive: by repeated squaring.

    Half of every step stays where it is, so that chains that go round in circles settle, too.
    """
    powers = np.eye(len(weights)) + weights / weights.sum(axis=1).max()
    for _ in range(60):
        powers = powers @ powers
        powers /= powers.max()
    r: Array = powers.sum(axis=1) / powers.sum(axis=1).max()
    return r


def reachable(transmat: Array) -> npt.NDArray[np.bool_]:
    """Which state (column) can be reached from which (row), itself among them."""
    reached = (transmat > 0) | np.eye(len(transmat), dtype=bool)
    for _ in range(len(transmat).bit_length()):
        reached = (reached.astype(np.float64) @ reached) > 0
    return reached


def unreachable(transmat: Array) -> tuple[int, int] | None:
    """Two states of which the second cannot be reached from the first, if there are any."""
    reached = reachable(transmat)
    if reached.all():
        return None
    one, other = np.argwhere(~reached)[0]
    return int(one), int(other)
