"""A sequence with its states and their probabilities over time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..data.checks import as_matrix, as_steps
from ..data.labels import UNKNOWN
from ..data.sequences import column_names
from .style import Along, along, as_curves, as_states, color, literal, panels_of, place_of, runs, state_names

#: Greys and dashes of the columns, to differ from the colours of states.
GREYS = ("#222222", "#777777", "#AAAAAA")
DASHES = ("-", "--", ":", "-.")


def _signal(axes: Axes, samples: npt.NDArray[np.float64], columns: Any, parts: list[int], x: Along) -> None:
    """Draw one line per column, broken at gaps."""
    names = [""] * samples.shape[1] if columns is None else [literal(name) for name in columns]
    if len(names) != samples.shape[1]:
        raise ValueError(f"columns must have one name for each of {samples.shape[1]} columns, got {len(names)}")
    for k, name in enumerate(names):
        style: dict[str, Any] = {"color": GREYS[k % len(GREYS)], "linestyle": DASHES[k // len(GREYS) % len(DASHES)]}
        for begin, end in pairwise(parts):
            label = name if begin == 0 else ""
            axes.plot(x.places[begin:end], samples[begin:end, k], linewidth=0.8, label=label, **style)
    if columns is not None and 1 < len(names) <= len(GREYS) * len(DASHES):
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    axes.set_ylabel(names[0] if len(names) == 1 and names[0] else "signal")


def _strip(axes: Axes, states: npt.NDArray[np.int64], name: str, x: Along) -> None:
    for begin, end, state in runs(states):
        axes.axvspan(x.borders[begin], x.borders[end], color=color(state), linewidth=0)
    axes.set_yticks([])
    axes.set_ylabel(literal(name), rotation=0, ha="right", va="center")


def _stack(axes: Axes, posteriors: npt.NDArray[np.float64], x: Along) -> None:
    """Stack the probabilities of all states, one step wide per time step."""
    edges = np.repeat(x.borders, 2)[1:-1]
    heights = np.repeat(posteriors, 2, axis=0).T
    axes.stackplot(edges, heights, colors=[color(k) for k in range(len(heights))], linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1])


def sequence(
    X: Any,
    posteriors: Any,
    *,
    states: Any = None,
    name: str = "true",
    names: Any = None,
    columns: Any = None,
    dt: Any = None,
    times: Any = None,
    first: int = 0,
    title: str | None = None,
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw a sequence, its true states and their probabilities over time.

    Parameters
    ----------
    X : array of shape (T, d)
        Samples, one line per column.
    posteriors : array of shape (T, S), or mapping of str to such arrays
        Probabilities of the states: one panel, or one for each name.
    states : array of shape (T,), or mapping of str to such arrays, optional
        States as indices or labels (-1, None or NaN if unknown): one strip, or one for each name.
    name : str
        The name of a single strip. If there is a strip "true", the titles of panels have their accuracies.
    columns : sequence, optional
        Names of the columns, such as ``model.feature_names``; those of a table by default.
    dt : array of int, shape (T,), optional
        As in `Model.predict_proba`; dotted lines mark gaps.
    first : int
        The number of the first time step, if there are no times.
    title : str, optional
        Title of the figure.
    """
    samples = as_matrix(X, "X")
    columns = column_names(X) if columns is None else columns
    x = along(times, len(samples), first)
    curves = as_curves(posteriors, "posteriors")
    panels = {curve: as_matrix(values, place_of("posteriors", curve)) for curve, values in curves.items()}
    n_states = next(iter(panels.values())).shape[1]
    for curve, values in panels.items():
        if values.shape != (len(samples), n_states):
            raise ValueError(
                f"{place_of('posteriors', curve)} must have shape {(len(samples), n_states)}, got {values.shape}"
            )
    given = {} if states is None else as_curves(states, "states")
    strips = {
        strip or name: as_states(values, len(samples), n_states, place_of("states", strip), names=names)
        for strip, values in given.items()
    }
    labels = state_names(names, n_states)
    steps = None if dt is None else as_steps(dt, len(samples))
    gaps = [] if steps is None else (np.flatnonzero(steps[1:] > 1) + 1).tolist()

    heights = [2.2] + [0.35] * len(strips) + [1.0] * len(panels)
    axes = panels_of(figure, 10, 0.9 * sum(heights) + 1.2, heights)
    _signal(axes[0], samples, columns, [0, *gaps, len(samples)], x)
    for axis, (strip, codes) in zip(axes[1:], strips.items(), strict=False):
        _strip(axis, codes, strip, x)
    truth = strips.get("true")
    for axis, (curve, values) in zip(axes[1 + len(strips) :], panels.items(), strict=True):
        _stack(axis, values, x)
        words = [literal(curve)] if curve else []
        if truth is not None and (truth != UNKNOWN).any():
            right = (values.argmax(axis=1) == truth)[truth != UNKNOWN]
            words.append(f"{right.mean():.1%} of time steps right")
        axis.set_title(", ".join(words), loc="left", fontsize=9, pad=3)
    x.finish(axes[-1])
    for axis in axes:
        for gap in gaps:
            axis.axvline(x.borders[gap], color="white", linewidth=1.6)
            axis.axvline(x.borders[gap], color="#222222", linewidth=1.0, linestyle=":")
    patches = [Patch(color=color(k), label=label) for k, label in enumerate(labels)]
    # Narrow screens show the left side first.
    place: Any = "outside upper left" if title is None else "outside upper right"
    drawn = axes[0].figure
    drawn.legend(handles=patches, loc=place, ncols=min(n_states, 8), frameon=False, fontsize=9)
    if title is not None:
        drawn.suptitle(literal(title), x=0.01, ha="left", fontsize=11)
    return axes
