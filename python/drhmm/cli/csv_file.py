"""Text tables, read by Arrow; Python locates malformed rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..data.checks import shown
from ..data.times import as_step
from ..system.progress import no_progress, progress_bar
from .errors import InputError, NamesError

#: Show a progress bar for files of more bytes.
LARGE = 50_000_000

#: Bytes per read, and the most bytes of a row for Arrow.
BLOCK = 1 << 17
LONGEST_ROW = 1 << 26

#: Words of truth-value columns, in lower case.
TRUTHS = {"true": "1", "false": "0"}

#: Words for missing values, in lower case.
MISSING_WORDS = frozenset({"", "na", "nan", "null", "none"})

#: Spellings of missing numbers for Arrow; Python reads others.
MISSING = sorted({spelled for word in MISSING_WORDS for spelled in (word, word.upper(), word.title(), "NaN")})


def arrow() -> Any:
    """Import pyarrow; an ImportError names the extra to install."""
    try:
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.json
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f'tables in files need pyarrow: pip install "drhmm[cli]" ({error})') from None
    return pyarrow


def opened(path: Path) -> Any:
    """Open a plain or compressed file as bytes."""
    return gzip.open(path) if path.name.lower().endswith(".gz") else open(path, "rb")


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Format names for a message, shortened if necessary."""
    return ", ".join(name if len(name) <= 60 else name[:57] + "..." for name in names)


class CsvFile:
    """A text table: names, columns and line numbers."""

    def __init__(self, path: Path, separator: str, decimal: str, has_header: bool) -> None:
        self._path, self._separator, self._decimal, self._has_header = path, separator, decimal, has_header
        with opened(path) as file:
            self.names, _ = self._header(file)

    def _header(self, file: IO[bytes]) -> tuple[list[str], int]:
        """Return the names of the columns and the offset of the first row."""
        lines = _Lines(file)
        try:
            fields = next(
                (fields for fields in csv.reader(lines, delimiter=self._separator, strict=True) if fields), None
            )
            begin, line = lines.position, lines.number
            following = next((text for text in lines if text.strip()), "")
        except csv.Error as error:
            raise InputError(str(error), self._path, lines.number) from None
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 text ({error.reason})", self._path, lines.number) from None
        if fields is None:
            raise InputError("the file is empty", self._path)
        if not self._has_header:
            return [str(place + 1) for place in range(len(fields))], 0
        if all(is_number(field) for field in fields):
            message = "the first line has numbers where names should be; use --no-header"
            raise InputError(message, self._path, line)
        names = header_names(fields, self._path, line)
        if len(names) == 1:
            self._refuse_other_separator(names[0], following)
        return names, begin

    def _refuse_other_separator(self, name: str, row: str) -> None:
        """Raise InputError for a single column that contains another separator."""
        words = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
        for sign, word in words.items():
            if sign != self._separator and sign in name and sign in row:
                decimal = " --decimal ," if sign == ";" and "," in row and "." not in row else ""
                raise InputError(
                    f"the fields are separated by {word} instead of {words.get(self._separator, self._separator)}; "
                    f"use --separator {'tab' if sign == chr(9) else repr(sign)}{decimal}",
                    self._path,
                    1,
                )

    def read(self, numbers: Sequence[str], texts: Sequence[str], few: Sequence[str] = ()) -> tuple[Any, Any]:
        """Read numeric columns as an array, others as a text table.

        Columns with few different texts are dictionary-coded. If a column is not numeric, the array is None and the
        table has all columns.
        """
        with contextlib.suppress(arrow().ArrowInvalid, _OddTextError):
            return self._read(numbers, texts, few, BLOCK)
        self._refuse_malformed()
        return self._read((), [*numbers, *texts], few, LONGEST_ROW)

    def _read(self, numbers: Sequence[str], texts: Sequence[str], few: Sequence[str], block: int) -> tuple[Any, Any]:
        """Read batches of rows; _OddTextError for text that Arrow may misread."""
        pyarrow = arrow()
        codes = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {name: codes if name in few else pyarrow.string() for name in texts}
        types |= dict.fromkeys(numbers, pyarrow.float64())
        converting = pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=MISSING, decimal_point=self._decimal
        )
        parsing = pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        reading = pyarrow.csv.ReadOptions(column_names=self.names, use_threads=False, block_size=block)
        samples, n_rows, read = np.empty((0, len(numbers))), 0, []
        with opened(self._path) as file:
            begin = self._header(file)[1]
            file.seek(begin)
            if not file.read(1):
                raise InputError("there are no rows", self._path)
            file.seek(begin)
            watched = _Watched(file, self._path, self._separator)
            for part in pyarrow.csv.open_csv(watched, reading, parsing, converting):
                end = n_rows + part.num_rows
                if end > len(samples):
                    # Be generous: unwritten memory is free, and Arrow reads ahead of these rows.
                    grown = np.empty((int(4 * end / watched.share), len(numbers)))
                    grown[:n_rows] = samples[:n_rows]
                    samples = grown
                for place, name in enumerate(numbers):
                    samples[n_rows:end, place] = part[name].to_numpy(zero_copy_only=False)
                if numbers and (watched.is_odd or np.isinf(samples[n_rows:end]).any()):
                    raise _OddTextError
                read.append(part.select(list(texts)))
                n_rows = end
            if n_rows == 0:
                raise InputError("there are no rows", self._path)
            if numbers and watched.n_quotes % 2 == 1:
                raise _OddTextError
        return samples[:n_rows] if numbers else None, pyarrow.Table.from_batches(read)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Iterate over line numbers and fields of all rows; InputError if malformed."""
        with opened(self._path) as file:
            lines, last = _Lines(file), 0
            try:
                for fields in csv.reader(lines, delimiter=self._separator, strict=True):
                    if fields:
                        last = lines.number
                        yield last, fields
            except csv.Error as error:
                # An unclosed quote shows at the end of the file: report the row after the last good one.
                raise InputError(str(error), self._path, last + 1) from None
            except UnicodeDecodeError as error:
                raise InputError(f"not UTF-8 text ({error.reason})", self._path, lines.number) from None

    def _refuse_malformed(self) -> None:
        """Raise InputError for the first malformed line."""
        for line, fields in self._rows():
            if len(fields) != len(self.names):
                raise InputError(f"{len(fields)} fields instead of {len(self.names)}", self._path, line)

    def line(self, row: int) -> int | None:
        """Return the line of a row by reading the file again."""
        place = row + (1 if self._has_header else 0)
        return next((line for number, (line, _) in enumerate(self._rows()) if number == place), None)


class _OddTextError(ValueError):
    """Text that may be malformed, although Arrow accepts it."""


class _Watched:
    """A file that shows progress, and looks for quotes that Arrow accepts silently.

    These are unclosed ones, and those with text on both sides, as in "a"b.
    """

    closed = False

    def __init__(self, file: IO[bytes], path: Path, separator: str) -> None:
        self._file, self._is_zipped = file, path.name.lower().endswith(".gz")
        self._n_read, self._size = file.tell(), path.stat().st_size
        is_shown = not self._is_zipped and self._size > LARGE and sys.stderr.isatty()
        self._show = progress_bar(f"reading {path.name}") if is_shown else no_progress
        self._beside = np.zeros(256, dtype=bool)
        self._beside[[ord(separator), *b'\r\n"']] = True
        self._last, self.n_quotes, self.is_odd = b"\n", 0, False

    @property
    def share(self) -> float:
        """Share of the file read so far, 1 if unknown."""
        return 1.0 if self._is_zipped else min(1.0, self._n_read / self._size)

    def read(self, size: int = -1) -> bytes:
        """Read bytes and look at their quotes."""
        data = self._file.read(size)
        self._n_read += len(data)
        self._show(self._n_read // 1_000_000, self._size // 1_000_000, "MB")
        if b'"' in data or self._last.endswith(b'"'):
            signs = np.frombuffer(self._last + data + (b"" if data else b"\n"), dtype=np.uint8)
            inner = np.flatnonzero(signs[1:-1] == ord('"')) + 1
            self.n_quotes += data.count(b'"')
            self.is_odd |= bool((~self._beside[signs[inner - 1]] & ~self._beside[signs[inner + 1]]).any())
        self._last = (self._last + data)[-2:]
        return data


class _Lines:
    """Lines of a binary file as text, with the ``number`` and end ``position``."""

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


def header_names(fields: Sequence[str], path: object, line: int) -> list[str]:
    """Parse the names of columns in the first line."""
    names = [name.strip() for name in fields]
    for place, name in enumerate(names):
        if not name:
            raise NamesError(
                f"column {place + 1} has no name; if pandas wrote its index, use to_csv(index=False)", path, line
            )
    refuse_equal_names(names, path, line)
    return names


def refuse_equal_names(names: Sequence[str], path: object, line: int | None = None) -> None:
    """Raise NamesError if two columns have the same name."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise NamesError(f"two columns have the name {name!r}", path, line)
        known.add(name)


def is_missing_text(text: str) -> bool:
    """Test whether a field is missing."""
    return text.strip().lower() in MISSING_WORDS


def number(text: str) -> float:
    """Parse a finite number, NaN if missing, else raise ValueError."""
    if is_missing_text(text):
        return math.nan
    try:
        value = float(TRUTHS.get(text.strip().lower(), text))
    except ValueError:
        value = math.nan
    if math.isnan(value) or "_" in text:
        raise ValueError(f"not a number: {shown(text)} (an empty field is a missing value)")
    if math.isinf(value):
        raise ValueError(f"an infinite value: {shown(text)}")
    return value


def is_number(text: str) -> bool:
    """Test for a number, an infinity, a truth value or a missing field."""
    try:
        float(text)
    except ValueError:
        return is_missing_text(text) or text.strip().lower() in TRUTHS
    return True


def is_integer(text: str) -> bool:
    """Test for an integer in its usual form."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def checked_step(step: Any, name: str) -> float | None:
    """Check the time of one step, a number or text with a unit; None if unknown."""
    if isinstance(step, str):
        with contextlib.suppress(ValueError):
            step = float(step)
    return as_step(step, name)


def identity(value: Any) -> str:
    """Return a sequence name as text or integer, equal for 1 in JSON and CSV."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"not a sequence name: {shown(value)} (text or an integer)")
    name = str(value).strip()
    if not name:
        raise ValueError("there is no sequence name")
    return name
