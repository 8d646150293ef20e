"""P-values of scores: quantiles, and a generalised Pareto tail beyond them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _core
from ..data.checks import Array, FrozenArrays

#: Knots of a table, from the smallest value to the one exceeded by `TAIL` of all values.
N_KNOTS = 64
TAIL = 0.1

#: The largest shape of a tail, where its variance becomes infinite.
LARGEST_SHAPE = 0.5

#: Spread of a tail without data, in units of the range of the knots.
LEAST_SPREAD = 1e-3

#: The largest share of outliers among normal values.
MOST_OUTLIERS = 0.01

#: The widest gap between neighbours among the highest values: rank times difference of log expected numbers. If the
#: tail fits, gaps are exponential with mean 1. Of 1,500 clean sets, 6 had a wider one; with .5 % outliers, at least 65.
WIDEST_GAP = 15.0


def pareto_tail(excesses: Array) -> tuple[float, float]:
    """Shape in [0, 1/2] and spread of the generalised Pareto law of excesses.

    By probability weighted moments: first the shape, then the spread from the mean, spread / (1 - shape).
    """
    ordered = np.sort(excesses)
    mean = float(ordered.mean()) if len(ordered) > 0 else 0.0
    if len(ordered) < 2 or not mean > 0:
        return 0.0, mean
    above = 1 - (np.arange(1, len(ordered) + 1) - 0.35) / len(ordered)
    weighted = float((ordered * above).mean())
    shape = 2 - mean / (mean - 2 * weighted) if mean > 2 * weighted else LARGEST_SHAPE
    shape = min(max(shape, 0.0), LARGEST_SHAPE)
    return shape, mean * (1 - shape)


def highest_normal(values: Array) -> float:
    """Return the highest normal value; at most a hundredth of the values is above it.

    A generalised Pareto tail through three of the highest values predicts the number of such values. If there are four
    times as many, the limit is below the widest gap for its rank and place, if no tail has such a gap.
    """
    most = int(MOST_OUTLIERS * len(values))
    if most == 0:
        return np.inf
    ordered = np.sort(values)[::-1][: 4 * most + 1]
    lower, upper = ordered[2 * most] - ordered[4 * most], ordered[most] - ordered[2 * most]
    lower = max(lower, upper / 2)
    if not lower > 0:
        return np.inf
    shape = max(float(np.log2(max(upper, lower) / lower)), 1e-6)  # at most 1
    spread = lower * shape / (2**shape - 1)
    ranks = np.arange(1, most + 1)
    # Expected number of values as high: log (4 most (1 + shape x / spread)^(-1 / shape)).
    log_expected = np.log(4 * most) - np.log1p(shape * (ordered[: most + 1] - ordered[4 * most]) / spread) / shape
    excess = np.log(ranks) - log_expected[:most]
    # The probability of this many is at most exp(-rank (excess - 1)).
    found = np.flatnonzero((excess > np.log(4)) & (ranks * (excess - 1) > 10))
    if len(found) == 0:
        return np.inf
    gaps = (ranks * np.diff(log_expected))[found]
    return float(ordered[found[gaps.argmax()] + 1]) if gaps.max() > WIDEST_GAP else np.inf


@dataclass(frozen=True)
class ScoreTable(FrozenArrays):
    """P-values of scores by linear interpolation between knots and a tail.

    ``pvalues`` belong to ``knots``; of equal knots, the first counts. Beyond the last knot u, p = p_u (1 + shape (s -
    u) / spread)^(-1 / shape), or p_u exp(-(s - u) / spread).
    """

    knots: Array
    pvalues: Array
    shape: float
    spread: float

    @classmethod
    def learn(cls, scores: Array) -> ScoreTable:
        """Learn the table from scores of normal frames."""
        pvalues = np.linspace(1.0, TAIL, N_KNOTS)
        knots = np.quantile(scores, 1 - pvalues)
        shape, spread = pareto_tail(scores[scores > knots[-1]] - knots[-1])
        least = LEAST_SPREAD * max(float(knots[-1] - knots[0]), abs(float(knots[-1])) * 1e-6, 1e-9)
        return cls(knots, pvalues, shape, max(spread, least))

    def log_e(self, scores: Array) -> Array:
        """Return log e(p) of scores, e(p) = (1 - p + p log p) / (p log^2 p).

        The mean of e over uniform p is 1.
        """
        return _core.log_e(self.arrays(), np.ascontiguousarray(scores))

    def arrays(self) -> tuple[Array, Array, float, float]:
        """The arguments of the native core."""
        return self.knots, self.pvalues, self.shape, self.spread
