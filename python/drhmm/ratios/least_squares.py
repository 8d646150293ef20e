"""Density ratios by kernel least squares, for any number of states."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from ..data.checks import Array, check_searched, thread_count
from ..evidence.pool_members import KernelMember
from ..evidence.pooled import least_ratio_of
from ..features.frames import basis_size, check_basis, choose_centers, median_distance, random_state_of
from ..tuning.folds import N_FOLDS
from ..tuning.kernel_search import DEFAULT_RHO, DEFAULT_SIGMA, START_SIGMA, Selection, select
from .learner import Task, Trained, Updates
from .member_source import MemberSource
from .source import check_width, class_shares, without_evidence

#: The largest number of kernel centres in the search for sigma, rho and the evidence scale.
SELECTION_BASIS = 500


class LeastSquares(MemberSource):
    """Density ratios by kernel least squares: one Gram matrix and one Cholesky factor for all states.

    Parameters
    ----------
    n_basis : int, "auto" or None
        Number of kernel centres, drawn from the training frames (all of them if there are fewer). "auto" is 25
        per state, at least 150 and at most 500. None makes every frame a centre, as in the paper. With more than 500
        centres, the search for sigma and rho uses only so many.
    sigma : float or {"cv", "default"}
        Kernel width: a number, cross-validated, or the median distance between centres.
    rho : float or {"cv", "default"}
        Regularisation over the number of training frames (``rho * N`` is added to the diagonal of the Gram matrix):
        a number, cross-validated, or 0.003.
    floor : float
        Smallest posterior estimate, for balanced states: q_i is at least ``min(floor * S, 1/2) * prior_i``. 0 is the
        rule of the paper: one noisy frame can exclude a state.
    random_state : int, RandomState or None
        Seed of the choice of centres.
    n_threads : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    centers_ : ndarray of shape (B, D)
        Kernel centres.
    theta_ : ndarray of shape (B, S)
        Coefficients: ``theta_i^T phi(y)`` estimates p(x = i | y).
    prior_ : ndarray of shape (S,)
        Share of each state in the training frames.
    sigma_, rho_ : float
        The kernel width and the regularisation in use.
    selection_ : Selection or None
        The cross-validation table, if there was one.

    Notes
    -----
    With features ``phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2))``, Theta = (Phi^T Phi + rho N I)^-1 Phi^T M, and
    w_ij(y) = (n_j / n_i) q_i(y) / q_j(y) with q_i(y) = max(theta_i^T phi(y), min(floor S, 1/2) n_i / N). Where nothing
    fits, all ratios are 1.

    Examples
    --------
    >>> from drhmm.datasets import blobs
    >>> from drhmm.ratios import LeastSquares
    >>> frames, y = blobs(300, random_state=0)
    >>> targets = (y[:, None] == [0, 1, 2]).astype(float)  # one-hot
    >>> source = LeastSquares(n_basis=50, random_state=0).fit(frames, targets)
    >>> bool((source.log_ratios(frames).argmax(axis=1) == y).mean() > 0.85)
    True
    """

    def __init__(
        self,
        n_basis: int | str | None = "auto",
        sigma: float | str = "cv",
        rho: float | str = "cv",
        floor: float = 0.02,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_basis = n_basis
        self.sigma = sigma
        self.rho = rho
        self.floor = floor
        self.random_state = random_state
        self.n_threads = n_threads

    def check_parameters(self) -> None:
        """Raise a ValueError that names the first setting out of range."""
        check_basis(self.n_basis)
        check_searched(self.sigma, "sigma")
        check_searched(self.rho, "rho")
        super().check_parameters()

    def _begin(self, task: Task, search: bool = True) -> tuple[KernelMember, Array | None]:
        """Choose centres, sigma and rho; return held-out log ratios of the best if there was a search."""
        n_states = task.targets.shape[1]
        random_state = random_state_of(self.random_state)
        size = basis_size(self.n_basis, len(task.frames), n_states)
        likeliest = np.where(task.targets.any(axis=1), task.targets.argmax(axis=1), -1)
        centers = choose_centers(task.frames, size, random_state, likeliest)
        few = centers if len(centers) <= SELECTION_BASIS else choose_centers(centers, SELECTION_BASIS, random_state)
        sigma, rho, selection = self._settings(task, few, search)
        check_width(sigma, centers)
        self.selection_ = None if selection is None else replace(selection, estimates=None)
        member = KernelMember(centers, np.zeros((len(centers), n_states)), sigma, rho)
        if selection is None or selection.estimates is None:
            return member, None
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(selection.estimates / task.prior, least_ratio_of(float(self.floor), n_states)))
        return member, without_evidence(logs)

    def _adopt(self, member: Any, prior: Array) -> LeastSquares:
        super()._adopt(member, prior)
        self.centers_, self.theta_ = self.member_.centers, self.member_.theta
        self.sigma_, self.rho_ = self.member_.sigma, self.member_.rho
        return self

    def _settings(self, task: Task, centers: Array, search: bool) -> tuple[float, float, Selection | None]:
        """Sigma and rho from numbers, defaults or cross-validation."""
        sigma, rho = self.sigma, self.rho
        median = median_distance(centers if len(centers) > 1 else task.frames[:1000]) if isinstance(sigma, str) else 1.0
        if sigma == "default":
            sigma = DEFAULT_SIGMA * median
        if sigma == "cv" and not search:
            sigma = START_SIGMA * median
        if rho == "default" or (rho == "cv" and not search):
            rho = DEFAULT_RHO
        if "cv" not in (sigma, rho):
            return float(sigma), float(rho), None
        if len(task.frames) < N_FOLDS:
            raise ValueError(
                f"cross-validation of sigma and rho needs at least {N_FOLDS} frames, one per fold, got "
                f"{len(task.frames)}; use sigma='default' and rho='default', or numbers"
            )
        for fold in np.unique(task.folds):
            if not task.weights[task.folds != fold].sum() > 0:
                raise ValueError(
                    f"sample_weight is zero in every frame outside fold {fold}: sigma and rho cannot be "
                    "cross-validated; use sigma='default' and rho='default', or numbers"
                )
        selection = select(
            task.frames,
            task.targets,
            task.weights,
            task.folds,
            centers,
            median,
            None if sigma == "cv" else float(sigma),
            None if rho == "cv" else float(rho),
            None if self.floor == 0 else task.judge,
            thread_count(self.n_threads),
            task.progress,
        )
        return selection.sigma, selection.rho, selection

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Choose centres, sigma and rho from these targets, and factor once for the targets of many iterations."""
        return SoftUpdates(self, task, paper, search)


class SoftUpdates:
    """Least-squares solutions for many targets on the same frames: the Gram matrix is factored once."""

    def __init__(self, source: LeastSquares, task: Task, paper: bool, search: bool) -> None:
        self.source, self.task = copy.deepcopy(source), task
        self.source.check_parameters()
        self.member, _ = self.source._begin(task, search)
        self._factor = None if paper else self._regularized(task.weights)

    def _regularized(self, weights: Array) -> _core.RegularizedGram:
        sums = self.member.sums(self.task.frames, np.ones((len(weights), 1)), weights)
        return _core.RegularizedGram(sums["gram"], self.member.rho * self.task.weights.sum())

    def _solve(self, targets: Array) -> LeastSquares:
        """Theta = (Phi^T W Phi + rho I)^-1 Phi^T W Gamma, or the rule that the paper prints."""
        weighted = self.task.weights[:, None] * targets
        moment = _core.feature_moment(self.task.frames, weighted, self.member.centers, self.member.sigma)
        if self._factor is not None:
            theta = self._factor.solve(moment)
        else:
            # The printed rule puts the soft labels of class i into its own Gram matrix.
            factors = [self._regularized(np.ascontiguousarray(column)) for column in weighted.T]
            columns = [factor.solve(moment[:, [i]].copy()) for i, factor in enumerate(factors)]
            theta = np.ascontiguousarray(np.hstack(columns))
        return self.source._adopt(replace(self.member, theta=theta), class_shares(targets, self.task.weights))

    def __call__(self, targets: Array) -> Array:
        """Learn from the targets, and return the log ratios of the same frames, (N, S)."""
        return self._solve(targets).log_ratios(self.task.frames)

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        """What the targets give."""
        source = copy.deepcopy(self._solve(targets))
        held_out = source.held_out(replace(self.task, targets=targets)) if hold_out else None
        return [Trained(source.member_.NAME, source, source.member_, held_out)]
