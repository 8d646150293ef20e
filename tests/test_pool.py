"""The members of a pool and their sum: the native pass, the sums that members learn from, and the numpy oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import _core
from drhmm.evidence.pool_members import AdditiveMember, GaussianMember, KernelMember, added
from drhmm.evidence.pooled import frame_log_ratios, least_ratio_of, pooled_evidence
from drhmm.features.frames import Framing
from drhmm.reference import features as reference_features
from drhmm.reference import pool as reference
from drhmm.reference import ratios as reference_ratios
from problems import blobs

FLOOR = 0.02


def problem(n_frames=400, n_columns=3, n_states=3):
    """Frames, soft targets, weights and class shares."""
    random = np.random.default_rng(0)
    frames, states = blobs(0, n_frames, n_states, n_columns=n_columns)
    frames[:, 0] = frames[:, 0].round()  # few different values: deciles that coincide
    targets = 0.9 * np.eye(n_states)[states] + 0.1 / n_states
    weights = random.uniform(0.5, 2, n_frames)
    prior = weights @ targets / weights.sum()
    return frames, targets, weights, prior


def members(frames, targets, weights):
    """The three members, learned."""
    centers = np.ascontiguousarray(frames[::9])
    beginnings = (
        KernelMember(centers, np.zeros((len(centers), targets.shape[1])), 1.5, 1e-3),
        AdditiveMember.before_learning(frames, targets.shape[1]),
        GaussianMember.before_learning(frames, targets.shape[1]),
    )
    return [member.learned_from(member.sums(frames, targets, weights)) for member in beginnings]


def reference_members(frames, targets, weights, prior, new_frames):
    """Log ratios of the three members at new frames, by the oracle."""
    least = reference.least_ratio(targets.shape[1], FLOOR)
    centers = frames[::9]
    phi = reference_features.squared_exponential(frames, centers, 1.5)
    gram, moment, mass = reference_ratios.gram_statistics(phi, targets, weights)
    theta = reference_ratios.solve_theta(gram, moment, 1e-3 * mass.sum())
    kernel = reference_ratios.posterior_estimates(new_frames, centers, 1.5, theta) / prior
    tables = frames.min(axis=0), frames.max(axis=0), frames.std(axis=0), reference.decile_edges(frames)
    additive_theta = reference.additive_theta(reference.additive_features(frames, *tables), targets, weights)
    additive = reference.additive_features(new_frames, *tables) @ additive_theta / prior
    means, covariances = reference.gaussian_moments(frames, targets, weights, frames.var(axis=0))
    gaussian = reference.gaussian_ratios(new_frames, means, covariances, prior)
    return [reference.limited(ratios, least) for ratios in (kernel, additive, gaussian)]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_every_member_equals_the_reference(which):
    frames, targets, weights, prior = problem()
    new_frames = 2 * np.random.default_rng(1).normal(size=(300, 3))
    expected = reference_members(frames, targets, weights, prior, new_frames)[which]
    found = frame_log_ratios(members(frames, targets, weights)[which], prior, FLOOR, new_frames, 1)
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_states", [2, 5])
def test_the_pool_is_the_scaled_sum_with_the_prior_shift(n_states):
    frames, targets, weights, prior = problem(n_states=n_states)
    new_frames = 2 * np.random.default_rng(1).normal(size=(300, 3))
    scales = (0.25, 0.5, 2.0)
    scaled = [
        replace(member, scale=scale) for member, scale in zip(members(frames, targets, weights), scales, strict=True)
    ]
    evidence = pooled_evidence(Framing(np.zeros(3), np.ones(3)), prior, FLOOR, scaled, prior_shift=-0.7)
    expected = reference.pooled(reference_members(frames, targets, weights, prior, new_frames), scales, -0.7, prior)
    assert_allclose(evidence.log_ratios(new_frames, [300], 2), expected, rtol=1e-8, atol=1e-9)


class TestNativePass:
    LENGTHS = (150, 1, 149)

    def evidence(self, window=2):
        frames, targets, weights, prior = problem(n_columns=2 * window)
        scaled = [replace(member, scale=0.3) for member in members(frames, targets, weights)]
        return pooled_evidence(Framing(np.array([0.5, -1]), np.array([2, 0.7]), window), prior, FLOOR, scaled, 0.4)

    def samples(self):
        samples = np.random.default_rng(2).normal(size=(300, 2))
        samples[17, 1] = np.nan
        return samples

    def test_threads_do_not_change_anything(self):
        evidence, samples = self.evidence(), self.samples()
        one, four = (evidence.log_ratios(samples, list(self.LENGTHS), n) for n in (1, 4))
        assert_array_equal(one, four)

    def test_frames_with_a_gap_are_missing(self):
        log_ratios = self.evidence().log_ratios(self.samples(), list(self.LENGTHS), 1)
        missing = np.flatnonzero(np.isnan(log_ratios).all(axis=1))
        assert_array_equal(missing, [0, 17, 18, 150, 151])

    def test_single_precision_is_close(self):
        evidence, samples = self.evidence(), self.samples()
        wide, single = (evidence.log_ratios(samples, list(self.LENGTHS), 1, single) for single in (False, True))
        assert_allclose(single, wide, rtol=1e-4, atol=1e-4)

    def test_data_far_from_zero_keep_their_digits(self):
        frames, targets, weights, prior = problem()
        near = [frame_log_ratios(member, prior, FLOOR, frames, 1) for member in members(frames, targets, weights)]
        far = [
            frame_log_ratios(member, prior, FLOOR, frames + 1e6, 1)
            for member in members(frames + 1e6, targets, weights)
        ]
        for one, other in zip(near, far, strict=True):
            assert_allclose(other, one, atol=1e-4)

    def test_a_member_of_scale_zero_says_nothing(self):
        frames, targets, weights, prior = problem()
        kernel, additive, gaussian = members(frames, targets, weights)
        framing = Framing(np.zeros(3), np.ones(3))
        alone = pooled_evidence(framing, prior, FLOOR, [kernel])
        silent = pooled_evidence(
            framing, prior, FLOOR, [kernel, replace(additive, scale=0.0), replace(gaussian, scale=0.0)]
        )
        assert_array_equal(silent.log_ratios(frames, [len(frames)], 1), alone.log_ratios(frames, [len(frames)], 1))

    @pytest.mark.parametrize(
        ("name", "changed"),
        [
            ("theta", {"kernel": (np.zeros((4, 2)), 1.0, np.zeros((4, 3)), 1.0)}),
            ("centers", {"kernel": (np.zeros((4, 1)), 1.0, np.zeros((4, 2)), 1.0)}),
            ("means", {"gaussian": (np.zeros(2), np.zeros((2, 1)), np.zeros((4, 2)), np.zeros(2), 1.0)}),
            ("whitening", {"gaussian": (np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), 1.0)}),
        ],
    )
    def test_arrays_of_other_shapes_are_refused(self, name, changed):
        with pytest.raises(ValueError, match=name):
            _core.PooledRatio(
                mean=np.zeros(2),
                scale=np.ones(2),
                window=1,
                span=0,
                prior=np.full(2, 0.5),
                least_ratio=0.1,
                floor=0.1,
                shift=np.zeros(2),
                **changed,
            )


class TestSums:
    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_parts_add_up_to_the_whole(self, which):
        frames, targets, weights, _ = problem()
        member = members(frames, targets, weights)[which]
        whole = member.sums(frames, targets, weights)
        parts = added(
            member.sums(frames[rows], targets[rows], weights[rows]) for rows in (slice(150), slice(150, None))
        )
        for name, values in whole.items():
            assert_allclose(parts[name], values, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("which", [1, 2])
    def test_the_unit_of_weights_does_not_matter(self, which):
        frames, targets, weights, prior = problem()
        one, other = (members(frames, targets, unit * weights)[which] for unit in (1.0, 1e-3))
        assert_allclose(
            frame_log_ratios(other, prior, FLOOR, frames, 1),
            frame_log_ratios(one, prior, FLOOR, frames, 1),
            rtol=1e-8,
            atol=1e-8,
        )

    def test_a_class_without_frames_has_the_floor(self):
        frames, targets, weights, prior = problem()
        targets[:, 1] = 0.0
        for member in members(frames, targets, weights):
            log_ratios = frame_log_ratios(member, prior, FLOOR, frames, 1)
            assert_allclose(log_ratios[:, 1], np.log(least_ratio_of(FLOOR, 3)))


def test_the_least_ratio_is_capped():
    assert least_ratio_of(0.02, 3) == pytest.approx(0.06)
    assert least_ratio_of(0.02, 100) == 0.5
