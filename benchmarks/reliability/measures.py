"""What a soak counts, in memory that does not grow with its time."""

from __future__ import annotations

import math
import resource
from dataclasses import dataclass, field

import numpy as np

#: Of a posterior from batch inference, for models with a floor, and for one without: there an estimate can be the small
#: rest of large terms, whose rounding depends on the order in which they are added.
LARGEST_DEVIATION, LARGEST_WITHOUT_FLOOR = 1e-12, 1e-10

#: Megabytes that the resident memory may grow by once the first quarter of the time is over.
LARGEST_GROWTH = 5.0

#: Shorter runs are over while the threads are still filling their memory: their growth is reported and not judged.
SECONDS_TO_JUDGE_GROWTH = 300.0

_PER_OCTAVE = 32


class Histogram:
    """Counts of times on a logarithmic scale: any percentile to 2 %, and the longest exactly."""

    def __init__(self) -> None:
        self.counts = np.zeros(_PER_OCTAVE * 50, dtype=np.int64)
        self.longest = 0

    def __call__(self, nanoseconds: int) -> None:
        self.counts[int(_PER_OCTAVE * math.log2(max(nanoseconds, 1)))] += 1
        self.longest = max(self.longest, nanoseconds)

    def __add__(self, other: Histogram) -> Histogram:
        total = Histogram()
        total.counts = self.counts + other.counts
        total.longest = max(self.longest, other.longest)
        return total

    def percentile(self, percent: float) -> float:
        """Microseconds that so many of a hundred steps do not exceed."""
        if not self.counts.any():
            return math.nan
        place = int(np.searchsorted(self.counts.cumsum(), percent / 100 * self.counts.sum()))
        return 2 ** ((place + 0.5) / _PER_OCTAVE) / 1000


@dataclass
class Measures:
    """What one thread has seen."""

    frames: int = 0
    sequences: int = 0
    restarts: int = 0
    elsewhere: int = 0
    refused: int = 0
    compared: int = 0
    worst_deviation: float = 0.0
    worst_without_floor: float = 0.0
    latency: Histogram = field(default_factory=Histogram)
    batch_latency: Histogram = field(default_factory=Histogram)

    def deviation(self, answers, expected, has_floor: bool) -> None:
        """Compare posteriors; what is not a number, or not there, deviates infinitely."""
        difference = 0.0
        if len(answers) != len(expected):
            difference = math.inf
        elif len(answers) > 0:
            difference = float(np.abs(np.array(answers, dtype=np.float64) - expected).max())
            self.compared += len(answers)
        name = "worst_deviation" if has_floor else "worst_without_floor"
        setattr(self, name, max(getattr(self, name), math.inf if math.isnan(difference) else difference))


def total(parts: list[Measures]) -> Measures:
    """The sum of what several threads have seen."""
    sums = {name: sum(getattr(part, name) for part in parts) for name in ("frames", "sequences", "restarts")}
    sums |= {name: sum(getattr(part, name) for part in parts) for name in ("elsewhere", "refused", "compared")}
    return Measures(
        **sums,
        worst_deviation=max(part.worst_deviation for part in parts),
        worst_without_floor=max(part.worst_without_floor for part in parts),
        latency=sum((part.latency for part in parts), Histogram()),
        batch_latency=sum((part.batch_latency for part in parts), Histogram()),
    )


def resident() -> float:
    """Memory of this process now, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def growth(memory: list[float]) -> float:
    """By how much memory is higher in the last quarter of the time than in the second, medians, in MB."""
    if len(memory) < 8:
        return 0.0
    quarter = len(memory) // 4
    return float(np.median(memory[-quarter:]) - np.median(memory[quarter : 2 * quarter]))
