"""Parameters of the switching linear dynamical system, from the same data that the other systems learn from.

The normal dynamics of a baby come from its own Normal stretch; those of a factor from the intervals of training babies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .babies import CHANNELS as RESOLUTION
from .protocol import Patient
from .slds_filter import System, filtered

#: Channels with dynamics; the temperature of the incubator is an input.
CHANNELS = ("HR", "SO", "BS", "BD", "TC", "Incu.Air Humidity")
AMBIENT = "Incu.Air Temp"

#: Seconds over which the baseline is averaged when it is learned, and in which it returns to its mean.
BASELINE_WINDOW, BASELINE_RETURN = 301, 3600.0

#: Shares of the fast variance that may be noise of the observation; likelihood chooses.
NOISE_SHARES = (0.0, 0.05, 0.15, 0.3, 0.5, 0.7)

#: Residuals beyond so many robust deviations are left out when the dynamics of a factor are learned.
TRIMMED = 5.0

#: Samples after a change from which a restart is learned.
RESTART_SAMPLES = 3


@dataclass(frozen=True)
class Normal:
    """Normal dynamics of one channel of one baby; see `slds_filter`."""

    first: float
    second: float
    noise: float
    observation_noise: float
    mean: float
    baseline_noise: float
    signal_variance: float
    baseline_variance: float


#: For channels that a baby lacks: anything finite, since they are never observed.
NOTHING = Normal(0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Dynamics:
    """Dynamics of one channel under a factor: an autoregression of order 2 around a reference.

    ``reference`` is "baseline", "constant" or the channel whose observed value the autoregression goes to.
    ``enter`` and ``leave`` are mean and variance of the value around the reference, or around the baseline, in the
    first second after a change, where the value jumps; None where it does not.
    """

    reference: str
    first: float
    second: float
    drift: float
    noise: float
    enter: tuple[float, float] | None = None
    leave: tuple[float, float] | None = None


def normal_dynamics(patient: Patient) -> dict[str, Normal]:
    """Of every channel that the baby has, by moments, with the share of observation noise by likelihood."""
    found = {}
    for name in CHANNELS:
        if name not in patient.values:
            continue
        values = patient.values[name][patient.normal]
        candidates = _candidates(values, RESOLUTION[name] ** 2 / 12)
        found[name] = candidates[_likeliest(candidates, values)]
    return found


def _candidates(values: np.ndarray, smallest: float) -> list[Normal]:
    """Noise-compensated Yule-Walker solutions for several shares of observation noise."""
    seen = ~np.isnan(values)
    mean = float(values[seen].mean())
    centered = np.where(seen, values - mean, 0.0)
    window = np.ones(min(BASELINE_WINDOW, len(values)))
    baseline = np.convolve(centered, window, "same") / np.maximum(np.convolve(seen, window, "same"), 1)
    signal = np.where(seen, centered - baseline, np.nan)
    covariance = [_autocovariance(signal, lag) for lag in range(3)]
    lag = min(60, len(values) // 2)
    baseline_noise = max(float(np.mean((baseline[lag:] - baseline[:-lag]) ** 2)) / lag, 1e-3 * smallest)
    candidates = []
    for share in NOISE_SHARES:
        inner = covariance[0] * (1 - share)
        first, second = np.linalg.solve(
            np.array([[inner, covariance[1]], [covariance[1], inner]]) + 1e-9 * np.eye(2), covariance[1:]
        )
        noise = inner - first * covariance[1] - second * covariance[2]
        stable = abs(second) < 1 and abs(first) < 1 - second
        if share > 0 and not (stable and noise > 0):
            continue
        if not stable:
            first, second = 0.9, 0.0
        candidates.append(
            Normal(
                float(first),
                float(second),
                max(float(noise), smallest),
                max(float(share * covariance[0]), smallest),
                mean,
                baseline_noise,
                max(float(covariance[0]), smallest),
                max(float(baseline.var()), smallest),
            )
        )
    return candidates


def _autocovariance(signal: np.ndarray, lag: int) -> float:
    product = signal[lag:] * signal[: len(signal) - lag]
    return float(np.nanmean(product)) if (~np.isnan(product)).any() else 0.0


def _likeliest(candidates: list[Normal], values: np.ndarray) -> int:
    """The candidate under which the values are likeliest: settings that never switch, at the end."""
    n = len(candidates)
    system = assemble([[normal] for normal in candidates], np.arange(n)[:, None], np.ones((1, n, 1)))
    posterior = filtered(system, values[:, None, None], np.zeros((len(values), 1, 1)))
    return int(posterior[-1, 0].argmax())


def assemble(normals: list[list[Normal]], predecessors: np.ndarray, transitions: np.ndarray) -> System:
    """A system of one baby in which setting m has the normal dynamics normals[m][c] and nothing else.

    What cannot depend on the setting (the baseline and the start) is that of setting 0.
    """
    n_channels, n_settings, n_before = len(normals[0]), len(normals), predecessors.shape[1]

    def spread(name: str) -> np.ndarray:
        values = np.array([[getattr(normals[m][c], name) for m in range(n_settings)] for c in range(n_channels)])
        return np.repeat(values[:, None, :, None], n_before, axis=3)

    def single(name: str) -> np.ndarray:
        return np.array([[getattr(normals[0][c], name)] for c in range(n_channels)])

    first, second = spread("first"), spread("second")
    return System(
        predecessors=predecessors,
        transitions=transitions,
        first=first,
        second=second,
        to_baseline=1 - first - second,
        to_input=np.zeros_like(first),
        drift=np.zeros_like(first),
        noise=spread("noise"),
        restart=np.zeros(first.shape, dtype=bool),
        baseline_return=np.full((n_channels, 1), 1 / BASELINE_RETURN),
        baseline_mean=single("mean"),
        baseline_noise=single("baseline_noise"),
        observation_noise=spread("observation_noise")[..., 0],
        start_variance=single("signal_variance"),
        start_baseline_variance=single("baseline_variance"),
        start=np.full((1, n_settings), 1 / n_settings),
    )


def factor_dynamics(
    training: list[Patient], condition: str, channel: str, reference: str, restarts: bool
) -> Dynamics | None:
    """Least squares on the intervals of a condition; None where no training baby shows it in the channel."""
    rows, entering, leaving = [], [], []
    for patient in training:
        if channel not in patient.values or (reference in RESOLUTION and reference not in patient.values):
            continue
        values = patient.values[channel]
        around = _reference(patient, channel, reference)
        for begin, end in patient.intervals[condition]:
            inside = np.arange(begin + 2, end)
            rows.append(np.stack([values[inside - k] - around[inside] for k in range(3)], axis=1))
            entering.append((values - around)[begin : begin + RESTART_SAMPLES])
            leaving.append(values[end : end + RESTART_SAMPLES] - patient.center[channel])
    frames = np.concatenate(rows) if rows else np.zeros((0, 3))
    frames = frames[~np.isnan(frames).any(axis=1)]
    if len(frames) < 30:
        return None
    smallest = RESOLUTION[channel] ** 2 / 12
    *coefficients, noise = _trimmed_regression(frames, smallest)
    ends = [_moments(parts, smallest) if restarts else None for parts in (entering, leaving)]
    return Dynamics(reference, *coefficients, noise, *ends)


def _trimmed_regression(frames: np.ndarray, smallest: float) -> list[float]:
    """Coefficients of columns 1 and 2 and a constant for column 0, and the variance that remains.

    Least squares, twice: jumps at ends that were marked some seconds off, and flushed lines, are no part of the
    dynamics. Residuals beyond five robust deviations of the first pass are left out of the second.
    """
    design = np.column_stack([frames[:, 1:], np.ones(len(frames))])
    kept = np.ones(len(frames), dtype=bool)
    for _ in range(2):
        coefficients = np.linalg.lstsq(design[kept], frames[kept, 0], rcond=None)[0]
        residuals = frames[:, 0] - design @ coefficients
        noise = max(float(np.var(residuals[kept])), smallest)
        deviation = max(1.4826 * float(np.median(np.abs(residuals))), np.sqrt(smallest))
        kept = np.abs(residuals) <= TRIMMED * deviation
    return [*(float(value) for value in coefficients), noise]


def _reference(patient: Patient, channel: str, reference: str) -> np.ndarray:
    if reference == "baseline":
        return np.full(patient.n_samples, patient.center[channel])
    if reference == "constant":
        return np.zeros(patient.n_samples)
    return patient.values[reference]


def _moments(parts: list[np.ndarray], smallest: float) -> tuple[float, float]:
    values = np.concatenate(parts)
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return 0.0, 1e4
    return float(values.mean()), max(float(values.var()), smallest)
