"""Frames of many columns: members learn block by block, and every one takes part."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import drhmm
from drhmm import DensityRatioHMM
from drhmm.evidence.pool_members import MOST_JOINT, AdditiveMember, GaussianMember, blocks_of
from drhmm.evidence.pooled import frame_log_ratios
from drhmm.ratios import Pool

D, N = MOST_JOINT + 37, 400
WEIGHTS = np.ones(N)


@pytest.fixture(scope="module")
def data():
    random = np.random.RandomState(0)
    y = np.repeat(random.randint(3, size=N // 10), 10)
    return random.normal(size=(N, D)) + 0.3 * random.normal(size=(3, D))[y], y, np.eye(3)[y]


@pytest.fixture(scope="module")
def gaussian(data):
    member = GaussianMember.before_learning(data[0], 3)
    return member.learned_from(member.sums(data[0], data[2], WEIGHTS))


def test_blocks_are_as_wide_as_a_small_frame():
    assert blocks_of(MOST_JOINT, 50) == [slice(0, MOST_JOINT)]
    assert blocks_of(MOST_JOINT + 1, MOST_JOINT) == [slice(0, MOST_JOINT), slice(MOST_JOINT, MOST_JOINT + 1)]


def test_columns_of_different_blocks_are_independent_in_gaussians(data, gaussian):
    frames, _, targets = data
    parts = []
    for block in blocks_of(D, MOST_JOINT):
        member = GaussianMember.before_learning(frames[:, block], 3)
        parts.append(
            member.learned_from(member.sums(frames[:, block], targets, WEIGHTS)).log_densities(frames[:, block])
        )
    assert_allclose(gaussian.log_densities(frames), sum(parts), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 50])
def test_the_core_evaluates_gaussians_block_by_block(data, gaussian, n):
    frames, prior = data[0][:n], np.full(3, 1 / 3)
    logs = gaussian.log_densities(frames)
    expected = logs - np.logaddexp.reduce(logs + np.log(prior), axis=1)[:, None]
    found = frame_log_ratios(gaussian, prior, 1e-6, frames, 1)
    assert_allclose(found, np.maximum(expected, np.log(3e-6)), rtol=1e-8, atol=1e-8)


def test_what_blocks_of_an_additive_member_add_is_added_up(data):
    frames, _, targets = data
    member = AdditiveMember.before_learning(frames, 3)
    whole = member.learned_from(member.sums(frames, targets, WEIGHTS))
    estimates = shares = targets.mean(axis=0)
    for block in blocks_of(D, 50):
        part = AdditiveMember.before_learning(frames[:, block], 3)
        part = part.learned_from(part.sums(frames[:, block], targets, WEIGHTS))
        estimates = estimates + np.exp(frame_log_ratios(part, np.ones(3), 1e-9, frames[:, block], 1)) - shares
    found = np.exp(frame_log_ratios(whole, np.ones(3), 1e-9, frames, 1))
    inside = estimates > 0.01
    assert_allclose(found[inside], estimates[inside], atol=0.1)


def test_every_member_takes_part(data):
    estimator = DensityRatioHMM(random_state=0).fit(data[0], data[1], lengths=[100] * 4)
    assert list(estimator.member_scales_) == ["kernel", "additive", "gaussian", "context", "ahead"]
    assert len(Pool().learners()) == 3


def test_a_model_of_many_columns_survives_a_file(data, tmp_path):
    model = DensityRatioHMM(ratio="gaussian", random_state=0).fit(data[0], data[1]).model_
    model.save(tmp_path / "wide.drhmm")
    assert_allclose(drhmm.load(tmp_path / "wide.drhmm").predict_proba(data[0]), model.predict_proba(data[0]))
