"""Commands for tables: predict, evaluate, explain and suggest."""

from __future__ import annotations

import argparse
import json
import sys

from ..data.checks import is_missing, thread_count
from ..data.columns import remembered_columns, remembered_label
from ..data.labels import UnseenLabelError, as_classes
from ..exceptions import ImpossibleDataError
from ..files import model_file as io
from ..judging import explanation
from ..judging.evaluation import of_sequences
from ..tables.results import refuse_results, results
from ..tables.rows import narwhals
from ..tables.stretches import suggested
from .csv_file import arrow
from .output import check_html, check_output, say, write_table
from .table_files import Table


def predict(options: argparse.Namespace) -> None:
    """Read, infer, and write one result row for each row of the table."""
    check_output(options.output, options.model, options.data)
    if options.lag is not None and options.method != "smooth":
        raise ValueError(f"--lag goes with --method smooth, not {options.method}")
    model, table = io.load(options.model), Table(options)
    columns = table.columns(model, options.label)
    table.check(options.keep, "--keep")
    own = None if options.sequence is None and columns.sequence == table.lengths else columns.sequence
    kept = list(dict.fromkeys(name for name in (own, columns.time, *options.keep) if name is not None))
    with table.places():
        refuse_results(kept, "df", model, options.method, options.probabilities)
        sequences, _, labels, passed = table.load(columns, kept)
    asked = {"method": options.method, "lag": options.lag, "probabilities": options.probabilities}
    try:
        found = results(model, sequences, **asked, n_threads=options.threads)
    except ImpossibleDataError as error:
        message = "impossible data: the evidence excludes every state that is possible after the rows before it"
        raise table.error(message, error.row) from None
    found = {name: sequences.restore(values) for name, values in found.items()}
    del sequences
    pyarrow = arrow()
    classes = model.classes if model.classes.dtype.kind not in "bmM" else model.classes.astype(str)
    states = pyarrow.array(classes.tolist()).take(pyarrow.array(found["state"]))
    write_table(options.output, pyarrow.table({**passed, **found, "state": states}))
    if labels is not None:
        known = ~is_missing(labels)
        truth, answers = as_classes(labels[known], model.classes), as_classes(model.classes, model.classes)
        right = truth == answers[found["state"]][known]
        share = f"{right.mean():.1%} of {len(right):,} rows" if known.any() else "no row has a label"
        print(f"accuracy: {share}", file=sys.stderr)


def evaluate(options: argparse.Namespace) -> None:
    """Read, infer, compare, and print or write the results."""
    if options.html is not None:
        check_html(options.html, options.model, options.data)
    model = io.load(options.model)
    label = options.label or remembered_columns(model).get("label")
    if label is None:
        raise ValueError("the model stores no label column: give --label COLUMN")
    table = Table(options)
    columns = table.columns(model, label)
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


def explain(options: argparse.Namespace) -> None:
    """Read a table, and explain one row or rank the columns."""
    model, table = io.load(options.model), Table(options)
    sequences, threads = table.load(table.columns(model, None))[0], thread_count(options.threads)
    if options.row is None:
        say(str(explanation.rank_columns(model, sequences, options.frames, options.seed, threads)))
    else:
        say(str(explanation.explain(model, sequences, sequences.place(options.row, "--row"), threads)))


def suggest(options: argparse.Namespace) -> None:
    """Write one row for every suggested stretch."""
    check_output(options.output, options.model, options.data)
    model, table = io.load(options.model), Table(options)
    columns = table.columns(model, options.label or remembered_label(model, table.names))
    sequences, _, labels, kept = table.load(columns, [name for name in (columns.sequence, columns.time) if name])
    frame = narwhals().from_native(arrow().table(kept), eager_only=True)
    asked = (options.stretches, options.length, options.seed, thread_count(options.threads))
    write_table(options.output, suggested(model, frame, sequences, columns, labels, *asked))
