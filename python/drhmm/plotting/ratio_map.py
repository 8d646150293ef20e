"""The map of the ratio of two states from one time step to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from ..data.checks import as_floats
from .style import axes_or_new


def ratio_map(
    stay: Any = (0.5, 0.6, 0.8, 0.95, 0.99, 0.999, 1.0),
    *,
    limits: tuple[float, float] = (1e-4, 1e4),
    ax: Axes | None = None,
) -> Axes:
    """Draw the predicted ratio by the ratio before, as in Figure 1 of the paper.

    Both axes are logarithmic.

    Parameters
    ----------
    stay : float or array of float
        Probabilities a of staying in a state, between 0 and 1: one curve each.
    limits : (float, float)
        Smallest and largest ratio.

    Notes
    -----
    With A = [[a, 1 - a], [1 - a, a]], the ratio r = r(t-1) becomes (a r + 1 - a) / ((1 - a) r + a). It is 1 for
    a = 1/2, r for a = 1, and otherwise between (1 - a) / a and its inverse.
    """
    values = np.atleast_1d(as_floats(stay, "stay"))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"stay must be a number or a list of numbers, got shape {values.shape}")
    for place in np.flatnonzero(~((values >= 0) & (values <= 1))):
        raise ValueError(f"stay has {values[place]} at place {place}: probabilities are 0 to 1")
    low, high = limits
    if not 0 < low < high < np.inf:
        raise ValueError(f"limits must be two rising positive numbers, got {limits}")
    axes = axes_or_new(ax, 5.6, 5)
    ratios = np.geomspace(low, high, 401)
    # Shades of one hue, darker with a, to differ from the colours of states.
    for a, ink in zip(values, colormaps["Blues"](np.linspace(0.35, 1.0, len(values))), strict=True):
        predicted = (a * ratios + 1 - a) / ((1 - a) * ratios + a)
        axes.loglog(ratios, predicted, color=ink, linewidth=1.8, label=f"a = {a:g}")
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.set(xlabel="ratio of the time step before, r(t-1)", ylabel="predicted ratio at t")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="upper left", reverse=True)
    return axes
