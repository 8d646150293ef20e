"""What happens to a simulated baby: each event changes the signals and says which interval an annotator marks."""

from __future__ import annotations

import numpy as np

from drhmm.data.checks import Array
from drhmm.datasets.plant import relax, wander

Signals = dict[str, Array]

#: Reading of a sensor in room air, and the humidity of the room on average.
ROOM_TEMPERATURE, ROOM_HUMIDITY = 26.0, 42.0


def bump(n_samples: int, rise: int, fall: int) -> Array:
    """From 0 to 1 in `rise` samples, 1 in between, and back to 0 in the last `fall` samples, smoothly."""
    time = np.arange(n_samples)
    up = np.clip((time + 1) / max(rise, 1), 0, 1)
    down = np.clip((n_samples - time) / max(fall, 1), 0, 1)
    shape: Array = np.minimum(up, down)
    return shape * shape * (3 - 2 * shape)


def _stretch(random: np.random.RandomState, begin: int, end: int, n_samples: int) -> tuple[int, int]:
    """The interval as an annotator marks it: a few seconds off at both ends."""
    begin = int(np.clip(begin + random.randint(-3, 6), 0, n_samples - 2))
    return begin, int(np.clip(end + random.randint(-5, 6), begin + 2, n_samples))


def bradycardia(signals: Signals, random: np.random.RandomState, begin: int, end: int) -> tuple[int, int]:
    """The heart slows within seconds, stays slow and recovers; saturation often follows."""
    rate = signals["HR"]
    stop = min(len(rate), end + 120)
    n_samples = stop - begin
    recovery = random.uniform(4, 15)
    envelope = bump(n_samples, int(random.randint(4, 16)), 1)
    late = np.arange(n_samples) - (end - begin - 2 * recovery)
    envelope = envelope * np.where(late > 0, np.exp(-np.maximum(late, 0) / recovery), 1.0)
    lowest = min(random.uniform(55, 105), rate[begin] - 25)
    own = lowest + wander(random, n_samples, 6, 4)
    rate[begin:stop] += envelope * (own - rate[begin:stop])
    if random.random_sample() < 0.6:
        first = min(begin + int(random.randint(6, 25)), len(rate) - 1)
        last = min(first + n_samples, len(rate))
        depth = random.uniform(4, 28)
        signals["SO"][first:last] -= depth * relax(envelope, 0.0, random.uniform(5, 20))[: last - first]
    return _stretch(random, begin, end, len(rate))


def blood_sample(signals: Signals, random: np.random.RandomState, begin: int, end: int) -> tuple[int, int]:
    """The line is turned to a syringe: both pressures show the same artificial ramp, often flushed at the end."""
    systolic, diastolic = signals["BS"], signals["BD"]
    n_samples = end - begin
    middle = (systolic[begin] + diastolic[begin]) / 2 + random.normal(0, 7)
    ramp = middle + np.exp(random.normal(-2.0, 0.7)) * np.arange(n_samples)
    ramp = np.minimum(ramp, random.uniform(80, 120)) + wander(random, n_samples, 20, 0.7)
    systolic[begin:end] = ramp + random.normal(0.5, 0.4, n_samples)
    diastolic[begin:end] = ramp + random.normal(-0.5, 0.4, n_samples)
    if random.random_sample() < 0.3:
        closed = begin + int(random.randint(3, 15))
        systolic[begin:closed] = diastolic[begin:closed] = 0.0
    if random.random_sample() < 0.6:
        flush = int(random.randint(2, 6))
        systolic[end - flush : end] += random.uniform(20, 80)
        diastolic[end - flush : end] += random.uniform(5, 60)
    return _stretch(random, begin, end, len(systolic))


def probe_disconnection(signals: Signals, random: np.random.RandomState, begin: int, end: int) -> tuple[int, int]:
    """The core temperature falls exponentially to that of the incubator, and returns when the probe is back."""
    core = signals["TC"]
    reading = core.copy()
    ambient = signals["Incu.Air Temp"][begin:end] + random.uniform(-1.5, 0.7)
    reading[begin:end] = relax(ambient, core[begin], random.uniform(50, 250)) + random.normal(0, 0.02, end - begin)
    warming = random.uniform(15, 60)
    stop = min(len(core), end + int(8 * warming))
    reading[end:stop] = relax(core[end:stop], reading[end - 1], warming)
    core[begin:stop] = reading[begin:stop]
    return _stretch(random, begin, end + int(1.5 * warming), len(core))


def incubator_open(signals: Signals, random: np.random.RandomState, begin: int, end: int) -> tuple[int, int]:
    """Humidity falls towards that of the room, and most often the baby is handled: everything is disturbed."""
    n_samples = end - begin
    opening = random.uniform(0.25, 1.0)
    closing = random.uniform(80, 400)
    stop = min(len(signals["HR"]), end + int(6 * closing))
    surroundings = {
        "Incu.Air Humidity": (ROOM_HUMIDITY + random.normal(0, 3), random.uniform(40, 200)),
        "Incu.Air Temp": (ROOM_TEMPERATURE, random.uniform(900, 1800)),
    }
    for name, (room, falling) in surroundings.items():
        inside = signals[name]
        lost = relax(opening * (room - inside[begin:end]), 0.0, falling)
        inside[begin:end] += lost
        inside[end:stop] += lost[-1] * np.exp(-np.arange(stop - end) / closing)
    force = 0.0 if random.random_sample() < 0.2 else random.uniform(0.3, 1.5)
    shape = bump(n_samples, min(15, n_samples // 3), min(30, n_samples // 3))
    signals["HR"][begin:end] += force * shape * (random.normal(6, 5) + wander(random, n_samples, 5, 4))
    moved = force * shape * (random.normal(2, 3) + wander(random, n_samples, 4, 3))
    signals["BS"][begin:end] += moved
    signals["BD"][begin:end] += 0.7 * moved
    signals["SO"][begin:end] -= force * shape * np.abs(wander(random, n_samples, 12, 4))
    return _stretch(random, begin, end, len(signals["HR"]))


def recalibration(signals: Signals, random: np.random.RandomState, begin: int, end: int) -> tuple[int, int]:
    """The transcutaneous probe is taken off and calibrated in air, and needs minutes on the skin afterwards."""
    stop = min(len(signals["OX"]), end + 900)
    for name, air in (("OX", 20.5), ("CO", 0.6)):
        skin = signals[name]
        reading = relax(np.full(end - begin, air), skin[begin], random.uniform(5, 20))
        reading += random.normal(0, 0.03, end - begin)
        skin[end:stop] = relax(skin[end:stop], reading[-1], random.uniform(60, 150))
        skin[begin:end] = reading
    return _stretch(random, begin, min(stop, end + 120), len(signals["OX"]))


def abnormal(
    signals: Signals, random: np.random.RandomState, begin: int, end: int, has_pressure: bool
) -> tuple[int, int]:
    """Something of clinical interest without a name: one of several patterns that no other condition has."""
    n_samples = end - begin
    shape = bump(n_samples, int(random.randint(5, n_samples // 3 + 6)), int(random.randint(5, n_samples // 3 + 6)))
    kinds = ["desaturation", "tachycardia", "erratic", "slow"]
    kinds += ["temperature"] if n_samples > 300 else []
    kinds += ["pressure", "damped", "combined"] if has_pressure else []
    kind = str(random.choice(kinds))
    rate, saturation = signals["HR"][begin:end], signals["SO"][begin:end]
    systolic, diastolic = signals["BS"][begin:end], signals["BD"][begin:end]
    if kind in ("desaturation", "combined"):
        saturation -= shape * random.uniform(8, 30)
    if kind == "tachycardia":
        rate += shape * random.uniform(22, 50)
    if kind == "erratic":
        rate += shape * wander(random, n_samples, 3, random.uniform(8, 16))
    if kind in ("slow", "combined"):
        rate -= shape * random.uniform(15, 30)
    if kind in ("pressure", "combined"):
        change = shape * random.choice([-1, 1]) * random.uniform(9, 22)
        systolic += change
        diastolic += 0.8 * change
    if kind == "damped":
        middle = (systolic + diastolic) / 2
        share = shape * random.uniform(0.5, 0.9)
        systolic += share * (middle - systolic)
        diastolic += share * (middle - diastolic)
    if kind == "temperature":
        signals["TC"][begin:end] += shape * random.choice([-1, 1]) * random.uniform(0.5, 1.3)
    return _stretch(random, begin, end, len(signals["HR"]))
