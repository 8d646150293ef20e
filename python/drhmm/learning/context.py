"""Learning from the context of time steps: sums over blocks, the ridge, and held-out log ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths
from ..data.sequences import Sequences
from ..evidence.pool_members import AHEAD, AheadMember, ContextMember, Sums, added
from ..evidence.pooled import least_ratio_of
from ..features.context import MOST_COLUMNS, Context, learn_context, rows_ahead
from ..features.frames import Framing
from ..ratios.learner import Learner, Trained
from ..ratios.pool import Pool
from .training_frames import TrainingFrames

#: Ridges over the number of frames, among which the held-out squared loss chooses.
RIDGES = (1e-3, 1e-2, 1e-1)

#: The least standard deviation of a feature.
LEAST_SPREAD = 1e-6


def context_sums(
    past: Context,
    member: ContextMember,
    samples: Array,
    lengths: Lengths,
    targets: Array,
    weights: Array,
    folds: npt.NDArray[np.int64] | None = None,
) -> dict[str, Sums]:
    """The sums of `context` and `ahead` over all rows: targets (T, S) and weights (T,), 0 where a row does not count.

    `ahead` pairs the features of a row with the labels AHEAD rows before it, in one Gram matrix with `context`. With
    `folds`, every sum has an axis more, the first, for the folds.
    """
    n_folds = 1 if folds is None else int(folds.max()) + 1
    size, n_states = 1 + past.size, targets.shape[1]
    weighted = targets * weights[:, None]
    earlier = np.zeros_like(weighted)
    np.add.at(earlier, rows_ahead(lengths, AHEAD), weighted)
    gram = np.zeros((n_folds, size, size))
    moments = np.zeros((n_folds, size, 2 * n_states))
    masses = np.zeros((n_folds, 2 * n_states))
    both = np.hstack([weighted, earlier])
    for block, features in past.blocks(samples, lengths):
        columns = member.columns(features)
        for fold in range(n_folds) if folds is None else np.unique(folds[block]):
            own = slice(None) if folds is None else np.flatnonzero(folds[block] == fold)
            part, weight = columns[own], weights[block][own]
            gram[fold] += (part * weight[:, None]).T @ part
            moments[fold] += part.T @ both[block][own]
            masses[fold] += both[block][own].sum(axis=0)
    found = {}
    for name, states in ((ContextMember.NAME, slice(0, n_states)), (AheadMember.NAME, slice(n_states, None))):
        sums = {"gram": gram, "moment": moments[..., states], "mass": masses[..., states]}
        found[name] = {key: values[0] if folds is None else values for key, values in sums.items()}
    return found


def learn_context_members(
    training: TrainingFrames, past: Context, targets: Array, prior: Array, floor: float
) -> list[Trained]:
    """The members that read the context, with their held-out log ratios at the complete frames.

    A row that is held out is estimated from the sums of the other folds.
    """
    samples, lengths, rows = training.samples, training.lengths, training.rows
    n_rows, n_states = len(samples), targets.shape[1]
    everywhere, weights = np.zeros((n_rows, n_states)), np.zeros(n_rows)
    everywhere[rows], weights[rows] = targets, training.weights
    folds = np.zeros(n_rows, dtype=np.int64)
    folds[rows] = training.folds
    center, spread = _moments(past, samples, lengths, weights)
    start = ContextMember(center, spread, np.zeros(n_states), np.zeros((past.size, n_states)), RIDGES[0])
    sums = context_sums(past, start, samples, lengths, everywhere, weights, folds)
    names, present = (ContextMember.NAME, AheadMember.NAME), np.unique(training.folds)
    others = {
        (name, fold): added(
            [{key: values[other] for key, values in sums[name].items()} for other in present if other != fold]
        )
        for name in names
        for fold in present
    }
    solutions = np.stack(
        [
            np.hstack([ContextMember.solution(others[name, fold], ridge) for name in names for ridge in RIDGES])
            for fold in present
        ]
    )
    held_out = np.zeros((n_rows, solutions.shape[2]))
    for block, features in past.blocks(samples, lengths):
        columns = start.columns(features)
        for k, fold in enumerate(present):
            own = np.flatnonzero(folds[block] == fold)
            held_out[block.start + own] = columns[own] @ solutions[k]
    estimates = held_out.reshape(n_rows, len(names), len(RIDGES), n_states)
    least, later = least_ratio_of(floor, n_states), rows_ahead(lengths, AHEAD)
    trained = []
    for k, kind in enumerate((ContextMember, AheadMember)):
        found = estimates[:, k] if k == 0 else estimates[later, k]
        losses = (training.weights[:, None, None] * (found[rows] - targets[:, None]) ** 2).sum(axis=(0, 2))
        best = int(losses.argmin())
        with np.errstate(divide="ignore"):  # without a floor
            log_ratios = np.log(np.maximum(found[rows, best] / prior, least))
        total = {key: values.sum(axis=0) for key, values in sums[kind.NAME].items()}
        member = kind(center, spread, start.intercept, start.coefficients, RIDGES[best]).learned_from(total)
        trained.append(Trained(kind.NAME, None, member, log_ratios))
    return trained


def _moments(past: Context, samples: Array, lengths: Lengths, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every feature over the rows that count."""
    count, origin, first, second = 0, np.zeros(past.size), np.zeros(past.size), np.zeros(past.size)
    for block, features in past.blocks(samples, lengths):
        used = features[weights[block] > 0]
        if count == 0 and len(used) > 0:
            origin = used.mean(axis=0)
        count += len(used)
        first += (used - origin).sum(axis=0)
        second += ((used - origin) ** 2).sum(axis=0)
    mean = first / max(count, 1)
    spread = np.sqrt(np.maximum(second / max(count, 1) - mean**2, 0.0)) + LEAST_SPREAD
    return origin + mean, spread


def context_maker(
    context: Any, learner: Learner, framing: Framing, sequences: Sequences, random_state: np.random.RandomState
) -> Callable[[float], Context] | None:
    """What makes the features of the past for a mean stay; None where the pool does not look at it."""
    is_default = isinstance(learner, Pool) and learner.sources is None
    if context is None or not is_default or framing.n_columns > MOST_COLUMNS:
        return None
    longest = None if isinstance(context, str) else int(context)
    return lambda stay: learn_context(framing, sequences.samples, sequences.lengths, stay, longest, random_state)
