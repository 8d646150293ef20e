"""Calibration and ROC curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from sklearn.metrics import auc, roc_curve

from ..data.checks import Array, as_floats, as_values, check_integer
from ..data.labels import UNKNOWN
from ..evidence.calibration import bins_of, error_of
from .style import as_curves, as_states, axes_or_new, color, literal, place_of, unit_square


def _confidence(y: Any, probabilities: Any, name: str, names: Any = None) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the probability of the likeliest state or the event, and the outcome."""
    values = as_floats(probabilities, name)
    if values.ndim not in (1, 2) or values.shape[0] == 0 or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(f"{name} must have shape (T,), or (T, S) for S states, got {values.shape}")
    for place in np.argwhere(~((values >= -1e-9) & (values <= 1 + 1e-9))):
        raise ValueError(f"{name} has {values[tuple(place)]} at time step {place[0]}: probabilities are 0 to 1")
    states = as_states(y, len(values), 2 if values.ndim == 1 else values.shape[1], "y", names)
    known = states != UNKNOWN
    if not known.any():
        raise ValueError("y has no known label to compare with")
    if values.ndim == 1:
        return values[known], states[known].astype(bool)
    likeliest = values.argmax(axis=1)
    return values.max(axis=1)[known], (likeliest == states)[known]


def calibration_error(y: Any, probabilities: Any, *, names: Any = None, n_bins: int = 10) -> float:
    """Expected calibration error: mean distance of probabilities from frequencies.

    The mean over time steps of ``|mean probability - observed frequency|`` of the bin.

    Parameters
    ----------
    y : array of shape (T,)
        True states as indices or labels, or 1 and 0 for one event. Unknown ones (-1, None or NaN) are left out.
    probabilities : array of shape (T, S) or (T,)
        Probability of each state, or of the event. Only the likeliest state counts.
    n_bins : int
        Number of equal intervals of probability (bins).
    """
    check_integer(n_bins, "n_bins", low=1)
    return error_of(*bins_of(*_confidence(y, probabilities, "probabilities", names), n_bins))


def calibration(y: Any, probabilities: Any, *, names: Any = None, n_bins: int = 10, ax: Axes | None = None) -> Axes:
    """Draw observed frequencies against probabilities (reliability diagram).

    The areas of dots show the time steps of each bin. Below the diagonal, a model is overconfident. Arguments as in
    `calibration_error`; a mapping of `probabilities` by name draws a curve for each.
    """
    check_integer(n_bins, "n_bins", low=1)
    curves = {
        name: bins_of(*_confidence(y, values, place_of("probabilities", name), names), n_bins)
        for name, values in as_curves(probabilities, "probabilities").items()
    }
    axes = axes_or_new(ax, 5, 5)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    for k, (name, (means, shares, weights)) in enumerate(curves.items()):
        number = f"calibration error {error_of(means, shares, weights):.3f}"
        axes.plot(means, shares, color=color(k), linewidth=1.2, label=f"{literal(name)}: {number}" if name else number)
        axes.scatter(means, shares, s=10 + 200 * weights, color=color(k), alpha=0.8, linewidth=0)
    axes.legend(frameon=False, fontsize=9, loc="best")
    unit_square(axes, "probability", "share of time steps where it came true")
    return axes


def _as_events(y: Any) -> npt.NDArray[np.bool_]:
    values = as_values(y, "y")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"y must have shape (T,), got {values.shape}")
    for t in np.flatnonzero(~np.isin(values, (0, 1))):
        raise ValueError(
            f"y has {values[t]!r} at time step {t}: it is 0 or 1, False or True; leave out unknown labels and their "
            "scores"
        )
    events: npt.NDArray[np.bool_] = values.astype(bool)
    if events.all() or not events.any():
        raise ValueError(f"y is {values[0]!r} at every time step: both kinds are needed")
    return events


def _as_scores(values: Any, n_frames: int, name: str) -> Array:
    scores = as_floats(values, name)
    if scores.shape != (n_frames,):
        raise ValueError(f"{name} must have shape {(n_frames,)}, got {scores.shape}")
    for t in np.flatnonzero(np.isnan(scores)):
        raise ValueError(f"{name} is NaN at time step {t}")
    return scores


def _curve(events: npt.NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Rates of false alarms and detections, rising from 0 to 1, from ranked scores."""
    order = np.unique(scores, return_inverse=True)[1]
    false_alarms, detections, _ = roc_curve(events, order, drop_intermediate=False)
    return false_alarms, detections


def _crossing(false_alarms: Array, detections: Array) -> float:
    """Return the rate of false alarms at which it equals that of misses."""
    # The excess rises from -1 to 1, so it crosses 0 once.
    excess = false_alarms - (1 - detections)
    return float(np.interp(0.0, excess, false_alarms))


def equal_error_rate(y: Any, scores: Any) -> float:
    """Return the rate at which false alarms and misses are equally frequent.

    The rate is interpolated along the ROC curve.

    Parameters
    ----------
    y : array of shape (T,)
        1 or True at the event to detect.
    scores : array of shape (T,)
        Scores that are high if the event is detected, such as probabilities.
    """
    events = _as_events(y)
    return _crossing(*_curve(events, _as_scores(scores, len(events), "scores")))


def roc(y: Any, scores: Any, *, ax: Axes | None = None) -> Axes:
    """Draw detections against false alarms, with areas and equal error rates.

    A dot marks the equal error rate of each curve. Arguments as in `equal_error_rate`; a mapping of `scores` by name
    draws a curve for each.
    """
    events = _as_events(y)
    curves = {
        name: _curve(events, _as_scores(values, len(events), place_of("scores", name)))
        for name, values in as_curves(scores, "scores").items()
    }
    axes = axes_or_new(ax, 5, 5)
    _draw(axes, {name: (curve, color(k)) for k, (name, curve) in enumerate(curves.items())})
    return axes


def roc_of_classes(axes: Axes, truth: npt.NDArray[np.int64], posteriors: Array, labels: list[str]) -> dict[str, float]:
    """Draw each class against all others; return the areas under the curves."""
    there = [state for state in range(len(labels)) if 0 < np.count_nonzero(truth == state) < len(truth)]
    curves = {labels[state]: (_curve(truth == state, posteriors[:, state]), color(state)) for state in there}
    _draw(axes, curves)
    return {name: float(auc(*curve)) for name, (curve, _) in curves.items()}


def _draw(axes: Axes, curves: dict[str, tuple[tuple[Array, Array], str]]) -> None:
    """Draw named curves in different colours."""
    axes.plot([0, 1], [1, 0], color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    axes.plot([0, 1], [0, 1], color="#cccccc", linewidth=0.8, zorder=0)
    for name, ((false_alarms, detections), ink) in curves.items():
        rate = _crossing(false_alarms, detections)
        numbers = f"AUC {auc(false_alarms, detections):.3f}, EER {rate:.3f}"
        axes.plot(
            false_alarms, detections, color=ink, linewidth=1.6, label=f"{literal(name)}: {numbers}" if name else numbers
        )
        axes.plot(rate, 1 - rate, "o", color=ink, markersize=6, markeredgecolor="white")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    unit_square(axes, "false alarms: share of steps without the event", "detections: share of steps with the event")
