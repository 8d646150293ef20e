"""Learned evidence: from samples to log ratios, ready for inference and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Protocol

from . import _core
from ._validation import Array, Lengths, read_only
from .features import Framing


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

    def estimates(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Unclipped estimates of p(x_t = i | y_t), shape (T, S); rows of NaN where a frame is missing."""
        return self._native.estimates(samples, lengths, n_threads, single)
