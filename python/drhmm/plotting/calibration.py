"""Whether probabilities mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .._validation import Array, as_floats, check_integer
from .style import as_curves, as_states, axes_or_new, color, place_of, unit_square


def _confidence(y: Any, probabilities: Any, name: str) -> tuple[Array, npt.NDArray[np.bool_]]:
    """What was said of each frame, and whether it came true: of the likeliest state, or of the event."""
    values = as_floats(probabilities, name)
    if values.ndim not in (1, 2) or values.shape[0] == 0 or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(f"{name} must have shape (T,), or (T, S) for S states, got {values.shape}")
    wrong = np.argwhere(~((values >= -1e-9) & (values <= 1 + 1e-9)))
    if len(wrong) > 0:
        raise ValueError(f"{name} has {values[tuple(wrong[0])]} at frame {wrong[0][0]}: probabilities are 0 to 1")
    if values.ndim == 1:
        return values, as_states(y, len(values), 2, "y").astype(bool)
    likeliest = values.argmax(axis=1)
    return values.max(axis=1), likeliest == as_states(y, len(values), values.shape[1], "y")


def _bins(said: Array, true: npt.NDArray[np.bool_], n_bins: int) -> tuple[Array, Array, Array]:
    """Mean probability, share that came true and share of all frames, of every bin that has frames."""
    places = np.minimum((said * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(places, minlength=n_bins)
    there = counts > 0
    means = np.bincount(places, weights=said, minlength=n_bins)[there] / counts[there]
    shares = np.bincount(places, weights=true, minlength=n_bins)[there] / counts[there]
    return means, shares, counts[there] / len(said)


def _error(means: Array, shares: Array, weights: Array) -> float:
    return float(np.sum(weights * np.abs(means - shares)))


def calibration_error(y: Any, probabilities: Any, *, n_bins: int = 10) -> float:
    """Expected calibration error: how far probabilities are from what came true, on average.

    Parameters
    ----------
    y : array of int of shape (T,)
        True states 0..S-1; or for the probability of one event, whether it was there (0 or 1).
    probabilities : array of shape (T, S) or (T,)
        Probability of each state, of which the likeliest counts, or of the event.
    n_bins : int
        Equal intervals of probability, within which frames are averaged.

    Returns
    -------
    float
        The mean over frames of ``|mean probability - share that came true|`` of the frame's bin.

    Examples
    --------
    >>> from drhmm.plotting import calibration_error
    >>> round(calibration_error([0, 1, 1, 1], [0.7, 0.7, 0.7, 0.7]), 3)
    0.05
    """
    check_integer(n_bins, "n_bins", low=1)
    return _error(*_bins(*_confidence(y, probabilities, "probabilities"), n_bins))


def calibration(y: Any, probabilities: Any, *, n_bins: int = 10, ax: Axes | None = None) -> Axes:
    """Draw how often what was said with a probability came true (reliability diagram).

    Parameters
    ----------
    y : array of int of shape (T,)
        True states 0..S-1; or for the probability of one event, whether it was there (0 or 1).
    probabilities : array of shape (T, S) or (T,), or mapping of str to such arrays
        Probability of each state, of which the likeliest counts, or of the event: one curve, or one for each name.
    n_bins : int
        Equal intervals of probability.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib.axes.Axes
        With one line per curve, dots whose areas are the frames of each bin, and the expected calibration error in
        the legend. Below the diagonal a model says more than it knows.
    """
    check_integer(n_bins, "n_bins", low=1)
    curves = {
        name: _bins(*_confidence(y, values, place_of("probabilities", name)), n_bins)
        for name, values in as_curves(probabilities, "probabilities").items()
    }
    axes = axes_or_new(ax, 5, 5)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    for k, (name, (means, shares, weights)) in enumerate(curves.items()):
        number = f"calibration error {_error(means, shares, weights):.3f}"
        axes.plot(means, shares, color=color(k), linewidth=1.2, label=f"{name}: {number}" if name else number)
        axes.scatter(means, shares, s=10 + 200 * weights, color=color(k), alpha=0.8, linewidth=0)
    axes.legend(frameon=False, fontsize=9, loc="best")
    unit_square(axes, "probability that was given", "share of frames where it came true")
    return axes
