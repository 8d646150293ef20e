"""Pictures of a chain: transitions, durations, and the map of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..chain.durations import Durations, Stays
from ..data.checks import Array, as_floats, as_lengths, as_matrix, as_transmat
from ..data.labels import bridged
from .style import as_states, axes_or_new, color, panels_of, state_names


def written_share(probability: float) -> str:
    """Format an entry: exact 0 and 1, two significant digits otherwise."""
    if probability in (0.0, 1.0):
        return str(int(probability))
    if probability < 5e-4:
        return f"{probability:.0e}".replace("e-0", "e-")
    return f"{probability:.2f}" if 0.01 <= probability <= 0.99 else f"{probability:.3f}"


def transitions(transmat: Any, *, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw a transition matrix (S, S) from states (rows) to states (columns)."""
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


def ratio_map(
    stay: Any = (0.5, 0.6, 0.8, 0.95, 0.99, 0.999, 1.0),
    *,
    limits: tuple[float, float] = (1e-4, 1e4),
    ax: Axes | None = None,
) -> Axes:
    """Draw the predicted ratio by the ratio before, as in Figure 1 of the paper.

    One curve for each probability a in `stay`, and logarithmic axes within `limits`. With A = [[a, 1 - a], [1 - a, a]],
    the ratio r = r(t-1) becomes (a r + 1 - a) / ((1 - a) r + a). It is 1 for a = 1/2, r for a = 1, and otherwise
    between (1 - a) / a and its inverse.
    """
    values = np.atleast_1d(as_floats(stay, "stay"))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"stay must be a number or a list of numbers, got shape {values.shape}")
    for place in np.flatnonzero(~((values >= 0) & (values <= 1))):
        raise ValueError(f"stay has {values[place]} at place {place}: probabilities are 0 to 1")
    low, high = limits
    if not 0 < low < high < np.inf:
        raise ValueError(f"limits must be two rising positive numbers, got {limits}")
    axes = axes_or_new(ax, 5.6, 5)
    ratios = np.geomspace(low, high, 401)
    # Shades of one hue, darker with a, to differ from the colours of states.
    for a, ink in zip(values, colormaps["Blues"](np.linspace(0.35, 1.0, len(values))), strict=True):
        predicted = (a * ratios + 1 - a) / ((1 - a) * ratios + a)
        axes.loglog(ratios, predicted, color=ink, linewidth=1.8, label=f"a = {a:g}")
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.set(xlabel="ratio of the time step before, r(t-1)", ylabel="predicted ratio at t")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="upper left", reverse=True)
    return axes
