"""The state for what nobody labelled: one more state of the chain, with two understandable numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._validation import Array

#: Mean frames that the unknown may last.
LONGEST_DURATION = 1e9


@dataclass(frozen=True)
class Novelty:
    """How often something unknown begins and how long it lasts.

    ``rate`` is the probability that a frame of a known state is followed by something unknown; ``duration`` is the
    mean number of frames until a known state returns.
    """

    rate: float
    duration: float

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
