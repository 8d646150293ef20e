"""A factorial switching linear dynamical system: factors switch the dynamics of the channels they show themselves in.

Where two factors share a channel, the later one in `FACTORS` has it. The X-factor stands for the unknown: normal
dynamics with inflated noise in the channels of the baby. At most one factor changes in a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from .factors import chains_of, joint_transitions, marginals, one_at_a_time, settings_of, stationary
from .protocol import CONDITIONS, Patient
from .slds_filter import System, filtered
from .slds_learning import AMBIENT, CHANNELS, NOTHING, Dynamics, Normal, assemble, factor_dynamics, normal_dynamics

#: Later factors overrule earlier ones in the channels that they share; the X-factor is overruled by all.
FACTORS = ("incubator open", "bradycardia", "temperature probe", "blood sample")
X_FACTOR = "abnormal"

#: How much larger the noise of the X-factor is, and the channels that it has.
X_INFLATION = 1.2
X_CHANNELS = CONDITIONS[X_FACTOR][1]

#: What a factor's dynamics go to, where that is not the baseline of the channel.
REFERENCES = {
    ("incubator open", "Incu.Air Humidity"): "constant",
    ("temperature probe", "TC"): AMBIENT,
    ("blood sample", "BD"): "BS",
}

#: Factors that replace what the sensor measures: values jump when they begin and when they end.
JUMPS = ("blood sample",)

#: The least that one second may say, as a log density.
LOG_FLOOR = float(np.log(1e-8))


@dataclass(frozen=True)
class Learned:
    """Dynamics by factor and channel, and the chains of the factors; the same for all babies of a fold."""

    factors: tuple[str, ...]
    dynamics: dict[tuple[str, str], Dynamics]
    chains: list[np.ndarray]


def learn(training: list[Patient], with_x: bool) -> Learned:
    """Dynamics and chains of all factors from training babies."""
    factors = (*((X_FACTOR,) if with_x else ()), *FACTORS)
    dynamics = {}
    for factor in FACTORS:
        for channel in CONDITIONS[factor][1]:
            if channel not in CHANNELS:
                continue
            reference = REFERENCES.get((factor, channel), "baseline")
            found = factor_dynamics(training, factor, channel, reference, factor in JUMPS)
            if found is not None:
                dynamics[factor, channel] = found
    return Learned(factors, dynamics, chains_of(training, factors))


def owner(learned: Learned, setting: np.ndarray, channel: str) -> str | None:
    """The factor whose dynamics a channel has in a setting; None is normal."""
    for factor, on in reversed(list(zip(learned.factors, setting, strict=True))):
        if on and ((factor, channel) in learned.dynamics or (factor == X_FACTOR and channel in X_CHANNELS)):
            return factor
    return None


def build(normals: dict[str, Normal], learned: Learned) -> System:
    """The system of one baby with all settings of the factors."""
    settings = settings_of(len(learned.factors))
    joint = one_at_a_time(joint_transitions(learned.chains), settings)
    predecessors = np.stack([np.flatnonzero(column > 0) for column in joint.T])
    transitions = np.take_along_axis(joint.T, predecessors, axis=1)[None]
    base = [normals.get(channel, NOTHING) for channel in CHANNELS]
    system = assemble([base] * len(settings), predecessors, transitions)
    for c, channel in enumerate(CHANNELS):
        owners = [owner(learned, setting, channel) for setting in settings]
        for j, after in enumerate(owners):
            for p, i in enumerate(predecessors[j]):
                _set(system, learned, base[c], (c, 0, j, p), channel, owners[i], after)
    return replace(system, start=stationary(learned.chains)[None])


def _set(
    system: System,
    learned: Learned,
    normal: Normal,
    place: tuple[int, int, int, int],
    channel: str,
    before: str | None,
    after: str | None,
) -> None:
    """Coefficients of one channel for one pair of settings, given whose dynamics it has before and after."""
    old = learned.dynamics.get((before, channel)) if before is not None else None
    new = learned.dynamics.get((after, channel)) if after is not None else None
    if before != after and new is not None and new.enter is not None:
        _restart(system, place, new.reference, *new.enter)
    elif before != after and old is not None and old.leave is not None:
        _restart(system, place, "baseline", *old.leave)
    elif new is not None:
        _coefficients(system, place, new.reference, new.first, new.second, new.drift, new.noise)
    elif after == X_FACTOR:
        system.noise[place] = X_INFLATION * normal.noise


def _coefficients(
    system: System,
    place: tuple[int, int, int, int],
    reference: str,
    first: float,
    second: float,
    drift: float,
    noise: float,
) -> None:
    rest = 1 - first - second
    system.first[place], system.second[place] = first, second
    system.drift[place], system.noise[place] = drift, noise
    system.to_baseline[place] = rest if reference == "baseline" else 0.0
    system.to_input[place] = rest if reference not in ("baseline", "constant") else 0.0


def _restart(system: System, place: tuple[int, int, int, int], reference: str, mean: float, variance: float) -> None:
    _coefficients(system, place, reference, 0.0, 0.0, mean, variance)
    system.restart[place] = True


def together(systems: list[System]) -> System:
    """Systems of single babies with the same settings as one system of all of them."""
    parts = {}
    for item in fields(System):
        values = [getattr(system, item.name) for system in systems]
        if item.name == "predecessors":
            if not all(np.array_equal(values[0], other) for other in values):
                raise ValueError("the systems have different settings")
            parts[item.name] = values[0]
        else:
            parts[item.name] = np.concatenate(values, axis=0 if item.name in ("transitions", "start") else 1)
    return System(**parts)


def observed(patient: Patient) -> tuple[np.ndarray, np.ndarray]:
    """Observations and inputs of one baby, (n_samples, C) each; an input that is missing keeps its last value."""
    missing = np.full(patient.n_samples, np.nan)
    observations = np.stack([patient.values.get(name, missing) for name in CHANNELS], axis=1)
    inputs = np.zeros_like(observations)
    for (_, channel), reference in REFERENCES.items():
        if reference in patient.values:
            inputs[:, CHANNELS.index(channel)] = _held(patient.values[reference], patient.center[reference])
    return observations, inputs


def _held(values: np.ndarray, start: float) -> np.ndarray:
    last = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(last >= 0, values[np.maximum(last, 0)], start)


def run(
    tests: list[Patient],
    trainings: list[list[Patient]],
    with_x: bool,
    progress: Callable[[int], None] | None = None,
) -> list[dict[str, np.ndarray]]:
    """Filtered probabilities of all factors for several babies, stepped together; one dictionary for each."""
    known: dict[tuple[int, ...], Learned] = {}
    systems = []
    for test, training in zip(tests, trainings, strict=True):
        key = tuple(patient.number for patient in training)
        if key not in known:
            known[key] = learn(training, with_x)
        systems.append(build(normal_dynamics(test), known[key]))
    longest = max(test.n_samples for test in tests)
    observations = np.full((longest, len(CHANNELS), len(tests)), np.nan)
    inputs = np.zeros_like(observations)
    for b, test in enumerate(tests):
        observations[: test.n_samples, :, b], inputs[: test.n_samples, :, b] = observed(test)
    posterior = filtered(together(systems), observations, inputs, LOG_FLOOR, progress)
    factors = next(iter(known.values())).factors
    settings = settings_of(len(factors))
    return [
        dict(zip(factors, marginals(posterior[: test.n_samples, b].astype(float), settings).T, strict=True))
        for b, test in enumerate(tests)
    ]
