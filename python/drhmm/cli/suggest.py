"""``drhmm suggest``: suggest stretches of a table to label next."""

from __future__ import annotations

import argparse

from ..data.checks import thread_count
from ..data.columns import remembered_label
from ..files import model_file as io
from ..tables.rows import narwhals
from ..tables.stretches import suggested
from .columns import columns_of
from .csv_file import arrow
from .output import check_output, write_table
from .table_files import Table


def run(options: argparse.Namespace) -> None:
    """Write one row for every suggested stretch."""
    check_output(options.output, options.model, options.data)
    model, table = io.load(options.model), Table(options)
    columns = columns_of(options, table, model, options.label or remembered_label(model, table.names))
    sequences, _, labels, kept = table.load(columns, [name for name in (columns.sequence, columns.time) if name])
    frame = narwhals().from_native(arrow().table(kept), eager_only=True)
    asked = (options.stretches, options.length, options.seed, thread_count(options.threads))
    write_table(options.output, suggested(model, frame, sequences, columns, labels, *asked))
