"""``drhmm predict``: from a model file and a table to states and probabilities."""

from __future__ import annotations

import argparse
import sys

from ..data.checks import is_missing
from ..data.labels import as_classes
from ..exceptions import ImpossibleDataError
from ..files import model_file as io
from ..tables.results import refuse_results, results
from .columns import columns_of
from .csv_file import arrow
from .output import check_output, write_table
from .table_files import Table


def run(options: argparse.Namespace) -> None:
    """Read, infer, and write one result row for each row of the table."""
    check_output(options.output, options.model, options.data)
    if options.lag is not None and options.method != "smooth":
        raise ValueError(f"--lag goes with --method smooth, not {options.method}")
    model, table = io.load(options.model), Table(options)
    columns = columns_of(options, table, model, options.label)
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
        right = (
            as_classes(labels[known], model.classes) == as_classes(model.classes, model.classes)[found["state"]][known]
        )
        share = f"{right.mean():.1%} of {len(right):,} rows" if known.any() else "no row has a label"
        print(f"accuracy: {share}", file=sys.stderr)
