"""Table rows as arrays: samples of whole sequences, gaps and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.checks import as_values, is_missing, shown
from ..data.columns import Columns, TableError, refuse_equal_names
from ..data.sequences import Sequences, as_array, as_sequences, column_names, group
from ..data.times import TICKS, StepSeconds, TimeError, as_dates, exact, gaps, moment, usual_step
from ..model import Model

if TYPE_CHECKING:
    import narwhals as nw


def narwhals() -> Any:
    """Import narwhals; an ImportError names the extra to install."""
    try:
        import narwhals
    except ImportError as error:
        raise ImportError(f'data frames need narwhals: pip install "drhmm[dataframes]" ({error})') from None
    return narwhals


def as_frame(df: Any) -> nw.DataFrame[Any]:
    """Wrap a table as a narwhals frame, or raise TypeError."""
    if hasattr(df, "shape"):
        refuse_equal_names(column_names(df) or (), "df")
    try:
        frame: nw.DataFrame[Any] = narwhals().from_native(df, eager_only=True)
    except TypeError:
        raise TypeError(
            f"df is a {type(df).__name__}, but must be a data frame of pandas, polars or Arrow with named columns; "
            "arrays go to the methods of the model, such as model.predict(X)"
        ) from None
    return frame


def index_of(frame: nw.DataFrame[Any]) -> Sequence[Any]:
    """Return the names of a pandas index; empty for other tables."""
    return getattr(getattr(frame.to_native(), "index", None), "names", ())


def read_sequences(
    frame: nw.DataFrame[Any], columns: Columns, samples: npt.NDArray[Any] | None = None
) -> tuple[Sequences, float | None]:
    """Read whole sequences and the time of one step; `samples` may be apart."""
    if samples is None and len(frame) == 0:
        raise TableError("df has no rows", on_command_line="there are no rows")
    samples = _samples(frame, columns.features) if samples is None else samples
    order, lengths = None, [len(samples)]
    if columns.sequence is not None:
        _refuse_nulls(frame[columns.sequence], "the sequence is missing")
        order, lengths = group(frame[columns.sequence].to_numpy(), len(samples), f"column {columns.sequence!r}")
    sequences = as_sequences(samples if order is None else samples[order], lengths)
    sequences, step = replace(sequences, order=order), columns.step
    if columns.time is None:
        return sequences, step
    times, unit = as_dates(sequences.arrange(times_of(frame[columns.time])))
    sequences = replace(sequences, times=times)
    if max(lengths) == 1:
        return sequences, step
    try:
        if step is None:
            step = usual_step(times, lengths)
        elif unit in TICKS and not isinstance(step, StepSeconds):
            step /= TICKS[unit]  # a plain number is in the unit of the times
        if unit is not None:
            step = StepSeconds(step)
            step.unit = unit
        dt = gaps(times, lengths, step, columns.time)
        return replace(sequences, dt=None if (dt == 1).all() else dt), step
    except TimeError as problem:
        if problem.row is None:
            flags = f"{problem} give --step as a number"
            raise TableError(f"{problem} give step as a number", columns.time, on_command_line=flags) from None
        raise TableError(str(problem), columns.time, sequences.row(problem.row)) from None


def _samples(frame: nw.DataFrame[Any], names: Sequence[str]) -> npt.NDArray[Any]:
    """Read numeric columns, (rows, names); NaN for missing values."""
    nw = narwhals()
    types = [frame.schema[name] for name in names]
    for name, dtype in zip(names, types, strict=True):
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
            first = next((value for value in frame[name].to_list() if value is not None), None)
            option = "--time" if dtype.is_temporal() or _is_time(first) else "--label or --sequence"
            what = "text" if isinstance(first, str) else dtype
            error = TableError(
                f"column {name!r} holds {dtype}, such as {shown(first)}, and samples are numbers: name it as the "
                "label, the sequence or the time, leave it out with features=, or convert it to numbers",
                on_command_line=f"the column holds {what}, such as {shown(first)}, and features are numbers: name it "
                f"with {option}, or name the others with --features",
            )
            error.column = name
            raise error
    if not frame.implementation.is_pyarrow() or not all(dtype.is_numeric() for dtype in types):
        return np.asarray(as_array(frame.select(*names).to_native()))
    # One column at a time: Arrow's own conversion needs three times the memory of the table.
    samples = np.empty((len(frame), len(names)), dtype=np.float32 if set(types) == {nw.Float32} else np.float64)
    for place, name in enumerate(names):
        samples[:, place] = frame[name].to_numpy()
    return samples


def _is_time(value: Any) -> bool:
    try:
        moment(value)
    except ValueError:
        return False
    return True


def times_of(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Read times as numbers, dates or durations of numpy, exactly up to fractions."""
    nw = narwhals()
    dtype = series.dtype
    _refuse_nulls(series, "the time is missing")
    if dtype == nw.Date:
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if dtype == nw.Datetime:
        return _dates(series)
    if dtype == nw.Duration:
        return np.asarray(series.to_numpy(), dtype=f"m8[{getattr(dtype, 'time_unit', 'ns')}]")
    if dtype == nw.UInt64:
        return np.asarray(series.to_numpy(), dtype=np.uint64)
    if dtype.is_integer():
        return np.asarray(series.to_numpy(), dtype=np.int64)
    if dtype in (nw.String, nw.Object, nw.Categorical):
        return exact([_moment(value, row, series.name) for row, value in enumerate(series.to_list())])
    if not dtype.is_numeric():
        held = getattr(series.to_native(), "dtype", dtype) if dtype == nw.Unknown else dtype
        remedy = "; convert it to dates with .dt.to_timestamp()" if str(held).startswith("period") else ""
        raise TableError(f"column {series.name!r} holds {held}, and times are numbers or dates{remedy}")
    times = np.asarray(series.to_numpy(), dtype=np.float64)
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise TableError(f"not a time: {times[row]}", series.name, row)
    return times


def _dates(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Read dates in nano- or microseconds; UTC if they have a time zone."""
    unit: Any = "ns" if getattr(series.dtype, "time_unit", "us") == "ns" else "us"
    return np.asarray(series.dt.timestamp(unit).to_numpy(), dtype=np.int64).view(f"M8[{unit}]")


def _moment(value: Any, row: int, name: str) -> Any:
    """Parse a time in text."""
    try:
        return moment(value)
    except ValueError as problem:
        remedy = "convert the column to dates first, for example with pandas.to_datetime"
        raise TableError(f"{problem}; {remedy}", name, row, on_command_line=str(problem)) from None


def _refuse_nulls(series: nw.Series[Any], problem: str) -> None:
    null = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if null.any():
        raise TableError(problem, series.name, int(np.flatnonzero(null)[0]))


def values_of(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Read labels or sequence names as an array; missing ones are None, NaN or NaT."""
    nw, name = narwhals(), f"column {series.name!r}"
    if series.dtype == nw.Datetime:
        known = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
        dates = _dates(series.drop_nulls())
        found = np.full(len(series), "NaT", dtype=dates.dtype)
        found[known] = dates
        return found
    if series.dtype.is_numeric() and not series.is_null().any():
        return as_values(series.to_numpy(), name)
    listed = series.to_list()
    if series.dtype == nw.String and not series.is_null().any() and "\0" not in "".join(listed):
        return np.array(listed)
    values = np.empty(len(series), dtype=object)
    values[:] = listed
    values[is_missing(values)] = None
    return as_values(values.tolist(), name)


def plain(values: npt.NDArray[Any]) -> Any:
    """Convert text or object labels to a list, which every library accepts."""
    return values.tolist() if values.dtype.kind in "OUS" else values


def fitted_model(model: Any) -> Model:
    """Return the model, or that of a fitted estimator."""
    if isinstance(model, str | os.PathLike):
        raise TypeError(f"model is the name of a file: load it first, with drhmm.load({os.fspath(model)!r})")
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}: give a model, or a fitted estimator")
    return model if isinstance(model, Model) else model._fitted_model()


def read_rows(model: Model, frame: nw.DataFrame[Any], **named: Any) -> tuple[Sequences, Columns]:
    """Read whole sequences and gaps by the given or stored columns."""
    columns = Columns.to_infer_from(model, frame.columns, index=index_of(frame), **named)
    return read_sequences(frame, columns)[0], columns
