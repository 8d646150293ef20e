"""Short sequences for learning with few labels or none: at most 1,200 rows of open sets, and generators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drhmm.datasets import blobs, markov_chain, moons, rings

MOST_ROWS = 1200
#: Classes with fewer rows than this among those that were drawn are left out.
FEWEST_ROWS = 20
#: Open sets: every so many rows are taken, and at most so many rows of a sequence.
OPEN = {
    "apnea_ecg": (1, 400),
    "bee": (1, 600),
    "driver": (5, 1200),
    "eeg_eye": (5, 1200),
    "eye_gaze": (1, 600),
    "gait_back": (1, 600),
    "goal_gps": (1, 72),
    "heart_sound": (1, 600),
    "kasteren_a": (20, 72),
    "mhealth_athens": (10, 1200),
    "occupancy": (10, 600),
    "ordonez_a": (10, 150),
    "recession": (1, 1200),
}


@dataclass(frozen=True)
class Case:
    """Samples, their states 0..S-1 and the lengths of sequences."""

    X: np.ndarray
    y: np.ndarray
    lengths: list
    window: int = 1

    @property
    def n_states(self):
        """Number of states."""
        return 1 + int(self.y.max())


def open_set(folder, name, seed):
    """Rows of randomly chosen sequences."""
    stride, longest = OPEN[name]
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as data:
        X, y, lengths = data["X"], data["y"], data["lengths"]
    random, rows, sizes = np.random.RandomState(seed), [], []
    for number in random.permutation(len(lengths)):
        begin = int(lengths[:number].sum())
        own = np.arange(begin, begin + lengths[number], stride)
        first = random.randint(len(own) - longest + 1) if len(own) > longest else 0
        own = own[first : first + min(longest, MOST_ROWS - sum(sizes))]
        if len(own) > 1:
            rows.append(own)
            sizes.append(len(own))
    rows = np.concatenate(rows)
    sequence, codes = np.repeat(np.arange(len(sizes)), sizes), y[rows]
    classes, counts = np.unique(codes, return_counts=True)
    kept = np.isin(codes, classes[counts >= FEWEST_ROWS])
    codes = np.unique(codes[kept], return_inverse=True)[1]
    X = X[rows[kept]]
    X = X[:, X.std(axis=0) > 0]
    return Case(X, codes, np.bincount(sequence[kept])[np.unique(sequence[kept])].tolist())


def sticky(n_states, stay=0.95):
    """Transition probabilities of states that last."""
    return np.full((n_states, n_states), (1 - stay) / (n_states - 1)) + (stay - (1 - stay) / (n_states - 1)) * np.eye(
        n_states
    )


def returns(n, random_state):
    """Daily returns of a calm and a turbulent market: heavy tails, the same mean, another spread."""
    random = np.random.RandomState(random_state)
    y = markov_chain(n, [[0.99, 0.01], [0.03, 0.97]], random_state=random)
    return np.where(y == 0, 0.7, 2.0)[:, None] * random.standard_t(6, size=(n, 1)), y


def binary(n, random_state):
    """Twelve binary sensors, four states."""
    random = np.random.RandomState(random_state)
    y = markov_chain(n, sticky(4), random_state=random)
    return (random.random_sample((n, 12)) < random.beta(0.4, 0.8, size=(4, 12))[y]).astype(float), y


def gaussian(n, n_states, n_columns, random_state):
    """A Gaussian HMM: neighbouring means overlap a little, covariances differ."""
    random = np.random.RandomState(random_state)
    y = markov_chain(n, sticky(n_states), random_state=random)
    means = random.standard_normal((n_states, n_columns)) * 3 / np.sqrt(n_columns) ** 0.5
    roots = np.stack([np.linalg.qr(random.standard_normal((n_columns, n_columns)))[0] for _ in range(n_states)])
    roots = roots * random.uniform(0.4, 1.5, size=(n_states, 1, n_columns))
    return means[y] + np.einsum("tde,te->td", roots[y], random.standard_normal((n, n_columns))), y


def autoregressive(n, random_state):
    """Two states with the same spread that differ in how a sample follows the one before."""
    random = np.random.RandomState(random_state)
    y, x = markov_chain(n, sticky(2, 0.99), random_state=random), np.zeros(n)
    noise = random.standard_normal(n)
    for t in range(1, n):
        x[t] = (0.9, -0.9)[y[t]] * x[t - 1] + noise[t]
    return x[:, None], y


def noise(n, random_state):
    """Normal noise, one state."""
    return np.random.RandomState(random_state).standard_normal((n, 2)), np.zeros(n, dtype=int)


def t_noise(n, random_state):
    """Noise with heavy tails, one state."""
    return np.random.RandomState(random_state).standard_t(3, size=(n, 2)), np.zeros(n, dtype=int)


GENERATORS = {
    "noise": noise,
    "t-noise": t_noise,
    "blobs": blobs,
    "moons": moons,
    "rings": rings,
    "returns": returns,
    "binary": binary,
}


def generated(name, seed):
    """The sequence of a generator; "gaussian S D" is a Gaussian HMM, "autoregressive" has windows of two samples."""
    if name.startswith("gaussian"):
        X, y = gaussian(1000, *map(int, name.split()[1:]), random_state=seed)
        return Case(X, y, [len(X)])
    if name == "autoregressive":
        return Case(*autoregressive(1000, seed), [1000], window=2)
    X, y = GENERATORS[name](1000, random_state=seed)
    return Case(X, y, [len(X)])


def case_of(folder, name, seed):
    """A sequence by name."""
    return open_set(folder, name, seed) if name in OPEN else generated(name, seed)


def some_labels(case, pattern, seed):
    """Labels that are known, -1 elsewhere; every state has at least one.

    "1 %", "5 %", "20 %": stretches of 5, 10 and 20 rows; "5 rows": five single rows of each state; "stretch": one
    stretch of up to 15 rows of each state.
    """
    random, n = np.random.RandomState(seed), len(case.y)
    known = np.zeros(n, dtype=bool)
    if pattern == "5 rows":
        for state in range(case.n_states):
            known[random.choice(np.flatnonzero(case.y == state), 5, replace=False)] = True
    elif pattern == "stretch":
        ends = np.cumsum(case.lengths)
        for state in range(case.n_states):
            row = int(random.choice(np.flatnonzero(case.y == state)))
            end = min(row + 15, int(ends[np.searchsorted(ends, row, side="right")]))
            run = np.flatnonzero(case.y[row:end] != state)
            known[row : row + (run[0] if len(run) > 0 else end - row)] = True
    else:
        share, length = {"1 %": (0.01, 5), "5 %": (0.05, 10), "20 %": (0.2, 20)}[pattern]
        missing = set(range(case.n_states))
        while known.mean() < share or missing:
            rows = np.flatnonzero(np.isin(case.y, list(missing))) if missing else np.arange(n)
            begin = max(int(random.choice(rows)) - length // 2, 0)
            known[begin : begin + length] = True
            missing -= set(case.y[known].tolist())
    return np.where(known, case.y, -1)
