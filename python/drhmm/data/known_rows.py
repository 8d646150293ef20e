"""A sketch of training rows, by which an evaluation recognises them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .checks import Array, Lengths

#: The entry of a model's settings with the sketch.
LEARNED_ROWS = "learned_rows"

#: Hashes in a sketch, rows per hash, and the fewest matching hashes that count.
N_HASHES, TOGETHER, FEWEST_FOUND = 128, 3, 4

_ODD = np.uint64(0x9E3779B97F4A7C15)


def sketch_of(samples: Array, lengths: Lengths) -> list[int]:
    """Return the smallest hashes that occur once; signals at rest repeat their rows."""
    hashes, counts = np.unique(_hashes(samples, lengths), return_counts=True)
    smallest: list[int] = hashes[counts == 1][:N_HASHES].tolist()
    return smallest


def known_share(sketch: Sequence[int], samples: Array, lengths: Lengths) -> float:
    """Estimate the share of training rows by a sketch; 0 if too few hashes match."""
    if len(sketch) < FEWEST_FOUND:
        return 0.0
    hashes = np.unique(_hashes(samples, lengths))
    hashes = hashes[hashes <= max(sketch)]
    found = int(np.isin(hashes, np.array(sketch, dtype=np.uint64)).sum())
    return found / len(hashes) if found >= FEWEST_FOUND else 0.0


def _hashes(samples: Array, lengths: Lengths) -> npt.NDArray[np.uint64]:
    """Return 48-bit hashes of all stretches of rows within sequences."""
    bits = np.where(np.isnan(samples), np.nan, samples + 0.0).view(np.uint64)
    rows = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        rows = _mixed(rows ^ column)
    stretches = rows[: len(rows) - TOGETHER + 1]
    for shift in range(1, TOGETHER):
        stretches = _mixed(stretches ^ rows[shift : len(rows) - TOGETHER + 1 + shift])
    ends = zip(np.cumsum(lengths).tolist(), lengths, strict=True)
    begins = np.concatenate([np.arange(end - length, end - TOGETHER + 1) for end, length in ends])
    found: npt.NDArray[np.uint64] = stretches[begins] >> np.uint64(16)
    return found


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> np.uint64(32))) * _ODD
    return mixed ^ (mixed >> np.uint64(29))
