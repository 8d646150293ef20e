"""Which columns the options name, and which of them the model remembers."""

from __future__ import annotations

import argparse
from typing import Any

from ..data.columns import Columns, remembered_columns, remembered_hint
from ..model import Model
from .table_files import Table
from .values import checked_step


def columns_of(options: argparse.Namespace, table: Table, model: Model | None, label: str | None) -> Columns:
    """The columns of a file to learn from, or those to infer from by a model."""
    sequence, known = options.sequence, {} if model is None else remembered_columns(model)
    if sequence is None and "sequence" not in known:
        sequence = table.lengths
    named: dict[str, Any] = {"label": label, "sequence": sequence, "time": options.time, "features": options.features}
    named["step"] = checked_step(options.step, "--step")
    with table.places():
        if model is None:
            return Columns.to_learn_from(table.names, **named)
        return Columns.to_infer_from(model, table.names, **named, by_place=not table.has_header)


def live_columns(options: argparse.Namespace, model: Model) -> tuple[dict[str, str | None], dict[str, str]]:
    """The columns of sequence and time by their roles, and by their names what to do where one is not there."""
    named = {"sequence": options.sequence, "time": options.time}
    known = remembered_columns(model)
    used = {role: None if name is False else name or known.get(role) for role, name in named.items()}
    hints = {used[role]: remembered_hint(role) if named[role] is None else "" for role in named}
    return used, {name: hint for name, hint in hints.items() if name is not None}


def step_of(given: str | None, model: Model) -> float | None:
    """The time of one step: what is given, or what the model remembers."""
    return checked_step(given, "--step") or checked_step(model.settings.get("time_step"), "the model's time_step")
