"""The default estimator: which members take part, how much they count, and pools of one's own."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from drhmm import DensityRatioHMM
from drhmm.evidence.pooled import PooledEvidence
from drhmm.features.frames import basis_size
from drhmm.files.model_file import from_bytes, to_bytes
from drhmm.ratios import Additive, FromClassifier, Gaussian, LeastSquares, Pool, TwoClass
from drhmm.ratios.pool import SourceEvidence
from problems import blobs

X, Y = blobs(0)
FAST = {"n_basis": 30, "random_state": 0}


class NearestMean:
    """A source of the user's own."""

    def fit(self, frames, targets):
        self.means = targets.T @ frames / targets.sum(axis=0)[:, None]

    def log_ratios(self, frames):
        return -np.square(frames[:, None] - self.means).sum(axis=2) / 2


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(**FAST).fit(X, Y)


class TestMembers:
    def test_five_take_part_by_default(self, fitted):
        assert set(fitted.member_scales_) == {"kernel", "additive", "gaussian", "context", "ahead"}

    def test_three_take_part_without_a_context(self):
        fitted = DensityRatioHMM(context=None, **FAST).fit(X, Y)
        assert set(fitted.member_scales_) == {"kernel", "additive", "gaussian"}

    def test_live_answers_do_not_look_ahead(self, fitted):
        assert "ahead" not in fitted.model_.tunings["filter"].scales

    def test_their_scales_sum_to_the_evidence_scale(self, fitted):
        assert fitted.evidence_scale_ == pytest.approx(sum(fitted.member_scales_.values()))

    def test_the_reason_says_what_was_judged(self, fitted):
        assert "smoothing of 300 held-out frames" in fitted.scale_reason_

    def test_without_changes_of_state_kernels_and_gaussians_count_half(self):
        order = np.argsort(Y, kind="stable")
        lengths = np.bincount(Y).tolist()
        usual = DensityRatioHMM(**FAST).fit(X[order], Y[order], lengths=lengths)
        assert usual.member_scales_ == {"kernel": 0.5, "gaussian": 0.5}
        assert (usual.transition_temper_, usual.prior_shift_) == (1.0, 0.0)
        assert "0 held-out frames have a label" in usual.scale_reason_

    def test_without_labels_kernels_alone_take_part(self):
        found = DensityRatioHMM(3, max_iter=3, tol=1.0, **FAST).fit(X)
        assert found.member_scales_ == {"kernel": 1.0}

    def test_with_some_labels_all_take_part(self):
        some = np.where(np.arange(300) < 200, Y, -1)
        assert set(DensityRatioHMM(max_iter=20, tol=1e-2, **FAST).fit(X, some).member_scales_) == {
            "kernel",
            "additive",
            "gaussian",
            "context",
            "ahead",
        }

    def test_the_novelty_of_the_paper_has_kernels_alone(self):
        fitted = DensityRatioHMM(novelty=True, novelty_evidence="paper", **FAST).fit(X, Y)
        assert set(fitted.member_scales_) == {"kernel"}

    def test_a_scale_for_each(self):
        given = DensityRatioHMM(evidence_scale=[1.0, 0.0, 0.25], **FAST).fit(X, Y)
        assert given.member_scales_ == {"kernel": 1.0, "gaussian": 0.25}

    def test_one_scale_for_all(self):
        given = DensityRatioHMM(evidence_scale=2.0, transition_temper=1.0, **FAST).fit(X, Y)
        assert given.member_scales_ == {"kernel": 1.0, "gaussian": 1.0}
        assert given.scale_reason_ == "given"

    @pytest.mark.parametrize("scale", [[1.0, 2.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [[1.0]], "text", 0.0])
    def test_scales_that_cannot_be(self, scale):
        with pytest.raises(ValueError, match="evidence_scale"):
            DensityRatioHMM(evidence_scale=scale, **FAST).fit(X, Y)

    def test_a_rare_class_does_not_keep_the_pool_from_learning(self):
        y = Y.copy()
        y[150] = 3
        with pytest.warns(UserWarning, match="fewer than 3 complete frames"):
            fitted = DensityRatioHMM(**FAST).fit(X, y)
        assert "smoothing of 299 held-out frames" in fitted.scale_reason_


class TestInference:
    def test_single_precision_is_close(self, fitted):
        single = fitted.predict_proba(X.astype(np.float32))
        assert single.dtype == np.float32
        assert_allclose(single, fitted.predict_proba(X), atol=1e-3)

    def test_a_stream_answers_as_a_batch(self, fitted):
        stream = fitted.stream()
        assert_allclose([stream.step(x) for x in X], fitted.predict_proba(X, method="filter"), atol=1e-12)

    def test_many_streams_answer_as_a_batch(self, fitted):
        batch = fitted.model_.stream_batch(40)
        answers = np.array([batch.step(np.tile(x, (40, 1)))[-1] for x in X[:20]])
        assert_allclose(answers, fitted.predict_proba(X[:20], method="filter"), atol=1e-12)

    @pytest.mark.parametrize("tuned", [True, False])
    def test_a_frame_alone_has_its_tuning_or_evidence_of_scale_one(self, fitted, tuned):
        if tuned:
            model = fitted.model_
            evidence = model.tuned("frame").log_ratios(X)
        else:
            model = replace(fitted.model_, other_tunings={})
            evidence = model.log_ratios(X) / model.evidence.evidence_scale
        evidence = evidence + np.log(model.prior)
        expected = np.exp(evidence - np.logaddexp.reduce(evidence, axis=1, keepdims=True))
        assert_allclose(model.predict_proba(X, method="frame"), expected, atol=1e-10)

    def test_threads_of_blas_do_not_change_the_fingerprint(self):
        fingerprints = set()
        for n_threads in (1, 2):
            with threadpool_limits(n_threads, "blas"):
                model = DensityRatioHMM(window=4, **FAST).fit(*blobs(3, n_frames=400, separation=2.0)).model_
            fingerprints.add(model.fingerprint)
        assert len(fingerprints) == 1

    def test_threads_do_not_change_the_fingerprint(self):
        one, four = (DensityRatioHMM(n_threads=n, **FAST).fit(X, Y).model_.fingerprint for n in (1, 4))
        assert one == four

    def test_a_file_keeps_every_answer(self, fitted):
        loaded = from_bytes(to_bytes(fitted.model_))
        assert loaded.fingerprint == fitted.model_.fingerprint
        assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))

    def test_blocks_give_the_members_of_all_data(self):
        estimator = DensityRatioHMM(transition_temper=0.8, evidence_scale=[1.0, 0.5, 0.5], **FAST)
        estimator.partial_fit(X, Y).partial_fit(X, Y)
        twice = DensityRatioHMM(transition_temper=0.8, evidence_scale=[1.0, 0.5, 0.5], **FAST)
        twice.partial_fit(np.vstack([X, X]), np.concatenate([Y, Y]), lengths=[300, 300])
        assert set(estimator.member_scales_) == {"kernel", "additive", "gaussian"}
        assert_allclose(estimator.model_.transmat, twice.model_.transmat, atol=1e-12)
        for name, member in estimator.model_.evidence.members.items():
            assert np.isfinite(member.arrays()[-2]).all(), name


class TestBasis:
    @pytest.mark.parametrize(
        ("n_basis", "n_states", "size"), [("auto", 2, 150), ("auto", 10, 250), (None, 2, 5000), (500, 2, 500)]
    )
    def test_sizes(self, n_basis, n_states, size):
        assert basis_size(n_basis, 5000, n_states) == size

    def test_no_more_than_there_are_frames(self):
        assert basis_size("auto", 70, 2) == basis_size(500, 70, 2) == 70

    @pytest.mark.parametrize("n_basis", [None, 30_000])
    def test_more_than_memory_allows(self, n_basis):
        with pytest.raises(ValueError, match=r"20,000 kernel centres of .* would take 3\.2 GB; at most 12,000"):
            basis_size(n_basis, 20_000, 2)

    def test_every_frame_is_a_centre(self):
        fitted = DensityRatioHMM(n_basis=None, random_state=0).fit(X, Y)
        assert len(fitted.centers_) == len(X)

    @pytest.mark.slow
    def test_a_large_basis_is_searched_with_a_small_one(self):
        frames, states = blobs(1, n_frames=700)
        fitted = DensityRatioHMM(n_basis=600, random_state=0).fit(frames, states)
        assert len(fitted.centers_) == 600
        assert fitted.theta_.shape == (600, 3)

    @pytest.mark.parametrize("n_basis", ["many", 0, 2.5])
    def test_a_number_that_cannot_be(self, n_basis):
        with pytest.raises(ValueError, match="n_basis must be"):
            DensityRatioHMM(n_basis=n_basis).fit(X, Y)


class TestPool:
    def test_of_our_own_sources_is_native(self):
        pool = Pool([LeastSquares(n_basis=30), Gaussian()])
        assert isinstance(DensityRatioHMM(ratio=pool, random_state=0).fit(X, Y).model_.evidence, PooledEvidence)

    def test_takes_a_source_of_the_users_own(self):
        pool = Pool([LeastSquares(n_basis=30), NearestMean(), FromClassifier(LogisticRegression())])
        fitted = DensityRatioHMM(ratio=pool, random_state=0).fit(X, Y)
        assert isinstance(fitted.model_.evidence, SourceEvidence)
        assert list(fitted.member_scales_) == ["kernel", "NearestMean", "FromClassifier"]
        assert fitted.score(X, Y) > 0.9

    def test_its_streams_answer_as_a_batch(self):
        fitted = DensityRatioHMM(ratio=Pool([Additive(), NearestMean()]), random_state=0).fit(X, Y)
        stream = fitted.stream()
        assert_allclose([stream.step(x) for x in X[:50]], fitted.predict_proba(X[:50], method="filter"), atol=1e-12)

    def test_members_of_the_same_kind_have_numbers(self):
        pool = Pool([LeastSquares(n_basis=30, sigma=s, rho=0.01) for s in (0.5, 2.0)])
        fitted = DensityRatioHMM(ratio=pool, random_state=0).fit(X, Y)
        assert list(fitted.member_scales_) == ["kernel", "kernel 2"]

    def test_survives_pickling(self):
        fitted = DensityRatioHMM(ratio=Pool([LeastSquares(n_basis=30), Gaussian()]), random_state=0).fit(X, Y)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))

    def test_follows_the_first_source_without_labels(self):
        pool = Pool([LeastSquares(n_basis=30), Gaussian()])
        fitted = DensityRatioHMM(3, ratio=pool, max_iter=3, tol=1.0, random_state=0).fit(X)
        assert list(fitted.member_scales_) == ["kernel"]

    def test_is_a_source_itself(self):
        log_ratios = Pool(n_basis=30, random_state=0).fit(X, np.eye(3)[Y]).log_ratios(X)
        assert np.mean(log_ratios.argmax(axis=1) == Y) > 0.8

    def test_two_states_and_a_direct_ratio(self):
        two = Y < 2
        fitted = DensityRatioHMM(ratio=Pool([TwoClass(n_basis=20), Gaussian()]), random_state=0).fit(X[two], Y[two])
        assert list(fitted.member_scales_) == ["TwoClass", "gaussian"]

    @pytest.mark.parametrize("sources", [[], "kernel", 3])
    def test_sources_that_are_none(self, sources):
        with pytest.raises(ValueError, match="sources must be a list"):
            DensityRatioHMM(ratio=Pool(sources)).fit(X, Y)

    def test_a_source_without_methods_is_named(self):
        with pytest.raises(TypeError, match=r"sources\[1\] must have the methods fit and log_ratios"):
            DensityRatioHMM(ratio=Pool([LeastSquares(), object()])).fit(X, Y)

    def test_sources_of_the_users_own_do_not_add_up(self):
        with pytest.raises(ValueError, match="partial_fit needs sources that are learned from sums"):
            DensityRatioHMM(ratio=Pool([LeastSquares(), NearestMean()])).partial_fit(X, Y)
