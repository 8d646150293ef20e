"""The rows of a table as arrays: features, sequences, times and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Lengths, Steps, shown
from ..data.dates import exact, moment
from ..data.sequences import group
from ..data.tables import as_array, as_names, check_text, column_names, no_column, refuse_equal_names
from ..data.times import TimeError, gaps, usual_step

if TYPE_CHECKING:
    import narwhals as nw

    from ..model import Model


def index_of(frame: nw.DataFrame[Any]) -> Sequence[Any]:
    """The names of the index, which only tables of pandas have."""
    return getattr(getattr(frame.to_native(), "index", None), "names", ())


def as_frame(df: Any) -> nw.DataFrame[Any]:
    """The table as a narwhals frame; a TypeError says what it must be."""
    if hasattr(df, "shape"):
        refuse_equal_names(column_names(df) or (), "df")
    try:
        frame: nw.DataFrame[Any] = narwhals().from_native(df, eager_only=True)
    except TypeError:
        raise TypeError(
            f"df is a {type(df).__name__}, and should be a data frame of pandas, polars or Arrow with named columns; "
            "arrays go to the methods of the model, such as model.predict(X)"
        ) from None
    return frame


@dataclass(frozen=True)
class Rows:
    """Rows of a table as whole sequences one after the other; ``order`` is None where they were."""

    samples: npt.NDArray[Any]
    lengths: Lengths
    order: npt.NDArray[np.int64] | None
    times: npt.NDArray[Any] | None
    time: str | None

    def row(self, place: int) -> int:
        """The row of the table."""
        return place if self.order is None else int(self.order[place])

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows of the table -> rows of whole sequences."""
        return values if self.order is None else values[self.order]

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows of whole sequences -> rows of the table."""
        if self.order is None:
            return values
        restored = np.empty_like(values)
        restored[self.order] = values
        return restored

    def usual_step(self) -> float:
        """The median time between rows of one sequence."""
        assert self.times is not None
        try:
            return usual_step(self.times, self.lengths)
        except TimeError as problem:
            raise self._error(problem) from None

    def _error(self, problem: TimeError) -> ValueError:
        """What is wrong with the times, and where."""
        if problem.row is None:
            return ValueError(f"column {self.time!r}: {problem} give step as a number")
        return ValueError(f"column {self.time!r}, row {self.row(problem.row)}: {problem}")

    def gaps(self, step: float | None) -> Steps | None:
        """Steps of the chain that lead to each row; None without times, or with nothing to step over."""
        if self.times is None or max(self.lengths) == 1:
            return None
        try:
            return gaps(self.times, self.lengths, self.usual_step() if step is None else step, str(self.time))
        except TimeError as problem:
            raise self._error(problem) from None


def read_rows(frame: nw.DataFrame[Any], features: Sequence[str], sequence: str | None, time: str | None) -> Rows:
    """The samples of a table, its sequences and its times."""
    nw = narwhals()
    for name in (*features, sequence, time):
        if name is not None and name not in frame.columns:
            raise ValueError(f"df has {no_column(name, frame.columns, index_of(frame))}")
    check_text([name for name in (*features, sequence, time) if name is not None], "df")
    if len(frame) == 0:
        raise ValueError("df has no rows")
    for name in features:
        dtype = frame.schema[name]
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
            first = next((value for value in frame[name].to_list() if value is not None), None)
            raise ValueError(
                f"column {name!r} holds {dtype}, such as {shown(first)}, and samples are numbers: name it as the "
                "label, the sequence or the time, leave it out with features=, or make numbers of it"
            )
    samples = as_array(frame.select(*features).to_native())
    order, lengths = None, [len(frame)]
    if sequence is not None:
        _refuse_nulls(frame[sequence], "there is no sequence")
        order, lengths = group(frame[sequence].to_numpy(), len(frame), f"column {sequence!r}")
    times = None if time is None else _times(frame[time])
    if order is not None:
        samples, times = samples[order], None if times is None else times[order]
    return Rows(samples, lengths, order, times, time)


def times_of(df: Any, name: str) -> npt.NDArray[Any]:
    """A column of times."""
    return _times(narwhals().from_native(df, eager_only=True)[name])


def _times(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Times as numbers, dates or durations of numpy; all but fractions are exact."""
    nw = narwhals()
    dtype = series.dtype
    _refuse_nulls(series, "there is no time")
    if dtype == nw.Date:
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if dtype == nw.Datetime:
        unit: Any = "ns" if _unit(dtype) == "ns" else "us"
        return np.asarray(series.dt.timestamp(unit).to_numpy(), dtype=np.int64).view(f"M8[{unit}]")
    if dtype == nw.Duration:
        return np.asarray(series.to_numpy(), dtype=f"m8[{_unit(dtype)}]")
    if dtype == nw.UInt64:
        return np.asarray(series.to_numpy(), dtype=np.uint64)
    if dtype in (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32):
        return np.asarray(series.to_numpy(), dtype=np.int64)
    if dtype in (nw.String, nw.Object, nw.Categorical):
        return exact([_moment(value, row, series.name) for row, value in enumerate(series.to_list())])
    if not dtype.is_numeric():
        raise ValueError(f"column {series.name!r} holds {dtype}, and times are numbers or dates")
    times = np.asarray(series.to_numpy(), dtype=np.float64)
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise ValueError(f"column {series.name!r}, row {row}: not a time: {times[row]}")
    return times


def _moment(value: Any, row: int, name: str) -> Any:
    """A time that is written as text."""
    try:
        return moment(value)
    except ValueError as problem:
        remedy = "make dates of the column first, for example with pandas.to_datetime"
        raise ValueError(f"column {name!r}, row {row}: {problem}; {remedy}") from None


def _unit(dtype: Any) -> str:
    """The unit of dates or durations."""
    return str(dtype.time_unit)


def _refuse_nulls(series: nw.Series[Any], problem: str) -> None:
    null = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if null.any():
        raise ValueError(f"column {series.name!r}, row {int(np.flatnonzero(null)[0])}: {problem}")


def features_of(
    model: Model, columns: Sequence[str], features: Sequence[str] | None, others: tuple[str | None, ...]
) -> list[str]:
    """The columns that a model was learned from, in its order."""
    if features is None and model.feature_names is not None:
        missing = [name for name in model.feature_names if name not in columns]
        if missing:
            raise ValueError(f"df has {no_column(missing[0], columns)}. The model was learned from {missing[0]!r}")
        return list(model.feature_names)
    names = [name for name in columns if name not in others] if features is None else as_names(features)
    if len(names) != model.n_features or len(set(names)) != len(names):
        raise ValueError(
            f"the columns of samples are {', '.join(map(str, names))}, the model was learned from "
            f"{model.n_features}; name them in features, in the order of training"
        )
    for name, expected in zip(names, model.feature_names or names, strict=True):
        if name != expected and name in (model.feature_names or ()):
            raise ValueError(f"features has {name!r} where the model was learned from {expected!r}")
    return names


def plain_labels(series: nw.Series[Any]) -> Any:
    """Labels of a column: those of text, and integers beside nothing, as a list with None where there is nothing."""
    if series.is_null().any() or not series.dtype.is_numeric():
        return [None if value is None or value != value else value for value in series.to_list()]
    return series.to_numpy()


def plain(values: npt.NDArray[Any]) -> Any:
    """Labels that are text or objects as a list, which every library understands."""
    return values.tolist() if values.dtype.kind in "OUS" else values


def narwhals() -> Any:
    """The library narwhals; an ImportError names the extra that brings it."""
    try:
        import narwhals
    except ImportError as error:
        raise ImportError(f'data frames need narwhals: pip install "drhmm[dataframes]" ({error})') from None
    return narwhals
