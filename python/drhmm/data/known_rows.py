"""A sketch of training rows, with which an evaluation recognises them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .checks import Array, Lengths

#: The entry of a model's settings with the sketch.
LEARNED_ROWS = "learned_rows"

#: Hashes in a sketch, rows that a hash is made of, and hashes that must be found again before anything is said.
N_HASHES, TOGETHER, FEWEST_FOUND = 128, 3, 4

_ODD = np.uint64(0x9E3779B97F4A7C15)


def sketch_of(samples: Array, lengths: Lengths) -> list[int]:
    """Return the smallest hashes of neighbouring rows; repeated ones do not count.

    A signal at rest repeats its rows.
    """
    hashes, counts = np.unique(_hashes(samples, lengths), return_counts=True)
    smallest: list[int] = hashes[counts == 1][:N_HASHES].tolist()
    return smallest


def known_share(sketch: Sequence[int], samples: Array, lengths: Lengths) -> float:
    """Estimate the share of rows that a model learned from by its sketch.

    0 if too few can be compared.
    """
    if len(sketch) < FEWEST_FOUND:
        return 0.0
    hashes = np.unique(_hashes(samples, lengths))
    hashes = hashes[hashes <= max(sketch)]
    found = int(np.isin(hashes, np.array(sketch, dtype=np.uint64)).sum())
    return found / len(hashes) if found >= FEWEST_FOUND else 0.0


def _hashes(samples: Array, lengths: Lengths) -> npt.NDArray[np.uint64]:
    """48 bits for every stretch of neighbouring rows of one sequence."""
    bits = np.where(np.isnan(samples), np.nan, samples + 0.0).view(np.uint64)
    rows = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        rows = _mixed(rows ^ column)
    stretches = rows[: len(rows) - TOGETHER + 1]
    for shift in range(1, TOGETHER):
        stretches = _mixed(stretches ^ rows[shift : len(rows) - TOGETHER + 1 + shift])
    begins = np.concatenate([np.arange(end - length, end - TOGETHER + 1) for end, length in _ends(lengths)])
    found: npt.NDArray[np.uint64] = stretches[begins] >> np.uint64(16)
    return found


def _ends(lengths: Lengths) -> list[tuple[int, int]]:
    return list(zip(np.cumsum(lengths).tolist(), lengths, strict=True))


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> np.uint64(32))) * _ODD
    return mixed ^ (mixed >> np.uint64(29))
