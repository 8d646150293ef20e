"""Ratio sources that learn from sums: kernels, additive ratios and Gaussians."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import _core
from ..data.checks import (
    Array,
    as_samples,
    check_number,
    check_number_or_auto,
    check_searched,
    read_only,
    thread_count,
    without_evidence,
)
from ..evidence.pool_members import (
    VARIANCE_SHARE,
    AdditiveMember,
    FrameMember,
    GaussianMember,
    KernelMember,
    Sums,
    added,
)
from ..evidence.pooled import frame_log_ratios, least_ratio_of
from ..features.frames import basis_size, choose_centers, median_distance, random_state_of
from ..system.calls import with_own_threads
from ..tuning.folds import N_FOLDS, contiguous_folds
from ..tuning.kernel_search import DEFAULT_RHO, DEFAULT_SIGMA, START_SIGMA, Selection, select
from .learner import (
    Learner,
    Refits,
    Task,
    Trained,
    Updates,
    as_training,
    check_fitted,
    check_masses,
    check_width,
    class_shares,
    normalised,
)

#: The most kernel centres in the search for sigma, rho and the evidence scale.
SELECTION_BASIS = 500

#: The most feature values that EM keeps in memory, 80 MB.
MOST_FEATURES = 10_000_000

#: The largest ridge of Gaussians in EM.
EM_RIDGE = 1e-4


class MemberSource(Learner, BaseEstimator):  # type: ignore[misc]
    """Base of sources that are native members of the pool."""

    adds_up = True

    member_: Any
    prior_: Array
    n_features_in_: int

    def __init__(self, floor: float = 0.02, n_threads: int | None = None) -> None:
        self.floor, self.n_threads = floor, n_threads

    def check_parameters(self) -> None:
        """Raise ValueError for the first setting out of range."""
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        thread_count(self.n_threads)

    def _begin(self, task: Task, search: bool = True) -> tuple[FrameMember, Array | None]:
        """Set up a member before its sums; also return held-out ratios of a search."""
        raise NotImplementedError

    def _adopt(self, member: Any, prior: Array) -> Any:
        self.member_, self.prior_ = member, read_only(prior)
        return self

    @with_own_threads
    def fit(self, frames: Any, targets: Any, sample_weight: Any = None) -> Any:
        """Learn from frames (N, D), state probabilities (N, S) and weights (N,)."""
        frames, targets, weights = as_training(frames, targets, sample_weight)
        check_masses(weights @ targets)
        task = Task(frames, targets, weights, contiguous_folds([len(frames)]))
        return self._fit(task)[0]

    def _fit(self, task: Task, hold_out: bool = False) -> tuple[Any, Array | None]:
        """Return the fitted source and held-out log ratios from the sums of folds."""
        self.check_parameters()
        self.n_features_in_ = task.frames.shape[1]
        member, held_out = self._begin(task)
        needs_folds = hold_out and held_out is None
        sums = self._sums(member, task, np.unique(task.folds) if needs_folds else None)
        fitted = self._adopt(member.learned_from(added(sums)), task.prior)
        return fitted, self._held_out(member, task, sums) if needs_folds else held_out

    @staticmethod
    def _sums(member: FrameMember, task: Task, folds: Any = None) -> list[Sums]:
        """Return the sums of each fold, or of all frames."""
        parts = [task] if folds is None else [task.rows(task.folds == fold) for fold in folds]
        return [member.sums(part.frames, part.targets, part.weights) for part in parts]

    def _held_out(self, member: FrameMember, task: Task, sums: list[Sums] | None = None, answer: Any = None) -> Array:
        """Log ratios, or an answer, of the drawn frames of a fold by the other folds."""
        judged, folds = task.judged, np.unique(task.folds)
        sums, answer = sums or self._sums(member, task, folds), answer or self._log_ratios
        held_out = np.empty_like(judged.targets)
        for k, fold in enumerate(folds):
            rows = judged.folds == fold
            if rows.any():
                others = member.learned_from(added(sums[:k] + sums[k + 1 :]))
                held_out[rows] = answer(others, judged.frames[rows])
        return held_out

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """Return a fitted copy, with held-out log ratios if requested."""
        fitted, held_out = copy.deepcopy(self)._fit(task, hold_out)
        return [Trained(fitted.member_.NAME, fitted, fitted.member_, held_out if hold_out else None)]

    def _log_ratios(self, member: FrameMember, frames: Array) -> Array:
        return frame_log_ratios(member, self.prior_, float(self.floor), frames, thread_count(self.n_threads))

    def log_ratios(self, frames: Any) -> Array:
        """Return log w_i(y), shape (n, S), up to a constant per row."""
        check_fitted(self, "member_")
        frames = as_samples(frames, "frames")
        if frames.shape[1] != self.n_features_in_:
            raise ValueError(f"frames has {frames.shape[1]} columns, but {self.n_features_in_} were learned from")
        return self._log_ratios(self.member_, frames)


class Additive(MemberSource):
    """Density ratios by additive least squares: lines and decile steps per column.

    Parameters
    ----------
    floor, n_threads
        As in `drhmm.DensityRatioHMM`.

    Attributes
    ----------
    member_ : AdditiveMember
        Range, edges, slopes and steps.
    prior_ : ndarray of shape (S,)
        Share of each state in the training frames.

    Notes
    -----
    The features are 1, the value of each column clipped to the range of the training frames, and an indicator of its
    decile. A ridge of 10 frames draws everything but the intercept to 0. One linear system serves all states; beyond
    200 columns, there is one for every 50, and their differences from the share of a state add up. A few frames
    suffice to learn nearly linear evidence, and steps where a sensor switches.
    """

    def _begin(self, task: Task, search: bool = True) -> tuple[FrameMember, Array | None]:
        return AdditiveMember.before_learning(task.typical_frames, task.targets.shape[1]), None


class Gaussian(MemberSource):
    """Density ratios of one Gaussian per state, with shrunk covariances.

    EM follows the densities themselves, without a floor and with a ridge of at most 1e-4.

    Parameters
    ----------
    floor, n_threads
        As in `Additive`.
    ridge : float
        Share of the variance of each column that is added to all covariances.

    Attributes
    ----------
    member_ : GaussianMember
        Means and whitening matrices.
    prior_ : ndarray of shape (S,)
        Share of each state in the training frames.

    Notes
    -----
    Sigma_i = (scatter_i + (D + 1) Sigma_pooled) / (n_i + D + 1) + ridge diag(variances of all frames). Beyond 200
    columns, blocks of 200 are independent given the state. A few frames per state are enough. With many frames, the
    kernels of a pool correct deviations from Gaussians.
    """

    def __init__(self, floor: float = 0.02, n_threads: int | None = None, ridge: float = VARIANCE_SHARE) -> None:
        super().__init__(floor, n_threads)
        self.ridge = ridge

    def check_parameters(self) -> None:
        """Raise ValueError for the first setting out of range."""
        check_number(self.ridge, "ridge", low=0, low_open=True, high=1)
        super().check_parameters()

    def _begin(self, task: Task, search: bool = True) -> tuple[GaussianMember, None]:
        return GaussianMember.before_learning(task.typical_frames, task.targets.shape[1], float(self.ridge)), None

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Return updates without a floor."""
        return DensityUpdates(Gaussian(0.0, self.n_threads, min(self.ridge, EM_RIDGE)), task)

    def held_out_newest(self, task: Task, n_newest: int) -> Array:
        """Held-out log densities (N, S) of the last columns given the others."""
        return self._held_out(
            self._begin(task)[0], task, answer=lambda others, frames: others.log_densities(frames, n_newest)
        )


class DensityUpdates(Refits):
    """EM updates of Gaussians: log densities relative to one common Gaussian.

    The gain is then the log likelihood up to a constant, which EM does not lower.
    """

    def __init__(self, source: Gaussian, task: Task) -> None:
        super().__init__(source, task)
        (alone,) = source.learn(replace(task, targets=np.ones((len(task.frames), 1))), False)
        assert isinstance(alone.member, GaussianMember)
        self._alone = alone.member.log_densities(task.frames)

    def __call__(self, targets: Array) -> Array:
        """Refit and return the log ratios of the frames, (N, S)."""
        (trained,) = self.trained(targets, hold_out=False)
        assert isinstance(trained.member, GaussianMember)
        return trained.member.log_densities(self.task.frames) - self._alone


class LeastSquares(MemberSource):
    """Density ratios by kernel least squares, with one factorisation for all states.

    Parameters
    ----------
    n_basis, sigma, rho, floor, random_state, n_threads
        As in `drhmm.DensityRatioHMM`. With more than 500 centres, the search for sigma and rho uses 500 of them.

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
    w_ij(y) = (n_j / n_i) q_i(y) / q_j(y) with q_i(y) = max(theta_i^T phi(y), min(floor S, 1/2) n_i / N). Far from all
    centres, all ratios are 1.
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
        self.n_basis, self.sigma, self.rho, self.floor = n_basis, sigma, rho, floor
        self.random_state, self.n_threads = random_state, n_threads

    def check_parameters(self) -> None:
        """Raise ValueError for the first setting out of range."""
        check_number_or_auto(self.n_basis, "n_basis", low=1)
        check_searched(self.sigma, "sigma")
        check_searched(self.rho, "rho")
        super().check_parameters()

    def _begin(self, task: Task, search: bool = True) -> tuple[KernelMember, Array | None]:
        """Choose centres, sigma and rho; return held-out log ratios of a search."""
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
        if selection is None or selection.estimates is None or task.drawn is not None:
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
        """Return sigma and rho: given, default or cross-validated."""
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
        task, advice = task.judged, "use sigma='default' and rho='default', or numbers"
        if len(task.frames) < N_FOLDS:
            needed = f"cross-validation of sigma and rho needs at least {N_FOLDS} frames, one per fold"
            raise ValueError(f"{needed}, got {len(task.frames)}; {advice}")
        for fold in np.unique(task.folds):
            if not task.weights[task.folds != fold].sum() > 0:
                problem = f"sample_weight is zero in every frame outside fold {fold}"
                raise ValueError(f"{problem}: sigma and rho cannot be cross-validated; {advice}")
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
        """Choose centres, sigma and rho for these targets, and factor once."""
        return FactoredLeastSquares(self, task, paper, search)


class FactoredLeastSquares:
    """Least-squares solutions for many targets from one factorisation.

    Above `MOST_FEATURES` numbers, features are evaluated again in every iteration.
    """

    def __init__(self, source: LeastSquares, task: Task, paper: bool, search: bool) -> None:
        self.source, self.task = copy.deepcopy(source), task
        self.source.check_parameters()
        self.source.n_features_in_ = task.frames.shape[1]
        self.member, _ = self.source._begin(task, search)
        self._features = None
        if len(task.frames) * len(self.member.centers) <= MOST_FEATURES:
            self._features = _core.squared_exponential(task.frames, self.member.centers, self.member.sigma)
        self._factor = None if paper else self._regularized(task.weights)

    def _regularized(self, weights: Array) -> _core.RegularizedGram:
        sums = self.member.sums(self.task.frames, np.ones((len(weights), 1)), weights)
        return _core.RegularizedGram(sums["gram"], self.member.rho * self.task.weights.sum())

    def _solve(self, targets: Array) -> LeastSquares:
        """Theta = (Phi^T W Phi + rho I)^-1 Phi^T W Gamma, or the rule of the paper."""
        weighted = self.task.weights[:, None] * targets
        if self._features is not None:
            moment = np.ascontiguousarray(self._features.T @ weighted)
        else:
            moment = _core.feature_moment(self.task.frames, weighted, self.member.centers, self.member.sigma)
        if self._factor is not None:
            theta = self._factor.solve(moment)
        else:
            # The rule of the paper weights the Gram matrix of each class by its soft labels.
            factors = [self._regularized(np.ascontiguousarray(column)) for column in weighted.T]
            columns = [factor.solve(moment[:, [i]].copy()) for i, factor in enumerate(factors)]
            theta = np.ascontiguousarray(np.hstack(columns))
        return self.source._adopt(replace(self.member, theta=theta), class_shares(targets, self.task.weights))

    def __call__(self, targets: Array) -> Array:
        """Learn from targets; return the log ratios of the frames, (N, S)."""
        solved = self._solve(targets)
        if self._features is None:
            return normalised(solved.log_ratios(self.task.frames), solved.prior_)
        least = least_ratio_of(float(solved.floor), targets.shape[1])
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(self._features @ solved.theta_ / solved.prior_, least))
        return normalised(without_evidence(logs), solved.prior_)

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        """Return the members for the last targets."""
        source = copy.deepcopy(self._solve(targets))
        held_out = source._held_out(source.member_, replace(self.task, targets=targets)) if hold_out else None
        return [Trained(source.member_.NAME, source, source.member_, held_out)]
