"""Contiguous folds, and the choice of sigma, rho and the evidence scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._validation import Lengths

N_FOLDS = 5


def contiguous_folds(lengths: Lengths, n_folds: int = N_FOLDS) -> npt.NDArray[np.int64]:
    """Fold of every frame: each sequence is cut into `n_folds` contiguous blocks of nearly equal size.

    Neighbouring frames are correlated, so a fold never holds single frames between training frames. The first block
    of successive sequences goes to successive folds, which spreads short sequences evenly.
    """
    folds = []
    for k, length in enumerate(lengths):
        block = np.arange(length) * n_folds // length if length >= n_folds else np.arange(length)
        folds.append((block + k) % n_folds)
    return np.concatenate(folds)
