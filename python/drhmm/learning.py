"""From training frames to a model: labelled, partly labelled or not at all."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ._stages import StageChain
from ._validation import Array
from .durations import Durations
from .em import EMResult, Update, run_em
from .em_starts import START_SIGMA, best_starts
from .evidence import Evidence
from .evidence_scale import HeldOutSmoothing
from .features import Framing, choose_centers, median_distance
from .progress import no_progress, progress_bar
from .ratios.least_squares import LeastSquares
from .ratios.source import (
    RatioSource,
    SourceEvidence,
    checked_log_ratios,
    class_shares,
    fit_copy,
    out_of_fold_log_ratios,
)
from .stays import Stays
from .training import FEW, TrainingFrames
from .transitions import ChainRules, count_transitions


@dataclass(frozen=True)
class EMSettings:
    """Settings of expectation maximisation, as in `DensityRatioHMM`."""

    max_iter: int
    tol: float
    n_init: int
    paper: bool
    verbose: bool


@dataclass(frozen=True)
class Learned:
    """A fitted source and a chain; ``targets`` are the soft labels they were learned from."""

    source: RatioSource
    targets: Array
    transmat: Array
    startprob: Array
    stages: Durations | None = None
    n_iter: int = 0
    converged: bool = True
    history: list[float] = field(default_factory=list)


def learn_labelled(
    source: RatioSource,
    training: TrainingFrames,
    rules: ChainRules,
    evidence_scale: float | str,
    n_threads: int,
    verbose: bool,
) -> Learned:
    """Ratios and transition frequencies when every label is known.

    Sigma and rho are judged by smoothing held-out evidence where sequences change their state, each at its best
    evidence scale or at the given one, and by squared loss where they do not, or where a floor of 0 lets one frame
    decide everything.
    """
    counts, starts = count_transitions(training.codes, training.lengths, training.n_states)
    targets = training.one_hot()
    transmat, stages = rules.learn(counts, Stays.of(training.codes, training.lengths))
    startprob = rules.start_probabilities(starts)
    if not isinstance(source, LeastSquares):
        return Learned(_fit(source, training, targets), targets, transmat, startprob, stages)
    chain = StageChain.of(transmat, startprob, stages)
    smoothing = HeldOutSmoothing(training.codes, training.lengths, chain, n_threads)
    prior = class_shares(targets, training.weights)

    def judge(estimates: Array) -> float:
        log_ratios = training.spread(np.log(np.maximum(estimates / prior, source.floor * len(prior))))
        if evidence_scale == "cv":
            return -smoothing.best(log_ratios)
        return -float(smoothing.log_posteriors(log_ratios, float(evidence_scale)).sum())

    fitted = copy.deepcopy(source).fit(
        training.frames,
        targets,
        training.weights,
        folds=training.folds,
        judge=judge if smoothing.can_judge and source.floor > 0 else None,
        progress=progress_bar("cross-validation") if verbose else no_progress,
    )
    return Learned(fitted, targets, transmat, startprob, stages)


def _fit(source: RatioSource, training: TrainingFrames, targets: Array) -> RatioSource:
    return fit_copy(source, training.frames, targets, training.given_weights)


def learn_unlabelled(
    source: RatioSource,
    training: TrainingFrames,
    rules: ChainRules,
    settings: EMSettings,
    random_state: np.random.RandomState,
    n_threads: int,
) -> Learned:
    """Ratios and transitions by expectation maximisation; labels that are known stay as they are."""
    trial = _update(_without_search(source, training), training, training.one_hot(), settings)
    plain = replace(rules, durations=replace(rules.durations, learned=False))
    starts = best_starts(trial, training, plain, settings.n_init, random_state, n_threads)
    best: EMResult | None = None
    for k, start in enumerate(starts):
        update = _update(source, training, start, settings)
        name = "EM" if len(starts) == 1 else f"EM {k + 1} of {len(starts)}"
        result = run_em(
            update,
            training,
            rules,
            start,
            max_iter=settings.max_iter,
            tol=settings.tol,
            n_threads=n_threads,
            progress=progress_bar(name) if settings.verbose else no_progress,
        )
        if best is None or result.gain > best.gain:
            best, best_update = result, update
    assert best is not None
    if not best.converged:
        warnings.warn(
            f"EM did not converge in max_iter={settings.max_iter} iterations (tol={settings.tol:g})",
            ConvergenceWarning,
            stacklevel=4,
        )
    counts = np.bincount(best.targets.argmax(axis=1), minlength=training.n_states)
    tiny = [f"{state} ({count})" for state, count in enumerate(counts) if count < FEW]
    if tiny and len(training.rows) >= FEW * training.n_states:
        warnings.warn(
            f"EM ended with fewer than {FEW} frames of state {', '.join(tiny)}; n_states may be too large for these "
            "data, or n_init too small",
            UserWarning,
            stacklevel=4,
        )
    fitted = _finish(source, best_update, training, best.targets)
    return Learned(
        fitted, best.targets, best.transmat, best.startprob, best.stages, best.n_iter, best.converged, best.history
    )


def _without_search(source: RatioSource, training: TrainingFrames) -> RatioSource:
    """The source with fixed settings in place of cross-validation, for comparing starts."""
    if not isinstance(source, LeastSquares):
        return source
    without = clone(source)
    if source.sigma == "cv":
        without.sigma = START_SIGMA * median_distance(choose_centers(training.frames, 200, np.random.RandomState(0)))
    if source.rho == "cv":
        without.rho = "default"
    checked: RatioSource = without
    return checked


def _update(source: RatioSource, training: TrainingFrames, start: Array, settings: EMSettings) -> Update:
    """What EM calls with soft labels; for least squares, one factorisation serves all iterations."""
    if isinstance(source, LeastSquares):
        return source.soft_updates(training.frames, start, training.weights, training.folds, paper=settings.paper)

    def refit(targets: Array) -> Array:
        return checked_log_ratios(_fit(source, training, targets), training.frames, training.n_states)

    return refit


def _finish(source: RatioSource, update: Any, training: TrainingFrames, targets: Array) -> RatioSource:
    """A source fitted to the last soft labels."""
    if isinstance(source, LeastSquares):
        update.solve(targets)
        return copy.deepcopy(source).adopt(update)
    return _fit(source, training, targets)


def learn_evidence_scale(learned: Learned, source: RatioSource, training: TrainingFrames, n_threads: int) -> float:
    """The evidence scale from out-of-fold ratios at known labels; 1 where there are none to learn it from."""
    chain = StageChain.of(learned.transmat, learned.startprob, learned.stages)
    smoothing = HeldOutSmoothing(training.codes, training.lengths, chain, n_threads)
    if not smoothing.can_judge or len(np.unique(training.folds)) < 2:
        return 1.0
    if isinstance(learned.source, LeastSquares):
        log_ratios = learned.source.out_of_fold_log_ratios(
            training.frames, learned.targets, training.weights, training.folds
        )
    else:
        log_ratios = out_of_fold_log_ratios(
            source, training.frames, learned.targets, training.given_weights, training.folds
        )
    return smoothing.choose(training.spread(log_ratios))


def evidence_of(learned: Learned, framing: Framing, evidence_scale: float) -> Evidence:
    """Evidence for inference: arrays where the source is least squares, the fitted source otherwise."""
    if isinstance(learned.source, LeastSquares):
        return learned.source.evidence(framing, evidence_scale)
    return SourceEvidence(framing, learned.source, learned.targets.shape[1], evidence_scale)
