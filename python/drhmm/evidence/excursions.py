"""Excursions of the evidence for the unknown in normal data, for levels of alarms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.checks import Array, FrozenArrays, Lengths, Steps
from .score_pvalues import highest_normal

#: Limit of log w_* of one frame for alarms, as in streams with one state.
HIGHEST = 230.0


@dataclass(frozen=True)
class Excursions(FrozenArrays):
    """Excursions of normal frames: runs that add up to evidence for the unknown.

    An excursion lasts while c_t = max(0, c_{t-1} + log w_*) is above 0. Rows of ``places`` (n, 3) are excursions in
    order: sequence, first time step and number of frames. ``values`` holds their log w_* one after the other. Some
    excursions no higher than ``least`` were dropped. There were ``n_frames`` normal frames; ``n_outliers`` more were
    left out.
    """

    values: Array
    places: Array
    least: float
    n_frames: int
    n_outliers: int

    @classmethod
    def of(cls, log_evidence: Array, lengths: Lengths, dt: Steps | None = None, most: int | None = None) -> Excursions:
        """Find excursions in log w_* of whole sequences; NaN frames do not count.

        `dt` has the time steps before each row; at most `most` frames are kept, those of the highest excursions.
        """
        judged = np.isfinite(log_evidence)
        is_normal = judged & ~(log_evidence > highest_normal(log_evidence[judged]))
        values = np.where(is_normal, np.minimum(log_evidence, HIGHEST), 0.0)
        walk, clock = np.empty(len(values)), np.arange(len(values)) if dt is None else np.cumsum(dt)
        ends = np.cumsum(lengths)
        for end, length in zip(ends, lengths, strict=True):
            own = np.cumsum(values[end - length : end])
            # max(0, c_{t-1} + x_t) is the walk above its lowest point so far, the start included.
            walk[end - length : end] = own - np.minimum(np.minimum.accumulate(own), 0.0)
        positive = walk > 1e-12
        begins = positive.copy()
        begins[1:] &= ~positive[:-1]
        begins[ends[:-1]] |= positive[ends[:-1]]
        first = np.flatnonzero(begins)
        sequence = np.searchsorted(ends, first, side="right")
        sizes = np.bincount(np.cumsum(begins)[positive] - 1, minlength=len(first))
        heights = np.maximum.reduceat(np.append(walk, 0.0), first) if len(first) > 0 else np.empty(0)
        chosen, least = np.ones(len(first), dtype=bool), 0.0
        if most is not None and sizes.sum() > most:
            order = np.argsort(-heights, kind="stable")
            dropped = order[np.cumsum(sizes[order]) > most]
            chosen[dropped], least = False, float(heights[dropped[0]])
        start = clock[first] - clock[(ends - lengths)[sequence]] if len(first) > 0 else first
        return cls(
            values[positive][np.repeat(chosen, sizes)],
            np.column_stack([sequence, start, sizes])[chosen].astype(np.float64),
            least,
            int(is_normal.sum()),
            int(judged.sum() - is_normal.sum()),
        )
