"""A simulated accelerometer: a person rests, walks, climbs stairs and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, check_number
from ..features.frames import random_state_of
from .sequences import sticky_chain

#: Activities: steps per second, amplitude and share of the second harmonic.
ACTIVITIES = ("rest", "walk", "stairs", "run")
CADENCES, SIZES, HARMONICS = np.array([0.0, 1.6, 1.9, 2.7]), np.array([0.0, 0.3, 0.3, 0.6]), np.array([0, 0, 0.8, 0.4])

#: Samples per second, and the variation of the speed of steps from sample to sample.
RATE, JITTER = 25.0, 0.1


def accelerometer(
    n_samples: int = 4000, *, noise: float = 0.2, stay: float = 0.99, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.str_]]:
    """Simulate acceleration in three directions, 25 samples per second.

    The activities of the person differ in the rhythm and in the shape of waves: one sample hardly tells them apart.

    Parameters
    ----------
    n_samples, noise, stay, random_state
        As in `moons`; the waves have amplitudes up to 0.6.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        Acceleration forward, sideways and up.
    y : ndarray of str, shape (n_samples,)
        "rest", "walk", "stairs" or "run".
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    codes = sticky_chain(n_samples, len(ACTIVITIES), stay, random)
    phase = np.cumsum(2 * np.pi * CADENCES[codes] / RATE * (1 + JITTER * random.standard_normal(n_samples)))
    forward, sideways = 0.5 * np.cos(phase), 0.4 * np.sin(phase / 2)
    up = np.sin(phase) + HARMONICS[codes] * np.sin(2 * phase + 1)
    waves = SIZES[codes][:, None] * np.column_stack([forward, sideways, up])
    return waves + noise * random.standard_normal((n_samples, 3)), np.array(ACTIVITIES)[codes]
