"""The density ratio HMM: two classes per condition, all conditions at once, and the novelty state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drhmm import DensityRatioHMM
from drhmm.ratios import TwoClass

from .features import Recipe, features, scaled_features
from .protocol import CONDITIONS, KNOWN, Patient, switching, switching_matrix

#: Windows are about as long as what they have to show: seconds for the heart, a minute for temperature and humidity.
#: An incubator that opens shows in falling humidity and in unrest of everything else; a blood sample in the pulse
#: pressure, which vanishes, and in its unrest.
RECIPES = {
    "bradycardia": Recipe(short=2, medium=300, unrest=10),
    "incubator open": Recipe(
        short=5, medium=60, unrest=30, columns=("unrest",), only={"Incu.Air Humidity": ("level", "change")}
    ),
    "blood sample": Recipe(
        short=3,
        medium=300,
        unrest=10,
        differences=(("BS", "BD"),),
        only={"BS": (), "BD": (), "BS-BD": ("value", "unrest")},
    ),
    "temperature probe": Recipe(short=3, medium=60, unrest=60, columns=("level", "change"), only={"Incu.Air Temp": ()}),
    "abnormal": Recipe(short=10, medium=60, unrest=30, columns=("level", "unrest")),
}

#: Share of the condition in the denominator of the relative ratio p_1 / (alpha p_1 + (1 - alpha) p_0). With 0 (plain
#: uLSIF) the ratio has no bound where a baby leaves its half hour of normal: on development babies a third of all
#: normal seconds then looked like bradycardia, against one in a hundred.
RELATIVE = 0.5

#: Power of one frame's ratio: as it is for two classes, and doubled for several, whose estimates are more cautious.
TWO_CLASS_SCALE, MULTI_CLASS_SCALE = 1.0, 2.0

#: Most frames of a class in training, alone against normal and with all other classes; longer ones are thinned evenly.
MOST_FRAMES, MOST_FRAMES_TOGETHER = 1500, 600

#: Kernel width and evidence scale of the novelty state: narrow, in units of standardised frames, so that what nobody
#: labelled is far from every centre, and slow, since each second repeats the one before.
NOVELTY_SIGMA, NOVELTY_SCALE = 0.5, 0.25

#: The paper's priority among conditions that overlap, for the models in which one state holds at a time.
PRIORITY = ("blood sample", "temperature probe", "bradycardia", "incubator open")


def thinned(frames: np.ndarray, most: int = MOST_FRAMES) -> np.ndarray:
    """Complete frames, every k-th where there are too many."""
    frames = frames[~np.isnan(frames).any(axis=1)]
    if len(frames) <= most:
        return frames
    return frames[np.linspace(0, len(frames) - 1, most).astype(int)]


def usable_channels(test: Patient, training: list[Patient], condition: str) -> tuple[str, ...]:
    """Channels of a condition that the test baby has, and at least one training baby with the condition has all of.

    Where there is no such baby, the channel that the fewest of them have is given up.
    """
    channels = list(test.channels(condition))
    sources = [patient for patient in training if patient.has(condition)] if condition in KNOWN else training
    while channels and not any(set(channels) <= set(patient.values) for patient in sources):
        counts = [sum(name in patient.values for patient in sources) for name in channels]
        channels.pop(int(np.argmin(counts)))
    return tuple(channels)


Maker = Callable[[Patient, tuple[str, ...], Recipe], np.ndarray]


def _stretches(
    patients: list[Patient], channels: tuple[str, ...], recipe: Recipe, condition: str, make: Maker = features
) -> np.ndarray:
    """Frames of the training babies in which a condition holds, one baby after the other."""
    parts = [
        make(patient, channels, recipe)[patient.truth[condition]]
        for patient in patients
        if set(channels) <= set(patient.values) and patient.truth[condition].any()
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 1))


def two_class(test: Patient, training: list[Patient], condition: str, seed: int = 0) -> np.ndarray:
    """Filtered probability of a condition, from its relative ratio to the normal state of the test baby."""
    recipe = RECIPES[condition]
    channels = usable_channels(test, training, condition)
    frames = features(test, channels, recipe)
    classes = [thinned(frames[test.normal]), thinned(_stretches(training, channels, recipe, condition))]
    begin, end = switching(training, condition)
    model = DensityRatioHMM(
        ratio=TwoClass(RELATIVE, sigma="default", rho="default", random_state=seed),
        transmat=switching_matrix(training, condition),
        startprob=np.array([end, begin]) / (begin + end),
        evidence_scale=TWO_CLASS_SCALE,
        random_state=seed,
    )
    model.fit(classes, [np.full(len(part), k) for k, part in enumerate(classes)])
    return model.predict_proba(frames, method="filter")[:, 1]


def _chain(training: list[Patient], states: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Transition probabilities among normal and conditions that exclude one another, and their long-run shares."""
    transmat = np.zeros((len(states) + 1, len(states) + 1))
    for k, condition in enumerate(states, start=1):
        transmat[0, k], transmat[k, 0] = switching(training, condition)
        transmat[k, k] = 1 - transmat[k, 0]
    # A condition may follow upon another one as it may upon normal.
    for k in range(1, len(states) + 1):
        others = [j for j in range(1, len(states) + 1) if j != k]
        transmat[k, others] = transmat[0, others]
        transmat[k, k] -= transmat[0, others].sum()
    transmat[0, 0] = 1 - transmat[0, 1:].sum()
    shares = np.linalg.matrix_power(transmat, 1 << 20)[0]
    return transmat, shares / shares.sum()


def _classes(
    test: Patient,
    training: list[Patient],
    channels: tuple[str, ...],
    recipe: Recipe,
    frames: np.ndarray,
    make: Maker = features,
) -> dict[str, np.ndarray]:
    """Training frames of normal (test baby) and of the known conditions (training babies)."""
    classes = {"normal": thinned(frames[test.normal], MOST_FRAMES_TOGETHER)}
    for condition in PRIORITY:
        found = thinned(_stretches(training, channels, recipe, condition, make), MOST_FRAMES_TOGETHER)
        if len(found) > 1:
            classes[condition] = found
    return classes


def multi_class(test: Patient, training: list[Patient], seed: int = 0) -> dict[str, np.ndarray]:
    """Filtered probabilities of all known conditions from one least-squares model with one state each."""
    channels = tuple(name for name in test.values if any(name in CONDITIONS[row][1] for row in KNOWN))
    counts = {name: sum(name in patient.values for patient in training) for name in channels}
    while not any(set(channels) <= set(patient.values) for patient in training):
        rarest = min(channels, key=lambda name: counts[name])
        channels = tuple(name for name in channels if name != rarest)
    recipe = Recipe(5, 300, 30, differences=(("BS", "BD"),))
    frames = features(test, channels, recipe)
    classes = _classes(test, training, channels, recipe, frames)
    states = list(classes)
    transmat, shares = _chain(training, states[1:])
    model = DensityRatioHMM(
        n_basis=500,
        sigma="default",
        rho="default",
        transmat=transmat,
        startprob=shares,
        evidence_scale=MULTI_CLASS_SCALE,
        random_state=seed,
    )
    model.fit(list(classes.values()), [np.full(len(part), k) for k, part in enumerate(classes.values())])
    posterior = model.predict_proba(frames, method="filter")
    return {
        condition: posterior[:, states.index(condition)] if condition in states else np.zeros(test.n_samples)
        for condition in KNOWN
    }


def novelty(test: Patient, training: list[Patient], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Filtered probability of the novelty state, and its evidence; normal and all known conditions are not new."""
    recipe = RECIPES["abnormal"]
    channels = usable_channels(test, training, "abnormal")
    frames = scaled_features(test, channels, recipe)
    classes = _classes(test, training, channels, recipe, frames, scaled_features)
    transmat, shares = _chain(training, list(classes)[1:])
    begin, end = switching(training, "abnormal")
    model = DensityRatioHMM(
        n_basis=500,
        transmat=transmat,
        startprob=shares,
        sigma=NOVELTY_SIGMA,
        rho="default",
        evidence_scale=NOVELTY_SCALE,
        novelty=True,
        novelty_rate=begin,
        novelty_duration=1 / end,
        random_state=seed,
    )
    model.fit(list(classes.values()), [np.full(len(part), k) for k, part in enumerate(classes.values())])
    return model.novelty_proba(frames, method="filter"), model.novelty_score(frames)
