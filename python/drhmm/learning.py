"""From training frames to a model: labelled, partly labelled or not at all."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ._validation import Array
from .em import EMResult, Update, best_starts, progress_bar, run_em
from .evidence import Evidence
from .evidence_scale import choose_evidence_scale
from .features import Framing
from .ratios.least_squares import LeastSquares
from .ratios.source import (
    RatioSource,
    SourceEvidence,
    checked_log_ratios,
    class_shares,
    fit_copy,
    out_of_fold_log_ratios,
)
from .training import TrainingFrames
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
    n_iter: int = 0
    converged: bool = True
    history: list[float] = field(default_factory=list)


def learn_labelled(source: RatioSource, training: TrainingFrames, rules: ChainRules) -> Learned:
    """Ratios and transition frequencies when every label is known."""
    counts, starts = count_transitions(training.codes, training.lengths, training.n_states)
    targets = training.one_hot()
    transmat, startprob = rules.transition_probabilities(counts), rules.start_probabilities(starts)
    return Learned(_fit(source, training, targets), targets, transmat, startprob)


def _fit(source: RatioSource, training: TrainingFrames, targets: Array) -> RatioSource:
    if isinstance(source, LeastSquares):
        return copy.deepcopy(source).fit(training.frames, targets, training.weights, folds=training.folds)
    weights = training.weights if training.weighted else None
    return fit_copy(source, training.frames, targets, weights)


def learn_unlabelled(
    source: RatioSource,
    training: TrainingFrames,
    rules: ChainRules,
    settings: EMSettings,
    random_state: np.random.RandomState,
    n_threads: int,
) -> Learned:
    """Ratios and transitions by expectation maximisation; labels that are known stay as they are."""
    trial = _update(_without_search(source), training, training.one_hot(), settings)
    starts = best_starts(trial, training, rules, settings.n_init, random_state, n_threads)
    best: EMResult | None = None
    for k, start in enumerate(starts):
        update = _update(source, training, start, settings)
        name = "EM" if len(starts) == 1 else f"EM {k + 1} of {len(starts)}"
        progress = progress_bar(name, settings.max_iter, settings.verbose)
        result = run_em(
            update,
            training,
            rules,
            start,
            max_iter=settings.max_iter,
            tol=settings.tol,
            n_threads=n_threads,
            progress=progress,
        )
        if best is None or result.gain > best.gain:
            best, best_update = result, update
    assert best is not None
    fitted = _finish(source, best_update, training, best.targets)
    return Learned(fitted, best.targets, best.transmat, best.startprob, best.n_iter, best.converged, best.history)


def _without_search(source: RatioSource) -> RatioSource:
    """The source with default settings in place of cross-validation, for comparing starts."""
    if not isinstance(source, LeastSquares):
        return source
    defaults = {name: "default" for name in ("sigma", "rho") if getattr(source, name) == "cv"}
    without: RatioSource = clone(source).set_params(**defaults)
    return without


def _update(source: RatioSource, training: TrainingFrames, start: Array, settings: EMSettings) -> Update:
    """What EM calls with soft labels; for least squares, one factorisation serves all iterations."""
    if isinstance(source, LeastSquares):
        return source.soft_updates(training.frames, start, training.weights, training.folds, paper=settings.paper)
    weights = training.weights if training.weighted else None

    def refit(targets: Array) -> Array:
        fitted = fit_copy(source, training.frames, targets, weights)
        return checked_log_ratios(fitted, training.frames, training.n_states)

    return refit


def _finish(source: RatioSource, update: Any, training: TrainingFrames, targets: Array) -> RatioSource:
    """A source fitted to the last soft labels."""
    if isinstance(source, LeastSquares):
        update.solve(targets)
        return copy.deepcopy(source).adopt(update)
    return _fit(source, training, targets)


def learn_evidence_scale(learned: Learned, source: RatioSource, training: TrainingFrames, n_threads: int) -> float:
    """The evidence scale from out-of-fold ratios at known labels; 1 where there are none to learn it from."""
    if not training.known.any() or len(np.unique(training.folds)) < 2:
        return 1.0
    if isinstance(learned.source, LeastSquares):
        log_ratios = learned.source.out_of_fold_log_ratios(
            training.frames, learned.targets, training.weights, training.folds
        )
    else:
        weights = training.weights if training.weighted else None
        log_ratios = out_of_fold_log_ratios(source, training.frames, learned.targets, weights, training.folds)
    return choose_evidence_scale(
        training.spread(log_ratios),
        training.codes,
        training.lengths,
        learned.transmat,
        learned.startprob,
        n_threads,
    )


def shares(learned: Learned, training: TrainingFrames) -> Array:
    """Share of each state among the training frames."""
    return class_shares(learned.targets, training.weights)


def evidence_of(learned: Learned, framing: Framing, evidence_scale: float) -> Evidence:
    """Evidence for inference: arrays where the source is least squares, the fitted source otherwise."""
    if isinstance(learned.source, LeastSquares):
        return learned.source.evidence(framing, evidence_scale)
    return SourceEvidence(framing, learned.source, learned.targets.shape[1], evidence_scale)
