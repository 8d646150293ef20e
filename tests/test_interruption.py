"""Ctrl-C in long native work: it stops at once, and nothing is left half-done."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from drhmm import DensityRatioHMM, _core, recursion
from problems import blobs

pytestmark = pytest.mark.slow

#: Seconds after which Ctrl-C is pressed, and in which work that takes minutes must have stopped, on a busy machine.
PRESSED, STOPPED = 0.3, 20.0


@pytest.fixture
def stopped():
    """Run some work, press Ctrl-C, and see it stopped: within a native function, where one is named.

    Where native code does not look for signals, KeyboardInterrupt waits for the end of the call, which then has not
    raised it, however short it was.
    """

    def run(work, native=None):
        raised = []

        def watch(_, event, function):
            if event == "c_exception":
                raised.append(function)

        alarm = threading.Timer(PRESSED, os.kill, (os.getpid(), signal.SIGINT))
        alarm.start()
        begin = time.monotonic()
        try:
            sys.setprofile(watch if native is not None else None)
            with pytest.raises(KeyboardInterrupt):
                work()
        finally:
            sys.setprofile(None)
        assert time.monotonic() - begin < STOPPED
        assert native is None or native in raised, "the call went on to its end"
        alarm.join()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def many_frames():
    return blobs(0, n_frames=200_000, n_columns=10)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_a_fit_with_labels_leaves_the_estimator_unfitted(stopped, many_frames, n_threads):
    estimator = DensityRatioHMM(n_basis=1500, random_state=0, n_threads=n_threads)
    stopped(lambda: estimator.fit(*many_frames))
    assert not hasattr(estimator, "model_")


def test_a_fit_without_labels_leaves_the_estimator_unfitted(stopped, many_frames):
    estimator = DensityRatioHMM(3, n_basis=1500, sigma=1.0, rho=0.01, random_state=0, n_threads=1)
    stopped(lambda: estimator.fit(many_frames[0]))
    assert not hasattr(estimator, "model_")


def test_a_second_fit_leaves_what_the_first_one_learned(stopped, many_frames):
    X, y = many_frames
    estimator = DensityRatioHMM(n_basis=20, sigma=1.0, rho=0.01, evidence_scale=1.0, random_state=0).fit(
        X[:500], y[:500]
    )
    fingerprint = estimator.model_.fingerprint
    estimator.set_params(n_basis=2000)
    stopped(lambda: estimator.fit(X, y))
    assert estimator.model_.fingerprint == fingerprint


def test_statistics_are_those_of_before(stopped, many_frames):
    X = many_frames[0]
    statistics, ones = _core.GramStatistics(1000, 1), np.ones((len(X), 1))
    statistics.add(X[:10], ones[:10], ones[:10, 0].copy(), X[:1000].copy(), 1.0)
    before = statistics.gram
    stopped(lambda: statistics.add(X, ones, ones[:, 0].copy(), X[:1000].copy(), 1.0))
    assert_array_equal(statistics.gram, before)


def test_a_reduction_to_three_diagonals(stopped):
    """One fold with many centres: minutes in one task."""
    random = np.random.default_rng(0)
    frames, targets = random.normal(size=(4000, 50)), random.random((4000, 2))
    stopped(
        lambda: _core.cross_validate(frames, targets, np.ones(4000), [2000, 2000], frames, [1.0], [0.1], n_threads=2),
        _core.cross_validate,
    )


LEFT_RIGHT = np.triu(np.ones((30, 30))) / np.arange(30, 0, -1)[:, None]
MIXING = np.full((30, 30), 1 / 30)


@pytest.mark.parametrize("transmat", [LEFT_RIGHT, MIXING], ids=["left-right", "mixing"])
@pytest.mark.parametrize("name", ["fixed_lag", "viterbi", "smooth"])
def test_a_recursion(stopped, name, transmat):
    evidence = np.random.default_rng(0).normal(size=(200_000, 30))
    dt = np.random.default_rng(0).integers(2, 2**50, size=len(evidence))
    lag = (100_000,) if name == "fixed_lag" else ()
    stopped(
        lambda: [
            getattr(recursion, name)(evidence, transmat, np.eye(30)[0], *lag, dt=dt, n_threads=1) for _ in range(100)
        ],
        getattr(_core, name),
    )


def test_a_call_that_goes_on_to_its_end_is_seen(stopped):
    """What the tests above must not be: native work that takes a second or two and does not look for signals."""
    with pytest.raises(AssertionError, match="the call went on to its end"):
        stopped(lambda: [hashlib.pbkdf2_hmac("sha256", b"", b"", 3_000_000) for _ in range(100)], hashlib.pbkdf2_hmac)


def test_a_handler_that_raises_nothing_does_not_stop_the_work():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        alarm = threading.Timer(PRESSED, os.kill, (os.getpid(), signal.SIGINT))
        alarm.start()
        evidence, transmat = np.zeros((2000, 30)), LEFT_RIGHT
        answer = recursion.fixed_lag(evidence, transmat, np.eye(30)[0], 200, n_threads=1)
        alarm.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen
    assert answer.shape == (2000, 30)
