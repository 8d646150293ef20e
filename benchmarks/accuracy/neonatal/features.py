"""What the density ratio HMM sees of a channel: its level, its distance from a slow baseline, its unrest.

All windows look back only, so that filtering stays filtering, and skip dropouts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .protocol import Patient


@dataclass(frozen=True)
class Recipe:
    """Columns of a condition.

    For each channel and each difference of two channels: the mean of the last ``short`` seconds minus the normal median
    (``level``), the same minus the mean of the last ``long`` seconds (``change``), and the standard deviation of the
    last ``unrest_window`` seconds (``unrest``); ``only`` restricts a channel to some of these.
    """

    short: int
    long: int
    unrest_window: int
    columns: tuple[str, ...] = ("level", "change", "unrest")
    differences: tuple[tuple[str, str], ...] = ()
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of the last `window` values that are not NaN; NaN where there is none."""
    seen = ~np.isnan(values)
    count = _trailing_sum(seen.astype(float), window)
    total = _trailing_sum(np.where(seen, values, 0.0), window)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def trailing_deviation(values: np.ndarray, window: int) -> np.ndarray:
    """Standard deviation of the last `window` values that are not NaN; NaN where there is none."""
    center = np.nanmean(values) if (~np.isnan(values)).any() else 0.0
    shifted = values - center  # keeps the digits of the variance
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
        if "level" in wanted:
            columns.append(short - center)
        if "change" in wanted:
            columns.append(short - trailing_mean(values, recipe.long))
        if "unrest" in wanted:
            columns.append(trailing_deviation(values, recipe.unrest_window))
    return np.stack(columns, axis=1)
