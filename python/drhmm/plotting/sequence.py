"""A sequence with its true states and the probabilities of the states over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .._validation import as_matrix
from .style import as_states, color, new_figure, runs, state_names


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
    posteriors: Mapping[str, Any],
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
    posteriors : mapping of str to array of shape (T, S)
        One panel each: the name, and the probability of each state at each frame.
    states : array of int of shape (T,), optional
        True states, drawn as a strip; the share of frames that each panel gets right is then added to its name.
    names : sequence of str, optional
        Names of the states for the legend.
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
    panels = {name: as_matrix(values, f"posteriors[{name!r}]") for name, values in posteriors.items()}
    if not panels:
        raise ValueError("posteriors is empty: there is nothing to draw")
    n_states = next(iter(panels.values())).shape[1]
    for name, values in panels.items():
        if values.shape != (len(samples), n_states):
            raise ValueError(f"posteriors[{name!r}] must have shape {(len(samples), n_states)}, got {values.shape}")
    truth = None if states is None else as_states(states, len(samples), n_states)
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
        accuracy = "" if truth is None else f", {np.mean(values.argmax(axis=1) == truth):.0%} of frames right"
        axis.set_title(f"{name}{accuracy}", loc="left", fontsize=9, pad=3)
    axes[-1].set_xlim(-0.5, len(samples) - 0.5)
    axes[-1].set_xlabel("frame")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=color(k), label=label) for k, label in enumerate(labels)]
    figure.legend(handles=patches, loc="outside upper right", ncols=min(n_states, 8), frameon=False, fontsize=9)
    if title is not None:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return axes
