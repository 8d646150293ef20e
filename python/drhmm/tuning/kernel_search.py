"""The choice of sigma and rho by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import Array
from ..system.progress import Progress

#: Default of sigma over the median distance between centres, and of rho over the number of training frames. With the
#: pull below, they gave the best smoothed accuracy on sines with 50 to 500 windows per regime, for both readings of the
#: noise in the paper: .822 on average, against .814 for (0.7, 0.01) with half the pull.
DEFAULT_SIGMA = 1.0
DEFAULT_RHO = 0.003

SIGMA_GRID = (0.35, 0.5, 0.7, 1.0, 1.4)
#: Kernel width over the median distance for comparing starts of EM: narrower, so that clusters can have any shape.
START_SIGMA = 0.5

RHO_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)

#: Gain in summed loss (squared error, or nats of a judge) required per squared grid step from the default.
PULL = 3.0

#: The most numbers in held-out estimates in memory at once; those of one sigma are always allowed.
MOST_ESTIMATES = 2**24

#: Multiplications of Gram matrices between two progress updates; one sigma may take more.
QUICK_WORK = 2**32

#: Maps held-out estimates of p(x = i | y), (N, S), to a summed loss.
Judge = Callable[[Array], float]


@dataclass(frozen=True)
class Selection:
    """The table of cross-validation and its choice.

    ``loss[s, r]`` is the mean squared loss of ``sigmas[s]`` and ``rhos[r]``. The smallest ``verdict[s, r]`` wins: the
    summed squared loss, or minus the summed log posterior of the true states after smoothing, plus the pull.
    ``estimates`` are the held-out estimates (N, S) of the winner, while learning needs them.
    """

    sigmas: Array
    rhos: Array
    loss: Array
    verdict: Array
    sigma: float
    rho: float
    estimates: Array | None = None


def pull(sigmas: Array, rhos: Array, median: float | None, pull_rho: bool) -> Array:
    """Return the penalty for leaving the defaults, (sigmas, rhos), in summed loss.

    With few noisy frames the smallest held-out loss belongs to an almost constant predictor, which is useless as
    evidence. The pull grows with the grid steps (factors of sqrt 2 in sigma, sqrt 10 in rho), quadratically at first,
    but not with the number of frames: a hundred frames stay near the defaults, while thousands follow the loss.
    """
    sigma_steps = np.zeros(len(sigmas)) if median is None else 2 * np.log2(sigmas / (DEFAULT_SIGMA * median))
    rho_steps = 2 * np.log10(rhos / DEFAULT_RHO) if pull_rho else np.zeros(len(rhos))
    penalty: Array = PULL * np.add.outer(_huber(sigma_steps), _huber(rho_steps))
    return penalty


def _huber(steps: Array) -> Array:
    """Return steps^2 up to two steps, linear beyond."""
    return np.where(np.abs(steps) <= 2, steps**2, 4 * np.abs(steps) - 4)


def select(
    frames: Array,
    targets: Array,
    weights: Array,
    folds: npt.NDArray[np.int64],
    centers: Array,
    median: float,
    sigma: float | None,
    rho: float | None,
    judge: Judge | None,
    n_threads: int,
    progress: Progress | None = None,
) -> Selection:
    """Choose sigma and rho, if None, by held-out squared loss or `judge`, plus pull."""
    sigmas = np.array(SIGMA_GRID) * median if sigma is None else np.array([sigma])
    rhos = np.array(RHO_GRID) if rho is None else np.array([rho])
    order = np.argsort(folds, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sizes = [int(size) for size in np.bincount(folds) if size > 0]
    loss, verdict = np.empty((len(sigmas), len(rhos))), np.empty((len(sigmas), len(rhos)))
    # The pull must not depend on the unit of the weights.
    unit = weights.sum() / len(weights)
    ordered = frames[order], targets[order], weights[order]
    # Run as many widths at a time as there are threads, or more quick ones, so that threads rarely wait for the last
    # fold, but at most as many as the memory for held-out estimates allows.
    together = min(
        max(n_threads, QUICK_WORK // (len(frames) * len(centers) ** 2)),
        max(1, MOST_ESTIMATES // (len(rhos) * targets.size)),
    )
    penalty = pull(sigmas, rhos, median if sigma is None else None, rho is None)
    least, best, estimates = np.inf, (0, 0), None
    for first in range(0, len(sigmas), together):
        widths = sigmas[first : first + together]
        summed, held_out = _core.cross_validate(
            *ordered, sizes, centers, widths.tolist(), rhos.tolist(), n_threads, with_estimates=True
        )
        for s, width in enumerate(widths, first):
            loss[s] = summed[s - first].sum(axis=1)
            for r in range(len(rhos)):
                found = held_out[s - first, r, place]
                verdict[s, r] = penalty[s, r] + (loss[s, r] / unit if judge is None else judge(found))
                if verdict[s, r] < least:
                    least, best, estimates = verdict[s, r], (s, r), found
            if progress is not None:
                progress(s + 1, len(sigmas), f"sigma {width:.3g}  loss {loss[s].min() / weights.sum():.4f}")
    return Selection(
        sigmas, rhos, loss / weights.sum(), verdict, float(sigmas[best[0]]), float(rhos[best[1]]), estimates
    )
