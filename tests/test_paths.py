"""Likelihoods, path samples, transitions and stationary distributions, against enumeration and hmmlearn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import recursion
from drhmm.reference import recursion as reference
from problems import evidence_problem, transition_matrix

KINDS = ["dense", "sparse", "left-right"]


def all_paths(log_ratios, transmat, startprob):
    """Every path and the log of its probability times its evidence."""
    paths = np.array(list(itertools.product(range(len(startprob)), repeat=len(log_ratios))))
    logs = [reference.path_log_probability(path, log_ratios, transmat, startprob) for path in paths]
    return paths, np.array(logs)


def far_apart():
    """Evidence that a state comes back from after its filtered posterior was 0 in double."""
    return np.array([[0.0, -900.0], [0.0, 0.0], [-1900.0, 0.0]]), np.array([[1.0, 0.0], [1e-3, 0.999]]), np.ones(2) / 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_frames", "n_states"), [(1, 3), (6, 2), (5, 3)])
class TestEnumeration:
    def test_log_likelihood_is_the_sum_over_all_paths(self, kind, n_frames, n_states):
        problem = evidence_problem(1, n_frames, n_states, kind)
        expected = np.logaddexp.reduce(all_paths(*problem)[1])
        assert_allclose(recursion.log_likelihood(*problem), [expected], atol=1e-10)

    def test_log_probability_of_the_best_path_is_the_largest(self, kind, n_frames, n_states):
        problem = evidence_problem(2, n_frames, n_states, kind)
        assert_allclose(recursion.viterbi_log_probability(*problem), [all_paths(*problem)[1].max()], atol=1e-10)

    def test_transition_posteriors_are_the_sum_over_all_paths(self, kind, n_frames, n_states):
        problem = evidence_problem(3, n_frames, n_states, kind)
        paths, logs = all_paths(*problem)
        weights = np.exp(logs - np.logaddexp.reduce(logs))
        expected = np.zeros((n_frames - 1, n_states, n_states))
        for t in range(n_frames - 1):
            np.add.at(expected[t], (paths[:, t], paths[:, t + 1]), weights)
        assert_allclose(recursion.transition_posteriors(*problem), expected, atol=1e-10)
        assert_allclose(reference.transition_posteriors(*problem), expected, atol=1e-10)

    def test_paths_are_drawn_as_often_as_they_are_probable(self, kind, n_frames, n_states):
        problem = evidence_problem(4, n_frames, n_states, kind)
        paths, logs = all_paths(*problem)
        weights = np.exp(logs - np.logaddexp.reduce(logs))
        drawn = recursion.sample_paths(*problem, 20_000, random_state=0)
        places = n_states ** np.arange(n_frames)[::-1]
        counts = np.bincount(drawn @ places, minlength=len(paths)) / len(drawn)
        assert (counts[weights == 0] == 0).all()
        assert np.abs(counts - weights).max() < 0.02


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_states", [1, 2, 5, 20])
class TestTwins:
    def test_log_likelihood(self, n_states, kind):
        problem = evidence_problem(5, 200, n_states, kind)
        assert_allclose(recursion.log_likelihood(*problem), [reference.log_likelihood(*problem)], rtol=1e-10)

    def test_transition_posteriors(self, n_states, kind):
        problem = evidence_problem(6, 200, n_states, kind, spread=300)
        assert_allclose(
            recursion.transition_posteriors(*problem), reference.transition_posteriors(*problem), atol=1e-10
        )

    def test_paths_of_the_same_uniform_numbers(self, n_states, kind):
        problem = evidence_problem(7, 200, n_states, kind)
        uniforms = np.random.default_rng(3).random((4, 200))
        assert_array_equal(
            recursion.sample_paths(*problem, 4, random_state=3), reference.draw_paths(*problem, uniforms)
        )


class TestHmmlearn:
    @pytest.fixture
    def model(self):
        random = np.random.default_rng(0)
        model = GaussianHMM(n_components=4, covariance_type="diag")
        model.transmat_, model.startprob_ = transition_matrix(random, 4, "dense"), random.dirichlet(np.ones(4))
        model.means_, model.covars_ = random.normal(size=(4, 2)), random.uniform(0.5, 2, size=(4, 2))
        return model

    @pytest.fixture
    def problem(self, model):
        X, _ = model.sample(600, random_state=1)
        return X, (model._compute_log_likelihood(X), model.transmat_, model.startprob_)

    def test_score(self, model, problem):
        X, arrays = problem
        found = recursion.log_likelihood(*arrays, lengths=[200, 400])
        assert_allclose(found, [model.score(X[:200]), model.score(X[200:])], rtol=1e-12)

    def test_decode(self, model, problem):
        X, arrays = problem
        assert_allclose(recursion.viterbi_log_probability(*arrays), [model.decode(X)[0]], rtol=1e-12)

    def test_stationary_distribution(self, model):
        expected = model.get_stationary_distribution()
        assert_allclose(recursion.stationary_distribution(model.transmat_), expected, atol=1e-10)


class TestTransitionPosteriors:
    def test_sum_to_expected_transitions(self):
        problem = evidence_problem(8, 300, 3)
        steps = recursion.transition_posteriors(*problem, lengths=[100, 200])
        assert_allclose(steps.sum(axis=0), recursion.expected_transitions(*problem, lengths=[100, 200]), atol=1e-10)

    def test_are_exact_where_double_holds_too_little(self):
        problem = far_apart()
        paths, logs = all_paths(*problem)
        best = paths[logs.argmax()]
        found = recursion.transition_posteriors(*problem)
        assert_allclose(found[0, best[0], best[1]], np.exp(logs.max() - np.logaddexp.reduce(logs)), atol=1e-10)

    @pytest.mark.parametrize("first", [1, 3])
    def test_step_over_gaps(self, first):
        log_ratios, *chain = evidence_problem(9, 6, 3, missing=0)
        dt = np.array([first, 1, 4, 1, 2, 1])
        filled, rows = reference.fill_gaps(log_ratios, dt)
        smoothed = reference.smooth(filled, *chain)[rows]
        found = recursion.transition_posteriors(log_ratios, *chain, dt=dt)
        assert_allclose(found.sum(axis=2), smoothed[:-1], atol=1e-12)
        assert_allclose(found.sum(axis=1), smoothed[1:], atol=1e-12)


class TestPaths:
    def test_are_the_same_for_the_same_seed_and_any_threads(self):
        problem = evidence_problem(10, 500, 3)
        one = recursion.sample_paths(*problem, 5, lengths=[100, 400], random_state=1, n_threads=1)
        assert_array_equal(one, recursion.sample_paths(*problem, 5, lengths=[100, 400], random_state=1, n_threads=3))

    def test_are_possible_where_double_holds_too_little(self):
        problem = far_apart()
        paths, logs = all_paths(*problem)
        assert_array_equal(recursion.sample_paths(*problem, 3, random_state=0), [paths[logs.argmax()]] * 3)

    def test_agree_with_smoothing_across_gaps(self):
        log_ratios, *chain = evidence_problem(11, 5, 3, missing=0)
        dt = np.array([2, 1, 9, 1, 3])
        drawn = recursion.sample_paths(log_ratios, *chain, 20_000, dt=dt, random_state=0)
        shares = np.stack([(drawn == state).mean(axis=0) for state in range(3)], axis=1)
        assert_allclose(shares, recursion.smooth(log_ratios, *chain, dt=dt), atol=0.02)

    def test_their_number_is_positive(self):
        with pytest.raises(ValueError, match="n_paths must be at least 1, got 0"):
            recursion.sample_paths(*evidence_problem(12, 5, 2), 0)


class TestStationaryDistribution:
    @pytest.mark.parametrize("kind", ["dense", "left-right"])
    @pytest.mark.parametrize("n_states", [1, 2, 9])
    def test_is_the_eigenvector(self, n_states, kind):
        matrix = transition_matrix(np.random.default_rng(1), n_states, kind)
        expected = reference.stationary_distribution(matrix)
        assert_allclose(recursion.stationary_distribution(matrix), expected, atol=1e-10)

    def test_small_shares_keep_their_digits(self):
        found = recursion.stationary_distribution([[1 - 1e-200, 1e-200], [0.5, 0.5]])
        assert_allclose(found[1], 2e-200, rtol=1e-12)

    def test_states_that_are_left_for_ever_have_none(self):
        assert_array_equal(recursion.stationary_distribution([[0.5, 0.5], [0.0, 1.0]]), [0.0, 1.0])

    def test_refuses_a_chain_of_parts_that_never_meet(self):
        with pytest.raises(ValueError, match="states 0 and 1 never reach each other"):
            recursion.stationary_distribution(np.eye(2))
