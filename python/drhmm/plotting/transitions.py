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
    """
    square = as_matrix(transmat, "transmat")
    matrix = as_transmat(square, len(square))
    size = 1.5 + 0.75 * len(matrix)
    axes = axes_or_new(ax, size + 0.3, size)
    numbered_map(axes, matrix, [[written_share(float(p)) for p in row] for row in matrix], names, "to", "from")
    return axes


def numbered_map(
    axes: Axes, shares: Array, written: Sequence[Sequence[str]], names: Any, across: str, down: str
) -> None:
    """Draw shares (S, S) from light to dark, with a text on each."""
    # A power below 1 makes rare transitions visible beside forbidden ones.
    axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.4, vmin=0, vmax=1))
    for i, j in np.ndindex(*shares.shape):
        ink = "white" if shares[i, j] > 0.3 else "#222222"
        axes.text(j, i, written[i][j], ha="center", va="center", color=ink, fontsize=9)
    labels = state_names(names, len(shares))
    slanted: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, labels)) > 9 else {}
    axes.set_xticks(range(len(labels)), labels, **slanted)
    axes.set_yticks(range(len(labels)), labels)
    axes.set(xlabel=across, ylabel=down)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
