"""Simulated babies in intensive care: vital signs at one sample a second, and what happens to them in a day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from drhmm.data.checks import Array, check_integer, check_number
from drhmm.datasets.plant import places, wander
from drhmm.features.frames import random_state_of

from . import events
from .babies import CHANNELS, CONDITIONS, TEMPERATURES, Baby
from .events import Signals, bump

DAY = 86_400

#: The shortest recording in which there is room for a normal stretch and for events.
SHORTEST = 1_200

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gwen",
    "Hugo",
    "Iris",
    "Jon",
    "Kai",
    "Lena",
    "Max",
    "Nora",
    "Otto",
)


@dataclass(frozen=True)
class Kind:
    """Events of one kind: how many a day on average, how long, how far apart, and what they do."""

    per_day: float
    shortest: float
    mean: float
    longest: float
    gap: int
    happen: Callable[..., tuple[int, int]]

    def durations(self, random: np.random.RandomState, count: int) -> Array:
        """Durations in seconds: an exponential beyond the shortest, cut off at the longest."""
        return np.minimum(self.shortest + random.exponential(self.mean - self.shortest, count), self.longest)


KINDS = {
    "IncubatorOpen": Kind(40, 30, 180, 1200, 120, events.incubator_open),
    "Bradycardia": Kind(18, 12, 32, 150, 60, events.bradycardia),
    "CoreTempProbeDisconnect": Kind(6, 90, 380, 1800, 300, events.probe_disconnection),
    "TCP": Kind(4, 180, 400, 900, 600, events.recalibration),
    "BloodSample": Kind(6, 40, 150, 500, 120, events.blood_sample),
}
ABNORMAL = Kind(20, 45, 240, 1200, 60, events.abnormal)


def monitor(n_babies: int = 15, n_samples: int = DAY, *, activity: float = 1.0, random_state: Any = None) -> list[Baby]:
    """Simulate babies in intensive care: drifting vital signs, known conditions, unknown ones and dropouts.

    The recordings have the structure of those of Quinn, Williams and McIntosh (2009). The channels differ between
    babies (two of three have blood pressure), and so do the baselines, which also drift. For each condition there are
    the intervals that an annotator marked, give or take a few seconds. Bradycardias are dips of the heart rate with a
    recovery; blood samples are artificial ramps in both pressures; a disconnected core temperature probe falls
    exponentially to the temperature of the incubator; an open incubator loses humidity, and its baby is handled;
    recalibrations (TCP) take the transcutaneous probe off; abnormal stretches are any of eight patterns without a name.
    Conditions overlap, the heart rate also speeds up and slows down without any condition, and sensors drop out.

    Parameters
    ----------
    n_babies : int
        Number of babies.
    n_samples : int
        Samples of each, one a second; a day by default.
    activity : float
        Multiplies the usual number of events; use more than 1 for short recordings.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    list of Baby
        See `Baby`; all arrays are read-only.
    """
    check_integer(n_babies, "n_babies", low=1)
    check_integer(n_samples, "n_samples", low=SHORTEST)
    check_number(activity, "activity", low=0)
    random = random_state_of(random_state)
    with_pressure = _chosen(random, n_babies, round(2 * n_babies / 3))
    with_humidity = _chosen(random, n_babies, n_babies - n_babies // 7)
    with_gases = _chosen(random, n_babies, n_babies - n_babies // 5)
    babies = []
    for k in range(n_babies):
        missing = {
            *(() if k in with_pressure else ("BS", "BD")),
            *(() if k in with_humidity else ("Incu.Air Humidity",)),
            *(() if k in with_gases else ("OX", "CO")),
        }
        own = np.random.RandomState(random.randint(2**31))
        babies.append(_baby(own, NAMES[k % len(NAMES)], n_samples, activity, missing))
    return babies


def _chosen(random: np.random.RandomState, n_babies: int, count: int) -> set[int]:
    return {int(k) for k in random.permutation(n_babies)[:count]}


def _baby(random: np.random.RandomState, forename: str, n_samples: int, activity: float, missing: set[str]) -> Baby:
    signals = _physiology(random, n_samples)
    length = min(max(n_samples // 48, 300), 3600)
    begin = int(random.randint(0, n_samples - length))
    normal = (begin, begin + length)
    intervals: dict[str, list[tuple[int, int]]] = {condition: [] for condition in CONDITIONS}
    intervals["Normal"] = [normal]
    kinds = dict(KINDS)
    if "BS" in missing:
        del kinds["BloodSample"]
    if "OX" in missing:
        del kinds["TCP"]
    has_pressure = "BS" not in missing
    kinds["Abnormal"] = Kind(**{**vars(ABNORMAL), "happen": partial(events.abnormal, has_pressure=has_pressure)})
    days = activity * n_samples / DAY
    # What is wrong with the baby comes first; artefacts of the sensors, such as a blood sample, cover it.
    for condition in ("Abnormal", *(name for name in kinds if name != "Abnormal")):
        kind = kinds[condition]
        count = random.poisson(kind.per_day * random.gamma(2.0, 0.5) * days)
        # Humidity and skin sensors recover slowly: the normal stretch begins well after the last event.
        free = [(normal[0] - 600, normal[1] + 60)]
        found = places(random, kind.durations(random, count), n_samples, free, kind.gap)
        intervals[condition] = [kind.happen(signals, random, first, last) for first, last in found]
    labels = tuple(name for name in CHANNELS if name not in missing)
    channels = np.stack([_recorded(random, name, signals[name]) for name in labels], axis=1)
    return Baby(
        channels,
        labels,
        {name: np.array(found, dtype=np.int64).reshape(-1, 2) for name, found in intervals.items()},
        forename,
        int(random.randint(1, 60)),
        int(random.randint(24, 33)),
        str(random.choice(["M", "F"])),
    )


def _physiology(random: np.random.RandomState, n_samples: int) -> Signals:
    """All channels of a baby to whom nothing happens: its own baselines, slow drift and fast variation."""

    def drift(time_constant: float, deviation: float) -> Array:
        return wander(random, n_samples, time_constant, deviation)

    fast = random.uniform(0.7, 1.4)
    rate = random.normal(150, 9) + drift(5400, 5) + drift(600, 2.5) + fast * drift(7, 2.2)
    pressure = drift(5400, 3.5) + drift(300, 1.3)
    pulse = random.uniform(13, 22)
    systolic = random.normal(50, 6) + pressure + fast * drift(5, 0.9)
    diastolic = systolic - pulse - 0.25 * pressure + drift(900, 0.8) + fast * drift(5, 0.6)
    saturation = random.normal(94.5, 1.5) + drift(1800, 1.0) + drift(20, 0.7) - np.abs(drift(60, 0.9))
    core = random.normal(36.9, 0.25) + drift(7200, 0.12) + drift(40, 0.015)
    time = np.arange(n_samples)
    cycle = 2 * np.pi * (time / random.uniform(400, 1200) + random.random_sample())
    _ordinary_variation(random, rate, 60, (6, 22), (20, 90))
    _ordinary_variation(random, rate, 40, (-22, -7), (8, 25))
    _ordinary_variation(random, pressure_pair := np.zeros(n_samples), 40, (-6, 7), (40, 300))
    _ordinary_variation(random, saturation, 50, (-6, -2), (15, 70))
    return {
        "HR": rate,
        "BS": systolic + pressure_pair,
        "BD": diastolic + 0.8 * pressure_pair,
        "SO": saturation,
        "TC": core,
        "TP": core - random.uniform(0.8, 2.5) + drift(3600, 0.25) + drift(30, 0.02),
        "OX": random.normal(8, 1.0) + drift(1800, 0.6) + drift(30, 0.05),
        "CO": random.normal(6, 0.6) + drift(3600, 0.4) + drift(30, 0.04),
        "Incu.Air Temp": random.normal(33.5, 1.2) + drift(7200, 0.4) + 0.12 * np.sin(cycle) + drift(30, 0.02),
        "Incu.Air Humidity": random.normal(68, 7)
        + drift(7200, 2.5)
        + random.uniform(0.3, 1.5) * np.sin(cycle + 1)
        + drift(10, 0.12),
    }


def _ordinary_variation(
    random: np.random.RandomState, signal: Array, per_day: float, size: tuple[float, float], span: tuple[int, int]
) -> None:
    """Bumps of a signal that belong to no condition."""
    for _ in range(random.poisson(per_day * len(signal) / DAY)):
        length = int(random.randint(*span))
        begin = int(random.randint(0, len(signal) - length))
        signal[begin : begin + length] += random.uniform(*size) * bump(length, length // 2, length // 2)


def _recorded(random: np.random.RandomState, name: str, signal: Array) -> Array:
    """What the monitor writes down: limited, rounded to its resolution, with dropouts."""
    n_samples = len(signal)
    resolution = CHANNELS[name]
    largest = 100.0 if name in ("SO", "Incu.Air Humidity") else 300.0
    dropout = 20.0 if name in TEMPERATURES else 0.0
    recorded: Array = np.round(np.round(np.clip(signal, 0, largest) / resolution) * resolution, 3)
    often = 3 if name == "SO" else 1
    for per_day, shortest, longest in ((30 * often, 1, 15), (2 * often, 30, 240)):
        for _ in range(random.poisson(per_day * n_samples / DAY)):
            begin = int(random.randint(0, n_samples))
            recorded[begin : begin + int(random.randint(shortest, longest))] = dropout
    return recorded
