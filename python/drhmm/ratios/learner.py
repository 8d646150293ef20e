"""Ratio sources, and their interface to learning.

`RatioSource` is the interface for users. `Learner` adds methods for `learning/`: learn, hold out, follow soft labels.
The sources of this package are learners; `Adapter` wraps any other ratio source.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..data.checks import LARGEST, Array, as_floats, as_samples, checked_log_ratios
from ..evidence.pool_members import Member
from ..system.progress import Progress
from ..tuning.kernel_search import Judge

#: The fewest frames of a class outside a fold for fitting the class.
FEWEST_FRAMES = 2


@runtime_checkable
class RatioSource(Protocol):
    """The two methods of a ratio source: fit, and log ratios of new frames.

    Examples
    --------
    >>> import numpy as np
    >>> import drhmm
    >>> class NearestMean:
    ...     def fit(self, frames, targets):
    ...         self.means_ = targets.T @ frames / targets.sum(axis=0)[:, None]
    ...         return self
    ...
    ...     def log_ratios(self, frames):
    ...         return -np.square(frames[:, None] - self.means_).sum(axis=2) / 2
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> bool(drhmm.DensityRatioHMM(ratio=NearestMean(), random_state=0).fit(X, y).score(X, y) > 0.8)
    True
    """

    def fit(self, frames: Array, targets: Array) -> Any:
        """Learn from frames (N, D) and the probabilities of states (N, S)."""
        ...

    def log_ratios(self, frames: Array) -> Array:
        """Return log w_i(y), shape (n, S), up to a constant per row.

        -inf excludes a state; a row that excludes every state, or is NaN, carries no evidence.
        """
        ...


def check_source(source: Any, name: str = "ratio") -> RatioSource:
    """Raise TypeError for a source without one of the two methods."""
    if isinstance(source, type):
        raise TypeError(f"{name} is the class {source.__name__}: give an object, {source.__name__}(...)")
    for method in ("fit", "log_ratios"):
        if not callable(getattr(source, method, None)):
            raise TypeError(f"{name} must have the methods fit and log_ratios; {source!r} has no {method}")
    checked: RatioSource = source
    return checked


def check_fitted(source: Any, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError for an unfitted source."""
    check_is_fitted(source, attribute, msg="this %(name)s is not fitted yet: call fit(frames, targets) first")


def accepts_weights(fit: Any) -> bool:
    """Test whether a fit method has a parameter `sample_weight`."""
    return "sample_weight" in inspect.signature(fit).parameters


def fit_copy(source: RatioSource, frames: Array, targets: Array, weights: Array | None) -> RatioSource:
    """Fit a copy of a source; the original does not change."""
    fitted = copy.deepcopy(source)
    if weights is None:
        fitted.fit(frames, targets)
    elif accepts_weights(fitted.fit):
        fitted.fit(frames, targets, sample_weight=weights)  # type: ignore[call-arg]
    else:
        raise ValueError(
            f"sample_weight or class_weight was given, but the fit of {source!r} does not take sample_weight"
        )
    return fitted


def as_training(frames: Any, targets: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Check frames (N, D), targets (N, S) and weights (N,) for learning."""
    frames, targets = as_samples(frames, "frames"), _as_targets(targets)
    weights = np.ones(len(frames)) if sample_weight is None else as_floats(sample_weight, "sample_weight")
    if len(targets) != len(frames) or weights.shape != (len(frames),):
        raise ValueError(
            f"targets and sample_weight must have one row per frame: {len(frames)} frames, targets of shape "
            f"{targets.shape}, sample_weight of shape {weights.shape}"
        )
    for name, values, low in (("frames", frames, -LARGEST), ("targets", targets, 0.0), ("sample_weight", weights, 0.0)):
        for place in map(tuple, np.argwhere(~((values >= low) & (values <= LARGEST))).tolist()):
            raise ValueError(f"{name} has {values[place]} at {place}: must be from {low:g} to {LARGEST:g}")
    return frames, targets, weights


def _as_targets(targets: Any) -> Array:
    shape = targets.shape if hasattr(targets, "shape") else np.asarray(targets, dtype=object).shape
    if len(shape) == 1:
        raise ValueError(
            f"targets must have two dimensions, got shape {shape}: they are the probability of each state at each "
            "frame, (N, S); labels y become targets by (y[:, None] == np.unique(y)).astype(float)"
        )
    return as_samples(targets, "targets")


def check_masses(masses: Array) -> None:
    """Raise ValueError for states with almost no mass, which would divide by zero."""
    state, least = int(masses.argmin()), float(masses.min())
    if not least > 0:
        raise ValueError(f"state {state} has no frame of positive weight in targets")
    if least < masses.sum() / LARGEST:
        raise ValueError(
            f"targets give state {state} a mass of {least:g} of {masses.sum():g}: too little to learn from"
        )


def check_width(sigma: float, centers: Array) -> None:
    """Raise ValueError for kernels so narrow that scaled distances overflow."""
    apart = float(np.abs(centers - centers.mean(axis=0)).max())
    # The core multiplies centres by each other, and by samples of the largest allowed size.
    if apart * max(apart, LARGEST) > LARGEST**3 * sigma**2:
        raise ValueError(f"sigma={sigma:g} is too small for centres that are {apart:g} from their mean")


def normalised(log_ratios: Array, prior: Array) -> Array:
    """Normalise log w_i(y), shape (n, S), so that sum_i p_i w_i(y) = 1.

    Ratios to the density of all frames are comparable between sources.
    """
    with np.errstate(divide="ignore"):
        total = np.logaddexp.reduce(log_ratios + np.log(prior), axis=1)
    return log_ratios - np.where(np.isfinite(total), total, 0.0)[:, None]


def hard_or_repeated(
    fit: Any, name: str, frames: Array, targets: Array, weights: Array, are_given: bool
) -> tuple[Array, npt.NDArray[np.int64], dict[str, Array]]:
    """Return frames with one class each, and their weights as arguments of `fit`.

    Certain targets become labels. Soft targets become one weighted copy of the frame per class if `fit` takes weights,
    and the likeliest class if it does not. A class that is never the likeliest keeps its two best frames.
    """
    is_certain, can_weight = (targets.max(axis=1) == 1.0).all(), accepts_weights(fit)
    if are_given and not can_weight:
        raise ValueError(f"{name} does not take sample_weight")
    if can_weight and not is_certain:
        rows, classes = np.nonzero(targets > 1e-6)
        return frames[rows], classes, {"sample_weight": weights[rows] * targets[rows, classes]}
    classes = targets.argmax(axis=1)
    for state in () if is_certain else range(targets.shape[1]):
        if np.sum(classes == state) < 2:
            classes[np.argsort(targets[:, state], kind="stable")[-2:]] = state
    return frames, classes, {"sample_weight": weights} if are_given else {}


def class_shares(targets: Array, weights: Array) -> Array:
    """Return the share of each class in the training frames."""
    mass = weights @ targets
    shares: Array = mass / mass.sum()
    return shares


@dataclass(frozen=True)
class Task:
    """Frames (N, D) with state probabilities (N, S), weights and folds (N,).

    ``judge`` scores held-out estimates, if there are labels. ``weighted`` says whether weights were given. ``drawn``
    are the frames for judging members, in ascending order; None is all.
    """

    frames: Array
    targets: Array
    weights: Array
    folds: npt.NDArray[np.int64]
    weighted: bool = False
    drawn: npt.NDArray[np.int64] | None = None
    judge: Judge | None = None
    progress: Progress | None = None

    @cached_property
    def prior(self) -> Array:
        """Share of each class."""
        return class_shares(self.targets, self.weights)

    @property
    def judged(self) -> Task:
        """The frames for judging members."""
        return self if self.drawn is None else self.rows(self.drawn)

    @property
    def typical_frames(self) -> Array:
        """The drawn frames of positive weight; all such frames if none was drawn."""
        judged = self.judged
        frames: Array = judged.frames[judged.weights > 0]
        return frames if len(frames) > 0 else self.frames[self.weights > 0]

    @property
    def given_weights(self) -> Array | None:
        """The weights, or None if none were given."""
        return self.weights if self.weighted else None

    def rows(self, chosen: npt.NDArray[Any]) -> Task:
        """Select rows of the frames."""
        return replace(
            self,
            frames=np.ascontiguousarray(self.frames[chosen]),
            targets=np.ascontiguousarray(self.targets[chosen]),
            weights=np.ascontiguousarray(self.weights[chosen]),
            folds=self.folds[chosen],
            drawn=None,
        )


@dataclass(frozen=True)
class Trained:
    """A fitted source (None for members with a context) and its name in a pool.

    ``member`` has the arrays of a native member. ``held_out`` has the log ratios of the drawn frames, learned from the
    other folds, if requested.
    """

    name: str
    source: RatioSource | None
    member: Member | None = None
    held_out: Array | None = None


class Updates(Protocol):
    """Learner for the soft labels of each iteration of EM."""

    def __call__(self, targets: Array) -> Array:
        """Learn from targets (N, S); return the log ratios of the frames, (N, S)."""
        ...

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        """Return the members after the last soft labels.

        Without `hold_out`, return only those that took part in EM.
        """
        ...


class Learner:
    """Base of the ratio sources with the interface to learning."""

    #: Whether all statistics are sums over frames, as partial_fit and clusters need.
    adds_up = False

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """Return fitted members, with held-out log ratios if requested."""
        raise NotImplementedError

    def updates(self, task: Task, *, paper: bool = False, search: bool = True) -> Updates:
        """Return updates for EM; without a search, settings are fixed."""
        return Refits(self, task)

    def usual_scales(self, n_members: int) -> tuple[Array, Array]:
        """Return the initial scales, and the scales for too few labels, (M,) each."""
        equal = np.full(n_members, 1 / n_members)
        return equal, equal


class Adapter(Learner):
    """A learner around any ratio source."""

    def __init__(self, source: RatioSource) -> None:
        self.source = source

    def learn(self, task: Task, hold_out: bool) -> list[Trained]:
        """Fit one copy, and one more per fold."""
        fitted = fit_copy(self.source, task.frames, task.targets, task.given_weights)
        return [Trained(type(self.source).__name__, fitted, held_out=self._held_out(task) if hold_out else None)]

    def _held_out(self, task: Task) -> Array:
        """Log ratios of the drawn frames by copies fitted without their folds.

        A class with fewer than two frames outside the fold is left out, and gets the smallest ratio of the others.
        """
        judged = task.judged
        log_ratios = np.full_like(judged.targets, np.nan)
        for fold in np.unique(judged.folds):
            held_out, others = judged.folds == fold, task.rows(task.folds != fold)
            enough = np.flatnonzero(others.targets.sum(axis=0) >= FEWEST_FRAMES)
            if len(enough) < min(2, task.targets.shape[1]):
                continue
            known = others.rows(others.targets[:, enough].sum(axis=1) > 0)
            targets = np.ascontiguousarray(known.targets[:, enough])
            fitted = fit_copy(self.source, known.frames, targets, known.given_weights)
            own = checked_log_ratios(fitted, judged.frames[held_out], len(enough))
            filled = np.repeat(own.min(axis=1, keepdims=True), task.targets.shape[1], axis=1)
            filled[:, enough] = own
            log_ratios[held_out] = filled
        return log_ratios


class Refits:
    """EM updates of a learner that refits in every iteration."""

    def __init__(self, learner: Learner, task: Task) -> None:
        self.learner, self.task = learner, task

    def __call__(self, targets: Array) -> Array:
        """Refit and return the log ratios of the frames, (N, S)."""
        (trained,) = self.trained(targets, hold_out=False)
        assert trained.source is not None
        log_ratios = checked_log_ratios(trained.source, self.task.frames, targets.shape[1])
        return normalised(log_ratios, class_shares(targets, self.task.weights))

    def trained(self, targets: Array, hold_out: bool) -> list[Trained]:
        """Return the members for the last targets."""
        return self.learner.learn(replace(self.task, targets=targets), hold_out)


def as_learner(source: RatioSource) -> Learner:
    """Return a learner: the source itself, or an adapter around it."""
    return source if isinstance(source, Learner) else Adapter(source)


def named(trained: Sequence[Trained]) -> list[Trained]:
    """Make the names of members distinct by adding numbers."""
    seen: dict[str, int] = {}
    renamed = []
    for one in trained:
        seen[one.name] = seen.get(one.name, 0) + 1
        renamed.append(one if seen[one.name] == 1 else replace(one, name=f"{one.name} {seen[one.name]}"))
    return renamed
