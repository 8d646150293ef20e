"""A sequence with its true states and the probabilities of the states over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .._labels import UNKNOWN
from .._validation import as_matrix
from .style import as_curves, as_states, color, new_figure, place_of, runs, state_names


def _strip(axes: Axes, states: npt.NDArray[np.int64]) -> None:
    for begin, end, state in runs(states):
        axes.axvspan(begin - 0.5, end - 0.5, color=color(state), linewidth=0)
    axes.set_yticks([])


def _stack(axes: Axes, posteriors: npt.NDArray[np.float64]) -> None:
    """Probabilities of all states on top of one another, each frame as wide as one step."""
    edges = np.repeat(np.arange(len(posteriors) + 1) - 0.5, 2)[1:-1]
    heights = np.repeat(posteriors, 2, axis=0).T
    axes.stackplot(edges, heights, colors=[color(k) for k in range(len(heights))], linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1])


def sequence(
    X: Any,
    posteriors: Any,
    *,
    states: Any = None,
    names: Any = None,
    title: str | None = None,
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw a sequence, its true states and the probabilities of the states over time.

    Parameters
    ----------
    X : array of shape (T, d)
        Samples, one line per column.
    posteriors : array of shape (T, S), or mapping of str to such arrays
        The probability of each state at each frame: one panel, or one for each name.
    states : array of shape (T,), optional
        True states, as indices or as labels, -1, None or NaN where unknown; drawn as a strip. The share of known frames
        that each panel gets right is then added to its name.
    names : sequence, optional
        Names of the states for the legend, such as ``model.classes``.
    title : str, optional
        Title of the figure.
    figure : matplotlib.figure.Figure, optional
        Where to draw; a new figure by default.

    Returns
    -------
    list of matplotlib.axes.Axes
        From top to bottom.
    """
    samples = as_matrix(X, "X")
    curves = as_curves(posteriors, "posteriors")
    panels = {name: as_matrix(values, place_of("posteriors", name)) for name, values in curves.items()}
    n_states = next(iter(panels.values())).shape[1]
    for name, values in panels.items():
        if values.shape != (len(samples), n_states):
            raise ValueError(
                f"{place_of('posteriors', name)} must have shape {(len(samples), n_states)}, got {values.shape}"
            )
    truth = None if states is None else as_states(states, len(samples), n_states, names=names)
    labels = state_names(names, n_states)

    heights = [2.2] + ([] if truth is None else [0.35]) + [1.0] * len(panels)
    if figure is None:
        figure = new_figure(10, 0.9 * sum(heights) + 1.2)
    axes: list[Axes] = list(
        figure.subplots(len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights}, squeeze=False)[:, 0]
    )
    top, *lower = axes
    top.plot(samples, linewidth=0.8, color="#333333" if samples.shape[1] == 1 else None)
    top.set_ylabel("signal")
    if truth is not None:
        _strip(lower[0], truth)
        lower[0].set_ylabel("true", rotation=0, ha="right", va="center")
        lower = lower[1:]
    for axis, (name, values) in zip(lower, panels.items(), strict=True):
        _stack(axis, values)
        words = [name] if name else []
        if truth is not None and (truth != UNKNOWN).any():
            right = (values.argmax(axis=1) == truth)[truth != UNKNOWN]
            words.append(f"{right.mean():.0%} of frames right")
        axis.set_title(", ".join(words), loc="left", fontsize=9, pad=3)
    axes[-1].set_xlim(-0.5, len(samples) - 0.5)
    axes[-1].set_xlabel("frame")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=color(k), label=label) for k, label in enumerate(labels)]
    figure.legend(handles=patches, loc="outside upper right", ncols=min(n_states, 8), frameon=False, fontsize=9)
    if title is not None:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return axes
