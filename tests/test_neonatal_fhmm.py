"""The factorial HMM against enumeration of all paths of all factors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from neonatal import fhmm
from neonatal.factors import joint_transitions, marginals, one_at_a_time, settings_of, stationary
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

pytestmark = pytest.mark.slow


@pytest.fixture
def problem():
    """Two factors on three channels, four frames with gaps."""
    random = np.random.default_rng(0)
    chains = [np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([[0.9, 0.1], [0.3, 0.7]])]
    normal = (np.zeros(3), np.diag([1.0, 2.0, 0.5]) + 0.2)
    factors = [
        ([0, 1], (np.array([1.0, -1.0]), np.array([[1.5, 0.4], [0.4, 0.8]]))),
        ([1, 2], (np.array([2.0, 0.5]), np.array([[0.7, -0.1], [-0.1, 1.1]]))),
    ]
    frames = random.normal(size=(4, 3))
    frames[1, 0] = np.nan
    frames[2] = np.nan
    settings = settings_of(2)
    gaussians = [fhmm.combine(normal, factors, setting) for setting in settings]
    return frames, gaussians, chains


def density(frame, gaussian):
    seen = ~np.isnan(frame)
    mean, covariance = gaussian
    return multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).pdf(frame[seen]) if seen.any() else 1.0


def test_filtering_equals_the_enumeration_of_all_paths_of_both_factors(problem):
    frames, gaussians, chains = problem
    start = [np.array([m[1, 0], m[0, 1]]) / (m[1, 0] + m[0, 1]) for m in chains]
    for n_frames in range(1, 5):
        weight = np.zeros(4)
        for first in itertools.product((0, 1), repeat=n_frames):
            for second in itertools.product((0, 1), repeat=n_frames):
                p = start[0][first[0]] * start[1][second[0]]
                for t in range(1, n_frames):
                    p *= chains[0][first[t - 1], first[t]] * chains[1][second[t - 1], second[t]]
                for t in range(n_frames):
                    p *= density(frames[t], gaussians[2 * first[t] + second[t]])
                weight[2 * first[-1] + second[-1]] += p
        assert_allclose(fhmm.filtered(frames[:n_frames], gaussians, chains)[-1], weight / weight.sum(), atol=1e-12)


def test_log_densities_are_those_of_the_columns_that_are_there(problem):
    frames, gaussians, _ = problem
    expected = [[np.log(density(frame, gaussian)) for gaussian in gaussians] for frame in frames]
    assert_allclose(fhmm.log_densities(frames, gaussians), expected, atol=1e-12)


def test_the_later_factor_has_the_channel_that_both_share(problem):
    _, gaussians, _ = problem
    mean, covariance = gaussians[3]
    assert_array_equal(mean, [1.0, 2.0, 0.5])
    assert_array_equal(covariance[0, 1:], 0)
    assert covariance[1, 2] == -0.1


def test_every_combination_is_a_covariance(problem):
    for _, covariance in problem[1]:
        assert np.linalg.eigvalsh(covariance).min() > 0


def test_settings_count_from_all_off_to_all_on():
    assert settings_of(2).tolist() == [[False, False], [False, True], [True, False], [True, True]]


def test_joint_transitions_are_products_of_those_of_the_factors():
    chains = [np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([[0.9, 0.1], [0.3, 0.7]])]
    joint, settings = joint_transitions(chains), settings_of(2).astype(int)
    for i, before in enumerate(settings):
        for j, after in enumerate(settings):
            assert joint[i, j] == pytest.approx(chains[0][before[0], after[0]] * chains[1][before[1], after[1]])


def test_long_run_shares_do_not_change():
    chains = [np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([[0.9, 0.1], [0.3, 0.7]])]
    assert_allclose(stationary(chains) @ joint_transitions(chains), stationary(chains))


def test_one_factor_at_a_time_forbids_two_changes_and_sums_to_one():
    chains = [np.array([[0.8, 0.2], [0.4, 0.6]])] * 2
    allowed = one_at_a_time(joint_transitions(chains), settings_of(2))
    assert allowed[0, 3] == allowed[1, 2] == 0
    assert_allclose(allowed.sum(axis=1), 1)


def test_a_factor_is_on_in_the_settings_that_have_it_on():
    assert_allclose(marginals(np.array([0.1, 0.2, 0.3, 0.4]), settings_of(2)), [0.7, 0.6])


def test_a_column_that_was_never_seen_does_not_spoil_the_gaussian():
    frames = np.random.default_rng(0).normal(size=(200, 3))
    frames[:, 1] = np.nan
    mean, covariance = fhmm.gaussian(frames)
    assert np.isfinite(mean).all()
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert covariance[0, 2] == pytest.approx(np.cov(frames[:, [0, 2]].T)[0, 1])
