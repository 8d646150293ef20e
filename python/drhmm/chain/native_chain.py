"""The native chain of the recursions, with the stages of durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, recursion
from ..data.checks import Array, Lengths, Steps
from .unknown_state import Novelty

if TYPE_CHECKING:
    from .durations import Durations


@dataclass(frozen=True)
class StageChain:
    """A native chain whose interface has states only; stages are hidden."""

    native: _core.Chain

    @classmethod
    def of(
        cls,
        transmat: Array,
        startprob: Array,
        stages: Durations | None = None,
        novelty: Novelty | None = None,
        prior: Array | None = None,
    ) -> StageChain:
        """Build the chain of a model; the unknown returns to known states by `prior`."""
        if novelty is None or prior is None:
            if stages is None:
                return cls(_core.Chain(transmat, startprob))
            return cls(_core.Chain(transmat, startprob, stages.sizes, stages.stay, stages.skip))
        start = novelty.startprob(startprob)
        if stages is None:
            return cls(_core.Chain(novelty.transmat(transmat, prior), start))
        back = np.repeat(prior / prior.sum() / novelty.duration / stages.sizes, stages.sizes)
        native = _core.Chain(
            transmat, start, stages.sizes, stages.stay, stages.skip, novelty.rate, 1 - 1 / novelty.duration, back
        )
        return cls(native)

    def run(self, name: str, evidence: Array, lengths: Lengths, dt: Steps | None, n_threads: int, *lag: int) -> Any:
        """Run a recursion: posteriors of states, or the most probable path."""
        return recursion.run(name, self.native, evidence, lengths, dt, n_threads, *lag)

    def expectation(self, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array, float]:
        """Run the E step: posteriors, expected transitions and log likelihood."""
        return recursion.expect(self.native, evidence, lengths, n_threads)
