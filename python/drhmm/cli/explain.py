"""``drhmm explain``: why a row of a table has its state, and how much each column matters."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ..data.checks import thread_count
from ..files import model_file as io
from ..judging.explanation import explain, rank_columns
from .columns import Columns, model_features, ordered
from .output import say


def run(options: argparse.Namespace) -> None:
    """Read, and explain one row or rank the columns."""
    model = io.load(options.model)
    columns = Columns.of(options, model, None)
    table = columns.read(options.data, options.header)
    names = model_features(model, columns, table, options.header)
    rows, _ = ordered(table, columns, columns.step(options.step, model))
    sequences = replace(model.read(table.numbers(names)[rows.order], rows.lengths, dt=rows.dt), order=rows.order)
    threads = thread_count(options.threads)
    if options.row is None:
        say(str(rank_columns(model, sequences, options.frames, options.seed, threads)))
    else:
        say(str(explain(model, sequences, sequences.place(options.row, "--row"), threads)))
