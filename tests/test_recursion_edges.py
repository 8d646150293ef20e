"""Zeros, infinities, missing frames, impossible data and very long or very loud sequences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import ImpossibleDataError, recursion
from drhmm.reference import recursion as reference
from problems import evidence_problem, transition_matrix

LEFT_RIGHT = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
FIRST = np.array([1.0, 0.0, 0.0])


def test_a_missing_frame_is_prediction_only(engine):
    log_ratios = np.array([[0.0, -1.0, -2.0], [np.nan] * 3])
    first, second = engine.filter(log_ratios, LEFT_RIGHT, FIRST)
    assert_allclose(second, first @ LEFT_RIGHT)


def test_all_frames_missing_is_the_chain_itself(engine):
    posteriors = engine.smooth(np.full((4, 3), np.nan), LEFT_RIGHT, FIRST)
    assert_allclose(posteriors[3], FIRST @ np.linalg.matrix_power(LEFT_RIGHT, 3))


def test_states_that_cannot_be_reached_stay_at_exactly_zero(engine):
    posteriors = engine.smooth(np.zeros((3, 3)), LEFT_RIGHT, FIRST)
    assert_array_equal(posteriors[0], FIRST)
    assert posteriors[1, 2] == 0


def test_minus_infinity_excludes_a_state(engine):
    log_ratios = np.zeros((4, 2))
    log_ratios[2, 0] = -np.inf
    assert engine.smooth(log_ratios, np.full((2, 2), 0.5), np.full(2, 0.5))[2, 0] == 0


def test_plus_infinity_excludes_all_others(engine):
    log_ratios = np.zeros((4, 3))
    log_ratios[2, 1] = np.inf
    posteriors = engine.smooth(log_ratios, np.full((3, 3), 1 / 3), np.full(3, 1 / 3))
    assert_array_equal(posteriors[2], [0.0, 1.0, 0.0])


def test_evidence_for_an_unreachable_state_does_not_hide_the_others(engine):
    # exp(-2000) is zero in double, yet state 0 is the only one possible
    log_ratios = np.array([[-2000.0, 0.0, 0.0]])
    assert_array_equal(engine.filter(log_ratios, LEFT_RIGHT, FIRST), [FIRST])


def test_a_state_is_not_forgotten_when_it_becomes_unlikely_beyond_the_range_of_double(engine):
    # Without transitions the states compete over the whole sequence: +1400 for the first, then -1500 against it.
    log_ratios = np.array([[700.0, 0.0]] * 2 + [[-500.0, 0.0]] * 3)
    posteriors = engine.filter(log_ratios, np.eye(2), np.full(2, 0.5))
    assert_allclose(posteriors[-1], [np.exp(-100) / (1 + np.exp(-100)), 1], rtol=1e-12)


def test_one_frame_alone_gives_evidence_times_start(engine):
    posteriors = engine.filter(np.log([[1.0, 3.0]]), np.eye(2), np.array([0.6, 0.4]))
    assert_allclose(posteriors, [[1 / 3, 2 / 3]])


@pytest.mark.parametrize("function", [recursion.filter, recursion.smooth, recursion.viterbi])
class TestImpossibleData:
    def test_names_the_frame(self, function):
        log_ratios = np.zeros((5, 3))
        log_ratios[1, :2] = -np.inf  # only the third state, which cannot be reached so soon
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 1\)"):
            function(log_ratios, LEFT_RIGHT, FIRST)

    def test_names_the_sequence(self, function):
        log_ratios = np.zeros((7, 3))
        log_ratios[5] = -np.inf
        with pytest.raises(ImpossibleDataError) as caught:
            function(log_ratios, LEFT_RIGHT, FIRST, lengths=[4, 3])
        assert (caught.value.sequence, caught.value.frame, caught.value.row) == (1, 1, 5)


def test_unlikely_is_not_impossible():
    log_ratios = np.zeros((3, 3))
    log_ratios[1, :2] = -1e6
    assert_allclose(recursion.filter(log_ratios, LEFT_RIGHT, FIRST).sum(axis=1), 1)


class TestAbsurdEvidence:
    @pytest.mark.parametrize("largest", [1e5, 1e8, 6e10])
    def test_chains_with_zeros_keep_up(self, largest):
        random = np.random.default_rng(0)
        for _ in range(20):
            log_ratios = random.integers(-2, 3, size=(6, 3)) * (largest / 4)
            problem = (log_ratios, LEFT_RIGHT, np.full(3, 1 / 3))
            tolerance = 1e-15 * largest  # the digits that the reference loses by adding logarithms
            assert_allclose(recursion.smooth(*problem), reference.smooth(*problem), atol=tolerance)
            assert_allclose(recursion.filter(*problem), reference.filter(*problem), atol=tolerance)

    @pytest.mark.parametrize("largest", [1e12, 1.1e20, 1e100, 1.7e308])
    def test_beyond_the_limit_it_is_refused_and_not_guessed(self, largest):
        with pytest.raises(ValueError, match=r"row 0, column 1 is finite, but more than 6\.9e"):
            recursion.filter([[12345.678, -largest], [-np.inf, 0.0]], np.eye(2), [0.5, 0.5])

    @pytest.mark.parametrize("largest", [1e12, 1.1e20, 1e100, 1.7e308])
    def test_where_every_transition_is_possible_there_is_no_limit(self, largest):
        log_ratios = np.array([[largest, -largest, 0.0], [-largest, 0.0, largest], [0.0, largest, -largest]])
        posteriors = recursion.smooth(log_ratios, np.full((3, 3), 1 / 3), np.full(3, 1 / 3))
        assert_allclose(posteriors, [[1, 0, 0], [0, 0, 1], [0, 1, 0]], atol=1e-12)


class TestUnreachableStates:
    def test_their_evidence_does_not_drown_that_of_others_in_smoothing(self, engine):
        log_ratios = np.array([[0.0, 0.0, 0.0], [-1e9, -1e9 + 5, 0.0]])
        posteriors = engine.smooth(log_ratios, np.eye(3), np.array([0.5, 0.5, 0.0]))
        assert_allclose(posteriors[0], [1 / (1 + np.exp(5)), 1 / (1 + np.exp(-5)), 0])

    @pytest.mark.parametrize("name", ["filter", "smooth", "expected_transitions"])
    @pytest.mark.parametrize("lowest", [-1e12, -1.1e20, -1e300, -1.7e308])
    def test_absurd_evidence_against_one_changes_nothing(self, name, lowest):
        # The first two states leave the range of double; the third cannot be reached.
        log_ratios = np.array(
            [[700.0, 0.0, lowest], [700.0, 0.0, lowest], [-650.0, 0.0, lowest], [-750.0, 0.0, lowest]]
        )
        without = getattr(recursion, name)(log_ratios[:, :2], np.eye(2), [0.5, 0.5])
        values = getattr(recursion, name)(log_ratios, np.eye(3), [0.5, 0.5, 0.0])
        assert_allclose(values[: len(without), :2], without)

    @pytest.mark.parametrize("name", ["filter", "smooth", "viterbi", "expected_transitions"])
    def test_certainty_of_one_is_impossible_data(self, engine, name):
        log_ratios = np.zeros((4, 3))
        log_ratios[1, 2] = np.inf
        with pytest.raises(ValueError, match=r"impossible data.*time step 1"):
            getattr(engine, name)(log_ratios, LEFT_RIGHT, FIRST)

    def test_certainty_of_one_is_impossible_data_with_a_lag(self):
        log_ratios = np.zeros((4, 3))
        log_ratios[1, 2] = np.inf
        with pytest.raises(ImpossibleDataError):
            recursion.fixed_lag(log_ratios, LEFT_RIGHT, FIRST, 2)


@pytest.mark.parametrize("name", ["viterbi", "expected_transitions"])
def test_infinite_evidence_agrees_with_the_reference(name):
    random = np.random.default_rng(0)
    log_ratios = random.normal(size=(30, 3))
    log_ratios[5, 1] = np.inf
    log_ratios[9, 0] = log_ratios[12, 2] = -np.inf
    problem = (log_ratios, transition_matrix(random, 3, "dense"), np.full(3, 1 / 3))
    assert_allclose(getattr(recursion, name)(*problem), getattr(reference, name)(*problem), atol=1e-10)


@pytest.fixture(scope="module")
def log_ratios():
    return np.random.default_rng(0).uniform(-700, 700, size=(1_000_000, 3))


@pytest.mark.slow
class TestAMillionLoudFrames:
    @pytest.mark.parametrize("function", [recursion.filter, recursion.smooth])
    def test_left_right(self, log_ratios, function):
        posteriors = function(log_ratios, LEFT_RIGHT, FIRST)
        assert np.isfinite(posteriors).all()
        assert np.abs(posteriors.sum(axis=1) - 1).max() <= 1e-12
        assert posteriors[0, 1] == posteriors[0, 2] == posteriors[1, 2] == 0

    @pytest.mark.parametrize("function", [recursion.filter, recursion.smooth])
    def test_dense(self, log_ratios, function):
        transmat = transition_matrix(np.random.default_rng(1), 3, "dense")
        posteriors = function(log_ratios, transmat, np.full(3, 1 / 3))
        assert np.isfinite(posteriors).all()
        assert np.abs(posteriors.sum(axis=1) - 1).max() <= 1e-12

    def test_left_right_path_never_goes_back(self, log_ratios):
        path = recursion.viterbi(log_ratios, LEFT_RIGHT, FIRST)
        assert path[0] == 0
        assert (np.diff(path) >= 0).all()
        assert (np.diff(path) <= 1).all()

    def test_forbidden_transitions_are_expected_exactly_never(self, log_ratios):
        counts = recursion.expected_transitions(log_ratios, LEFT_RIGHT, FIRST)
        assert_array_equal(counts[LEFT_RIGHT == 0], 0)


E, A, P = evidence_problem(0, 10, 3, missing=0)
SOME_NAN = np.where((np.arange(10)[:, None] == 7) & (np.arange(3) == 2), np.nan, E)
WRAPPING = np.array([2**63, 2**63, 10], dtype=np.uint64)

REFUSED = {
    "evidence of one dimension": ((E[:, 0], A, P), {}, r"log_ratios must have two dimensions.*\(10,\)"),
    "a list of equal sequences": (([E, E], A, P), {}, r"log_ratios .* in one array and give their lengths"),
    "a list of sequences": (([E, E[:7]], A, P), {}, r"log_ratios .* in one array and give their lengths"),
    "no evidence": ((None, A, P), {}, r"log_ratios must have two dimensions \(rows, columns\), got None"),
    "empty evidence": ((np.empty((0, 3)), A, P), {}, "log_ratios is empty"),
    "a row with some NaN": ((SOME_NAN, A, P), {}, "NaN at row 7, column 2"),
    "transmat of another size": ((E, np.eye(2), P), {}, r"transmat must have shape \(3, 3\), got \(2, 2\)"),
    "a row that does not sum to one": (
        (E, [[1, 0, 0], [0.5, 0.4, 0], [0, 0, 1]], P),
        {},
        "transmat: the sum of row 1 is 0.9, not 1",
    ),
    "a negative transition": (
        (E, [[1.5, -0.5, 0], [0, 1, 0], [0, 0, 1]], P),
        {},
        "transmat has -0.5 at column 1 of row 0",
    ),
    "startprob with NaN": ((E, A, [np.nan, 0.5, 0.5]), {}, "startprob has nan at column 0"),
    "lengths that do not sum": ((E, A, P), {"lengths": [4, 5]}, "lengths sum to 9, but there are 10 rows"),
    "lengths whose sum wraps around": ((E, A, P), {"lengths": WRAPPING}, "lengths sum to 18446744073709551626"),
    "an empty sequence": ((E, A, P), {"lengths": [4, 0, 6]}, "sequence 1 has length 0"),
    "lengths that are no integers": ((E, A, P), {"lengths": [4.5, 5.5]}, "lengths must be a one-dimensional sequence"),
    "zero threads": ((E, A, P), {"n_threads": 0}, "n_threads must be at least 1, got 0"),
    "absurdly many threads": ((E, A, P), {"n_threads": 2**40}, "n_threads must be at most 4096"),
}


class TestBadInput:
    """One clear exception each, raised before anything is computed."""

    @pytest.mark.parametrize(("arguments", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
    def test_is_refused(self, arguments, options, message):
        with pytest.raises(ValueError, match=message):
            recursion.smooth(*arguments, **options)

    def test_a_row_that_nearly_sums_to_one_counts_as_if_it_did(self):
        nearly = A * [[1 + 1e-9], [1], [1 - 1e-9]]
        assert_allclose(recursion.smooth(E, nearly, P), recursion.smooth(E, A, P), rtol=1e-13)

    def test_negative_lag(self):
        with pytest.raises(ValueError, match="lag must be at least 0, got -1"):
            recursion.fixed_lag(E, A, P, lag=-1)

    def test_threads_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("DRHMM_NUM_THREADS", "many")
        with pytest.raises(ValueError, match="DRHMM_NUM_THREADS must be a positive integer up to 4096, got 'many'"):
            recursion.smooth(E, A, P)


class TestPathsPastUnreachableStates:
    """Evidence for a state that cannot be reached is of no account, however loud it is."""

    @pytest.mark.parametrize("loud", [1e6, 6e10, 1e17, 1e308])
    def test_few_states(self, loud):
        log_ratios = np.array([[loud, 0, 0]] + [[loud, 0, 1e-6]] * 20)
        chain = [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], [0, 0.5, 0.5]
        assert recursion.viterbi(log_ratios, *chain)[1:].tolist() == [2] * 20

    def test_many_states(self):
        log_ratios = np.zeros((40, 6))
        log_ratios[:, 0], log_ratios[1:, 2] = 1e15, 1e-3
        transmat = np.full((6, 6), 0.2)
        transmat[:, 0], transmat[0] = 0, [1, 0, 0, 0, 0, 0]
        assert recursion.viterbi(log_ratios, transmat, [0, 0.2, 0.2, 0.2, 0.2, 0.2])[1:].tolist() == [2] * 39


@pytest.mark.parametrize("n_states", [2, 3, 4, 5])
def test_a_certain_row_counts_as_one_that_excludes_all_other_states(n_states):
    random = np.random.default_rng(0)
    log_ratios = random.normal(size=(20, n_states))
    transmat = np.full((n_states, n_states), 0.1) + np.eye(n_states)
    chain = transmat / transmat.sum(axis=1, keepdims=True), np.full(n_states, 1 / n_states)
    excluding = log_ratios.copy()
    log_ratios[3], excluding[3] = 0, -np.inf
    log_ratios[3, 0], excluding[3, 0] = np.inf, 0
    assert_allclose(recursion.log_likelihood(log_ratios, *chain), recursion.log_likelihood(excluding, *chain))
