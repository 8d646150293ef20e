"""How long native work goes on after Ctrl-C: seconds from the signal to the KeyboardInterrupt, as a table.

python benchmarks/reliability/interrupt.py
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time

import numpy as np

from drhmm import DensityRatioHMM, recursion


def after_signal(work, delay):
    """Seconds that work goes on after a signal that comes after `delay` seconds."""
    sent = []

    def press():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    alarm = threading.Timer(delay, press)
    alarm.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    raise AssertionError("the work was over before the signal came")


def cases():
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(3, size=20_000), 10)
    X = random.normal(size=(len(y), 10)) + y[:, None]
    evidence, dense = random.normal(size=(1_000_000, 40)), np.full((40, 40), 1 / 40)
    left_right = np.triu(np.ones((40, 40))) / np.arange(40, 0, -1)[:, None]
    for n_basis in (500, 2000):
        for n_threads in (1, 2):
            yield (
                f"fit, 200,000 frames, {n_basis} kernels, cross-validated, {n_threads} threads",
                lambda n_basis=n_basis, n_threads=n_threads: DensityRatioHMM(
                    n_basis=n_basis, random_state=0, n_threads=n_threads
                ).fit(X, y),
            )
    yield "fit without labels, 200,000 frames, 500 kernels", lambda: DensityRatioHMM(3, random_state=0).fit(X)
    yield (
        "fixed-lag smoothing, lag 10,000, 40 states",
        lambda: recursion.fixed_lag(evidence, left_right, left_right[0], 10_000),
    )
    yield (
        "smoothing, 1,000,000 frames, 40 states, ten times",
        lambda: [recursion.smooth(evidence, dense, dense[0]) for _ in range(10)],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="signals per kind of work, each 0.7 s later")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("| work | median, s | longest, s |\n|---|---|---|")
    for name, work in cases():
        times = []
        for repeat in range(options.repeats):
            times.append(after_signal(work, 0.5 + 0.7 * repeat))
            print(f"\r{name}: {repeat + 1}/{options.repeats}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        print(f"| {name} | {np.median(times):.2f} | {max(times):.2f} |", flush=True)


if __name__ == "__main__":
    main()
