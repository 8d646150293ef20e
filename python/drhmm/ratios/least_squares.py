"""Density ratios by kernel least squares, for any number of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from .. import _core
from .._threads import with_own_threads
from .._validation import Array, as_samples, check_integer, check_number, check_searched, read_only, thread_count
from ..evidence import KernelEvidence
from ..features import Framing, choose_centers, median_distance, random_state_of
from ..progress import Progress, no_progress
from ..selection import DEFAULT_RHO, DEFAULT_SIGMA, N_FOLDS, Judge, Selection, contiguous_folds, select
from .source import as_training, check_fitted, check_masses, check_width


class LeastSquares(BaseEstimator):  # type: ignore[misc]
    """Density ratios by kernel least squares: one Gram matrix and one Cholesky factor for all states.

    Parameters
    ----------
    n_basis : int
        Number of kernel centres, drawn from the training frames (all of them when there are fewer).
    sigma : float or {"cv", "default"}
        Kernel width: a number, cross-validated, or the median distance between centres.
    rho : float or {"cv", "default"}
        Regularisation over the number of training frames (``rho * N`` is added to the diagonal of the Gram matrix):
        a number, cross-validated, or 0.003.
    floor : float
        Smallest posterior estimate, for balanced states: q_i is at least ``floor * S * prior_i``. 0 is the rule of
        the paper, by which one noisy frame can exclude a state.
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
        Kernel width and regularisation that were used.
    selection_ : Selection or None
        The cross-validation table, if there was one.

    Notes
    -----
    With features ``phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2))``, Theta = (Phi^T Phi + rho N I)^-1 Phi^T M, and
    w_ij(y) = (n_j / n_i) q_i(y) / q_j(y) with q_i(y) = max(theta_i^T phi(y), floor S n_i / N): where nothing fits, all
    ratios are 1.
    """

    def __init__(
        self,
        n_basis: int = 500,
        sigma: float | str = "cv",
        rho: float | str = "cv",
        floor: float = 0.01,
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
        check_integer(self.n_basis, "n_basis", low=1)
        check_searched(self.sigma, "sigma")
        check_searched(self.rho, "rho")
        check_number(self.floor, "floor", low=0, high=1, high_open=True)
        thread_count(self.n_threads)

    @with_own_threads
    def fit(
        self,
        frames: Any,
        targets: Any,
        sample_weight: Any = None,
        *,
        folds: npt.NDArray[np.int64] | None = None,
        judge: Judge | None = None,
        progress: Progress = no_progress,
    ) -> LeastSquares:
        """Learn from frames (N, D) and targets (N, S).

        Parameters
        ----------
        frames : array of shape (N, D)
            Training frames without NaN.
        targets : array of shape (N, S)
            Probability of each state at each frame.
        sample_weight : array of shape (N,), optional
            Weight of each frame.
        folds : array of int of shape (N,), optional
            Fold of each frame for cross-validation; five contiguous blocks by default.
        judge : callable, optional
            From held-out estimates of p(x = i | y), (N, S), to a loss; the squared error by default.
        progress : callable, optional
            Told of every sigma that has been tried.

        Returns
        -------
        LeastSquares
            Itself.
        """
        frames, targets, weights = as_training(frames, targets, sample_weight)
        check_masses(weights @ targets)
        updates = self.soft_updates(frames, targets, weights, folds, judge=judge, progress=progress)
        updates.solve(targets)
        return self.adopt(updates)

    def soft_updates(
        self,
        frames: Array,
        targets: Array,
        weights: Array,
        folds: npt.NDArray[np.int64] | None = None,
        *,
        judge: Judge | None = None,
        progress: Progress = no_progress,
        paper: bool = False,
    ) -> SoftUpdates:
        """Centres, sigma, rho (from these targets) and one factor, ready for the targets of many iterations."""
        self.check_parameters()
        likeliest = np.where(targets.any(axis=1), targets.argmax(axis=1), -1)
        centers = choose_centers(frames, self.n_basis, random_state_of(self.random_state), likeliest)
        sigma, rho, selection = self._settings(frames, targets, weights, folds, centers, judge, progress)
        check_width(sigma, centers)
        return SoftUpdates(
            frames, weights, centers, sigma, rho, float(self.floor), selection, thread_count(self.n_threads), paper
        )

    def adopt(self, updates: SoftUpdates) -> LeastSquares:
        """Take over what the last update learned."""
        self.centers_, self.theta_ = read_only(updates.centers), read_only(updates.theta)
        self.prior_ = read_only(updates.prior)
        self.sigma_, self.rho_, self.selection_ = updates.sigma, updates.rho, updates.selection
        return self

    def _settings(
        self,
        frames: Array,
        targets: Array,
        weights: Array,
        folds: npt.NDArray[np.int64] | None,
        centers: Array,
        judge: Judge | None,
        progress: Progress,
    ) -> tuple[float, float, Selection | None]:
        """Sigma and rho from numbers, defaults or cross-validation."""
        sigma, rho = self.sigma, self.rho
        median = median_distance(centers if len(centers) > 1 else frames[:1000]) if isinstance(sigma, str) else 1.0
        if sigma == "default":
            sigma = DEFAULT_SIGMA * median
        if rho == "default":
            rho = DEFAULT_RHO
        if "cv" not in (sigma, rho):
            return float(sigma), float(rho), None
        if len(frames) < N_FOLDS:
            raise ValueError(
                f"cross-validation of sigma and rho needs at least {N_FOLDS} frames, one per fold, got {len(frames)}; "
                "use sigma='default' and rho='default', or numbers"
            )
        if folds is None:
            folds = contiguous_folds([len(frames)])
        for fold in np.unique(folds):
            if not weights[folds != fold].sum() > 0:
                raise ValueError(
                    f"sample_weight is zero in every frame outside fold {fold}: sigma and rho cannot be "
                    "cross-validated; use sigma='default' and rho='default', or numbers"
                )
        selection = select(
            frames,
            targets,
            weights,
            folds,
            centers,
            median,
            None if sigma == "cv" else float(sigma),
            None if rho == "cv" else float(rho),
            judge,
            thread_count(self.n_threads),
            progress,
        )
        return selection.sigma, selection.rho, selection

    def out_of_fold_log_ratios(
        self, frames: Array, targets: Array, weights: Array, folds: npt.NDArray[np.int64]
    ) -> Array:
        """Log ratios of every frame, learned from the other folds with the centres, sigma and rho of `fit`."""
        n_states = targets.shape[1]
        parts = {}
        for fold in np.unique(folds):
            rows = folds == fold
            parts[fold] = _core.GramStatistics(len(self.centers_), n_states)
            parts[fold].add(frames[rows], targets[rows], weights[rows], self.centers_, self.sigma_)
        log_ratios = np.empty_like(targets)
        for fold in parts:
            rows = folds == fold
            training = _core.GramStatistics(len(self.centers_), n_states)
            for other in parts:
                if other != fold:
                    training.merge(parts[other])
            theta = _core.RegularizedGram(training.gram, self.rho_ * weights[~rows].sum()).solve(training.moment)
            evidence = KernelEvidence(
                _plain(frames.shape[1]), self.centers_, self.sigma_, theta, self.prior_, float(self.floor), 1.0
            )
            log_ratios[rows] = evidence.log_ratios(frames[rows], [int(rows.sum())], thread_count(self.n_threads))
        return log_ratios

    def evidence(self, framing: Framing, evidence_scale: float = 1.0) -> KernelEvidence:
        """What was learned, as arrays for inference."""
        return KernelEvidence(
            framing, self.centers_, self.sigma_, self.theta_, self.prior_, float(self.floor), evidence_scale
        )

    def log_ratios(self, frames: Any) -> Array:
        """Log w_i(y), shape (n, S), up to a constant per row."""
        check_fitted(self, "centers_")
        frames = as_samples(frames, "frames")
        n_columns = self.centers_.shape[1]
        if frames.shape[1] != n_columns:
            raise ValueError(f"frames has {frames.shape[1]} columns, but {n_columns} were learned from")
        evidence = self.evidence(_plain(n_columns))
        return evidence.log_ratios(frames, [len(frames)], thread_count(self.n_threads))


class SoftUpdates:
    """Least-squares solutions for many targets on the same frames: the Gram matrix is factored once.

    Attributes
    ----------
    theta : ndarray of shape (B, S)
        Coefficients of the last targets.
    prior : ndarray of shape (S,)
        Shares of the states in the last targets.
    """

    def __init__(
        self,
        frames: Array,
        weights: Array,
        centers: Array,
        sigma: float,
        rho: float,
        floor: float,
        selection: Selection | None,
        n_threads: int,
        paper: bool,
    ) -> None:
        self.frames, self.weights, self.centers = frames, weights, centers
        self.sigma, self.rho, self.floor, self.selection = sigma, rho, floor, selection
        self.n_threads, self.paper = n_threads, paper
        self._factor = None if paper else self._regularized(weights)

    def _regularized(self, weights: Array) -> _core.RegularizedGram:
        statistics = _core.GramStatistics(len(self.centers), 1)
        statistics.add(self.frames, np.ones((len(self.frames), 1)), weights, self.centers, self.sigma)
        return _core.RegularizedGram(statistics.gram, self.rho * self.weights.sum())

    def solve(self, targets: Array) -> None:
        """Theta = (Phi^T W Phi + rho I)^-1 Phi^T W Gamma, or the rule that the paper prints."""
        weighted = self.weights[:, None] * targets
        moment = _core.feature_moment(self.frames, weighted, self.centers, self.sigma)
        if self._factor is not None:
            self.theta = self._factor.solve(moment)
        else:
            # The printed rule has the soft labels of class i inside its own Gram matrix.
            factors = [self._regularized(np.ascontiguousarray(column)) for column in weighted.T]
            columns = [factor.solve(moment[:, [i]].copy()) for i, factor in enumerate(factors)]
            self.theta = np.ascontiguousarray(np.hstack(columns))
        self.prior = weighted.sum(axis=0) / weighted.sum()

    def __call__(self, targets: Array) -> Array:
        """Learn from the targets; log ratios of the same frames, (N, S)."""
        self.solve(targets)
        evidence = KernelEvidence(
            _plain(self.frames.shape[1]), self.centers, self.sigma, self.theta, self.prior, self.floor, 1.0
        )
        return evidence.log_ratios(self.frames, [len(self.frames)], self.n_threads)


def _plain(n_columns: int) -> Framing:
    """Frames that are ready: no window, no standardisation."""
    return Framing(np.zeros(n_columns), np.ones(n_columns))
