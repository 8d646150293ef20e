"""The real sequences: where they come from, how they are read, and how they are split for training and testing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCES = {
    "apnea_ecg": "minute features by ChiQiao/Apnea-ECG (MIT) of PhysioNet Apnea-ECG (ODC-By); 70 recordings",
    "occupancy": "Candanedo and Feldheim 2016, Occupancy Detection (UCI, CC BY 4.0); 3 sequences of minutes",
    "mhealth_athens": "UCI MHEALTH through ornithos/athenstimeseries2018 (MIT); one sequence at 50 Hz",
    "skab": "waico/SKAB v0.9 (GPL-3), a water-circulation test bed; 34 files with anomalies at about 1 Hz",
}

ARRAYS = ("X", "y", "lengths", "label_names", "feature_names")
MORE_ARRAYS = {"apnea_ecg": ("released",)}
N_SEQUENCES = {"occupancy": 3, "mhealth_athens": 1}


class DataError(Exception):
    """A set that is not there, or has another structure; says which, where and what is expected."""


def _explain(problem):
    lines = [problem, "", "--data is a folder with four files of arrays, NAME.npz, each with"]
    lines += [f"  {', '.join(ARRAYS)} (rows of X and y are the sequences one after the other; lengths sums to them):"]
    for name, source in SOURCES.items():
        more = f"; also the array {MORE_ARRAYS[name][0]}, 1 for recordings to train on" if name in MORE_ARRAYS else ""
        lines.append(f"  {name}.npz: {source}{more}")
    return "\n".join(lines)


def check_folder(folder):
    """Raise a DataError that names every missing file."""
    if folder is None:
        raise DataError(_explain("--data FOLDER is needed: the real sequences are not part of this project."))
    if not Path(folder).is_dir():
        raise DataError(_explain(f"--data: {folder} is not a folder."))
    missing = [f"{name}.npz" for name in SOURCES if not (Path(folder) / f"{name}.npz").is_file()]
    if missing:
        raise DataError(_explain(f"--data: {folder} has no {', '.join(missing)}."))


def load(folder, name):
    """The arrays of one set, checked."""
    path = Path(folder) / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as archive:
            data = {key: archive[key] for key in archive.files}
    except (OSError, ValueError) as error:
        raise DataError(_explain(f"{path} cannot be read: {error}.")) from None
    missing = [key for key in (*ARRAYS, *MORE_ARRAYS.get(name, ())) if key not in data]
    if missing:
        raise DataError(_explain(f"{path} has no array {', '.join(missing)}."))
    shapes = {key: data[key].shape for key in data}
    n_sequences = N_SEQUENCES.get(name, len(data["lengths"]))
    if data["lengths"].sum() != len(data["X"]) or len(data["X"]) != len(data["y"]):
        raise DataError(
            f"{path}: lengths sum to {data['lengths'].sum()}, but X and y are {shapes['X']}, {shapes['y']}."
        )
    if len(data["lengths"]) != n_sequences or shapes.get("released", shapes["lengths"]) != shapes["lengths"]:
        raise DataError(f"{path}: {n_sequences} sequences expected, got the shapes {shapes}.")
    return data


@dataclass(frozen=True)
class Split:
    """Labelled sequences to train on and to test on."""

    name: str
    words: str
    train: tuple
    test: tuple
    n_states: int
    window: int = 1

    def __post_init__(self):
        for part, (_, y, _) in {"training": self.train, "test": self.test}.items():
            missing = np.setdiff1d(np.arange(self.n_states), y)
            if len(missing) > 0:
                raise DataError(f"{self.name}: the {part} part ({self.words}) has no row of state {missing[0]}.")


def _by_sequence(data, trained, tested=None, columns=slice(None)):
    """Training and test part as (X, y, lengths), by numbers of sequences; all others are tested by default."""
    tested = np.setdiff1d(np.arange(len(data["lengths"])), trained) if tested is None else tested
    parts = []
    for chosen in (trained, tested):
        own = np.isin(np.arange(len(data["lengths"])), chosen)
        rows = np.repeat(own, data["lengths"])
        parts.append((data["X"][rows][:, columns], data["y"][rows], data["lengths"][own].tolist()))
    return parts


def _cut(data, begin, end):
    """Rows of a single sequence."""
    return data["X"][begin:end], data["y"][begin:end], [end - begin]


def labelled_splits(folder):
    """All splits of the sets with labels: those of the protocol first, then their mirror images."""
    apnea, occupancy, activity = (load(folder, name) for name in ("apnea_ecg", "occupancy", "mhealth_athens"))
    released = np.flatnonzero(apnea["released"] == 1)
    withheld = np.flatnonzero(apnea["released"] != 1)
    dark = np.flatnonzero(occupancy["feature_names"] != "Light")
    n = len(activity["X"])
    border, early = int(0.7 * n), int(0.3 * n)
    splits = [
        Split("apnea_ecg", "35 released recordings, test: the other 35", *_by_sequence(apnea, released), 2),
        Split("occupancy", "sequence 1, test: 0 and 2", *_by_sequence(occupancy, [1]), 2),
        Split("occupancy without Light", "sequence 1, test: 0 and 2", *_by_sequence(occupancy, [1], columns=dark), 2),
        Split(
            "mhealth_athens",
            "first 70 %, test: last 30 %; window 6",
            _cut(activity, 0, border),
            _cut(activity, border, n),
            4,
            window=6,
        ),
        Split(
            "apnea_ecg, halves swapped",
            "the other 35 recordings, test: the released 35",
            *_by_sequence(apnea, withheld),
            2,
        ),
    ]
    for trained in (0, 2):
        for words, columns in (("occupancy", slice(None)), ("occupancy without Light", dark)):
            rest = " and ".join(str(k) for k in range(3) if k != trained)
            parts = _by_sequence(occupancy, [trained], columns=columns)
            splits.append(Split(f"{words}, from {trained}", f"sequence {trained}, test: {rest}", *parts, 2))
    splits.append(
        Split(
            "mhealth_athens, last part",
            "last 70 %, test: first 30 %; window 6",
            _cut(activity, early, n),
            _cut(activity, 0, early),
            4,
            window=6,
        )
    )
    return splits


def anomaly_files(folder):
    """(X, y) of every file of SKAB that has anomalies."""
    data = load(folder, "skab")
    ends = np.cumsum(data["lengths"])
    parts = [(data["X"][e - n : e], data["y"][e - n : e]) for n, e in zip(data["lengths"], ends, strict=True)]
    return [(X, y) for X, y in parts if y.any()]
