"""Learning from labelled sequences and predicting with what was learned."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score

from drhmm import DensityRatioHMM, recursion
from drhmm.datasets import sines, sines_training
from drhmm.ratios import LeastSquares
from problems import blobs

FAST = {"n_basis": 60, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return blobs(0, n_frames=300)


@pytest.fixture(scope="module")
def fitted(data):
    return DensityRatioHMM(**FAST).fit(*data)


class TestSequences:
    def test_lengths_and_lists_are_the_same(self, data):
        X, y = data
        by_length = DensityRatioHMM(**FAST).fit(X, y, lengths=[100, 200])
        by_list = DensityRatioHMM(**FAST).fit([X[:100], X[100:]], [y[:100], y[100:]])
        assert_array_equal(by_length.theta_, by_list.theta_)
        assert_array_equal(by_length.transmat_, by_list.transmat_)
        assert_array_equal(by_length.startprob_, by_list.startprob_)

    def test_lengths_and_sequence_id_are_the_same(self, data):
        X, y = data
        by_length = DensityRatioHMM(**FAST).fit(X, y, lengths=[100, 200])
        by_id = DensityRatioHMM(**FAST).fit(X, y, sequence_id=["b"] * 100 + ["a"] * 200)
        assert_array_equal(by_length.theta_, by_id.theta_)
        assert_array_equal(by_length.transmat_, by_id.transmat_)

    def test_a_list_in_gives_a_list_out(self, data, fitted):
        X, _ = data
        parts = fitted.predict_proba([X[:100], X[100:]])
        assert [part.shape for part in parts] == [(100, 3), (200, 3)]
        assert_array_equal(np.concatenate(parts), fitted.predict_proba(X, lengths=[100, 200]))

    def test_interleaved_rows_of_two_sequences_come_back_in_their_places(self, data, fitted):
        X, _ = data
        together = np.empty_like(X)
        together[0::2], together[1::2] = X[:150], X[150:]
        posteriors = fitted.predict_proba(together, sequence_id=np.arange(300) % 2)
        expected = fitted.predict_proba(X, lengths=[150, 150])
        assert_array_equal(posteriors[0::2], expected[:150])
        assert_array_equal(posteriors[1::2], expected[150:])

    def test_no_transition_is_counted_across_sequences(self):
        X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([0, 5], 20)[:, None]
        y = np.repeat([0, 1], 20)
        separate = DensityRatioHMM(transition_prior=0.0, **FAST).fit(X, y, lengths=[20, 20])
        assert_array_equal(separate.transmat_, np.eye(2))


class TestTransitions:
    def test_frequencies_with_pseudo_counts(self):
        X = np.random.default_rng(0).normal(size=(12, 1))
        y = [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1]
        fitted = DensityRatioHMM(transition_prior=2.0, sigma=1.0, rho=0.1, **FAST).fit(X, y)
        counts = np.array([[4, 2], [1, 4]]) + 2.0
        assert_allclose(fitted.transmat_, counts / counts.sum(axis=1, keepdims=True))

    def test_start_frequencies_have_one_pseudo_count_each(self):
        X = np.random.default_rng(0).normal(size=(12, 1))
        y = [0, 1, 1] * 4
        fitted = DensityRatioHMM(sigma=1.0, rho=0.1, **FAST).fit(X, y, lengths=[3] * 4)
        assert_allclose(fitted.startprob_, [5 / 6, 1 / 6])


class TestLabels:
    @pytest.mark.parametrize(
        "names",
        [
            np.array(["rest", "walk", "run"]),
            np.array(["rest", "walk", "run"], dtype=object),
            np.array([10, -3, 7]),
            np.array([0.0, 2.0, 1.0]),
            np.array([b"a", b"c", b"b"]),
        ],
    )
    def test_come_back_in_their_own_dtype(self, data, names):
        X, y = data
        fitted = DensityRatioHMM(**FAST).fit(X, names[y])
        predicted = fitted.predict(X)
        assert predicted.dtype == names.dtype
        assert set(predicted) <= set(names)
        assert fitted.score(X, names[y]) > 0.8

    def test_columns_of_probabilities_follow_the_sorted_classes(self, data):
        X, y = data
        names = np.array(["c", "a", "b"])
        fitted = DensityRatioHMM(**FAST).fit(X, names[y])
        assert_array_equal(fitted.classes_, ["a", "b", "c"])
        assert_array_equal(fitted.classes_[fitted.predict_proba(X).argmax(axis=1)], fitted.predict(X))

    @pytest.mark.slow
    def test_unknown_labels_in_a_list_of_strings_are_not_made_into_text(self, data):
        X, y = data
        for unknown in (None, float("nan")):
            labels = [*np.array(["a", "b", "c"])[y].tolist()[:-1], unknown]
            assert_array_equal(DensityRatioHMM(**FAST).fit(X, labels).classes_, ["a", "b", "c"])

    def test_score_leaves_out_unknown_labels(self, data, fitted):
        X, y = data
        some = np.where(np.arange(300) < 100, y, -1)
        assert fitted.score(X, some) == np.mean(fitted.predict(X)[:100] == y[:100])

    def test_booleans_are_classes(self, data):
        X, y = data
        assert DensityRatioHMM(**FAST).fit(X, y == 1).predict(X).dtype == bool


class TestInference:
    @pytest.mark.parametrize("method", ["smooth", "filter", "frame"])
    def test_rows_sum_to_one(self, data, fitted, method):
        assert_allclose(fitted.predict_proba(data[0], method=method).sum(axis=1), 1, atol=1e-12)

    def test_methods_are_the_recursions_on_the_evidence(self, data, fitted):
        X, _ = data
        chain, live = [
            (model.log_ratios(X), model.transmat, model.startprob)
            for model in (fitted.model_, fitted.model_.tuned("filter"))
        ]
        assert_array_equal(fitted.predict_proba(X, method="smooth"), recursion.smooth(*chain))
        assert_array_equal(fitted.predict_proba(X, method="filter"), recursion.filter(*live))
        assert_array_equal(fitted.predict_proba(X, lag=3), recursion.fixed_lag(*live, 3))
        assert_array_equal(fitted.predict(X, lag=3), recursion.fixed_lag(*live, 3).argmax(axis=1))
        assert_array_equal(fitted.predict(X, method="viterbi"), recursion.viterbi(*chain))

    def test_a_frame_alone_knows_nothing_of_its_neighbours(self, data):
        X, y = data
        fitted = DensityRatioHMM(context=None, **FAST).fit(X, y)
        backwards = fitted.predict_proba(X[::-1], method="frame")[::-1]
        assert_allclose(fitted.predict_proba(X, method="frame"), backwards, atol=1e-12)

    def test_smoothing_beats_filtering_beats_single_frames(self):
        X, y = sines_training(100, random_state=0)
        X_test, y_test = sines(2000, random_state=1)
        fitted = DensityRatioHMM(window=4, random_state=0).fit(X, y)
        frame, filtered, smoothed = (
            fitted.score(X_test, y_test, method=method) for method in ("frame", "filter", "smooth")
        )
        assert frame < filtered < smoothed

    def test_a_nan_sample_is_a_missing_frame(self, data, fitted):
        X = data[0].copy()
        X[20, 1] = np.nan
        assert np.isnan(fitted.log_ratios(X)[20]).all()
        filtered = fitted.predict_proba(X, method="filter")
        assert_allclose(filtered[20], filtered[19] @ fitted.model_.tuned("filter").transmat)

    def test_frames_before_the_first_window_are_prediction_only(self, data):
        X, y = data
        fitted = DensityRatioHMM(window=3, **FAST).fit(X, y)
        filtered = fitted.predict_proba(X, method="filter")
        live = fitted.model_.tuned("filter")
        assert_allclose(filtered[:2], [live.startprob, live.startprob @ live.transmat])

    def test_float32_stays_float32(self, data, fitted):
        X = data[0].astype(np.float32)
        assert fitted.predict_proba(X).dtype == np.float32
        assert_allclose(fitted.predict_proba(X), fitted.predict_proba(X.astype(np.float64)), atol=1e-6)

    def test_the_scale_of_the_data_does_not_matter_when_standardised(self, data):
        X, y = data
        near = DensityRatioHMM(**FAST).fit(X, y)
        far = DensityRatioHMM(**FAST).fit(1e6 + 1e-3 * X, y)
        assert_allclose(far.predict_proba(1e6 + 1e-3 * X), near.predict_proba(X), atol=1e-4)

    def test_threads_do_not_change_anything(self, data):
        X, y = data
        one = DensityRatioHMM(n_threads=1, **FAST).fit(X, y)
        four = DensityRatioHMM(n_threads=4, **FAST).fit(X, y)
        assert_array_equal(one.predict_proba(X), four.predict_proba(X))


class TestEstimator:
    def test_same_seed_same_result(self, data, fitted):
        again = DensityRatioHMM(**FAST).fit(*data)
        assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))

    def test_refitting_forgets_the_previous_fit(self, data, fitted):
        refitted = DensityRatioHMM(**FAST).fit(*blobs(9, n_states=2, n_columns=4)).fit(*data)
        assert_array_equal(refitted.predict_proba(data[0]), fitted.predict_proba(data[0]))

    def test_fit_does_not_change_its_settings(self, data):
        estimator = DensityRatioHMM(**FAST)
        before = dict(estimator.get_params())
        estimator.fit(*data)
        assert estimator.get_params() == before

    def test_fit_does_not_change_its_input(self, data):
        X, y = data[0].copy(), data[1].copy()
        DensityRatioHMM(**FAST).fit(X, y)
        assert_array_equal(X, data[0])
        assert_array_equal(y, data[1])

    def test_the_seed_reaches_a_ratio_source(self, data):
        X, y = data
        source = LeastSquares(n_basis=40, sigma=1.0, rho=0.01)
        first, second = (DensityRatioHMM(ratio=source, random_state=3).fit(X, y) for _ in range(2))
        assert_array_equal(first.centers_, second.centers_)

    def test_cross_validation_by_sequence(self, data):
        X, y = data
        groups = np.arange(300) // 30
        with config_context(enable_metadata_routing=True):
            estimator = DensityRatioHMM(n_basis=40, sigma="default", rho="default", random_state=0)
            estimator.set_fit_request(sequence_id=True).set_score_request(sequence_id=True)
            scores = cross_val_score(
                estimator, X, y, cv=GroupKFold(3), params={"groups": groups, "sequence_id": groups}
            )
        assert scores.min() > 0.7

    def test_clone_and_pickle(self, data, fitted):
        assert clone(fitted).get_params() == fitted.get_params()
        copy = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(copy.predict_proba(data[0]), fitted.predict_proba(data[0]))

    def test_a_failed_fit_leaves_the_previous_one(self, data):
        X, y = data
        estimator = DensityRatioHMM(**FAST).fit(X, y)
        before = estimator.predict_proba(X)
        with pytest.raises(ValueError, match="infinite"):
            estimator.fit(np.where(X[0, 0] == X, np.inf, X), y)
        assert_array_equal(estimator.predict_proba(X), before)


class TestModel:
    def test_is_what_the_estimator_predicts_with(self, data, fitted):
        assert_array_equal(fitted.model_.predict_proba(data[0]), fitted.predict_proba(data[0]))

    def test_cannot_be_changed(self, fitted):
        with pytest.raises(AttributeError):
            fitted.model_.transmat = np.eye(3)
        with pytest.raises(ValueError, match="read-only"):
            fitted.model_.transmat[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            fitted.model_.evidence.kernel.theta[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            fitted.model_.evidence.framing.mean[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            pickle.loads(pickle.dumps(fitted.model_)).transmat[0, 0] = 1.0

    def test_does_not_change_with_the_array_that_it_was_made_from(self, fitted):
        kernel = fitted.model_.evidence.kernel
        base = kernel.theta.copy()
        view = base[:]
        view.setflags(write=False)
        made = replace(kernel, theta=view)
        base[:] = np.nan
        assert_array_equal(made.theta, kernel.theta)

    def test_shares_that_are_none(self, fitted):
        with pytest.raises(ValueError, match="prior: the sum is 6, not 1"):
            replace(fitted.model_, prior=np.array([1.0, 2.0, 3.0]))

    def test_says_in_one_line_what_it_is(self, fitted):
        assert repr(fitted.model_) == "Model(classes=[0, 1, 2], n_features=2, window=1)"

    def test_survives_pickling(self, data, fitted):
        copy = pickle.loads(pickle.dumps(fitted.model_))
        assert_array_equal(copy.predict(data[0]), fitted.model_.predict(data[0]))
