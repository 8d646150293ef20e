"""Folds of blocks or whole sequences, shared by all held-out estimates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths

N_FOLDS = 5

#: The fewest sequences for folds of whole sequences: long states would leak between blocks of a sequence.
FEWEST_WHOLE = 3

#: Classes with fewer frames and a smaller share do not affect the choice of folds.
RARE, RARE_SHARE = 20, 0.01


def contiguous_folds(lengths: Lengths, n_folds: int = N_FOLDS) -> npt.NDArray[np.int64]:
    """Cut each sequence into `n_folds` contiguous blocks; return each frame's fold.

    Neighbouring frames are correlated, so a fold never holds single frames between training frames. The first block of
    successive sequences goes to successive folds, which spreads short sequences evenly.
    """
    folds = []
    for k, length in enumerate(lengths):
        block = np.arange(length) * n_folds // length if length >= n_folds else np.arange(length)
        folds.append((block + k) % n_folds)
    return np.concatenate(folds)


def drawn_folds(n_units: int, n_folds: int, random: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Assign units to folds: each round of `n_folds` has all folds, in random order."""
    rounds = [random.permutation(n_folds) for _ in range(-(-n_units // n_folds))]
    return np.concatenate(rounds)[:n_units]


def folds_of(sequence: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], n_states: int) -> npt.NDArray[np.int64]:
    """Return the fold of each frame, from its sequence and its class (-1: unknown).

    Whole sequences, if there are at least three and every class that is not rare keeps two frames outside each fold;
    contiguous blocks of each sequence otherwise.
    """
    names, place, counts = np.unique(sequence, return_inverse=True, return_counts=True)
    n_folds = min(N_FOLDS, len(names))
    whole: npt.NDArray[np.int64] = place.reshape(-1) % n_folds
    known = codes >= 0
    counted = np.bincount(codes[known], minlength=n_states)
    present = (counted > 0) & (counted >= min(RARE, RARE_SHARE * counted.sum()))
    if n_folds >= FEWEST_WHOLE and all(
        (np.bincount(codes[known & (whole != fold)], minlength=n_states)[present] >= 2).all() for fold in range(n_folds)
    ):
        return whole
    return contiguous_folds(counts.tolist())


def even_blocks(lengths: Lengths, n_blocks: int, shortest: int = 1) -> list[tuple[int, int]]:
    """Cut sequences into about `n_blocks` blocks (begin, end) of nearly equal lengths."""
    longest, begin, blocks = max(shortest, -(-sum(lengths) // n_blocks)), 0, list[tuple[int, int]]()
    for length in lengths:
        borders = np.linspace(0, length, max(1, round(length / longest)) + 1).astype(int) + begin
        blocks += pairwise(borders.tolist())
        begin += length
    return blocks


def mean_and_error(values: Array, weights: npt.NDArray[np.generic]) -> tuple[Array, Array]:
    """Weighted means of values (..., n) over n units, and their standard errors."""
    shares = weights / weights.sum()
    mean = np.asarray(values @ shares)
    variance = (values - mean[..., None]) ** 2 @ shares**2 * len(shares) / max(len(shares) - 1, 1)
    return mean, np.sqrt(variance)
