"""Seeded generators of sequences with known states."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, as_startprob, as_transmat, check_integer, check_number
from ..features.frames import random_state_of

#: Angular frequencies of the three regimes of the paper's toy problem.
FREQUENCIES = (0.2, 0.4, 0.6)

#: Activities: steps per second, amplitude and share of the second harmonic.
ACTIVITIES = ("rest", "walk", "stairs", "run")
CADENCES, SIZES, HARMONICS = np.array([0.0, 1.6, 1.9, 2.7]), np.array([0.0, 0.3, 0.3, 0.6]), np.array([0, 0, 0.8, 0.4])

#: Samples per second, and the variation of the speed of steps from sample to sample.
RATE, JITTER = 25.0, 0.1


def markov_chain(
    n_samples: int, transmat: Any, startprob: Any = None, *, random_state: Any = None
) -> npt.NDArray[np.int64]:
    """Draw a path of a Markov chain, (n_samples,); `startprob` defaults to uniform."""
    check_integer(n_samples, "n_samples", low=1)
    transmat = as_transmat(transmat, len(np.asarray(transmat)))
    n_states = len(transmat)
    startprob = as_startprob(np.full(n_states, 1 / n_states) if startprob is None else startprob, n_states)
    uniform = random_state_of(random_state).random_sample(n_samples)
    cumulative = np.cumsum(np.vstack([transmat, startprob]), axis=1)
    cumulative /= cumulative[:, -1:]
    path = np.empty(n_samples, dtype=np.int64)
    state = n_states
    for t in range(n_samples):
        state = int(np.searchsorted(cumulative[state], uniform[t], side="right"))
        path[t] = state
    return path


def sticky_chain(n_samples: int, n_states: int, stay: float, random: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Draw a path that keeps its state with probability `stay`."""
    check_number(stay, "stay", low=0, high=1)
    transmat = np.full((n_states, n_states), (1 - stay) / (n_states - 1))
    np.fill_diagonal(transmat, stay)
    return markov_chain(n_samples, transmat, random_state=random)


def _drawn_stays(n_samples: int, n_states: int, durations: Any, random: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Draw a path with stays uniform between shortest and longest."""
    check_integer(n_samples, "n_samples", low=1)
    if not isinstance(durations, list | tuple) or len(durations) != 2:
        raise ValueError(f"durations must be two integers, the shortest and the longest stay, got {durations!r}")
    shortest = check_integer(durations[0], "durations[0]", low=1)
    longest = check_integer(durations[1], "durations[1]", low=shortest)
    lengths = random.randint(shortest, longest + 1, size=n_samples // shortest + 1)
    states = np.cumsum([random.randint(n_states), *random.randint(1, n_states, size=len(lengths) - 1)]) % n_states
    path: npt.NDArray[np.int64] = np.repeat(states, lengths)[:n_samples].astype(np.int64)
    return path


def moons(
    n_samples: int = 1000, *, noise: float = 0.1, stay: float = 0.95, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Points on two interleaved half circles of radius 1, one per state.

    Parameters
    ----------
    n_samples : int
        Length of the sequence.
    noise : float
        Standard deviation of the noise around the half circles.
    stay : float
        Probability of staying in a state.
    random_state : int, RandomState or None
        Seed.
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    y = sticky_chain(n_samples, 2, stay, random)
    angle = np.pi * random.random_sample(n_samples)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    return np.where(y[:, None] == 0, upper, lower) + noise * random.standard_normal((n_samples, 2)), y


def rings(
    n_samples: int = 1000, *, noise: float = 0.15, stay: float = 0.95, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Points on three concentric circles of radius 1, 2 and 3, one per state.

    As in `moons`, with states 0, 1 and 2; `noise` is radial.
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    y = sticky_chain(n_samples, 3, stay, random)
    angle = 2 * np.pi * random.random_sample(n_samples)
    radius = 1 + y + noise * random.standard_normal(n_samples)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y


def blobs(
    n_samples: int = 1000, *, noise: float = 0.6, stay: float = 0.95, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Points from three overlapping round clouds with centres 2 apart.

    As in `moons`, with states 0, 1 and 2; `noise` is the standard deviation of a cloud.
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    y = sticky_chain(n_samples, 3, stay, random)
    angle = 2 * np.pi * y / 3
    centers = 2 / np.sqrt(3) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centers + noise * random.standard_normal((n_samples, 2)), y


def sines(
    n_samples: int = 1000,
    *,
    noise: float = 0.25,
    stay: float = 0.98,
    durations: tuple[int, int] | None = None,
    random_state: Any = None,
) -> Any:
    """Noisy sines that switch between three frequencies: the toy problem of the paper.

    y_t = sin(f t) + noise, with f = 0.2, 0.4 or 0.6 by regime, and regimes that change with probability 1 - stay.

    Instead of `stay`, `durations` can be the shortest and the longest stay in a regime: all lengths between them, both
    included, are equally probable. The end of the sequence cuts the last stay. Other arguments as in `moons`.
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    if durations is None:
        y = sticky_chain(n_samples, len(FREQUENCIES), stay, random)
    else:
        y = _drawn_stays(n_samples, len(FREQUENCIES), durations, random)
    signal = np.sin(np.asarray(FREQUENCIES)[y] * np.arange(n_samples)) + noise * random.standard_normal(n_samples)
    return signal[:, None], y


def sines_training(
    n_per_state: int = 200, *, window: int = 4, noise: float = 0.25, random_state: Any = None
) -> tuple[list[Array], list[npt.NDArray[np.int64]]]:
    """One labelled sequence per regime of `sines`, each with `n_per_state` windows."""
    check_integer(n_per_state, "n_per_state", low=1)
    check_integer(window, "window", low=1)
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    time = np.arange(n_per_state + window - 1)
    signals = [np.sin(f * time) + noise * random.standard_normal(len(time)) for f in FREQUENCIES]
    labels = [np.full(len(time), regime, dtype=np.int64) for regime in range(len(FREQUENCIES))]
    return [signal[:, None] for signal in signals], labels


def accelerometer(
    n_samples: int = 4000, *, noise: float = 0.2, stay: float = 0.99, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.str_]]:
    """Simulate acceleration in three directions, 25 samples per second.

    The activities of the person differ in the rhythm and in the shape of waves: one sample hardly tells them apart.

    X (n_samples, 3) is the acceleration forward, sideways and up, y is "rest", "walk", "stairs" or "run". Arguments as
    in `moons`; the waves have amplitudes up to 0.6.
    """
    check_number(noise, "noise", low=0)
    random = random_state_of(random_state)
    codes = sticky_chain(n_samples, len(ACTIVITIES), stay, random)
    phase = np.cumsum(2 * np.pi * CADENCES[codes] / RATE * (1 + JITTER * random.standard_normal(n_samples)))
    forward, sideways = 0.5 * np.cos(phase), 0.4 * np.sin(phase / 2)
    up = np.sin(phase) + HARMONICS[codes] * np.sin(2 * phase + 1)
    waves = SIZES[codes][:, None] * np.column_stack([forward, sideways, up])
    return waves + noise * random.standard_normal((n_samples, 3)), np.array(ACTIVITIES)[codes]
