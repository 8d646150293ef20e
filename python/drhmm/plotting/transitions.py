"""The transition matrix as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from ..data.checks import Array, as_matrix, as_transmat
from .style import axes_or_new, state_names


def written_share(probability: float) -> str:
    """Format an entry: exact 0 and 1, two significant digits otherwise."""
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
        Names of the states, such as ``model.classes_``.
    ax : matplotlib.axes.Axes, optional
        As in `roc`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with one number per transition.

    Examples
    --------
    >>> from drhmm.plotting import transitions
    >>> axes = transitions([[0.9, 0.1], [0.2, 0.8]], names=["vacant", "occupied"])
    """
    square = as_matrix(transmat, "transmat")
    matrix = as_transmat(square, len(square))
    labels = [f"state {k}" for k in range(len(matrix))] if names is None else names
    state_names(labels, len(matrix))
    size = 1.5 + 0.75 * len(matrix)
    axes = axes_or_new(ax, size + 0.3, size)
    numbered_map(axes, matrix, [[written_share(float(p)) for p in row] for row in matrix], labels, "to", "from")
    return axes


def numbered_map(
    axes: Axes, shares: Array, written: Sequence[Sequence[str]], labels: Sequence[str], across: str, down: str
) -> None:
    """Draw shares (S, S) from light to dark, with a text on each."""
    # A power below 1 makes rare transitions visible beside forbidden ones.
    axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.4, vmin=0, vmax=1))
    for i, j in np.ndindex(*shares.shape):
        ink = "white" if shares[i, j] > 0.3 else "#222222"
        axes.text(j, i, written[i][j], ha="center", va="center", color=ink, fontsize=9)
    names = state_names(labels, len(shares))
    axes.set_xticks(range(len(names)), names)
    if max(map(len, names)) > 9:
        axes.tick_params(axis="x", labelrotation=45)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
