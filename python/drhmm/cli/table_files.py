"""Table files: CSV, Parquet, JSON lines and npz, with line numbers for errors."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import shown
from ..data.columns import Columns, TableError, no_column, remembered_columns
from ..data.sequences import Sequences
from ..data.times import TICKS
from ..files.strict_json import unique_names
from ..model import Model
from ..tables.rows import narwhals, read_sequences, values_of
from .csv_file import (
    MISSING_WORDS,
    CsvFile,
    arrow,
    checked_step,
    header_names,
    is_integer,
    is_missing_text,
    is_number,
    listed,
    number,
    opened,
    refuse_equal_names,
)
from .errors import InputError

#: Kinds of tables by file ending, with or without .gz for text.
KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".npz": "npz"}


def kind_of(path: Path) -> str | None:
    """Return the kind of a table, or None for an unknown ending."""
    name = path.name.lower()
    kind = KINDS.get(Path(name.removesuffix(".gz")).suffix)
    return None if name.endswith(".gz") and kind in ("parquet", "npz") else kind


class Table:
    """A table file: names, columns and line numbers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path: Path = options.data
        self._options = options
        self.kind = kind_of(self.path)
        self._text: CsvFile | None = None
        self._whole: Any = None
        if self.kind is None:
            raise InputError(f"the ending must be one of {listed(KINDS)}", self.path)
        if self.kind in ("csv", "tsv"):
            separator = options.separator or ("\t" if self.kind == "tsv" else ",")
            self._text = CsvFile(self.path, separator, options.decimal, options.header)
        elif self.kind != "parquet":
            self._whole = self._read_npz() if self.kind == "npz" else self._read_json()
        self.has_header: bool = options.header or self._text is None
        self.names = self._names()

    def error(self, message: str, row: int | None = None, column: str | None = None) -> InputError:
        """Return an error at a place of the file."""
        if row is None:
            return InputError(message, self.path, column=column)
        if self._text is None and self.kind != "json":
            return InputError(f"row {row}: {message}", self.path, column=column)
        line = self._json_line(row) if self._text is None else self._text.line(row)
        return InputError(message, self.path, line, column)

    @contextlib.contextmanager
    def places(self) -> Iterator[None]:
        """Add file and line to errors in the table."""
        try:
            yield
        except TableError as problem:
            raise self.error(problem.on_command_line, problem.row, problem.column) from None

    @property
    def lengths(self) -> str | None:
        """The sequence column made from the lengths in an npz file."""
        return "lengths" if self.kind == "npz" and "lengths" in self.names else None

    def columns(self, model: Model | None, label: str | None) -> Columns:
        """Return the columns of the options for learning, or for inference with a model."""
        options, known = self._options, {} if model is None else remembered_columns(model)
        sequence = options.sequence
        if sequence is None and "sequence" not in known:
            sequence = self.lengths
        named: dict[str, Any] = {"label": label, "sequence": sequence, "time": options.time}
        named |= {"features": options.features, "step": checked_step(options.step, "--step")}
        with self.places():
            if model is None:
                return Columns.to_learn_from(self.names, **named)
            return Columns.to_infer_from(model, self.names, **named, by_place=not self.has_header)

    def check(self, names: Sequence[str], option: str) -> None:
        """Raise InputError if a column of an option is missing."""
        for name in names:
            if name not in self.names:
                raise InputError(f"{option}: there is {no_column(name, self.names)}", self.path)

    def load(self, columns: Columns, keep: Sequence[str] = ()) -> tuple[Sequences, float | None, Any, dict[str, Any]]:
        """Load sequences, the time of one step, labels, and columns to keep."""
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
        """Convert samples to numbers; a column without any number stays text."""
        pyarrow = arrow()
        if not _is_text(column):
            if pyarrow.types.is_floating(column.type) and np.isinf(column.to_numpy()).any():
                row = int(np.flatnonzero(np.isinf(column.to_numpy()))[0])
                raise self.error(f"an infinite value: {shown(column[row].as_py())}", row, name)
            return column
        with contextlib.suppress(pyarrow.ArrowInvalid):
            found = self._cast(column)
            if not np.isinf(found.to_numpy()).any():
                return found
        texts = [text for text in column.unique().to_pylist() if text is not None and not is_missing_text(text)]
        if texts and not any(is_number(text) for text in texts):
            return column
        try:
            return _mapped(column, lambda text: number(text.replace(self._options.decimal, ".")))
        except _FieldError as problem:
            raise self.error(str(problem), problem.row, name) from None

    def _cast(self, column: Any) -> Any:
        """Convert text to numbers by Arrow, or raise ArrowInvalid."""
        pyarrow, compute = arrow(), arrow().compute
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.string()))
        is_missing = compute.is_in(compute.utf8_lower(text), pyarrow.array(sorted(MISSING_WORDS)))
        text = compute.if_else(is_missing, None, text)
        if self._options.decimal != ".":
            text = compute.replace_substring(text, self._options.decimal, ".")
        return text.cast(pyarrow.float64())

    @staticmethod
    def owners(column: Any) -> npt.NDArray[Any]:
        """Return the sequence of each row."""
        names = np.empty(len(column), dtype=object)
        names[:] = [str(name).strip() for name in column.to_pylist()]
        return names

    def _names(self) -> list[str]:
        if self._text is not None:
            return self._text.names
        pyarrow = arrow()
        try:
            schema = pyarrow.parquet.read_schema(self.path) if self._whole is None else self._whole.schema
        except pyarrow.ArrowException as error:
            raise InputError(f"not a Parquet file: {error}", self.path) from None
        refuse_equal_names(schema.names, self.path)
        if not schema.names:
            raise InputError("there are no columns", self.path)
        return list(schema.names)

    def _read(self, columns: Columns, as_they_are: Sequence[str]) -> tuple[Any, Any]:
        """Read samples at once if all are numbers; else a table of the other columns."""
        if self._text is not None:
            few = [name for name in (columns.label, columns.sequence) if name is not None]
            return self._text.read(columns.features, as_they_are, few)
        wanted = list(dict.fromkeys([*columns.features, *as_they_are]))
        if self._whole is not None:
            return None, self._whole.select(wanted)
        return None, arrow().parquet.read_table(self.path, columns=wanted)

    def _json_line(self, row: int) -> int:
        with opened(self.path) as file:
            return [number for number, line in enumerate(file, start=1) if line.strip()][row]

    def _read_json(self) -> Any:
        pyarrow = arrow()
        try:
            with pyarrow.input_stream(str(self.path)) as file:
                return pyarrow.json.read_json(file)
        except pyarrow.ArrowInvalid as problem:
            self._refuse_malformed_json()
            raise InputError(str(problem), self.path) from None

    def _refuse_malformed_json(self) -> None:
        kinds: dict[str, tuple[type, int]] = {}
        with opened(self.path) as file:
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
                        message = f"{shown(value)} is of another type than the value in line {where}"
                        raise InputError(message, self.path, number, name)
        if not kinds:
            raise InputError("there are no rows", self.path)

    def _read_npz(self) -> Any:
        """Read an npz file: columns of X and all arrays with one value per row.

        `feature_names` has the names of columns. An array `lengths` becomes a column of sequence numbers.
        """
        path = self.path
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except FileNotFoundError:
            raise
        except Exception as error:  # damaged files raise zlib.error, NotImplementedError, ...
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
                raise InputError(f"times in units of {unit}: only s to ns are allowed", self.path, column=name)
            array = array.astype(target)
        return pyarrow.array(np.ascontiguousarray(array), from_pandas=True)


class _FieldError(ValueError):
    """Invalid text in a row."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


def _is_text(column: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type) or types.is_dictionary(column.type))


def _mapped(column: Any, convert: Callable[[str], Any]) -> Any:
    """Map each distinct text of a column; _FieldError for the first refused row."""
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
    """Convert labels to integers if possible; empty fields are null."""
    pyarrow = arrow()
    if _is_text(column):
        texts = {text.strip() for text in column.unique().to_pylist() if text is not None} - {""}
        convert: Any = int if all(is_integer(text) for text in texts) else str
        return _mapped(column, lambda text: convert(text.strip()) if text.strip() else None)
    if pyarrow.types.is_floating(column.type):
        column = pyarrow.compute.if_else(pyarrow.compute.is_nan(column), None, column)
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return column.cast(pyarrow.int64())
    return column


def _sequences(column: Any) -> Any:
    """Number the sequences; null without a name."""
    if not _is_text(column):
        return column
    numbers: dict[str, int] = {}
    return _mapped(column, lambda text: numbers.setdefault(text.strip(), len(numbers)) if text.strip() else None)


def _times(column: Any) -> Any:
    """Convert to numbers or dates if possible; `times_of` reports other text."""
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
