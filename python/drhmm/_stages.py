"""The chain that recursions run on: native, with the stages of states that have durations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, recursion
from ._validation import Array, Lengths, Steps
from .exceptions import ImpossibleDataError
from .novelty import Novelty

if TYPE_CHECKING:
    from .durations import Durations

#: Steps of a gap that a best path of states with durations goes through; a longer gap counts as this long.
LONGEST_GAP = 10_000


@dataclass(frozen=True)
class StageChain:
    """A native chain; posteriors, evidence and paths are those of states, and stages stay inside.

    ``best_path`` finds the most probable states where these have durations: not the most probable stages, which are far
    less probable than the stay that they belong to.
    """

    native: _core.Chain
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
        if novelty is None or prior is None:
            if stages is None:
                return cls(_core.Chain(transmat, startprob))
            return cls(
                _core.Chain(transmat, startprob, stages.sizes, stages.stay, stages.skip),
                _best_segmentation(transmat, startprob, stages),
            )
        start = novelty.startprob(startprob)
        if stages is None:
            return cls(_core.Chain(novelty.transmat(transmat, prior), start))
        back = np.repeat(prior / prior.sum() / novelty.duration / stages.sizes, stages.sizes)
        native = _core.Chain(
            transmat, start, stages.sizes, stages.stay, stages.skip, novelty.rate, 1 - 1 / novelty.duration, back
        )
        return cls(native, _best_segmentation(transmat, startprob, stages, (prior, novelty.rate, novelty.duration)))

    def run(self, name: str, evidence: Array, lengths: Lengths, dt: Steps | None, n_threads: int, *lag: int) -> Any:
        """A recursion of the core: posteriors of states, or the most probable path of states."""
        if name == "viterbi" and self.best_path is not None:
            return self._best_paths(evidence, lengths, dt)
        return recursion.run(name, self.native, evidence, lengths, dt, n_threads, *lag)

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

    def expectation(self, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array, float]:
        """Smoothed posteriors and expected transitions of states, and the log likelihood: the E step of learning."""
        return recursion.expect(self.native, evidence, lengths, n_threads)


def _best_segmentation(
    transmat: Array, startprob: Array, stages: Durations, unknown: tuple[Array, float, float] | None = None
) -> Callable[[Array], npt.NDArray[np.int64]]:
    from .reference import durations

    arrays = transmat, startprob, stages.sizes, stages.stay, stages.skip
    return lambda evidence: durations.viterbi(evidence, *arrays, unknown)
