"""The protocol of the experiment: conditions, their channels, folds, and the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from .babies import TEMPERATURES, Baby

#: Short names of the rows of the table, the condition in the file, and the channels that show it.
CONDITIONS = MappingProxyType(
    {
        "bradycardia": ("Bradycardia", ("HR",)),
        "incubator open": ("IncubatorOpen", ("Incu.Air Humidity", "HR", "BS", "BD", "SO")),
        "blood sample": ("BloodSample", ("BS", "BD")),
        "temperature probe": ("CoreTempProbeDisconnect", ("TC", "Incu.Air Temp")),
        "abnormal": ("Abnormal", ("SO", "HR", "BS", "BD", "TC")),
    }
)
KNOWN = tuple(name for name in CONDITIONS if name != "abnormal")

#: AUC and EER that the paper prints (Table 1), by condition and system.
PAPER = MappingProxyType(
    {
        "bradycardia": {"fhmm": (0.66, 0.37), "slds": (0.88, 0.25), "ratio": (0.92, 0.13)},
        "incubator open": {"fhmm": (0.78, 0.25), "slds": (0.87, 0.17), "ratio": (0.88, 0.17)},
        "blood sample": {"fhmm": (0.82, 0.20), "slds": (0.96, 0.14), "ratio": (0.96, 0.05)},
        "temperature probe": {"fhmm": (0.74, 0.32), "slds": (0.77, 0.23), "ratio": (0.94, 0.10)},
        "abnormal": {"slds": (0.69, 0.36), "ratio": (0.75, 0.31)},
    }
)

#: Channels of the two factorial models: all that the conditions show themselves in.
CHANNELS = ("HR", "SO", "BS", "BD", "TC", "Incu.Air Temp", "Incu.Air Humidity")

N_FOLDS = 3


class ProtocolError(ValueError):
    """The babies do not allow the experiment; the message says which of them, and why."""


@dataclass(frozen=True)
class Patient:
    """A baby with NaN for dropouts: what every system sees.

    ``values[name]`` has shape (n_samples,); channels that the baby lacks are not in it. ``center[name]`` and
    ``spread[name]`` are median and standard deviation of the normal stretch.
    """

    number: int
    values: dict[str, np.ndarray]
    truth: dict[str, np.ndarray]
    intervals: dict[str, np.ndarray]
    normal: np.ndarray
    center: dict[str, float]
    spread: dict[str, float]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.normal)

    def has(self, condition: str) -> bool:
        """Whether a condition of the table occurs, in a channel that this baby has."""
        return bool(self.truth[condition].any()) and bool(self.channels(condition))

    def channels(self, condition: str) -> tuple[str, ...]:
        """Channels of a condition that this baby has."""
        return tuple(name for name in CONDITIONS[condition][1] if name in self.values)


def without_dropouts(label: str, samples: np.ndarray) -> np.ndarray:
    """NaN where a sensor was off: 0 in any channel, exactly 20 in a temperature."""
    off = samples == 0
    if label in TEMPERATURES:
        off = off | (samples == 20)
    return np.where(off, np.nan, samples)


def prepare(babies: list[Baby]) -> list[Patient]:
    """Patients from babies; raises a ProtocolError where the experiment cannot be done."""
    patients = []
    for number, baby in enumerate(babies, start=1):
        name = f"baby {number} ({baby.forename})"
        normal = baby.holds("Normal")
        if not normal.any():
            raise ProtocolError(f"{name} has no Normal interval: its normal state cannot be learned")
        values = {label: without_dropouts(label, baby.channel(label)) for label in CHANNELS if label in baby.labels}
        center, spread = {}, {}
        for label in list(values):
            seen = values[label][normal]
            seen = seen[~np.isnan(seen)]
            if len(seen) < 30 and label not in ("HR", "SO", "TC", "Incu.Air Temp"):
                del values[label]  # a channel without a normal stretch is one that the baby lacks
                continue
            if len(seen) < 30:
                raise ProtocolError(
                    f"{name} has {len(seen)} samples of {label} in its Normal intervals; at least 30 are needed"
                )
            center[label], spread[label] = float(np.median(seen)), float(max(seen.std(), 0.05))
        truth = {row: baby.holds(condition) for row, (condition, _) in CONDITIONS.items()}
        intervals = {row: baby.intervals[condition] for row, (condition, _) in CONDITIONS.items()}
        patients.append(Patient(number, values, truth, intervals, normal, center, spread))
    if len(patients) < N_FOLDS:
        raise ProtocolError(f"there are {len(patients)} babies, and {N_FOLDS} folds need at least as many")
    for fold in folds(len(patients)):
        rest = [patient for k, patient in enumerate(patients) if k not in fold]
        for condition in KNOWN:
            if any(patients[k].has(condition) for k in fold) and not any(patient.has(condition) for patient in rest):
                numbers = f"{fold[0] + 1} to {fold[-1] + 1}"
                raise ProtocolError(
                    f"no baby but those of the fold {numbers} has {CONDITIONS[condition][0]} intervals: "
                    f"there is nothing to learn {condition} from"
                )
    return patients


def folds(n_babies: int) -> list[list[int]]:
    """Places of the babies of each fold: contiguous thirds, babies 1-5, 6-10 and 11-15 of fifteen."""
    return [part.tolist() for part in np.array_split(np.arange(n_babies), N_FOLDS)]


def training_of(patients: list[Patient], place: int) -> list[Patient]:
    """The patients of the other folds."""
    own = next(fold for fold in folds(len(patients)) if place in fold)
    return [patient for k, patient in enumerate(patients) if k not in own]


def switching(patients: list[Patient], condition: str) -> tuple[float, float]:
    """Probability per second that a condition begins, and that it ends, from the intervals of training babies."""
    on = sum(int(patient.truth[condition].sum()) for patient in patients)
    off = sum(patient.n_samples for patient in patients) - on
    begins = sum(len(patient.intervals[condition]) for patient in patients)
    return (begins + 0.5) / (off + 1), min((begins + 0.5) / (on + 1), 0.5)


def switching_matrix(patients: list[Patient], condition: str) -> np.ndarray:
    """Transition probabilities off, on."""
    begin, end = switching(patients, condition)
    return np.array([[1 - begin, begin], [end, 1 - end]])
