"""The state for what nobody labelled: one more state of the chain, with two understandable numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._validation import Array, check_number

#: Mean frames that the unknown may last, and how rarely it may begin. Within these, and with evidence as the native
#: core limits it, the known states together never have less of a posterior than float64 can tell from 0.
LONGEST_DURATION = 1e9
SMALLEST_RATE = 1e-30


def check_rate(value: Any, name: str) -> float:
    """A rate with which something unknown begins."""
    return check_number(value, name, low=SMALLEST_RATE, high=1, high_open=True)


def check_duration(value: Any, name: str) -> float:
    """A duration of the unknown."""
    return check_number(value, name, low=1, high=LONGEST_DURATION)


def among_known(posteriors: Array, n_states: int) -> Array:
    """Posteriors given that the state is a known one, from those of all states, the unknown last if there is one."""
    if posteriors.shape[-1] == n_states:
        return posteriors
    known: Array = posteriors[..., :n_states]
    shares: Array = known / known.sum(axis=-1, keepdims=True)
    return shares


@dataclass(frozen=True)
class Novelty:
    """How often something unknown begins and how long it lasts.

    ``rate`` is the probability that a frame of a known state is followed by something unknown; ``duration`` is the
    mean number of frames until a known state returns.
    """

    rate: float
    duration: float

    def __post_init__(self) -> None:
        check_rate(self.rate, "novelty rate")
        check_duration(self.duration, "novelty duration")

    def transmat(self, transmat: Array, prior: Array) -> Array:
        """(S + 1, S + 1): known states lead to * with the rate, and * returns to them by their shares."""
        n_states = len(transmat)
        extended = np.empty((n_states + 1, n_states + 1))
        extended[:-1, :-1] = (1 - self.rate) * transmat
        extended[:-1, -1] = self.rate
        extended[-1, :-1] = prior / prior.sum() / self.duration
        extended[-1, -1] = 1 - 1 / self.duration
        return extended

    def startprob(self, startprob: Array) -> Array:
        """(S + 1,): * is the first state with the probability of the rate."""
        return np.append((1 - self.rate) * startprob, self.rate)
