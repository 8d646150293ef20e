"""The transition matrix as a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from ..data.checks import as_matrix, as_transmat
from .style import axes_or_new, state_names


def _written(probability: float) -> str:
    """Exact zeros and ones stand out; everything else has two digits that say something."""
    if probability in (0.0, 1.0):
        return str(int(probability))
    if probability < 5e-4:
        return f"{probability:.0e}".replace("e-0", "e-")
    return f"{probability:.2f}" if 0.01 <= probability <= 0.99 else f"{probability:.3f}"


def transitions(transmat: Any, *, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw a transition matrix with its numbers.

    Parameters
    ----------
    transmat : array of shape (S, S)
        Probability of going from a state (row) to a state (column); rows sum to 1.
    names : sequence of str, optional
        Names of the states, for example ``model.classes_``.
    ax : matplotlib.axes.Axes, optional
        As in `roc`.

    Returns
    -------
    matplotlib.axes.Axes
        With the map and one number per transition.

    Examples
    --------
    >>> from drhmm.plotting import transitions
    >>> axes = transitions([[0.9, 0.1], [0.2, 0.8]], names=["vacant", "occupied"])
    """
    square = as_matrix(transmat, "transmat")
    matrix = as_transmat(square, len(square))
    labels = state_names(names, len(matrix))
    size = 1.5 + 0.75 * len(matrix)
    axes = axes_or_new(ax, size + 0.3, size)
    # Powers below 1 keep rare transitions apart from forbidden ones.
    axes.imshow(matrix, cmap="Blues", norm=PowerNorm(0.4, vmin=0, vmax=1))
    for i, j in np.ndindex(*matrix.shape):
        ink = "white" if matrix[i, j] > 0.3 else "#222222"
        axes.text(j, i, _written(float(matrix[i, j])), ha="center", va="center", color=ink, fontsize=9)
    axes.set_xticks(range(len(labels)), labels)
    if max(map(len, labels)) > 9:
        axes.tick_params(axis="x", labelrotation=45)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes
