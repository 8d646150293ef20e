"""Weights, given chains, pseudo-counts of single transitions, and blocks one after the other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import DensityRatioHMM, _core
from drhmm.ratios import FromDensities, LeastSquares
from problems import blobs

X, Y = blobs(0, n_frames=300)
FIXED = {"n_basis": 60, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}


class TestWeights:
    def test_equal_weights_change_nothing(self):
        plain = DensityRatioHMM(**FIXED).fit(X, Y)
        weighted = DensityRatioHMM(**FIXED).fit(X, Y, sample_weight=np.full(300, 3.0))
        assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-9)

    def test_frames_of_weight_zero_teach_nothing(self):
        spoiled = Y.copy()
        spoiled[::7] = (spoiled[::7] + 1) % 3
        weights = np.ones(300)
        weights[::7] = 0
        right = DensityRatioHMM(**FIXED).fit(X, Y, sample_weight=weights)
        wrong = DensityRatioHMM(**FIXED).fit(X, spoiled, sample_weight=weights)
        assert_allclose(wrong.theta_, right.theta_, rtol=1e-9, atol=1e-12)

    def test_class_weight_is_a_sample_weight(self):
        by_class = DensityRatioHMM(class_weight={0: 1.0, 1: 2.0, 2: 3.0}, **FIXED).fit(X, Y)
        by_sample = DensityRatioHMM(**FIXED).fit(X, Y, sample_weight=1.0 + Y)
        assert_allclose(by_class.theta_, by_sample.theta_, rtol=1e-9, atol=1e-12)

    def test_a_class_of_more_weight_is_predicted_more_often(self):
        noise = np.random.default_rng(0).normal(size=X.shape)
        shares = [
            np.mean(
                DensityRatioHMM(class_weight={0: weight, 1: 1.0, 2: 1.0}, **FIXED).fit(noise, Y).predict(noise) == 0
            )
            for weight in (0.01, 1.0, 100.0)
        ]
        assert shares[0] < shares[1] < shares[2]

    def test_transitions_count_as_much_as_the_class_they_lead_to(self):
        plain = DensityRatioHMM(transition_prior=0, **FIXED).fit(X, Y).transmat_
        weighted = (
            DensityRatioHMM(transition_prior=0, class_weight={0: 2.0, 1: 1.0, 2: 1.0}, **FIXED).fit(X, Y).transmat_
        )
        expected = plain * [2.0, 1.0, 1.0]
        assert_allclose(weighted, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)

    def test_of_class_weights_only_the_ratios_count(self):
        one = DensityRatioHMM(class_weight={0: 2.0, 1: 1.0, 2: 3.0}, **FIXED).fit(X, Y)
        same = DensityRatioHMM(class_weight={0: 4.0, 1: 2.0, 2: 6.0}, **FIXED).fit(X, Y)
        assert_allclose(same.transmat_, one.transmat_, rtol=1e-12)

    def test_balanced_classes_have_equal_shares(self):
        fitted = DensityRatioHMM(class_weight="balanced", **FIXED).fit(X, Y)
        assert_allclose(fitted.model_.prior, 1 / 3)

    def test_score_can_be_weighted(self):
        fitted = DensityRatioHMM(**FIXED).fit(X, Y)
        right = fitted.predict(X) == Y
        assert fitted.score(X, Y, sample_weight=right.astype(float)) == 1.0

    def test_a_score_whose_weight_is_all_on_unknown_labels(self):
        unknown = np.arange(300) < 5
        fitted = DensityRatioHMM(**FIXED).fit(X, Y)
        with pytest.raises(ValueError, match="y has no known label of positive sample_weight to compare with"):
            fitted.score(X, np.where(unknown, -1, Y), sample_weight=unknown.astype(float))

    def test_a_list_of_weights_for_a_list_of_sequences(self):
        weights = np.random.default_rng(0).uniform(size=300)
        by_list = DensityRatioHMM(**FIXED).fit(
            [X[:100], X[100:]], [Y[:100], Y[100:]], sample_weight=[weights[:100], weights[100:]]
        )
        by_length = DensityRatioHMM(**FIXED).fit(X, Y, lengths=[100, 200], sample_weight=weights)
        assert_array_equal(by_list.theta_, by_length.theta_)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.r_[np.ones(299), -1.0], "sample_weight has -1.0 at row 299"),
            (np.r_[np.nan, np.ones(299)], "sample_weight has nan at row 0"),
            (np.zeros(300), "sample_weight is zero in every row"),
            (np.ones(299), r"one value per row: shape \(300,\), got \(299,\)"),
        ],
    )
    def test_bad_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            DensityRatioHMM(**FIXED).fit(X, Y, sample_weight=weights)

    def test_weights_that_leave_one_fold_only(self):
        weights = (np.arange(300) < 60).astype(float)
        with pytest.raises(ValueError, match="sample_weight is zero in every frame outside fold 0"):
            DensityRatioHMM(n_basis=30).fit(X, Y, sample_weight=weights)

    def test_the_unit_of_weights_does_not_matter_to_cross_validation(self):
        one, many = (
            DensityRatioHMM(n_basis=60, random_state=0).fit(X, Y, sample_weight=np.full(300, weight))
            for weight in (1.0, 1e6)
        )
        assert (one.sigma_, one.rho_) == (many.sigma_, many.rho_)

    @pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
    def test_bad_class_weights(self, weight):
        with pytest.raises(ValueError, match=r"class_weight is .* for the class .*0.*: weights are positive"):
            DensityRatioHMM(class_weight={0: weight, 1: 1.0, 2: 1.0}, **FIXED).fit(X, Y)

    def test_a_class_of_weight_zero(self):
        with pytest.raises(ValueError, match=r"class .*2.* has weight 0"):
            DensityRatioHMM(**FIXED).fit(X, Y, sample_weight=(Y != 2).astype(float))

    def test_class_weight_without_labels(self):
        with pytest.raises(ValueError, match="class_weight needs labels"):
            DensityRatioHMM(3, class_weight="balanced").fit(X)


class TestChain:
    A = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])

    def test_given_probabilities_are_used(self):
        fitted = DensityRatioHMM(transmat=self.A, startprob=[0.2, 0.3, 0.5], **FIXED).fit(X, Y)
        assert_array_equal(fitted.transmat_, self.A)
        assert_array_equal(fitted.startprob_, [0.2, 0.3, 0.5])

    def test_given_probabilities_survive_em(self):
        fitted = DensityRatioHMM(3, transmat=self.A, n_basis=50, random_state=0).fit(X)
        assert_array_equal(fitted.transmat_, self.A)

    def test_pseudo_counts_of_single_transitions(self):
        prior = np.full((3, 3), 0.5) + 20 * np.eye(3)
        sticky = DensityRatioHMM(transition_prior=prior, **FIXED).fit(X, Y)
        counts = np.zeros((3, 3))
        np.add.at(counts, (Y[:-1], Y[1:]), 1)
        assert_allclose(sticky.transmat_, (counts + prior) / (counts + prior).sum(axis=1, keepdims=True))

    def test_a_forbidden_transition_has_probability_zero(self):
        states = np.repeat([0, 1, 2], 100)
        prior = np.ones((3, 3))
        prior[0, 2] = prior[1, 0] = prior[2, 0] = prior[2, 1] = -np.inf
        fitted = DensityRatioHMM(transition_prior=prior, **FIXED).fit(X, states)
        assert_array_equal(fitted.transmat_ == 0, np.isneginf(prior))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"transmat": np.eye(2)}, r"transmat must have shape \(3, 3\), got \(2, 2\)"),
            ({"transmat": np.full((3, 3), 0.5)}, "transmat: the sum of row 0 is 1.5, not 1"),
            ({"transmat": np.eye(3)}, r"transmat forbids the transition from state \d to state \d, but y contains it"),
            ({"startprob": ["a", "b", "c"]}, "startprob must hold numbers"),
            ({"transition_prior": 1e308}, "transition_prior must be in"),
            ({"startprob": [0.5, 0.5]}, r"startprob must have shape \(3,\)"),
            ({"startprob": [0.5, 0.6, -0.1]}, "startprob has -0.1 at column 2"),
            ({"transition_prior": np.ones((2, 2))}, r"transition_prior must be a number or have shape \(3, 3\)"),
            ({"transition_prior": np.full((3, 3), np.nan)}, "transition_prior has nan at row 0, column 0"),
            ({"transition_prior": np.full((3, 3), -np.inf)}, "forbids every transition from state 0"),
            ({"transition_prior": np.where(np.eye(3), -np.inf, 1.0)}, "forbids the transition from state 0 to state 0"),
        ],
    )
    def test_bad_settings(self, settings, message):
        with pytest.raises(ValueError, match=message):
            DensityRatioHMM(**{**FIXED, **settings}).fit(X, Y)


class TestStates:
    def test_more_states_than_frames(self):
        with pytest.raises(ValueError, match="n_states is 9, but there are only 5 complete frames"):
            DensityRatioHMM(9).fit(X[:5])

    @pytest.mark.parametrize("y", [None, np.full(300, -1)])
    def test_no_known_label_and_no_number_of_states(self, y):
        with pytest.raises(ValueError, match="n_states is needed where no time step is labelled"):
            DensityRatioHMM().fit(X, y)


class TestPartialFit:
    BLOCKS = ((slice(0, 120), [120]), (slice(120, 200), [50, 30]), (slice(200, 300), [100]))

    def fitted(self, **settings):
        estimator = DensityRatioHMM(**{**FIXED, **settings})
        for rows, lengths in self.BLOCKS:
            estimator.partial_fit(X[rows], Y[rows], lengths=lengths)
        return estimator

    def test_the_solution_is_that_of_all_data(self):
        estimator = self.fitted()
        evidence = estimator.model_.evidence
        frames = evidence.framing.frames(X, [300])
        everything = _core.GramStatistics(60, 3)
        everything.add(frames, np.eye(3)[Y], np.ones(300), evidence.kernel.centers, 1.0)
        theta = _core.RegularizedGram(everything.gram, 0.01 * 300).solve(everything.moment)
        assert_allclose(estimator.theta_, theta, rtol=1e-9, atol=1e-12)

    def test_transitions_are_those_of_all_data(self):
        lengths = [120, 50, 30, 100]
        whole = DensityRatioHMM(**FIXED).fit(X, Y, lengths=lengths)
        assert_allclose(self.fitted().transmat_, whole.transmat_)
        assert_allclose(self.fitted().startprob_, whole.startprob_)

    def test_the_first_block_alone_is_a_fit(self):
        rows, lengths = self.BLOCKS[0]
        partial = DensityRatioHMM(**FIXED).partial_fit(X[rows], Y[rows], lengths=lengths)
        whole = DensityRatioHMM(**FIXED).fit(X[rows], Y[rows], lengths=lengths)
        assert_allclose(partial.predict_proba(X), whole.predict_proba(X), atol=1e-9)

    def test_it_goes_on_after_pickling(self):
        rows, lengths = self.BLOCKS[0]
        estimator = DensityRatioHMM(**FIXED).partial_fit(X[rows], Y[rows], lengths=lengths)
        estimator = pickle.loads(pickle.dumps(estimator))
        for rows, lengths in self.BLOCKS[1:]:
            estimator.partial_fit(X[rows], Y[rows], lengths=lengths)
        assert_array_equal(estimator.theta_, self.fitted().theta_)

    def test_fit_forgets_the_blocks(self):
        estimator = self.fitted().fit(X, Y)
        assert_array_equal(estimator.theta_, DensityRatioHMM(**FIXED).fit(X, Y).theta_)
        estimator.partial_fit(X, Y)
        assert_allclose(estimator.transmat_, DensityRatioHMM(**FIXED).fit(X, Y).transmat_)

    def test_novelty_goes_along(self):
        assert self.fitted(novelty=True).novelty_proba(X).shape == (300,)

    def test_a_bad_block_changes_nothing(self):
        estimator = self.fitted()
        before = estimator.predict_proba(X)
        with pytest.raises(ValueError, match="never seen in training"):
            estimator.partial_fit(X[:10], np.full(10, 7))
        assert_array_equal(estimator.predict_proba(X), before)

    def test_a_block_with_unknown_labels(self):
        with pytest.raises(ValueError, match="every label must be known"):
            DensityRatioHMM(**FIXED).partial_fit(X, np.where(np.arange(300) < 5, -1, Y))

    def test_a_block_with_other_columns(self):
        with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2"):
            self.fitted().partial_fit(X[:, :1], Y)

    def test_balanced_weights(self):
        with pytest.raises(ValueError, match="class_weight='balanced' needs all data at once"):
            DensityRatioHMM(class_weight="balanced", **FIXED).partial_fit(X, Y)

    def test_other_classes_in_a_later_block(self):
        with pytest.raises(ValueError, match=r"\[0, 1, 2, 3\], but the first block had the classes \[0, 1, 2\]"):
            self.fitted().partial_fit(X, Y, classes=[0, 1, 2, 3])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"class_weight": {0: 100, 1: 1, 2: 1}}, r"class_weight was None in .* is \{0: 100, 1: 1, 2: 1\} now"),
            ({"window": 2}, "window was 1 in the first block and is 2 now"),
            ({"sigma": 2.0}, "sigma was 1.0 in the first block and is 2.0 now"),
            ({"rho": "cv"}, "rho was 0.01 in the first block and is 'cv' now"),
            ({"transition_prior": np.ones((3, 3))}, r"transition_prior was 1.0 in the first block and is array"),
            ({"novelty": True}, "novelty was False in the first block and is True now"),
            ({"random_state": 1}, "random_state was 0 in the first block and is 1 now"),
            ({"ratio": LeastSquares()}, r"ratio was 'pool' in the first block and is LeastSquares\(\) now"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_other_settings_in_a_later_block(self, change, message):
        with pytest.raises(ValueError, match=message):
            self.fitted().set_params(**change).partial_fit(X, Y)

    def test_another_setting_of_the_source_in_a_later_block(self):
        estimator = self.fitted(ratio=LeastSquares(n_basis=60, sigma=1.0, rho=0.01))
        with pytest.raises(ValueError, match=r"ratio__sigma was 1\.0 in the first block and is 2\.0 now"):
            estimator.set_params(ratio__sigma=2.0).partial_fit(X, Y)

    def test_a_setting_that_was_changed_in_place(self):
        prior = np.ones((3, 3))
        estimator = self.fitted(transition_prior=prior)
        prior[0, 1] = 5.0
        with pytest.raises(ValueError, match="transition_prior was array"):
            estimator.partial_fit(X, Y)

    @pytest.mark.parametrize(
        "change",
        [
            {"n_threads": 1, "verbose": True, "max_iter": 3, "tol": 0.1, "n_init": 2, "em_update": "paper"},
            {"class_weight": {2: 3, 1: 2, 0: 1}},
            {"transition_prior": [[1.0] * 3] * 3},
            {"random_state": np.random.RandomState(0)},
        ],
        ids=["free", "order of a dict", "a list for an array", "random state"],
    )
    def test_settings_that_say_the_same_in_a_later_block(self, change):
        settings = {
            "class_weight": {0: 1.0, 1: 2.0, 2: 3.0},
            "transition_prior": np.ones((3, 3)),
            "random_state": np.random.RandomState(0),
        }
        estimator = self.fitted(**settings)
        expected = pickle.loads(pickle.dumps(estimator)).partial_fit(X, Y)
        assert_array_equal(estimator.set_params(**change).partial_fit(X, Y).theta_, expected.theta_)

    def test_fit_begins_anew_with_other_settings(self):
        estimator = self.fitted().set_params(window=2).fit(X, Y)
        assert estimator.partial_fit(X, Y).model_.settings["window"] == 2

    def test_a_first_block_without_every_class(self):
        with pytest.raises(ValueError, match=r"the first block had the classes \[0, 1\]"):
            DensityRatioHMM(**FIXED).partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1, 2])

    def test_a_source_without_statistics(self):
        with pytest.raises(ValueError, match="partial_fit needs sources that are learned from sums"):
            DensityRatioHMM(ratio=FromDensities("gmm")).partial_fit(X, Y)
