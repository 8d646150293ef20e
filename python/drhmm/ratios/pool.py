"""A pool of ratio sources: the scaled sum of their log ratios."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..data.checks import Array, check_choice, check_number, check_number_or_auto, checked_log_ratios, thread_count
from ..evidence.from_sources import Evidence, SourceEvidence
from ..evidence.pooled import pooled_evidence
from ..features.context import Context
from ..features.frames import Framing, random_state_of
from ..system.calls import with_own_threads
from ..tuning.folds import contiguous_folds
from ..tuning.scales import Choice
from .learner import (
    Learner,
    Task,
    Trained,
    Updates,
    as_learner,
    as_training,
    check_fitted,
    check_masses,
    check_source,
    named,
)
from .least_squares import Additive, Gaussian, LeastSquares

#: Scales of kernel, additive, Gaussian, context and ahead members: at the start of the search, and without enough data.
START_SCALES = (0.5, 0.1, 0.5, 0.1, 0.1)
USUAL_SCALES = (0.5, 0.0, 0.5, 0.0, 0.0)
N_OF_FRAMES = 3


class Pool(Learner, BaseEstimator):  # type: ignore[misc]
    """A pool of ratio sources: log w_i(y) = sum_m kappa_m log w_i^(m)(y).

    `drhmm.DensityRatioHMM` uses ``Pool()`` by default. It has three members. Kernels learn any ratio from enough
    frames. Additive ratios learn thresholds and straight lines from few. Class Gaussians need the fewest. Held-out
    smoothing decides the scales kappa_m, so a member that does not help hardly counts.

    Parameters
    ----------
    sources : list of ratio sources, optional
        By default `LeastSquares`, `Additive` and `Gaussian`. EM uses the first source. The others learn from its final
        soft labels, if there are labels to judge their scales.
    n_basis, sigma, rho, floor, random_state, n_threads
        Settings of the default sources, as in `drhmm.DensityRatioHMM`.

    Attributes
    ----------
    sources_ : dict
        The fitted sources by name.
    """

    def __init__(
        self,
        sources: Any = None,
        *,
        n_basis: int | str | None = "auto",
        sigma: float | str = "cv",
        rho: float | str = "cv",
        floor: float = 0.02,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.sources, self.n_basis, self.sigma, self.rho = sources, n_basis, sigma, rho
        self.floor, self.random_state, self.n_threads = floor, random_state, n_threads

    def check_parameters(self) -> None:
        """Raise an error for the first invalid setting."""
        check_number_or_auto(self.n_basis, "n_basis", low=1)
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        thread_count(self.n_threads)
        if self.sources is not None:
            if isinstance(self.sources, str) or not isinstance(self.sources, Sequence) or len(self.sources) == 0:
                raise ValueError(f"sources must be a list of ratio sources, got {self.sources!r}")
            for k, source in enumerate(self.sources):
                check_source(source, f"sources[{k}]")

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Whether all sources learn from sums over frames."""
        return self.sources is None or all(as_learner(source).adds_up for source in self.sources)

    def learners(self) -> list[Learner]:
        """Return unfitted copies of the sources; EM follows the first."""
        random_state = random_state_of(self.random_state)
        if self.sources is None:
            kernels = LeastSquares(
                self.n_basis, self.sigma, self.rho, self.floor, random_state.randint(2**31), self.n_threads
            )
            return [kernels, Additive(self.floor, self.n_threads), Gaussian(self.floor, self.n_threads)]
        return [as_learner(_seeded_copy(source, random_state)) for source in self.sources]

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """Learn each source on its own."""
        self.check_parameters()
        return named([one for learner in self.learners() for one in learner.learn(task, hold_out)])

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Return updates in which the first source follows the soft labels."""
        self.check_parameters()
        first, *others = self.learners()
        return _PoolUpdates(first.updates(task, paper=paper, search=search), others, task)

    def usual_scales(self, n_members: int) -> tuple[Array, Array]:
        """Return the scales of the default members, or equal ones."""
        if self.sources is None and n_members >= N_OF_FRAMES:
            return np.array(START_SCALES[:n_members]), np.array(USUAL_SCALES[:n_members])
        return super().usual_scales(n_members)

    @with_own_threads
    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> Pool:
        """Fit all sources to frames (N, D) and targets (N, S), with the usual scales."""
        frames, targets, weights = as_training(frames, targets, sample_weight)
        check_masses(weights @ targets)
        folds = contiguous_folds([len(frames)])
        trained = self.learn(Task(frames, targets, weights, folds, sample_weight is not None), hold_out=False)
        self.sources_ = {one.name: one.source for one in trained if one.source is not None}
        self.scales_ = dict(zip(self.sources_, self.usual_scales(len(trained))[1].tolist(), strict=True))
        self.n_states_ = targets.shape[1]
        return self

    def log_ratios(self, frames: Any) -> Array:
        """Return the sum of the scaled log ratios of the sources, (n, S)."""
        check_fitted(self, "sources_")
        parts = [
            self.scales_[name] * checked_log_ratios(source, frames, self.n_states_)
            for name, source in self.sources_.items()
            if self.scales_[name] > 0
        ]
        total: Array = np.sum(parts, axis=0)
        return total


class _PoolUpdates:
    """Updates of the first source; the others join after the last soft labels."""

    def __init__(self, updates: Updates, others: Sequence[Learner], task: Task) -> None:
        self.updates, self.others, self.task = updates, others, task

    def __call__(self, targets: Array) -> Array:
        return self.updates(targets)

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        task = replace(self.task, targets=targets)
        joined = [one for other in self.others for one in other.learn(task, True)] if hold_out else []
        return named([*self.updates.trained(targets, hold_out), *joined])


def _seeded_copy(source: Any, random_state: np.random.RandomState) -> Any:
    """Return a copy, with a seed if its random state is None."""
    source = copy.deepcopy(source)
    if getattr(source, "random_state", 0) is None:
        source.random_state = random_state.randint(2**31)
    return source


def source_of(ratio: Any, random_state: np.random.RandomState, paper: bool, **settings: Any) -> Any:
    """Return an unfitted source by name, or a copy; with ``paper``, kernels alone."""
    if isinstance(ratio, str):
        check_choice(ratio, "ratio", ("pool", "least-squares", "gaussian"))
        kind = Pool if ratio == "pool" and not paper else LeastSquares
        source: Any = kind(**settings, random_state=random_state.randint(2**31))
        if ratio == "gaussian":
            source = Gaussian(settings["floor"], settings["n_threads"])
    else:
        source = _seeded_copy(check_source(ratio), random_state)
    if hasattr(source, "check_parameters"):
        source.check_parameters()
    return source


def evidence_of(
    trained: Sequence[Trained], framing: Framing, prior: Array, choice: Choice, past: Context | None = None
) -> Evidence:
    """Build evidence from members of positive scale.

    It consists of arrays if all members are native and of different kinds, and of the sources otherwise.
    """
    used = [(one, scale) for one, scale in zip(trained, choice.scales, strict=True) if scale > 0]
    members = [replace(one.member, scale=float(scale)) for one, scale in used if one.member is not None]
    floors = {float(getattr(one.source, "floor", np.nan)) for one, _ in used if one.source is not None}
    if len({member.NAME for member in members}) == len(used) and len(floors) == 1:
        return pooled_evidence(framing, prior, floors.pop(), members, choice.prior_shift, past)
    sources = {one.name: one.source for one, _ in used if one.source is not None}
    return SourceEvidence(framing, prior, sources, [float(scale) for _, scale in used], choice.prior_shift)
