"""Tables in files, read by Arrow: CSV with any separator, Parquet, JSON lines and npz, and the line of every row."""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..data.checks import shown
from ..data.columns import Columns, TableError
from ..data.sequences import Sequences
from ..data.tables import no_column
from ..data.times import TICKS
from ..files.strict_json import unique_names
from ..system.progress import no_progress, progress_bar
from ..tables.rows import narwhals, read_sequences, values_of
from . import values
from .errors import InputError, NamesError

#: What a table is by the end of its name, with or without .gz where it is text.
KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".npz": "npz"}

#: Bytes of a file from which on a bar shows how far it is read.
LARGE = 50_000_000

#: Bytes that are read at once, and those of the longest row that is read so.
BLOCK = 1 << 20
LONGEST_ROW = 1 << 26

#: Texts of a missing number that Arrow knows; other spellings are found when it fails.
MISSING = sorted({spelled for word in values.MISSING for spelled in (word, word.upper(), word.title(), "NaN")})


def arrow() -> Any:
    """The library pyarrow; an ImportError names the extra that brings it."""
    try:
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.json
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f'tables in files need pyarrow: pip install "drhmm[cli]" ({error})') from None
    return pyarrow


def kind_of(path: Path) -> str | None:
    """The kind of a table, None for an ending that is none."""
    name = path.name.lower()
    kind = KINDS.get(Path(name.removesuffix(".gz")).suffix)
    return None if name.endswith(".gz") and kind in ("parquet", "npz") else kind


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Names for a message, no more of each than can be read."""
    return ", ".join(name if len(name) <= 60 else name[:57] + "..." for name in names)


class Table:
    """A table in a file: its names at once, its columns by `load`, and the line of a row when it is asked for."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path: Path = options.data
        self.kind = kind_of(self.path)
        self._separator = options.separator or ("\t" if self.kind == "tsv" else ",")
        self._decimal = options.decimal
        self.has_header: bool = options.header or self.kind not in ("csv", "tsv")
        self._whole: Any = None
        if self.kind is None:
            raise InputError(f"the ending must be one of {listed(KINDS)}", self.path)
        self.names = self._names()

    def error(self, message: str, row: int | None = None, column: str | None = None) -> InputError:
        """A mistake in the file."""
        if row is None:
            return InputError(message, self.path, column=column)
        if self.kind in ("parquet", "npz"):
            return InputError(f"row {row}: {message}", self.path, column=column)
        return InputError(message, self.path, self._line(row), column)

    @contextlib.contextmanager
    def places(self) -> Iterator[None]:
        """Where a mistake in the table is found, its file and line are said."""
        try:
            yield
        except TableError as problem:
            raise self.error(problem.on_command_line, problem.row, problem.column) from None

    @property
    def lengths(self) -> str | None:
        """The column of sequences that the lengths of an npz file make."""
        return "lengths" if self.kind == "npz" and "lengths" in self.names else None

    def check(self, names: Sequence[str], option: str) -> None:
        """Raise an InputError if one of the columns that an option names is not there."""
        for name in names:
            if name not in self.names:
                raise InputError(f"{option}: there is {no_column(name, self.names)}", self.path)

    def load(self, columns: Columns, keep: Sequence[str] = ()) -> tuple[Sequences, float | None, Any, dict[str, Any]]:
        """Sequences, the time of one step, labels of the rows of the file, and the columns to keep as they are."""
        pyarrow = arrow()
        samples, read = self._read(columns, list(dict.fromkeys([*columns.marks, *keep])))
        made = {} if samples is not None else {name: self._numbers(name, read[name]) for name in columns.features}
        for name, convert in ((columns.label, _labels), (columns.sequence, _sequences), (columns.time, _times)):
            if name is not None:
                made[name] = convert(read[name])
        kept = {
            name: pyarrow.array(samples[:, columns.features.index(name)])
            if name in columns.features and samples is not None
            else read[name]
            for name in keep
        }
        frame = narwhals().from_native(pyarrow.table(made), eager_only=True)
        with self.places():
            sequences, step = read_sequences(frame, columns, samples)
        labels = None if columns.label is None else values_of(frame[columns.label])
        return sequences, step, labels, kept

    def _numbers(self, name: str, column: Any) -> Any:
        """A column of samples as numbers; text stays where no field of it is a number."""
        pyarrow = arrow()
        if not _is_text(column):
            if pyarrow.types.is_floating(column.type) and np.isinf(column.to_numpy()).any():
                row = int(np.flatnonzero(np.isinf(column.to_numpy()))[0])
                raise self.error(f"an infinite value: {shown(column[row].as_py())}", row, name)
            return column
        texts = [text for text in column.unique().to_pylist() if text is not None and not values.is_missing(text)]
        if texts and not any(values.is_number(text) for text in texts):
            return column
        try:
            return _mapped(column, lambda text: values.number(text.replace(self._decimal, ".")))
        except _FieldError as problem:
            raise self.error(str(problem), problem.row, name) from None

    @staticmethod
    def owners(column: Any) -> npt.NDArray[Any]:
        """The names of sequences, one for each row."""
        names = np.empty(len(column), dtype=object)
        names[:] = [str(name).strip() for name in column.to_pylist()]
        return names

    # What is in a file

    def _names(self) -> list[str]:
        if self.kind in ("csv", "tsv"):
            with self._opened() as file:
                names, _ = self._header(file)
            return names
        if self.kind == "parquet":
            pyarrow = arrow()
            try:
                names = list(pyarrow.parquet.read_schema(self.path).names)
            except pyarrow.ArrowException as error:
                raise InputError(f"not a Parquet file: {error}", self.path) from None
        else:
            self._whole = self._read_npz() if self.kind == "npz" else self._read_json()
            names = list(self._whole.column_names)
        _refuse_equal_names(names, self.path)
        if not names:
            raise InputError("there are no columns", self.path)
        return names

    def _read(self, columns: Columns, as_they_are: Sequence[str]) -> tuple[Any, Any]:
        """Samples if they could be read as numbers at once, and a table of the other columns, or of all."""
        wanted = list(dict.fromkeys([*columns.features, *as_they_are]))
        if self._whole is not None:
            return None, self._whole.select(wanted)
        if self.kind == "parquet":
            return None, arrow().parquet.read_table(self.path, columns=wanted)
        with contextlib.suppress(arrow().ArrowInvalid, _OddTextError):
            return self._read_text(columns, as_they_are)
        return None, self._read_slowly(wanted)

    def _opened(self) -> Any:
        return gzip.open(self.path) if self.path.name.lower().endswith(".gz") else open(self.path, "rb")

    # CSV

    def _header(self, file: IO[bytes]) -> tuple[list[str], int]:
        """The names of the columns, and where the rows begin."""
        lines = _Lines(file)
        try:
            fields = next((fields for fields in self._reader(lines) if fields), None)
            begin, line = lines.position, lines.number
            following = next((text for text in lines if text.strip()), "")
        except csv.Error as error:
            raise InputError(str(error), self.path, lines.number) from None
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 text ({error.reason})", self.path, lines.number) from None
        if fields is None:
            raise InputError("the file is empty", self.path)
        if not self.has_header:
            return numbered_names(fields), 0
        if all(values.is_number(field) for field in fields):
            message = "the first line has numbers where names should be; use --no-header"
            raise InputError(message, self.path, line)
        names = header_names(fields, self.path, line)
        if len(names) == 1:
            self._refuse_other_separator(names[0], following)
        return names, begin

    def _reader(self, lines: Iterator[str]) -> Any:
        return csv.reader(lines, delimiter=self._separator, strict=True)

    def _refuse_other_separator(self, name: str, row: str) -> None:
        """Raise an InputError for a table of one column if another sign stands in its name and between its fields."""
        words = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
        for sign, word in words.items():
            if sign != self._separator and sign in name and sign in row:
                decimal = " --decimal ," if sign == ";" and "," in row and "." not in row else ""
                raise InputError(
                    f"the fields are separated by {word} instead of {words.get(self._separator, self._separator)}; "
                    f"use --separator {'tab' if sign == chr(9) else repr(sign)}{decimal}",
                    self.path,
                    1,
                )

    def _read_text(self, columns: Columns, others: Sequence[str]) -> tuple[Any, Any]:
        """Columns of numbers (rows, features), and others as text, block by block; ArrowInvalid for anything else."""
        pyarrow, features = arrow(), columns.features
        others = [name for name in others if name not in features]
        types = dict.fromkeys(others, pyarrow.string()) | dict.fromkeys(features, pyarrow.float64())
        few = [name for name in (columns.label, columns.sequence) if name is not None]
        types |= dict.fromkeys(few, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
        settings = {
            "parse_options": pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=MISSING, decimal_point=self._decimal
            ),
        }
        samples, n_rows, texts = np.empty((0, len(features))), 0, []
        for block, share in self._blocks():
            one = pyarrow.csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(block) + 1)
            part = pyarrow.csv.read_csv(pyarrow.BufferReader(block), one, **settings)
            end = n_rows + part.num_rows
            if end > len(samples):
                # Memory that nothing is written to costs nothing.
                grown = np.empty((int(1.2 * end / share), len(features)))
                grown[:n_rows] = samples[:n_rows]
                samples = grown
            for place, name in enumerate(features):
                if not pyarrow.compute.all(pyarrow.compute.is_finite(part[name]), min_count=0).as_py():
                    raise _OddTextError(f"an infinite value in column {name!r}")
                samples[n_rows:end, place] = part[name].to_numpy()
            texts.append(part.select(others))
            n_rows = end
        if not texts:
            raise InputError("there are no rows", self.path)
        return samples[:n_rows], pyarrow.concat_tables(texts)

    def _blocks(self) -> Iterator[tuple[Any, float]]:
        """Whole rows of the file in blocks, and the share of the file that has been read with each.

        An _OddTextError tells of quotes that Arrow would pass over: one in the middle of text, which stands beside
        neither a separator nor another quote, and one that is never closed.
        """
        beside = np.zeros(256, dtype=bool)
        beside[[ord(self._separator), *b'\r\n"']] = True
        size = 0 if self.path.name.lower().endswith(".gz") else self.path.stat().st_size
        show = progress_bar(f"reading {self.path.name}") if size > LARGE and sys.stderr.isatty() else no_progress
        with self._opened() as file:
            n_read = self._header(file)[1]
            file.seek(n_read)
            rest = b""
            while True:
                data = file.read(BLOCK)
                n_read += len(data)
                block = rest + data
                signs = np.frombuffer(block, dtype=np.uint8)
                quotes = np.flatnonzero(signs == ord('"'))
                inner = quotes[(quotes > 0) & (quotes < len(signs) - 1)]
                if (~beside[signs[inner - 1]] & ~beside[signs[inner + 1]]).any() or len(block) > LONGEST_ROW:
                    raise _OddTextError("a quote in the middle of text")
                end = len(block) if not data else block.rfind(b"\n") + 1
                while end > 0 and np.searchsorted(quotes, end) % 2 == 1:  # within quotes
                    end = block.rfind(b"\n", 0, end - 1) + 1
                if not data and len(quotes) % 2 == 1:
                    raise _OddTextError("a quote that is never closed")
                rest = block[end:]
                if block[:end].strip():
                    yield memoryview(block)[:end], min(1.0, n_read / size) if size else 1.0
                show(n_read // 1_000_000, size // 1_000_000, "MB")
                if not data:
                    return

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line and fields of every row, read slowly; an InputError names the line of what is malformed."""
        with self._opened() as file:
            lines, last = _Lines(file), 0
            try:
                for fields in self._reader(lines):
                    if fields:
                        last = lines.number
                        yield last, fields
            except csv.Error as error:
                # A quote that is never closed is found at the end of the file: the row begins after the last good one.
                raise InputError(str(error), self.path, last + 1) from None
            except UnicodeDecodeError as error:
                raise InputError(f"not UTF-8 text ({error.reason})", self.path, lines.number) from None

    def _read_slowly(self, wanted: Sequence[str]) -> Any:
        """Columns of text; what is malformed is an InputError with its line."""
        rows = []
        for line, fields in self._rows():
            if len(fields) != len(self.names):
                raise InputError(f"{len(fields)} fields instead of {len(self.names)}", self.path, line)
            rows.append(fields)
        places = [self.names.index(name) for name in wanted]
        rows = rows[1:] if self.has_header else rows
        return arrow().table({name: [row[at] for row in rows] for name, at in zip(wanted, places, strict=True)})

    def _line(self, row: int) -> int | None:
        """The line of a row, found by reading the file again."""
        if self.kind == "json":
            with self._opened() as file:
                lines = (number for number, line in enumerate(file, start=1) if line.strip())
                return next((line for place, line in enumerate(lines) if place == row), None)
        begin = 1 if self.has_header else 0
        return next((line for place, (line, _) in enumerate(self._rows()) if place == row + begin), None)

    # JSON lines and npz

    def _read_json(self) -> Any:
        pyarrow = arrow()
        try:
            with self._opened() as file:
                return pyarrow.json.read_json(file)
        except pyarrow.ArrowInvalid as problem:
            self._refuse_malformed_json()
            raise InputError(str(problem), self.path) from None

    def _refuse_malformed_json(self) -> None:
        kinds: dict[str, tuple[type, int]] = {}
        with self._opened() as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line, object_pairs_hook=unique_names)
                except (ValueError, RecursionError) as error:
                    raise InputError(f"not JSON: {getattr(error, 'msg', error)}", self.path, number) from None
                if not isinstance(entry, dict):
                    raise InputError(f"not an object: {shown(line.decode())}", self.path, number)
                for name, value in entry.items():
                    kind = float if type(value) is int else type(value)
                    first, where = kinds.setdefault(name, (kind, number)) if value is not None else (kind, number)
                    if first != kind:
                        message = f"{shown(value)} is of another kind than the value in line {where}"
                        raise InputError(message, self.path, number, name)
        if not kinds:
            raise InputError("there are no rows", self.path)

    def _read_npz(self) -> Any:
        """An npz file: the columns of X, by `feature_names` if there are any, and every array with one value per row.

        Sequence lengths in an array `lengths` become a column of sequence numbers of that name.
        """
        path = self.path
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except FileNotFoundError:
            raise
        except Exception as error:  # a damaged file raises almost anything: zlib.error, NotImplementedError, ...
            raise InputError(f"not an npz file of plain arrays: {error}", path) from None
        X = arrays.pop("X", None)
        if X is None or X.ndim != 2 or X.shape[1] == 0:
            raise InputError("an npz file needs a two-dimensional array X with at least one column", path)
        names = arrays.pop("feature_names", None)
        if names is not None and names.shape != (X.shape[1],):
            raise InputError(f"feature_names has the shape {names.shape}, X has {X.shape[1]} columns", path)
        labels = [f"X{place}" for place in range(X.shape[1])] if names is None else [str(name) for name in names]
        columns: dict[str, Any] = dict(zip(header_names(labels, path, 1), X.T, strict=True))
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
        return arrow().table({name: self._from_numpy(name, array) for name, array in columns.items()})

    def _from_numpy(self, name: str, array: Any) -> Any:
        pyarrow = arrow()
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        if array.dtype.kind == "U":
            return pyarrow.array(array.tolist())
        if array.dtype.kind in "mM":
            unit = np.datetime_data(array.dtype)[0]
            target = np.dtype(f"{array.dtype.kind}8[{unit if unit in TICKS else 's'}]")
            if not np.can_cast(array.dtype, target, "safe"):
                raise InputError(f"times in units of {unit}, which no unit from s to ns holds", self.path, column=name)
            array = array.astype(target)
        return pyarrow.array(np.ascontiguousarray(array), from_pandas=True)


class _OddTextError(ValueError):
    """Text that Arrow understands otherwise than a careful reader."""


class _FieldError(ValueError):
    """What is wrong with the text of a row."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class _Lines:
    """Lines of a binary file as text; ``number`` is that of the last, ``position`` where the next begins."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.number = self.position = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line:
            raise StopIteration
        self.number += 1
        self.position += len(line)
        return line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _is_text(column: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type) or types.is_dictionary(column.type))


def _mapped(column: Any, convert: Callable[[str], Any]) -> Any:
    """What a function makes of every different text of a column; a _FieldError has the first row that it refuses."""
    pyarrow = arrow()
    encoded = column.combine_chunks()
    encoded = encoded if pyarrow.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    made = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            made.append(convert(text))
        except ValueError as problem:
            raise _FieldError(str(problem), pyarrow.compute.index(encoded.indices, code).as_py()) from None
    return pyarrow.array(made, from_pandas=True).take(encoded.indices)


def _labels(column: Any) -> Any:
    """Integers if all labels are, text otherwise; null where a field is empty."""
    pyarrow = arrow()
    if _is_text(column):
        texts = {text.strip() for text in column.unique().to_pylist() if text is not None} - {""}
        convert: Any = int if all(values.is_integer(text) for text in texts) else str
        return _mapped(column, lambda text: convert(text.strip()) if text.strip() else None)
    if pyarrow.types.is_floating(column.type):
        column = pyarrow.compute.if_else(pyarrow.compute.is_nan(column), None, column)
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return column.cast(pyarrow.int64())
    return column


def _sequences(column: Any) -> Any:
    """A number for each name of a sequence; null where there is none."""
    if not _is_text(column):
        return column
    numbers: dict[str, int] = {}
    return _mapped(column, lambda text: numbers.setdefault(text.strip(), len(numbers)) if text.strip() else None)


def _times(column: Any) -> Any:
    """Numbers or dates where all texts are; a text that is neither is told by `times_of`."""
    if not _is_text(column):
        return column
    pyarrow = arrow()
    with contextlib.suppress(pyarrow.ArrowInvalid):
        return column.cast(pyarrow.int64())
    with contextlib.suppress(pyarrow.ArrowInvalid):
        numbers = column.cast(pyarrow.float64())
        if pyarrow.compute.max(pyarrow.compute.abs(numbers)).as_py() < 2**53:
            return numbers
    for unit, zone in (("ns", None), ("us", None), ("ns", "UTC"), ("us", "UTC")):
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return column.cast(pyarrow.timestamp(unit, zone))
    return column


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
