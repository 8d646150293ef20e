"""Durations learned against the plain chain: noisy sines with regular stays, and every open set with its defaults.

    python benchmarks/accuracy/durations.py --seeds 5
    python benchmarks/accuracy/durations.py --data FOLDER --sets bee,skab

The folder holds NAME.npz with X, y and lengths, one file per set; sets that are not in it are left out. Large sets are
measured on one of their folds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from results import markdown_table

from drhmm import DensityRatioHMM
from drhmm.datasets import sines

KINDS = ("geometric", "negative-binomial")

#: Window, folds of sequences, and how many of them are measured.
SETS = {
    "apnea_ecg": (1, 2, 1),
    "bee": (1, 3, 3),
    "eeg_eye": (1, 5, 5),
    "goal_gps": (1, 5, 1),
    "kasteren_a": (1, 5, 1),
    "mhealth_athens": (6, None, 1),
    "occupancy": (1, 3, 3),
    "ordonez_a": (1, 5, 1),
    "recession": (1, 8, 8),
    "skab": (1, 5, 2),
}


def splits(folder, name):
    """Window, and training and test part as (X, y, lengths), fold by fold: every n-th sequence is tested."""
    window, n_folds, n_measured = SETS[name]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
        X, y, lengths = (archive[key] for key in ("X", "y", "lengths"))
    if n_folds is None:  # one long sequence: the first 70 % of it, and the rest
        border = int(0.7 * len(X))
        yield window, (X[:border], y[:border], [border]), (X[border:], y[border:], [len(X) - border])
        return
    for fold in range(n_measured):
        tested = np.arange(len(lengths)) % n_folds == fold
        rows = np.repeat(tested, lengths)
        train, test = ((X[own], y[own], lengths[parts]) for own, parts in ((~rows, ~tested), (rows, tested)))
        # A class that nobody can learn is not asked for.
        known = np.isin(test[1], train[1])
        yield window, train, (test[0], np.where(known, test[1], -1), test[2])


def measured(window, train, test, n_threads, **settings):
    """Accuracy smoothed, filtered and of the best path; evidence scale; shapes; seconds."""
    X, y, lengths = train
    begin = time.perf_counter()
    estimator = DensityRatioHMM(window=window, random_state=0, n_threads=n_threads, **settings)
    estimator.fit(X, y, lengths=lengths)
    seconds = time.perf_counter() - begin
    X, y, lengths = test
    right = [
        np.mean(estimator.predict(X, lengths=lengths, method=method)[y != -1] == y[y != -1])
        for method in ("smooth", "filter", "viterbi")
    ]
    return right, estimator.evidence_scale_, estimator.model_.durations.shape, seconds


def rows_of(name, cases, n_threads):
    """One row of the table for each kind of durations, means over the cases."""
    results = {kind: [] for kind in KINDS}
    for case, more in cases:
        for kind in KINDS:
            results[kind].append(measured(*case, n_threads, durations=kind, **more))
    rows = []
    for kind, found in results.items():
        accuracies = np.mean([right for right, *_ in found], axis=0)
        scales = ", ".join(sorted({f"{scale:g}" for _, scale, *_ in found}, key=float))
        shapes = "; ".join(" ".join(map(str, shape)) for *_, shape, _ in found)
        seconds = sum(seconds for *_, seconds in found)
        rows.append([name, kind, *(f"{value:.3f}" for value in accuracies), scales, shapes, f"{seconds:.0f}"])
    gain = np.mean([a[0][0] - b[0][0] for b, a in zip(*results.values(), strict=True)])
    print(f"{name}: {gain:+.3f}", flush=True)
    return rows


def regular_sines(noise, n_seeds):
    """Sines with stays of 20 to 40 samples: training and test sequences for every seed."""
    for seed in range(n_seeds):
        train, test = (sines(1500, noise=noise, durations=(20, 40), random_state=k) for k in (seed, 100 + seed))
        yield (4, (*train, None), (*test, None)), {"n_basis": 200}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the open sets; only sines without it")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), help="names of sets")
    parser.add_argument("--seeds", type=int, default=5, help="sequences of sines for each noise")
    parser.add_argument("--threads", type=int, help="threads; all cores by default")
    options = parser.parse_args()
    rows = []
    for noise in (0.3, 0.5) if options.seeds > 0 else ():
        rows += rows_of(f"sines, noise {noise}", regular_sines(noise, options.seeds), options.threads)
    for name in options.sets if options.data is not None else ():
        if (options.data / f"{name}.npz").is_file():
            rows += rows_of(name, ((case, {}) for case in splits(options.data, name)), options.threads)
    header = ["data", "durations", "smoothed", "filtered", "best path", "evidence scale", "shapes", "seconds"]
    print("\n".join(markdown_table(header, rows)))


if __name__ == "__main__":
    main()
