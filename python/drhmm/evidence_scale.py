"""How much one frame's evidence counts: the exponent kappa in w_ij(y)^kappa."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from . import recursion
from ._validation import Array, Lengths

GRID = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)

#: Log posterior, summed over frames, that data must gain per squared factor of two away from 1.
PULL = 2.0


def choose_evidence_scale(
    log_ratios: Array,
    codes: npt.NDArray[np.int64],
    lengths: Lengths,
    transmat: Array,
    startprob: Array,
    n_threads: int,
) -> float:
    """Kappa with the largest held-out log posterior of the true states after smoothing.

    Parameters
    ----------
    log_ratios : array of shape (T, S)
        Out-of-fold evidence at kappa = 1; rows of NaN where a frame is missing.
    codes : array of shape (T,)
        True states; -1 where unknown.
    lengths : list of int
        Lengths of the sequences.
    transmat, startprob : arrays
        Transition and start probabilities.
    n_threads : int
        Threads.

    Returns
    -------
    float
        Kappa. Sequences in which the state never changes cannot tell too much confidence from too little and are
        left out; without any other, kappa is 1.
    """
    known = codes >= 0
    begins = np.cumsum([0, *lengths])
    judged = np.zeros(len(codes), dtype=bool)
    for begin, end in itertools.pairwise(begins):
        states = codes[begin:end][known[begin:end]]
        judged[begin:end] = len(states) > 0 and states.min() != states.max()
    judged &= known
    if not judged.any():
        return 1.0
    rows = np.flatnonzero(judged)
    scores = []
    for kappa in GRID:
        posteriors = recursion.smooth(kappa * log_ratios, transmat, startprob, lengths=lengths, n_threads=n_threads)[
            rows, codes[rows]
        ]
        scores.append(np.log(np.maximum(posteriors, np.finfo(float).tiny)).sum() - PULL * np.log2(kappa) ** 2)
    return GRID[int(np.argmax(scores))]
