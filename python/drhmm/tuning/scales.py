"""Tunings: scales of members, temper and prior shift for each kind of answer.

They minimise the loss of smoothing, filtering or single frames on held-out evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from .. import _core
from ..chain.durations import Durations
from ..chain.transitions import power, tempered, unreachable
from ..data.checks import LARGEST, Array, Lengths, as_floats, check_number
from ..recursion import native_chain, run

#: The approximate number of judged rows, fewer beyond `MANY_CLASSES`, and rows per piece of a long sequence.
MOST_JUDGED, MANY_CLASSES, PIECE = 20_000, 10, 2000

#: The approximate number of judged rows for single frames.
MOST_FRAMES = 5000

#: The fewest judged frames for learning scales.
FEWEST = 50

#: Gain in summed loss required per squared factor of two of a scale, squared step of the temper and of the shift.
SCALE_PULL, TEMPER_PULL, SHIFT_PULL = 0.002, 0.5, 0.5

#: Bounds of log2 kappa, of the temper and of the prior shift.
SCALE_BOUNDS, TEMPER_BOUNDS, SHIFT_BOUNDS = (-14.0, 3.0), (0.05, 1.0), (-3.0, 3.0)

#: Starts of the search: a temper, and powers of two as factors of the usual scales.
STARTS = ((1.0, range(1, -11, -1)), (0.5, range(0, -6, -1)), (0.1, range(1, -4, -1)))

#: Scales and tempers for comparing kernel widths and regularisation.
JUDGE_SCALES = (2.0**-8, 2.0**-6, 2.0**-4, 2.0**-2, 1.0)
JUDGE_TEMPERS = (1.0, 0.5)

#: Iterations from each start, from the best of them, and with finite differences.
FIRST_ITERATIONS, MOST_ITERATIONS, MOST_WITHOUT_GRADIENT = 6, 40, 5

#: The search ends when an iteration improves the objective by a smaller share.
TOLERANCE = {"smooth": 1e-6, "filter": 1e-5, "frame": 1e-5}

#: Powers of two as factors of the scales of a plain chain: the starts for a chain with shapes of durations.
NEAR_STEPS = range(0, -5, -1)

#: Powers of two as factors of the scales for smoothing: the starts for filtering and single frames.
AFTER_STEPS = range(2, -2, -1)

#: The least scale at the start, as a share of the usual one.
LEAST_START = 0.125

#: Decrease of the objective required of shapes, in units of the square root of the number of runs.
SHAPE_LEAD = 0.25

#: Step of the temper in the finite difference of the loss of filtering.
TEMPER_STEP = 1e-4

#: Names of the kinds of answers in messages.
SPOKEN = {"smooth": "smoothing", "filter": "filtering", "frame": "single frames"}

#: Limit of the evidence of one held-out frame against a state, in nats.
MOST_NATS = 500.0


def given_scales(scale: Any) -> Array | None:
    """Return given evidence scales, (1,) or (M,); None if they are learned."""
    if isinstance(scale, str) and scale == "cv":
        return None
    if not isinstance(scale, list | tuple) and np.ndim(scale) == 0:
        return np.array([check_number(scale, "evidence_scale", low=1 / LARGEST, high=LARGEST)])
    scales = as_floats(scale, "evidence_scale")
    if scales.ndim != 1 or not ((scales >= 0) & (scales <= LARGEST)).all() or not scales.sum() > 0:
        raise ValueError(f"evidence_scale must be positive numbers, one for each member, got {scale!r}")
    return scales


def given_temper(temper: Any, is_geometric: bool = True) -> float | None:
    """Check a given temper, 1 unless stays are geometric; return None to learn it."""
    if isinstance(temper, str) and temper == "cv":
        return None
    temper = check_number(temper, "transition_temper", low=0, high=1, low_open=True)
    if not is_geometric and temper != 1:
        raise ValueError(
            f"transition_temper={temper:g} goes with geometric stays: use transition_temper=1 with durations and "
            "min_duration"
        )
    return float(temper)


@dataclass(frozen=True)
class Choice:
    """Scales kappa (M,), temper tau, prior shift beta, their origin and objective."""

    scales: Array
    temper: float
    prior_shift: float
    reason: str
    objective: float = -np.inf  # nothing was judged


def drawn_parts(
    codes: npt.NDArray[np.int64], parts: list[tuple[int, int]], most: int = MOST_JUDGED
) -> list[tuple[int, int]]:
    """Choose parts (begin, end) of sequences to judge: all, or about `most` rows.

    A draw of sequences, or of pieces of long ones, is spread evenly, with more pieces for classes that it would lack.
    """
    if sum(end - begin for begin, end in parts) <= most:
        return parts
    piece = min(PIECE, most // 10)
    pieces = [(at, min(at + piece, end)) for begin, end in parts for at in range(begin, end, piece)]
    seen = np.cumsum([end - begin for begin, end in pieces])
    chosen, kept = np.zeros(len(pieces), dtype=bool), 0
    for k, (begin, end) in enumerate(pieces):
        if kept < most * seen[k] / seen[-1]:
            chosen[k] = True
            kept += end - begin
    held: set[int] = {-1}.union(*(np.unique(codes[slice(*pieces[k])]).tolist() for k in np.flatnonzero(chosen)))
    for k in np.flatnonzero(~chosen).tolist():
        more = set(np.unique(codes[slice(*pieces[k])]).tolist()) - held
        if more:
            chosen[k] = True
            held |= more
    return [piece for piece, own in zip(pieces, chosen, strict=True) if own]


def _softened(log_ratios: Array) -> Array:
    """Limit held-out log ratios from below: an estimate of zero is only a guess."""
    softened: Array = np.maximum(log_ratios - log_ratios.max(axis=1, keepdims=True), -MOST_NATS)
    return softened


class HeldOutSmoothing:
    """A judge of held-out evidence: minus the log posterior of true states.

    Sequences without a change of state cannot reveal overconfidence and are left out, as are frames of a class that no
    other fold has. ``codes`` (T,) are true states, -1 where a frame is not to be judged; ``transmat`` and ``startprob``
    are not tempered. ``scales``, (1,) for all members together or (M,), and ``temper`` are None where they are learned.
    ``prior`` (S,) is needed for single frames. With ``stages``, the chain is not tempered, and the loss has no
    derivatives.
    """

    def __init__(
        self,
        codes: npt.NDArray[np.int64],
        lengths: Lengths,
        transmat: Array,
        startprob: Array,
        scales: Array | None,
        temper: float | None,
        n_threads: int,
        learns_shift: bool = True,
        stages: Durations | None = None,
        kind: str = "smooth",
        prior: Array | None = None,
    ) -> None:
        self.kind, self.log_prior = kind, None if prior is None else np.log(prior)
        parts = []
        self.n_runs = 0
        for begin, end in itertools.pairwise(np.cumsum([0, *lengths])):
            states = codes[begin:end][codes[begin:end] >= 0]
            changes = int((states[1:] != states[:-1]).sum())
            if changes > 0:
                parts.append((int(begin), int(end)))
                self.n_runs += 1 + changes
        judged = drawn_parts(codes, parts, MOST_JUDGED * MANY_CLASSES // max(MANY_CLASSES, len(startprob)))
        self.lengths: Lengths = [end - begin for begin, end in judged]
        self.rows = np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(*part) for part in judged)])
        if kind == "frame":
            self.rows = self.rows[:: 1 + len(self.rows) // MOST_FRAMES]
        self._codes = np.ascontiguousarray(codes[self.rows])
        self.n_judged = int((self._codes >= 0).sum())
        self.transmat, self.startprob = transmat, startprob
        self._chain_at = lru_cache(maxsize=4)(self._make_chain)
        self.scales, self.n_threads, self.learns_shift = scales, n_threads, learns_shift
        # A reducible chain and a chain with stages cannot be tempered.
        self._staged = None if stages is None else native_chain(transmat, startprob, stages)
        cannot = self._staged is not None or unreachable(transmat) is not None or kind == "frame"
        self._log_transmat = np.log(np.where(transmat > 0, transmat, 1.0))
        self._log_startprob = np.log(np.where(startprob > 0, startprob, 1.0))
        self.temper = 1.0 if temper is None and cannot else temper
        self._best_scale = len(JUDGE_SCALES) // 2

    @property
    def can_judge(self) -> bool:
        """Whether there are enough frames of sequences that change their state."""
        return self.n_judged >= FEWEST

    @property
    def has_gradient(self) -> bool:
        """Whether the loss has derivatives."""
        return self._staged is None or self.kind == "frame"

    def value(self, evidence: Array, temper: float) -> float:
        """Minus the summed log posterior of evidence at the judged rows."""
        if self._staged is None or self.kind == "frame":
            return self.loss(evidence, temper, with_gradient=False)[0]
        judged = np.flatnonzero(self._codes >= 0)
        smoothed = run(self.kind, self._staged, evidence, self.lengths, None, self.n_threads)
        posteriors = smoothed[judged, self._codes[judged]]
        return -float(np.log(np.maximum(posteriors, np.finfo(float).tiny)).sum())

    def loss(self, evidence: Array, temper: float, with_gradient: bool) -> tuple[float, Array, float]:
        """The loss for a chain without stages, with derivatives by evidence and temper."""
        if self.kind == "frame":
            return self._frame_loss(evidence)
        if self.kind == "filter":
            return self._filter_loss(evidence, temper, with_gradient)
        loss, by_evidence, by_transitions, by_start = _core.smoothing_loss(
            evidence, self._codes, *self._chain_at(temper), self.lengths, with_gradient, self.n_threads
        )
        by_temper = (by_transitions * self._log_transmat).sum() + (by_start * self._log_startprob).sum()
        return loss, by_evidence, float(by_temper)

    def _frame_loss(self, evidence: Array) -> tuple[float, Array, float]:
        """Minus the log of p_i w_i / sum_j p_j w_j, and its derivatives."""
        judged = np.flatnonzero((self._codes >= 0) & ~np.isnan(evidence).any(axis=1))
        assert self.log_prior is not None
        logs, truth = evidence[judged] + self.log_prior, self._codes[judged]
        logs = logs - logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        by_evidence = np.zeros_like(evidence)
        by_evidence[judged] = np.exp(logs)
        by_evidence[judged, truth] -= 1.0
        return -float(logs[np.arange(len(judged)), truth].sum()), by_evidence, 0.0

    def _filter_loss(self, evidence: Array, temper: float, with_gradient: bool) -> tuple[float, Array, float]:
        """The loss of filtering; its derivative by the temper is a finite difference."""
        loss, by_evidence = self._filtered(evidence, temper, with_gradient)
        by_temper = 0.0
        if with_gradient and self.temper is None:
            other = temper - TEMPER_STEP if temper > 0.5 else temper + TEMPER_STEP
            by_temper = (self._filtered(evidence, other, False)[0] - loss) / (other - temper)
        return loss, by_evidence, by_temper

    def _filtered(self, evidence: Array, temper: float, with_gradient: bool) -> tuple[float, Array]:
        return _core.filtering_loss(evidence, self._codes, *self._chain_at(temper), self.lengths, with_gradient)

    def _make_chain(self, temper: float) -> tuple[Array, Array]:
        """Return powers of transition and start probabilities, normalised for filtering."""
        if self.kind != "filter":
            return power(self.transmat, temper), power(self.startprob, temper)
        n_states = len(self.startprob)
        transmat, startprob, _ = tempered(self.transmat, self.startprob, temper, np.full(n_states, 1 / n_states))
        return np.ascontiguousarray(transmat), np.ascontiguousarray(startprob)

    def spread(self, log_ratios: Array, rows: npt.NDArray[np.int64]) -> Array:
        """Spread log ratios of ascending rows over the judged rows, NaN elsewhere."""
        places = np.minimum(np.searchsorted(rows, self.rows), len(rows) - 1)
        spread: Array = np.where((rows[places] == self.rows)[:, None], log_ratios[places], np.nan)
        return spread

    def best(self, log_ratios: Array) -> float:
        """Return the smallest loss over a few scales and tempers, or at those given."""
        own = _softened(log_ratios)
        scales = JUDGE_SCALES if self.scales is None else (float(self.scales.max()),)
        tempers = JUDGE_TEMPERS if self.temper is None else (self.temper,)
        return min(self._lowest(own, scales, temper) for temper in tempers)

    def _lowest(self, own: Array, scales: Sequence[float], temper: float) -> float:
        """Return the smallest loss over scales, descending from the previous best."""
        found: dict[int, float] = {}
        best, last = min(self._best_scale, len(scales) - 1), -1
        while best != last:
            last, near = best, range(max(best - 1, 0), min(best + 2, len(scales)))
            found |= {k: self.value(scales[k] * own, temper) for k in near if k not in found}
            best = min(found, key=found.__getitem__)
        self._best_scale = best
        return found[best]

    @property
    def shape_lead(self) -> float:
        """The least difference of objectives for preferring a chain with shapes."""
        return SHAPE_LEAD * float(np.sqrt(self.n_runs))

    def choose(
        self,
        members: Mapping[str, Array | None],
        prior: Array,
        starts: Array,
        usual: Array,
        near: Choice | None = None,
        after: Choice | None = None,
    ) -> Choice:
        """Minimise the objective for held-out log ratios of the members.

        The objective is (runs / frames) times the loss, because runs of one state are nearly independent and frames are
        not, plus pulls towards the starts of the scales, a temper of 1 and no prior shift. With too few frames, scales
        are the usual ones. The search begins at `near`, the choice for another chain, and goes on only if this chain
        may be better; or it begins at `after`, the choice for another kind of answer.
        """
        given = self._given(list(members), usual)
        known = Choice(usual if given is None else given, 1.0 if self.temper is None else self.temper, 0.0, "given")
        if given is not None and self.temper is not None:
            return known
        if not self.can_judge:
            few = f"default, as {self.n_judged} held-out frames have a label, and {FEWEST} are needed"
            return replace(known, reason=few)
        judged = np.stack([_softened(member) for member in members.values() if member is not None])
        objective = _Objective(self, judged, prior, starts, given)
        promising = True
        if near is not None:
            best, objective_value = objective.best_start(np.log2(near.scales), 1.0, NEAR_STEPS)
            promising = objective_value < near.objective + self.shape_lead
        elif after is not None:
            # The gradient vanishes at scales close to 0: do not begin there.
            scales = np.maximum(after.scales[: len(starts)], LEAST_START * starts)
            best, objective_value = objective.best_start(np.log2(scales), after.temper, AFTER_STEPS)
        else:
            # Each temper has its own best start; a few iterations from each show the best.
            tempers = STARTS if self.temper is None else STARTS[:1]
            tried = [
                self._descend(objective, *objective.best_start(np.log2(starts), temper, steps), FIRST_ITERATIONS)
                for temper, steps in tempers
            ]
            best, objective_value = min(tried, key=lambda one: one[1])
        if promising:
            best, objective_value = self._descend(objective, best, objective_value, MOST_ITERATIONS)
        scales, temper, shift = objective.all_of(best)
        return Choice(
            scales if given is None else given,
            temper,
            shift,
            f"{SPOKEN[self.kind]} of {self.n_judged} held-out frames in {self.n_runs} runs of one state",
            objective_value,
        )

    def _descend(self, objective: _Objective, start: Array, value: float, iterations: int) -> tuple[Array, float]:
        """Descend from a start; return the parameters and their objective."""
        result = minimize(
            objective if self.has_gradient else objective.value,
            start,
            jac=self.has_gradient,
            method="L-BFGS-B",
            bounds=objective.bounds,
            options={
                "maxiter": iterations if self.has_gradient else MOST_WITHOUT_GRADIENT,
                "ftol": TOLERANCE[self.kind],
            },
        )
        return (result.x, float(result.fun)) if result.fun < value else (start, value)

    def _given(self, names: Sequence[str], usual: Array) -> Array | None:
        """Return given scales by member; a single one is split like the usual scales."""
        if self.scales is None:
            return None
        if len(self.scales) == 1:
            shared: Array = self.scales[0] * usual / usual.sum()
            return shared
        if len(self.scales) != len(names):
            raise ValueError(
                f"evidence_scale has {len(self.scales)} entries, but there are {len(names)} members: {', '.join(names)}"
            )
        return self.scales


class _Objective:
    """The objective and its gradient in the free parameters of log2 kappa, tau, beta."""

    def __init__(
        self, smoothing: HeldOutSmoothing, members: Array, prior: Array, starts: Array, given: Array | None
    ) -> None:
        self.smoothing, self.starts, self.members = smoothing, starts, members
        self.without_gaps = np.where(np.isnan(members), 0.0, members)
        logs = np.log(prior)
        self.shift = logs - logs.mean()
        is_free = given is None
        scales = starts if given is None else np.maximum(given, 2.0 ** SCALE_BOUNDS[0])
        self.fixed = np.array([*np.log2(scales), 1.0 if smoothing.temper is None else smoothing.temper, 0.0])
        others = [smoothing.temper is None, is_free and smoothing.learns_shift]
        self.is_free = np.array([is_free] * len(starts) + others)

    @property
    def bounds(self) -> Array:
        """Bounds of the free parameters, (n, 2)."""
        all_bounds = np.array([*[SCALE_BOUNDS] * len(self.starts), TEMPER_BOUNDS, SHIFT_BOUNDS])
        bounds: Array = all_bounds[self.is_free]
        return bounds

    def best_start(self, log_scales: Array, temper: float, steps: range) -> tuple[Array, float]:
        """Return the best factor of the scales among powers of two, and its objective."""
        tried = [self.free_of(np.clip(log_scales + step, *SCALE_BOUNDS), temper) for step in steps]
        values = [self.value(free) for free in tried]
        best = int(np.argmin(values))
        return tried[best], values[best]

    def free_of(self, log_scales: Array, temper: float) -> Array:
        """The free parameters of scales, a temper and no prior shift."""
        parameters: Array = np.array([*log_scales, temper, 0.0])[self.is_free]
        return parameters

    def all_of(self, free: Array) -> tuple[Array, float, float]:
        """Return scales, temper and prior shift from the free parameters."""
        parameters = self.fixed.copy()
        parameters[self.is_free] = free
        return 2.0 ** parameters[:-2], float(parameters[-2]), float(parameters[-1])

    def _evidence(self, scales: Array, beta: float) -> Array:
        evidence: Array = np.tensordot(scales, self.members, 1) + scales.sum() * beta * self.shift
        return evidence

    def _with_pulls(self, loss: float, scales: Array, temper: float, beta: float) -> float:
        steps = np.log2(scales) - np.log2(self.starts)
        pulls = SCALE_PULL * (steps**2).sum() + TEMPER_PULL * (temper - 1) ** 2 + SHIFT_PULL * beta**2
        return self.smoothing.n_runs / self.smoothing.n_judged * loss + float(pulls)

    def value(self, free: Array) -> float:
        """Return the objective alone."""
        scales, temper, beta = self.all_of(free)
        return self._with_pulls(self.smoothing.value(self._evidence(scales, beta), temper), scales, temper, beta)

    def __call__(self, free: Array) -> tuple[float, Array]:
        scales, temper, beta = self.all_of(free)
        evidence = self._evidence(scales, beta)
        loss, by_evidence, by_temper = self.smoothing.loss(evidence, temper, with_gradient=True)
        by_shift = float((by_evidence @ self.shift).sum())
        by_members = np.tensordot(self.without_gaps, by_evidence, 2) + beta * by_shift
        gradient = np.array([*(by_members * scales * np.log(2)), by_temper, scales.sum() * by_shift])
        factor = self.smoothing.n_runs / self.smoothing.n_judged
        steps = np.log2(scales) - np.log2(self.starts)
        by_pulls = np.array([*(2 * SCALE_PULL * steps), 2 * TEMPER_PULL * (temper - 1), 2 * SHIFT_PULL * beta])
        return self._with_pulls(loss, scales, temper, beta), (factor * gradient + by_pulls)[self.is_free]
