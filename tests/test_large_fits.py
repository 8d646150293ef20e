"""Fits of many rows: members learn from all frames, and are judged by a draw of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm.data.sequences import as_sequences
from drhmm.datasets import blobs
from drhmm.features.context import learn_context
from drhmm.features.frames import learn_framing
from drhmm.learning.context import learn_context_members
from drhmm.learning.training_frames import MOST_DRAWN, TrainingFrames
from drhmm.ratios import Additive, Gaussian, LeastSquares


def training_of(n, lengths=None):
    X, y = blobs(n, random_state=0)
    return TrainingFrames(as_sequences(X, lengths), learn_framing(X, 1, True), y.astype(np.int64), 3, None)


@pytest.fixture(scope="module")
def training():
    return training_of(600, [150] * 4)


@pytest.fixture(scope="module")
def drawn():
    return np.concatenate([np.arange(40, 90), np.arange(200, 300), np.arange(590, 600)])


class TestDrawnFrames:
    @pytest.mark.parametrize("source", [Additive(), Gaussian(), LeastSquares(sigma=1.0, rho=0.01, random_state=0)])
    def test_a_member_learns_from_all_frames_and_is_held_out_at_some(self, training, drawn, source):
        task = training.task(training.one_hot())
        (whole,), (part,) = source.learn(task, True), source.learn(replace(task, drawn=drawn), True)
        assert len(part.held_out) == len(drawn)
        # Edges and ridges come from the drawn frames, sums from all.
        said = (
            part.source.log_ratios(training.frames).argmax(axis=1),
            whole.source.log_ratios(training.frames).argmax(axis=1),
        )
        assert np.mean(said[0] == said[1]) > 0.95

    def test_kernels_learn_the_same_from_all_frames(self, training, drawn):
        source, task = LeastSquares(sigma=1.0, rho=0.01, random_state=0), training.task(training.one_hot())
        (whole,), (part,) = source.learn(task, True), source.learn(replace(task, drawn=drawn), True)
        assert_array_equal(part.member.theta, whole.member.theta)
        assert_allclose(part.held_out, whole.held_out[drawn], rtol=1e-12)

    def test_members_that_read_the_context_are_held_out_at_some_frames(self, training):
        framing = learn_framing(training.samples, 1, True)
        past = learn_context(framing, training.samples, training.lengths, 20.0, None, np.random.RandomState(0))
        task = training.task(training.one_hot())
        most = np.flatnonzero(np.arange(600) % 50 > 0)
        whole = learn_context_members(training, past, task, 0.02)
        part = learn_context_members(training, past, replace(task, drawn=most), 0.02)
        for one, other in zip(whole, part, strict=True):
            # Features are standardised by the drawn rows, which only rounding and the ridge notice.
            assert_allclose(other.held_out, one.held_out[most], atol=0.2)

    def test_the_frames_of_small_data_are_all_drawn(self, training):
        assert training.drawn(np.arange(10)) is None

    def test_frames_are_drawn_with_the_judged_rows(self):
        judged = np.arange(7000, 20_000)
        assert_array_equal(training_of(MOST_DRAWN + 1000).drawn(judged), judged)

    def test_few_judged_rows_are_not_all_that_is_drawn(self):
        drawn = training_of(MOST_DRAWN + 1000).drawn(np.arange(7000, 7010))
        assert np.isin(np.arange(7000, 7010), drawn).all()
        assert len(drawn) > MOST_DRAWN // 3
