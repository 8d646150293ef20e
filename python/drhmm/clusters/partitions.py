"""Work on one partition, a pandas frame, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array
from ..data.columns import Columns, features_of
from ..data.labels import as_labels, encode
from ..data.sequences import Sequences, as_sequences, group
from ..dataframes import predict
from ..evidence.pooled import PooledEvidence
from ..learning.block_sums import Statistics
from ..model import Model
from ..tables.results import result_names
from ..tables.rows import narwhals, plain, read_sequences, times_of

if TYPE_CHECKING:
    import pandas as pd

#: Rows of whole sequences whose statistics are computed at once.
MOST_ROWS = 5_000

#: Column with the original order of rows that move to other partitions.
PLACE = "__drhmm_place__"


@dataclass(frozen=True)
class Pieces:
    """The contents of one partition, without samples.

    ``ids`` are its sequences, ``labels`` its labels. With rows in order of sequence and time, piece k has
    ``lengths[k]`` rows of one sequence from row ``begins[k]``; ``counts[k, i]`` of them have the label i.
    """

    ids: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    begins: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def settled(frame: pd.DataFrame) -> pd.DataFrame:
    """Restore the order of rows from before they moved between partitions."""
    return frame.sort_values(PLACE, kind="stable").drop(columns=PLACE) if PLACE in frame.columns else frame


def in_order(frame: pd.DataFrame, sequence: str | None, time: str | None) -> npt.NDArray[np.int64]:
    """Sort rows by sequence, and by time if there is a time column."""
    order, lengths = group(_ids(frame, sequence), len(frame))
    order = np.arange(len(frame)) if order is None else order
    if time is None:
        return order
    codes = np.repeat(np.arange(len(lengths)), lengths)
    by_time: npt.NDArray[np.int64] = order[np.lexsort((times_of(_narwhal(frame)[time])[order], codes))]
    return by_time


def pieces_of(frame: pd.DataFrame, columns: Columns, longest: int) -> Pieces:
    """Return the sequences and labels of a partition, and pieces of at most `longest`."""
    values, codes = _unique(_labels(frame, columns))
    ids = _ids(frame, columns.sequence)
    if len(frame) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Pieces(ids, values, nothing, nothing, np.empty((0, len(values)), dtype=np.int64))
    order = in_order(frame, columns.sequence, columns.time)
    ids, codes = ids[order], codes[order]
    _, lengths = group(ids, len(ids))
    first = np.cumsum([0, *lengths[:-1]])
    begins = np.concatenate(
        [np.arange(begin, begin + length, longest) for begin, length in zip(first, lengths, strict=True)]
    )
    sizes = np.diff(np.append(begins, len(frame)))
    counts = np.zeros((len(begins), len(values)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(begins)), sizes), codes), 1)
    return Pieces(ids[first], values, begins, sizes, counts)


def ids_of(frame: pd.DataFrame, sequence: str) -> npt.NDArray[Any]:
    """Return the distinct sequences of a partition."""
    return np.asarray(frame[sequence].unique())


def first_split(ids: Sequence[npt.NDArray[Any]]) -> tuple[Any, int, int] | None:
    """Find the first sequence in two partitions; `ids` lists those of each."""
    seen: dict[Any, int] = {}
    for partition, names in enumerate(ids):
        for name in names.tolist():
            if name in seen:
                return name, seen[name], partition
            seen[name] = partition
    return None


def check_whole(ids: Sequence[npt.NDArray[Any]], sequence: str) -> None:
    """Raise ValueError if a sequence is in two partitions."""
    split = first_split(ids)
    if split is not None:
        name, first, second = split
        raise ValueError(
            f"whole=True, but the sequence {name!r} of column {sequence!r} is in two partitions, {first} and {second}"
        )


def after_check(frame: pd.DataFrame, ids: Sequence[npt.NDArray[Any]], sequence: str) -> pd.DataFrame:
    """Return the frame after checking that sequences are whole."""
    check_whole(ids, sequence)
    return frame


def take(frame: pd.DataFrame, columns: Columns, begins: Sequence[int], lengths: Sequence[int]) -> list[pd.DataFrame]:
    """Copy some pieces of a partition, as views would keep all of it in memory."""
    order = in_order(frame, columns.sequence, columns.time)
    pieces = [frame.iloc[order[begin : begin + length]] for begin, length in zip(begins, lengths, strict=True)]
    for piece in pieces:
        piece.attrs = {}
    return pieces


def read(frame: pd.DataFrame, columns: Columns) -> tuple[Sequences, npt.NDArray[Any], float | None]:
    """Read whole sequences of a frame in order, labels, and the time of one step."""
    ordered = _taken(frame, in_order(frame, columns.sequence, columns.time))
    sequences, step = read_sequences(_narwhal(ordered), columns)
    return sequences, _labels(ordered, columns), step


def statistics_of(
    frame: pd.DataFrame, columns: Columns, evidence: PooledEvidence, classes: npt.NDArray[Any], weights: Array | None
) -> Statistics | None:
    """Return the statistics of a partition of whole sequences, None without rows."""
    if len(frame) == 0:
        return None
    rows, labels, _ = read(settled(frame), columns)
    # A gap in time ends a sequence, as the states within it are unknown.
    sequences = as_sequences(rows.samples, rows.unbroken)
    codes, total = encode(as_labels(labels, sequences), classes, sequences), None
    for _, begin, part in sequences.parts(MOST_ROWS):
        own = codes[begin : begin + len(part.samples)]
        found = Statistics.of(evidence, part, own, None if weights is None else weights[own])
        total = Statistics.merged([total, found])
    return total


def predict_partition(
    frame: pd.DataFrame, model: Model, sequence: str, time: str | None, options: dict[str, Any]
) -> pd.DataFrame:
    """Run `dataframes.predict` on one partition of whole sequences, in any order."""
    frame = settled(frame)
    if len(frame) == 0:
        return empty_result(frame, model, options)
    order = in_order(frame, sequence, time)
    predicted = predict(model, _taken(frame, order), sequence=sequence, time=False if time is None else time, **options)
    return _taken(predicted, np.argsort(order, kind="stable"))


def empty_result(frame: pd.DataFrame, model: Model, options: dict[str, Any]) -> pd.DataFrame:
    """Return the result columns without rows."""
    import pandas

    samples = np.asarray(frame[features_of(model, list(frame.columns), options.get("features"))].iloc[:0])
    number = np.dtype(np.float32 if samples.dtype == np.float32 else np.float64)
    labels = pandas.Series(plain(model.classes)).dtype
    names = result_names(model, options.get("method", "smooth"), options.get("probabilities", False))
    added = {name: pandas.Series(dtype=labels if name == "state" else number, index=frame.index[:0]) for name in names}
    return frame.iloc[:0].assign(**added)


def _taken(frame: pd.DataFrame, order: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return rows in the given order, without a copy if they already have it."""
    return frame if (np.diff(order) == 1).all() else frame.iloc[order]


def _narwhal(frame: pd.DataFrame) -> Any:
    return narwhals().from_native(frame, eager_only=True)


def _ids(frame: pd.DataFrame, sequence: str | None) -> npt.NDArray[Any]:
    null = np.asarray(frame[sequence].isna(), dtype=bool)
    if null.any():
        where = frame.index[null][0]
        raise ValueError(f"column {sequence!r} is empty in {int(null.sum())} rows, the first with the index {where!r}")
    return np.asarray(frame[sequence])


def _labels(frame: pd.DataFrame, columns: Columns) -> npt.NDArray[Any]:
    return np.asarray(frame[columns.label])


def _unique(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return distinct labels in order, missing ones included, and each row's code."""
    import pandas

    codes, values = pandas.factorize(labels, use_na_sentinel=False)
    return np.asarray(values), np.asarray(codes, dtype=np.int64)
