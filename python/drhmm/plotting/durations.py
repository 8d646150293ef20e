"""Learned and observed durations."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..chain.durations import Durations, Stays
from ..data.checks import as_lengths, as_matrix, as_transmat
from ..data.labels import bridged
from .style import as_states, color, panels_of, state_names

#: The most bars of a histogram.
MOST_BARS = 30

#: Longest duration in the picture.
LONGEST = 20_000


def durations(
    durations: Any, states: Any = None, *, lengths: Any = None, names: Any = None, figure: Figure | None = None
) -> list[Axes]:
    """Draw durations by state: observed ones as bars, learned ones as a line.

    Only whole stays are drawn: not the first and the last of a sequence, nor those beside an unknown label. Unknown
    labels between two equal ones belong to the stay. The picture ends at 20,000 time steps.

    Parameters
    ----------
    durations : Durations, or array of shape (S, S)
        The learned durations: ``model.durations``, or the transition matrix of a plain chain.
    states : array of shape (T,), optional
        States as indices or labels, such as those of the training data (-1, None or NaN if unknown).
    lengths : sequence of int, optional
        Lengths of the sequences in `states`.
    """
    if not isinstance(durations, Durations):
        matrix = as_matrix(durations, "durations")
        durations = Durations.geometric(as_transmat(matrix, len(matrix), "durations"))
    labels = state_names(names, durations.n_states)
    whole = [np.zeros(0, dtype=np.int64)] * durations.n_states
    if states is not None:
        codes = as_states(states, len(states), durations.n_states, names=names)
        parts = as_lengths(lengths, len(codes))
        seen = Stays.of(bridged(codes, parts), parts)
        kinds = np.repeat(seen.kinds, seen.counts, axis=0)
        kinds = kinds[kinds[:, 2:].all(axis=1)]
        whole = [kinds[kinds[:, 0] == state, 1] for state in range(durations.n_states)]
    finite = durations.mean[np.isfinite(durations.mean)]
    longest = int(max(2.5 * finite.max(initial=1.0), *(stays.max(initial=1) for stays in whole))) + 1
    longest = min(longest, LONGEST)
    learned = durations.probabilities(longest)
    step = -(-longest // MOST_BARS)
    edges = np.arange(1, longest + step + 1, step) - 0.5
    # One probability per bar.
    within = np.add.reduceat(learned, np.arange(0, longest, step), axis=1)

    axes = panels_of(figure, 7, 1.3 * durations.n_states + 0.9, [1] * durations.n_states)
    for state, axis in enumerate(axes):
        if len(whole[state]) > 0:
            shares = np.histogram(whole[state], edges)[0] / len(whole[state])
            axis.stairs(shares, edges, fill=True, color=color(state), alpha=0.4, label=f"{len(whole[state])} seen")
        middles = (edges[:-1] + edges[1:]) / 2
        mean, shape = durations.mean[state], durations.shape[state]
        shortest = f", at least {durations.minimum[state]}" if durations.minimum[state] > 1 else ""
        lasts = f"mean {mean:.1f}, shape {shape}{shortest}" if np.isfinite(mean) else "never left"
        axis.plot(middles[: within.shape[1]], within[state], color=color(state), linewidth=1.8, label="learned")
        axis.set_title(f"{labels[state]}: {lasts}", loc="left", fontsize=9, pad=3)
        axis.legend(loc="upper right", frameon=False, fontsize=8)
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_locator(MaxNLocator(3))
    axes[-1].set_xlim(0.5, longest + 0.5)
    axes[-1].set_xlabel("length of a stay in time steps")
    axes[len(axes) // 2].set_ylabel("share of stays" if step == 1 else f"share of stays per {step} time steps")
    return axes
