"""Conversion of X (arrays, tables, lists) to rows and lengths of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .checks import (
    Array,
    Lengths,
    Steps,
    as_lengths,
    as_samples,
    as_steps,
    as_values,
    check_integer,
    is_missing,
    refuse_masked,
)
from .columns import check_text, refuse_equal_names

#: The entry of a model's settings with the sketch of the rows that it learned from.
LEARNED_ROWS = "learned_rows"

#: Hashes in a sketch, rows per hash, and the fewest matching hashes that count.
N_HASHES, TOGETHER, FEWEST_FOUND = 128, 3, 4

_ODD = np.uint64(0x9E3779B97F4A7C15)

#: Samples: an array, a table, or a list of these; see `Model.predict_proba`.
Data: TypeAlias = npt.ArrayLike

#: One value per row or per sequence, as the argument explains; or None.
Rows: TypeAlias = npt.ArrayLike | None


@dataclass(slots=True)  # a frozen class would take three times as long to create
class Sequences:
    """Samples of whole sequences, one after the other.

    ``order`` is the permutation that sorted interleaved rows by sequence, or None; ``is_list`` is set if X was a list
    of arrays. ``dt`` holds the steps of the chain before each row (None: all 1), ``times`` the times of rows, if known.
    """

    samples: Array
    lengths: Lengths
    dtype: npt.DTypeLike
    order: npt.NDArray[np.int64] | None = None
    is_list: bool = False
    dt: Steps | None = None
    times: npt.NDArray[Any] | None = None

    @property
    def is_single(self) -> bool:
        """Whether X was float32; results are then float32, too."""
        return self.dtype == np.float32

    @property
    def given(self) -> npt.NDArray[Any]:
        """Samples in the precision of the input."""
        return self.samples.astype(self.dtype, copy=False)

    @property
    def unbroken(self) -> Lengths:
        """Lengths of the stretches between gaps; no window reaches across a gap."""
        if self.dt is None:
            return self.lengths
        begins = np.zeros(len(self.samples) + 1, dtype=bool)
        begins[np.cumsum([0, *self.lengths])] = True
        begins[:-1] |= self.dt > 1
        parts: Lengths = np.diff(np.flatnonzero(begins)).tolist()
        return parts

    def has_frame(self, window: int) -> bool:
        """Whether any time step has a complete window."""
        if len(self.samples) >= window and self.unbroken[-1] >= window and not np.isnan(self.samples[-window:]).any():
            return True
        begins = np.cumsum([0, *self.unbroken])
        present = np.insert(~np.isnan(self.samples).any(axis=1), begins, False)
        return bool(np.diff(np.flatnonzero(~present)).max() > window)

    def taken(self, chosen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], Sequences]:
        """Select rows and return their new positions; neighbours stay together."""
        rows = np.flatnonzero(chosen)
        owners = np.repeat(np.arange(len(self.lengths)), self.lengths)[rows]
        begins = np.ones(len(rows), dtype=bool)
        begins[1:] = (np.diff(rows) > 1) | (np.diff(owners) > 0)
        lengths: Lengths = np.diff(np.append(np.flatnonzero(begins), len(rows))).tolist()
        order = rows if self.order is None else self.order[rows]
        dt = None if self.dt is None else np.where(begins, 1, self.dt[rows])
        times = None if self.times is None else self.times[rows]
        return rows, Sequences(np.ascontiguousarray(self.samples[rows]), lengths, self.dtype, order, dt=dt, times=times)

    def parts(self, most: int) -> Iterator[tuple[int, int, Sequences]]:
        """Iterate over groups of sequences of at most `most` rows, if possible.

        Each has the number of its first sequence, its first row, and its sequences.
        """
        number = begin = 0
        while number < len(self.lengths):
            last, end = number + 1, begin + self.lengths[number]
            while last < len(self.lengths) and end + self.lengths[last] <= begin + most:
                end, last = end + self.lengths[last], last + 1
            dt = None if self.dt is None else self.dt[begin:end]
            rows = np.arange(begin, end) if self.order is None else self.order[begin:end]
            samples, lengths = self.samples[begin:end], self.lengths[number:last]
            yield number, begin, Sequences(samples, lengths, self.dtype, rows, dt=dt)
            number, begin = last, end

    def row(self, place: int) -> int:
        """Return the caller's row for a position among the rows of whole sequences."""
        return place if self.order is None else int(self.order[place])

    def place(self, row: Any, name: str = "frame") -> int:
        """Return the position for the caller's row, or (sequence, row) of a list."""
        if self.is_list:
            if not isinstance(row, tuple) or len(row) != 2:
                raise ValueError(f"{name} must be a sequence and a row in it, as X is a list, got {row!r}")
            number = check_integer(row[0], f"{name}[0]", low=0, high=len(self.lengths) - 1)
            inside = check_integer(row[1], f"{name}[1]", low=0, high=self.lengths[number] - 1)
            return sum(self.lengths[:number]) + inside
        place = check_integer(row, name, low=0, high=len(self.samples) - 1)
        return place if self.order is None else int(np.flatnonzero(self.order == place)[0])

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Bring rows from the caller's order into the order of sequences."""
        return values if self.order is None else values[self.order]

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Restore the caller's order and precision, and a list of arrays if X was one."""
        if self.is_single and values.dtype == np.float64:
            values = values.astype(np.float32)
        if self.order is not None:
            restored = np.empty_like(values)
            restored[self.order] = values
            return restored
        if self.is_list:
            parts: Any = np.split(values, np.cumsum(self.lengths)[:-1])
            return parts  # type: ignore[no-any-return]
        return values

    def sketch(self) -> list[int]:
        """Return the smallest hashes that occur once; signals at rest repeat their rows."""
        hashes, counts = np.unique(self._hashes(), return_counts=True)
        smallest: list[int] = hashes[counts == 1][:N_HASHES].tolist()
        return smallest

    def known_share(self, sketch: Sequence[int]) -> float:
        """Estimate the share of rows behind a sketch; 0 if too few hashes match."""
        if len(sketch) < FEWEST_FOUND:
            return 0.0
        hashes = np.unique(self._hashes())
        hashes = hashes[hashes <= max(sketch)]
        found = int(np.isin(hashes, np.array(sketch, dtype=np.uint64)).sum())
        return found / len(hashes) if found >= FEWEST_FOUND else 0.0

    def _hashes(self) -> npt.NDArray[np.uint64]:
        """Return 48-bit hashes of all stretches of rows within sequences."""
        bits = np.where(np.isnan(self.samples), np.nan, self.samples + 0.0).view(np.uint64)
        rows = np.zeros(len(bits), dtype=np.uint64)
        for column in bits.T:
            rows = _mixed(rows ^ column)
        stretches = rows[: len(rows) - TOGETHER + 1]
        for shift in range(1, TOGETHER):
            stretches = _mixed(stretches ^ rows[shift : len(rows) - TOGETHER + 1 + shift])
        ends = zip(np.cumsum(self.lengths).tolist(), self.lengths, strict=True)
        begins = np.concatenate([np.arange(end - length, end - TOGETHER + 1) for end, length in ends])
        found: npt.NDArray[np.uint64] = stretches[begins] >> np.uint64(16)
        return found


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> np.uint64(32))) * _ODD
    return mixed ^ (mixed >> np.uint64(29))


def is_list_of_sequences(X: Any) -> bool:
    """Test for a list or tuple of matrices or tables; a list of rows is one array."""
    return isinstance(X, list | tuple) and len(X) > 0 and (getattr(X[0], "ndim", 0) == 2 or is_table(X[0]))


@dataclass(frozen=True)
class NamedColumns:
    """An array with column names: a minimal table."""

    values: npt.NDArray[Any]
    column_names: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


def column_names(table: Any) -> tuple[Any, ...] | None:
    """Return the column names of a table; None for arrays and anything else."""
    if type(table) is np.ndarray:
        return None
    if not hasattr(table, "shape"):
        if hasattr(table, "collect_schema"):
            raise TypeError(f"X is a {type(table).__name__}, which has not been computed yet; use X.collect()")
        return None
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        if names is not None and not callable(names):
            return tuple(names)
    return None


def is_table(values: Any) -> bool:
    """Test for named columns."""
    return column_names(values) is not None


def feature_names_of(X: Any, argument: str = "X") -> tuple[str, ...] | None:
    """Return the column names of X, a table, a list of tables or a row; or None.

    Names must be distinct strings. The default columns 0..d-1 of pandas do not count as names.
    """
    if type(X) is np.ndarray:
        return None
    if isinstance(X, list | tuple):
        several = {feature_names_of(part, f"{argument}[{k}]") for k, part in enumerate(X) if is_table(part)}
        if len(several) > 1:
            first, second, *_ = sorted(several, key=str)
            raise ValueError(f"the tables in X have different columns: {first} and {second}")
        return several.pop() if several else None
    names = column_names(X)
    if names is None and getattr(X, "ndim", 0) == 1 and hasattr(X, "iloc"):
        names = tuple(X.index)  # a row of pandas
    if not names or all(not isinstance(name, str) and str(name) == str(k) for k, name in enumerate(names)):
        return None
    check_text(names, argument)
    refuse_equal_names(names, argument)
    return tuple(str(name) for name in names)


def as_array(values: Any) -> Any:
    """Convert a table to an array, with NaN for missing values."""
    if not is_table(values):
        return values
    names = column_names(values) or ()
    if hasattr(values, "select") and not hasattr(values, "iloc"):
        # polars converts times to numbers, and Arrow raises its own errors.
        _refuse_text_and_times([np.asarray(values[name][:1]) for name in names if names.count(name) == 1], names)
    array = np.asarray(values)
    if array.dtype.kind in "OUSMm" and array.ndim == 2:
        _refuse_text_and_times(array.T, names)
    if array.dtype == object and hasattr(values, "isna"):
        # numpy cannot convert pandas.NA to a number.
        array = array.copy()
        array[np.asarray(values.isna(), dtype=bool)] = np.nan
    return array


def _refuse_text_and_times(columns: Iterable[npt.NDArray[Any]], names: Sequence[Any]) -> None:
    """Raise ValueError for text or times among samples, naming column and row."""
    for name, column in zip(names, columns, strict=True):
        for row, value in enumerate(column):
            if isinstance(value, str | bytes):
                raise ValueError(
                    f"column {name!r} holds text, {value!r} at row {row}, and samples are numbers: leave it out, or "
                    "convert it to numbers"
                )
            if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64):
                is_duration = isinstance(value, timedelta | np.timedelta64)
                seconds = "convert it to seconds with .dt.total_seconds(), " if is_duration else ""
                raise ValueError(
                    f"column {name!r} holds times, {value!s} at row {row}, and samples are numbers: leave it out, "
                    f"{seconds}or name it as the times of rows, in drhmm.dataframes.fit(estimator, df, time={name!r})"
                )


def as_sequences(X: Any, lengths: Any = None, sequence_id: Any = None, dt: Any = None) -> Sequences:
    """Read X with `lengths`, `sequence_id`, as a list, or as one sequence."""
    if lengths is not None and sequence_id is not None:
        raise ValueError("give lengths or sequence_id, not both")
    is_array = type(X) is np.ndarray
    if not is_array and is_list_of_sequences(X):
        sequences = _from_list(X, lengths, sequence_id)
    else:
        X = X if is_array else as_array(X)
        samples, order = as_samples(X), None
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        if sequence_id is None:
            lengths = as_lengths(lengths, len(samples))
        else:
            order, lengths = group(sequence_id, len(samples))
        sequences = Sequences(samples if order is None else samples[order], lengths, dtype, order)
    return sequences if dt is None else replace(sequences, dt=_arranged_steps(dt, sequences))


def _arranged_steps(dt: Any, sequences: Sequences) -> Steps | None:
    if sequences.is_list:
        if not isinstance(dt, list | tuple) or [len(np.atleast_1d(part)) for part in dt] != sequences.lengths:
            raise ValueError("dt must be a list of arrays, one integer per row of each sequence in X")
        for k, part in enumerate(dt):
            refuse_masked(part, f"dt[{k}]")
        dt = np.concatenate([np.atleast_1d(part) for part in dt])
    steps = as_steps(dt, len(sequences.samples))
    return None if steps is None else sequences.arrange(steps)


def _from_list(X: Sequence[Any], lengths: Any, sequence_id: Any) -> Sequences:
    if lengths is not None or sequence_id is not None:
        raise ValueError("X is a list of sequences: lengths and sequence_id cannot be given as well")
    X = [as_array(part) for part in X]
    parts = [as_samples(part, f"X[{k}]") for k, part in enumerate(X)]
    for k, part in enumerate(parts):
        if part.shape[1] != parts[0].shape[1]:
            raise ValueError(f"X[{k}] has {part.shape[1]} columns, X[0] has {parts[0].shape[1]}")
    single = all(getattr(part, "dtype", None) == np.float32 for part in X)
    dtype = np.float32 if single else np.float64
    return Sequences(np.concatenate(parts), [len(part) for part in parts], dtype, is_list=True)


def group(sequence_id: Any, n_rows: int, name: str = "sequence_id") -> tuple[npt.NDArray[np.int64] | None, Lengths]:
    """Order rows by id and return lengths; sequences keep their order of appearance."""
    ids = as_values(sequence_id, name)
    if ids.shape != (n_rows,):
        raise ValueError(f"{name} must have one value per row: shape {(n_rows,)}, got {ids.shape}")
    for row in np.flatnonzero(is_missing(ids)):
        raise ValueError(f"{name} has {ids[row]!s} at row {row}: the sequence is missing")
    first, codes = numbered_by_appearance(ids, name)
    lengths = [int(count) for count in np.bincount(codes, minlength=len(first))]
    if np.all(np.diff(codes) >= 0):
        return None, lengths
    return np.argsort(codes, kind="stable"), lengths


def _numbered(ids: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Number ids in order of appearance; also return the row of each first appearance."""
    if ids.dtype.kind != "O":
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        return first, inverse
    numbers: dict[Any, int] = {}
    try:
        inverse = np.array([numbers.setdefault(value, len(numbers)) for value in ids], dtype=np.int64)
    except TypeError as error:
        raise ValueError(f"{name} has values that cannot be told apart: {error}") from None
    return np.unique(inverse, return_index=True)[1], inverse


def numbered_by_appearance(ids: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the row of each first appearance, in order, and the code of each row."""
    # One id for each stretch of equal ones is enough.
    begins = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    first, inverse = _numbered(ids[begins], name)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    codes = np.repeat(rank[inverse.reshape(-1)], np.diff(np.append(begins, len(ids))))
    return begins[np.sort(first)], codes
