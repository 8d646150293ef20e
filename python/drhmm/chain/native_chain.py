"""The chain that recursions run on: native, with the stages of states that have durations."""

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
    """A native chain; posteriors, evidence and paths are those of states, and stages stay inside."""

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
        """The chain of a model; with novelty, `prior` says where the unknown returns to."""
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
        """A recursion of the core: posteriors of states, or the most probable path of states."""
        return recursion.run(name, self.native, evidence, lengths, dt, n_threads, *lag)

    def expectation(self, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array, float]:
        """Smoothed posteriors and expected transitions of states, and the log likelihood: the E step of learning."""
        return recursion.expect(self.native, evidence, lengths, n_threads)
