"""Runs out of memory at every place it can, in a process of its own: python tests/exhaustion.py work threads [steps].

The limit on the address space is lowered step by step until the work fails, and each time the work either gives the
answer it gives without a limit or raises MemoryError. Prints how often it did which.
"""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import drhmm
from drhmm import DensityRatioHMM, recursion

STEPS = 40
LARGE = 2**17  # bytes of the blocks that run out


def room_for_small_blocks() -> list[bytes]:
    """Holes in the heap for as long as the result is kept.

    Without room for a small block numpy can end the process: its iterators raise MemoryError without the GIL.
    """
    return [bytes(LARGE - 2**12) for _ in range(400)][::2]


def used() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limited(room, work):
    """The result of work with so many bytes of room."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used() + room, before[1]))
    try:
        return work()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def data(n_frames, n_columns=2):
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(3, size=n_frames // 10 + 1), 10)[:n_frames]
    y[:3] = 0, 1, 2
    return 3.0 * random.normal(size=(3, n_columns))[y] + random.normal(size=(n_frames, n_columns)), y


def small_model() -> drhmm.Model:
    X, y = data(500)
    return DensityRatioHMM(n_basis=30, sigma=1.0, rho=0.01, evidence_scale=1.0, random_state=0).fit(X, y).model_


def fitting(n_threads):
    """Cross-validation; the estimator stays unfitted, and can be fitted afterwards."""
    X, y = data(1500)
    estimator = DensityRatioHMM(n_basis=250, evidence_scale=1.0, random_state=0, n_threads=n_threads)

    def work():
        estimator.__dict__.pop("model_", None)
        return estimator.fit(X, y).model_.evidence.kernel.theta

    def check():
        assert not hasattr(estimator, "model_")

    return work, check, 40e6


def predicting(n_threads):
    model, (X, _) = small_model(), data(300_000)
    few = model.predict_proba(X[:100])
    return (
        lambda: model.predict_proba(X, n_threads=n_threads),
        lambda: np.testing.assert_array_equal(model.predict_proba(X[:100]), few),
        60e6,
    )


def path(n_threads):
    transmat = np.full((20, 20), 0.05)
    evidence = np.random.default_rng(0).normal(size=(100_000, 20))
    settings = {"lengths": [len(evidence) // 8] * 8, "n_threads": n_threads}
    return lambda: recursion.viterbi(evidence, transmat, transmat[0], **settings), lambda: None, 40e6


def wide_smoothing(n_threads):
    """A left-right chain, whose messages need extended range and memory of their own."""
    transmat = np.triu(np.ones((10, 10)))
    transmat /= transmat.sum(axis=1, keepdims=True)
    evidence = 50 * np.random.default_rng(0).normal(size=(50_000, 10))
    settings = {"lengths": [len(evidence) // 8] * 8, "n_threads": n_threads}
    return lambda: recursion.smooth(evidence, transmat, np.eye(10)[0], **settings), lambda: None, 40e6


def batch_step(n_threads):
    """No row goes on when there is no memory for the answers: afterwards the frames that were taken say so."""
    model = small_model()
    n = 40_000
    state = {"batch": model.stream_batch(n, lag=2, n_threads=n_threads), "frames": 0}
    X = np.random.default_rng(0).normal(size=(n, 2))
    fresh = model.stream_batch(1, lag=2)
    expected = [fresh.step(X[:1])[0] for _ in range(10 * STEPS)]

    def work():
        answers = state["batch"].step(X)
        state["frames"] += 1
        np.testing.assert_allclose(answers[0], expected[state["frames"] - 1], atol=1e-12)
        return np.zeros(1)

    return work, lambda: np.testing.assert_array_equal(state["batch"].n_frames, state["frames"]), 30e6


def adding_rows(n_threads):
    """Rows are added all or not at all."""
    model = small_model()
    batch = model.stream_batch(10, n_threads=n_threads)

    def work():
        batch.add(30_000)
        return np.zeros(1)

    def check():
        assert len(batch) % 30_000 == 10
        assert batch.live.all()

    return work, check, 40e6


WORKS = {
    "fitting": fitting,
    "predicting": predicting,
    "path": path,
    "wide_smoothing": wide_smoothing,
    "batch_step": batch_step,
    "adding_rows": adding_rows,
}


def main(name, n_threads, steps=STEPS):
    work, check, room = WORKS[name](n_threads)
    expected = work()  # everything that is imported or set up once is there
    outcomes = {"right": 0, "MemoryError": 0}
    holes = room_for_small_blocks()
    for step in range(steps):
        try:
            answer = limited(int(room * step / steps), work)
        except MemoryError:
            outcomes["MemoryError"] += 1
            check()
        else:
            np.testing.assert_array_equal(answer, expected)
            outcomes["right"] += 1
    np.testing.assert_array_equal(work(), expected)
    del holes
    print(outcomes["right"], outcomes["MemoryError"])


if __name__ == "__main__":
    # In a thread, whose stack is mapped as a whole. The stack of a process grows, and ends the process where it cannot.
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(main, sys.argv[1], *map(int, sys.argv[2:])).result()
