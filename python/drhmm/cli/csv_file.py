"""Text tables, read by Arrow; Python locates malformed rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..system.progress import no_progress, progress_bar
from . import values
from .errors import InputError, NamesError

#: Show a progress bar for files of more bytes.
LARGE = 50_000_000

#: Bytes per read, and the most bytes of a row for Arrow.
BLOCK = 1 << 20
LONGEST_ROW = 1 << 26

#: Spellings of missing numbers for Arrow; Python reads others.
MISSING = sorted({spelled for word in values.MISSING for spelled in (word, word.upper(), word.title(), "NaN")})


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
        if all(values.is_number(field) for field in fields):
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
        for wanted in (numbers, ()):
            with contextlib.suppress(arrow().ArrowInvalid, _OddTextError):
                others = [name for name in dict.fromkeys([*numbers, *texts]) if name not in wanted]
                return self._read_blocks(wanted, others, few)
        return None, self._read_slowly(list(dict.fromkeys([*numbers, *texts])))

    def _read_blocks(self, numbers: Sequence[str], texts: Sequence[str], few: Sequence[str]) -> tuple[Any, Any]:
        """Read block by block; ArrowInvalid or _OddTextError asks for the slow reader."""
        pyarrow = arrow()
        codes = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {name: codes if name in few else pyarrow.string() for name in texts}
        types |= dict.fromkeys(numbers, pyarrow.float64())
        parsing = pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        converting = pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=MISSING, decimal_point=self._decimal
        )
        samples, n_rows, read = np.empty((0, len(numbers))), 0, []
        for block, share in self._blocks():
            reading = pyarrow.csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(block) + 1)
            part = pyarrow.csv.read_csv(pyarrow.BufferReader(block), reading, parsing, converting)
            end = n_rows + part.num_rows
            if end > len(samples):
                # Memory that is not written is free.
                grown = np.empty((int(1.2 * end / share), len(numbers)))
                grown[:n_rows] = samples[:n_rows]
                samples = grown
            for place, name in enumerate(numbers):
                if not pyarrow.compute.all(pyarrow.compute.is_finite(part[name]), min_count=0).as_py():
                    raise _OddTextError("an infinite value")
                samples[n_rows:end, place] = part[name].to_numpy()
            read.append(part.select(texts))
            n_rows = end
        if not read:
            raise InputError("there are no rows", self._path)
        return samples[:n_rows] if numbers else None, pyarrow.concat_tables(read)

    def _blocks(self) -> Iterator[tuple[Any, float]]:
        """Iterate over blocks of whole rows with the share of the file read so far.

        An _OddTextError reports quotes that Arrow accepts silently: unclosed ones, and those inside text.
        """
        beside = np.zeros(256, dtype=bool)
        beside[[ord(self._separator), *b'\r\n"']] = True
        size = 0 if self._path.name.lower().endswith(".gz") else self._path.stat().st_size
        show = progress_bar(f"reading {self._path.name}") if size > LARGE and sys.stderr.isatty() else no_progress
        with opened(self._path) as file:
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

    def _read_slowly(self, wanted: Sequence[str]) -> Any:
        """Read text columns in Python; an InputError names the malformed line."""
        rows = []
        for line, fields in self._rows():
            if len(fields) != len(self.names):
                raise InputError(f"{len(fields)} fields instead of {len(self.names)}", self._path, line)
            rows.append(fields)
        places = [self.names.index(name) for name in wanted]
        rows = rows[1:] if self._has_header else rows
        return arrow().table({name: [row[at] for row in rows] for name, at in zip(wanted, places, strict=True)})

    def line(self, row: int) -> int | None:
        """Return the line of a row by reading the file again."""
        place = row + (1 if self._has_header else 0)
        return next((line for number, (line, _) in enumerate(self._rows()) if number == place), None)


class _OddTextError(ValueError):
    """Text that Arrow would read differently from the csv module."""


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
