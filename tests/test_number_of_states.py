"""Scores without labels, the number of states, and where EM begins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier

from drhmm import DensityRatioHMM, plotting, select_states
from drhmm.datasets import markov_chain, moons
from drhmm.judging.number_of_states import StateNumbers, _chosen
from drhmm.ratios import FromClassifier
from drhmm.reference import recursion as reference
from drhmm.tuning.folds import even_blocks, mean_and_error
from problems import blobs

X, Y = blobs(3, n_frames=400)
SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "random_state": 0}


def sticky(n_frames, n_states, seed):
    """Well separated clouds and their states."""
    random = np.random.RandomState(seed)
    transmat = np.full((n_states, n_states), 0.05 / (n_states - 1))
    np.fill_diagonal(transmat, 0.95)
    y = markov_chain(n_frames, transmat, random_state=random)
    angle = 2 * np.pi * y / n_states
    return 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.5 * random.normal(size=(n_frames, 2)), y


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(**SETTINGS).fit(X[:200], Y[:200])


class TestGain:
    @pytest.mark.parametrize("lengths", [[200], [50, 150]])
    def test_is_the_log_likelihood_over_that_of_independent_frames(self, fitted, lengths):
        model = fitted.model_
        ratios = model.log_ratios(X[200:], lengths=lengths) / model.evidence.evidence_scale
        chain = model if model.tempering is None else model.tempering
        parts = np.split(ratios, np.cumsum(lengths)[:-1])
        together = sum(reference.log_likelihood(part, chain.transmat, chain.startprob) for part in parts)
        alone = np.log(np.exp(ratios) @ model.prior).sum()
        assert fitted.score(X[200:], lengths=lengths) == pytest.approx((together - alone) / 200, abs=1e-10)

    def test_a_chain_that_describes_the_data_gains(self, fitted):
        assert fitted.score(X[200:]) > 0.1

    def test_shuffled_frames_have_none(self, fitted):
        assert fitted.score(np.random.default_rng(0).permutation(X[200:])) < 0

    def test_missing_frames_do_not_count(self, fitted):
        holes = X[200:].copy()
        holes[::5] = np.nan
        gains, counts = fitted.model_.sequence_gains(fitted.model_.read(holes), 1)
        assert counts.tolist() == [160]
        assert np.isfinite(gains).all()

    def test_nothing_but_missing_frames_is_refused(self, fitted):
        with pytest.raises(ValueError, match="X has no complete frame to score"):
            fitted.score(np.full((3, 2), np.nan))

    def test_certain_evidence_has_a_finite_gain(self):
        tree = FromClassifier(DecisionTreeClassifier(random_state=0))
        fitted = DensityRatioHMM(ratio=tree, evidence_scale=1.0, floor=0, random_state=0).fit(X, Y)
        assert np.isfinite(fitted.score(X))

    def test_with_labels_score_is_accuracy(self, fitted):
        assert fitted.score(X[200:], Y[200:]) == np.mean(fitted.predict(X[200:]) == Y[200:])

    def test_weights_go_with_labels(self, fitted):
        with pytest.raises(ValueError, match="sample_weight goes with y"):
            fitted.score(X, sample_weight=np.ones(400))

    def test_states_with_durations_have_one(self):
        fitted = DensityRatioHMM(durations="negative-binomial", min_duration=2, **SETTINGS).fit(X, Y)
        assert np.isfinite(fitted.score(X))


class TestSelectStates:
    @pytest.mark.slow
    def test_finds_the_number_of_moons(self):
        found = select_states(moons(600, random_state=0)[0], range(2, 5), random_state=0, n_threads=1)
        assert found.n_states == 2

    @pytest.mark.slow
    def test_holds_out_whole_sequences_where_there_are_enough(self):
        parts = [sticky(60, 2, seed)[0] for seed in range(10)]
        found = select_states(parts, [2, 3], estimator=DensityRatioHMM(n_basis=20), random_state=0, n_threads=1)
        assert found.units == "10 sequences"
        assert found.unit_gains.shape == (2, 10)

    def test_the_smallest_within_one_standard_error_is_chosen(self):
        gains = np.array([[0.1, 0.3, 0.2], [0.5, 0.6, 0.4], [0.6, 0.55, 0.41]])
        found = _chosen(np.array([2, 3, 4]), gains, np.array([10.0, 10.0, 10.0]), "3 blocks")
        assert found.n_states == 3
        assert_allclose(found.standard_errors, gains.std(axis=1, ddof=1) / np.sqrt(3))
        assert_allclose(found.difference_errors[1], (gains[2] - gains[1]).std(ddof=1) / np.sqrt(3))

    def test_a_state_that_is_hardly_of_use_is_left_out(self):
        gains = np.array([[0.4, 0.4, 0.4], [0.41, 0.41, 0.41]])
        assert _chosen(np.array([2, 3]), gains, np.array([10.0, 10.0, 10.0]), "3 blocks").n_states == 2

    @pytest.mark.parametrize(
        ("values", "worth_having", "n_states", "reason"),
        [
            ([0.4, 0.41], 0.25, 2, "3 states gain 0.0100 more, less than 0.25 of the 0.1513 that states in full use"),
            ([0.4, 0.41], 0.0, 3, "the largest gain"),
            ([0.4, 0.6], 0.25, 3, "the largest gain"),
            ([0.4, 0.4], 0.25, 2, "the largest gain"),
        ],
    )
    def test_the_reason_is_said(self, values, worth_having, n_states, reason):
        gains = np.repeat(np.array(values)[:, None], 3, axis=1)
        found = _chosen(np.array([2, 3]), gains, np.ones(3), "3 blocks", worth_having)
        assert found.n_states == n_states
        assert found.reason.startswith(reason)
        assert reason in str(found).splitlines()[0]
        assert reason in found.plot().get_title(loc="left").replace("\n", " ")

    def test_one_standard_error_is_a_reason(self):
        gains = np.array([[0.5, 0.6, 0.4], [0.6, 0.55, 0.41]])
        found = _chosen(np.array([3, 4]), gains, np.ones(3), "3 blocks", 0.0)
        assert found.reason == "less than one standard error below the largest gain, that of 4 states"

    def test_a_state_of_use_is_kept_even_if_it_adds_little(self):
        gains = np.array([[1.0, 1.0, 1.0], [1.05, 1.05, 1.05]])  # of full use, the ninth state would add .057
        assert _chosen(np.array([8, 9]), gains, np.array([10.0, 10.0, 10.0]), "3 blocks").n_states == 9

    @pytest.fixture
    def numbers(self):
        values = np.array([0.1, 0.5, 0.52])
        errors = values / 10
        return StateNumbers(
            3,
            np.array([2, 3, 4]),
            values,
            errors,
            0.52 - values,
            errors,
            values[:, None],
            "3 blocks",
            "the largest gain",
        )

    def test_prints_a_table(self, numbers):
        lines = str(numbers).splitlines()
        assert lines[0].startswith("3 states")
        assert lines[3].endswith("chosen")
        assert lines[4].endswith("largest gain")
        assert lines[1].split() == ["states", "gain", "below", "the", "largest", "error", "of", "that"]
        assert lines[3].split()[:4] == ["3", "0.5000", "0.0200", "0.0500"]
        assert numbers._repr_html_().count("<tr>") == 4

    def test_draws_a_picture(self, numbers):
        axes = numbers.plot()
        assert_array_equal(axes.get_xticks(), [2, 3, 4])
        assert plotting.state_numbers(numbers, ax=axes) is axes

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"candidates": []}, r"candidates is \[\]: give at least one number of states above 1"),
            ({"candidates": [1]}, r"candidates is \[1\]: give at least one number of states above 1"),
            ({"candidates": [0]}, "candidates must be at least 1, got 0"),
            ({"n_folds": 1}, "n_folds must be at least 2, got 1"),
            ({"worth_having": 2}, r"worth_having must be in \[0, 1\], got 2"),
        ],
    )
    def test_mistakes_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            select_states(X, **arguments)

    def test_states_that_describe_nothing_are_told(self, monkeypatch):
        def held_out(settings, number, train, test, threads):
            return -np.ones(len(test.lengths)), np.array(test.lengths)

        monkeypatch.setattr("drhmm.judging.number_of_states._held_out", held_out)
        with pytest.warns(UserWarning, match="no number of states has a gain above 0, the largest is -"):
            select_states(X, [2, 3], random_state=0)

    @pytest.mark.parametrize(("gain", "n_states"), [(0.1, 1), (0.2, 2), (-0.2, 1)])
    def test_one_state_unless_several_gain_five_nats_in_all(self, gain, n_states):
        several = gain + 0.5 * np.array([-1.0, 0.0, 1.0])
        gains = np.stack([np.zeros(3), several, several - 1])
        found = _chosen(np.array([1, 2, 3]), gains, np.full(3, 10), "3 blocks")
        assert found.n_states == n_states
        assert found.gains[0] == 0
        assert found.reason.startswith("several states gain ") == (n_states == 1)

    def test_noise_has_one_state(self):
        noise = np.random.default_rng(0).normal(size=(300, 2))
        quick = DensityRatioHMM(n_basis=20, sigma="default", rho="default", n_init=1, tol=0.05)
        found = select_states(noise, [1, 2, 3], estimator=quick, random_state=0, n_threads=1)
        assert found.n_states == 1
        assert str(found).startswith("1 state, by the gain of held-out frames")

    def test_learning_sees_the_borders_between_sequences(self, monkeypatch):
        learned_from = []

        def held_out(settings, number, train, test, threads):
            learned_from.extend(train.lengths)
            return np.zeros(len(test.lengths)), np.full(len(test.lengths), 1)

        monkeypatch.setattr("drhmm.judging.number_of_states._held_out", held_out)
        with pytest.warns(UserWarning, match="no number of states"):
            select_states(X, [2], lengths=[40] * 10, random_state=0)
        assert set(learned_from) == {40}

    def test_too_few_rows_are_refused(self):
        with pytest.raises(ValueError, match="too few to hold out 3 parts with window=4"):
            select_states(X[:9], [2], estimator=DensityRatioHMM(window=4))


class TestBlocks:
    def test_have_all_rows(self):
        assert even_blocks([1000], 20) == [(k, k + 50) for k in range(0, 1000, 50)]
        assert even_blocks([7, 300, 41], 3) == [(0, 7), (7, 107), (107, 207), (207, 307), (307, 348)]

    def test_the_mean_and_its_error_are_those_of_equal_blocks(self):
        values = np.random.default_rng(0).normal(0.3, size=(2, 20))
        mean, error = mean_and_error(values, np.full(20, 5))
        assert_allclose(mean, values.mean(axis=1))
        assert_allclose(error, values.std(axis=1, ddof=1) / np.sqrt(20))


class TestTransmatInit:
    MATRIX = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])

    def test_states_are_numbered_to_suit_it(self):
        y = np.tile(np.repeat([0, 1, 2], 10), 10)
        points = 3 * np.eye(3)[y] + 0.5 * np.random.default_rng(0).normal(size=(300, 3))
        for order in ([0, 1, 2], [0, 2, 1]):
            init = self.MATRIX[np.ix_(order, order)]
            fitted = DensityRatioHMM(3, transmat_init=init, n_basis=40, random_state=0).fit(points)
            assert (fitted.transmat_[init == 0] < 0.05).all()
            assert np.all(fitted.transmat_[(init > 0) & ~np.eye(3, dtype=bool)] > 0.05)

    @pytest.mark.parametrize(
        ("settings", "y", "message"),
        [
            ({"transmat_init": np.eye(2)}, None, "transmat_init must have shape"),
            ({"transmat_init": MATRIX, "transmat": MATRIX}, None, "give transmat, .*or transmat_init"),
            ({"transmat_init": MATRIX}, Y, "transmat_init is where EM begins, and every time step has a label"),
            (
                {"transmat_init": MATRIX, "transition_prior": np.where(np.eye(3) > 0, -np.inf, 1.0)},
                None,
                "transmat_init has 0.5 at row 0, column 0: transition_prior forbids it",
            ),
        ],
    )
    def test_mistakes_are_named(self, settings, y, message):
        with pytest.raises(ValueError, match=message):
            DensityRatioHMM(3, **settings, n_basis=20).fit(X, y)
