"""Calibration of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from ..data.checks import Array, as_floats, check_integer
from ..data.labels import UNKNOWN
from ..evidence.calibration import bins_of, error_of
from .style import as_curves, as_states, axes_or_new, color, literal, place_of, unit_square


def _confidence(y: Any, probabilities: Any, name: str, names: Any = None) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the probability of the likeliest state or the event, and the outcome."""
    values = as_floats(probabilities, name)
    if values.ndim not in (1, 2) or values.shape[0] == 0 or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(f"{name} must have shape (T,), or (T, S) for S states, got {values.shape}")
    for place in np.argwhere(~((values >= -1e-9) & (values <= 1 + 1e-9))):
        raise ValueError(f"{name} has {values[tuple(place)]} at time step {place[0]}: probabilities are 0 to 1")
    states = as_states(y, len(values), 2 if values.ndim == 1 else values.shape[1], "y", names)
    known = states != UNKNOWN
    if not known.any():
        raise ValueError("y has no known label to compare with")
    if values.ndim == 1:
        return values[known], states[known].astype(bool)
    likeliest = values.argmax(axis=1)
    return values.max(axis=1)[known], (likeliest == states)[known]


def calibration_error(y: Any, probabilities: Any, *, names: Any = None, n_bins: int = 10) -> float:
    """Expected calibration error: mean distance of probabilities from frequencies.

    Parameters
    ----------
    y : array of shape (T,)
        True states as indices or labels, or 1 and 0 for one event. Unknown ones (-1, None or NaN) are left out.
    probabilities : array of shape (T, S) or (T,)
        Probability of each state, or of the event. Only the likeliest state counts.
    n_bins : int
        Number of equal intervals of probability (bins).

    Returns
    -------
    float
        The mean over time steps of ``|mean probability - observed frequency|`` of the bin.
    """
    check_integer(n_bins, "n_bins", low=1)
    return error_of(*bins_of(*_confidence(y, probabilities, "probabilities", names), n_bins))


def calibration(y: Any, probabilities: Any, *, names: Any = None, n_bins: int = 10, ax: Axes | None = None) -> Axes:
    """Draw observed frequencies against probabilities (reliability diagram).

    The areas of dots show the time steps of each bin. Below the diagonal, a model is overconfident.

    Parameters
    ----------
    y, n_bins
        As in `calibration_error`.
    probabilities : array of shape (T, S) or (T,), or mapping of str to such arrays
        As in `calibration_error`: one curve, or one for each name.
    """
    check_integer(n_bins, "n_bins", low=1)
    curves = {
        name: bins_of(*_confidence(y, values, place_of("probabilities", name), names), n_bins)
        for name, values in as_curves(probabilities, "probabilities").items()
    }
    axes = axes_or_new(ax, 5, 5)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    for k, (name, (means, shares, weights)) in enumerate(curves.items()):
        number = f"calibration error {error_of(means, shares, weights):.3f}"
        axes.plot(means, shares, color=color(k), linewidth=1.2, label=f"{literal(name)}: {number}" if name else number)
        axes.scatter(means, shares, s=10 + 200 * weights, color=color(k), alpha=0.8, linewidth=0)
    axes.legend(frameon=False, fontsize=9, loc="best")
    unit_square(axes, "probability", "share of time steps where it came true")
    return axes
