"""Evidence for the unknown: two scores, their p-values and their e-values.

G is minus the log density of a mixture of shrunk class Gaussians, K that of kernels on whitened frames. P-values come
from normal frames that were scored without their own block. Where states last, frames are joined by a running mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import RandomState

from .. import _core
from ..data.checks import Array, FrozenArrays, Integers, Lengths
from .excursions import Excursions
from .score_pvalues import ScoreTable, highest_normal

#: The most kernel centres of the density.
MOST_CENTERS = 200

#: Candidate kernel widths, in whitened units, and the number of frames for choosing.
WIDTHS = 2.0 ** np.arange(-3, 2, 0.5)
JUDGES = 2000

#: Candidate exponents of e-values, the largest first.
SCALES = 2.0 ** -np.arange(7)

#: Samples of a running mean; and its conditions: the least mean stay as a multiple of it, the least mean
#: autocorrelation of neighbours, and the fewest rows per column.
SPAN = 10
SHORTEST_STAY = 10
LEAST_CORRELATION = 0.1
FEWEST_ROWS = 10

#: The most rounds of learning densities without the outliers found so far.
MOST_ROUNDS = 3

#: Blocks of each class, each scored by the others.
N_BLOCKS = 5

#: The least share of a scaled identity in the covariance of all classes.
LEAST_SHRINKAGE = 1e-6

#: The most numbers in all covariance matrices together.
MOST_NUMBERS = 2**26

#: Limit of distances, so that no square overflows; the native core has the same limit.
FARTHEST = 1e100

#: The most normal frames in the excursions of a model; the highest ones are kept.
MOST_VALUES = 2**16


@dataclass(frozen=True)
class Densities(FrozenArrays):
    """Density of known frames: a mixture of class Gaussians, and kernels."""

    shares: Array
    means: Array
    gaussian_whitening: Array
    log_scales: Array
    origin: Array
    whitening: Array
    centers: Array
    weights: Array
    width: float

    #: Letters for axes: S states, D columns of a frame, C centres.
    AXES: ClassVar[dict[str, str]] = {
        "shares": "S",
        "means": "S D",
        "gaussian_whitening": "SD D",
        "log_scales": "S",
        "origin": "D",
        "whitening": "D D",
        "centers": "C D",
        "weights": "C",
    }

    def native(
        self, tables: tuple[ScoreTable, ScoreTable], scales: tuple[float, float], joint: float
    ) -> _core.NoveltyEvidence:
        """The native counterpart."""
        return _core.NoveltyEvidence(
            shares=self.shares,
            gaussians=(self.origin, self.means, self.gaussian_whitening, self.log_scales, 1.0),
            origin=self.origin,
            whitening=self.whitening,
            centers=self.centers,
            weights=self.weights,
            width=self.width,
            tables=[table.arrays() for table in tables],
            scales=list(scales),
            joint=joint,
        )

    def scores(self, frames: Array, n_threads: int) -> Array:
        """G and K of frames, (n, 2)."""
        nothing = ScoreTable(np.zeros(1), np.ones(1), 0.0, 1.0)
        scores: Array = self.native((nothing, nothing), (1.0, 1.0), 1.0).scores(np.ascontiguousarray(frames), n_threads)
        return scores


@dataclass(frozen=True)
class FrameEvidence(FrozenArrays):
    """Evidence log w_* = joint log((e_G^kappa_G + e_K^kappa_K) / 2) of frames."""

    densities: Densities
    tables: tuple[ScoreTable, ScoreTable]
    scales: tuple[float, float]
    joint: float
    _native: _core.NoveltyEvidence = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_native", self.densities.native(self.tables, self.scales, self.joint))

    @property
    def native(self) -> _core.NoveltyEvidence:
        """The native counterpart."""
        return self._native

    def scores(self, frames: Array, n_threads: int = 1) -> Array:
        """G and K of frames without NaN, (n, 2)."""
        scores: Array = self._native.scores(np.ascontiguousarray(frames), n_threads)
        return scores

    def log_evidence(self, frames: Array, n_threads: int = 1) -> Array:
        """Log w_*, (n,)."""
        logs: Array = self._native.log_evidence(np.ascontiguousarray(frames), n_threads)
        return logs

    def by_column(self, frames: Array, n_columns: int) -> Array:
        """Attribute log w_* of frames (n, D) to the columns of a sample, (n, d).

        A squared distance is the sum of (y - mu)_j (Sigma^-1 (y - mu))_j. Gaussians use the distance to the likeliest
        state, kernels the mean over the centres, weighted by their shares in the density. The terms of a column are
        added up, and positive sums are scaled to the share of the score in log w_*.
        """
        frames = np.clip(frames, -FARTHEST, FARTHEST)
        scores = self.scores(frames)
        logs = np.array(
            [scale * table.log_e(own) for scale, table, own in zip(self.scales, self.tables, scores.T, strict=True)]
        )
        belief = np.exp(logs - logs.max(axis=0))
        belief /= belief.sum(axis=0)
        total = np.zeros((len(frames), n_columns))
        parts = self._gaussian_parts(frames), self._kernel_parts(frames)
        for own, share, log in zip(parts, belief, logs, strict=True):
            positive = np.maximum(own.reshape(len(frames), -1, n_columns).sum(axis=1), 0.0)
            sums = positive.sum(axis=1, keepdims=True)
            total += (share * self.joint * log)[:, None] * (positive / np.where(sums > 0, sums, 1.0))
        return total

    def _gaussian_parts(self, frames: Array) -> Array:
        """Parts of the squared distance to the likeliest state, (n, D)."""
        densities, n_columns = self.densities, frames.shape[1]
        best = np.full(len(frames), -np.inf)
        parts = np.zeros(frames.shape)
        for i, own in enumerate(densities.gaussian_whitening.reshape(-1, n_columns, n_columns)):
            contributions = _contributions(frames - densities.means[i], own)
            logs = np.log(densities.shares[i]) + densities.log_scales[i] - contributions.sum(axis=1) / 2
            parts[logs > best] = contributions[logs > best]
            best = np.maximum(best, logs)
        return parts

    def _kernel_parts(self, frames: Array) -> Array:
        """Mean parts of the squared distances to the centres, (n, D)."""
        densities = self.densities
        centers = np.linalg.solve(densities.whitening, densities.centers.T).T + densities.origin
        parts = np.empty(frames.shape)
        for k, frame in enumerate(frames):
            contributions = _contributions(frame - centers, densities.whitening)
            logs = -contributions.sum(axis=1) / (2 * densities.width**2)
            shares = densities.weights * np.exp(logs - logs[densities.weights > 0].max())
            parts[k] = shares @ contributions / shares.sum()
        return parts


def _contributions(differences: Array, whitening: Array) -> Array:
    """Parts x_j (W^T W x)_j of squared whitened lengths, (n, D)."""
    parts: Array = differences * (differences @ whitening.T @ whitening)
    return parts


@dataclass(frozen=True)
class NoveltyEvidence:
    """Evidence for the unknown, of frames with their running mean or alone.

    ``trend`` judges frames whose running mean is complete, ``now`` all others. ``excursions`` are those of the training
    frames, each scored without its own block.
    """

    now: FrameEvidence
    trend: FrameEvidence | None
    excursions: Excursions

    @property
    def span(self) -> int:
        """Samples of a running mean; 0 without one."""
        return 0 if self.trend is None else SPAN

    def log_evidence(self, frames: Array, n_threads: int = 1) -> Array:
        """Log w_* (n,) of frames, with their running means if there is a span."""
        logs: Array = self._of_each(frames, lambda judge, own: judge.log_evidence(own, n_threads)[:, None], 1)[:, 0]
        return logs

    def by_column(self, frames: Array, n_columns: int) -> Array:
        """Attribute log w_* of the same frames to the columns of a sample, (n, d)."""
        return self._of_each(frames, lambda judge, own: judge.by_column(own, n_columns), n_columns)

    def _of_each(self, frames: Array, answer: Callable[[FrameEvidence, Array], Array], n_columns: int) -> Array:
        """Join the answers (n, n_columns) about frames with and without a running mean."""
        size, has_mean = len(self.now.densities.origin), ~np.isnan(frames[:, -1]) & (self.trend is not None)
        answers = np.empty((len(frames), n_columns))
        if not has_mean.all():
            answers[~has_mean] = answer(self.now, frames[~has_mean, :size])
        if self.trend is not None and has_mean.any():
            answers[has_mean] = answer(self.trend, frames[has_mean])
        return answers


def _log_sum(exponents: Array, weights: Array) -> Array:
    """Log sum_b weight_b exp(x_b), over the first axis."""
    best = exponents.max(axis=0)
    result: Array = best + np.log(weights @ np.exp(exponents - best))
    return result


def within_reach(evidence: Array) -> Array:
    """Limit evidence (n, S + 1) so that known states keep a share, as the core does."""
    known, unknown = evidence[:, :-1], evidence[:, -1:]
    best = known.max(axis=1, keepdims=True)
    unknown = np.clip(unknown, best - 200, best + 230)
    return np.hstack([np.maximum(known, unknown - 280), unknown])


def beside(known: Array, log_evidence: Array, shares: Array) -> Array:
    """Normalise evidence (n, S) so that sum_i p_i w_i = 1, and append log w_*."""
    shifted = known - known.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted) @ shares)[:, None]
    return within_reach(np.column_stack([shifted, log_evidence]))


def shrinkage(centered: Array, weights: Array, covariance: Array, target: Array) -> float:
    """Ledoit and Wolf's share of the target: variance over squared distance from it."""
    mass = weights.sum()
    distance = float(((covariance - target) ** 2).sum())
    norms = (centered**2).sum(axis=1)
    squared = weights**2
    inner = np.einsum("nd,de,ne->n", centered, covariance, centered)
    variance = float((squared * (norms**2 - 2 * inner + (covariance**2).sum())).sum()) / mass**2
    return 1.0 if not distance > 0 else min(max(variance / distance, 0.0), 1.0)


def learn_densities(
    frames: Array, targets: Array, weights: Array, width: float, random_state: np.random.RandomState
) -> Densities:
    """Learn class Gaussians and kernels from frames (N, D) and states (N, S).

    The shared covariance is shrunk to a multiple of the identity, and that of each class to the shared one.
    """
    n_columns = frames.shape[1]
    mass = weights[:, None] * targets
    totals = mass.sum(axis=0)
    means = mass.T @ frames / np.where(totals > 0, totals, 1.0)[:, None]
    origin = weights @ frames / weights.sum()
    means[totals == 0] = origin
    scatters, spans = [], []
    for i, own in enumerate(mass.T):
        rows = np.flatnonzero(own > 1e-6 * own.max()) if totals[i] > 0 else np.empty(0, np.int64)
        centered = frames[rows] - means[i]
        spans.append((centered, own[rows]))
        scatters.append((centered * own[rows, None]).T @ centered)
    pooled = np.sum(scatters, axis=0) / totals.sum()
    all_centered, all_weights = np.vstack([span[0] for span in spans]), np.concatenate([span[1] for span in spans])
    sphere = max(float(np.trace(pooled)) / n_columns, 1e-12) * np.eye(n_columns)
    share = max(shrinkage(all_centered, all_weights, pooled, sphere), LEAST_SHRINKAGE)
    shared = (1 - share) * pooled + share * sphere
    unit = weights.sum() / len(weights)
    covariances = np.empty((len(totals), n_columns, n_columns))
    for i, (scatter, (centered, own)) in enumerate(zip(scatters, spans, strict=True)):
        prior = (n_columns + 1) * unit
        least = prior / (totals[i] + prior)
        covariance = scatter / max(totals[i], 1e-300)
        share = max(shrinkage(centered, own, covariance, shared), least) if totals[i] > 0 else 1.0
        covariances[i] = (1 - share) * covariance + share * shared
    class_whitening = np.tril(np.linalg.inv(np.linalg.cholesky(covariances)))
    whitening = np.ascontiguousarray(np.tril(np.linalg.inv(np.linalg.cholesky(shared))))
    centers = _draw(frames, weights, random_state)
    return Densities(
        np.maximum(totals / totals.sum(), 1e-12),
        means,
        np.ascontiguousarray(class_whitening.reshape(-1, n_columns)),
        np.log(np.diagonal(class_whitening, axis1=1, axis2=2)).sum(axis=1),
        origin,
        whitening,
        np.ascontiguousarray((frames[centers] - origin) @ whitening.T),
        np.full(len(centers), 1 / len(centers)),
        width,
    )


def _draw(frames: Array, weights: Array, random_state: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Draw rows for the centres, in proportion to their weights."""
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= MOST_CENTERS:
        return positive
    chosen = random_state.choice(positive, MOST_CENTERS, replace=False, p=weights[positive] / weights.sum())
    return np.sort(chosen)


def blocks_of(classes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Cut the frames of each class into contiguous blocks; return each frame's block."""
    blocks = np.empty(len(classes), dtype=np.int64)
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        blocks[rows] = np.arange(len(rows)) * N_BLOCKS // len(rows) if len(rows) >= N_BLOCKS else np.arange(len(rows))
    return blocks


def held_out_scores(
    frames: Array, targets: Array, weights: Array, random_state: np.random.RandomState, n_threads: int
) -> tuple[Array, float]:
    """Held-out G and K of every frame, (N, 2), and the kernel width.

    NaN where no other block has a frame of the same class. The width has the highest held-out likelihood.
    """
    classes = targets.argmax(axis=1)
    blocks = blocks_of(classes)
    fitted = {}
    for block in np.unique(blocks):
        others = blocks != block
        if weights[others].sum() > 0:
            fitted[block] = learn_densities(frames[others], targets[others], weights[others], 1.0, random_state)
    width = _best_width(frames, weights, blocks, fitted, random_state)
    scores = np.full((len(frames), 2), np.nan)
    for block, densities in fitted.items():
        known = np.bincount(classes[(blocks != block) & (weights > 0)], minlength=targets.shape[1]) > 0
        rows = np.flatnonzero((blocks == block) & known[classes])
        if len(rows) > 0:
            scores[rows] = replace(densities, width=width).scores(frames[rows], n_threads)
    return scores, width


def _best_width(
    frames: Array, weights: Array, blocks: Integers, fitted: dict[Any, Densities], random_state: RandomState
) -> float:
    """Return the width with the highest held-out likelihood."""
    from scipy.spatial.distance import cdist

    positive = np.flatnonzero(weights > 0)
    judges = positive if len(positive) <= JUDGES else np.sort(random_state.choice(positive, JUDGES, replace=False))
    gains = np.zeros(len(WIDTHS))
    for block, densities in fitted.items():
        rows = judges[blocks[judges] == block]
        white = (frames[rows] - densities.origin) @ densities.whitening.T
        squared = cdist(densities.centers, white, "sqeuclidean")
        for k, width in enumerate(WIDTHS):
            logs = _log_sum(-squared / (2 * width**2), densities.weights) - frames.shape[1] * np.log(width)
            gains[k] += weights[rows] @ logs
    return float(WIDTHS[gains.argmax()])


def learn_novelty(
    frames: Array,
    targets: Array,
    weights: Array,
    random_state: RandomState,
    n_threads: int,
    mean_novelty: Callable[[Array], float],
    most: float,
    with_means: Callable[[Integers], Array] | None,
    spread: Callable[[Array], Array],
    lengths: Lengths,
) -> NoveltyEvidence:
    """Learn densities, tables and scales from normal frames.

    ``mean_novelty`` maps log w_* of the frames (N,) to the mean filtered probability of the unknown; scales are the
    largest with a mean of at most ``most``. ``with_means`` returns the frames with running means, NaN where these reach
    an outlier, or is None. ``spread`` brings values of frames to all rows of the sequences.
    """
    if targets.shape[1] * frames.shape[1] ** 2 > MOST_NUMBERS:
        raise ValueError(
            f"novelty=True keeps a covariance matrix for each of {targets.shape[1]} states of frames of "
            f"{frames.shape[1]} columns, which is too much: use a smaller window, or novelty_evidence='paper'"
        )

    def learned(frames: Array, rows: npt.NDArray[np.int64]) -> tuple[FrameEvidence, Array, Integers]:
        """Learn from some rows; return evidence, held-out log w_* (N,) and outliers."""
        own = weights[rows]
        is_outlier = np.zeros(len(rows), dtype=bool)
        for _ in range(MOST_ROUNDS):
            scores, width = held_out_scores(frames, targets[rows], own, random_state, n_threads)
            judged = np.isfinite(scores).all(axis=1) & (own > 0)
            if not judged.any():
                break
            found = judged & (scores > [highest_normal(values) for values in scores[judged].T]).any(axis=1)
            is_outlier |= found
            judged &= ~found
            if not found.any():
                break
            own = np.where(found, 0.0, own)  # outliers widen densities, which hides other outliers
        densities = learn_densities(frames, targets[rows], own, width, random_state)
        if not judged.any():
            scores, judged = densities.scores(frames, n_threads), own > 0
        tables = ScoreTable.learn(scores[judged, 0]), ScoreTable.learn(scores[judged, 1])
        first, second = (table.log_e(values) for table, values in zip(tables, scores[judged].T, strict=True))

        def everywhere(log_evidence: Array) -> Array:
            values = np.full(len(targets), np.nan)
            values[rows[judged]] = log_evidence
            return values

        def largest(log_evidence: Array) -> float:
            for scale in SCALES[:-1]:
                if mean_novelty(everywhere(scale * log_evidence)) <= most:
                    return float(scale)
            return float(SCALES[-1])

        scales = largest(first), largest(second)
        pooled = np.logaddexp(scales[0] * first, scales[1] * second) - np.log(2)
        joint = largest(pooled)
        return FrameEvidence(densities, tables, scales, joint), everywhere(joint * pooled), rows[is_outlier]

    now, held_out, outliers = learned(frames, np.arange(len(frames)))
    trend = None
    if with_means is not None:
        frames = with_means(outliers)
        rows = np.flatnonzero(~np.isnan(frames[:, -1]) & (weights > 0))
        if len(rows) >= FEWEST_ROWS * frames.shape[1] and targets.shape[1] * frames.shape[1] ** 2 <= MOST_NUMBERS:
            trend, held_out_trend, _ = learned(frames[rows], rows)
            held_out[rows] = held_out_trend[rows]
    excursions = Excursions.of(spread(held_out[:, None])[:, 0], lengths, most=MOST_VALUES)
    return NoveltyEvidence(now, trend, replace(excursions, n_outliers=excursions.n_outliers + len(outliers)))
