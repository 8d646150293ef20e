"""What learning needs from ratio sources: learn, hold out, follow soft labels, and become evidence.

`Learner` is a source as `learning.py` sees it. The sources of this package are learners. `Adapter` makes a learner of
any object with the two methods of a ratio source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..data.checks import Array
from ..evidence.pool_members import Member
from ..system.progress import Progress, no_progress
from ..tuning.kernel_search import Judge
from .source import RatioSource, checked_log_ratios, class_shares, fit_copy

#: The fewest frames of a class outside a fold with which a source is fitted to that class.
FEWEST_FRAMES = 2


@dataclass(frozen=True)
class Task:
    """Frames (N, D) to learn from, the probability of each state at each, (N, S), their weights and folds, (N,).

    ``judge`` says how good held-out estimates are, if there are labels. ``weighted`` says whether weights were given.
    """

    frames: Array
    targets: Array
    weights: Array
    folds: npt.NDArray[np.int64]
    weighted: bool = False
    judge: Judge | None = None
    progress: Progress = no_progress

    @property
    def prior(self) -> Array:
        """Share of each class."""
        return class_shares(self.targets, self.weights)

    @property
    def given_weights(self) -> Array | None:
        """The weights, or None if none were given."""
        return self.weights if self.weighted else None

    def rows(self, chosen: npt.NDArray[Any]) -> Task:
        """Some of the frames."""
        return replace(
            self,
            frames=np.ascontiguousarray(self.frames[chosen]),
            targets=np.ascontiguousarray(self.targets[chosen]),
            weights=np.ascontiguousarray(self.weights[chosen]),
            folds=self.folds[chosen],
        )


@dataclass(frozen=True)
class Trained:
    """A fitted source and its name in a pool; None stands for a member that reads more than frames.

    ``member`` has the arrays of a native member. ``held_out`` has the log ratios (N, S) of the frames of each fold,
    learned from the other folds, if they were asked for.
    """

    name: str
    source: RatioSource | None
    member: Member | None = None
    held_out: Array | None = None


class Updates(Protocol):
    """Learns from the soft labels of each iteration of EM."""

    def __call__(self, targets: Array) -> Array:
        """Learn from targets (N, S), and return the log ratios of the same frames, (N, S)."""
        ...

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        """The members that the last soft labels give. Without held-out log ratios, only those that took part in EM."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A ratio source as learning sees it."""

    #: Whether it learns only sums over frames, which partial_fit and clusters can add up.
    adds_up: bool

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """Fitted members, with their held-out log ratios if these are asked for."""
        ...

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Updates for EM. Without a search, fixed settings replace cross-validation."""
        ...

    def usual_scales(self, n_members: int) -> tuple[Array, Array]:
        """The scales at which the search starts, and those to use without enough labels, (M,) each."""
        ...


def equal_scales(n_members: int) -> tuple[Array, Array]:
    """The same scale for all members; the scales sum to 1."""
    scales = np.full(n_members, 1 / n_members)
    return scales, scales


class Adapter:
    """Makes a learner of any source with the methods fit and log_ratios."""

    adds_up = False

    def __init__(self, source: RatioSource) -> None:
        self.source = source

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """One fitted copy, and one more for every fold."""
        fitted = fit_copy(self.source, task.frames, task.targets, task.given_weights)
        return [Trained(type(self.source).__name__, fitted, held_out=self._held_out(task) if hold_out else None)]

    def _held_out(self, task: Task) -> Array:
        """Log ratios of every frame from a copy of the source that was fitted without the frame's fold.

        A class with fewer than two frames outside the fold is left out, and gets the smallest ratio of the others.
        """
        log_ratios = np.full_like(task.targets, np.nan)
        for fold in np.unique(task.folds):
            held_out, others = task.folds == fold, task.rows(task.folds != fold)
            enough = np.flatnonzero(others.targets.sum(axis=0) >= FEWEST_FRAMES)
            if len(enough) < min(2, task.targets.shape[1]):
                continue
            known = others.rows(others.targets[:, enough].sum(axis=1) > 0)
            targets = np.ascontiguousarray(known.targets[:, enough])
            fitted = fit_copy(self.source, known.frames, targets, known.given_weights)
            own = checked_log_ratios(fitted, task.frames[held_out], len(enough))
            filled = np.repeat(own.min(axis=1, keepdims=True), task.targets.shape[1], axis=1)
            filled[:, enough] = own
            log_ratios[held_out] = filled
        return log_ratios

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Fit the source again in every iteration."""
        return _Refits(self, task)

    def usual_scales(self, n_members: int) -> tuple[Array, Array]:
        """Scale 1."""
        return equal_scales(n_members)


class _Refits:
    """Updates of a learner that starts over in every iteration."""

    def __init__(self, learner: Learner, task: Task) -> None:
        self.learner, self.task = learner, task

    def __call__(self, targets: Array) -> Array:
        (trained,) = self.trained(targets, hold_out=False)
        assert trained.source is not None
        return checked_log_ratios(trained.source, self.task.frames, targets.shape[1])

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        return self.learner.learn(replace(self.task, targets=targets), hold_out)


def as_learner(source: RatioSource) -> Learner:
    """The source itself if it is a learner, else a learner that uses it."""
    return source if isinstance(source, Learner) else Adapter(source)


def named(trained: Sequence[Trained]) -> list[Trained]:
    """Give members distinct names: a repeated name gets a number."""
    seen: dict[str, int] = {}
    renamed = []
    for one in trained:
        seen[one.name] = seen.get(one.name, 0) + 1
        renamed.append(one if seen[one.name] == 1 else replace(one, name=f"{one.name} {seen[one.name]}"))
    return renamed
