"""Held-out gains of models with different numbers of states."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from .style import axes_or_new, color

if TYPE_CHECKING:
    from ..judging.number_of_states import StateNumbers


def state_numbers(numbers: StateNumbers, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out gain by number of states, with errors and the choice.

    A ring marks the chosen number; the bars are standard errors of differences to the largest gain.

    Parameters
    ----------
    numbers : StateNumbers
        The result of `drhmm.select_states`.
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
