"""Expectation maximisation on density ratios, without labels or with some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..chain.durations import Durations, Stays
from ..chain.transitions import ChainRules, count_transitions
from ..data.checks import Array
from ..data.labels import UNKNOWN
from ..data.user_warnings import warn
from ..recursion import expect, native_chain
from ..system.progress import Progress, no_progress
from .training_frames import TrainingFrames

#: A state with fewer frames counts as empty.
EMPTY = 1.0

#: A function that learns from targets (N, S) of the complete frames and returns their log ratios (N, S).
Update = Callable[[Array], Array]


@dataclass(frozen=True)
class EMResult:
    """The result of EM.

    ``targets`` are the posteriors of the complete frames (N, S); ``history`` is the gain of every iteration.
    """

    targets: Array
    transmat: Array
    startprob: Array
    stages: Durations | None
    n_iter: int
    converged: bool
    history: list[float]

    @property
    def gain(self) -> float:
        """Mean log likelihood of a frame relative to independent frames."""
        return self.history[-1]


def run_em(
    update: Update,
    training: TrainingFrames,
    rules: ChainRules,
    start: Array,
    *,
    max_iter: int,
    tol: float,
    n_threads: int,
    progress: Progress = no_progress,
) -> EMResult:
    """Alternate between learning ratios from soft labels and inferring soft labels.

    Stops when the posteriors of a frame change by less than `tol` on average, or when the gain falls: the iteration
    before is then the result. Known labels are clamped: their frames have evidence for their own state only. The gain
    is the mean over frames of log sum_i p(x_t = i | y_1..y_{t-1}) w_i(y_t) with w_i(y) = p(y | i) / p(y): the log
    likelihood of the sequences over that of independent frames.

    Shapes of durations are learned once, from the likeliest states at convergence or after half of the iterations; EM
    then continues with them.
    """
    targets = start
    counts, starts = start_counts(start, training)
    transmat = rules.first_transitions(counts)
    startprob = rules.start_probabilities(starts, certain=False)
    shapes, to_learn = np.ones(rules.n_states, dtype=np.int64), rules.durations.learned
    first = np.cumsum([0, *training.lengths[:-1]])
    history: list[float] = []
    empty: set[int] = set()
    converged = shapes_changed = False
    before = targets, transmat, startprob
    while len(history) < max_iter and not converged:
        mass = training.weights @ targets * (len(targets) / training.weights.sum())
        empty.update(np.flatnonzero(mass < EMPTY).tolist())
        evidence = training.spread(update(_protected(targets, mass, training.known)))
        _clamp(evidence, training.codes)
        chain = native_chain(transmat, startprob, rules.durations.stages(transmat, shapes))
        posteriors, counts, log_likelihood = expect(chain, evidence, training.lengths, n_threads)
        gain = log_likelihood / len(training.rows)
        falls = bool(history) and gain < history[-1] and not shapes_changed
        if falls and not to_learn:
            targets, transmat, startprob = before
            converged = True
            progress(len(history), len(history), f"gain {history[-1]:.4f}")
            break
        before, shapes_changed = (targets, transmat, startprob), False
        history.append(gain)
        transmat = rules.regular(rules.transition_probabilities(counts), counts, shapes)
        startprob = rules.start_probabilities(posteriors[first].sum(axis=0))
        change = float(np.abs(posteriors[training.rows] - targets).sum(axis=1).mean() / 2)
        targets = posteriors[training.rows]
        converged = change < tol or falls
        done = len(history)
        if to_learn and (converged or 2 * done >= max_iter):
            to_learn = False
            path = posteriors.argmax(axis=1)
            found = count_transitions(path, training.lengths, rules.n_states)[0]
            as_found = rules.regular(transmat, found, np.full(rules.n_states, 2))
            shapes = rules.durations.shapes(as_found, Stays.of(path, training.lengths))
            transmat = rules.regular(transmat, found, shapes)
            shapes_changed = bool((shapes != 1).any())
            converged = converged and not shapes_changed
        progress(done, done if converged else max_iter, f"gain {history[-1]:.4f}  change {change:.1e}")
    for state in sorted(empty):
        warn(
            f"EM: state {state} ran out of frames on the way and was kept with the weight of one frame; "
            "n_states may be too large for these data",
        )
    stages = rules.durations.stages(transmat, shapes)
    return EMResult(targets, transmat, startprob, stages, len(history), converged, history)


def clamped(targets: Array, labels: Array) -> Array:
    """Replace targets (N, S) by labels, which are one-hot, or zeros where unknown."""
    return np.where(labels.any(axis=1, keepdims=True), labels, targets)


def start_counts(start: Array, training: TrainingFrames) -> tuple[Array, Array]:
    """Count transitions between the likeliest states of a start."""
    codes = np.full(training.n_rows, UNKNOWN, dtype=np.int64)
    codes[training.rows] = start.argmax(axis=1)
    return count_transitions(codes, training.lengths, training.n_states)


def _protected(targets: Array, mass: Array, known: npt.NDArray[np.bool_]) -> Array:
    """Give each empty state a trace of every unlabelled frame."""
    if (mass >= EMPTY).all():
        return targets
    lifted = targets + ~known[:, None] * (mass < EMPTY) * (EMPTY / len(targets))
    normalized: Array = lifted / lifted.sum(axis=1, keepdims=True)
    return normalized


def _clamp(evidence: Array, codes: npt.NDArray[np.int64]) -> None:
    """Restrict the evidence of labelled frames to their states, also missing frames."""
    known = np.flatnonzero(codes != UNKNOWN)
    own = evidence[known, codes[known]]
    evidence[known] = -np.inf
    evidence[known, codes[known]] = np.where(np.isnan(own), 0.0, own)
