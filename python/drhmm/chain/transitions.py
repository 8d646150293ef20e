"""Transition and start probabilities: learned, given or tempered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import (
    LARGEST,
    Array,
    FrozenArrays,
    Lengths,
    as_floats,
    as_matrix,
    as_startprob,
    as_transmat,
    check_number,
)
from .durations import DurationRules, Durations, Sizes, Stays, leaving_rates

#: Pseudo-count of every state as the first of a sequence.
START_PRIOR = 1.0


@dataclass(frozen=True)
class ChainRules:
    """Rules for transition and start probabilities.

    ``prior`` is the pseudo-count of each transition, -inf where it is forbidden; ``transmat`` and ``startprob`` are
    given, or None to learn them. ``weights`` (S,) multiply the counts of transitions into each state. ``durations`` are
    the rules for stays. ``initial`` is the transition matrix that EM begins with, if given.
    """

    prior: Array
    transmat: Array | None
    startprob: Array | None
    weights: Array
    durations: DurationRules
    initial: Array | None = None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.prior)

    @property
    def tells_states_apart(self) -> bool:
        """Whether the settings distinguish states before anything is learned."""
        given = (self.transmat, self.startprob, self.initial)
        return any(one is not None for one in given) or bool((self.prior != self.prior[0, 0]).any())

    def log_preferences(self) -> tuple[Array, Array]:
        """Log preferences for transitions and first states before learning."""
        given = self.transmat if self.transmat is not None else self.initial
        if given is None:
            given = np.where(np.isneginf(self.prior), 0.0, self.prior + 1)
        first = self.startprob if self.startprob is not None else np.ones(self.n_states)
        tiny = np.finfo(float).tiny
        return np.log(np.maximum(given, tiny)), np.log(np.maximum(first, tiny))

    def transition_probabilities(self, counts: Array, *, certain: bool = True) -> Array:
        """Normalise counts plus pseudo-counts, or return the given matrix.

        Counts of forbidden transitions are an error if they are `certain`; otherwise they are ignored.
        """
        forbidden = np.isneginf(self.prior) if self.transmat is None else self.transmat == 0
        for i, j in np.argwhere(forbidden & (counts > 0) & certain):
            setting = "transition_prior" if self.transmat is None else "transmat"
            raise ValueError(f"{setting} forbids the transition from state {i} to state {j}, but y contains it")
        if self.transmat is not None:
            return self.transmat
        smoothed = np.where(forbidden, 0.0, counts * self.weights + self.prior)
        totals = smoothed.sum(axis=1, keepdims=True)
        for state in np.flatnonzero(totals == 0):
            raise ValueError(
                f"state {state} is never followed by a time step, and transition_prior is 0: its row of transmat "
                "is undefined; use a positive transition_prior"
            )
        transmat: Array = smoothed / totals
        return transmat

    def first_transitions(self, counts: Array) -> Array:
        """Return the first transition matrix of EM."""
        return self.transition_probabilities(counts, certain=False) if self.initial is None else self.initial

    def regular(self, transmat: Array, counts: Array, shapes: Sizes) -> Array:
        """Keep the mean stays of shaped states free of pseudo-counts.

        Pseudo-counts hardly matter for geometric stays, but a regular stay far from its mean is very improbable. Given
        transitions and class weights are meant to change the mean, so they are kept.
        """
        if self.transmat is not None or (self.weights != 1).any():
            return transmat
        totals, left = counts.sum(axis=1), leaving_rates(counts)
        rows = np.flatnonzero((shapes > 1) & (left >= 1))
        changed = transmat.copy()
        changed[rows] *= (left[rows] / totals[rows] / leaving_rates(transmat)[rows])[:, None]
        changed[rows, rows] = 1 - left[rows] / totals[rows]
        return changed

    @property
    def without_shapes(self) -> ChainRules:
        """Return the same rules with geometric stays beyond the minimum."""
        return replace(self, durations=replace(self.durations, learned=False))

    def learn(self, counts: Array, stays: Stays) -> tuple[Array, Durations | None]:
        """Learn transitions and durations (None if geometric) from complete labels."""
        transmat = self.transition_probabilities(counts)
        every = np.full(self.n_states, 2)
        shapes = self.durations.shapes(self.regular(transmat, counts, every), stays)
        transmat = self.regular(transmat, counts, shapes)
        return transmat, self.durations.stages(transmat, shapes)

    def start_probabilities(self, starts: Array, *, certain: bool = True) -> Array:
        """Normalise counts of first states plus pseudo-counts, or return the given ones.

        Impossible first states are an error if they are `certain`; otherwise they are ignored.
        """
        if self.startprob is not None:
            for state in np.flatnonzero((self.startprob == 0) & (starts > 0) & certain):
                raise ValueError(f"startprob forbids state {state} as the first, but a sequence in y begins with it")
            return self.startprob
        smoothed = starts * self.weights + START_PRIOR
        startprob: Array = smoothed / smoothed.sum()
        return startprob


def chain_rules(
    transition_prior: Any,
    transmat: Any,
    startprob: Any,
    n_states: int,
    class_weights: Array | None = None,
    durations: DurationRules | None = None,
    transmat_init: Any = None,
) -> ChainRules:
    """Check the settings of the chain; only ratios of class weights matter."""
    if not isinstance(transition_prior, list | tuple) and np.ndim(transition_prior) == 0:
        prior = np.full((n_states, n_states), check_number(transition_prior, "transition_prior", low=0, high=LARGEST))
    else:
        prior = as_floats(transition_prior, "transition_prior")
        if prior.shape != (n_states, n_states):
            raise ValueError(
                f"transition_prior must be a number or have shape {(n_states, n_states)}, got {prior.shape}"
            )
        for i, j in np.argwhere(~((prior >= 0) & (prior <= LARGEST) | np.isneginf(prior))):
            raise ValueError(
                f"transition_prior has {prior[i, j]} at row {i}, column {j}: pseudo-counts are 0 or more, "
                "and -inf forbids a transition"
            )
        for state in np.flatnonzero(np.isneginf(prior).all(axis=1)):
            raise ValueError(f"transition_prior forbids every transition from state {state}")
    initial = None if transmat_init is None else as_transmat(transmat_init, n_states, "transmat_init")
    if initial is not None:
        if transmat is not None:
            raise ValueError("give transmat, which is not learned, or transmat_init, where EM begins, not both")
        for i, j in np.argwhere(np.isneginf(prior) & (initial > 0)):
            raise ValueError(f"transmat_init has {initial[i, j]:g} at row {i}, column {j}: transition_prior forbids it")
    return ChainRules(
        prior,
        None if transmat is None else as_transmat(transmat, n_states),
        None if startprob is None else as_startprob(startprob, n_states),
        np.ones(n_states) if class_weights is None else class_weights / class_weights.mean(),
        DurationRules(False, np.ones(n_states, dtype=np.int64)) if durations is None else durations,
        initial,
    )


def count_transitions(codes: npt.NDArray[np.int64], lengths: Lengths, n_states: int) -> tuple[Array, Array]:
    """Count transitions and first states of known time steps, shapes (S, S), (S,)."""
    counts, starts = np.zeros((n_states, n_states)), np.zeros(n_states)
    first = np.cumsum([0, *lengths[:-1]])
    inside = codes >= 0
    inside[1:] &= codes[:-1] >= 0
    inside[first] = False
    arrivals = np.flatnonzero(inside)
    np.add.at(counts, (codes[arrivals - 1], codes[arrivals]), 1.0)
    np.add.at(starts, codes[first][codes[first] >= 0], 1.0)
    return counts, starts


def power(values: Array, temper: float) -> Array:
    """Return values^temper; zeros stay zeros."""
    return np.where(values > 0, values**temper, 0.0)


@dataclass(frozen=True)
class Tempering(FrozenArrays):
    """The chain before tempering, and the weights at the ends of sequences.

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
        """Add the end weights to the evidence (T, S); the unknown has weight 0."""
        evidence = evidence.copy()
        _core.add_at_ends(evidence, lengths, self.end_weights)
        return evidence


def tempered(transmat: Array, startprob: Array, temper: float, prior: Array) -> tuple[Array, Array, Tempering | None]:
    """Return A', pi' and their `Tempering`; A, pi and None for a temper of 1.

    The end weights have mean 0 under the class shares `prior`. Raises ValueError if a state cannot be reached: the
    chain then has no positive Perron vector.
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
    """Return the positive right Perron vector of an irreducible chain.

    Squares the average of chain and identity repeatedly, so that periodic chains converge, too.
    """
    powers = np.eye(len(weights)) + weights / weights.sum(axis=1).max()
    for _ in range(60):
        powers = powers @ powers
        powers /= powers.max()
    r: Array = powers.sum(axis=1) / powers.sum(axis=1).max()
    return r


def reachable(transmat: Array) -> npt.NDArray[np.bool_]:
    """Mark the states (columns) that each state (row) can reach, itself included."""
    reached = (transmat > 0) | np.eye(len(transmat), dtype=bool)
    for _ in range(len(transmat).bit_length()):
        reached = (reached.astype(np.float64) @ reached) > 0
    return reached


def unreachable(transmat: Array) -> tuple[int, int] | None:
    """Return states (i, j) with j unreachable from i, or None."""
    return next(((int(one), int(other)) for one, other in np.argwhere(~reachable(transmat))), None)


def stationary_distribution(transmat: npt.ArrayLike) -> Array:
    """Long-run share of time in each state, without evidence, shape (S,).

    The only p with p A = p; exact zeros for transient states. Raises ValueError if several p exist, because the chain
    has parts that never meet. Computed by elimination without subtractions (Grassmann, Taksar and Heyman), so small
    probabilities keep all their digits.

    Examples
    --------
    >>> from drhmm import recursion
    >>> recursion.stationary_distribution([[0.9, 0.1], [0.3, 0.7]]).round(3)
    array([0.75, 0.25])
    """
    matrix = as_matrix(transmat, "transmat")
    matrix = as_transmat(matrix, len(matrix))
    recurrent = _recurrent(matrix)
    reduced = matrix[np.ix_(recurrent, recurrent)]
    n = len(reduced)
    for last in range(n - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n)
    for state in range(1, n):
        weights[state] = weights[:state] @ reduced[:state, state]
        weights[: state + 1] /= weights[: state + 1].max()
    shares = np.zeros(len(matrix))
    shares[recurrent] = weights / weights.sum()
    return shares


def _recurrent(matrix: Array) -> npt.NDArray[np.int64]:
    """Return the recurrent states, or raise ValueError if they form several parts."""
    reached = reachable(matrix)
    closed = [state for state in range(len(matrix)) if reached[reached[state], state].all()]
    for state in closed:
        if not reached[closed[0], state]:
            raise ValueError(
                f"transmat has no single stationary distribution: states {closed[0]} and {state} never reach each other"
            )
    return np.array(closed, dtype=np.int64)
