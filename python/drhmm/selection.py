"""Contiguous folds, and the choice of sigma and rho by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import _core
from ._validation import Array, Lengths

N_FOLDS = 5

#: Sigma over the median distance between centres, and rho over the number of training frames, without any data.
DEFAULT_SIGMA = 0.7
DEFAULT_RHO = 0.01

SIGMA_GRID = (0.35, 0.5, 0.7, 1.0, 1.4)
RHO_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)

#: Squared loss, summed over frames, that data must gain per squared grid step away from the default.
PULL = 1.5


@dataclass(frozen=True)
class Selection:
    """What cross-validation saw and chose: `loss[s, r]` per frame belongs to `sigmas[s]` and `rhos[r]`."""

    sigmas: Array
    rhos: Array
    loss: Array
    sigma: float
    rho: float


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


def pull(sigmas: Array, rhos: Array, median: float | None, pull_rho: bool) -> Array:
    """Summed loss that data must gain to leave the defaults, (sigmas, rhos); nothing for what is not searched.

    With few noisy frames the smallest held-out loss belongs to an almost constant predictor, which is useless as
    evidence. The pull grows with the square of the grid steps (a factor sqrt 2 in sigma, sqrt 10 in rho) and not with
    the number of frames: a hundred frames stay near the defaults, thousands go where the loss is smallest.
    """
    sigma_steps = np.zeros(len(sigmas)) if median is None else 2 * np.log2(sigmas / (DEFAULT_SIGMA * median))
    rho_steps = 2 * np.log10(rhos / DEFAULT_RHO) if pull_rho else np.zeros(len(rhos))
    penalty: Array = PULL * np.add.outer(sigma_steps**2, rho_steps**2)
    return penalty


def select(
    frames: Array,
    targets: Array,
    weights: Array,
    folds: npt.NDArray[np.int64],
    centers: Array,
    median: float,
    sigma: float | None,
    rho: float | None,
    n_threads: int,
) -> Selection:
    """Choose what is None of sigma and rho by held-out squared loss, pulled towards the defaults."""
    sigmas = np.array(SIGMA_GRID) * median if sigma is None else np.array([sigma])
    rhos = np.array(RHO_GRID) if rho is None else np.array([rho])
    order = np.argsort(folds, kind="stable")
    sizes = [int(size) for size in np.bincount(folds) if size > 0]
    summed = _core.cross_validation_loss(
        frames[order],
        targets[order],
        weights[order],
        sizes,
        centers,
        sigmas.tolist(),
        rhos.tolist(),
        n_threads,
    ).sum(axis=2)
    penalty = pull(sigmas, rhos, None if sigma is not None else median, rho is None)
    # Weights of another unit than "one per frame" must not change how strong the pull is.
    unit = weights.sum() / len(weights)
    s, r = np.unravel_index(np.argmin(summed + unit * penalty), summed.shape)
    return Selection(sigmas, rhos, summed / weights.sum(), float(sigmas[s]), float(rhos[r]))
