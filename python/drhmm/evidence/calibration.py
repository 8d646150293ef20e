"""Calibration: binned probabilities beside the observed shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..data.checks import Array


def bins_of(said: Array, true: npt.NDArray[np.bool_], n_bins: int) -> tuple[Array, Array, Array]:
    """Mean probability, observed share and share of all frames per non-empty bin."""
    places = np.minimum((said * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(places, minlength=n_bins)
    there = counts > 0
    means = np.bincount(places, weights=said, minlength=n_bins)[there] / counts[there]
    shares = np.bincount(places, weights=true, minlength=n_bins)[there] / counts[there]
    return means, shares, counts[there] / len(said)


def error_of(means: Array, shares: Array, weights: Array) -> float:
    """Return the expected calibration error."""
    return float(np.sum(weights * np.abs(means - shares)))
