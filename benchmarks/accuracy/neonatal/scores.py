"""Area under the ROC curve and equal error rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import auc, roc_curve

#: False alarm rates at which a curve is kept for the figures.
KEPT = np.concatenate([np.linspace(0, 0.1, 21), np.linspace(0.12, 1, 45)])


@dataclass(frozen=True)
class Scores:
    """``auc``; ``eer``, the rate at which false alarms and misses are equal; ``hits`` at the false alarm rates KEPT."""

    auc: float
    eer: float
    hits: list[float]


def equal_error_rate(false_alarms: np.ndarray, hits: np.ndarray) -> float:
    """Where the ROC curve, straight between its points, meets false alarms = 1 - hits."""
    balance = false_alarms + hits - 1  # grows from -1 to 1 along the curve
    after = int(np.argmax(balance >= 0))
    if after == 0:
        return float(false_alarms[0])
    before = after - 1
    share = -balance[before] / (balance[after] - balance[before])
    return float(false_alarms[before] + share * (false_alarms[after] - false_alarms[before]))


def scores(truth: np.ndarray, probabilities: np.ndarray) -> Scores:
    """AUC and EER of probabilities against what is true, over every second."""
    if np.isnan(probabilities).any():
        raise ValueError(f"probabilities has NaN at row {int(np.argmax(np.isnan(probabilities)))}")
    if truth.all() or not truth.any():
        raise ValueError("truth must hold both values: there is no curve otherwise")
    false_alarms, hits, _ = roc_curve(truth, probabilities)
    kept = np.interp(KEPT, false_alarms, hits)
    return Scores(float(auc(false_alarms, hits)), equal_error_rate(false_alarms, hits), kept.round(4).tolist())
