"""Starts of EM: clusters of averaged frames, compared by a few iterations."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from functools import partial

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .. import _core
from ..chain.transitions import ChainRules
from ..data.checks import Array
from ..features.frames import choose_centers, median_distance
from ..system.calls import limited_threads
from ..tuning.kernel_search import START_SIGMA
from .em import clamped, run_em, start_counts
from .labelled import Job
from .training_frames import TrainingFrames

#: Frames on either side in the averages of features for k-means; 0 is plain k-means.
CONTEXTS = (10, 0, 3, 30)
#: Kernel widths for k-means, as multiples of the width in EM: narrow kernels separate close clusters.
WIDTHS = (1.0, 0.5, 0.25, 0.125)
#: Runs of k-means for each context and width.
REPEATS = 3
#: K-means learns from every n-th row if there are at least n times this number.
LEAST_CLUSTERED = 1000
#: Centres of the features for k-means.
START_CENTERS = 100
#: The most states for trying every order, if transitions distinguish states.
MOST_ORDERED = 7


def best_starts(job: Job, candidates: list[Array], n_starts: int, n_trials: int) -> list[Array]:
    """Return the `n_starts` candidates with the largest gain after some iterations.

    The last candidate starts from the labels, if any. It is kept and comes first, as its states match the labels.
    """
    learner, training, rules, settings = job
    update = learner.updates(training.task(training.one_hot()), paper=settings.paper, search=False)
    gains = np.full(len(candidates), -np.inf)
    for k, start in enumerate(candidates):
        # A start may leave a state with too few frames for the source.
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore", UserWarning)
            gains[k] = run_em(
                update, training, rules.without_shapes, start, max_iter=n_trials, tol=0.0, n_threads=settings.n_threads
            ).gain
    if training.known.any() and gains[-1] > -np.inf:
        gains[-1] = np.inf
    best = np.argsort(-gains, kind="stable")[:n_starts]
    return [candidates[k] for k in best if gains[k] > -np.inf or k == best[0]]


def starts_from_features(job: Job, random_state: np.random.RandomState) -> list[Array]:
    """Soft labels from k-means on features of several widths and contexts.

    Averages over neighbours separate states with overlapping frames. Known labels give one more start, the last.
    """
    training, n_starts = job.training, job.settings.n_init
    centers = choose_centers(training.frames, START_CENTERS, random_state, training.codes[training.rows])
    features = [
        _core.squared_exponential(training.frames, centers, START_SIGMA * width * median_distance(centers))
        for width in WIDTHS
    ]
    pairs = list(itertools.product(features, CONTEXTS))
    starts = [
        _clusters(*pairs[k % len(pairs)], training, job.rules, random_state) for k in range(max(n_starts, len(pairs)))
    ]
    return [*starts, _from_labels(features[0], training)] if training.known.any() else starts


def starts_from_frames(job: Job, random_state: np.random.RandomState) -> list[Array]:
    """Soft labels from k-means on the frames themselves, which suits Gaussians."""
    return [_clusters(job.training.frames, context, job.training, job.rules, random_state) for context in CONTEXTS]


def _clusters(
    features: Array, context: int, training: TrainingFrames, rules: ChainRules, random_state: np.random.RandomState
) -> Array:
    """One-hot clusters of averaged features, ordered by labels or transitions."""
    # OpenMP spins while it waits, which costs several times the work on a busy machine.
    with warnings.catch_warnings(), limited_threads(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different frames than states
        kmeans = KMeans(training.n_states, n_init=REPEATS, random_state=random_state)
        averages = _averages(features, training, context)
        clusters = kmeans.fit(averages[:: max(1, len(averages) // LEAST_CLUSTERED)]).predict(averages)
    return _ordered(np.eye(training.n_states)[clusters], training, rules)


def _ordered(start: Array, training: TrainingFrames, rules: ChainRules) -> Array:
    """Order clusters to agree with labels, or without any to suit the transitions.

    Known rows are clamped. For forbidden or given transitions, every order is tried, up to `MOST_ORDERED` states.
    """
    if (known := training.known).any():
        labels = training.one_hot()
        _, names = linear_sum_assignment(-labels[known].T @ start[known])
        return clamped(np.ascontiguousarray(start[:, names]), labels)
    if not rules.tells_states_apart or training.n_states > MOST_ORDERED:
        return start
    counts, starts = start_counts(start, training)
    log_a, log_pi = rules.log_preferences()

    def fit(order: tuple[int, ...]) -> float:
        return float((counts[np.ix_(order, order)] * log_a).sum() + (starts[list(order)] * log_pi).sum())

    best = max(itertools.permutations(range(training.n_states)), key=fit)
    return np.ascontiguousarray(start[:, list(best)])


def _averages(features: Array, training: TrainingFrames, context: int) -> Array:
    """Mean features of each complete frame and `context` neighbours on either side."""
    if context == 0:
        return features
    averaged = np.empty_like(features)
    edges = np.searchsorted(training.sequence[training.rows], np.arange(len(training.lengths) + 1))
    smooth = partial(uniform_filter1d, size=2 * context + 1, axis=0, mode="constant")
    for begin, end in itertools.pairwise(edges):
        averaged[begin:end] = smooth(features[begin:end]) / smooth(np.ones((end - begin, 1)))
    return averaged


def _from_labels(features: Array, training: TrainingFrames) -> Array:
    """Least squares on the labelled frames alone, as probabilities."""
    known, labels = training.known, training.one_hot()
    gram = np.ascontiguousarray(features[known].T @ features[known])
    factor = _core.RegularizedGram(gram, 0.01 * float(known.sum()))
    estimates = features @ factor.solve(np.ascontiguousarray(features[known].T @ labels[known]))
    targets = np.maximum(estimates, 1e-3)
    return clamped(targets / targets.sum(axis=1, keepdims=True), labels)
