"""The native chain of the recursions, with the stages of durations."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..data.checks import Array
from .durations import Durations
from .unknown_state import Novelty


def native_chain(
    transmat: Array,
    startprob: Array,
    stages: Durations | None = None,
    novelty: Novelty | None = None,
    prior: Array | None = None,
) -> _core.Chain:
    """Build the chain of a model; the unknown returns to known states by `prior`."""
    if novelty is None or prior is None:
        if stages is None:
            return _core.Chain(transmat, startprob)
        return _core.Chain(transmat, startprob, stages.sizes, stages.stay, stages.skip)
    start = novelty.startprob(startprob)
    if stages is None:
        return _core.Chain(novelty.transmat(transmat, prior), start)
    back = np.repeat(prior / prior.sum() / novelty.duration / stages.sizes, stages.sizes)
    return _core.Chain(
        transmat, start, stages.sizes, stages.stay, stages.skip, novelty.rate, 1 - 1 / novelty.duration, back
    )
