"""False alarms asked for and got, on fresh normal data: the table of docs/alarms.md.

``python benchmarks/accuracy/alarm_levels.py`` takes about ten minutes on one core.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.signal import lfilter

from drhmm import DensityRatioHMM
from drhmm.datasets import blobs, sensors

N_TRAINING, N_FRESH, N_SEEDS = 100_000, 200_000, 10
PERIODS = (50, 200, 1000, 10_000)

KINDS = {
    "Gaussian, 3 columns": lambda n, seed: (np.random.RandomState(seed).normal(size=(n, 3)), None),
    "autoregressive, .9": lambda n, seed: (
        lfilter([0.19**0.5], [1, -0.9], np.random.RandomState(seed).normal(size=(n, 3)), axis=0),
        None,
    ),
    "Student t, 4 degrees of freedom": lambda n, seed: (np.random.RandomState(seed).standard_t(4, (n, 3)), None),
    "sensors": lambda n, seed: (sensors(n, faults=(), random_state=seed)[0], None),
    "blobs, labelled": lambda n, seed: blobs(n, random_state=seed),
}


def with_outliers(samples, seed):
    """Samples with .5 % of the rows moved by 10 to 1,000 standard deviations."""
    random, moved = np.random.RandomState(seed), samples.copy()
    rows = random.choice(len(samples), len(samples) // 200, replace=False)
    sizes = np.exp(random.uniform(np.log(10), np.log(1000), (len(rows), 1)))
    moved[rows] += samples.std(axis=0) * random.choice([-1, 1], (len(rows), samples.shape[1])) * sizes
    return moved


def ratios(make, seed, is_spoilt):
    """Alarms per promised alarm for every period."""
    samples, labels = make(N_TRAINING, 100 + seed)
    fresh, _ = make(N_FRESH, 5000 + seed)
    samples = with_outliers(samples, 77 + seed) if is_spoilt else samples
    estimator = DensityRatioHMM(1 if labels is None else None, novelty=True, random_state=seed, n_threads=1)
    model = estimator.fit(samples, labels).model_
    scores = model.novelty_score(fresh)
    alarms = [model.alarm(1, per=per, hold_off=min(10, per // 5)) for per in PERIODS]
    return [len(alarm.follow(scores)[1]) * alarm.per / N_FRESH for alarm in alarms]


def main():
    warnings.simplefilter("ignore")
    for name, make in KINDS.items():
        for is_spoilt in (False, True):
            means = np.mean([ratios(make, seed, is_spoilt) for seed in range(N_SEEDS)], axis=0)
            print(name, "with outliers" if is_spoilt else "", *(f"{mean:.2f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
