"""Tables with one row per stretch, such as an alarm or a suggestion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.columns import Columns, TableError
from ..data.sequences import Sequences
from ..judging.suggestions import suggest_labels
from ..model import Model
from .rows import narwhals, plain

if TYPE_CHECKING:
    import narwhals as nw


def refuse_owner(columns: Columns, *names: str) -> None:
    """Raise TableError if the sequence column has the name of a result column."""
    if columns.sequence in names:
        raise TableError(f"the sequence column {columns.sequence!r} has the name of a result column: rename it")


def stretches(
    frame: nw.DataFrame[Any],
    sequences: Sequences,
    columns: Columns,
    found: Sequence[Any],
    places: dict[str, list[int]],
    entries: dict[str, tuple[Any, Any]],
) -> Any:
    """Make a table of stretches: sequence, first and last row, and entries."""
    nw, first = narwhals(), np.cumsum([0, *sequences.lengths]).tolist()
    places = {"begin": [one.begin for one in found], "last": [one.end - 1 for one in found]} | places
    rows = {
        name: [sequences.row(first[one.sequence] + place) for one, place in zip(found, own, strict=True)]
        for name, own in places.items()
    }
    owner, clock = columns.sequence, columns.time
    made = {} if owner is None else {owner: _taken(frame[owner], rows["begin"])}
    made |= {name: (own, nw.Int64) if clock is None else _taken(frame[clock], own) for name, own in rows.items()}
    series = {
        name: nw.new_series(name, values, dtype, backend=frame.implementation)
        for name, (values, dtype) in (made | entries).items()
    }
    return nw.from_dict(series).to_native()


def _taken(column: nw.Series[Any], rows: list[int]) -> tuple[list[Any], Any]:
    """Return values of a column at some rows, and its type."""
    return column[rows].to_list(), column.dtype


def suggested(
    model: Model,
    frame: nw.DataFrame[Any],
    sequences: Sequences,
    columns: Columns,
    labels: npt.NDArray[Any] | None,
    *asked: Any,
) -> Any:
    """Make a table of the stretches to label next, the most helpful first."""
    refuse_owner(columns, "begin", "last", "state", "uncertainty")
    found = suggest_labels(model, sequences, labels, *asked)
    states = plain(model.classes[[model.labels.index(one.label) for one in found]])
    entries = {"state": (states, None), "uncertainty": ([one.uncertainty for one in found], narwhals().Float64)}
    return stretches(frame, sequences, columns, found, {}, entries)
