"""Features of the past of a time step, in numpy."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .features import Array

TAPS, DILATIONS, POOLED, LEAST, MOST_COLUMNS = 9, (1, 2, 4), 5, 1e-3, 200


def context_features(
    samples: Array, mean: Array, scale: Array, windows: list[int], kinds: int, signs: Array, bias: Array
) -> Array:
    """Samples, statistics of up to 200 columns, pooled convolutions of (T, d); (T, F)."""
    z = filled(rounded((samples - mean) / scale, windows[-1]))
    d = z.shape[1]
    kept = z[:, np.arange(min(d, MOST_COLUMNS)) * d // min(d, MOST_COLUMNS)]
    found = [statistics(kept, w)[kind] for w in windows for kind in range(kinds)]
    return np.hstack([kept, *found, pooled(z, signs, bias)])


def rounded(z: Array, longest: int) -> Array:
    """Limit to +-32 and round to multiples of 2^-17; larger ones for long windows."""
    unit = 2.0 ** (np.ceil(max(np.log2(longest / 128), 0) / 2) - 17)
    exact: Array = np.round(np.clip(z, -32, 32) / unit) * unit
    return exact


def filled(z: Array) -> Array:
    """Replace each NaN by the previous value of its column, or by 0 at the start."""
    z = z.copy()
    for t in range(len(z)):
        before = z[t - 1] if t > 0 else np.zeros(z.shape[1])
        z[t] = np.where(np.isnan(z[t]), before, z[t])
    return z


def last(z: Array, t: int, n: int) -> Array:
    """The n samples up to t, (n, d); the first sample stands for all before it."""
    return z[np.maximum(np.arange(t - n + 1, t + 1), 0)]


def statistics(z: Array, w: int) -> tuple[Array, Array, Array]:
    """Mean, log(sd + .001), log(mean |difference| + .001) of w samples, (T, d) each."""
    windows = [last(z, t, w) for t in range(len(z))]
    changes = [np.abs(np.diff(last(z, t, w + 1), axis=0)).mean(axis=0) for t in range(len(z))]
    mean, spread = [np.array([f(window, axis=0) for window in windows]) for f in (np.mean, np.std)]
    return mean, np.log(spread + LEAST), np.log(np.array(changes) + LEAST)


def convolutions(z: Array, signs: Array) -> Array:
    """Outputs (T, 252): three taps of weight 2, six of -1, on signed sums of columns."""
    outputs = np.empty((len(z), signs.shape[1]))
    patterns = [np.where(np.isin(np.arange(TAPS), taps), 2.0, -1.0) for taps in combinations(range(TAPS), 3)]
    for t in range(len(z)):
        for group, dilation in enumerate(DILATIONS):
            taps = last(z, t, (TAPS - 1) * dilation + 1)[::dilation]  # (9, d), the oldest first
            for k, pattern in enumerate(patterns):
                kernel = group * len(patterns) + k
                outputs[t, kernel] = pattern @ (taps @ signs[:, kernel])
    return outputs


def pooled(z: Array, signs: Array, bias: Array) -> Array:
    """The share of the last five outputs above the bias, (T, 252)."""
    above = (convolutions(z, signs) > bias).astype(float)
    return np.array([last(above, t, POOLED).mean(axis=0) for t in range(len(above))])
