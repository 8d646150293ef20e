"""SKAB at one false alarm per hour: drhmm beside the Mahalanobis distance of a mean of 30 rows.

``python benchmarks/accuracy/skab_alarms.py --data FOLDER``. The first 400 rows of each file are normal and set the
levels. Each line has false alarms, files with an alarm that begins in the fault, files with any alarm during it, and
the median delay in seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from anomalies import N_TRAINING, trailing_mean
from sets import anomaly_files
from sklearn.covariance import LedoitWolf

from drhmm import DensityRatioHMM

ROWS, HOLD_OFF, HOUR = 30, 30, 3600
#: Factors of the largest distance in the normal rows of each file.
FACTORS = (1, 1.5, 2, 3, 4, 8, 16, 64)


def episodes_of(high):
    """Begins and ends of runs of high rows; runs at most `HOLD_OFF` apart are one."""
    found = []
    for row in np.flatnonzero(high).tolist():
        if found and row - found[-1][1] < HOLD_OFF:
            found[-1][1] = row + 1
        else:
            found.append([row, row + 1])
    return found


def line(name, episodes, faults):
    """One row of the table from the episodes and fault rows of all files."""
    n_false, n_on, delays = 0, 0, []
    for own, fault in zip(episodes, faults, strict=True):
        begins = [begin for begin, _ in own]
        n_false += sum(not fault[begin] for begin in begins)
        n_on += any(fault[begin:end].any() for begin, end in own)
        inside = [begin for begin in begins if fault[begin]]
        if inside:
            delays.append(inside[0] - int(np.flatnonzero(~fault[: inside[0]]).max(initial=-1)) - 1)
    median = np.median(delays) if delays else np.nan
    return f"| {name} | {n_false} | {len(delays)} | {n_on} | {median:.0f} |"


def distances(X):
    """Distances of the normal rows and of the others, whose means begin anew."""
    parts = [trailing_mean(part, ROWS) for part in (X[:N_TRAINING], X[N_TRAINING:])]
    center, spread = np.nanmean(parts[0], axis=0), np.nanstd(parts[0], axis=0)
    normal, other = ((part - center) / spread for part in parts)
    other[: ROWS - 1] = 0
    fitted = LedoitWolf().fit(normal)
    return fitted.mahalanobis(normal), fitted.mahalanobis(other)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with skab.npz")
    files = anomaly_files(parser.parse_args().data)
    faults = [y[N_TRAINING:] == 1 for _, y in files]
    print("| | false alarms | found | on | median delay, s |\n|---|---|---|---|---|")
    found = []
    for X, _ in files:
        model = DensityRatioHMM(1, novelty=True, random_state=0, n_threads=1).fit(X[:N_TRAINING]).model_
        alarm = model.alarm(1, per=HOUR, hold_off=HOLD_OFF)
        found.append([(episode.begin, episode.end) for episode in alarm.episodes(X[N_TRAINING:])])
    print(line("drhmm", found, faults), flush=True)
    both = [distances(X) for X, _ in files]
    for factor in FACTORS:
        high = [episodes_of(other > factor * normal.max()) for normal, other in both]
        print(line(f"Mahalanobis of a {ROWS}-row mean, level x {factor}", high, faults))


if __name__ == "__main__":
    main()
