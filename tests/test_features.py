"""Frames and kernel features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import _core
from drhmm.features.frames import choose_centers, fair_draw, learn_framing, median_distance
from drhmm.reference import features as reference

SAMPLES = np.arange(12.0).reshape(6, 2)


def test_a_window_joins_samples_oldest_first(stages):
    frames = stages.frames(SAMPLES, [6], 3)
    assert_array_equal(frames[2], [0, 1, 2, 3, 4, 5])


def test_first_frames_of_every_sequence_have_no_window(stages):
    frames = stages.frames(SAMPLES, [2, 4], 2)
    assert_array_equal(np.isnan(frames).any(axis=1), [True, False, True, False, False, False])


def test_a_nan_spoils_every_window_it_is_in(stages):
    samples = SAMPLES.copy()
    samples[2, 1] = np.nan
    frames = stages.frames(samples, [6], 2)
    assert_array_equal(np.isnan(frames).all(axis=1), [True, False, True, True, False, False])


def test_a_window_longer_than_the_sequence_leaves_nothing(stages):
    assert np.isnan(stages.frames(SAMPLES, [6], 7)).all()


def test_features_follow_the_formula(stages):
    features = stages.features(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 0.0]]), 2.0)
    assert_allclose(features, np.exp([[0, -9 / 8], [-25 / 8, -16 / 8]]))


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("n", "n_centers", "n_columns"), [(1, 1, 1), (7, 3, 2), (700, 130, 10)])
def test_native_features_equal_the_reference(n, n_centers, n_columns, offset):
    random = np.random.default_rng(0)
    frames = random.normal(size=(n, n_columns)) + offset
    centers = random.normal(size=(n_centers, n_columns)) + offset
    assert_allclose(
        _core.squared_exponential(frames, centers, 1.3),
        reference.squared_exponential(frames, centers, 1.3),
        rtol=1e-11,
        atol=1e-14,
    )


def test_a_frame_whose_square_overflows_is_far_from_everything():
    assert _core.squared_exponential(np.array([[1e200]]), np.zeros((1, 1)), 1.0)[0, 0] == 0


def test_a_far_frame_has_features_of_exactly_zero():
    frames = np.linspace(30.0, 45.0, 40)[:, None]
    features = _core.squared_exponential(frames, np.zeros((3, 1)), 1.0)
    assert_array_equal(features[frames[:, 0] > 38], 0.0)
    assert (features[frames[:, 0] < 37] > 0).all()


def test_standardised_frames_have_mean_zero_and_unit_spread():
    samples = np.random.default_rng(0).normal(size=(500, 3)) * [1, 10, 1e-3] + [1e6, 0, -5]
    frames = learn_framing(samples, 1, standardize=True).frames(samples, [500])
    assert_allclose(frames.mean(axis=0), 0, atol=1e-9)
    assert_allclose(frames.std(axis=0), 1)


def test_standardisation_ignores_missing_samples():
    samples = np.array([[1.0], [np.nan], [3.0]])
    framing = learn_framing(samples, 1, standardize=True)
    assert_allclose([framing.mean[0], framing.scale[0]], [2, 1])


def test_centers_are_different_training_frames():
    frames = np.random.default_rng(0).normal(size=(50, 2))
    centers = choose_centers(frames, 20, np.random.RandomState(0))
    matches = (centers[:, None, :] == frames[None]).all(axis=2)
    assert_array_equal(matches.sum(axis=1), 1)
    assert (matches.sum(axis=0) <= 1).all()


@pytest.mark.parametrize(
    ("counts", "shares"),
    [([1000, 1000], [50, 50]), ([1990, 10], [90, 10]), ([3, 1000, 30], [3, 67, 30]), ([2000], [100])],
)
def test_every_class_has_a_fair_share_of_the_candidates(counts, shares):
    classes = np.repeat(np.arange(len(counts)), counts)
    drawn = fair_draw(classes, 100, np.random.RandomState(0))
    assert_array_equal(np.bincount(classes[drawn]), shares)
    assert (np.diff(drawn) > 0).all()


def test_all_frames_are_centers_when_there_are_few():
    frames = np.random.default_rng(0).normal(size=(5, 2))
    assert_array_equal(choose_centers(frames, 20, np.random.RandomState(0)), frames)


def test_median_distance_leaves_duplicates_out():
    assert_allclose(median_distance(np.array([[0.0], [0.0], [0.0], [2.0]])), 2.0)
