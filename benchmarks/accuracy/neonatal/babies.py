"""What a monitored baby is: channels at one sample a second, and the intervals in which conditions hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from drhmm.data.checks import Array, read_only

#: Conditions that an annotator marks. Normal is a stretch in which nothing happens; Abnormal has no known cause.
CONDITIONS = (
    "BloodSample",
    "Bradycardia",
    "CoreTempProbeDisconnect",
    "IncubatorOpen",
    "Normal",
    "TCP",
    "Abnormal",
)

#: Channels with their resolution: heart rate (beats a minute), systolic and diastolic blood pressure (mmHg), oxygen
#: saturation (%), core and peripheral temperature (degrees C), transcutaneous oxygen and carbon dioxide (kPa),
#: incubator air temperature (degrees C) and humidity (%).
CHANNELS: Mapping[str, float] = MappingProxyType(
    {
        "HR": 1.0,
        "BS": 1.0,
        "BD": 1.0,
        "SO": 1.0,
        "TC": 0.1,
        "TP": 0.1,
        "OX": 0.1,
        "CO": 0.1,
        "Incu.Air Temp": 0.1,
        "Incu.Air Humidity": 0.1,
    }
)

#: Channels in which a dropout reads exactly 20; in the others it reads 0.
TEMPERATURES = ("TC", "TP", "Incu.Air Temp")


@dataclass(frozen=True)
class Baby:
    """One baby on a monitor.

    Attributes
    ----------
    channels : ndarray of shape (n_samples, n_channels)
        Samples, one a second. 0 is a dropout, and so is a temperature of exactly 20.
    labels : tuple of str
        Names of the channels; not every baby has all of them.
    intervals : mapping of str to ndarray of shape (n, 2)
        For each of ``CONDITIONS``, the half-open intervals [begin, end) of samples in which it holds, possibly none.
    forename, sex : str
        A made-up name, and "M" or "F".
    dayoflife, gestation : int
        Age in days, and weeks of gestation at birth.
    """

    channels: Array
    labels: tuple[str, ...]
    intervals: Mapping[str, npt.NDArray[np.int64]]
    forename: str
    dayoflife: int
    gestation: int
    sex: str

    def __post_init__(self) -> None:
        frozen = {}
        for name, values in self.intervals.items():
            frozen[name] = np.array(values, dtype=np.int64).reshape(-1, 2)
            frozen[name].setflags(write=False)
        object.__setattr__(self, "channels", read_only(self.channels))
        object.__setattr__(self, "intervals", MappingProxyType(frozen))

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.channels, self.labels, dict(self.intervals))
        return Baby, (*fields, self.forename, self.dayoflife, self.gestation, self.sex)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.channels)

    def channel(self, label: str) -> Array:
        """Samples of one channel, shape (n_samples,)."""
        if label not in self.labels:
            raise KeyError(f"{self.forename} has no channel {label!r}; the channels are {', '.join(self.labels)}")
        return self.channels[:, self.labels.index(label)]

    def holds(self, condition: str) -> npt.NDArray[np.bool_]:
        """Whether a condition holds at each sample, shape (n_samples,)."""
        mask = np.zeros(self.n_samples, dtype=bool)
        for begin, end in self.intervals[condition]:
            mask[begin:end] = True
        return mask
