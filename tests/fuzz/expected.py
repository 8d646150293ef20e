"""What the reference says of one sequence with gaps: small problems only."""

from __future__ import annotations

import numpy as np

from drhmm.reference import recursion as reference


def posteriors(name, log_ratios, transmat, startprob, dt, *lag):
    """Posteriors at the frames; a gap is made of missing frames, and a lag counts those that are not."""
    filled, places = reference.fill_gaps(log_ratios, dt)
    if name != "fixed_lag":
        return getattr(reference, name)(filled, transmat, startprob)[places]
    last = np.minimum(np.arange(len(places)) + lag[0], len(places) - 1)
    return np.array(
        [
            reference.smooth(filled[: end + 1], transmat, startprob)[place]
            for place, end in zip(places, places[last], strict=True)
        ]
    )


def log_product(left, right):
    """Logarithm of the product of two matrices from their logarithms."""
    terms = left[:, :, None] + right[None, :, :]
    pivot = np.maximum(terms.max(axis=1), -1e300)
    return pivot + np.log(np.exp(terms - pivot[:, None, :]).sum(axis=1))


def log_steps(transmat, startprob, dt):
    """Log probabilities of the states at the first frame, (1, S), and of the steps to each of the others, (S, S)."""
    log_a, before = np.log(transmat), np.log(startprob)[None, :]
    powers = [log_a]
    while len(powers) < max(dt):
        powers.append(log_product(powers[-1], log_a))
    first = before if dt[0] == 1 else log_product(before, powers[dt[0] - 2])
    return [first, *(powers[n_steps - 1] for n_steps in dt[1:])]


def path_scores(path, log_ratios, transmat, startprob, dt):
    """Log probability of a path at the frames, whatever is between them, and that of the best one."""
    evidence, best, score, state = reference.prepare(log_ratios), np.zeros(1), 0.0, 0
    for row, steps, following in zip(evidence, log_steps(transmat, startprob, dt), path, strict=True):
        score += steps[state, following] + row[following]
        best = (best[:, None] + steps).max(axis=0) + row
        state = following
    return score, best.max()
