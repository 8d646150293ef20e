"""Scores of the unknown, the levels of an alarm, and its episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..data.checks import as_floats
from ..live.alarms import Alarm
from .style import along, color, panels_of


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
