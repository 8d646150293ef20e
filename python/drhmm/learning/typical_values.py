"""Typical values of each column in each state, recorded for summaries and explanations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..data.checks import Array

#: The entry of a model's settings that says what scales, temper and prior shift were learned from.
SCALE_REASON = "scale_reason"

#: The entry with the typical values of each column in each state.
TYPICAL = "typical_values"

#: Quantiles that say what is typical.
QUANTILES = (0.1, 0.5, 0.9)

#: Values that are recorded, at most.
MOST_RECORDED = 30_000

Quantiles = list[list[list[float | None]]]


def typical_values(samples: Array, states: npt.NDArray[np.int64], n_states: int) -> Quantiles | None:
    """Quantiles of every column in every state, (S, d, 3); None in a state without samples, and where they are many."""
    if n_states * samples.shape[1] * len(QUANTILES) > MOST_RECORDED:
        return None
    own = [samples[states == state] for state in range(n_states)]
    values = [
        np.quantile(part, QUANTILES, axis=0).T if len(part) > 0 else np.full((samples.shape[1], 3), np.nan)
        for part in own
    ]
    return [
        [[float(f"{value:.6g}") if np.isfinite(value) else None for value in column] for column in state]
        for state in values
    ]
