"""The chain that recursions run on: one state each, or stages of states, expanded densely.

Temporary: the native core will know stages, and nothing outside it will see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, recursion
from ._validation import Array, Lengths, Steps
from .evidence import KernelEvidence
from .exceptions import ImpossibleDataError
from .features import Framing
from .novelty import Novelty

if TYPE_CHECKING:
    from .durations import Durations
    from .model import Model

#: Steps of a gap that a best path goes through; a longer gap counts as this long.
LONGEST_GAP = 10_000


@dataclass(frozen=True)
class StageChain:
    """Transition and start probabilities of all stages, and the number of stages of each state, None if it is 1."""

    transmat: Array
    startprob: Array
    sizes: npt.NDArray[np.int64] | None = None
    best_path: Callable[[Array], npt.NDArray[np.int64]] | None = None

    @classmethod
    def of(
        cls,
        transmat: Array,
        startprob: Array,
        stages: Durations | None = None,
        novelty: Novelty | None = None,
        prior: Array | None = None,
    ) -> StageChain:
        """The chain of a model; with novelty, `prior` says where the unknown returns to."""
        if stages is None:
            if novelty is None or prior is None:
                return cls(transmat, startprob)
            return cls(novelty.transmat(transmat, prior), novelty.startprob(startprob))
        from .reference import durations as dense

        arrays = transmat, startprob, stages.sizes, stages.stay, stages.skip
        chain = dense.expand(*arrays)
        if novelty is None or prior is None:
            return cls(*chain, stages.sizes, lambda evidence: dense.viterbi(evidence, *arrays))
        unknown = prior, novelty.rate, novelty.duration
        chain = dense.with_unknown(chain[0], chain[1], stages.sizes, *unknown)
        return cls(*chain, np.append(stages.sizes, 1), lambda evidence: dense.viterbi(evidence, *arrays, unknown))

    def spread(self, evidence: Array) -> Array:
        """Evidence of stages (T, U) from that of states (T, S)."""
        return evidence if self.sizes is None else np.repeat(evidence, self.sizes, axis=1)

    def collapsed(self, posteriors: Array) -> Array:
        """Posteriors of states from those of stages, along the last axis."""
        if self.sizes is None:
            return posteriors
        sums: Array = np.add.reduceat(posteriors, np.cumsum(self.sizes) - self.sizes, axis=-1)
        return sums

    def evaluator(self, model: Model) -> Callable[[Array], Array]:
        """From frames of a stream to evidence of stages."""
        streamed = model.evidence.streamed()
        if callable(streamed):
            return lambda frames: self.spread(streamed(frames))
        evidence = model.evidence
        assert isinstance(evidence, KernelEvidence)
        size = model.window * model.n_features
        whole = replace(evidence, framing=Framing(np.zeros(size), np.ones(size)))
        log_ratios = whole.log_ratios if model.novelty is None else whole.log_ratios_with_novelty
        return lambda frames: self.spread(log_ratios(frames, [1] * len(frames), 1))

    def run(self, name: str, evidence: Array, lengths: Lengths, dt: Steps | None, n_threads: int, *lag: int) -> Any:
        """A recursion of the core: posteriors of states, or the states of the most probable path of stages."""
        if name == "viterbi" and self.best_path is not None:
            return self._best_paths(evidence, lengths, dt)
        return self.collapsed(
            recursion.run(name, self.spread(evidence), self.transmat, self.startprob, lengths, dt, n_threads, *lag)
        )

    def _best_paths(self, evidence: Array, lengths: Lengths, dt: Steps | None) -> npt.NDArray[np.int64]:
        """The most probable states, sequence by sequence; steps of a gap are frames without evidence."""
        from .reference.recursion import fill_gaps

        assert self.best_path is not None
        ends, paths = np.cumsum(lengths), []
        for sequence, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            own, rows = evidence[end - length : end], np.arange(length)
            if dt is not None:
                own, rows = fill_gaps(own, np.minimum(dt[end - length : end], LONGEST_GAP))
            try:
                paths.append(self.best_path(own)[rows])
            except ValueError as error:
                frame = int(np.searchsorted(rows, int(str(error).rpartition(" ")[2])))
                raise ImpossibleDataError(sequence, frame, int(end - length + frame)) from None
        return np.concatenate(paths)

    def expectation(self, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array]:
        """Smoothed posteriors and expected transitions of states; steps inside a state are stays."""
        report, posteriors, counts = _core.expectation(
            self.spread(evidence), self.transmat, self.startprob, lengths, n_threads
        )
        recursion._raise(report, lengths)
        return self.collapsed(posteriors), self.collapsed(self.collapsed(counts).T).T
