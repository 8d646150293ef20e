"""Whether data are possible: the states that can be reached, and those that the evidence leaves. Nothing underflows."""

from __future__ import annotations

import numpy as np


class Reach:
    """The states that a chain can be in some steps later."""

    def __init__(self, transmat):
        self.powers = [transmat > 0]

    def __call__(self, states, n_steps):
        n_steps, place = int(n_steps), 0
        while n_steps > 0:
            if place == len(self.powers):
                self.powers.append(self.powers[-1] @ self.powers[-1])
            if n_steps % 2 == 1:
                states = states @ self.powers[place]
            n_steps, place = n_steps // 2, place + 1
        return states


def left(log_ratios):
    """The states that each frame leaves, (T, S): +inf excludes all others, -inf its own, a missing frame none."""
    certain = np.isposinf(log_ratios)
    states = np.where(certain.any(axis=1, keepdims=True), certain, ~np.isneginf(log_ratios))
    states[np.isnan(log_ratios).any(axis=1)] = True
    return states


def first_impossible(log_ratios, transmat, startprob, lengths=None, dt=None):
    """Sequence, frame and row of the first frame that leaves no state that can be reached; None if all are possible."""
    allowed = left(log_ratios)
    if allowed.all():
        return None
    reach, row = Reach(transmat), 0
    for sequence, length in enumerate([len(allowed)] if lengths is None else lengths):
        states = startprob > 0
        for frame in range(int(length)):
            n_steps = 1 if dt is None else dt[row]
            states = reach(states, n_steps - (frame == 0)) & allowed[row]
            if not states.any():
                return sequence, frame, row
            row += 1
    return None


def are_refused(log_ratios, transmat, startprob, dt):
    """Whether each frame is impossible where those that are impossible are left out, as a stream leaves them out."""
    reach, states, is_first, refused = Reach(transmat), startprob > 0, True, []
    for allowed, n_steps in zip(left(log_ratios), dt, strict=True):
        after = reach(states, n_steps - is_first) & allowed
        is_possible = after.any()
        refused.append(not is_possible)
        if is_possible:
            states, is_first = after, False
    return refused
