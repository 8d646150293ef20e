"""Frames: standardised samples in windows; kernel centres and typical distances."""

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

#: Number of frames per centre to choose centres from; more frames are sampled first.
CENTER_CANDIDATES = 50

#: Largest range of a constant column, in rounding errors of its largest value.
ROUNDINGS = 8

#: Share of possible outliers at either end of a column, and the factor by which they must raise its standard deviation.
OUTLIERS = 0.01
RULED = 3.0


@dataclass(frozen=True)
class Framing(FrozenArrays):
    """Frames from samples, in batch and live: standardise, then join windows.

    With a ``span``, evidence for the unknown also reads the running mean of that many samples.
    """

    mean: Array
    scale: Array
    window: int = 1
    span: int = 0

    @property
    def n_columns(self) -> int:
        """Number of columns of a sample."""
        return len(self.mean)

    def frames(self, samples: Array, lengths: Lengths) -> Array:
        """Frames (n, window * d), oldest sample first; NaN for incomplete windows."""
        return _core.frames(samples, lengths, self.mean, self.scale, self.window)

    @property
    def size(self) -> int:
        """Numbers of a frame with its running mean."""
        return (self.window + (self.span > 0)) * self.n_columns

    @property
    def reach(self) -> int:
        """Samples that a frame with its running mean depends on."""
        return max(self.window, self.span)

    def frames_with_means(self, samples: Array, lengths: Lengths) -> Array:
        """Frames, and the mean of the last `span` samples; NaN if one of them is missing."""
        return _core.frames(samples, lengths, self.mean, self.scale, self.window, self.span)


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
    """Learn the mean and standard deviation of every column.

    `row_of` and `names` make error messages point at the user's rows and columns. A column that is constant up to
    rounding, at the given `precision`, gets a scale that makes every value 0. With `resist_outliers`, a standard
    deviation that a hundredth of the values dominates is learned without them.
    """
    n_columns = samples.shape[1]
    for place, column in np.argwhere(np.abs(samples) > LARGEST):
        found = f"{samples[place, column]:g} at row {row_of(int(place))}, column {column}"
        raise ValueError(f"X has {found}: values are at most {LARGEST:g}")
    empty = np.isnan(samples).all(axis=0)
    if empty.any():
        raise ValueError(f"X has no value in {columns_named(empty, names)}: every entry is NaN")
    if not standardize:
        return Framing(np.zeros(n_columns), np.ones(n_columns), window)
    # Subtracting one value first keeps the digits of data far from zero.
    origin = np.array([column[np.flatnonzero(~np.isnan(column))[0]] for column in samples.T])
    shifted = samples - origin
    constant = np.nanmax(shifted, axis=0) - np.nanmin(shifted, axis=0) <= (
        ROUNDINGS * precision * np.nanmax(np.abs(samples), axis=0)
    )
    if constant.all():
        raise ValueError("X is constant in every column: there is nothing to learn from")
    offset, scale = _mean_and_deviation(shifted)
    for column in np.flatnonzero(~constant & ~(scale > 0)):
        raise ValueError(f"X spreads too little in column {column}: its variance underflows in float64")
    if constant.any():
        warn(
            f"X is constant, or differs by rounding only, in {columns_named(constant, names)}: a column that never "
            "changed in training carries no information about the states, and predictions do not depend on it"
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
                "would dominate the standard deviation: it was learned without them"
            )
            offset, scale = np.where(ruled, inner_offset, offset), np.where(ruled, inner_scale, scale)
    return Framing(origin + offset, scale, window)


def _mean_and_deviation(shifted: Array) -> tuple[Array, Array]:
    # One column at a time, to avoid a copy of all data.
    offset = np.array([np.nanmean(column) for column in shifted.T])
    return offset, np.array([np.nanstd(column - mean) for column, mean in zip(shifted.T, offset, strict=True)])


#: Number of kernel centres for n_basis="auto": at least, per state, and at most.
FEWEST_CENTERS = 150
CENTERS_PER_STATE = 25
MOST_BY_DEFAULT = 500

#: The most kernel centres: their Gram matrix takes 1.2 GB.
MOST_CENTERS = 12_000


def basis_size(n_basis: int | str | None, n_frames: int, n_states: int) -> int:
    """Return the number of kernel centres."""
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
    """Choose at most `n_basis` training frames as centres, as k-means++ does.

    The probability of the next centre is proportional to the squared distance from its nearest centre so far. Rare
    regions get centres, too, and results depend less on the seed than with a random subset. With too many frames, each
    of the `classes` (N,) has a fair share of the candidates.
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
    """Draw `size` rows with equal shares of classes, all of small classes; sorted."""
    values, counts = np.unique(classes, return_counts=True)
    shares = np.zeros_like(counts)
    for rank, k in enumerate(np.argsort(counts, kind="stable")):
        shares[k] = min(counts[k], (size - shares.sum()) // (len(counts) - rank))
    order = random_state.permutation(len(classes))
    drawn = [order[classes[order] == value][:share] for value, share in zip(values, shares, strict=True)]
    return np.sort(np.concatenate(drawn))


def median_distance(centers: Array) -> float:
    """Median distance between different frames, the scale of the search for sigma."""
    from scipy.spatial.distance import pdist

    distances = pdist(centers)
    distances = distances[distances > 0]
    if len(distances) == 0:
        raise ValueError("X has only duplicate frames: there is no distance to learn from")
    return float(np.median(distances))


def random_state_of(seed: Any) -> np.random.RandomState:
    """Convert a `random_state` argument to a generator, as scikit-learn does."""
    from sklearn.utils import check_random_state

    generator: np.random.RandomState = check_random_state(seed)
    return generator


def complete_rows(frames: Array) -> npt.NDArray[np.bool_]:
    """Mark frames without NaN; a frame is NaN in all columns or in none."""
    return ~np.isnan(frames[:, 0])
