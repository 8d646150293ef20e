"""Learning without labels: EM with kernels, or with Gaussians if clearly better."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning

from ..data.checks import Array, checked_log_ratios
from ..data.labels import UNKNOWN
from ..data.user_warnings import warn
from ..evidence.pool_members import MOST_JOINT
from ..ratios.learner import Learner, Updates, normalised
from ..ratios.least_squares import EM_RIDGE, Gaussian
from ..ratios.pool import Pool
from ..recursion import native_chain, run
from ..system.progress import no_progress, progress_bar
from ..tuning.folds import even_blocks, mean_and_error
from .em import EMResult, clamped, run_em
from .em_starts import best_starts, starts_from_features, starts_from_frames
from .labelled import Job, Learned, choice_of, smoothing_of
from .training_frames import FEW, TrainingFrames

#: Iterations before comparing starts of kernels and of Gaussians, and Gaussian starts to continue.
KERNEL_TRIALS, GAUSSIAN_TRIALS, GAUSSIAN_STARTS = 2, 3, 2

#: Rows of a piece, and of a draw on which EM finds the states: at least this many, or this share of all rows.
PIECE, FEWEST_DRAWN, SHARE_DRAWN = 250, 3000, 0.1

#: Approximate number of blocks of time steps for standard errors of leads.
N_BLOCKS = 20

#: Columns with at most this many values have no density.
MOST_DISCRETE = 10


@dataclass(frozen=True)
class Followed:
    """The best result of EM with one learner."""

    learner: Learner
    updates: Updates
    result: EMResult


def learn_unlabelled(job: Job, random_state: RandomState) -> Learned:
    """Learn ratios and transitions by EM; known labels stay fixed.

    With many rows, EM finds the states in a draw and then continues with all rows.
    """
    _, training, _, settings = job
    drawn = _drawn(training, random_state)
    best, reason = _best(job._replace(training=drawn), random_state)
    if drawn is not training:
        start = _states_everywhere(best, training, settings.n_threads)
        best = _followed(job._replace(learner=best.learner), [start])
    result = best.result
    if not result.converged:
        warn(
            f"EM did not converge in max_iter={settings.max_iter} iterations (tol={settings.tol:g})",
            ConvergenceWarning,
        )
    counts = np.bincount(result.targets.argmax(axis=1), minlength=training.n_states)
    tiny = [f"{state} ({count})" for state, count in enumerate(counts) if count < FEW]
    if tiny and len(training.rows) >= FEW * training.n_states:
        warn(
            f"EM ended with fewer than {FEW} frames of state {', '.join(tiny)}; n_states may be too large for these "
            "data, or n_init too small",
        )
    chain = result.transmat, result.startprob, result.stages
    smoothing = smoothing_of(training, chain, settings)
    trained = best.updates.trained(result.targets, smoothing.can_judge)
    choice = choice_of(best.learner, trained, smoothing, training.rows, training.task(result.targets).prior)
    choice = replace(choice, reason=reason or choice.reason)
    return Learned(trained, choice, result.targets, *chain, result.n_iter, result.converged, result.history)


def _drawn(training: TrainingFrames, random_state: RandomState) -> TrainingFrames:
    """Return all rows if these are few, else random pieces and those with labels."""
    n_pieces = -(-training.n_rows // PIECE)
    n_drawn = round(max(FEWEST_DRAWN / PIECE, SHARE_DRAWN * n_pieces))
    if n_pieces <= 2 * n_drawn:
        return training
    chosen = np.zeros(n_pieces, dtype=bool)
    chosen[random_state.permutation(n_pieces)[:n_drawn]] = True
    piece = np.arange(training.n_rows) // PIECE
    chosen[piece[training.codes != UNKNOWN]] = True
    part = training.taken(chosen[piece])
    return part if len(part.rows) >= FEWEST_DRAWN / 2 else training


def _states_everywhere(found: Followed, training: TrainingFrames, n_threads: int) -> Array:
    """Return posteriors (N, S) of all complete frames by the result of EM on a draw."""
    result = found.result
    source = found.updates.trained(result.targets, False)[0].source
    assert source is not None
    evidence = training.spread(checked_log_ratios(source, training.frames, training.n_states))
    chain = native_chain(result.transmat, result.startprob, result.stages)
    posteriors = run("smooth", chain, evidence, training.lengths, None, n_threads)
    return clamped(posteriors[training.rows], training.one_hot())


def _best(job: Job, random_state: RandomState) -> tuple[Followed, str]:
    """Return the best result of EM, and the reason if it is that of Gaussians.

    The default pool uses kernels. Without any label it tries Gaussians, too, and takes them if their states predict
    held-out time steps clearly better.
    """
    learner, training, _, settings = job
    starts = starts_from_features(job, random_state)
    if is_gaussian := isinstance(learner, Gaussian):
        starts = starts_from_frames(job, random_state) + starts
    n_trials = GAUSSIAN_TRIALS if is_gaussian else KERNEL_TRIALS
    best = _followed(job, starts, settings.n_init, n_trials)
    if not (isinstance(learner, Pool) and not settings.paper and _suits_gaussians(learner, training)):
        return best, ""
    gaussian = Gaussian(0.0, settings.n_threads, EM_RIDGE)
    starts += starts_from_frames(job, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival = _followed(job._replace(learner=gaussian), starts, GAUSSIAN_STARTS, GAUSSIAN_TRIALS)
    kernels = learner.learners()[0]
    reason = _verdict(rival.result, best.result, kernels, gaussian, training, settings.n_threads)
    return (rival if reason else best), reason


def _followed(job: Job, starts: list[Array], n_starts: int = 1, n_trials: int = 0) -> Followed:
    """Return the result with the largest gain among the most promising starts."""
    learner, training, rules, settings = job
    if len(starts) > 1:
        starts = best_starts(job, starts, n_starts, n_trials)
    limits: Any = {"max_iter": settings.max_iter, "tol": settings.tol, "n_threads": settings.n_threads}
    best: Followed | None = None
    for k, start in enumerate(starts):
        updates = learner.updates(training.task(start), paper=settings.paper)
        name = "EM" if len(starts) == 1 else f"EM {k + 1} of {len(starts)}"
        progress = progress_bar(name) if settings.verbose else no_progress
        result = run_em(updates, training, rules, start, **limits, progress=progress)
        if best is None or result.gain > best.result.gain:
            best = Followed(learner, updates, result)
    assert best is not None
    return best


def _suits_gaussians(pool: Pool, training: TrainingFrames) -> bool:
    """Whether Gaussians compete: default pool, no labels, continuous columns."""
    discrete = [len(np.unique(column)) <= MOST_DISCRETE for column in training.samples.T]
    is_default = pool.sources is None and training.frames.shape[1] <= MOST_JOINT
    return is_default and not training.known.any() and 2 * sum(discrete) <= len(discrete)


def _verdict(
    rival: EMResult, best: EMResult, kernels: Learner, gaussian: Gaussian, training: TrainingFrames, n_threads: int
) -> str:
    """Explain why the Gaussian states are taken; empty if they are not.

    Two judges learn from the states of each on four of five folds and predict the fifth. Their leads are in standard
    errors over blocks. Kernels, which fit any density, must slightly favour the Gaussian states, and the likelihood of
    Gaussians must favour them clearly. With a window, frames overlap, and only the likelihood of the newest sample
    given the others is fair: it must be clear, and outweigh the kernels.
    """
    lengths = [end - begin for begin, end in even_blocks(training.lengths, N_BLOCKS)]
    values = np.zeros((2, 2, len(lengths)))
    for own, result in zip(values, (best, rival), strict=True):
        task, chain = training.task(result.targets), native_chain(result.transmat, result.startprob)
        held_out = kernels.updates(task).trained(result.targets, True)[0].held_out
        assert held_out is not None
        densities = gaussian.held_out_newest(task, training.samples.shape[1])
        for judge, evidence in enumerate((normalised(held_out, task.prior), densities)):
            own[judge] = run("log_likelihood", chain, training.spread(evidence), lengths, None, n_threads) / lengths
    lead, error = mean_and_error(values[1] - values[0], np.array(lengths))
    by_kernels, by_likelihood = np.where(error > 0, lead / np.maximum(error, 1e-300), 0.0)
    if training.frames.shape[1] > training.samples.shape[1]:
        ahead = by_likelihood > 2 and by_likelihood + by_kernels > 1.5
    else:
        ahead = by_kernels > 1 and by_likelihood > 1.5
    found = f"Gaussians predict held-out time steps better than kernels, by {by_likelihood:.1f} standard errors"
    return found if ahead else ""
