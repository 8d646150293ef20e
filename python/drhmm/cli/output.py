"""Standard output, and tables on it or in files."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..files.atomic_write import write_atomically
from .csv_file import arrow, listed
from .errors import InputError
from .table_files import KINDS, kind_of

#: Rows per write.
BATCH = 50_000


def say(text: str) -> None:
    """Print a line at once; keep working if standard output is closed."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        close_quietly()


def close_quietly() -> None:
    """Discard the rest of standard output."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_output(path: Path | None, *inputs: Path) -> None:
    """Raise InputError for an unwritable output file before long work."""
    if path is None:
        return
    if kind_of(path) in (None, "json"):
        endings = [ending for ending, kind in KINDS.items() if kind != "json"]
        raise InputError(f"--output: the ending must be one of {listed(endings)}", path)
    check_target(path, *inputs)


def check_target(path: Path, *inputs: Path) -> None:
    """Raise InputError if a target is not writable, or is an input."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError("not a file in an existing folder", path)
    if not os.access(path.parent, os.W_OK):
        raise InputError("the folder cannot be written to", path)
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"would replace the input {other}; use another name", path)


def check_html(path: Path, *inputs: Path) -> None:
    """Check the page and matplotlib before long work."""
    check_target(path, *inputs)
    importlib.import_module("drhmm.plotting")


def write_table(path: Path | None, table: Any) -> None:
    """Write a table by the file's ending, or as CSV to standard output."""
    pyarrow = arrow()
    for place, column in enumerate(table.columns):
        if pyarrow.types.is_temporal(column.type):
            text = pyarrow.compute.replace_substring(column.cast(pyarrow.string()), " ", "T")
            table = table.set_column(place, table.column_names[place], text)
    if path is None:
        sys.stdout.flush()
        _write_text(sys.stdout.buffer, ",", table)
        sys.stdout.buffer.flush()
        return
    write_atomically(path, partial(_write, path, table))


def _write(path: Path, table: Any, file: Any) -> None:
    """Write a table to an open file by the ending of its name."""
    kind = kind_of(path)
    if kind == "parquet":
        arrow().parquet.write_table(table, file)
    elif kind == "npz":
        arrays: dict[str, Any] = {name: table[name].to_numpy() for name in table.column_names}
        np.savez(file, **{name: a.astype(str) if a.dtype.kind == "O" else a for name, a in arrays.items()})
    elif path.name.lower().endswith(".gz"):
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as zipped:
            _write_text(zipped, "\t" if kind == "tsv" else ",", table)
    else:
        _write_text(file, "\t" if kind == "tsv" else ",", table)


def _write_text(file: Any, delimiter: str, table: Any) -> None:
    pyarrow = arrow()
    names = io.StringIO()
    csv.writer(names, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(names.getvalue().encode())
    for batch in table.to_batches(max_chunksize=BATCH):
        for quotes in ("none", "needed"):  # "needed" quotes all text, which few tables require
            part = pyarrow.BufferOutputStream()
            options = pyarrow.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quotes)
            with contextlib.suppress(pyarrow.ArrowInvalid):
                pyarrow.csv.write_csv(batch, part, options)
                file.write(part.getvalue())
                break
