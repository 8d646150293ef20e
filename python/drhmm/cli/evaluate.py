"""``drhmm evaluate``: how good a model is on a labelled table, in figures and on a page."""

from __future__ import annotations

import argparse
import json

from ..data.columns import remembered_columns
from ..data.labels import UnseenLabelError
from ..files import model_file as io
from ..judging.evaluation import evaluate
from .columns import Columns, model_features, ordered
from .errors import InputError
from .output import say
from .tables import check_target


def run(options: argparse.Namespace) -> None:
    """Read, infer, compare, and print or write."""
    if options.html is not None:
        check_target(options.html, options.model, options.data)
    model = io.load(options.model)
    label = options.label or remembered_columns(model).get("label")
    if label is None:
        raise ValueError("the model remembers no column of labels: give --label COLUMN")
    columns = Columns.of(options, model, label)
    table = columns.read(options.data, options.header)
    names = model_features(model, columns, table, options.header)
    rows, _ = ordered(table, columns, columns.step(options.step, model))
    labels = table.labels(label)
    if labels.dtype.kind != model.classes.dtype.kind:
        # Text of labels is what both have: integers in one file may be words in another.
        by_text = {str(known): known for known in model.classes.tolist()}
        labels = labels.astype(object)
        labels[:] = [None if one is None else by_text.get(str(one), one) for one in labels.tolist()]
    column = columns.sequence_of(table)
    try:
        found = evaluate(
            model,
            table.numbers(names)[rows.order],
            labels[rows.order],
            sequence_id=None if column is None else table.identities(column)[rows.order],
            dt=rows.dt,
            method=options.method,
            lag=options.lag,
            unknown=None,
            n_threads=options.threads,
        )
    except UnseenLabelError as error:
        message = f"the label {error.label!r} was never seen in training"
        raise table.error(message, int(rows.order[error.row]), label) from None
    except ValueError as error:
        if str(error).startswith("y has "):
            raise InputError(str(error).removeprefix("y "), options.data, column=label) from None
        raise
    say(json.dumps(found.as_dict(), indent=2) if options.json else str(found))
    if options.html is not None:
        found.save_html(options.html, title=f"{options.model.name} on {options.data.name}")
