"""Tables in CSV, TSV, Parquet and npz files: columns by name, and the line of every row."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, is_missing, shown
from ..data.dates import exact, moment
from ..data.tables import no_column
from ..data.times import TICKS
from ..files.atomic_write import write_atomically
from . import values
from .errors import InputError, NamesError

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")

#: Rows of text that are in memory before they become numbers.
_BLOCK = 50_000

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Columns of equal length; ``lines[i]`` is the line of row i in a text file, None where there are no lines.

    A column holds numbers where every field of it is a number or nothing, and the fields as they are otherwise.
    """

    path: Path
    columns: Mapping[str, Column]
    lines: npt.NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    def column(self, name: str, option: str) -> Column:
        """A column that an option names."""
        if name not in self.columns:
            raise InputError(f"{option}: there is {no_column(name, self.columns)}", self.path)
        return self.columns[name]

    def error(self, message: str, row: int, name: str) -> InputError:
        """A mistake in one field."""
        if self.lines is not None:
            return InputError(message, self.path, int(self.lines[row]), name)
        return InputError(f"row {row}: {message}", self.path, column=name)

    def numbers(self, names: Sequence[str]) -> Array:
        """Some columns as numbers, (rows, names); NaN where there is nothing."""
        result = np.empty((self.n_rows, len(names)))
        for place, name in enumerate(names):
            column = self.column(name, "--features")
            self._refuse_text(name, column)
            result[:, place] = column if _is_finite(column) else self._each(name, column, values.number)
        return result

    def _refuse_text(self, name: str, column: Column) -> None:
        """Raise an InputError for a column in which no field is a number."""
        if column.dtype.kind not in "OSU":
            return
        texts = [text for text in map(as_text, column.tolist()) if not values.is_missing(text)]
        if texts and not any(is_number(text) for text in texts):
            options = "--time" if _is_date(texts[0]) else "--label or --sequence"
            raise InputError(
                f"the column holds text, such as {shown(texts[0])}, and features are numbers: name it with {options}, "
                "or name the others with --features",
                self.path,
                column=name,
            )

    def times(self, name: str) -> Column:
        """A column of times, with all their digits: numbers, dates or durations of numpy, or exact objects."""
        column = self.column(name, "--time")
        if column.dtype.kind in "Mm":
            return self._dates(name, column)
        if _is_finite(column):
            return column if column.dtype.kind in "iu" else column.astype(np.float64)
        return exact(self._each(name, column, moment))

    def _dates(self, name: str, column: Column) -> Column:
        """Dates or durations in a unit whose length is known."""
        if np.isnat(column).any():
            raise self.error("there is no time", int(np.flatnonzero(np.isnat(column))[0]), name)
        unit = np.datetime_data(column.dtype)[0]
        target = np.dtype(f"{column.dtype.kind}8[{unit if unit in TICKS else 's'}]")
        if not np.can_cast(column.dtype, target, "safe"):
            raise InputError(f"times in units of {unit}, which no unit from s to ns holds", self.path, column=name)
        return column.astype(target)

    def labels(self, name: str) -> Column:
        """A column of labels; None where there is nothing."""
        column = self.column(name, "--label")
        if column.dtype.kind == "S":
            column = np.char.decode(column, "utf-8")
        missing = is_missing(column).tolist()
        fields = zip(column.tolist(), missing, strict=True)
        return values.labels(["" if nothing else as_text(value) for value, nothing in fields])

    def identities(self, name: str) -> Column:
        """A column of names of sequences."""
        column = self.column(name, "--sequence")
        names = np.empty(len(column), dtype=object)
        for row, value in enumerate(column.tolist()):
            try:
                names[row] = values.identity(int(value) if isinstance(value, float) and value.is_integer() else value)
            except ValueError as problem:
                raise self.error(str(problem), row, name) from None
        return names

    def _each(self, name: str, column: Column, convert: Any) -> list[Any]:
        """Every field of a column as a number."""
        result = []
        for row, value in enumerate(column.tolist()):
            try:
                result.append(convert(as_text(value)))
            except ValueError as problem:
                raise self.error(str(problem), row, name) from None
        return result


def _is_finite(column: Column) -> bool:
    """Whether there are only numbers, and all of them finite."""
    return column.dtype.kind in "fiub" and bool(np.isfinite(column).all())


def _is_date(text: str) -> bool:
    """Whether text is a time."""
    try:
        moment(text)
    except ValueError:
        return False
    return True


def as_text(value: Any) -> str:
    """A field as it would stand in a text file."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def listed(names: Iterable[str]) -> str:
    """Names for a message, no more of each than can be read."""
    return ", ".join(name if len(name) <= 60 else name[:57] + "..." for name in names)


def read_table(path: Path, *, header: bool = True, as_they_are: Collection[str] = ()) -> Table:
    """Read a file by its ending; the columns named in `as_they_are` stay text, or integers beside nothing."""
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(f"the ending must be one of {listed(SUFFIXES)}", path)
    if kind == ".parquet":
        table = _read_parquet(path, as_they_are)
    elif kind == ".npz":
        table = _read_npz(path)
    else:
        table = _read_text(path, "\t" if kind == ".tsv" else ",", header, as_they_are)
    if table.n_rows == 0:
        raise InputError("there are no rows", path)
    return table


def _read_text(path: Path, delimiter: str, header: bool, as_they_are: Collection[str]) -> Table:
    names: list[str] | None = None
    blocks: list[list[Column]] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for fields in reader:
                if not fields:
                    continue
                if names is None:
                    if header and all(is_number(field) for field in fields):
                        raise InputError("the first line has numbers where names should be; use --no-header", path, 1)
                    names = header_names(fields, path, reader.line_num) if header else numbered_names(fields)
                    if header:
                        continue
                if len(names) == 1:
                    _refuse_other_separator(names[0], fields, delimiter, path)
                if len(fields) != len(names):
                    raise InputError(f"{len(fields)} fields instead of {len(names)}", path, reader.line_num)
                rows.append(fields)
                lines.append(reader.line_num)
                if len(rows) == _BLOCK:
                    blocks.append(_block(names, rows, as_they_are))
                    rows = []
        except csv.Error as error:
            # A quote that is never closed is found at the end of the file: the row begins after the last good one.
            line = reader.line_num if lines == [] else lines[-1] + 1
            raise InputError(str(error), path, line) from None
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 text ({error.reason})", path, _first_bad_line(path)) from None
    if names is None:
        raise InputError("the file is empty", path)
    if rows:
        blocks.append(_block(names, rows, as_they_are))
    parts = list(zip(*blocks, strict=True)) if blocks else [(np.empty(0),)] * len(names)
    columns = {name: np.concatenate(part) for name, part in zip(names, parts, strict=True)}
    return Table(path, columns, np.array(lines, dtype=np.int64))


def _refuse_other_separator(name: str, fields: Sequence[str], delimiter: str, path: Path) -> None:
    """Raise an InputError for a table of one column if another sign stands in its name and between its fields."""
    words = {",": "commas", "\t": "tabs", ";": "semicolons"}
    for sign, word in words.items():
        if sign != delimiter and sign in name and any(sign in field for field in fields):
            decimal = ", decimal=','" if sign == ";" else ""
            raise InputError(
                f"the fields are separated by {word} instead of {words[delimiter]}; "
                f"pandas.read_csv(file, sep={sign!r}{decimal}).to_csv(other, index=False) makes a file with commas",
                path,
                1,
            )


def _first_bad_line(path: Path) -> int:
    """The first line that is not UTF-8."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def header_names(fields: Sequence[str], path: object, line: int) -> list[str]:
    """Names of columns from the first line."""
    names = [name.strip() for name in fields]
    for place, name in enumerate(names):
        if not name:
            raise NamesError(f"column {place + 1} has no name", path, line)
    _refuse_equal_names(names, path, line)
    return names


def _refuse_equal_names(names: Sequence[str], path: object, line: int | None = None) -> None:
    known: set[str] = set()
    for name in names:
        if name in known:
            raise NamesError(f"two columns have the name {name!r}", path, line)
        known.add(name)


def numbered_names(fields: Sequence[str]) -> list[str]:
    """Names of columns that have none: 1, 2, ..."""
    return [str(place + 1) for place in range(len(fields))]


def is_number(text: str) -> bool:
    """Whether a field is a number, an infinite one among them, a truth value, or nothing."""
    try:
        float(text)
    except ValueError:
        return values.is_missing(text) or text.strip().lower() in values.TRUTHS
    return True


def _block(names: Sequence[str], rows: Sequence[Sequence[str]], as_they_are: Collection[str]) -> list[Column]:
    fields_of = zip(*rows, strict=True)
    return [
        _as_is(fields) if name in as_they_are else _parsed(fields)
        for name, fields in zip(names, fields_of, strict=True)
    ]


def _as_is(fields: Sequence[str]) -> Column:
    column = np.empty(len(fields), dtype=object)
    column[:] = fields
    return column


def _parsed(fields: Sequence[str]) -> Column:
    """Numbers where all fields are; the fields otherwise."""
    try:
        column = np.array(fields, dtype=np.float64)
        if np.isfinite(column).all() and not any("_" in text for text in fields):
            return column
    except ValueError:
        pass
    try:
        return np.array([values.number(text) for text in fields])
    except ValueError:
        return _as_is(fields)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f'Parquet files need pyarrow: pip install "drhmm[cli]" ({error})') from None
    return pyarrow


def _read_parquet(path: Path, as_they_are: Collection[str]) -> Table:
    pyarrow = _pyarrow()
    try:
        _refuse_equal_names(pyarrow.parquet.read_schema(path).names, path)
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise InputError(f"not a Parquet file: {error}", path) from None
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_integer = pyarrow.types.is_integer(column.type)
        if is_integer and column.null_count > 0 and name in as_they_are:
            columns[name] = _as_is(column.to_pylist())  # numpy would make fractions of them, which lose digits
        elif is_integer or pyarrow.types.is_floating(column.type) or _is_truth(pyarrow, column):
            columns[name] = column.to_numpy()
        elif pyarrow.types.is_timestamp(column.type) and column.null_count == 0:
            columns[name] = _in_nanoseconds(column.to_numpy())
        else:
            columns[name] = _as_is(column.to_pylist())
    if not columns:
        raise InputError("there are no columns", path)
    return Table(path, columns)


def _is_truth(pyarrow: Any, column: Any) -> bool:
    return bool(pyarrow.types.is_boolean(column.type)) and column.null_count == 0


def _in_nanoseconds(dates: Column) -> Column:
    """Dates in nanoseconds; as they are where these do not reach, which is from 1677 to 2262."""
    fine = dates.astype("M8[ns]")
    return fine if (fine.astype(dates.dtype) == dates).all() else dates


def _read_npz(path: Path) -> Table:
    """An npz file: the columns of X, by `feature_names` if there are any, and every array with one value per row.

    Sequence lengths in an array `lengths` become a column of sequence numbers of that name.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged file raises almost anything: zlib.error, NotImplementedError, TypeError, ...
        raise InputError(f"not an npz file of plain arrays: {error}", path) from None
    X = arrays.pop("X", None)
    if X is None or X.ndim != 2 or X.shape[1] == 0:
        raise InputError("an npz file needs a two-dimensional array X with at least one column", path)
    names = arrays.pop("feature_names", None)
    if names is not None and names.shape != (X.shape[1],):
        raise InputError(f"feature_names has the shape {names.shape}, X has {X.shape[1]} columns", path)
    labels = [f"X{place}" for place in range(X.shape[1])] if names is None else [str(name) for name in names]
    header_names(labels, path, 1)
    columns: dict[str, Column] = dict(zip(labels, X.T, strict=True))
    lengths = arrays.pop("lengths", None)
    if lengths is not None:
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 1).any() or lengths.sum() != len(X):
            raise InputError(f"lengths must be positive and sum to the {len(X)} rows of X", path)
        columns["lengths"] = np.repeat(np.arange(len(lengths)), lengths)
    for name, array in arrays.items():
        if array.shape == (len(X),):
            if name in columns:
                raise InputError(f"there are two columns {name!r}: an array, and a column of X", path)
            columns[name] = array
    return Table(path, columns)


def write_table(path: Path | None, columns: Mapping[str, Column]) -> None:
    """Write a table by the ending of the file, complete or not at all; without a file, CSV to standard output."""
    if path is None:
        _write_text(sys.stdout, ",", columns)
        sys.stdout.flush()
        return
    buffer = io.BytesIO()
    kind = path.suffix.lower()
    if kind == ".parquet":
        _write_parquet(buffer, columns)
    elif kind == ".npz":
        np.savez(buffer, **{name: _plain(values) for name, values in columns.items()})  # type: ignore[arg-type]
    else:
        text = io.TextIOWrapper(buffer, encoding="utf-8", newline="")
        _write_text(text, "\t" if kind == ".tsv" else ",", columns)
        text.flush()
    write_atomically(path, buffer.getvalue())


def check_output(path: Path | None, *inputs: Path) -> None:
    """Refuse, before long work, a file that the result table cannot be written to."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--output: the ending must be one of {listed(SUFFIXES)}", path)
    check_target(path, *inputs)


def check_target(path: Path, *inputs: Path) -> None:
    """Refuse what is not a file, there or not, in a folder that can be written to, and what is one of the inputs."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError("not a file in an existing folder", path)
    if not os.access(path.parent, os.W_OK):
        raise InputError("the folder cannot be written to", path)
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"would replace {other}, which is read; give it another name", path)


def _write_text(file: Any, delimiter: str, columns: Mapping[str, Column]) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_plain(values, objects=True).tolist() for values in columns.values()), strict=True))


def _write_parquet(buffer: io.BytesIO, columns: Mapping[str, Column]) -> None:
    pyarrow = _pyarrow()
    table = pyarrow.table(
        {name: pyarrow.array(_plain(values, objects=True).tolist()) for name, values in columns.items()}
    )
    pyarrow.parquet.write_table(table, buffer)


def _plain(values: Column, objects: bool = False) -> Column:
    """Dates as text, and objects, too, where a format has none."""
    return values.astype(str) if values.dtype.kind in "mM" or (values.dtype.kind == "O" and not objects) else values
