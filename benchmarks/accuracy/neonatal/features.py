"""What the density ratio HMM sees of a channel: its level, its distance from a slow baseline, its unrest.

All windows look back only, so that filtering stays filtering, and skip dropouts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .protocol import Patient

#: Seconds that are averaged before the running median is taken: a median of all seconds would be no better, and slow.
BLOCK = 20


@dataclass(frozen=True)
class Recipe:
    """Columns of a condition.

    For each channel and each difference of two channels: the mean of the last ``short`` seconds (``value``), the same
    minus the running median of the last ``long`` seconds (``level``), the same minus the mean of the last ``medium``
    seconds (``change``), and the standard deviation of the last ``unrest`` seconds (``unrest``); ``only`` restricts a
    channel to some of these.
    """

    short: int
    medium: int
    unrest: int
    long: int = 1800
    columns: tuple[str, ...] = ("level", "change", "unrest")
    differences: tuple[tuple[str, str], ...] = ()
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)


def running_median(values: np.ndarray, window: int, start: float) -> np.ndarray:
    """Median of the last `window` seconds, in blocks of 20 s that are complete; before the beginning it was `start`.

    Drifts with a baby, and hardly with anything that lasts less than half of the window.
    """
    n_blocks = len(values) // BLOCK
    span = max(window // BLOCK, 1)
    blocks = values[: n_blocks * BLOCK].reshape(n_blocks, BLOCK)
    seen = ~np.isnan(blocks)
    means = np.where(seen, blocks, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    means = np.where(seen.any(axis=1), means, np.nan)
    padded = np.concatenate([np.full(span, start), means])
    windows = np.lib.stride_tricks.sliding_window_view(padded, span)
    gaps = np.isnan(windows).all(axis=1)
    medians = np.full(len(windows), np.nan)
    medians[~gaps] = np.nanmedian(windows[~gaps], axis=1)
    for row in np.flatnonzero(gaps):
        medians[row] = medians[row - 1]
    # Second t sees the blocks that ended before it.
    return medians[np.arange(len(values)) // BLOCK]


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of the last `window` values that are not NaN; NaN where there is none."""
    seen = ~np.isnan(values)
    count = _trailing_sum(seen.astype(float), window)
    total = _trailing_sum(np.where(seen, values, 0.0), window)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def trailing_deviation(values: np.ndarray, window: int) -> np.ndarray:
    """Standard deviation of the last `window` values that are not NaN; NaN where there is none."""
    seen = values[~np.isnan(values)]
    shifted = values - (seen[0] if len(seen) else 0.0)  # keeps the digits of the variance
    square = trailing_mean(shifted**2, window) - trailing_mean(shifted, window) ** 2
    return np.sqrt(np.maximum(square, 0.0))


def _trailing_sum(values: np.ndarray, window: int) -> np.ndarray:
    summed = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    return summed[ends] - summed[np.maximum(ends - window, 0)]


def features(patient: Patient, channels: tuple[str, ...], recipe: Recipe) -> np.ndarray:
    """Frames (n_samples, n_columns); NaN where a channel has been off for longer than the short window."""
    signals = {name: (patient.values[name], patient.center[name]) for name in channels}
    for first, second in recipe.differences:
        if first in channels and second in channels:
            difference = patient.values[first] - patient.values[second]
            signals[f"{first}-{second}"] = (difference, patient.center[first] - patient.center[second])
    columns = []
    for name, (values, center) in signals.items():
        short = trailing_mean(values, recipe.short)
        wanted = recipe.only.get(name, recipe.columns)
        if "value" in wanted:
            columns.append(short)
        if "level" in wanted:
            columns.append(short - running_median(values, recipe.long, center))
        if "change" in wanted:
            columns.append(short - trailing_mean(values, recipe.medium))
        if "unrest" in wanted:
            columns.append(trailing_deviation(values, recipe.unrest))
    return np.stack(columns, axis=1)


def scaled_features(patient: Patient, channels: tuple[str, ...], recipe: Recipe) -> np.ndarray:
    """The same in units of their deviation in the baby's normal stretch, and large values compressed: asinh.

    For telling the unknown from the known: what is normal has width 1 in every column, and a deviation of 30 is not ten
    times as far away as one of 3.
    """
    frames = features(patient, channels, recipe)
    normal = frames[patient.normal & ~np.isnan(frames).any(axis=1)]
    return np.arcsinh((frames - np.median(normal, axis=0)) / np.maximum(normal.std(axis=0), 1e-2))
