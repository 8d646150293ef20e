"""What filtering, smoothing, paths and transition counts are, checked against enumeration and the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import recursion
from drhmm.reference import recursion as reference
from problems import evidence_problem

KINDS = ["dense", "sparse", "left-right"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_frames", "n_states"), [(1, 3), (2, 2), (6, 2), (5, 3), (4, 4)])
class TestEnumeration:
    def test_smooth_is_the_sum_over_all_paths(self, engine, kind, n_frames, n_states):
        problem = evidence_problem(1, n_frames, n_states, kind)
        assert_allclose(engine.smooth(*problem), reference.enumerate_paths(*problem)[0], atol=1e-13)

    def test_filter_is_smoothing_of_the_past(self, engine, kind, n_frames, n_states):
        log_ratios, *chain = evidence_problem(2, n_frames, n_states, kind)
        last = [reference.enumerate_paths(log_ratios[: t + 1], *chain)[0][-1] for t in range(n_frames)]
        assert_allclose(engine.filter(log_ratios, *chain), last, atol=1e-13)

    def test_fixed_lag_is_smoothing_of_a_prefix(self, engine, kind, n_frames, n_states):
        log_ratios, *chain = evidence_problem(3, n_frames, n_states, kind)
        expected = [reference.enumerate_paths(log_ratios[: t + 3], *chain)[0][t] for t in range(n_frames)]
        assert_allclose(engine.fixed_lag(log_ratios, *chain, lag=2), expected, atol=1e-13)

    def test_expected_transitions_are_the_sum_over_all_paths(self, engine, kind, n_frames, n_states):
        problem = evidence_problem(4, n_frames, n_states, kind)
        assert_allclose(engine.expected_transitions(*problem), reference.enumerate_paths(*problem)[1], atol=1e-13)

    def test_viterbi_finds_the_best_of_all_paths(self, engine, kind, n_frames, n_states):
        problem = evidence_problem(5, n_frames, n_states, kind, missing=0)
        assert_array_equal(engine.viterbi(*problem), reference.enumerate_paths(*problem)[2])


@pytest.mark.parametrize("n_states", [2, 3, 4])
class TestPairwiseRatiosOfThePaper:
    def test_filter_and_smooth(self, engine, n_states):
        problem = evidence_problem(6, 7, n_states, missing=0)
        filtered, smoothed = reference.pairwise_smooth(*problem)
        assert_allclose(engine.filter(*problem), filtered, atol=1e-13)
        assert_allclose(engine.smooth(*problem), smoothed, atol=1e-13)


# Spread 1 stays in double; 300 and 5000 leave its range and repeat in the wider number type.
@pytest.mark.parametrize("spread", [1, 30, 300, 5000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_states", [1, 2, 3, 7, 20])
class TestParity:
    def test_posteriors(self, n_states, kind, spread):
        problem = evidence_problem(8, 200, n_states, kind, spread)
        assert_allclose(recursion.filter(*problem), reference.filter(*problem), atol=1e-11)
        assert_allclose(recursion.smooth(*problem), reference.smooth(*problem), atol=1e-11)

    def test_fixed_lag(self, n_states, kind, spread):
        problem = evidence_problem(9, 40, n_states, kind, spread)
        assert_allclose(recursion.fixed_lag(*problem, 4), reference.fixed_lag(*problem, 4), atol=1e-11)

    def test_expected_transitions(self, n_states, kind, spread):
        problem = evidence_problem(10, 200, n_states, kind, spread)
        assert_allclose(recursion.expected_transitions(*problem), reference.expected_transitions(*problem), atol=1e-9)

    def test_viterbi_path_is_as_probable(self, n_states, kind, spread):
        problem = evidence_problem(11, 200, n_states, kind, spread)
        ours, theirs = recursion.viterbi(*problem), reference.viterbi(*problem)
        assert_allclose(
            reference.path_log_probability(ours, *problem),
            reference.path_log_probability(theirs, *problem),
            rtol=1e-12,
        )


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_frames=st.integers(1, 60),
    n_states=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    spread=st.sampled_from([0.1, 1.0, 50.0, 400.0, 1e5]),
)
def test_smooth_agrees_with_the_log_domain_whatever_the_problem(seed, n_frames, n_states, kind, spread):
    problem = evidence_problem(seed, n_frames, n_states, kind, spread)
    assert_allclose(recursion.smooth(*problem), reference.smooth(*problem), atol=1e-8)


def test_fixed_lag_zero_is_filtering():
    problem = evidence_problem(12, 50, 3)
    assert_allclose(recursion.fixed_lag(*problem, 0), recursion.filter(*problem), atol=1e-15)


def test_fixed_lag_of_the_whole_sequence_is_smoothing():
    problem = evidence_problem(13, 50, 3)
    assert_allclose(recursion.fixed_lag(*problem, 10**9), recursion.smooth(*problem), atol=1e-14)


def test_expected_transitions_sum_to_the_number_of_steps():
    problem = evidence_problem(14, 50, 3)
    assert_allclose(recursion.expected_transitions(*problem, lengths=[20, 30]).sum(), 48)


@pytest.mark.parametrize("function", [recursion.filter, recursion.smooth, recursion.viterbi])
def test_sequences_do_not_touch_one_another(function):
    log_ratios, *chain = evidence_problem(15, 60, 3)
    together = function(log_ratios, *chain, lengths=[25, 1, 34])
    apart = [function(part, *chain) for part in np.split(log_ratios, [25, 26])]
    assert_array_equal(together, np.concatenate(apart))


@pytest.mark.parametrize(
    "function", [recursion.filter, recursion.smooth, recursion.viterbi, recursion.expected_transitions]
)
def test_threads_do_not_change_anything(function):
    problem = evidence_problem(16, 3000, 4)
    lengths = [10] * 300
    assert_array_equal(
        function(*problem, lengths=lengths, n_threads=1), function(*problem, lengths=lengths, n_threads=4)
    )


def test_a_constant_per_row_changes_nothing():
    log_ratios, *chain = evidence_problem(17, 50, 3)
    shifted = log_ratios + np.linspace(-1e5, 1e5, 50)[:, None]
    assert_allclose(recursion.smooth(shifted, *chain), recursion.smooth(log_ratios, *chain), atol=1e-9)
