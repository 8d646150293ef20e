"""Every set of the arena, as folds of training and test sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sets import SOURCES, DataError, labelled_splits
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from drhmm.datasets import sines, sines_training

#: Sets that came later: where they are from, and how their sequences are cut into folds.
MORE = {
    "bee": ("honey-bee dances (Oh et al. 2008) through zhd96/ds-hdp-hmm (no licence stated)", "leave one out"),
    "recession": ("FRED-MD and NBER months through SamsonMcCune/RecessionClassifier (MIT)", "leave one out"),
    "goal_gps": ("Amazon GOAL GPS (CC BY 4.0), a point every 5 s", "5 contiguous groups"),
    "kasteren_a": ("van Kasteren 2008, house A (no licence stated), minutes of binary sensors", "day mod 5"),
    "ordonez_a": ("UCI ADLs, user A (no commercial use), minutes of binary sensors", "day mod 5"),
    "eeg_eye": ("UCI EEG Eye State (CC BY 4.0): a control, in which nobody can know anything", "5 contiguous groups"),
}

#: Raw or nearly raw signals, with folds of their own: where they are from, rows of a sequence that are used (the first
#: ones), and every how many of these. Heart sounds are left out two recordings at a time.
RAW = {
    "gait_back": ("CyrilVoisard/ipol_dataset_1 (AGPL-3), 50 Hz raw lower-back IMU of 19 people", 620, 1),
    "eye_gaze": ("Andersson et al. 2017, EyeMovementDetectorEvaluation (GPL-3), 250 Hz raw gaze", 1000, 1),
    "driver": ("jair-jr/driverBehaviorDataset (no licence stated), 10 Hz phone IMU", None, 2),
    "heart_sound": ("davidspringer/Springer-Segmentation-Code (GPL-3), 100 Hz log band energies", 1700, 1),
}

#: Words of made-up languages: letters follow one another by a chain, and each is a handwritten digit of scikit-learn.
WORD_LENGTH, N_WORDS = 8, 400


@dataclass(frozen=True)
class Set:
    """A set: its folds, each ((X, y, lengths), (X, y, lengths)) for training and testing, and samples of a frame."""

    name: str
    words: str
    folds: list = field(repr=False)
    window: int = 1

    @property
    def n_states(self):
        """Number of labels, in training or test."""
        return 1 + max(int(part[1].max()) for fold in self.folds for part in fold)


def all_sets(folder):
    """The ten splits, the six later sets, the raw signals, digits in words and sines, in this order."""
    found = [
        Set(split.name, split.words, [(split.train, split.test)], split.window) for split in labelled_splits(folder)
    ]
    found += [_later(folder, name, rule) for name, (_, rule) in MORE.items()]
    found += [raw_set(folder, name) for name in RAW]
    found += [digit_words(), digit_words(clusters=10)]
    return found + [switching_sines(noise) for noise in (0.25, 0.5)]


def sources():
    """Lines that say where every set is from."""
    lines = [f"- {name}: {source}." for name, source in SOURCES.items() if name != "skab"]
    lines += [f"- {name}: {source}; {rule}." for name, (source, rule) in MORE.items()]
    lines += [f"- {name}: {source}; folds of the file." for name, (source, _, _) in RAW.items()]
    return [
        *lines,
        "- digits: scikit-learn's handwritten digits in made-up words; sines: `drhmm.datasets`, the paper's toy.",
    ]


def _arrays(folder, name, source, *names):
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        raise DataError(f"--data: {folder} has no {name}.npz ({source}).")
    with np.load(path, allow_pickle=False) as archive:
        return [archive[key] for key in ("X", "y", "lengths", *names)]


def raw_set(folder, name):
    """A raw signal; sequences of fold -1 are never tested."""
    source, first, step = RAW[name]
    X, y, lengths, folds = _arrays(folder, name, source, "folds")
    ends = np.cumsum(lengths)
    rows = [np.arange(end - n, end)[:first:step] for n, end in zip(lengths, ends, strict=True)]
    X, y, lengths = X[np.concatenate(rows)], y[np.concatenate(rows)], np.array([len(own) for own in rows])
    folds = folds % 3 if name == "heart_sound" else folds
    words = f"folds of the file, {'all' if first is None else f'first {first}'} rows" + (", every second" * (step == 2))
    return Set(name, words, [_cut(X, y, lengths, folds != k) for k in np.unique(folds[folds >= 0])])


def _later(folder, name, rule):
    X, y, lengths = _arrays(folder, name, MORE[name][0])
    n = len(lengths)
    group = {"leave one out": np.arange(n), "5 contiguous groups": np.arange(n) * 5 // n, "day mod 5": np.arange(n) % 5}
    return Set(name, rule, [_cut(X, y, lengths, group[rule] != k) for k in np.unique(group[rule])])


def _cut(X, y, lengths, trained):
    """Training and test part by a mask of sequences."""
    parts = []
    for own in (trained, ~trained):
        rows = np.repeat(own, lengths)
        parts.append((np.ascontiguousarray(X[rows]), y[rows], lengths[own].tolist()))
    return tuple(parts)


def digit_words(clusters=1, seed=0):
    """Digits in words, half of the images for training; with clusters, each digit is so many classes, many rare.

    Letters follow one another by a random chain. Classes of clusters have shares like 1 / rank^1.25, so that about a
    third of a hundred have fewer than five frames to learn from.
    """
    random = np.random.RandomState(seed)
    images, digits = load_digits(return_X_y=True)
    labels, images = digits.copy(), images[:, images.std(axis=0) > 0]
    for digit in range(10) if clusters > 1 else ():
        own = digits == digit
        labels[own] = digit * clusters + KMeans(clusters, n_init=1, random_state=seed).fit_predict(images[own])
    n_states = 10 * clusters
    shares = (1.0 + random.permutation(n_states)) ** (-1.25 if clusters > 1 else 0.0)
    transmat = random.dirichlet(np.full(n_states, 0.3), n_states) + (clusters > 1) / n_states
    half = random.permutation(len(labels)) % 2
    parts = []
    for side in range(2):
        own = [np.flatnonzero((labels == state) & (half == side)) for state in range(n_states)]
        weights = transmat * shares * [len(rows) > 0 for rows in own]
        rows, states = [], []
        for _ in range(N_WORDS):
            state = random.choice(n_states, p=weights.sum(axis=0) / weights.sum())
            for _ in range(WORD_LENGTH):
                rows.append(random.choice(own[state]))
                states.append(state)
                state = random.choice(n_states, p=weights[state] / weights[state].sum())
        parts.append((images[rows], np.array(states), [WORD_LENGTH] * N_WORDS))
    name = "digits words" if clusters == 1 else "digits, 100 skewed classes"
    return Set(
        name, f"{N_WORDS} words of {WORD_LENGTH} to learn from, {N_WORDS} of other images to label", [tuple(parts)]
    )


def switching_sines(noise, n=100, n_runs=5):
    """The paper's toy, 100 windows of each regime, five runs."""
    folds = []
    for run in range(n_runs):
        X, y = sines_training(n, window=4, noise=noise, random_state=500 + 2 * run)
        X_test, y_test = sines(1000, noise=noise, random_state=501 + 2 * run)
        train = np.vstack(X) if isinstance(X, list) else X
        lengths = [len(part) for part in X] if isinstance(X, list) else [len(X)]
        folds.append(((train, np.concatenate(y) if isinstance(y, list) else y, lengths), (X_test, y_test, [1000])))
    reading = "standard deviation" if noise == 0.25 else "variance"
    return Set(f"sines, {reading} .25", f"{n} windows of each regime, {n_runs} runs", folds, window=4)
