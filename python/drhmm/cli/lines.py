"""One observation per line: CSV with or without names, or JSON lines."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import Array
from ..model import Model
from . import values
from .errors import InputError
from .tables import header_names, is_number, listed


@dataclass(frozen=True)
class Observation:
    """A sample, and what the options name beside it."""

    sample: Array
    sequence: Any = None
    time: Any = None


class LineReader:
    """From lines to observations; the first line decides whether they are JSON or CSV, and whether CSV has names."""

    def __init__(self, model: Model, kind: str, sequence: str | None, time: str | None, file: str = "<stdin>") -> None:
        self._model = model
        self._kind = kind
        self._sequence, self._time = sequence, time
        self._file = file
        self._places: dict[str, int] | None = None

    def read(self, text: str, line: int) -> Observation | None:
        """The observation of a line, or None for a line of names and for an empty one."""
        text = text.strip("\r\n")
        if not text.strip():
            return None
        if self._kind == "auto":
            self._kind = "json" if text.lstrip()[0] in "{[" else "csv"
        return self._read_json(text, line) if self._kind == "json" else self._read_csv(text, line)

    def _error(self, message: str, line: int, column: str | None = None) -> InputError:
        return InputError(message, self._file, line, column)

    def _read_csv(self, text: str, line: int) -> Observation | None:
        try:
            fields = next(csv.reader([text], delimiter="\t" if self._kind == "tsv" else ",", strict=True))
        except csv.Error as error:
            raise self._error(str(error), line) from None
        if self._places is None:
            named = not all(is_number(field) for field in fields) or self._needs_names()
            names = header_names(fields, self._file, line) if named else None
            self._places = self._find(names, len(fields), line)
            if named:
                return None
        if len(fields) != self._n_fields:
            raise self._error(f"{len(fields)} fields instead of {self._n_fields}", line)
        sample = np.empty(self._model.n_features)
        for j, name in enumerate(self._feature_names()):
            try:
                sample[j] = values.number(fields[self._places[name]])
            except ValueError as problem:
                raise self._error(str(problem), line, name) from None
        return Observation(sample, self._field(fields, self._sequence), self._field(fields, self._time))

    def _needs_names(self) -> bool:
        return self._sequence is not None or self._time is not None

    def _feature_names(self) -> Sequence[str]:
        names = self._model.feature_names
        return names if names is not None else [str(j + 1) for j in range(self._model.n_features)]

    def _find(self, names: list[str] | None, n_fields: int, line: int) -> dict[str, int]:
        """The place of every column that is needed."""
        self._n_fields = n_fields
        features = self._feature_names()
        if names is None or self._model.feature_names is None:
            extra = [name for name in (self._sequence, self._time) if name is not None]
            free = [place for place in range(n_fields) if names is None or names[place] not in extra]
            if len(free) != len(features):
                raise self._error(f"{len(free)} features, the model was learned from {len(features)}", line)
            places = dict(zip(features, free, strict=True))
            features = ()
        else:
            places = {}
        for name in [*features, *(name for name in (self._sequence, self._time) if name is not None)]:
            if names is None or name not in names:
                raise self._error(f"there is no column {name!r}; there are {listed(names or [])}", line)
            places[name] = names.index(name)
        return places

    def _field(self, fields: Sequence[str], name: str | None) -> str | None:
        return None if name is None or self._places is None else fields[self._places[name]].strip()

    def _read_json(self, text: str, line: int) -> Observation:
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError) as error:
            column = f" at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise self._error(f"not JSON{column}: {getattr(error, 'msg', error)}", line) from None
        if isinstance(entry, list):
            if self._needs_names():
                raise self._error("a list has no names; --sequence and --time need objects", line)
            if len(entry) != self._model.n_features:
                raise self._error(f"{len(entry)} numbers, the model needs {self._model.n_features}", line)
            return Observation(self._sample(dict(zip(self._feature_names(), entry, strict=True)), line))
        if not isinstance(entry, dict):
            raise self._error(f"neither an object nor a list: {text[:40]!r}", line)
        for name in (self._sequence, self._time):
            if name is not None and entry.get(name) is None:
                raise self._error("there is no value", line, name)
        return Observation(self._sample(entry, line), entry.get(self._sequence), entry.get(self._time))

    def _sample(self, entry: dict[str, Any], line: int) -> Array:
        sample = np.empty(self._model.n_features)
        for j, name in enumerate(self._feature_names()):
            if name not in entry:
                raise self._error(f"there is no {name!r}; there are {listed(entry)} (null is a missing value)", line)
            value = entry[name]
            if value is None:
                value = math.nan
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._error(f"not a number: {value!r}", line, name)
            try:
                sample[j] = value
            except OverflowError:
                sample[j] = math.inf
            if math.isinf(sample[j]):
                raise self._error(f"an infinite value: {value!r}"[:80], line, name)
        return sample
