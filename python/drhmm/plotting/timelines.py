"""Sequences over time: samples, states, evidence and alarms."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..data.checks import Array, as_floats, as_matrix, as_steps, check_number
from ..data.labels import UNKNOWN
from ..data.sequences import column_names
from ..live.alarms import Alarm
from .style import (
    Along,
    along,
    as_curves,
    as_states,
    axes_or_new,
    color,
    literal,
    panels_of,
    place_of,
    runs,
    state_names,
)

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


#: Height of the strip of true states, as a share of the axes.
STRIP = 0.05


def _against_the_others(log_ratios: Array) -> Array:
    """Evidence for each state against the others: log w_i - log mean_{j != i} w_j."""
    n_states = log_ratios.shape[1]
    against = np.empty_like(log_ratios)
    with np.errstate(divide="ignore", invalid="ignore"):
        for state in range(n_states):
            others = np.delete(log_ratios, state, axis=1)
            against[:, state] = log_ratios[:, state] - (np.logaddexp.reduce(others, axis=1) - np.log(n_states - 1))
    against[np.isneginf(log_ratios).all(axis=1)] = 0.0
    return against


def evidence(
    log_ratios: Any,
    *,
    states: Any = None,
    names: Any = None,
    limit: float | None = None,
    times: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the evidence of each time step for every state against the others.

    The height of state i at time step t is log w_i(y_t) - log mean_{j != i} w_j(y_t), in nats. Above 0, it favours the
    state; a difference of 1 changes the odds by a factor of e.

    Parameters
    ----------
    log_ratios : array of shape (T, S)
        Evidence from `DensityRatioHMM.log_ratios`, or log-likelihoods; a NaN row is a missing time step.
    states : array of shape (T,), optional
        States as in `sequence`, drawn as a strip at the lower edge.
    limit : float, optional
        Largest absolute evidence drawn; larger values are clipped. By default the largest finite value.
    """
    values = as_matrix(log_ratios, "log_ratios")
    n_frames, n_states = values.shape
    if n_frames == 0 or n_states < 2:
        raise ValueError(f"log_ratios must have at least one time step and two states, got shape {values.shape}")
    truth = None if states is None else as_states(states, n_frames, n_states, names=names)
    labels = state_names(names, n_states)
    heights = _against_the_others(values)
    finite = np.abs(heights[np.isfinite(heights)])
    if limit is None:
        limit = max(float(finite.max(initial=0.0)), 1e-3)
    check_number(limit, "limit", low=0, low_open=True)
    x = along(times, n_frames)
    axes = axes_or_new(ax, 10, 3)
    axes.axhline(0, color="#999999", linewidth=0.8, zorder=0)
    drawn = np.clip(heights, -limit, limit)[:, : 1 if n_states == 2 else n_states]
    for state in range(drawn.shape[1]):
        label = f"{labels[0]} against {labels[1]}" if n_states == 2 else labels[state]
        axes.plot(x.places, drawn[:, state], linewidth=0.9, color=color(state), label=label)
    low, high = np.fmin.reduce(drawn, axis=None, initial=0.0), np.fmax.reduce(drawn, axis=None, initial=0.0)
    margin = 0.05 * max(high - low, 1e-3)
    if truth is not None:
        for begin, end, state in runs(truth):
            axes.axvspan(x.borders[begin], x.borders[end], 0, STRIP, color=color(state), linewidth=0)
    axes.set_ylim(low - (1 if truth is None else 2.5) * margin, high + margin)
    x.finish(axes)
    axes.set_ylabel("evidence of a time step, nats")
    axes.legend(frameon=False, fontsize=9, ncols=min(n_states, 8), loc="lower right", bbox_to_anchor=(1, 1))
    return axes


def alarms(
    scores: Any, alarm: Alarm, *, truth: Any = None, times: Any = None, figure: Figure | None = None
) -> list[Axes]:
    """Draw the alarms of one sequence with the evidence and its levels.

    The panels have the evidence of single time steps and, below, its cumulative sum. Grey bands are alarms, dotted
    lines are levels, and marks at the bottom are the truth.

    Parameters
    ----------
    scores : array of shape (T,)
        Evidence for the unknown at each time step: ``model.novelty_score(X)``.
    alarm : Alarm
        The alarm.
    truth : array of bool, shape (T,), optional
        True at time steps that should raise an alarm.
    """
    values = as_floats(scores, "scores")
    if values.ndim != 1:
        raise ValueError(f"scores must have the shape (T,), got {values.shape}")
    if not isinstance(alarm, Alarm):
        raise ValueError(f"alarm must be one of model.alarm, got {type(alarm).__name__}")
    wrong = None if truth is None else np.asarray(truth)
    if wrong is not None and (wrong.dtype != np.bool_ or wrong.shape != values.shape):
        raise ValueError(f"truth must have one bool per time step, {len(values)}, got {wrong.dtype} {wrong.shape}")
    x = along(times, len(values))
    sums, episodes = alarm.follow(values)
    axes = panels_of(figure, 9, 4, [1, 1])
    panels = (
        (values, alarm.frame_level, "evidence of each time step, nats"),
        (sums, alarm.sum_level, "its cumulative sum"),
    )
    for k, (axis, (curve, level, title)) in enumerate(zip(axes, panels, strict=True)):
        for episode in episodes:
            # The outline keeps short alarms visible.
            axis.axvspan(x.borders[episode.begin], x.borders[episode.end], color="#BBBBBB", alpha=0.5, linewidth=1.0)
        axis.plot(x.places, curve, color=color(k), linewidth=0.8)
        axis.axhline(level, color="#444444", linewidth=0.8, linestyle=":")
        if wrong is not None:
            places = x.places[wrong]
            bottom = np.full(len(places), 0.02)
            axis.plot(places, bottom, "|", color="#D55E00", markersize=4, transform=axis.get_xaxis_transform())
        axis.set_title(title, loc="left", fontsize=9)
    x.finish(axes[-1])
    return axes
