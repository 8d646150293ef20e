"""Learning from the context: sums over blocks, the ridge and held-out log ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths
from ..data.sequences import Sequences
from ..evidence.pool_members import AHEAD, AheadMember, ContextMember, context_sums
from ..evidence.pooled import least_ratio_of
from ..features.context import Context, learn_context, rows_ahead
from ..features.frames import Framing
from ..ratios.learner import Learner, Task, Trained
from ..ratios.pool import Pool
from ..tuning.scales import drawn_parts
from .training_frames import TrainingFrames

#: Candidate ridges over the number of frames; the held-out squared loss decides.
RIDGES = (1e-3, 1e-2, 1e-1)

#: The approximate number of rows from which `fit` learns the context members: over a hundred per feature.
MOST_LEARNED = 50_000

#: The least standard deviation of a feature.
LEAST_SPREAD = 1e-6


def learn_context_members(training: TrainingFrames, past: Context, task: Task, floor: float) -> list[Trained]:
    """Learn context members and, from other folds, log ratios of the drawn frames."""
    samples, lengths, prior = training.samples, training.lengths, task.prior
    n_rows, n_states = len(samples), len(prior)
    everywhere, weights = np.zeros((n_rows, n_states)), np.zeros(n_rows)
    everywhere[training.rows], weights[training.rows] = task.targets, training.weights
    folds = np.zeros(n_rows, dtype=np.int64)
    folds[training.rows] = training.folds
    judged = task.judged
    rows = training.rows if task.drawn is None else training.rows[task.drawn]
    later = rows_ahead(lengths, AHEAD)[rows]
    needed = np.union1d(rows, later)
    center, spread = _moments(past, samples, lengths, weights, needed)
    start = ContextMember(center, spread, np.zeros(n_states), np.zeros((past.size, n_states)), RIDGES[0])
    ends = np.cumsum(lengths).tolist()
    parts = drawn_parts(training.codes, list(zip([0, *ends[:-1]], ends, strict=True)), MOST_LEARNED)
    learned = None if len(parts) == len(lengths) else np.concatenate([np.arange(*part) for part in parts])
    sums = context_sums(past, start, samples, lengths, everywhere, weights, folds, learned)
    names, present = (ContextMember.NAME, AheadMember.NAME), np.unique(training.folds)
    # Both members have one Gram matrix.
    gram = sums[ContextMember.NAME]["gram"]
    moment = np.concatenate([sums[name]["moment"] for name in names], axis=2)
    solutions = np.zeros((folds.max() + 1, len(RIDGES), 1 + past.size, len(names) * n_states))
    for fold in present:
        others = {"gram": gram.sum(axis=0) - gram[fold], "moment": moment.sum(axis=0) - moment[fold]}
        solutions[fold] = [ContextMember.solution(others, ridge) for ridge in RIDGES]
    estimates = np.zeros((len(needed), len(RIDGES), len(names), n_states))
    for block, features in past.blocks(samples, lengths, needed):
        at = slice(*np.searchsorted(needed, (block.start, block.stop)))
        columns, own_folds = start.columns(features[needed[at] - block.start]), folds[needed[at]]
        for fold in np.unique(own_folds):
            own = np.flatnonzero(own_folds == fold)
            for r, solution in enumerate(solutions[fold]):
                estimates[at.start + own, r] = (columns[own] @ solution).reshape(len(own), len(names), n_states)
    least, trained = least_ratio_of(floor, n_states), []
    for k, (kind, read) in enumerate(((ContextMember, rows), (AheadMember, later))):
        held_out = estimates[np.searchsorted(needed, read), :, k]
        losses = (judged.weights[:, None, None] * (held_out - judged.targets[:, None]) ** 2).sum(axis=(0, 2))
        best = int(losses.argmin())
        with np.errstate(divide="ignore"):  # without a floor
            log_ratios = np.log(np.maximum(held_out[:, best] / prior, least))
        total = {key: values.sum(axis=0) for key, values in sums[kind.NAME].items()}
        member = kind(center, spread, start.intercept, start.coefficients, RIDGES[best]).learned_from(total)
        trained.append(Trained(kind.NAME, None, member, log_ratios))
    return trained


def _moments(
    past: Context, samples: Array, lengths: Lengths, weights: Array, rows: npt.NDArray[np.int64]
) -> tuple[Array, Array]:
    """Mean and standard deviation of every feature over weighted rows."""
    count, origin, first, second = 0, np.zeros(past.size), np.zeros(past.size), np.zeros(past.size)
    for block, features in past.blocks(samples, lengths, rows):
        used = features[weights[block] > 0]
        if count == 0 and len(used) > 0:
            origin = used.mean(axis=0)
        count += len(used)
        used -= origin
        first += used.sum(axis=0)
        second += np.einsum("nf,nf->f", used, used)
    mean = first / max(count, 1)
    spread = np.sqrt(np.maximum(second / max(count, 1) - mean**2, 0.0)) + LEAST_SPREAD
    return origin + mean, spread


def context_maker(
    context: Any, learner: Learner, framing: Framing, sequences: Sequences, random_state: np.random.RandomState
) -> Callable[[float], Context] | None:
    """Return a function from the mean stay to context features; None without context."""
    is_default = isinstance(learner, Pool) and learner.sources is None
    if context is None or not is_default:
        return None
    longest = None if isinstance(context, str) else int(context)
    return lambda stay: learn_context(framing, sequences.samples, sequences.lengths, stay, longest, random_state)
