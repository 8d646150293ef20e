"""``drhmm evaluate``: evaluate a model on a labelled table."""

from __future__ import annotations

import argparse
import json

from ..data.columns import remembered_columns
from ..data.labels import UnseenLabelError, as_classes
from ..files import model_file as io
from ..judging.evaluation import of_sequences
from .columns import columns_of
from .output import check_html, say
from .table_files import Table


def run(options: argparse.Namespace) -> None:
    """Read, infer, compare, and print or write the results."""
    if options.html is not None:
        check_html(options.html, options.model, options.data)
    model = io.load(options.model)
    label = options.label or remembered_columns(model).get("label")
    if label is None:
        raise ValueError("the model remembers no column of labels: give --label COLUMN")
    table = Table(options)
    columns = columns_of(options, table, model, label)
    sequences, _, labels, kept = table.load(columns, [] if columns.sequence is None else [columns.sequence])
    labels = as_classes(labels, model.classes)
    owners = None if columns.sequence is None else sequences.arrange(table.owners(kept[columns.sequence]))
    try:
        found = of_sequences(model, sequences, labels, options.method, options.lag, None, options.threads, owners)
    except UnseenLabelError as error:
        raise table.error(f"the label {error.label!r} was never seen in training", error.row, label) from None
    except ValueError as error:
        if str(error).startswith("y has "):
            raise table.error(str(error).removeprefix("y "), column=label) from None
        raise
    say(json.dumps(found.as_dict(), indent=2) if options.json else str(found))
    if options.html is not None:
        found.save_html(options.html, title=f"{options.model.name} on {options.data.name}")
