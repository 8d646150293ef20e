"""Argument checks; messages name the argument, the value and its place."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from dataclasses import fields
from math import inf
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core

Array = npt.NDArray[np.float64]
Lengths = list[int]
Integers = npt.NDArray[np.int64]
Steps = Integers
Values = npt.NDArray[Any]

#: A number of threads; None for all cores.
Cores: TypeAlias = int | None

ROW_SUM_TOLERANCE = 1e-8

#: The dtype of the native core: float64 in native byte order.
NATIVE = np.dtype(np.float64)

#: The largest number allowed where squares or sums would overflow.
LARGEST = 1e100

MOST_THREADS = 4096

#: Rows in a block of work of the native core; threads beyond the number of blocks would be idle.
BLOCK = 256

#: The most steps of the chain between two frames; JSON and float64 hold such integers exactly.
LONGEST_GAP = 2**53


def as_floats(values: Any, name: str) -> Array:
    """Convert to a float64 array of any shape."""
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        has_text = array.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in array.flat)
        if array.dtype.kind not in "fiubO" or has_text:  # numpy would parse text
            raise TypeError(f"got dtype {array.dtype}")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None


def refuse_masked(values: Any, name: str) -> None:
    """Raise ValueError for masked arrays, alone or in a list: numpy drops the mask."""
    for part in values if isinstance(values, list | tuple) else (values,):
        if np.ma.isMaskedArray(part) and np.ma.getmaskarray(part).any():
            raise ValueError(f"{name} is a masked array with masked values; fill them first (NaN is a missing sample)")


def _is_plain(values: Any) -> bool:
    """Test whether the native core can use the array without a copy."""
    if type(values) is not np.ndarray or values.dtype != NATIVE:
        return False
    flags = values.flags
    return bool(flags.c_contiguous and flags.aligned)


def as_matrix(values: Any, name: str, advice: str = "") -> Array:
    """Convert to a C-contiguous, aligned float64 matrix; allow NaN and infinities."""
    if _is_plain(values) and values.ndim == 2:
        return values  # type: ignore[no-any-return]
    if values is None:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got None")
    refuse_masked(values, name)
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse, and sparse data are not supported; use {name}.toarray()")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array: {str(error).rstrip('.')}{advice}") from None
    if array.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers. Complex data not supported")
    if array.dtype.kind not in "fiubO":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O":
        for place, value in np.ndenumerate(array):
            if isinstance(value, str | bytes):
                where = f" at row {place[0]}, column {place[1]}" if len(place) == 2 else ""
                raise ValueError(f"{name} must hold numbers, got {value!r}{where}")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name} must hold numbers, got dtype {array.dtype}: {error}") from None
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got shape {array.shape}{advice}")
    return np.require(array, dtype=np.float64, requirements=["C", "A"])


def read_only(array: Array) -> Array:
    """Return a contiguous, read-only float64 array; copy if necessary."""
    if _is_plain(array) and not _is_written_through(array):
        return array
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def _is_written_through(array: Any) -> bool:
    """Test whether the array or one of its bases is writable."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


class FrozenArrays:
    """Base of frozen dataclasses with read-only arrays, also after pickling."""

    def __post_init__(self: Any) -> None:
        for item in fields(self):
            if item.init and isinstance(getattr(self, item.name), np.ndarray):
                object.__setattr__(self, item.name, read_only(getattr(self, item.name)))

    def __reduce__(self: Any) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, item.name) for item in fields(self) if item.init)


def as_samples(values: Any, name: str = "X") -> Array:
    """Check a matrix of samples: not empty and without infinities; allow NaN."""
    samples = as_matrix(
        values,
        name,
        ". Reshape your data: array.reshape(-1, 1) for a single column, or a list of two-dimensional arrays for "
        "several sequences",
    )
    if samples.size == 0:
        what = "feature" if len(samples) else "sample"  # as in scikit-learn
        raise ValueError(f"{name} is empty: 0 {what}(s) (shape={samples.shape}) while a minimum of 1 is required.")
    infinite = _core.first_infinite(samples)
    if infinite >= 0:
        row, column = divmod(infinite, samples.shape[1])
        raise ValueError(f"{name} has an infinite value ({samples[row, column]}) at row {row}, column {column}")
    return samples


def as_sample(values: Any, n_columns: int, name: str = "x") -> Array:
    """Check one sample (d,) of a stream, except for infinities; None is missing."""
    if values is None:
        return np.full(n_columns, np.nan)
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not one sample of {n_columns} numbers: {error}") from None
    sample = as_matrix(np.atleast_2d(array), name)
    if array.ndim > 2 or sample.shape != (1, n_columns):
        raise ValueError(f"{name} must be one sample with {n_columns} columns, got shape {array.shape}")
    row: Array = sample[0]
    return row


def as_values(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert labels or names to an array, of objects if numpy would merge values."""
    refuse_masked(values, name)
    is_list = isinstance(values, list | tuple)
    array = _as_objects(values) if is_list and not _fit_together(values) else np.asarray(values)
    if array.dtype.kind == "f" and str(getattr(values, "dtype", "")).lower().startswith(("int", "uint")):
        array = _as_objects(list(values))  # integers of a table with missing values
    if is_list or array.dtype.kind == "O":
        _refuse_mixed_truth(values if is_list else array, name)
    return array


def _fit_together(values: Sequence[Any]) -> bool:
    """Test whether numpy would keep every value of a list unchanged."""
    kinds = {type(value) for value in values}
    is_text = {issubclass(kind, str | bytes) for kind in kinds}
    if len(is_text) > 1 or type(None) in kinds:
        return False
    if is_text == {True}:
        return not any(value[-1:] in ("\0", b"\0") for value in values)
    if kinds == {int}:
        low, high = int(min(values)), int(max(values))
        return (low >= -(2**63) and high < 2**63) or (low >= 0 and high < 2**64)
    return not any(type(value) is int and abs(value) > 2**53 for value in values)


def _as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _refuse_mixed_truth(values: Any, name: str) -> None:
    """Raise ValueError for a mix of booleans and numbers, as True equals 1."""
    kinds = {type(value) for value in values}
    truth = {bool, np.bool_}
    if kinds.isdisjoint(truth) or kinds <= truth:
        return
    for row, value in enumerate(values):
        if isinstance(value, numbers.Number) and type(value) not in truth and not _stands_for_nothing(value):
            raise ValueError(f"{name} has {value!r} at row {row}, but True and False elsewhere: use one kind of labels")


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mark NaN, NaT, None and pandas.NA."""
    if values.dtype.kind == "f":
        return np.array(np.isnan(values), dtype=np.bool_)
    if values.dtype.kind in "mM":
        return np.array(np.isnat(values), dtype=np.bool_)
    if values.dtype.kind == "O":
        return np.array([_stands_for_nothing(value) for value in values], dtype=np.bool_)
    return np.full(len(values), False)


def _stands_for_nothing(value: Any) -> bool:
    """Test for None, NaN or pandas.NA."""
    if value is None:
        return True
    equal = value == value
    return not equal if isinstance(equal, bool | np.bool_) else True


def _as_array_of_integers(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert to an array, without dimensions if the values are ragged."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(())


def as_lengths(lengths: Any, n_rows: int) -> Lengths:
    """Check lengths of sequences: positive, with n_rows as sum; None is one sequence."""
    if lengths is None:
        return [n_rows]
    array = _as_array_of_integers(lengths, "lengths")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"lengths must be a one-dimensional sequence of integers, got {shown(lengths)}")
    for place in np.flatnonzero(array <= 0):
        raise ValueError(f"lengths must be positive: sequence {place} has length {array[place]}")
    checked: Lengths = array.tolist()
    if sum(checked) != n_rows:
        raise ValueError(f"lengths sum to {sum(checked)}, but there are {n_rows} rows")
    return checked


def as_steps(dt: Any, n_rows: int) -> Steps | None:
    """Check the steps of the chain before each row; None means one step everywhere."""
    if dt is None:
        return None
    steps = _as_array_of_integers(dt, "dt")
    if steps.shape != (n_rows,):
        raise ValueError(f"dt must have one integer per row: shape {(n_rows,)}, got shape {steps.shape}: {shown(dt)}")
    if steps.dtype.kind not in "iu":
        allowed = range(1, LONGEST_GAP + 1)
        given = enumerate(steps.tolist())
        wrong = [f"{step!r} at row {row}" for row, step in given if type(step) is not int or step not in allowed]
        found = wrong[0] if wrong else f"dtype {steps.dtype}"
        raise ValueError(f"dt must hold integers from 1 to {LONGEST_GAP}, one per row, got {found}")
    for row in np.flatnonzero((steps < 1) | (steps > LONGEST_GAP)):
        raise ValueError(f"dt has {steps[row]} at row {row}: a row is 1 to {LONGEST_GAP} steps after the previous row")
    checked: Steps = np.require(steps, dtype=np.int64, requirements=["C", "A"])
    return checked


def as_weights(values: Any, sequences: Any) -> Array:
    """Check weights of rows (finite, >= 0, not all 0) and order them by sequence."""
    lengths, n_rows = sequences.lengths, len(sequences.samples)
    if sequences.is_list:
        if not isinstance(values, list | tuple):
            raise ValueError(f"sample_weight must be a list of {len(lengths)} arrays, one per sequence in X")
        parts = [as_floats(part, "sample_weight") for part in values]
        if [part.shape for part in parts] != [(length,) for length in lengths]:
            raise ValueError("sample_weight must be a list of arrays, one weight per row of each sequence in X")
        values = np.concatenate(parts)
    weights = as_floats(values, "sample_weight")
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one value per row: shape {(n_rows,)}, got {weights.shape}")
    for row in np.flatnonzero(~((weights <= LARGEST) & (weights >= 0))):
        raise ValueError(f"sample_weight has {weights[row]} at row {row}: weights are from 0 to {LARGEST:g}")
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: there is nothing to learn from")
    arranged: Array = sequences.arrange(weights)
    return arranged


def _as_probabilities(values: Array, name: str) -> Array:
    """Check that rows are probabilities and normalise them exactly, in a new array."""
    normalized: Array | None = _core.normalized(values, ROW_SUM_TOLERANCE)
    if normalized is None:
        _refuse_probabilities(values, name)
    return normalized


def _refuse_probabilities(values: Array, name: str) -> NoReturn:
    """Raise ValueError for the first invalid number or row sum."""
    for row, probabilities in enumerate(np.atleast_2d(values)):
        place = f" of row {row}" if values.ndim == 2 else ""
        for column, value in enumerate(probabilities):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} has {value} at column {column}{place}: probabilities are 0 or more")
        total = np.add.reduce(probabilities)
        if not abs(total - 1) <= ROW_SUM_TOLERANCE:
            raise ValueError(f"{name}: the sum{place} is {total:.10g}, not 1")
    raise ValueError(f"{name}: a row does not sum to 1 within {ROW_SUM_TOLERANCE:g}")


def as_transmat(values: Any, n_states: int, name: str = "transmat") -> Array:
    """Check a transition matrix (S, S), whose rows sum to 1."""
    transmat = as_matrix(values, name)
    if n_states == 0:
        raise ValueError(f"{name} is empty: shape {transmat.shape}")
    if transmat.shape != (n_states, n_states):
        raise ValueError(f"{name} must have shape {(n_states, n_states)}, got {transmat.shape}")
    return _as_probabilities(transmat, name)


def as_startprob(values: Any, n_states: int, name: str = "startprob") -> Array:
    """Check start probabilities (S,), which sum to 1."""
    startprob = values if _is_plain(values) else as_floats(values, name)
    if startprob.shape != (n_states,):
        raise ValueError(f"{name} must have shape {(n_states,)}, got {startprob.shape}")
    return _as_probabilities(startprob, name)


def check_number(
    value: Any, name: str, *, low: float = -inf, high: float = inf, low_open: bool = False, high_open: bool = False
) -> float:
    """Check that a finite real number is within bounds."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number that float64 can hold, got {shown(value)}")
    below = number <= low if low_open else number < low
    above = number >= high if high_open else number > high
    if below or above:
        interval = f"{'(' if low_open else '['}{low:g}, {high:g}{')' if high_open or high == inf else ']'}"
        raise ValueError(f"{name} must be in {interval}, got {value!r}")
    return number


def shown(value: Any, most: int = 60) -> str:
    """Format a value for a message, shortened if necessary."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def check_integer(value: Any, name: str, *, low: int, high: int | None = None) -> int:
    """Check that an integer is within bounds."""
    if not isinstance(value, int | numbers.Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if number < low:
        raise ValueError(f"{name} must be at least {low}, got {shown(value)}")
    if high is not None and number > high:
        raise ValueError(f"{name} must be at most {high}, got {shown(value)}")
    return number


def check_number_or_auto(value: Any, name: str, *, low: int, high: int | None = None, of: str = "") -> None:
    """Check that a value is an integer within bounds, "auto" or None."""
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{name} must be a number{f' of {of}' if of else ''}, 'auto' or None, got {value!r}")
    if value is not None and not isinstance(value, str):
        check_integer(value, name, low=low, high=high)


def check_bool(value: Any, name: str) -> None:
    """Check that a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_searched(value: Any, name: str) -> None:
    """Check that a value is a positive number, "cv" (search) or "default"."""
    if not isinstance(value, str):
        check_number(value, name, low=1 / LARGEST, high=LARGEST)
    elif value not in ("cv", "default"):
        raise ValueError(f"{name} must be a positive number, 'cv' or 'default', got {value!r}")


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Check that a value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def thread_count(n_threads: int | None, n_rows: int | None = None) -> int:
    """Return the argument, else DRHMM_NUM_THREADS, else the number of usable cores.

    By default one thread for so few rows that others would not help.
    """
    if n_threads is not None:
        return check_integer(n_threads, "n_threads", low=1, high=MOST_THREADS)
    if n_rows is not None and n_rows <= BLOCK:
        return 1
    text = os.environ.get("DRHMM_NUM_THREADS")
    if text:
        if not text.isdecimal() or not 1 <= int(text) <= MOST_THREADS:
            raise ValueError(
                "the environment variable DRHMM_NUM_THREADS must be a positive integer "
                f"up to {MOST_THREADS}, got {text!r}"
            )
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_json(value: Any) -> Any:
    """Convert a setting to JSON: dicts become pairs, and other objects their repr."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return as_json(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return [[as_json(key), as_json(item)] for key, item in value.items()]
    return repr(value)


def checked_log_ratios(source: Any, frames: Array, n_states: int) -> Array:
    """Check the shape and values of the log ratios of a source."""
    log_ratios = as_matrix(source.log_ratios(frames), "log_ratios")
    if log_ratios.shape != (len(frames), n_states):
        raise ValueError(
            f"{source!r} returned log ratios of shape {log_ratios.shape} instead of {(len(frames), n_states)}"
        )
    return without_evidence(log_ratios)


def without_evidence(log_ratios: Array) -> Array:
    """Replace rows of -inf, where all estimates are 0, by rows of 0: no evidence."""
    excluded = np.isneginf(log_ratios).all(axis=1, keepdims=True)
    return np.where(excluded, 0.0, log_ratios)
