"""Shared style: colours, new axes, names of states and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from ..data.checks import Array, as_values, is_missing
from ..data.labels import UNKNOWN

#: Colours for colour-blind readers and print (Okabe and Ito), repeated after eight states.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#666666")


def color(k: int) -> str:
    """Return the colour of the state or curve `k`."""
    return COLORS[k % len(COLORS)]


def new_figure(width: float, height: float) -> Figure:
    """Make a figure through pyplot, with its size in inches."""
    from matplotlib import pyplot

    return pyplot.figure(figsize=(width, height), layout="constrained", dpi=120)


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given or new axes without upper and right spines."""
    axes: Axes = new_figure(width, height).subplots() if ax is None else ax
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def panels_of(figure: Figure | None, width: float, height: float, heights: Sequence[float]) -> list[Axes]:
    """Return panels below each other, with relative heights."""
    figure = new_figure(width, height) if figure is None else figure
    ratios = {"height_ratios": heights}
    axes: list[Axes] = list(figure.subplots(len(heights), 1, sharex=True, gridspec_kw=ratios, squeeze=False)[:, 0])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return axes


@dataclass(frozen=True)
class Along:
    """Positions of time steps along the x axis, their borders, and the axis label."""

    places: Array
    borders: Array
    name: str = "time step"
    is_dates: bool = False

    def finish(self, axes: Axes) -> None:
        """Set the limits, label and dates of the axis."""
        if self.is_dates:
            axes.xaxis_date()
        axes.set_xlim(self.borders[0], self.borders[-1])
        axes.set_xlabel(self.name)


def along(times: Any, n_frames: int, first: int = 0) -> Along:
    """Lay out the x axis by number, or by increasing times or dates."""
    if times is None:
        numbers = np.arange(first, first + n_frames + 1, dtype=np.float64)
        return Along(numbers[:-1], numbers - 0.5)
    values = as_values(times, "times")
    if values.shape != (n_frames,):
        raise ValueError(f"times must have one value per time step, {n_frames}, got shape {values.shape}")
    if values.dtype.kind in "SU" or any(isinstance(value, str) for value in values[:1]):
        raise ValueError(f"times must be numbers or dates, got the text {values[0]!r}; try pandas.to_datetime")
    is_dates = values.dtype.kind in "MO"
    places = np.asarray(date2num(values) if is_dates else values, dtype=np.float64)  # type: ignore[no-untyped-call]
    for t in np.flatnonzero(~(np.diff(places) > 0)) + 1:
        raise ValueError(f"times must increase, got {values[t]} after {values[t - 1]} at time step {t}")
    middles = (places[1:] + places[:-1]) / 2
    half = float(np.median(np.diff(places))) / 2 if n_frames > 1 else 0.5
    borders = np.concatenate([places[:1] - half, middles, places[-1:] + half])
    return Along(places, borders, literal(getattr(times, "name", None) or "time"), is_dates)


def unit_square(axes: Axes, across: str, up: str) -> None:
    """Set both axes to 0..1 with equal lengths and room for dots on the border."""
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xlabel=across, ylabel=up)


def literal(name: Any) -> str:
    """Escape a name for matplotlib: "$" begins formulas, "_" hides legends."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def state_names(names: Any, n_states: int) -> list[str]:
    """Return one name per state."""
    if names is None:
        return [f"state {k}" for k in range(n_states)]
    given = [literal(name) for name in names]
    if len(given) != n_states:
        raise ValueError(f"names must have one entry for each of the {n_states} states, got {len(given)}: {given}")
    return given


def as_states(
    values: Any, n_frames: int, n_states: int, name: str = "states", names: Any = None
) -> npt.NDArray[np.int64]:
    """Convert true states to indices 0..n_states-1, and -1 for unknown labels.

    Values in `names`, or their text, are labels; other integers are indices. Other labels are numbered in order, if
    there is one for each state.
    """
    labels = as_values(values, name)
    if labels.shape != (n_frames,):
        raise ValueError(f"{name} must have shape {(n_frames,)}, got {labels.shape}")
    known = ~is_missing(labels)
    found = labels[known].tolist()
    codes = _codes_of(set(found), n_states, names)
    if codes is None:
        raise ValueError(
            f"{name} has {len(set(found))} different labels, such as {min(found, key=str)!r}, for {n_states} states: "
            "give names=the labels in the order of the states, for example model.classes"
        )
    states = np.full(n_frames, UNKNOWN, dtype=np.int64)
    states[known] = [codes[label] for label in found]
    for t in np.flatnonzero((states < UNKNOWN) | (states >= n_states)):
        raise ValueError(
            f"{name} has {states[t]} at time step {t}: states are 0 to {n_states - 1}, -1 if unknown; for labels give "
            "names=model.classes"
        )
    return states


def _codes_of(labels: set[Any], n_states: int, names: Any) -> dict[Any, int] | None:
    """Look up labels among the names, as indices, or in order; None if nothing fits."""
    for given in () if names is None else (names, map(str, names)):
        codes = {UNKNOWN: UNKNOWN} | {name: place for place, name in enumerate(given)}
        if labels <= codes.keys():
            return codes
    if all(isinstance(label, int | float) and label == int(label) for label in labels):
        return {label: int(label) for label in labels}
    if names is None and len(labels) == n_states:
        return {label: place for place, label in enumerate(sorted(labels, key=str))}
    return None


def as_curves(values: Any, name: str) -> dict[str, Any]:
    """Convert to named curves; a single one has no name."""
    if not isinstance(values, Mapping):
        return {"": values}
    if not values:
        raise ValueError(f"{name} is empty: there is nothing to draw")
    return {str(key): value for key, value in values.items()}


def place_of(name: str, curve: str) -> str:
    """Name a curve for an error message."""
    return f"{name}[{curve!r}]" if curve else name


def runs(states: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return (begin, end, state) of every run of a known state."""
    borders = np.flatnonzero(np.diff(states)) + 1
    begins, ends = np.r_[0, borders], np.r_[borders, len(states)]
    return [(int(b), int(e), int(states[b])) for b, e in zip(begins, ends, strict=True) if states[b] != UNKNOWN]
