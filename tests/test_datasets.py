from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm.datasets import FREQUENCIES, accelerometer, markov_chain, sines, sines_training


def test_sines_without_noise_follow_the_formula():
    X, y = sines(200, noise=0.0, random_state=0)
    assert_allclose(X[:, 0], np.sin(np.array(FREQUENCIES)[y] * np.arange(200)))


def test_sines_switch_as_often_as_they_should():
    _, y = sines(50_000, stay=0.98, random_state=0)
    assert abs(np.mean(np.diff(y) != 0) - 0.02) < 0.003


def test_sines_stay_as_long_as_they_are_told_to():
    _, y = sines(50_000, durations=(20, 40), random_state=0)
    stays = np.diff(np.flatnonzero(np.diff(y)))
    assert (stays.min(), stays.max()) == (20, 40)
    assert abs(stays.mean() - 30) < 1


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        (20, "durations must be two integers, the shortest and the longest stay, got 20"),
        ((0, 3), r"durations\[0\] must be at least 1, got 0"),
        ((5, 3), r"durations\[1\] must be at least 5, got 3"),
    ],
)
def test_durations_that_mean_nothing_are_refused(durations, message):
    with pytest.raises(ValueError, match=message):
        sines(10, durations=durations)


def test_steps_follow_each_other_at_the_pace_of_the_activity():
    X, y = accelerometer(2000, noise=0.0, stay=1.0, random_state=1)
    spectrum = np.abs(np.fft.rfft(X[:, 2] - X[:, 2].mean()))
    pace = {"walk": 1.6, "stairs": 1.9, "run": 2.7}[y[0]]
    found = np.fft.rfftfreq(2000, 1 / 25)[spectrum.argmax()]
    assert found == pytest.approx(pace, abs=0.05)


def test_nothing_moves_at_rest():
    X, y = accelerometer(3000, noise=0.0, random_state=0)
    assert_array_equal(X[y == "rest"], 0)
    assert np.abs(X[y == "run"]).max() > 0.5


def test_training_sines_hold_the_asked_number_of_windows():
    X, y = sines_training(50, window=4, random_state=0)
    assert [part.shape for part in X] == [(53, 1)] * 3
    assert [set(part) for part in y] == [{0}, {1}, {2}]


@pytest.mark.parametrize(
    "make",
    [
        lambda s: sines(50, random_state=s)[0],
        lambda s: sines_training(9, random_state=s)[0][1],
        lambda s: accelerometer(50, random_state=s)[0],
    ],
)
def test_same_seed_same_data(make):
    assert_array_equal(make(3), make(3))
    assert not np.array_equal(make(3), make(4))


def test_a_chain_follows_its_transitions():
    transmat = np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    path = markov_chain(20_000, transmat, [0.0, 1.0, 0.0], random_state=0)
    counts = np.zeros((3, 3))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    assert path[0] == 1
    assert_array_equal(counts[transmat == 0], 0)
    assert_allclose(counts / counts.sum(axis=1, keepdims=True), transmat, atol=0.02)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="noise must be in"):
        sines(10, noise=-1)


def test_a_chain_without_states_is_refused():
    with pytest.raises(ValueError, match=r"transmat is empty: shape \(0, 0\)"):
        markov_chain(5, np.zeros((0, 0)))
