"""Small tables as text and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.times import UNITS

if TYPE_CHECKING:
    from ..model import Model


def printable(label: Any) -> str:
    """Return a label as text without control characters."""
    text = str(label)
    return text if text.isprintable() else repr(text)


def labels_of(model: Model) -> list[str]:
    """Return the labels of the states as text."""
    return [printable(label) for label in model.classes.tolist()]


def column_names_of(model: Model) -> list[str]:
    """Return the names of the columns, or their numbers."""
    names = model.feature_names or [f"column {place}" for place in range(model.n_features)]
    return [printable(name) for name in names]


@dataclass(frozen=True)
class TextTable:
    """A title, column names, and rows of text; the first column has the row names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_text(self) -> str:
        """Format the table with aligned columns."""
        lines = [list(self.columns), *map(list, self.rows)] if any(self.columns) else list(map(list, self.rows))
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns))]
        text = [self.title] if self.title else []
        for line in lines:
            first, *others = (
                cell.ljust(width) if place == 0 or not any(self.columns) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            text.append("  ".join(["  " + first, *others]).rstrip())
        return "\n".join(text)

    def as_html(self) -> str:
        """Format the table as HTML with headings for screen readers."""
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{html.escape(row[0])}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        thead = f"<thead><tr>{head}</tr></thead>" if any(self.columns) else ""
        return f"<table>{caption}{thead}<tbody>{body}</tbody></table>"


class Shown:
    """Base of results that print as their `tables` or `table`, also in a notebook."""

    def _tables(self: Any) -> list[TextTable]:
        return self.tables() if hasattr(self, "tables") else [self.table()]

    def __str__(self) -> str:
        return "\n\n".join(table.as_text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "<div>" + "".join(table.as_html() for table in self._tables()) + "</div>"


def short(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def lasting(steps: float, model: Model) -> str:
    """Format a number of time steps, in units of time if the model knows the step."""
    if not np.isfinite(steps):
        return "-" if np.isnan(steps) else "for ever"
    if not model.settings.get("time_unit"):
        return f"{steps:.1f}"
    seconds = steps * model.settings["time_step"]
    unit = max((unit for unit, size in UNITS.items() if size <= max(seconds, 1e-9)), key=UNITS.__getitem__)
    return f"{short(seconds / UNITS[unit])} {unit}"


def share(value: float) -> str:
    """Format a share in per cent."""
    return f"{100 * value:.1f} %"
