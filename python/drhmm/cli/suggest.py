"""``drhmm suggest``: suggest stretches of a table to label next."""

from __future__ import annotations

import argparse

from ..data.checks import thread_count
from ..data.columns import remembered_columns
from ..files import model_file as io
from ..judging.suggestions import suggest_labels
from ..tables.rows import narwhals
from ..tables.stretches import refuse_owner, stretches
from .columns import columns_of
from .csv_file import arrow
from .output import check_output, write_table
from .table_files import Table


def run(options: argparse.Namespace) -> None:
    """Write one row for every suggested stretch."""
    check_output(options.output, options.model, options.data)
    model, table = io.load(options.model), Table(options)
    known = remembered_columns(model).get("label")
    label = options.label or (known if known in table.names else None)
    columns = columns_of(options, table, model, label)
    refuse_owner(columns, "begin", "last", "state", "uncertainty")
    kept = [name for name in (columns.sequence, columns.time) if name is not None]
    sequences, _, labels, passed = table.load(columns, kept)
    threads = thread_count(options.threads)
    found = suggest_labels(model, sequences, labels, options.stretches, options.length, options.seed, threads)
    nw = narwhals()
    entries = {
        "state": ([str(one.label) for one in found], nw.String),
        "uncertainty": ([one.uncertainty for one in found], nw.Float64),
    }
    frame = nw.from_native(arrow().table(passed), eager_only=True)
    write_table(options.output, stretches(frame, sequences, columns, found, {}, entries))
