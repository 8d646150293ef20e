"""Random processes for simulated sensors."""

from __future__ import annotations

import numpy as np

from ..data.checks import Array


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
