"""Columns from options or from the model."""

from __future__ import annotations

import argparse
from typing import Any

from ..data.columns import Columns, remembered_columns, remembered_hint, remembered_step
from ..model import Model
from .table_files import Table
from .values import checked_step


def columns_of(options: argparse.Namespace, table: Table, model: Model | None, label: str | None) -> Columns:
    """Return the columns of a file for learning, or for inference with a model."""
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
    """Return the sequence and time columns by role, and advice for missing ones."""
    named = {"sequence": options.sequence, "time": options.time}
    known = remembered_columns(model)
    used = {role: None if name is False else name or known.get(role) for role, name in named.items()}
    hints = {used[role]: remembered_hint(role) if named[role] is None else "" for role in named}
    return used, {name: hint for name, hint in hints.items() if name is not None}


def step_of(given: str | None, model: Model) -> float | None:
    """Return the given or stored time of one step."""
    return checked_step(given, "--step") or checked_step(remembered_step(model), "the model's time_step")
