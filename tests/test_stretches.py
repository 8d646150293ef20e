"""Frames in stretches that run side by side: nothing of that may be seen in the answers, on any variant."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import ImpossibleDataError, _core, recursion
from drhmm.reference import recursion as reference
from native import EVERY_WAY, Native, name_of
from problems import evidence_problem

PASSES = ("filter", "smooth")


@pytest.fixture(params=EVERY_WAY, ids=name_of)
def variant(request):
    return Native(*request.param)


def sticky(n_states, rare):
    transmat = np.full((n_states, n_states), rare / (n_states - 1))
    np.fill_diagonal(transmat, 1 - rare)
    return transmat, np.full(n_states, 1 / n_states)


def run(variant, name, problem, lengths):
    report, posteriors = getattr(variant, name)(*problem, lengths)
    assert report[0] == 0
    return posteriors


@pytest.mark.grid(5)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n_states", [2, 3, 4, 5, 6, 7, 8, 9, 16, 21, 64])
def test_one_long_sequence(variant, name, n_states):
    problem = evidence_problem(n_states, 2500, n_states)
    expected = getattr(reference, name)(*problem)
    assert_allclose(run(variant, name, problem, [2500]), expected, rtol=1e-11, atol=0)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n_states", [2, 3, 16])
def test_many_sequences_of_any_length(variant, name, n_states):
    lengths = np.random.default_rng(0).integers(1, 120, 60).tolist()
    log_ratios, *chain = evidence_problem(1, sum(lengths), n_states)
    ends = np.cumsum(lengths)
    expected = [getattr(reference, name)(part, *chain) for part in np.split(log_ratios, ends[:-1])]
    posteriors = run(variant, name, (log_ratios, *chain), lengths)
    assert_allclose(posteriors, np.concatenate(expected), rtol=1e-11, atol=0)


@pytest.mark.slow
@pytest.mark.grid(5)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n_states", [2, 3, 16])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.1])
def test_chains_that_do_not_forget_within_a_warm_up(variant, name, n_states, spread):
    transmat, startprob = sticky(n_states, 1e-4)
    startprob = startprob * 0.5
    startprob[-1] += 0.5
    log_ratios = spread * np.random.default_rng(0).normal(size=(9000, n_states))
    expected = getattr(reference, name)(log_ratios, transmat, startprob)
    assert_allclose(run(variant, name, (log_ratios, transmat, startprob), [9000]), expected, rtol=1e-9, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
def test_one_sequence_that_forgets_slowly_among_others(variant, name):
    chain = sticky(3, 1e-4)
    log_ratios = 4 * np.random.default_rng(0).normal(size=(12000, 3))
    log_ratios[4000:8000] = np.nan
    posteriors = run(variant, name, (log_ratios, *chain), [4000] * 3)
    expected = [getattr(reference, name)(part, *chain) for part in np.split(log_ratios, 3)]
    assert_allclose(posteriors, np.concatenate(expected), rtol=1e-9, atol=0)


@pytest.mark.parametrize("n_states", [3, 16])
def test_posteriors_close_to_zero_keep_their_digits(variant, n_states):
    transmat, startprob = sticky(n_states, 0.1)
    log_ratios = np.random.default_rng(0).normal(size=(3000, n_states))
    log_ratios[::3, 1] -= 650
    posteriors = run(variant, "smooth", (log_ratios, transmat, startprob), [3000])
    expected = reference.smooth(log_ratios, transmat, startprob)
    assert expected[::3, 1].max() < 1e-270
    assert_allclose(posteriors, expected, rtol=1e-11, atol=1e-111)


@pytest.mark.parametrize("n_states", [3, 16])
def test_a_row_out_of_the_ordinary_far_inside(variant, n_states):
    log_ratios, *chain = evidence_problem(2, 3000, n_states)
    log_ratios[1700] = 0
    log_ratios[1700, 1] = np.inf
    posteriors = run(variant, "smooth", (log_ratios, *chain), [3000])
    # Zeros are exact; the one is a quotient, rounded.
    assert_array_equal(posteriors[1700] > 0, np.eye(n_states)[1] > 0)
    assert_allclose(posteriors[1700, 1], 1.0, rtol=2e-16, atol=0)


def test_impossible_data_are_reported_where_they_are():
    log_ratios, *chain = evidence_problem(3, 6000, 3)
    log_ratios[4321] = -np.inf
    with pytest.raises(ImpossibleDataError) as caught:
        recursion.smooth(log_ratios, *chain, lengths=[2000] * 3)
    assert (caught.value.sequence, caught.value.frame, caught.value.row) == (2, 321, 4321)


@pytest.mark.parametrize("n_states", [3, 16])
def test_threads_change_not_one_bit(n_states):
    log_ratios, *chain = evidence_problem(4, 150_000, n_states)
    alone = recursion.smooth(log_ratios, *chain, n_threads=1)
    assert_array_equal(recursion.smooth(log_ratios, *chain, n_threads=3), alone)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n_states", [2, 3, 16, 64])
def test_an_answer_that_no_cache_holds_is_that_of_its_parts(variant, name, n_states):
    n_frames = 2**18 // n_states // 8 * 8  # 2 MB of posteriors
    log_ratios, *chain = evidence_problem(5, n_frames, n_states, missing=0)
    parts = [run(variant, name, (part, *chain), [len(part)]) for part in np.split(log_ratios, 8)]
    posteriors = run(variant, name, (log_ratios, *chain), [n_frames // 8] * 8)
    assert_allclose(posteriors, np.concatenate(parts), rtol=1e-12, atol=0)


@pytest.mark.parametrize("n_states", [3, 4, 16])
def test_all_states_but_one_excluded_far_inside(variant, n_states):
    log_ratios, *chain = evidence_problem(6, 3000, n_states, missing=0)
    log_ratios[1700, 1:] = -np.inf
    posteriors = run(variant, "smooth", (log_ratios, *chain), [3000])
    assert_allclose(posteriors, reference.smooth(log_ratios, *chain), rtol=1e-11, atol=0)


def with_nan_of_other_programs(log_ratios, *place):
    """NaN whose low bits say something, as R's NA."""
    log_ratios.view(np.uint64)[place] = 0x7FF00000000007A2
    return log_ratios


@pytest.mark.grid(3)
@pytest.mark.parametrize("n_states", [2, 3, 16, 64])
@pytest.mark.parametrize("row", [0, 1700])
def test_missing_frames_may_be_any_kind_of_nan(variant, n_states, row):
    log_ratios, *chain = evidence_problem(7, 3000, n_states, missing=0)
    expected = log_ratios.copy()
    expected[row] = np.nan
    posteriors = run(variant, "smooth", (with_nan_of_other_programs(log_ratios, row), *chain), [3000])
    assert_allclose(posteriors, reference.smooth(expected, *chain), rtol=1e-11, atol=0)


@pytest.mark.parametrize("n_states", [2, 3, 16, 64])
@pytest.mark.parametrize("column", [0, 1])
def test_any_kind_of_nan_beside_numbers_is_refused(variant, n_states, column):
    log_ratios, *chain = evidence_problem(8, 3000, n_states, missing=0)
    report, _ = variant.smooth(with_nan_of_other_programs(log_ratios, 1700, column), *chain, [3000])
    assert report == (_core.OUTCOMES.index("partial_nan"), 0, 1700, column)
