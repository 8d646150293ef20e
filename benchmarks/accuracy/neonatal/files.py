"""The file `15days.mat`: written from simulated babies and read into babies, with clear words where it is not one.

Structure: `data` has `raw` and `preprocessed`, each a 1 x n cell of structs with `channels` (samples x channels),
`labels`, `nsamples`, `forename`, `dayoflife`, `gestation` and `sex`; `intervals` has a 1 x n cell for each condition,
with n x 2 arrays of [start stop], counted from 1, both inclusive, possibly empty.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat
from scipy.io.matlab import MatReadError

from .babies import CONDITIONS, Baby

#: Channels that go by two names.
ALIASES = {
    "TcPCO_2": "CO",
    "TcPO_2": "OX",
    "SpO_2": "SO",
    "code 4101": "Incu.Air Humidity",
    "code 4102": "Incu.Air Temp",
}

#: Channels that every baby has.
REQUIRED = ("HR", "SO", "TC", "TP", "Incu.Air Temp")

FIELDS = ("channels", "labels", "nsamples", "forename", "dayoflife", "gestation", "sex")

#: Seconds over which `preprocessed` is a moving average, as in the Matlab demo.
MOVING_AVERAGE = 11


class FileFormatError(ValueError):
    """A file is not what it should be; the message says where."""


def write(path: Path, babies: list[Baby]) -> None:
    """Write babies in the structure of `15days.mat`; every other baby has the other names of its channels."""
    other = {name: alias for alias, name in ALIASES.items()}
    raw, preprocessed = _cell(len(babies)), _cell(len(babies))
    for k, baby in enumerate(babies):
        labels = _cell(len(baby.labels))
        labels[0, :] = [other.get(label, label) if k % 2 else label for label in baby.labels]
        entry = {
            "channels": np.asarray(baby.channels),
            "labels": labels,
            "nsamples": float(baby.n_samples),
            "forename": baby.forename,
            "dayoflife": float(baby.dayoflife),
            "gestation": float(baby.gestation),
            "sex": baby.sex,
        }
        raw[0, k] = entry
        preprocessed[0, k] = {**entry, "channels": _moving_average(baby.channels)}
    intervals = {}
    for condition in CONDITIONS:
        intervals[condition] = _cell(len(babies))
        for k, baby in enumerate(babies):
            found = baby.intervals[condition]
            intervals[condition][0, k] = np.add(found, [1, 0]).astype(float) if len(found) else np.zeros((0, 0))
    savemat(path, {"data": {"raw": raw, "preprocessed": preprocessed}, "intervals": intervals}, do_compression=True)


def _cell(n: int) -> np.ndarray:
    return np.empty((1, n), dtype=object)


def _moving_average(channels: np.ndarray) -> np.ndarray:
    summed = np.cumsum(np.vstack([np.zeros(channels.shape[1]), channels]), axis=0)
    ends = np.arange(1, len(channels) + 1)
    begins = np.maximum(ends - MOVING_AVERAGE, 0)
    return (summed[ends] - summed[begins]) / (ends - begins)[:, None]


def read(path: Path) -> list[Baby]:
    """Babies of `data.raw` and their intervals; a FileFormatError says what is missing, and in which baby."""
    contents = _load(Path(path))
    for name in ("data", "intervals"):
        if name not in contents:
            found = ", ".join(key for key in contents if not key.startswith("__")) or "nothing"
            raise FileFormatError(f"{path}: there is no variable {name!r}; the file holds {found}")
    raw = _babies(_field(contents["data"], "data", "raw", path), path)
    for condition in CONDITIONS:
        _field(contents["intervals"], "intervals", condition, path)
    babies = []
    for k, entry in enumerate(raw):
        where = f"{path}: baby {k + 1}"
        parts = {name: _field(entry, f"data.raw{{{k + 1}}}", name, path) for name in FIELDS}
        channels = np.atleast_2d(np.asarray(parts["channels"]))
        labels = tuple(_texts(parts["labels"], where))
        if channels.dtype.kind not in "fiu" or channels.ndim != 2:
            raise FileFormatError(
                f"{where}: channels is not a matrix of numbers, but {channels.dtype} {channels.shape}"
            )
        if channels.shape[1] != len(labels):
            raise FileFormatError(
                f"{where}: channels has {channels.shape[1]} columns, but there are {len(labels)} labels"
            )
        missing = [name for name in REQUIRED if name not in labels]
        if missing:
            raise FileFormatError(f"{where}: no channel {', '.join(missing)}; it has {', '.join(labels)}")
        if not np.isfinite(channels.astype(float)).all():
            row, column = np.argwhere(~np.isfinite(channels.astype(float)))[0]
            raise FileFormatError(f"{where}: channel {labels[column]} is {channels[row, column]} at sample {row + 1}")
        intervals = {}
        for condition in CONDITIONS:
            cell = np.atleast_1d(np.asarray(contents["intervals"][condition], dtype=object)).ravel()
            if len(cell) != len(raw):
                raise FileFormatError(
                    f"{path}: intervals.{condition} has {len(cell)} entries, but there are {len(raw)} babies"
                )
            intervals[condition] = _intervals(cell[k], len(channels), f"{where}, {condition}")
        babies.append(
            Baby(
                channels.astype(float),
                labels,
                intervals,
                str(parts["forename"]) or f"baby {k + 1}",
                _number(parts["dayoflife"]),
                _number(parts["gestation"]),
                str(parts["sex"]),
            )
        )
    return babies


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            head = file.read(8 + 128)
    except OSError as error:
        raise FileFormatError(f"{path}: {error.strerror or error}") from None
    if b"MATLAB 7.3" in head or head.startswith(b"\x89HDF"):
        raise FileFormatError(
            f"{path}: this is a Matlab 7.3 (HDF5) file; save it from Matlab with save('15days.mat', '-v7') first"
        )
    try:
        contents: dict[str, Any] = loadmat(path, simplify_cells=True)
    except (MatReadError, NotImplementedError, ValueError, TypeError, IndexError, OSError, zlib.error) as error:
        raise FileFormatError(f"{path}: not a Matlab file, or a damaged one ({error})") from None
    return contents


def _field(struct: Any, place: str, name: str, path: Path) -> Any:
    if not isinstance(struct, dict):
        raise FileFormatError(f"{path}: {place} is not a struct")
    if name not in struct:
        raise FileFormatError(f"{path}: {place} has no field {name}; it has {', '.join(struct)}")
    return struct[name]


def _babies(cell: Any, path: Path) -> list[Any]:
    # One baby alone, or babies with equal fields, come back as a dict or as an array of dicts.
    entries = [cell] if isinstance(cell, dict) else list(np.atleast_1d(np.asarray(cell, dtype=object)).ravel())
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise FileFormatError(f"{path}: data.raw is not a cell of structs, one for each baby")
    return entries


def _texts(labels: Any, where: str) -> list[str]:
    texts = [labels] if isinstance(labels, str) else list(np.atleast_1d(np.asarray(labels, dtype=object)).ravel())
    if not all(isinstance(text, str) for text in texts):
        raise FileFormatError(f"{where}: labels is not a cell of names")
    return [ALIASES.get(text.strip(), text.strip()) for text in texts]


def _intervals(values: Any, n_samples: int, where: str) -> np.ndarray:
    """Half-open intervals counted from 0, cut at the ends of the recording; those of no length are dropped."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.dtype.kind not in "fiu" or array.size % 2 or array.ndim > 2 or array.shape[-1] != 2:
        raise FileFormatError(f"{where}: intervals must be rows of [start stop], got shape {array.shape}")
    rows = array.reshape(-1, 2).astype(float)
    if not np.isfinite(rows).all() or (rows[:, 0] > rows[:, 1]).any() or (rows != np.round(rows)).any():
        wrong = rows[
            ~(np.isfinite(rows).all(axis=1) & (rows[:, 0] <= rows[:, 1]) & (rows == np.round(rows)).all(axis=1))
        ]
        raise FileFormatError(f"{where}: [{wrong[0, 0]:g} {wrong[0, 1]:g}] is not an interval [start stop] of samples")
    half_open = np.clip(rows.astype(np.int64) - [1, 0], 0, n_samples)
    return half_open[half_open[:, 0] < half_open[:, 1]]


def _number(value: Any) -> int:
    """A number of the description of a baby; -1 where it is not known."""
    array = np.atleast_1d(np.asarray(value))
    return int(array[0]) if array.dtype.kind in "fiu" and array.size == 1 and np.isfinite(array[0]) else -1
