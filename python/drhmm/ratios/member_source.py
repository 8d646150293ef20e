"""Ratio sources of which everything that is learned is arrays and sums over frames."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._validation import Array, as_samples, check_number, read_only, thread_count
from ..evidence import frame_log_ratios
from ..members import Member, added
from ..selection import contiguous_folds
from .learner import Task, Trained, Updates, _Refits, equal_scales
from .source import as_training, check_fitted, check_masses


class MemberSource(BaseEstimator):  # type: ignore[misc]
    """What the sources share that are members of the native pool; a subclass says how a member begins."""

    adds_up = True

    floor: float
    n_threads: int | None

    def check_parameters(self) -> None:
        """Raise a ValueError that names the first setting out of range."""
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        thread_count(self.n_threads)

    def _begin(self, task: Task, search: bool = True) -> tuple[Member, Array | None]:
        """A member with everything but what sums give, and held-out log ratios if the search has left some."""
        raise NotImplementedError

    def _adopt(self, member: Member, prior: Array) -> Any:
        self.member_, self.prior_ = member, read_only(prior)
        return self

    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> Any:
        """Learn from frames (N, D) without NaN, the probability of each state at each, (N, S), and weights (N,)."""
        frames, targets, weights = as_training(frames, targets, sample_weight)
        check_masses(weights @ targets)
        task = Task(frames, targets, weights, contiguous_folds([len(frames)]))
        return self._fit(task)[0]

    def _fit(self, task: Task, search: bool = True) -> tuple[Any, Array | None]:
        self.check_parameters()
        member, held_out = self._begin(task, search)
        learned = member.learned_from(member.sums(task.frames, task.targets, task.weights))
        return self._adopt(learned, task.prior), held_out

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """A fitted copy; the sums of the other folds give the held-out log ratios of each."""
        fitted, held_out = copy.deepcopy(self)._fit(task)
        if not hold_out:
            held_out = None
        elif held_out is None:
            held_out = fitted.held_out(task)
        return [Trained(fitted.member_.NAME, fitted, fitted.member_, held_out)]

    def held_out(self, task: Task) -> Array:
        """Log ratios (N, S) of the frames of each fold from the member that the sums of the other folds give."""
        folds = np.unique(task.folds)
        parts = {fold: task.rows(task.folds == fold) for fold in folds}
        sums = {fold: self.member_.sums(part.frames, part.targets, part.weights) for fold, part in parts.items()}
        held_out = np.empty_like(task.targets)
        for fold, part in parts.items():
            others = self.member_.learned_from(added(sums[other] for other in folds if other != fold))
            held_out[task.folds == fold] = self._log_ratios(others, part.frames)
        return held_out

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Learned anew in every iteration."""
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
