"""What every ratio source has, and what can be done with any of them."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..data.checks import LARGEST, Array, as_floats, as_matrix, as_samples


@runtime_checkable
class RatioSource(Protocol):
    """Two methods: learn from frames and targets, and turn frames into log ratios.

    Examples
    --------
    >>> import numpy as np
    >>> from drhmm import DensityRatioHMM
    >>> from drhmm.datasets import blobs
    >>> class NearestMean:
    ...     def fit(self, frames, targets):
    ...         self.means_ = targets.T @ frames / targets.sum(axis=0)[:, None]
    ...         return self
    ...
    ...     def log_ratios(self, frames):
    ...         return -np.square(frames[:, None] - self.means_).sum(axis=2) / 2
    >>> X, y = blobs(300, random_state=0)
    >>> bool(DensityRatioHMM(ratio=NearestMean(), random_state=0).fit(X, y).score(X, y) > 0.8)
    True
    """

    def fit(self, frames: Array, targets: Array) -> Any:
        """Learn from frames (N, D) and the probability of each state at each of them, (N, S)."""
        ...

    def log_ratios(self, frames: Array) -> Array:
        """Log w_i(y), shape (n, S), up to a constant per row.

        -inf excludes a state; a row that excludes every state, or is NaN, carries no evidence.
        """
        ...


def check_source(source: Any, name: str = "ratio") -> RatioSource:
    """Raise a TypeError that names the method a source lacks."""
    if isinstance(source, type):
        raise TypeError(f"{name} is the class {source.__name__}: give an object, {source.__name__}(...)")
    for method in ("fit", "log_ratios"):
        if not callable(getattr(source, method, None)):
            raise TypeError(f"{name} must have the methods fit and log_ratios; {source!r} has no {method}")
    checked: RatioSource = source
    return checked


def check_fitted(source: Any, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError for a source without what its fit learns."""
    check_is_fitted(source, attribute, msg="this %(name)s is not fitted yet: call fit(frames, targets) first")


def accepts_weights(fit: Any) -> bool:
    """Whether a fit method takes `sample_weight` by name."""
    return "sample_weight" in inspect.signature(fit).parameters


def fit_copy(source: RatioSource, frames: Array, targets: Array, weights: Array | None) -> RatioSource:
    """A fitted copy of a source; the original stays as it is."""
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
    """Frames (N, D), targets (N, S) and weights (N,) that can be learned from; a ValueError names what cannot."""
    frames, targets = as_samples(frames, "frames"), _as_targets(targets)
    weights = np.ones(len(frames)) if sample_weight is None else as_floats(sample_weight, "sample_weight")
    if len(targets) != len(frames) or weights.shape != (len(frames),):
        raise ValueError(
            f"targets and sample_weight must have one row per frame: {len(frames)} frames, targets of shape "
            f"{targets.shape}, sample_weight of shape {weights.shape}"
        )
    for name, values, low in (("frames", frames, -LARGEST), ("targets", targets, 0.0), ("sample_weight", weights, 0.0)):
        wrong = ~((values >= low) & (values <= LARGEST))
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
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
    """Refuse states whose targets weigh next to nothing: a division by their mass would overflow."""
    state, least = int(masses.argmin()), float(masses.min())
    if not least > 0:
        raise ValueError(f"state {state} has no frame of positive weight in targets")
    if least < masses.sum() / LARGEST:
        raise ValueError(
            f"targets give state {state} a mass of {least:g} of {masses.sum():g}: too little to learn from"
        )


def check_width(sigma: float, centers: Array) -> None:
    """Refuse kernels so narrow that the distances between their centres overflow."""
    apart = float(np.abs(centers - centers.mean(axis=0)).max())
    # The core multiplies centres with each other, and with samples of the largest allowed size.
    if apart * max(apart, LARGEST) > LARGEST**3 * sigma**2:
        raise ValueError(f"sigma={sigma:g} is too small for centres that are {apart:g} from their mean")


def checked_log_ratios(source: RatioSource, frames: Array, n_states: int) -> Array:
    """The log ratios of a source, with the shape and the values that the recursions need."""
    log_ratios = as_matrix(source.log_ratios(frames), "log_ratios")
    if log_ratios.shape != (len(frames), n_states):
        raise ValueError(
            f"{source!r} returned log ratios of shape {log_ratios.shape} instead of {(len(frames), n_states)}"
        )
    return without_evidence(log_ratios)


def without_evidence(log_ratios: Array) -> Array:
    """Rows in which every class estimates 0 carry no evidence: all w_ij = 1."""
    excluded = np.isneginf(log_ratios).all(axis=1, keepdims=True)
    return np.where(excluded, 0.0, log_ratios)


def hard_or_repeated(
    frames: Array, targets: Array, weights: Array | None, can_weight: bool
) -> tuple[Array, npt.NDArray[np.int64], Array | None]:
    """Frames with one class each, for learners without soft targets.

    Certain targets become labels. Soft targets become one weighted copy of the frame per class if the learner takes
    weights, and the likeliest class if it does not. A class that is never the likeliest keeps its two best frames.
    """
    certain = bool((targets.max(axis=1) == 1.0).all())
    if certain:
        return frames, targets.argmax(axis=1), weights
    if not can_weight:
        return frames, _likeliest(targets), weights
    base = np.ones(len(frames)) if weights is None else weights
    rows, classes = np.nonzero(targets > 1e-6)
    return frames[rows], classes, base[rows] * targets[rows, classes]


def _likeliest(targets: Array) -> npt.NDArray[np.int64]:
    labels: npt.NDArray[np.int64] = targets.argmax(axis=1)
    for state in range(targets.shape[1]):
        if np.sum(labels == state) < 2:
            labels[np.argsort(targets[:, state], kind="stable")[-2:]] = state
    return labels


def class_shares(targets: Array, weights: Array | None) -> Array:
    """Share of each class in the training frames."""
    mass = targets.sum(axis=0) if weights is None else weights @ targets
    shares: Array = mass / mass.sum()
    return shares
