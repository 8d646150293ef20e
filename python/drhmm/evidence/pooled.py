"""Learned evidence of a pool: from samples to log ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import Array, FrozenArrays, Lengths
from ..data.user_warnings import warn
from ..features.context import Context
from ..features.frames import Framing, fair_draw
from .pool_members import AHEAD, KINDS, AdditiveMember, AheadMember, ContextMember, GaussianMember, KernelMember, Member
from .tunings import Tuning
from .unknown import NoveltyEvidence

#: Upper bound of the floor: with many classes, a higher one would hide a single class.
LARGEST_LEAST_RATIO = 0.5

#: A frame has no centre nearby if its features sum to less than that of one centre at three kernel widths.
NEAR = math.exp(-4.5)


def least_ratio_of(floor: float, n_states: int) -> float:
    """Floor of an estimate over its class share: floor S, but at most one half."""
    return min(floor * n_states, LARGEST_LEAST_RATIO)


@dataclass(frozen=True)
class PooledEvidence(FrozenArrays):
    """A pool of density ratios as arrays, evaluated by the native core.

    log w_i(y) = sum_m kappa_m log max(q_i^(m)(y) / p_i, least_ratio) + (sum_m kappa_m) beta (log p_i - mean_j log p_j)
    with class shares p (`prior`), the exponents kappa_m of the members, and beta the `prior_shift`. Least squares alone
    is a pool of one. ``past`` has the context of the members `context` and `ahead`. ``novelty`` is the evidence for the
    unknown; without it, the unknown gets 1 minus the kernel estimates, as in the paper, and at least ``floor``.
    """

    framing: Framing
    prior: Array
    floor: float
    least_ratio: float
    kernel: KernelMember | None = None
    additive: AdditiveMember | None = None
    gaussian: GaussianMember | None = None
    prior_shift: float = 0.0
    novelty: NoveltyEvidence | None = None
    context: ContextMember | None = None
    ahead: AheadMember | None = None
    past: Context | None = None
    _native: _core.PooledRatio = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        logs = np.log(self.prior)
        members: dict[str, Any] = {name: member.arrays() for name, member in self.members.items()}
        if self.past is not None and (self.context is not None or self.ahead is not None):
            now = self.context if self.ahead is None or self.context is not None else replace(self.ahead, scale=0.0)
            assert now is not None
            members |= {"context_features": self.past.native, "context": now.arrays()}
        native = _core.PooledRatio(
            mean=self.framing.mean,
            scale=self.framing.scale,
            window=self.framing.window,
            span=self.framing.span,
            prior=self.prior,
            least_ratio=self.least_ratio,
            floor=self.floor,
            shift=self.evidence_scale * self.prior_shift * (logs - logs.mean()),
            **members,
            novelty=None if self.novelty is None else self.novelty.now.native,
            trend=None if self.novelty is None or self.novelty.trend is None else self.novelty.trend.native,
        )
        object.__setattr__(self, "_native", native)

    @property
    def members(self) -> dict[str, Member]:
        """The members by name."""
        found = {name: getattr(self, name) for name in KINDS}
        return {name: member for name, member in found.items() if member is not None}

    @property
    def scales(self) -> dict[str, float]:
        """The exponent of each member."""
        return {name: member.scale for name, member in self.members.items()}

    @property
    def history(self) -> int:
        """Samples in the history of a stream for the context; 0 without one."""
        return 0 if self.past is None or (self.context is None and self.ahead is None) else self.past.native.history

    @property
    def evidence_scale(self) -> float:
        """The sum of the exponents."""
        return sum(self.scales.values())

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.prior)

    def log_ratios(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t), shape (T, S); NaN rows for missing frames."""
        return self._native.log_ratios(samples, lengths, n_threads, False, single)

    def log_ratios_with_novelty(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Log w_i(y_t) and log w_*(y_t), shape (T, S + 1).

        With `novelty`, sum_i p_i w_i = 1; otherwise w_* = q_*^kappa, q_* = 1 - sum_i q_i in [floor, 1].
        """
        return self._native.log_ratios(samples, lengths, n_threads, True, single)

    def log_ratios_at(self, pieces: Array, at: int, n_threads: int) -> Array:
        """Log ratios (n, S) at the time step `at` of pieces (n, L, d) of sequences.

        A piece begins `history` samples before the time step and ends `AHEAD` after it, or where its sequence does.
        """
        window, n = self.framing.window, len(pieces)
        frames = np.ascontiguousarray(pieces[:, at - window + 1 : at + 1].reshape(-1, pieces.shape[2]))
        if self.history == 0:
            return self.log_ratios(frames, [window] * n, n_threads)[window - 1 :: window]
        # Frames alone, with the prior shift of all members.
        scale = self.evidence_scale - sum(self.scales.get(kind.NAME, 0.0) for kind in (ContextMember, AheadMember))
        shift = self.prior_shift * self.evidence_scale / scale if scale > 0 else 0.0
        alone = replace(self, context=None, ahead=None, past=None, prior_shift=shift)
        total = alone.log_ratios(frames, [window] * n, n_threads)[window - 1 :: window]
        assert self.past is not None
        samples, size = np.ascontiguousarray(pieces.reshape(-1, pieces.shape[2])), pieces.shape[1]
        for member, row in ((self.context, at), (self.ahead, min(at + AHEAD, size - 1))):
            if member is not None:
                features = [self.past.native.features(samples, [size] * n, k * size + row, 1) for k in range(n)]
                total += member.scale * np.log(
                    np.maximum(member.estimates(np.vstack(features)) / self.prior, self.least_ratio)
                )
        return total

    def with_novelty(self, novelty: NoveltyEvidence) -> PooledEvidence:
        """Return a copy with evidence for the unknown."""
        return replace(self, novelty=novelty, framing=replace(self.framing, span=novelty.span))

    def retuned(self, tuning: Tuning) -> PooledEvidence:
        """Return a copy with a tuning; members without a scale in it are dropped."""
        members: dict[str, Any] = {
            name: replace(member, scale=tuning.scales[name]) if tuning.scales.get(name, 0.0) > 0 else None
            for name, member in self.members.items()
        }
        return replace(self, **members, prior_shift=tuning.prior_shift)

    def streamed(self, with_novelty: bool) -> _core.PooledRatio:
        """Return the function from single frames to log ratios."""
        return self._native

    @property
    def sees_novelty(self) -> bool:
        """Whether there is evidence for the unknown, learned or from kernels."""
        return self.novelty is not None or self.kernel is not None

    @property
    def is_kernels_alone(self) -> bool:
        """Whether kernels are the only member, without evidence far from all centres."""
        return list(self.members) == [KernelMember.NAME]

    def reach(self, frames: Array, codes: npt.NDArray[np.int64]) -> Array:
        """Median of sum_b phi_b(y) over about 1,000 frames per class, (S,); inf if none."""
        assert self.kernel is not None
        some = fair_draw(codes, min(len(codes), 1000 * self.n_states), np.random.RandomState(0))
        near = np.ascontiguousarray(frames[some])
        summed = _core.squared_exponential(near, self.kernel.centers, self.kernel.sigma).sum(axis=1)
        own = [summed[codes[some] == state] for state in range(self.n_states)]
        return np.array([np.median(sums) if len(sums) > 0 else np.inf for sums in own])

    def estimates(self, samples: Array, lengths: Lengths, n_threads: int, single: bool = False) -> Array:
        """Unclipped kernel estimates of p(x_t = i | y_t), (T, S); NaN for missing frames."""
        return self._native.estimates(samples, lengths, n_threads, single)


def warn_of_far_classes(reach: Array, classes: npt.NDArray[Any]) -> None:
    """Warn of classes without a kernel centre nearby, if others have one."""
    far = [repr(label) for label in classes[reach < NEAR].tolist()]
    if 0 < len(far) < len(classes):
        warn(
            f"no kernel centre is near the frames of class {', '.join(far)}, which the model can hardly predict: use "
            "more centres (n_basis) or wider kernels (sigma)"
        )


def pooled_evidence(
    framing: Framing,
    prior: Array,
    floor: float,
    members: Iterable[Member],
    prior_shift: float = 0.0,
    past: Context | None = None,
) -> PooledEvidence:
    """Build evidence from members with their scales."""
    named: dict[str, Any] = {member.NAME: member for member in members}
    return PooledEvidence(
        framing, prior, floor, least_ratio_of(floor, len(prior)), **named, prior_shift=prior_shift, past=past
    )


def frame_log_ratios(member: Member, prior: Array, floor: float, frames: Array, n_threads: int) -> Array:
    """Log ratios (n, S) of one member at finished frames (n, D), scale 1."""
    framing = Framing(np.zeros(frames.shape[1]), np.ones(frames.shape[1]))
    evidence = pooled_evidence(framing, prior, floor, [replace(member, scale=1.0)])
    return evidence.log_ratios(np.ascontiguousarray(frames), [len(frames)], n_threads)
