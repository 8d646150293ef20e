"""Explanations, rankings of columns, and numbers of states."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from .style import axes_or_new, color, literal

if TYPE_CHECKING:
    from ..judging.explanation import ColumnRanking, Explanation
    from ..judging.number_of_states import StateNumbers

#: The most bars of columns; the last one sums all others.
MOST_COLUMNS = 15


def _bars(ax: Axes | None, values: Mapping[str, float]) -> Axes:
    """Draw bars from top to bottom with their numbers."""
    axes = axes_or_new(ax, 6.5, 1.2 + 0.32 * len(values))
    names, sizes = list(values), list(values.values())
    inks = [color(0) if size >= 0 else color(5) for size in sizes]
    bars = axes.barh(range(len(names)), sizes, color=inks)
    axes.set_yticks(range(len(names)), list(map(literal, names)))
    axes.invert_yaxis()
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.bar_label(bars, [f"{size:+.2f}" for size in sizes], padding=3, fontsize=8)
    axes.margins(x=0.18)
    return axes


def _largest(columns: Mapping[str, float]) -> dict[str, float]:
    """Return the columns with the largest contributions and the sum of all others."""
    ordered = sorted(columns.items(), key=lambda item: -abs(item[1]))
    if len(ordered) <= MOST_COLUMNS:
        return dict(ordered)
    rest = ordered[MOST_COLUMNS - 1 :]
    return {**dict(ordered[: MOST_COLUMNS - 1]), f"{len(rest)} other columns": sum(value for _, value in rest)}


def explanation(explained: Explanation, *, ax: Axes | None = None) -> Axes:
    """Draw the parts of the log odds of the two likeliest states.

    The bars of past, future, typical frame and columns of `drhmm.Model.explain` add up to the log odds.
    """
    values = {"past": explained.past, "future": explained.future, "typical frame": explained.average}
    values |= {f"column {name}" if name in values else name: size for name, size in _largest(explained.columns).items()}
    axes = _bars(ax, values)
    axes.set_title(
        literal(
            f"row {explained.row}: {explained.label} rather than {explained.other}, log odds {explained.log_odds:.2f}"
        ),
        loc="left",
        fontsize=10,
    )
    axes.set_xlabel(literal(f"nats for {explained.label}"))
    return axes


def ranking(ranked: ColumnRanking, *, ax: Axes | None = None) -> Axes:
    """Draw the importance of each column from `drhmm.Model.rank_columns`."""
    axes = _bars(ax, _largest(ranked.columns))
    axes.set_xlabel("mean absolute contribution of a column to the log odds, nats")
    return axes


def state_numbers(numbers: StateNumbers, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out gain by number of states from `drhmm.select_states`.

    A ring marks the chosen number; the bars are standard errors of differences to the largest gain.
    """
    axes = axes_or_new(ax, 6, 3.6)
    axes.errorbar(
        numbers.candidates, numbers.gains, yerr=numbers.difference_errors, fmt="o-", color=color(0), linewidth=1.2
    )
    chosen = numbers.candidates.tolist().index(numbers.n_states)
    axes.plot(
        numbers.n_states,
        numbers.gains[chosen],
        "o",
        markersize=14,
        markerfacecolor="none",
        markeredgecolor=color(1),
        markeredgewidth=2,
        label=f"{numbers.n_states} state" + "s" * (numbers.n_states > 1),
    )
    axes.set_xticks(numbers.candidates.tolist())
    axes.set_xlabel("number of states")
    axes.set_ylabel("gain of a held-out frame, nats")
    axes.set_title(textwrap.fill(numbers.reason, 70), loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return axes
