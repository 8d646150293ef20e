"""Live input: one observation per line, as CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.checks import Array, shown
from ..data.columns import no_column
from ..files.strict_json import unique_names
from ..model import Model
from .csv_file import header_names, identity, is_number, listed, number
from .errors import InputError, NamesError


@dataclass(frozen=True)
class Observation:
    """A sample, the name of its sequence, and its time as written."""

    sample: Array
    sequence: str | None = None
    time: Any = None


class LineReader:
    """A parser from lines to observations.

    The first line decides between JSON and CSV. In CSV, it may have column names; only with `header` may these be
    numbers. Without names, the columns are `columns`, or the features in the order of the model.
    """

    def __init__(
        self,
        model: Model,
        *,
        kind: str = "auto",
        sequence: str | None = None,
        time: str | None = None,
        hints: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        header: bool = False,
        file: str = "<stdin>",
    ) -> None:
        names = model.feature_names
        self._features = list(names) if names is not None else [str(j + 1) for j in range(model.n_features)]
        self._has_names = names is not None
        self._kind = kind
        self._header = header
        self._sequence, self._time = sequence, time
        self._others = {name: (hints or {}).get(name, "") for name in (sequence, time) if name is not None}
        self._file = file
        self._places: dict[str, int] = {}
        self._n_fields = 0
        if columns is not None:
            self._find(header_names(columns, "--columns", 1), 0)

    @property
    def features(self) -> Sequence[str]:
        """Names of the columns of the samples."""
        return self._features

    def read(self, text: str, line: int) -> Observation | None:
        """Parse a line; None for names and empty lines."""
        text = text.strip("\r\n")
        if not text:
            return None
        if self._kind == "auto":
            self._kind = "json" if text.lstrip()[:1] in ("{", "[") else "csv"
        return self._read_json(text, line) if self._kind == "json" else self._read_csv(text, line)

    def _error(self, message: str, line: int, column: str | None = None) -> InputError:
        return InputError(message, self._file, line, column)

    def _read_csv(self, text: str, line: int) -> Observation | None:
        try:
            fields = next(csv.reader([text], delimiter="\t" if self._kind == "tsv" else ",", strict=True))
        except csv.Error as error:
            raise self._error(str(error), line) from None
        if not self._places:
            if self._is_header(fields, line):
                self._find(header_names(fields, self._file, line), line)
                return None
            self._count(fields, line)
        if len(fields) != self._n_fields:
            raise self._error(f"{len(fields)} fields instead of {self._n_fields}", line)
        sample = np.empty(len(self._features))
        for j, name in enumerate(self._features):
            try:
                sample[j] = number(fields[self._places[name]])
            except ValueError as problem:
                raise self._error(str(problem), line, name) from None
        time = None if self._time is None else fields[self._places[self._time]].strip()
        sequence = None if self._sequence is None else fields[self._places[self._sequence]]
        return Observation(sample, self._name(sequence, line), time)

    def _is_header(self, fields: Sequence[str], line: int) -> bool:
        """Whether the first line holds column names; an error if it is ambiguous."""
        numbers = [is_number(field) for field in fields]
        if self._header or not any(numbers):
            return True
        names = [field.strip() for field in fields]
        if not self._has_names or not set(self._features) <= set(names):
            return False
        if all(numbers) and len(names) == len(self._features):
            message = f"{listed(names)} may be names of columns or an observation"
            order = ",".join(self._features)
            raise NamesError(f"{message}; use --header, or --columns {order} if no line has names", self._file, line)
        return not all(numbers)

    def _find(self, names: Sequence[str], line: int) -> None:
        """Find the positions of the needed columns by name."""
        if not self._has_names:
            # A model without names uses all other columns in order.
            free = [name for name in names if name not in self._others]
            if len(free) != len(self._features):
                message = f"{len(free)} features, the model was learned from {len(self._features)}"
                raise NamesError(message, self._file, line)
            self._features = free
        for name in [*self._features, *self._others]:
            if name not in names:
                problem = f"there is {no_column(name, names)}{self._others.get(name, '')}"
                raise NamesError(problem, self._file, line)
            self._places[name] = names.index(name)
        self._n_fields = len(names)

    def _count(self, fields: Sequence[str], line: int) -> None:
        """Check the number of fields without names, and set their positions."""
        if self._others:
            role, (name, hint) = "sequence" if self._sequence else "time", next(iter(self._others.items()))
            message = f"there are no names of columns, but --{role} needs {name!r}; use --columns, or --header"
            raise NamesError(message + hint, self._file, line)
        if len(fields) != len(self._features):
            message = f"{len(fields)} fields, the model was learned from {len(self._features)} features"
            raise NamesError(message, self._file, line)
        self._places = {name: place for place, name in enumerate(self._features)}
        self._n_fields = len(fields)

    def _name(self, sequence: Any, line: int) -> str | None:
        if self._sequence is None:
            return None
        try:
            return identity(sequence)
        except ValueError as problem:
            raise self._error(str(problem), line, self._sequence) from None

    def _read_json(self, text: str, line: int) -> Observation:
        try:
            entry = json.loads(text, object_pairs_hook=unique_names)
        except (ValueError, RecursionError) as error:
            column = f" at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise self._error(f"not JSON{column}: {getattr(error, 'msg', error)}", line) from None
        if isinstance(entry, list):
            if self._others:
                hint = next(iter(self._others.values()))
                raise self._error(f"a list has no names; --sequence and --time need objects{hint}", line)
            if len(entry) != len(self._features):
                raise self._error(f"{len(entry)} numbers, the model needs {len(self._features)}", line)
            return Observation(self._sample(dict(zip(self._features, entry, strict=True)), line))
        if not isinstance(entry, dict):
            raise self._error(f"neither an object nor a list: {shown(text)}", line)
        for name, hint in self._others.items():
            if entry.get(name) is None:
                raise self._error(f"there is no value{hint}", line, name)
        sequence = None if self._sequence is None else entry[self._sequence]
        time = None if self._time is None else entry[self._time]
        return Observation(self._sample(entry, line), self._name(sequence, line), time)

    def _sample(self, entry: dict[str, Any], line: int) -> Array:
        sample = np.empty(len(self._features))
        for j, name in enumerate(self._features):
            if name not in entry:
                raise self._error(f"there is no {name!r}; there are {listed(entry)} (null is a missing value)", line)
            value = entry[name]
            if value is None:
                value = math.nan
            if not isinstance(value, int | float):
                raise self._error(f"not a number: {shown(value)}", line, name)
            try:
                sample[j] = value
            except OverflowError:
                sample[j] = math.inf
            if math.isinf(sample[j]):
                raise self._error(f"an infinite value: {shown(value)}", line, name)
        return sample
