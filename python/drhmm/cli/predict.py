"""``drhmm predict``: from a model file and a table to states and probabilities."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import ImpossibleDataError
from ..files import model_file as io
from ..model import Model
from ..tables.results import result_names, results
from .columns import Columns, Ordered, model_features, ordered
from .errors import InputError
from .tables import Table, check_output, write_table


def run(options: argparse.Namespace) -> None:
    """Read, infer, and write one row for every row of the table."""
    check_output(options.output, options.model, options.data)
    model = io.load(options.model)
    columns = Columns.of(options, model, options.label)
    table = columns.read(options.data, options.header)
    names = model_features(model, columns, table, options.header)
    if options.label is not None:
        table.column(options.label, "--label")
    for name in options.keep:
        table.column(name, "--keep")
    kept = dict.fromkeys(name for name in (columns.sequence, columns.time, *options.keep) if name is not None)
    for name in kept:
        if name in result_names(model, options.method, options.probabilities):
            raise InputError(f"the column {name!r} has the name of a column of the result", options.data)
    rows, _ = ordered(table, columns, columns.step(options.step, model))
    X = table.numbers(names)
    try:
        result = _inferred(model, X[rows.order], rows, options)
    except ImpossibleDataError as error:
        row = int(rows.order[error.row])
        raise InputError(
            "impossible data: the evidence excludes every state that is possible after the rows before it",
            options.data,
            None if table.lines is None else int(table.lines[row]),
        ) from None
    back = np.argsort(rows.order, kind="stable")
    passed = {name: table.columns[name] for name in kept}
    predicted = {name: values[back] for name, values in result.items()}
    write_table(options.output, {**passed, **predicted})
    if options.label is not None:
        print(f"accuracy: {_accuracy(model, table, options.label, predicted['state'])}", file=sys.stderr)


def _inferred(model: Model, X: Any, rows: Ordered, options: argparse.Namespace) -> dict[str, npt.NDArray[Any]]:
    """Columns of the result."""
    if options.lag is not None and options.method != "smooth":
        raise ValueError(f"--lag goes with --method smooth, not {options.method}")
    return results(
        model,
        X,
        rows.lengths,
        rows.dt,
        method=options.method,
        lag=options.lag,
        probabilities=options.probabilities,
        n_threads=options.threads,
    )


def _accuracy(model: Model, table: Table, name: str, states: npt.NDArray[Any]) -> str:
    """Share of rows with a label whose label is right."""
    labels = table.labels(name).tolist()
    pairs = [(label, state) for label, state in zip(labels, states.tolist(), strict=True) if label is not None]
    if not pairs:
        return "no row has a label"
    right = sum(str(label) == str(state) for label, state in pairs)
    return f"{right / len(pairs):.1%} of {len(pairs):,} rows"
