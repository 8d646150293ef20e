"""Choice of pieces of sequences for a sample that fits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..features.frames import random_state_of
from .partitions import Pieces

#: Wanted rows per class in a sample.
CLASS_ROWS = 100


def choose(pieces: Sequence[Pieces], window: int, sample_size: int, seed: Any) -> list[list[int]]:
    """Choose the pieces of each partition for the sample."""
    places = [(p, k) for p, part in enumerate(pieces) for k in range(len(part.lengths))]
    lengths = np.array([pieces[p].lengths[k] for p, k in places])
    if lengths.sum() <= sample_size:
        return [list(range(len(part.lengths))) for part in pieces]
    names = sorted({name for part in pieces for name in part.labels.tolist()}, key=repr)
    counts = np.zeros((len(places), len(names)), dtype=np.int64)
    for row, (p, k) in enumerate(places):
        counts[row, [names.index(name) for name in pieces[p].labels.tolist()]] = pieces[p].counts[k]
    useful = np.flatnonzero(lengths >= window)
    order = useful[random_state_of(seed).permutation(len(useful))]
    chosen = order[: int(np.searchsorted(np.cumsum(lengths[order]), sample_size)) + 1].tolist()
    for column in counts.T:
        taken = set(chosen)
        others = [row for row in order.tolist() if row not in taken and column[row] > 0]
        while others and column[chosen].sum() < CLASS_ROWS:
            chosen.append(others.pop(0))
    by_partition: list[list[int]] = [[] for _ in pieces]
    for row in sorted(chosen):
        by_partition[places[row][0]].append(places[row][1])
    return by_partition
