"""From samples to frames: standardisation, windows, kernel centres and the distance scale of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import LARGEST, Array, FrozenArrays, Lengths
from ..data.columns import columns_named
from ..data.user_warnings import warn

#: Frames per centre among which centres are looked for; more frames than that are sampled first.
CENTER_CANDIDATES = 50

#: Roundings of its largest value that a column may spread over and still be constant.
ROUNDINGS = 8

#: Share of the values at either end of a column that may be outliers, and the factor by which the standard deviation of
#: all values then exceeds that of the others.
OUTLIERS = 0.01
RULED = 3.0


@dataclass(frozen=True)
class Framing(FrozenArrays):
    """How a frame is made from samples, in batch and in a stream: standardise, then join `window` samples."""

    mean: Array
    scale: Array
    window: int = 1

    @property
    def n_columns(self) -> int:
        """Columns of a sample."""
        return len(self.mean)

    def frames(self, samples: Array, lengths: Lengths) -> Array:
        """Frames (n, window * d), oldest sample first; rows of NaN where a window is incomplete or holds a NaN."""
        return _core.frames(samples, lengths, self.mean, self.scale, self.window)


def learn_framing(
    samples: Array,
    window: int,
    standardize: bool,
    row_of: Callable[[int], int] = int,
    *,
    names: Sequence[str] | None = None,
    precision: float = float(np.finfo(np.float64).eps),
    resist_outliers: bool = False,
) -> Framing:
    """Mean and standard deviation of every column, from the samples that are there.

    A message has `row_of` a place and `names` of the columns. A column whose values differ by rounding only, to the
    given `precision`, is left out: its scale makes every value 0. With `resist_outliers`, a standard deviation that a
    hundredth of the values makes, or one alone, is replaced by that of all values between the others.
    """
    n_columns = samples.shape[1]
    if (np.abs(samples) > LARGEST).any():
        place, column = np.argwhere(np.abs(samples) > LARGEST)[0]
        value, row = samples[place, column], row_of(int(place))
        raise ValueError(f"X has {value:g} at row {row}, column {column}: values are at most {LARGEST:g}")
    empty = np.isnan(samples).all(axis=0)
    if empty.any():
        raise ValueError(f"X has no value in {columns_named(empty, names)}: every entry is NaN")
    if not standardize:
        return Framing(np.zeros(n_columns), np.ones(n_columns), window)
    # Shifting by one value first keeps the digits of data far from zero.
    origin = np.array([column[np.flatnonzero(~np.isnan(column))[0]] for column in samples.T])
    shifted = samples - origin
    constant = np.nanmax(shifted, axis=0) - np.nanmin(shifted, axis=0) <= (
        ROUNDINGS * precision * np.nanmax(np.abs(samples), axis=0)
    )
    if constant.all():
        raise ValueError("X is constant in every column: there is nothing to learn from")
    offset, scale = _mean_and_deviation(shifted)
    for column in np.flatnonzero(~constant & ~(scale > 0)):
        raise ValueError(f"X spreads too little in column {column}: its variance is below the range of double")
    if constant.any():
        warn(
            f"X is constant, or differs by rounding only, in {columns_named(constant, names)}: what "
            "never changed in training says nothing about the states, and predictions do not depend on it"
        )
        offset[constant], scale[constant] = 0.0, LARGEST
    if resist_outliers:
        low = np.nanquantile(shifted, OUTLIERS, axis=0, method="higher")
        high = np.nanquantile(shifted, 1 - OUTLIERS, axis=0, method="lower")
        inner_offset, inner_scale = _mean_and_deviation(np.clip(shifted, low, np.maximum(low, high)))
        ruled = ~constant & (inner_scale > 0) & (scale > RULED * inner_scale)
        if ruled.any():
            warn(
                f"X has values in {columns_named(ruled, names)} so far from all others that they alone "
                "would make the standard deviation: it was learned without them"
            )
            offset, scale = np.where(ruled, inner_offset, offset), np.where(ruled, inner_scale, scale)
    return Framing(origin + offset, scale, window)


def _mean_and_deviation(shifted: Array) -> tuple[Array, Array]:
    offset = np.nanmean(shifted, axis=0)
    return offset, np.nanstd(shifted - offset, axis=0)


#: Kernel centres of n_basis="auto": so many, or so many per state up to a limit.
FEWEST_CENTERS = 150
CENTERS_PER_STATE = 25
MOST_BY_DEFAULT = 500

#: Kernel centres at most: their Gram matrix takes 1.2 GB.
MOST_CENTERS = 12_000


def basis_size(n_basis: int | str | None, n_frames: int, n_states: int) -> int:
    """The number of kernel centres for so many frames."""
    if n_basis == "auto":
        return min(n_frames, max(FEWEST_CENTERS, min(CENTERS_PER_STATE * n_states, MOST_BY_DEFAULT)))
    size = n_frames if n_basis is None else min(n_frames, int(n_basis))
    if size > MOST_CENTERS:
        raise ValueError(
            f"n_basis={n_basis} makes {size:,} kernel centres of {n_frames:,} training frames, whose Gram matrix would "
            f"take {8 * size**2 / 1e9:.1f} GB; at most {MOST_CENTERS:,} are possible: use n_basis='auto' or a number"
        )
    return size


def choose_centers(
    frames: Array, n_basis: int, random_state: np.random.RandomState, classes: npt.NDArray[np.int64] | None = None
) -> Array:
    """At most `n_basis` kernel centres: training frames, spread out by the seeding of k-means++.

    Each next centre is drawn with a probability that grows with the squared distance to those before it, so that rare
    regions have centres too; with a random subset, results depend more on the seed. Where there are too many frames,
    every one of the `classes` (N,) has a fair share of those that are looked at.
    """
    if n_basis >= len(frames):
        return frames.copy()
    n_candidates = CENTER_CANDIDATES * n_basis
    if len(frames) > n_candidates:
        codes = np.zeros(len(frames), dtype=np.int64) if classes is None else classes
        frames = frames[fair_draw(codes, n_candidates, random_state)]
    squares = np.square(frames).sum(axis=1)
    chosen, nearest = [int(random_state.uniform() * len(frames))], np.full(len(frames), np.inf)
    while len(chosen) < n_basis:
        place = chosen[-1]
        np.minimum(nearest, squares - 2 * (frames @ frames[place]) + squares[place], out=nearest)
        nearest[place] = 0.0
        sums = np.cumsum(np.maximum(nearest, 0.0))
        chosen.append(min(int(np.searchsorted(sums, random_state.uniform() * sums[-1])), len(frames) - 1))
    centers: Array = np.ascontiguousarray(frames[np.sort(chosen)])
    return centers


def fair_draw(classes: npt.NDArray[np.int64], size: int, random_state: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Sorted places of `size` members, as many of each class as of any other, or all of it where it has fewer."""
    values, counts = np.unique(classes, return_counts=True)
    shares = np.zeros_like(counts)
    for rank, k in enumerate(np.argsort(counts, kind="stable")):
        shares[k] = min(counts[k], (size - shares.sum()) // (len(counts) - rank))
    order = random_state.permutation(len(classes))
    drawn = [order[classes[order] == value][:share] for value, share in zip(values, shares, strict=True)]
    return np.sort(np.concatenate(drawn))


def median_distance(centers: Array) -> float:
    """Median distance between different frames: the scale on which sigma is searched."""
    from scipy.spatial.distance import pdist

    distances = pdist(centers)
    distances = distances[distances > 0]
    if len(distances) == 0:
        raise ValueError("X has only duplicate frames: there is no distance to learn from")
    return float(np.median(distances))


def random_state_of(seed: Any) -> np.random.RandomState:
    """Generator of a `random_state` argument, as in scikit-learn."""
    from sklearn.utils import check_random_state

    generator: np.random.RandomState = check_random_state(seed)
    return generator


def complete_rows(frames: Array) -> npt.NDArray[np.bool_]:
    """Which frames can be used: those without NaN (a frame is NaN in all columns or in none)."""
    return ~np.isnan(frames[:, 0])
