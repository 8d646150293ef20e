"""Tables in: the names and the numbers of pandas, polars and Arrow tables, whichever of them is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class NamedColumns:
    """An array with the names of its columns: the smallest table there is."""

    values: npt.NDArray[Any]
    column_names: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


def column_names(table: Any) -> tuple[Any, ...] | None:
    """Names of the columns of a table, in order; None for anything else, an array among them."""
    if not hasattr(table, "shape"):
        if hasattr(table, "collect_schema"):
            raise TypeError(f"X is a {type(table).__name__}, whose rows are not there yet; use X.collect()")
        return None
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        if names is not None and not callable(names):
            return tuple(names)
    return None


def is_table(values: Any) -> bool:
    """Whether something has named columns."""
    return column_names(values) is not None


def feature_names_of(X: Any, argument: str = "X") -> tuple[str, ...] | None:
    """Names of the columns of a table, of the tables of a list or of the values of one row; None without names.

    Names are text, and different from one another. The numbers 0..d-1 in order, which pandas gives, are no names.
    """
    if isinstance(X, list | tuple):
        several = {feature_names_of(part, f"{argument}[{k}]") for k, part in enumerate(X) if is_table(part)}
        if len(several) > 1:
            first, second, *_ = sorted(several, key=str)
            raise ValueError(f"the tables in X have different columns: {first} and {second}")
        return several.pop() if several else None
    names = column_names(X)
    if names is None and getattr(X, "ndim", 0) == 1 and hasattr(X, "iloc"):
        names = tuple(X.index)  # a row of pandas
    if not names or _are_numbered(names):
        return None
    check_text(names, argument)
    refuse_equal_names(names, argument)
    return tuple(str(name) for name in names)


def refuse_equal_names(names: Sequence[Any], argument: str) -> None:
    """Raise a ValueError if two columns have one name."""
    known: set[Any] = set()
    for name in names:
        if name in known:
            raise ValueError(f"{argument} has two columns with the name {name!r}")
        known.add(name)


def as_names(names: Any, argument: str = "features") -> list[Any]:
    """A list of columns; a ValueError for text, whose letters are no names."""
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a list of columns, got the text {names!r}: write {argument}=[{names!r}]")
    return list(names)


def check_text(names: Sequence[Any], argument: str) -> None:
    """Raise a ValueError if a name is not text: numbers say nothing of what a column holds, nor of its place."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{argument} has columns with names that are not strings: {_shown([repr(name) for name in names])}; "
            "rename the columns to strings, here and in training"
        )


def _are_numbered(names: tuple[Any, ...]) -> bool:
    """Whether names are the numbers 0..d-1, in this order."""
    return names == tuple(range(len(names))) and all(
        isinstance(name, Integral) and not isinstance(name, bool) for name in names
    )


def as_array(values: Any) -> Any:
    """A table as an array, NaN where a value is missing; anything else as it is."""
    if not is_table(values):
        return values
    array = np.asarray(values)
    if array.dtype.kind in "OUS" and array.ndim == 2:
        _refuse_text(array, column_names(values) or ())
    if array.dtype == object and hasattr(values, "isna"):
        # pandas.NA has no number of its own.
        array = array.copy()
        array[np.asarray(values.isna(), dtype=bool)] = np.nan
    return array


def _refuse_text(array: npt.NDArray[Any], names: Sequence[Any]) -> None:
    """Raise a ValueError for text in a table of samples, with its column and row."""
    for name, column in zip(names, array.T, strict=True):
        for row, value in enumerate(column):
            if isinstance(value, str | bytes):
                raise ValueError(
                    f"column {name!r} holds text, {value!r} at row {row}, and samples are numbers: leave it out, or "
                    "make numbers of it"
                )


def no_column(name: Any, names: Iterable[Any], index: Sequence[Any] = ()) -> str:
    """In words, that a table has no such column, which one may be meant, and which there are."""
    if name in index:
        return f"no column {name!r}, as it is the index: use df.reset_index()"
    there = [str(one) for one in names]
    nearest = [one for one in there if one.lower() == str(name).lower()]
    nearest = nearest or get_close_matches(str(name), there, n=1, cutoff=0.7)
    hint = f", did you mean {nearest[0]!r}?" if nearest else ";"
    listed = ", ".join(one if len(one) <= 60 else one[:57] + "..." for one in there)
    return f"no column {name!r}{hint} there are {listed}"


def values_by_name(sample: Mapping[str, Any], names: Sequence[str] | None) -> list[float]:
    """The values of one sample in the order of the columns; NaN where there is None."""
    if names is None:
        raise ValueError("x is a mapping, but the model was learned without names of columns: give the values in order")
    for name in names:
        if name not in sample:
            raise ValueError(f"x has {no_column(name, sample)}")
        if isinstance(sample[name], str | bytes):
            raise ValueError(f"x has {sample[name]!r} in {name!r}: a sample has numbers, or None where one is missing")
    return [float("nan") if sample[name] is None else sample[name] for name in names]


def names_mismatch(names: tuple[str, ...], expected: tuple[str, ...]) -> str | None:
    """In words, how the columns of a table differ from those of training; None if they do not."""
    if names == expected:
        return None
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    problems = []
    if missing:
        problems.append(f"{_shown(missing)} missing")
    if extra:
        problems.append(f"{_shown(extra)} never seen in training")
    problem = " and ".join(problems) or "another order"
    return (
        f"the columns of X are {_shown(names)} ({problem}); "
        f"the model was learned from {_shown(expected)}, in this order"
    )


def columns_named(which: npt.ArrayLike, names: Sequence[str] | None) -> str:
    """The columns that are True, in words: by their names in a table, by their numbers otherwise."""
    columns = np.flatnonzero(which).tolist()
    shown = _shown([column if names is None else repr(names[column]) for column in columns])
    return f"column{'s' if len(columns) > 1 else ''} {shown}"


def _shown(names: Any, most: int = 8) -> str:
    shown = [str(name) for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
