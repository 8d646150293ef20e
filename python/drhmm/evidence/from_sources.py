"""Evidence from fitted ratio sources of the user, evaluated in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..data.checks import Array, Lengths, checked_log_ratios
from ..features.frames import Framing, complete_rows
from ..system.calls import limited_threads
from .pooled import PooledEvidence
from .tunings import Tuning
from .unknown import NoveltyEvidence, beside


@dataclass(frozen=True)
class SourceEvidence:
    """The scaled sum of the log ratios of fitted sources of the user."""

    framing: Framing
    prior: Array
    sources: dict[str, Any]
    exponents: Sequence[float]
    prior_shift: float = 0.0
    novelty: NoveltyEvidence | None = None

    #: Samples in the history of a stream: sources read single frames.
    history = 0

    def __str__(self) -> str:
        return " and ".join(self.sources)

    @property
    def sees_novelty(self) -> bool:
        """Whether evidence for the unknown was learned."""
        return self.novelty is not None

    @property
    def scales(self) -> dict[str, float]:
        """The exponent of each source."""
        return dict(zip(self.sources, self.exponents, strict=True))

    @property
    def evidence_scale(self) -> float:
        """The sum of the exponents."""
        return sum(self.exponents)

    def log_ratios(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t), shape (T, S); NaN rows for missing frames."""
        with limited_threads(n_threads):
            return self._of_frames(self.framing.frames(samples, lengths), False, n_threads)

    def log_ratios_with_novelty(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t) such that sum_i p_i w_i = 1, and log w_*(y_t), shape (T, S + 1)."""
        with limited_threads(n_threads):
            return self._of_frames(self.framing.frames_with_means(samples, lengths), True, n_threads)

    def with_novelty(self, novelty: NoveltyEvidence) -> SourceEvidence:
        """Return a copy with evidence for the unknown."""
        return replace(self, novelty=novelty, framing=replace(self.framing, span=novelty.span))

    def retuned(self, tuning: Tuning) -> SourceEvidence:
        """Return a copy with the exponents and the prior shift of a tuning."""
        scales = [tuning.scales.get(name, 0.0) for name in self.sources]
        return replace(self, exponents=scales, prior_shift=tuning.prior_shift)

    def streamed(self, with_novelty: bool) -> Callable[[Array], Array]:
        """Return the function from single frames to log ratios."""
        return partial(self._of_frames, with_novelty=with_novelty)

    def _of_frames(self, frames: Array, with_novelty: bool, n_threads: int = 1) -> Array:
        rows = np.flatnonzero(complete_rows(frames))
        evidence = np.full((len(frames), len(self.prior) + with_novelty), np.nan)
        if len(rows) > 0:
            complete, logs = frames[rows], np.log(self.prior)
            now = np.ascontiguousarray(complete[:, : self.framing.window * self.framing.n_columns])
            known = np.tile(self.evidence_scale * self.prior_shift * (logs - logs.mean()), (len(rows), 1))
            for source, scale in zip(self.sources.values(), self.exponents, strict=True):
                known += scale * checked_log_ratios(source, now, len(self.prior))
            if with_novelty:
                assert self.novelty is not None
                known = beside(known, self.novelty.log_evidence(complete, n_threads), self.prior)
            evidence[rows] = known
        return evidence


#: The types of evidence of a model.
Evidence = PooledEvidence | SourceEvidence
