"""Learned evidence: from samples to log ratios, ready for inference and nothing else."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from ._validation import Array, Lengths, read_only
from .features import Framing, fair_draw

#: Summed features of a frame below which no centre is near: those of a single centre at three kernel widths.
NEAR = math.exp(-4.5)


class Evidence(Protocol):
    """What a model needs of its evidence."""

    @property
    def framing(self) -> Framing:
        """How frames are made from samples."""
        ...

    @property
    def evidence_scale(self) -> float:
        """The exponent kappa of the ratios."""
        ...

    def log_ratios(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t), shape (T, S); rows of NaN where a frame is missing."""
        ...

    def streamed(self) -> _core.LeastSquaresRatio | Callable[[Array], Array]:
        """What turns single frames into log ratios: the native core, or a function of frames (k, D)."""
        ...


@dataclass(frozen=True)
class KernelEvidence:
    """Least-squares density ratios: log w_i(y) = kappa log(max(theta_i^T phi(y), floor S prior_i) / prior_i).

    Arrays only; computed by the native core in blocks, so that no call stores the features of all frames, and in
    single precision where that is asked for.
    """

    framing: Framing
    centers: Array
    sigma: float
    theta: Array
    prior: Array
    floor: float
    evidence_scale: float
    _native: _core.LeastSquaresRatio = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("centers", "theta", "prior"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        native = _core.LeastSquaresRatio(
            centers=self.centers,
            sigma=self.sigma,
            theta=self.theta,
            prior=self.prior,
            floor=self.floor,
            evidence_scale=self.evidence_scale,
            mean=self.framing.mean,
            scale=self.framing.scale,
            window=self.framing.window,
        )
        object.__setattr__(self, "_native", native)

    def __reduce__(self) -> tuple[object, ...]:
        return KernelEvidence, tuple(getattr(self, item.name) for item in fields(self) if item.init)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.prior)

    def log_ratios(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t), shape (T, S); rows of NaN where a frame is missing."""
        return self._native.log_ratios(samples, lengths, n_threads, single=single)

    def log_ratios_with_novelty(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t) and log w_*(y_t), shape (T, S + 1): w_* = q_*^kappa, q_* = 1 - sum_i q_i in [floor, 1]."""
        return self._native.log_ratios(samples, lengths, n_threads, with_novelty=True, single=single)

    def streamed(self) -> _core.LeastSquaresRatio:
        """What turns single frames into log ratios."""
        return self._native

    def reach(self, frames: Array, codes: npt.NDArray[np.int64]) -> Array:
        """Median over frames of each class of sum_b phi_b(y), (S,), from about a thousand of each; inf without any."""
        some = fair_draw(codes, min(len(codes), 1000 * self.n_states), np.random.RandomState(0))
        summed = _core.squared_exponential(np.ascontiguousarray(frames[some]), self.centers, self.sigma).sum(axis=1)
        own = [summed[codes[some] == state] for state in range(self.n_states)]
        return np.array([np.median(sums) if len(sums) > 0 else np.inf for sums in own])

    def estimates(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Unclipped estimates of p(x_t = i | y_t), shape (T, S); rows of NaN where a frame is missing."""
        return self._native.estimates(samples, lengths, n_threads, single)


def warn_of_far_classes(reach: Array, classes: npt.NDArray[Any], stacklevel: int) -> None:
    """Warn of classes whose frames have no kernel centre near them while others have, by `KernelEvidence.reach`."""
    far = [repr(label) for label in classes[reach < NEAR].tolist()]
    if 0 < len(far) < len(classes):
        warnings.warn(
            f"no kernel centre is near the frames of class {', '.join(far)}, which the model can hardly predict: use "
            "more centres (n_basis) or wider kernels (sigma)",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
