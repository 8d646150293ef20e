"""Transition and start probabilities from labelled sequences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._validation import Array, Lengths

#: Pseudo-count of every state as the first of a sequence.
START_PRIOR = 1.0


def count_transitions(codes: npt.NDArray[np.int64], lengths: Lengths, n_states: int) -> tuple[Array, Array]:
    """Transitions between neighbouring frames and first states, within sequences only; shapes (S, S) and (S,)."""
    counts, starts = np.zeros((n_states, n_states)), np.zeros(n_states)
    first = np.cumsum([0, *lengths[:-1]])
    inside = np.ones(len(codes), dtype=bool)
    inside[first] = False
    arrivals = np.flatnonzero(inside)
    np.add.at(counts, (codes[arrivals - 1], codes[arrivals]), 1.0)
    np.add.at(starts, codes[first], 1.0)
    return counts, starts


def transition_probabilities(counts: Array, prior: float) -> Array:
    """Rows of counts plus the pseudo-count `prior` per entry, divided by their sums."""
    smoothed = counts + prior
    totals = smoothed.sum(axis=1, keepdims=True)
    if (totals == 0).any():
        state = int(np.flatnonzero(totals[:, 0] == 0)[0])
        raise ValueError(
            f"state {state} is never followed by another frame, and transition_prior is 0: its row of transmat is "
            "undefined; use a positive transition_prior"
        )
    transmat: Array = smoothed / totals
    return transmat


def start_probabilities(starts: Array) -> Array:
    """First states plus one pseudo-count each, divided by their sum."""
    startprob: Array = (starts + START_PRIOR) / (starts + START_PRIOR).sum()
    return startprob
