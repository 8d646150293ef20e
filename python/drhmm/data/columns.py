"""The roles of columns in a table: which hold the label, the sequence and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Model

#: The entry with the names of the columns of label, sequence and time.
COLUMNS = "columns"


def remembered_columns(model: Model) -> dict[str, str]:
    """The columns of label, sequence and time that a model was learned with, by their roles."""
    columns = model.settings.get(COLUMNS)
    return {role: name for role, name in columns.items() if name is not None} if isinstance(columns, dict) else {}
