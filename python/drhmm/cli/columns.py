"""Which columns of a table are what: features, label, sequence and time, and the sequences that follow from them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..data.checks import Lengths, Steps
from ..data.columns import remembered_columns
from ..data.sequences import group
from ..data.tables import no_column
from ..data.times import TimeError, gaps, usual_step
from ..model import Model
from ..tables.rows import features_of
from .errors import InputError
from .tables import Table, listed, read_table
from .values import checked_step


@dataclass(frozen=True)
class Columns:
    """The columns that the options name; ``remembered`` are the roles for which the model does."""

    features: Sequence[str] | None
    label: str | None
    sequence: str | None
    time: str | None
    remembered: frozenset[str] = frozenset()

    @classmethod
    def of(cls, options: argparse.Namespace, model: Model, label: str | None) -> Columns:
        """The columns that the options name, and those of sequence and time that the model remembers."""
        known = remembered_columns(model)
        named = {"sequence": options.sequence, "time": options.time}
        used = {role: None if name is False else name or known.get(role) for role, name in named.items()}
        remembered = frozenset(role for role, name in named.items() if name is None)
        return cls(getattr(options, "features", None), label, used["sequence"], used["time"], remembered)

    def step(self, given: str | None, model: Model) -> float | None:
        """The time of one step: what is given, or what the model remembers."""
        if given is not None and self.time is None:
            raise ValueError("--step goes with --time")
        return step_of(given, model)

    def hint(self, role: str) -> str:
        """What to do where the column of a role is not there, if the model remembers it."""
        if role not in self.remembered:
            return ""
        return f". The model was learned with it as the {role}: use --{role}, or --no-{role}"

    def read(self, path: Path, header: bool) -> Table:
        """The table, with labels, sequences and times as they stand in the file."""
        named = {"label": self.label, "sequence": self.sequence, "time": self.time}
        table = read_table(path, header=header, as_they_are=[name for name in named.values() if name is not None])
        for role, name in named.items():
            if name is not None and name not in table.columns:
                problem = f"--{role}: there is {no_column(name, table.columns)}"
                raise InputError(problem + self.hint(role), path)
        return table

    def sequence_of(self, table: Table) -> str | None:
        """The sequence column: the one that is named, or the lengths of an npz file."""
        if self.sequence is None and table.path.suffix.lower() == ".npz" and "lengths" in table.columns:
            return "lengths"
        return self.sequence

    def feature_names(self, table: Table) -> list[str]:
        """The columns that describe a sample: those that are named, or all that nothing else is."""
        others = {self.label, self.sequence_of(table), self.time}
        if self.features is not None:
            for name in self.features:
                table.column(name, "--features")
                if name in others:
                    raise InputError(f"--features: {name!r} is the label, the sequence or the time", table.path)
                if self.features.count(name) > 1:
                    raise InputError(f"--features: {name!r} is there twice", table.path)
            return list(self.features)
        names = [name for name in table.columns if name not in others]
        if not names:
            raise InputError("there is no column left for the features", table.path)
        return names


def step_of(given: str | None, model: Model) -> float | None:
    """The time of one step: what is given, or what the model remembers."""
    return checked_step(given, "--step") or checked_step(model.settings.get("time_step"), "the model's time_step")


@dataclass(frozen=True)
class Ordered:
    """Rows of whole sequences one after the other, in the order of the file within each."""

    order: npt.NDArray[np.int64]
    lengths: Lengths
    dt: Steps | None = None


def ordered(table: Table, columns: Columns, step: float | None) -> tuple[Ordered, float | None]:
    """Sequences of a table, gaps from its times, and the time of one step."""
    order, lengths = _grouped(table, columns)
    if columns.time is None:
        return Ordered(order, lengths), None
    times = table.times(columns.time)[order]
    try:
        step = usual_step(times, lengths) if step is None else step
        return Ordered(order, lengths, gaps(times, lengths, step, columns.time)), step
    except TimeError as problem:
        if problem.row is None:
            raise InputError(f"{problem} give --step as a number", table.path, column=columns.time) from None
        raise table.error(str(problem), int(order[problem.row]), columns.time) from None


def _grouped(table: Table, columns: Columns) -> tuple[npt.NDArray[np.int64], Lengths]:
    name = columns.sequence_of(table)
    if name is None:
        return np.arange(table.n_rows), [table.n_rows]
    order, lengths = group(table.identities(name), table.n_rows)
    return np.arange(table.n_rows) if order is None else order, lengths


def model_features(model: Model, columns: Columns, table: Table, header: bool) -> list[str]:
    """The columns that a model was learned from, in its order; without a header, names are places, and any will do."""
    if columns.features is None and model.feature_names is not None:
        missing = [name for name in model.feature_names if name not in table.columns]
        if missing:
            raise InputError(
                f"there is {no_column(missing[0], table.columns)}. The model needs {missing[0]!r}", table.path
            )
        return list(model.feature_names)
    names = columns.feature_names(table)
    if len(names) != model.n_features:
        raise InputError(
            f"there are {len(names)} features ({listed(names)}), the model was learned from {model.n_features}; "
            "use --features",
            table.path,
        )
    if not header:
        return names
    try:
        return features_of(model, list(table.columns), names, ())
    except ValueError as problem:
        raise InputError(f"--{problem}", table.path) from None
