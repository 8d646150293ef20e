"""The unknown: one more state of the chain, with a rate and a duration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.checks import Array, check_number

#: Bounds of the mean duration of the unknown and of its rate. With them, and with the limits on evidence in the core,
#: float64 holds the posteriors of the known states in all but contrived chains.
LONGEST_DURATION = 1e9
SMALLEST_RATE = 1e-30

#: Smaller parts of a posterior cannot be divided among the known states; the native core has the same limit.
SMALLEST_SHARE = 1e-290


def among_known(posteriors: Array, n_states: int, row_of: Callable[[int], int] = int) -> Array:
    """Condition posteriors on the known states; the unknown is the last column.

    Raises ValueError, with the row `row_of` its position, if the known states have no probability.
    """
    if posteriors.shape[-1] == n_states:
        return posteriors
    known: Array = posteriors[..., :n_states]
    totals = known.sum(axis=-1, keepdims=True)
    for place in np.flatnonzero(totals < SMALLEST_SHARE):
        raise ValueError(none_known(row_of(int(place))))
    shares: Array = known / totals
    return shares


def none_known(row: int) -> str:
    """Return the message for a row that leaves the known states no probability."""
    return (
        f"at row {row} the unknown leaves the known states no probability that float64 can hold; use a smaller "
        "evidence_scale, or a chain that forbids less"
    )


@dataclass(frozen=True)
class Novelty:
    """The rate and the duration of the unknown.

    ``rate`` is the probability that a frame of a known state is followed by something unknown; ``duration`` is the
    mean number of frames until a known state returns.
    """

    rate: float
    duration: float

    def __post_init__(self) -> None:
        check_number(self.rate, "novelty rate", low=SMALLEST_RATE, high=1, high_open=True)
        check_number(self.duration, "novelty duration", low=1, high=LONGEST_DURATION)

    def transmat(self, transmat: Array, prior: Array) -> Array:
        """Transition matrix (S + 1, S + 1): into * at the rate, back by class shares."""
        n_states = len(transmat)
        extended = np.empty((n_states + 1, n_states + 1))
        extended[:-1, :-1] = (1 - self.rate) * transmat
        extended[:-1, -1] = self.rate
        extended[-1, :-1] = prior / prior.sum() / self.duration
        extended[-1, -1] = 1 - 1 / self.duration
        return extended

    def startprob(self, startprob: Array) -> Array:
        """Start probabilities (S + 1,): * comes first with the probability of the rate."""
        return np.append((1 - self.rate) * startprob, self.rate)
