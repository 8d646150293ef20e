"""Windows of samples and squared exponential features, in numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def windows(samples: Array, lengths: npt.NDArray[np.int64], window: int) -> Array:
    """Describe frame t by samples t-window+1..t of its own sequence, oldest first.

    Frames without a complete window, or with a NaN anywhere in it, are rows of NaN.
    """
    n, d = samples.shape
    frames = np.full((n, window * d), np.nan)
    begin = 0
    for length in lengths:
        for t in range(begin + window - 1, begin + length):
            frames[t] = samples[t - window + 1 : t + 1].ravel()
        begin += length
    frames[np.isnan(frames).any(axis=1)] = np.nan
    return frames


def squared_exponential(frames: Array, centers: Array, sigma: float) -> Array:
    """``phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2))``, shape (frames, centers)."""
    difference = frames[:, None, :] - centers[None, :, :]
    features: Array = np.exp(-(difference**2).sum(axis=2) / (2 * sigma**2))
    return features
