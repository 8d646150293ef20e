"""From samples to frames: standardisation, windows, kernel centres and the distance scale of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._validation import LARGEST, Array, Lengths, check_integer, read_only

#: Frames per centre among which centres are looked for; more frames than that are sampled first.
CENTER_CANDIDATES = 50


@dataclass(frozen=True)
class Framing:
    """How a frame is made from samples, in batch and in a stream: standardise, then join `window` samples."""

    mean: Array
    scale: Array
    window: int = 1

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __reduce__(self) -> tuple[object, ...]:
        return Framing, (self.mean, self.scale, self.window)

    @property
    def n_columns(self) -> int:
        """Columns of a sample."""
        return len(self.mean)

    def frames(self, samples: Array, lengths: Lengths) -> Array:
        """Frames (n, window * d), oldest sample first; rows of NaN where a window is incomplete or holds a NaN."""
        return _core.frames(samples, lengths, self.mean, self.scale, self.window)


def learn_framing(samples: Array, window: int, standardize: bool, row_of: Callable[[int], int] = int) -> Framing:
    """Mean and standard deviation of every column, from the samples that are there; a message has `row_of` a place."""
    n_columns = samples.shape[1]
    if (np.abs(samples) > LARGEST).any():
        place, column = np.argwhere(np.abs(samples) > LARGEST)[0]
        value, row = samples[place, column], row_of(int(place))
        raise ValueError(f"X has {value:g} at row {row}, column {column}: values are at most {LARGEST:g}")
    for column in range(n_columns):
        if np.isnan(samples[:, column]).all():
            raise ValueError(f"X has no value in column {column}: every entry is NaN")
    if not standardize:
        return Framing(np.zeros(n_columns), np.ones(n_columns), window)
    # Shifting by one value first keeps the digits of data far from zero.
    origin = np.array([column[np.flatnonzero(~np.isnan(column))[0]] for column in samples.T])
    shifted = samples - origin
    offset = np.nanmean(shifted, axis=0)
    scale = np.nanstd(shifted - offset, axis=0)
    for column in range(n_columns):
        if not scale[column] > 0 and (np.nan_to_num(shifted[:, column]) != 0).any():
            raise ValueError(f"X spreads too little in column {column}: its variance is below the range of double")
        if not scale[column] > 0:
            raise ValueError(
                f"X is constant in column {column} (value {origin[column]:g}): it cannot be standardised; "
                "drop the column or use standardize=False"
            )
    return Framing(origin + offset, scale, window)


#: Kernel centres of n_basis="auto", and per state if these are more.
FEWEST_CENTERS = 150
CENTERS_PER_STATE = 25

#: Kernel centres at most: their Gram matrix takes 1.2 GB.
MOST_CENTERS = 12_000


def check_basis(n_basis: Any) -> None:
    """Raise a ValueError for a number of kernel centres that is none."""
    if n_basis is not None and not (isinstance(n_basis, str) and n_basis == "auto"):
        if isinstance(n_basis, str):
            raise ValueError(f"n_basis must be a number, 'auto' or None, got {n_basis!r}")
        check_integer(n_basis, "n_basis", low=1)


def basis_size(n_basis: int | str | None, n_frames: int, n_states: int) -> int:
    """The number of kernel centres for so many frames."""
    if n_basis == "auto":
        return min(n_frames, max(FEWEST_CENTERS, CENTERS_PER_STATE * n_states))
    size = n_frames if n_basis is None else min(n_frames, int(n_basis))
    if size > MOST_CENTERS:
        raise ValueError(
            f"n_basis={n_basis} makes {size:,} kernel centres of {n_frames:,} training frames, whose Gram matrix would "
            f"take {8 * size**2 / 1e9:.1f} GB; at most {MOST_CENTERS:,} are possible: use n_basis='auto' or a number"
        )
    return size


def choose_centers(frames: Array, n_basis: int, random_state: np.random.RandomState) -> Array:
    """At most `n_basis` kernel centres: training frames, spread out by the seeding of k-means++.

    Each next centre is drawn with a probability that grows with the squared distance to those before it, so that rare
    regions have centres too; with a random subset, results depend more on the seed.
    """
    from sklearn.cluster import kmeans_plusplus

    if n_basis >= len(frames):
        return frames.copy()
    if len(frames) > CENTER_CANDIDATES * n_basis:
        frames = frames[np.sort(random_state.choice(len(frames), CENTER_CANDIDATES * n_basis, replace=False))]
    _, chosen = kmeans_plusplus(frames, n_basis, random_state=random_state, n_local_trials=1)
    centers: Array = np.ascontiguousarray(frames[np.sort(chosen)])
    return centers


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
