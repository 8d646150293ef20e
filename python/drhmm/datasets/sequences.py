"""Seeded generators of sequences with known states."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, as_startprob, as_transmat, check_integer, check_number
from ..features.frames import random_state_of

__all__ = ["blobs", "markov_chain", "moons", "rings", "sines", "sines_training"]

#: Angular frequencies of the three regimes of the paper's toy problem.
FREQUENCIES = (0.2, 0.4, 0.6)


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
    """Points on two interleaved half circles, one per state.

    Parameters
    ----------
    n_samples : int
        Length of the sequence.
    noise : float
        Standard deviation of the noise around the half circles of radius 1.
    stay : float
        Probability of staying in a state.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points.
    y : ndarray of shape (n_samples,)
        States 0 and 1.
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

    Parameters
    ----------
    n_samples, noise, stay, random_state
        As in `moons`.
    durations : (int, int), optional
        The shortest and the longest stay in a regime, instead of `stay`: all lengths between them, both included, are
        equally probable. The end of the sequence cuts the last stay.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The signal.
    y : ndarray of shape (n_samples,)
        The regime of each sample: 0, 1 or 2.
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
