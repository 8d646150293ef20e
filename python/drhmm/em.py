"""Learning without labels, or with some: expectation maximisation on density ratios."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from . import _core, recursion
from ._labels import UNKNOWN
from ._validation import Array
from .features import choose_centers, median_distance
from .training import TrainingFrames
from .transitions import ChainRules, count_transitions

#: Frames on either side over which features are averaged before k-means; 0 is plain k-means.
CONTEXTS = (10, 0, 3, 30)
#: Centres of the features that k-means sees.
START_CENTERS = 100
#: Kernel width of starts over the median distance: finer than for labelled data, so that clusters can have any shape.
START_SIGMA = 0.5
#: Iterations after which starts are compared.
TRIAL_ITERATIONS = 3
#: States up to which every order is tried where transitions tell them apart.
MOST_ORDERED = 7
#: A state that holds less than this many frames is as good as empty.
EMPTY = 1.0

#: Learns from the targets (N, S) of the complete frames and returns their log ratios (N, S).
Update = Callable[[Array], Array]

#: Is told iteration, gain, change and whether EM has converged.
Progress = Callable[[int, float, float, bool], None]


@dataclass(frozen=True)
class EMResult:
    """Where expectation maximisation ended.

    ``targets`` are the posteriors of the complete frames (N, S); ``history`` is the gain of every iteration.
    """

    targets: Array
    transmat: Array
    startprob: Array
    n_iter: int
    converged: bool
    history: list[float]

    @property
    def gain(self) -> float:
        """Mean log likelihood of a frame against frames that are independent of one another."""
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
    progress: Progress = lambda iteration, gain, change, converged: None,
) -> EMResult:
    """Alternate learning ratios from soft labels and inferring soft labels from ratios.

    Stops when the posteriors of a frame change by less than `tol` on average. Known labels are clamped: their frames
    have evidence for their own state only. The gain is the mean over frames of log sum_i p(x_t = i | y_1..y_{t-1})
    w_i(y_t) with w_i(y) = p(y | i) / p(y): the log likelihood of the sequences over that of independent frames.
    """
    targets = start
    counts, starts = _start_counts(start, training)
    transmat = rules.transition_probabilities(counts, certain=False)
    startprob = rules.start_probabilities(starts)
    first = np.cumsum([0, *training.lengths[:-1]])
    history: list[float] = []
    empty: set[int] = set()
    converged = False
    while len(history) < max_iter and not converged:
        mass = training.weights @ targets * (len(targets) / training.weights.sum())
        empty.update(np.flatnonzero(mass < EMPTY).tolist())
        evidence = training.spread(update(_protected(targets, mass, training.known)))
        _clamp(evidence, training.codes)
        posteriors, counts = recursion.expectation(
            evidence, transmat, startprob, lengths=training.lengths, n_threads=n_threads
        )
        history.append(_gain(evidence, transmat, startprob, training.lengths, n_threads))
        transmat = rules.transition_probabilities(counts)
        startprob = rules.start_probabilities(posteriors[first].sum(axis=0))
        change = float(np.abs(posteriors[training.rows] - targets).sum(axis=1).mean() / 2)
        targets = posteriors[training.rows]
        converged = change < tol
        progress(len(history), history[-1], change, converged)
    for state in sorted(empty):
        warnings.warn(
            f"EM: state {state} ran out of frames on the way and was kept alive with the weight of one; "
            "n_states may be too large for these data",
            UserWarning,
            stacklevel=4,
        )
    return EMResult(targets, transmat, startprob, len(history), converged, history)


def _start_counts(start: Array, training: TrainingFrames) -> tuple[Array, Array]:
    """Transition counts of the likeliest states of a start."""
    codes = np.full(training.n_rows, UNKNOWN, dtype=np.int64)
    codes[training.rows] = start.argmax(axis=1)
    return count_transitions(codes, training.lengths, training.n_states)


def _protected(targets: Array, mass: Array, known: npt.NDArray[np.bool_]) -> Array:
    """Targets in which no state is empty: a state without frames gets a trace of every frame of unknown label."""
    if (mass >= EMPTY).all():
        return targets
    lifted = targets + ~known[:, None] * (mass < EMPTY) * (EMPTY / len(targets))
    normalized: Array = lifted / lifted.sum(axis=1, keepdims=True)
    return normalized


def _clamp(evidence: Array, codes: npt.NDArray[np.int64]) -> None:
    """Leave frames with a known label evidence for their own state only; missing frames get certainty from it."""
    known = np.flatnonzero(codes != UNKNOWN)
    own = evidence[known, codes[known]]
    evidence[known] = -np.inf
    evidence[known, codes[known]] = np.where(np.isnan(own), 0.0, own)


def _gain(evidence: Array, transmat: Array, startprob: Array, lengths: list[int], n_threads: int) -> float:
    """Mean log predictive weight of the frames that have evidence."""
    filtered = recursion.filter(evidence, transmat, startprob, lengths=lengths, n_threads=n_threads)
    predicted = np.empty_like(filtered)
    predicted[1:] = filtered[:-1] @ transmat
    predicted[np.cumsum([0, *lengths[:-1]])] = startprob
    present = ~np.isnan(evidence[:, 0])
    largest = evidence[present].max(axis=1, keepdims=True)
    weights = (predicted[present] * np.exp(evidence[present] - largest)).sum(axis=1)
    return float((np.log(np.maximum(weights, np.finfo(float).tiny)) + largest[:, 0]).mean())


def best_starts(
    update: Update,
    training: TrainingFrames,
    rules: ChainRules,
    n_starts: int,
    random_state: np.random.RandomState,
    n_threads: int,
) -> list[Array]:
    """The `n_starts` starts with the largest gain after a few iterations, best first."""
    candidates = [_ordered(start, training, rules) for start in _candidates(training, n_starts, random_state)]
    if len(candidates) == 1:
        return candidates
    gains: dict[int, float] = {}
    failure: ValueError | None = None
    for k, start in enumerate(candidates):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                trial = run_em(update, training, rules, start, max_iter=TRIAL_ITERATIONS, tol=0.0, n_threads=n_threads)
                gains[k] = trial.gain
            except ValueError as error:  # this start starves a state that the source cannot do without
                failure = error
    if not gains:
        assert failure is not None
        raise failure
    return [candidates[k] for k in sorted(gains, key=lambda k: -gains[k])[:n_starts]]


def _candidates(training: TrainingFrames, n_starts: int, random_state: np.random.RandomState) -> list[Array]:
    """Soft labels to start from: k-means on features averaged over contexts of different lengths.

    Averages over neighbours tell states apart whose single frames overlap or surround each other. Where labels are
    known, clusters are named after the labels they agree with best, and the labelled frames alone give one start more.
    """
    centers = choose_centers(training.frames, START_CENTERS, random_state)
    sigma = START_SIGMA * median_distance(centers)
    features = _core.squared_exponential(training.frames, centers, sigma)
    starts = []
    for k in range(max(n_starts, len(CONTEXTS))):
        averaged = _averages(features, training, CONTEXTS[k % len(CONTEXTS)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different frames than states
            repeats = 10 if k < len(CONTEXTS) else 1
            kmeans = KMeans(training.n_states, n_init=repeats, random_state=random_state)
            clusters = kmeans.fit_predict(averaged)
        starts.append(_named(np.eye(training.n_states)[clusters], training))
    if training.known.any():
        starts.append(_from_labels(features, training))
    return starts


def _ordered(start: Array, training: TrainingFrames, rules: ChainRules) -> Array:
    """Clusters in the order that suits forbidden or given transitions best; they come in no order of their own.

    Every order is tried, up to `MOST_ORDERED` states. Labels fix the order where there are any.
    """
    if not rules.tells_states_apart or training.known.any() or training.n_states > MOST_ORDERED:
        return start
    counts, starts = _start_counts(start, training)
    log_a, log_pi = rules.log_preferences()

    def fit(order: tuple[int, ...]) -> float:
        return float((counts[np.ix_(order, order)] * log_a).sum() + (starts[list(order)] * log_pi).sum())

    best = max(itertools.permutations(range(training.n_states)), key=fit)
    return np.ascontiguousarray(start[:, list(best)])


def _averages(features: Array, training: TrainingFrames, context: int) -> Array:
    """Mean features of each complete frame and the `context` complete frames on either side, inside each sequence."""
    if context == 0:
        return features
    averaged = np.empty_like(features)
    sequence = np.repeat(np.arange(len(training.lengths)), training.lengths)[training.rows]
    for k in np.unique(sequence):
        own = np.flatnonzero(sequence == k)
        sums = np.vstack([np.zeros(features.shape[1]), np.cumsum(features[own], axis=0)])
        low = np.maximum(np.arange(len(own)) - context, 0)
        high = np.minimum(np.arange(len(own)) + context + 1, len(own))
        averaged[own] = (sums[high] - sums[low]) / (high - low)[:, None]
    return averaged


def _named(targets: Array, training: TrainingFrames) -> Array:
    """Columns of clusters in the order in which they agree best with the known labels, known rows clamped."""
    known = training.known
    labels = training.one_hot()
    _, order = linear_sum_assignment(-labels[known].T @ targets[known])
    named = np.ascontiguousarray(targets[:, order])
    named[known] = labels[known]
    return named


def _from_labels(features: Array, training: TrainingFrames) -> Array:
    """Least squares on the labelled frames alone, made into probabilities."""
    known, labels = training.known, training.one_hot()
    gram = np.ascontiguousarray(features[known].T @ features[known])
    factor = _core.RegularizedGram(gram, 0.01 * float(known.sum()))
    estimates = features @ factor.solve(np.ascontiguousarray(features[known].T @ labels[known]))
    targets = np.maximum(estimates, 1e-3)
    targets /= targets.sum(axis=1, keepdims=True)
    targets[known] = labels[known]
    return targets


def progress_bar(name: str, total: int, verbose: bool) -> Progress:
    """One line on standard error that is written over by every iteration; nothing unless `verbose`."""
    if not verbose:
        return lambda iteration, gain, change, converged: None

    def show(iteration: int, gain: float, change: float, converged: bool) -> None:
        done = min(20, 20 * iteration // max(total, 1))
        bar = "#" * done + "." * (20 - done)
        last = converged or iteration == total
        line = f"\r{name} [{bar}] {iteration}/{total}  gain {gain:.4f}  change {change:.1e}"
        sys.stderr.write(line + (" \n" if last else " "))
        sys.stderr.flush()

    return show
