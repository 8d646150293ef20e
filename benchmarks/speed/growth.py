"""Time against size, log-log, with slopes."""

from __future__ import annotations

import time

import numpy as np
from cases import evidence, kernel_problem
from matplotlib.figure import Figure
from table import say

from drhmm import recursion
from drhmm.ratios import LeastSquares

_WHAT = {"T": "predict_proba", "N": "fit, sigma and rho given", "B": "predict_proba", "S": "smoothing"}


def growth(folder, scale):
    """Time against size, log-log, with slopes."""
    figure = Figure(figsize=(11, 3), layout="constrained", dpi=120)
    axes = figure.subplots(1, 4)
    sizes = {"T": np.geomspace(1e3, 1e6 / scale, 7), "N": np.geomspace(1e3, 1e5 / scale, 5),
             "B": np.geomspace(30, 1000, 6), "S": np.geomspace(2, 64, 6)}  # fmt: skip
    lines = []
    for axis, (letter, values) in zip(axes, sizes.items(), strict=True):
        times = []
        for value in values.astype(int):
            function = _growing(letter, int(value))
            function()
            times.append(min(_timed(function) for _ in range(3)))
        slope = np.polyfit(np.log(values[-3:]), np.log(times[-3:]), 1)[0]
        axis.loglog(values.astype(int), times, "o-")
        axis.set_title(f"{_WHAT[letter]}: slope {slope:.2f}", fontsize=9)
        axis.set_xlabel(letter)
        axis.set_xticks(values.astype(int)[::3], [f"{value:,}" for value in values.astype(int)[::3]])
        axis.minorticks_off()
        lines.append(f"| {_WHAT[letter]} | {letter} from {int(values[0]):,} to {int(values[-1]):,} | {slope:.2f} |")
        say(lines[-1])
    axes[0].set_ylabel("seconds")
    figure.savefig(folder / "growth.png")
    return lines


def _timed(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def _growing(letter, value):
    if letter == "S":
        problem = evidence(2000, value)
        return lambda: recursion.smooth(*problem, n_threads=1)
    if letter == "N":
        model, X = kernel_problem(value, n_basis=200, n_columns=10)
        targets = np.eye(3)[model.predict(X)]
        source = LeastSquares(200, sigma=2.0, rho=1e-3, random_state=0, n_threads=1)
        return lambda: source.fit(X, targets)
    n_frames, n_basis = (value, 100) if letter == "T" else (10_000, value)
    model, X = kernel_problem(n_frames, n_basis=n_basis, n_columns=10)
    return lambda: model.predict_proba(X, n_threads=1)
