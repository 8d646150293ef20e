"""``drhmm explain``: explain the state of a row, or rank the columns."""

from __future__ import annotations

import argparse

from ..data.checks import thread_count
from ..files import model_file as io
from ..judging.explanation import explain, rank_columns
from .columns import columns_of
from .output import say
from .table_files import Table


def run(options: argparse.Namespace) -> None:
    """Read a table, and explain one row or rank the columns."""
    model, table = io.load(options.model), Table(options)
    columns = columns_of(options, table, model, None)
    sequences = table.load(columns)[0]
    threads = thread_count(options.threads)
    if options.row is None:
        say(str(rank_columns(model, sequences, options.frames, options.seed, threads)))
    else:
        say(str(explain(model, sequences, sequences.place(options.row, "--row"), threads)))
