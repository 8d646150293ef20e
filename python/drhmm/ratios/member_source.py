"""Ratio sources that learn only arrays and sums over frames."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..data.checks import Array, as_samples, check_number, read_only, thread_count
from ..evidence.pool_members import Member, Sums, added
from ..evidence.pooled import frame_log_ratios
from ..system.threads import with_own_threads
from ..tuning.folds import contiguous_folds
from .learner import Task, Trained, Updates, _Refits, equal_scales
from .source import as_training, check_fitted, check_masses


class MemberSource(BaseEstimator):  # type: ignore[misc]
    """The base of all sources that are members of the native pool. A subclass says how a member begins."""

    adds_up = True

    floor: float
    n_threads: int | None
    member_: Any
    prior_: Array

    def check_parameters(self) -> None:
        """Raise a ValueError that names the first setting out of range."""
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        thread_count(self.n_threads)

    def _begin(self, task: Task, search: bool = True) -> tuple[Member, Array | None]:
        """A member before its sums are known, and held-out log ratios if the search computed them."""
        raise NotImplementedError

    def _adopt(self, member: Any, prior: Array) -> Any:
        self.member_, self.prior_ = member, read_only(prior)
        return self

    @with_own_threads
    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> Any:
        """Learn from frames (N, D) without NaN, the probability of each state at each, (N, S), and weights (N,)."""
        frames, targets, weights = as_training(frames, targets, sample_weight)
        check_masses(weights @ targets)
        task = Task(frames, targets, weights, contiguous_folds([len(frames)]))
        return self._fit(task)[0]

    def _fit(self, task: Task, hold_out: bool = False) -> tuple[Any, Array | None]:
        """The fitted source, and held-out log ratios; both use the sums of the folds."""
        self.check_parameters()
        member, held_out = self._begin(task)
        needs_folds = hold_out and held_out is None
        sums = self._sums(member, task, np.unique(task.folds) if needs_folds else None)
        fitted = self._adopt(member.learned_from(added(sums)), task.prior)
        return fitted, self._held_out(member, task, sums) if needs_folds else held_out

    @staticmethod
    def _sums(member: Member, task: Task, folds: Any = None) -> list[Sums]:
        """The sums of each fold, or of everything."""
        parts = [task] if folds is None else [task.rows(task.folds == fold) for fold in folds]
        return [member.sums(part.frames, part.targets, part.weights) for part in parts]

    def _held_out(self, member: Member, task: Task, sums: list[Sums]) -> Array:
        """Log ratios (N, S) of the frames of each fold, from the member learned on the other folds."""
        held_out = np.empty_like(task.targets)
        for k, fold in enumerate(np.unique(task.folds)):
            others = member.learned_from(added(sums[:k] + sums[k + 1 :]))
            rows = task.folds == fold
            held_out[rows] = self._log_ratios(others, task.frames[rows])
        return held_out

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """A fitted copy, with held-out log ratios if asked for."""
        fitted, held_out = copy.deepcopy(self)._fit(task, hold_out)
        return [Trained(fitted.member_.NAME, fitted, fitted.member_, held_out if hold_out else None)]

    def held_out(self, task: Task) -> Array:
        """Held-out log ratios (N, S) for the targets of a task. Only the sums of the member are learned again."""
        return self._held_out(self.member_, task, self._sums(self.member_, task, np.unique(task.folds)))

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Learn again in every iteration."""
        return _Refits(self, task)

    def usual_scales(self, n_members: int) -> tuple[Array, Array]:
        """Scale 1."""
        return equal_scales(n_members)

    def _log_ratios(self, member: Member, frames: Array) -> Array:
        return frame_log_ratios(member, self.prior_, float(self.floor), frames, thread_count(self.n_threads))

    def log_ratios(self, frames: Any) -> Array:
        """Log w_i(y), shape (n, S), up to a constant per row."""
        check_fitted(self, "member_")
        frames = as_samples(frames, "frames")
        n_columns = self._n_columns()
        if frames.shape[1] != n_columns:
            raise ValueError(f"frames has {frames.shape[1]} columns, but {n_columns} were learned from")
        return self._log_ratios(self.member_, frames)

    def _n_columns(self) -> int:
        axes = {name: letters.split() for name, letters in self.member_.AXES.items()}
        name = next(name for name, letters in axes.items() if "D" in letters)
        return int(getattr(self.member_, name).shape[axes[name].index("D")])
