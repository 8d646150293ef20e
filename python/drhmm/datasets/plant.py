"""Correlated sensors of a plant with faults, and the random processes behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, check_choice, check_integer
from ..features.frames import random_state_of

#: Kinds of faults: an offset, a slow drift, a constant value, two exchanged sensors, more noise, and a signal without
#: relation to the others.
FAULTS = ("bias", "drift", "stuck", "swap", "variance", "correlation")

#: Number of processes in the plant, their correlation time in samples, and the noise of a sensor.
N_FACTORS = 3
CORRELATION_TIME = 30.0
NOISE = 0.3

#: Samples of a fault, fewest and most, and samples between two faults.
DURATIONS = (60, 240)
GAP = 120


def relax(target: Array, start: float, time_constant: float) -> Array:
    """x_t = x_{t-1} + (target_t - x_{t-1}) / time_constant from x_{-1} = start."""
    from scipy.signal import lfilter

    decay = max(1 - 1 / max(time_constant, 1.0), 0.1)
    out: Array = lfilter([1 - decay], [1, -decay], target, zi=[decay * start])[0]
    return out


def wander(random: np.random.RandomState, n_samples: int, time_constant: float, deviation: float) -> Array:
    """Stationary AR(1) around 0 with a standard deviation and correlation time."""
    decay = max(1 - 1 / time_constant, 0.1)
    noise = random.standard_normal(n_samples) * np.sqrt(1 - decay**2) / (1 - decay)
    return deviation * relax(noise, random.standard_normal(), time_constant)


def places(
    random: np.random.RandomState, durations: Array, n_samples: int, kept_free: list[tuple[int, int]], gap: int
) -> list[tuple[int, int]]:
    """Random intervals, `gap` apart; a duration is left out after a hundred tries."""
    taken = list(kept_free)
    found = []
    for duration in durations.astype(np.int64):
        for _ in range(100):
            if duration >= n_samples:
                break
            begin = int(random.randint(0, n_samples - duration))
            end = begin + int(duration)
            if all(end + gap <= other_begin or begin >= other_end + gap for other_begin, other_end in taken):
                taken.append((begin, end))
                found.append((begin, end))
                break
    return sorted(found)


def sensors(
    n_samples: int,
    *,
    n_sensors: int = 8,
    faults: Sequence[str] = FAULTS,
    n_events: int = 2,
    plant: int = 0,
    random_state: Any = None,
) -> tuple[Array, npt.NDArray[Any]]:
    """Samples of sensors on a few common processes; labels are faults or "normal".

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_sensors : int
        Columns. Each is a mixture of three slow processes, with variance 1 and a noise of 0.3.
    faults : sequence of str
        Kinds of faults from ``datasets.FAULTS``; empty for normal data.
    n_events : int
        Events of each kind, each of 60 to 240 samples in one or two random sensors. Events without room are left out.
    plant : int
        Seed of the mixtures: samples of the same plant belong together.
    random_state : int, RandomState or None
        Seed of everything else.
    """
    check_integer(n_samples, "n_samples", low=1)
    check_integer(n_sensors, "n_sensors", low=2)
    check_integer(n_events, "n_events", low=0)
    for fault in faults:
        check_choice(fault, "faults", FAULTS)
    random = random_state_of(random_state)
    mixture = np.random.RandomState(plant).normal(size=(N_FACTORS, n_sensors))
    mixture *= np.sqrt(1 - NOISE**2) / np.linalg.norm(mixture, axis=0)
    factors = np.column_stack([wander(random, n_samples, CORRELATION_TIME, 1.0) for _ in range(N_FACTORS)])
    X = factors @ mixture + NOISE * random.standard_normal((n_samples, n_sensors))
    y = np.full(n_samples, "normal", dtype="<U11")
    kinds = np.array([fault for fault in faults for _ in range(n_events)], dtype=object)
    durations = random.randint(DURATIONS[0], DURATIONS[1] + 1, size=len(kinds))
    found = places(random, durations.astype(np.float64), n_samples, [], GAP)
    for kind, (begin, end) in zip(random.permutation(kinds), found, strict=False):
        X[begin:end] = _faulty(kind, X[begin:end], random)
        y[begin:end] = kind
    return X, y


def _faulty(kind: str, X: Array, random: np.random.RandomState) -> Array:
    """Return samples with a fault in one sensor or two."""
    one, other = random.choice(X.shape[1], 2, replace=False)
    X, n_samples = X.copy(), len(X)
    size = random.choice([-1.0, 1.0]) * random.uniform(1.5, 3.0)
    if kind == "bias":
        X[:, one] += size
    elif kind == "drift":
        X[:, one] += size * np.linspace(0, 1, n_samples)
    elif kind == "stuck":
        X[:, one] = X[0, one]
    elif kind == "swap":
        X[:, [one, other]] = X[:, [other, one]]
    elif kind == "variance":
        X[:, one] += 3 * NOISE * random.standard_normal(n_samples)
    else:
        X[:, one] = wander(random, n_samples, CORRELATION_TIME, 1.0)
    return X
