"""Folds, and the choice of sigma and rho."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import DensityRatioHMM, _core
from drhmm.ratios import LeastSquares
from drhmm.reference import ratios as reference
from drhmm.tuning import folds
from drhmm.tuning.folds import contiguous_folds, folds_of
from drhmm.tuning.kernel_search import RHO_GRID
from problems import blobs


def test_folds_are_contiguous_blocks_of_each_sequence():
    assert_array_equal(
        contiguous_folds([10, 15]), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 0, 0, 0]
    )


def test_short_sequences_are_spread_over_all_folds():
    assert_array_equal(np.bincount(contiguous_folds([1] * 50)), [10] * 5)


class TestFolds:
    def test_whole_sequences_where_there_are_as_many_as_folds(self):
        sequence = np.repeat(np.arange(7), 4)
        assert_array_equal(folds_of(sequence, np.tile([0, 1], 14), 2), sequence % 5)

    def test_blocks_where_there_are_few_sequences(self):
        sequence = np.repeat(np.arange(2), 10)
        assert_array_equal(folds_of(sequence, np.tile([0, 1], 10), 2), contiguous_folds([10, 10]))

    def test_blocks_where_a_class_would_be_all_in_one_fold(self):
        sequence, codes = np.repeat(np.arange(5), 10), np.zeros(50, dtype=np.int64)
        codes[:10] = 1
        assert_array_equal(folds_of(sequence, codes, 2), contiguous_folds([10] * 5))

    def test_frames_without_a_label_are_no_class(self):
        sequence = np.repeat(np.arange(5), 4)
        assert_array_equal(folds_of(sequence, np.full(20, -1), 3), sequence)


def recordings(n, random):
    """Sequences of 600 samples with an offset of their own: blocks of a sequence share it, new sequences do not."""
    parts, labels = [], []
    for _ in range(n):
        stays = random.integers(30, 60, 20)
        y = np.repeat((np.arange(20) + random.integers(3)) % 3, stays)[:600]
        parts.append(2 * np.eye(3)[y] + 2 * random.normal(size=3) + random.normal(size=(600, 3)))
        labels.append(y)
    return parts, labels


@pytest.mark.slow
class TestNewRecordings:
    """Few long recordings: evidence that holds within a recording must not look good for new ones."""

    def loss(self, seed):
        random = np.random.default_rng(seed)
        (X, y), (new, truth) = recordings(3, random), recordings(5, random)
        posteriors = (
            DensityRatioHMM(random_state=0, n_threads=1).fit(X, y).predict_proba(np.vstack(new), lengths=[600] * 5)
        )
        return -np.log(posteriors[np.arange(3000), np.concatenate(truth)]).mean()

    @pytest.mark.parametrize("seed", [0, 3, 5])
    def test_three_are_enough_to_see_how_they_differ(self, seed):
        assert self.loss(seed) < 0.8

    @pytest.mark.parametrize("seed", [0, 3, 5])
    def test_blocks_of_them_would_be_sure_and_wrong(self, seed, monkeypatch):
        monkeypatch.setattr(folds, "FEWEST_WHOLE", 4)
        assert self.loss(seed) > 2


class TestCrossValidation:
    FOLDS = contiguous_folds([200])
    SIGMAS = (0.8, 2.0)

    def native(self, n_threads):
        frames, states = blobs(0, n_frames=200)
        sizes = np.bincount(self.FOLDS).tolist()
        centers = np.ascontiguousarray(frames[::4])
        rhos = [1e-4, 1e-2, 1.0]
        return _core.cross_validate(
            frames, np.eye(3)[states], np.ones(200), sizes, centers, self.SIGMAS, rhos, n_threads
        )

    def test_native_equals_explicit_predictions(self):
        frames, states = blobs(0, n_frames=200)
        loss, estimates = self.native(2)
        for s, sigma in enumerate(self.SIGMAS):
            expected_loss, expected_estimates = reference.cross_validate(
                frames, np.eye(3)[states], self.FOLDS, frames[::4], sigma, [1e-4, 1e-2, 1.0]
            )
            assert_allclose(loss[s].sum(axis=1), expected_loss, rtol=1e-8)
            assert_allclose(estimates[s], expected_estimates, rtol=1e-7, atol=1e-9)

    def test_threads_do_not_change_anything(self):
        for one, four in zip(self.native(1), self.native(4), strict=True):
            assert_array_equal(one, four)


def test_much_data_chooses_a_smaller_rho_than_little():
    frames, states = blobs(1, n_frames=3000, separation=3.0)
    targets = np.eye(3)[states]
    few = LeastSquares(random_state=0, n_basis=100).fit(frames[:60], targets[:60])
    many = LeastSquares(random_state=0, n_basis=100).fit(frames, targets)
    assert many.rho_ < few.rho_


def test_pure_noise_stays_near_the_default_instead_of_the_constant_predictor():
    random = np.random.default_rng(0)
    frames, states = random.normal(size=(100, 3)), random.integers(2, size=100)
    source = LeastSquares(random_state=0).fit(frames, np.eye(2)[states])
    assert 1e-3 <= source.rho_ <= max(RHO_GRID)
    assert source.selection_.loss.shape == (len(source.selection_.sigmas), len(RHO_GRID))


def test_only_rho_is_searched_when_sigma_is_given():
    frames, states = blobs(2)
    source = LeastSquares(sigma=1.25, random_state=0).fit(frames, np.eye(3)[states])
    assert source.sigma_ == 1.25
    assert_array_equal(source.selection_.sigmas, [1.25])


def test_nothing_is_searched_when_both_are_given():
    frames, states = blobs(2)
    assert LeastSquares(sigma=1.0, rho="default").fit(frames, np.eye(3)[states]).selection_ is None
