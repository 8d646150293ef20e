"""Gram statistics, theta, log ratios and the least-squares source."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import _core
from drhmm.features.frames import Framing
from drhmm.ratios import LeastSquares
from drhmm.reference import features as reference_features
from drhmm.reference import ratios as reference
from problems import blobs, kernel_evidence


@pytest.fixture
def problem():
    """Frames, one-hot targets, weights and centres of a three-state problem."""
    frames, states = blobs(0, n_frames=1100)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(frames))
    return frames, np.eye(3)[states], weights, np.ascontiguousarray(frames[::11])


def test_gram_statistics_are_the_weighted_sums(stages, problem):
    frames, targets, weights, centers = problem
    features = reference_features.squared_exponential(frames, centers, 1.5)
    gram, moment, mass = stages.gram(features, frames, centers, 1.5, targets, weights)
    assert_allclose(gram, np.einsum("n,nb,nc->bc", weights, features, features), rtol=1e-11)
    assert_allclose(moment, np.einsum("n,nb,ns->bs", weights, features, targets), rtol=1e-11)
    assert_allclose(mass, weights @ targets)


def test_statistics_of_parts_merge_into_those_of_the_whole(problem):
    frames, targets, weights, centers = problem
    whole, left, right = (_core.GramStatistics(len(centers), 3) for _ in range(3))
    whole.add(frames, targets, weights, centers, 1.5)
    left.add(frames[:300], targets[:300], weights[:300], centers, 1.5)
    right.add(frames[300:], targets[300:], weights[300:], centers, 1.5)
    left.merge(right)
    assert_allclose(left.gram, whole.gram, rtol=1e-12)
    assert_allclose(left.moment, whole.moment, rtol=1e-12)
    assert_allclose(left.mass, whole.mass, rtol=1e-12)


def test_statistics_of_different_sizes_do_not_merge():
    with pytest.raises(ValueError, match="different sizes"):
        _core.GramStatistics(3, 2).merge(_core.GramStatistics(4, 2))


def test_theta_solves_the_regularised_equations(stages, problem):
    frames, targets, weights, centers = problem
    features = reference_features.squared_exponential(frames, centers, 1.5)
    gram, moment, _ = stages.gram(features, frames, centers, 1.5, targets, weights)
    theta = stages.solve(gram, moment, 2.0)
    assert_allclose(gram @ theta + 2.0 * theta, moment, rtol=1e-9, atol=1e-9)


def test_a_gram_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(ValueError, match="choose a larger rho"):
        _core.RegularizedGram(-np.eye(3), 0.5)


@pytest.mark.parametrize("floor", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("evidence_scale", [1.0, 0.25])
@pytest.mark.parametrize("window", [1, 3])
def test_native_log_ratios_equal_the_reference(floor, evidence_scale, window):
    random = np.random.default_rng(2)
    samples = random.normal(size=(400, 2))
    samples[17, 1] = np.nan
    lengths = [150, 1, 249]
    centers, theta = random.normal(size=(40, 2 * window)), random.normal(size=(40, 3)) * 0.1
    prior = np.array([0.2, 0.5, 0.3])
    mean, scale = np.array([0.5, -1.0]), np.array([2.0, 0.7])
    evidence = kernel_evidence(Framing(mean, scale, window), centers, 0.8, theta, prior, floor, evidence_scale)
    frames = reference_features.windows((samples - mean) / scale, np.array(lengths), window)
    estimates = reference.posterior_estimates(frames, centers, 0.8, theta)
    assert_allclose(evidence.estimates(samples, lengths, 2), estimates, rtol=1e-10, atol=1e-13)
    assert_allclose(
        evidence.log_ratios(samples, lengths, 2),
        reference.log_ratios(estimates, prior, floor, evidence_scale),
        rtol=1e-9,
        atol=1e-10,
    )


def test_the_prior_is_divided_out():
    estimates, prior = np.array([[0.2, 0.8]]), np.array([0.1, 0.9])
    ratios = np.exp(reference.log_ratios(estimates, prior, 0.0, 1.0))
    assert_allclose(ratios[0, 0] / ratios[0, 1], (0.9 / 0.1) * (0.2 / 0.8))  # w_ij = n_j / n_i * q_i / q_j


class TestFloor:
    def evidence(self, floor, prior=(0.1, 0.9)):
        theta = np.array([[-1.0, -1.0], [1.0, -1.0]])
        framing = Framing(np.zeros(1), np.ones(1))
        return kernel_evidence(framing, np.array([[0.0], [5.0]]), 1.0, theta, np.array(prior), floor, 1.0)

    def test_a_frame_that_every_class_estimates_as_zero_has_no_evidence(self):
        assert_array_equal(self.evidence(0.0).log_ratios(np.zeros((1, 1)), [1], 1), [[0.0, 0.0]])

    def test_without_a_floor_a_negative_estimate_excludes_a_state(self):
        assert self.evidence(0.0).log_ratios(np.array([[5.0]]), [1], 1)[0, 1] == -np.inf

    def test_without_a_floor_the_last_digits_of_kernels_that_underflow_exclude_a_state(self):
        theta = np.array([[1.0, 0.0], [0.0, 1.0]])
        framing = Framing(np.zeros(1), np.ones(1))
        evidence = kernel_evidence(framing, np.array([[0.0], [60.0]]), 1.0, theta, np.full(2, 0.5), 0.0, 1.0)
        distances = np.sqrt(2 * np.log(10) * np.array([280.0, 295.0, 307.0]))  # kernels of 1e-280, 1e-295 and 1e-307
        assert_array_equal(np.isfinite(evidence.log_ratios(distances[:, None], [3], 1)[:, 0]), [True, False, False])

    def test_a_frame_at_the_floor_in_every_class_prefers_none(self):
        log_ratios = self.evidence(0.01).log_ratios(np.zeros((1, 1)), [1], 1)
        assert_allclose(log_ratios[0, 0], log_ratios[0, 1])

    def test_with_a_floor_no_state_is_excluded(self):
        assert np.isfinite(self.evidence(0.01).log_ratios(np.array([[5.0]]), [1], 1)).all()


class TestLeastSquares:
    def test_estimates_sum_to_about_one_amid_the_data(self):
        frames, states = blobs(1, n_frames=600)
        source = LeastSquares(random_state=0).fit(frames, np.eye(3)[states])
        estimates = reference.posterior_estimates(frames, source.centers_, source.sigma_, source.theta_)
        assert abs(np.median(estimates.sum(axis=1)) - 1) < 0.05

    def test_log_ratios_recover_a_known_density_ratio(self):
        # Two unit Gaussians one apart: log p(y|0) / p(y|1) = (0.5 - y), whatever the class shares are.
        random = np.random.default_rng(0)
        states = (random.random(6000) < 0.8).astype(int)
        frames = random.normal(size=(6000, 1)) + states[:, None]
        source = LeastSquares(n_basis=100, random_state=0).fit(frames, np.eye(2)[states])
        points = np.linspace(-0.5, 1.5, 9)[:, None]
        log_ratios = source.log_ratios(points)
        assert_allclose(log_ratios[:, 0] - log_ratios[:, 1], 0.5 - points[:, 0], atol=0.2)

    def test_a_frame_of_weight_two_counts_as_two_frames(self):
        frames, states = blobs(2, n_frames=120)
        targets = np.eye(3)[states]
        weighted = LeastSquares(sigma=1.0, rho=0.01).fit(frames, targets, np.r_[np.full(30, 2.0), np.ones(90)])
        twice = _core.GramStatistics(120, 3)
        twice.add(frames, targets, np.ones(120), frames, 1.0)
        twice.add(frames[:30], targets[:30], np.ones(30), frames, 1.0)
        theta = _core.RegularizedGram(twice.gram, 0.01 * 150).solve(twice.moment)
        assert_allclose(weighted.theta_, theta, rtol=1e-7, atol=1e-9)

    def test_log_ratios_of_another_width_are_refused(self):
        frames, states = blobs(3)
        source = LeastSquares(random_state=0).fit(frames, np.eye(3)[states])
        with pytest.raises(ValueError, match="frames has 5 columns, but 2 were learned from"):
            source.log_ratios(np.zeros((3, 5)))
