"""Evidence over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..data.checks import Array, as_matrix, check_number
from .style import along, as_states, axes_or_new, color, runs, state_names

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

    Parameters
    ----------
    log_ratios : array of shape (T, S)
        Evidence from `DensityRatioHMM.log_ratios`, or log-likelihoods; a NaN row is a missing time step.
    states : array of shape (T,), optional
        States as in `sequence`, drawn as a strip at the lower edge.
    limit : float, optional
        Largest absolute evidence drawn; larger values are clipped. By default the largest finite value.

    Notes
    -----
    The height of state i at time step t is log w_i(y_t) - log mean_{j != i} w_j(y_t), in nats. Above 0, it favours the
    state; a difference of 1 changes the odds by a factor of e.
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
