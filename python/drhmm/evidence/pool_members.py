"""Members of the pool: arrays for inference, learned from sums over frames.

Each member estimates q_i(y) = p(x = i | y). It learns from sums, a dict of arrays that add up over frames, blocks,
folds and machines if centres, edges and origin are fixed. ``AXES`` has letters for the axes of arrays (B centres, D
columns of a frame, S states, or products), ``NUMBERS`` the names of learned numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import LARGEST, Array, FrozenArrays, Lengths
from ..features.context import Context, rows_ahead

Sums = dict[str, Array]

#: Edges of the bins of a column, its deciles; a column with fewer values repeats the last one.
N_EDGES = 9

#: Ridge of additive least squares on everything but the intercept, in frames.
ADDITIVE_RIDGE = 10.0

#: Share of the variance of each column that is added to all covariances.
VARIANCE_SHARE = 0.01

#: Variance of a constant column after `features.learn_framing`.
NEGLIGIBLE = 1e-120

#: Standard deviations at which the features of a context are clipped.
MOST_DEVIATIONS = 10.0

#: The most columns of a frame that members learn jointly. More columns are cut into blocks: of the same size for
#: Gaussians, and smaller ones for additive ratios, which have eleven features per column.
MOST_JOINT, ADDITIVE_BLOCK = 200, 50

#: Frames with features in memory at once.
_BLOCK = 4096


def blocks_of(n_columns: int, size: int) -> list[slice]:
    """Cut columns into blocks of a size; at most `MOST_JOINT` are one block."""
    size = n_columns if n_columns <= MOST_JOINT else size
    return [slice(first, min(first + size, n_columns)) for first in range(0, n_columns, size)]


def added(parts: Iterable[Mapping[str, Array]]) -> Sums:
    """Add up the sums of several blocks of frames."""
    first, *others = parts
    return {name: sum((other[name] for other in others), start=values) for name, values in first.items()}


@dataclass(frozen=True)
class KernelMember(FrozenArrays):
    """Kernel least squares, Theta = (Phi^T W Phi + rho N I)^-1 Phi^T W M.

    q_i(y) = theta_i^T phi(y).
    """

    NAME: ClassVar[str] = "kernel"
    AXES: ClassVar[dict[str, str]] = {"centers": "B D", "theta": "B S"}
    NUMBERS: ClassVar[tuple[str, ...]] = ("sigma", "rho")

    centers: Array
    theta: Array
    sigma: float
    rho: float
    scale: float = 1.0

    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the native core."""
        return self.centers, self.sigma, self.theta, self.scale

    def sums(self, frames: Array, targets: Array, weights: Array) -> Sums:
        """Phi^T W Phi, Phi^T W M and 1^T W M."""
        statistics = _core.GramStatistics(len(self.centers), targets.shape[1])
        statistics.add(frames, targets, weights, self.centers, self.sigma)
        return {"gram": statistics.gram, "moment": statistics.moment, "mass": statistics.mass}

    def learned_from(self, sums: Sums) -> KernelMember:
        """Return the member with these sums."""
        factor = _core.RegularizedGram(sums["gram"], self.rho * float(sums["mass"].sum()))
        return replace(self, theta=factor.solve(sums["moment"]))

    def __str__(self) -> str:
        return f"{len(self.centers)} kernel centres, sigma {self.sigma:.4g}, rho {self.rho:.4g}"


@dataclass(frozen=True)
class AdditiveMember(FrozenArrays):
    """Additive least squares: lines within the range, and steps per decile.

    q_i(y) = intercept_i + sum_j slope_ji (clip(y_j) - low_j) + the step of y_j's bin. Blocks of many columns are
    learned separately, and their differences from the class share add up.
    """

    NAME: ClassVar[str] = "additive"
    AXES: ClassVar[dict[str, str]] = {
        "low": "D",
        "high": "D",
        "units": "D",
        "edges": "D 9",
        "intercept": "S",
        "slopes": "D S",
        "steps": "10D S",
    }
    NUMBERS: ClassVar[tuple[str, ...]] = ()

    low: Array
    high: Array
    units: Array
    edges: Array
    intercept: Array
    slopes: Array
    steps: Array
    scale: float = 1.0

    @classmethod
    def before_learning(cls, frames: Array, n_states: int) -> AdditiveMember:
        """Return an unlearned member with range, standard deviations and deciles."""
        n_columns = frames.shape[1]
        edges = np.quantile(frames, np.arange(1, N_EDGES + 1) / (N_EDGES + 1), axis=0).T.copy()
        for own in edges:
            different = np.unique(own)
            own[: len(different)], own[len(different) :] = different, different[-1]
        # Constant columns have one bin.
        edges[frames.var(axis=0) <= NEGLIGIBLE] = LARGEST
        nothing = np.zeros((n_columns, n_states))
        steps = np.zeros((n_columns * (N_EDGES + 1), n_states))
        units = np.sqrt(_variances(frames))
        return cls(frames.min(axis=0), frames.max(axis=0), units, edges, np.zeros(n_states), nothing, steps)

    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the native core."""
        return self.low, self.high, self.edges, self.intercept, self.slopes, self.steps, self.scale

    def features(self, frames: Array, block: slice) -> Array:
        """1, clipped values in their units, and indicators of bins; (n, 1 + 11 W)."""
        frames, low = frames[:, block], self.low[block]
        bins = (frames[:, :, None] > self.edges[block]).sum(axis=2)
        indicators = bins[:, :, None] == np.arange(N_EDGES + 1)
        clipped = (np.clip(frames, low, self.high[block]) - low) / self.units[block]
        return np.hstack([np.ones((len(frames), 1)), clipped, indicators.reshape(len(frames), -1)])

    def sums(self, frames: Array, targets: Array, weights: Array) -> Sums:
        """F^T W F and F^T W M of every block, 1^T W M and the number of frames."""
        blocks = blocks_of(len(self.low), ADDITIVE_BLOCK)
        size = 1 + (N_EDGES + 2) * blocks[0].stop
        gram, moment = np.zeros((len(blocks), size, size)), np.zeros((len(blocks), size, targets.shape[1]))
        roots = np.sqrt(weights)[:, None]
        for first in range(0, len(frames), _BLOCK):
            rows = slice(first, first + _BLOCK)
            for k, block in enumerate(blocks):
                rooted = self.features(frames[rows], block) * roots[rows]
                own = slice(rooted.shape[1])
                gram[k, own, own] += rooted.T @ rooted
                moment[k, own] += rooted.T @ (roots[rows] * targets[rows])
        return {"gram": gram, "moment": moment, "mass": weights @ targets, "frames": np.array([float(len(frames))])}

    def learned_from(self, sums: Sums) -> AdditiveMember:
        """Return the member with these sums; the ridge is relative to the mean weight."""
        unit = float(sums["gram"][0, 0, 0] / sums["frames"][0])
        shares = sums["mass"] / sums["gram"][0, 0, 0]
        intercept, slopes, steps = shares, np.empty_like(self.slopes), np.empty_like(self.steps)
        for k, block in enumerate(blocks_of(len(self.low), ADDITIVE_BLOCK)):
            width = block.stop - block.start
            size = 1 + (N_EDGES + 2) * width
            ridge = np.full(size, ADDITIVE_RIDGE * unit)
            ridge[0] = 0.0
            gram = sums["gram"][k, :size, :size] + np.diag(ridge)
            theta = _core.RegularizedGram(gram, 0.0).solve(np.ascontiguousarray(sums["moment"][k, :size]))
            intercept = intercept + (theta[0] - shares)
            slopes[block] = theta[1 : 1 + width] / self.units[block, None]
            steps[(N_EDGES + 1) * block.start : (N_EDGES + 1) * block.stop] = theta[1 + width :]
        return replace(self, intercept=intercept, slopes=slopes, steps=steps)

    def __str__(self) -> str:
        return f"a slope and {N_EDGES + 1} steps for each of {len(self.low)} columns"


@dataclass(frozen=True)
class GaussianMember(FrozenArrays):
    """Class Gaussians: q_i(y) proportional to p_i N(y; mu_i, Sigma_i).

    Sigma_i = (scatter_i + (D + 1) Sigma_pooled) / (n_i + D + 1) + .01 diag(variances of all frames). Blocks of many
    columns are independent given the class; a row of `whitening` has the columns of its block.
    """

    NAME: ClassVar[str] = "gaussian"
    AXES: ClassVar[dict[str, str]] = {
        "origin": "D",
        "ridge": "D",
        "means": "S D",
        "whitening": "SD W",
        "log_scales": "S",
    }
    NUMBERS: ClassVar[tuple[str, ...]] = ()

    origin: Array
    ridge: Array
    means: Array
    whitening: Array
    log_scales: Array
    scale: float = 1.0

    @classmethod
    def before_learning(cls, frames: Array, n_states: int, share: float = VARIANCE_SHARE) -> GaussianMember:
        """Return an unlearned member with mean and variances; `share` sets the ridge."""
        n_columns = frames.shape[1]
        ridge = share * _variances(frames)
        nothing = np.zeros((n_states * n_columns, min(n_columns, MOST_JOINT)))
        return cls(frames.mean(axis=0), ridge, np.zeros((n_states, n_columns)), nothing, np.zeros(n_states))

    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the native core."""
        return self.origin, self.means, self.whitening, self.log_scales, self.scale

    def sums(self, frames: Array, targets: Array, weights: Array) -> Sums:
        """Masses (S,), first (S, D) and second moments (S, D, W), and number of frames."""
        first = np.zeros((targets.shape[1], frames.shape[1]))
        second = np.zeros((*first.shape, self.whitening.shape[1]))
        for i, own in enumerate((weights[:, None] * targets).T):
            rows = np.flatnonzero(own)
            members, own = frames[rows] - self.origin, own[rows]
            first[i] = own @ members
            for block in blocks_of(frames.shape[1], MOST_JOINT):
                part = members[:, block]
                second[i, block, : part.shape[1]] = (part * own[:, None]).T @ part
        return {
            "mass": weights @ targets,
            "first": first,
            "second": second,
            "frames": np.array([float(len(frames))]),
        }

    def learned_from(self, sums: Sums) -> GaussianMember:
        """Return the member with these sums; a class without frames has density 0."""
        mass, first, second = sums["mass"], sums["first"], sums["second"]
        n_states, n_columns = first.shape
        means = first / np.where(mass > 0, mass, 1.0)[:, None]
        triangles = np.zeros(second.shape)
        with np.errstate(divide="ignore"):
            log_scales = np.log((mass > 0).astype(float))
        for block in blocks_of(n_columns, MOST_JOINT):
            width = block.stop - block.start
            own = means[:, block]
            scatter = second[:, block, :width] - np.einsum("i,id,ie->ide", mass, own, own)
            pooled = scatter.sum(axis=0) / mass.sum()
            prior = (width + 1) * mass.sum() / sums["frames"][0]
            whitening = _whitening((scatter + prior * pooled) / (mass + prior)[:, None, None], self.ridge[block])
            log_scales += np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1)
            triangles[:, block, :width] = np.tril(whitening)
        flat = triangles.reshape(n_states * n_columns, -1)
        return replace(self, means=means + self.origin, whitening=flat, log_scales=log_scales)

    def log_densities(self, frames: Array, n_newest: int | None = None) -> Array:
        """Log N(y; mu_i, Sigma_i), (n, S), or of the last columns given the others.

        W_i is triangular: the last entries of W_i (y - mu_i) are the parts that earlier columns do not explain.
        """
        n_states, n_columns = self.means.shape
        first = 0 if n_newest is None else n_columns - n_newest
        densities = np.full((len(frames), n_states), -(n_columns - first) / 2 * np.log(2 * np.pi))
        for i, triangles in enumerate(self.whitening.reshape(n_states, n_columns, -1)):
            for block in blocks_of(n_columns, MOST_JOINT):
                skipped = max(0, first - block.start)
                whitening = triangles[block, : block.stop - block.start]
                residuals = (frames[:, block] - self.means[i, block]) @ whitening[skipped:].T
                densities[:, i] += np.log(np.diagonal(whitening)[skipped:]).sum() - (residuals**2).sum(axis=1) / 2
        return densities

    def __str__(self) -> str:
        return f"one Gaussian per state in {self.means.shape[1]} columns"


@dataclass(frozen=True)
class ContextMember(FrozenArrays):
    """Least squares on the context.

    q_i = intercept_i + sum_f coefficient_fi clip((x_f - center_f) / spread_f).
    """

    NAME: ClassVar[str] = "context"
    AXES: ClassVar[dict[str, str]] = {"center": "F", "spread": "F", "intercept": "S", "coefficients": "F S"}
    NUMBERS: ClassVar[tuple[str, ...]] = ("ridge",)

    center: Array
    spread: Array
    intercept: Array
    coefficients: Array
    ridge: float
    scale: float = 1.0

    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the native core."""
        return self.center, self.spread, self.intercept, self.coefficients, self.scale

    def columns(self, features: Array) -> Array:
        """1 and the standardised features, (n, 1 + F)."""
        columns = np.empty((len(features), 1 + features.shape[1]))
        columns[:, 0] = 1.0
        standardised = np.subtract(features, self.center, out=columns[:, 1:])
        standardised /= self.spread
        np.clip(standardised, -MOST_DEVIATIONS, MOST_DEVIATIONS, out=standardised)
        return columns

    def estimates(self, features: Array) -> Array:
        """q_i of each row of features, (n, S)."""
        estimates: Array = self.columns(features) @ np.vstack([self.intercept, self.coefficients])
        return estimates

    def learned_from(self, sums: Sums) -> Any:
        """Return the member with these sums; the intercept is free."""
        theta = self.solution(sums, self.ridge)
        return replace(self, intercept=theta[0], coefficients=np.ascontiguousarray(theta[1:]))

    @staticmethod
    def solution(sums: Sums, ridge: float) -> Array:
        """Intercept and coefficients, (1 + F, S)."""
        penalty = np.full(len(sums["gram"]), ridge * float(sums["gram"][0, 0]))
        penalty[0] = 0.0
        return _core.RegularizedGram(sums["gram"] + np.diag(penalty), 0.0).solve(np.ascontiguousarray(sums["moment"]))

    def __str__(self) -> str:
        return f"least squares on {len(self.center)} features of the past, ridge {self.ridge:g}"


@dataclass(frozen=True)
class AheadMember(ContextMember):
    """Least squares on the context `AHEAD` time steps later; offline only."""

    NAME: ClassVar[str] = "ahead"


#: Time steps of look-ahead.
AHEAD = 4


def _variances(frames: Array) -> Array:
    """Variances of the columns; 1 for constant ones."""
    variances = frames.var(axis=0)
    return np.where(variances > NEGLIGIBLE, variances, 1.0)


def _whitening(covariances: Array, ridge: Array) -> Array:
    """Lower triangular W (S, D, D) with (covariance + diag(ridge))^-1 = W^T W.

    Later blocks of frames with a much larger spread need a ridge above their rounding errors.
    """
    for factor in 10.0 ** np.arange(0, 300, 2):
        try:
            whitening: Array = np.linalg.inv(np.linalg.cholesky(covariances + factor * np.diag(ridge)))
        except np.linalg.LinAlgError:
            continue
        return whitening
    raise ValueError("frames spread too far for Gaussians: standardise the columns")


FrameMember = KernelMember | AdditiveMember | GaussianMember
Member = FrameMember | ContextMember | AheadMember

#: The kinds of members by name, in the order of summation.
KINDS: dict[str, type[Member]] = {
    kind.NAME: kind for kind in (KernelMember, AdditiveMember, GaussianMember, ContextMember, AheadMember)
}


def context_sums(
    past: Context,
    member: ContextMember,
    samples: Array,
    lengths: Lengths,
    targets: Array,
    weights: Array,
    folds: npt.NDArray[np.int64] | None = None,
    rows: npt.NDArray[np.int64] | None = None,
) -> dict[str, Sums]:
    """Sums of `context` and `ahead` for targets (T, S) and weights (T,).

    Rows of weight 0 do not count. `ahead` pairs the features of a row with the labels AHEAD rows before it, in one Gram
    matrix with `context`. With `folds`, the first axis of all sums is for the folds.
    """
    n_folds = 1 if folds is None else int(folds.max()) + 1
    size, n_states = 1 + past.size, targets.shape[1]
    later = rows_ahead(lengths, AHEAD)
    gram = np.zeros((n_folds, size, size))
    moments = np.zeros((n_folds, size, 2 * n_states))
    masses = np.zeros((n_folds, 2 * n_states))
    for block, features in past.blocks(samples, lengths, rows):
        columns = member.columns(features)
        both = np.zeros((len(columns), 2 * n_states))
        both[:, :n_states] = targets[block] * weights[block, None]
        before = np.arange(max(0, block.start - AHEAD), block.stop)
        before = before[(later[before] >= block.start) & (later[before] < block.stop)]
        np.add.at(both[:, n_states:], later[before] - block.start, targets[before] * weights[before, None])
        for fold in range(n_folds) if folds is None else np.unique(folds[block]):
            own = slice(None) if folds is None or n_folds == 1 else np.flatnonzero(folds[block] == fold)
            part, weight = columns[own], weights[block][own]
            # A product of a matrix with its own transpose takes half the time.
            rooted = part if (weight == 1).all() else part * np.sqrt(weight)[:, None]
            gram[fold] += rooted.T @ rooted
            moments[fold] += part.T @ both[own]
            masses[fold] += both[own].sum(axis=0)
    found = {}
    for name, states in ((ContextMember.NAME, slice(0, n_states)), (AheadMember.NAME, slice(n_states, None))):
        sums = {"gram": gram, "moment": moments[..., states], "mass": masses[..., states]}
        found[name] = {key: values[0] if folds is None else values for key, values in sums.items()}
    return found
