"""Streams for a long time and models on many threads, measured; writes LIVE.md beside this file.

    python benchmarks/live/live.py [--frames 10000000]

Progress is shown on standard error. Answers are asserted before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import drhmm
from drhmm import DensityRatioHMM
from drhmm.datasets import blobs


def resident():
    """Memory of this process now, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def note(text):
    print(text, file=sys.stderr, flush=True)


def learned(n_basis, n_columns, **settings):
    """A model with three states and a table like the one it was learned from."""
    X, y = blobs(3000, random_state=0)
    wide = np.random.default_rng(0).normal(size=(2, n_columns))
    X = X @ wide
    fixed = {"ratio": "least-squares", "sigma": 2.0, "rho": 0.003, "evidence_scale": 1.0, "transition_temper": 1.0}
    model = DensityRatioHMM(n_basis=n_basis, random_state=0, **fixed, **settings)
    return model.fit(X, y).model_, X


def long_stream(n_frames):
    """Memory and row sums over many frames, with missing samples, gaps, novelty and a lag."""
    model, X = learned(50, 3, window=2, novelty=True)
    X[np.random.default_rng(1).random(len(X)) < 0.01] = np.nan
    stream = model.stream(lag=2)
    rows, worst, begin = [], 0.0, time.perf_counter()
    part = max(1, n_frames // 10)
    for t in range(n_frames):
        posterior = stream.step(X[t % len(X)], 1 if t % 100 else 50)
        if posterior is not None:
            worst = max(worst, abs(posterior.sum() - 1.0))
        if (t + 1) % part == 0:
            rows.append((t + 1, resident(), worst))
            note(f"long stream: {t + 1:,} frames, {rows[-1][1]:.1f} MB, row sums within {worst:.1e}")
    assert worst < 1e-12
    return rows, (time.perf_counter() - begin) / n_frames


def threads(n_threads, n_predictions):
    """The same predictions one after the other and on many threads: equal, and the ratio of times (median of 5)."""
    model, X = learned(300, 10)
    parts = [X[start : start + 2000] for start in range(0, 1000, 100)]
    expected = [model.predict_proba(part, n_threads=1) for part in parts]

    def work(_):
        for k in range(n_predictions):
            answer = model.predict_proba(parts[k % len(parts)], n_threads=1)
            if not np.array_equal(answer, expected[k % len(parts)]):
                raise AssertionError("a prediction differs")

    ratios = []
    for repeat in range(5):
        begin = time.perf_counter()
        work(0)
        single = (time.perf_counter() - begin) * n_threads
        begin = time.perf_counter()
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, range(n_threads)))
        ratios.append(single / (time.perf_counter() - begin))
        note(f"threads: run {repeat + 1} of 5, {ratios[-1]:.2f} times as fast")
    return statistics.median(ratios)


def latency(n_frames):
    """Time of one step seen from Python: median and the slow end, in microseconds; numpy beside it."""
    model, X = learned(300, 10)
    evidence = model.evidence
    stream, expected = model.stream(), model.predict_proba(X, method="filter")
    np.testing.assert_allclose([stream.step(x) for x in X], expected, atol=1e-12)
    centers, theta, prior = evidence.kernel.centers, evidence.kernel.theta, evidence.prior
    mean, scale, a = evidence.framing.mean, evidence.framing.scale, model.transmat

    def by_hand(x, message):
        frame = (x - mean) / scale
        phi = np.exp(-((centers - frame) ** 2).sum(axis=1) / (2 * evidence.kernel.sigma**2))
        q = np.maximum(phi @ theta, evidence.least_ratio * prior) / prior
        message = (message @ a) * q
        return message / message.sum()

    times = {"drhmm": [], "numpy": []}
    message = model.startprob
    for t in range(n_frames):
        x = X[t % len(X)]
        begin = time.perf_counter_ns()
        stream.step(x)
        middle = time.perf_counter_ns()
        message = by_hand(x, message)
        times["drhmm"].append(middle - begin)
        times["numpy"].append(time.perf_counter_ns() - middle)
    return {name: np.percentile(values, [50, 99, 99.99]) / 1000 for name, values in times.items()}


def batch(n_rows):
    """Time of one row of a batch step, on one thread and on all cores, in microseconds."""
    model, X = learned(300, 10)
    samples = np.resize(X, (n_rows, X.shape[1]))
    times = {}
    for n_threads in (1, os.cpu_count()):
        streams = model.stream_batch(n_rows, n_threads=n_threads)
        runs = []
        for _ in range(20):
            begin = time.perf_counter()
            streams.step(samples)
            runs.append(time.perf_counter() - begin)
        times[n_threads] = statistics.median(runs) / n_rows * 1e6
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=10_000_000, help="frames of the long stream")
    options = parser.parse_args()
    rows, per_frame = long_stream(options.frames)
    ratio = threads(8, 1000)
    times = latency(200_000)
    per_row = batch(10_000)
    lines = [
        "# Live: measured",
        "",
        "Made by `python benchmarks/live/live.py`; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}, "
        f"drhmm {drhmm.__version__}.",
        "",
        "## A long stream",
        "",
        f"{options.frames:,} frames through one stream (lag 2, windows of 2, novelty, every hundredth sample missing, "
        f"a gap of 50 steps every hundred frames), {per_frame * 1e6:.1f} us per frame, this loop included:",
        "",
        "| frames | resident memory, MB | posteriors sum to 1 within |",
        "|---|---|---|",
        *[f"| {count:,} | {memory:.1f} | {worst:.1e} |" for count, memory, worst in rows],
        "",
        "## One model on many threads",
        "",
        f"8 threads x 1000 predictions of 2000 frames (300 kernels, 10 columns): every answer identical to the "
        f"single-threaded one, {ratio:.2f} times as fast as one thread (median of 5).",
        "",
        "## One frame",
        "",
        "300 kernels, 10 columns, 3 states, seen from Python, microseconds (interleaved with the same in numpy):",
        "",
        "| | median | 99 % | 99.99 % |",
        "|---|---|---|---|",
        *[f"| {name} | {row[0]:.1f} | {row[1]:.1f} | {row[2]:.1f} |" for name, row in times.items()],
        "",
        "## Ten thousand streams in one call",
        "",
        "The same model, microseconds per row: "
        + ", ".join(f"{value:.2f} on {n} thread{'s' if n > 1 else ''}" for n, value in per_row.items())
        + ".",
        "",
    ]
    (Path(__file__).parent / "LIVE.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
