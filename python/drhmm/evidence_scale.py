"""How much one frame's evidence counts: the exponent kappa in w_ij(y)^kappa."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from ._stages import StageChain
from ._validation import Array, Lengths

GRID = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)

#: Blocks of frames that the standard error is computed from.
N_BLOCKS = 10

#: The most that one held-out frame may say against a state, in nats.
LARGEST = 500.0

#: Judged frames below which nothing can be said.
FEWEST = 50

#: Log posterior, summed over frames, that data must gain per squared factor of two away from 1.
PULL = 2.0


class HeldOutSmoothing:
    """Judges held-out evidence by what smoothing makes of it: the log posterior of the true states.

    Sequences in which the state never changes cannot tell too much confidence from too little and are left out.

    Parameters
    ----------
    codes : array of shape (T,)
        True states; -1 where unknown.
    lengths : list of int
        Lengths of the sequences.
    chain : StageChain
        Transition and start probabilities, and durations.
    n_threads : int
        Threads.
    """

    def __init__(self, codes: npt.NDArray[np.int64], lengths: Lengths, chain: StageChain, n_threads: int) -> None:
        known = codes >= 0
        judged = np.zeros(len(codes), dtype=bool)
        for begin, end in itertools.pairwise(np.cumsum([0, *lengths])):
            states = codes[begin:end][known[begin:end]]
            judged[begin:end] = len(states) > 0 and states.min() != states.max()
        self.rows = np.flatnonzero(judged & known)
        self.states = codes[self.rows]
        self._chain, self._lengths, self._n_threads = chain, lengths, n_threads

    @property
    def can_judge(self) -> bool:
        """Whether there are enough frames of sequences that change their state."""
        return len(self.rows) >= FEWEST

    def log_posteriors(self, log_ratios: Array, evidence_scale: float) -> Array:
        """Log posterior of the true state at every judged frame, from evidence (T, S)."""
        # A held-out estimate of zero is a guess: it must not make the sequence impossible.
        softened = np.maximum(log_ratios, log_ratios.max(axis=1, keepdims=True) - LARGEST)
        smoothed = self._chain.run("smooth", evidence_scale * softened, self._lengths, None, self._n_threads)
        posteriors = smoothed[self.rows, self.states]
        logs: Array = np.log(np.maximum(posteriors, np.finfo(float).tiny))
        return logs

    def best(self, log_ratios: Array) -> float:
        """The largest summed log posterior over the grid of evidence scales."""
        return max(float(self.log_posteriors(log_ratios, kappa).sum()) for kappa in GRID)

    def choose(self, log_ratios: Array) -> float:
        """The most cautious evidence scale whose log posterior is as good as the best; 1 if there is nothing to judge.

        "As good" is within one standard error of the difference, from ten blocks of frames: a few stretches that are
        right or wrong as a whole decide between neighbouring scales, and too small a scale costs little.
        """
        if not self.can_judge:
            return 1.0
        blocks = np.arange(len(self.rows)) * N_BLOCKS // len(self.rows)
        scores = np.array(
            [np.bincount(blocks, weights=self.log_posteriors(log_ratios, kappa), minlength=N_BLOCKS) for kappa in GRID]
        )
        best = int(np.argmax(scores.sum(axis=1) - PULL * np.log2(GRID) ** 2))
        behind = scores[best] - scores
        error = behind.std(axis=1, ddof=1) * np.sqrt(N_BLOCKS)
        return GRID[int(np.argmax((behind.sum(axis=1) <= error) | (np.arange(len(GRID)) == best)))]
