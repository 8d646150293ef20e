"""Steps without a frame: `dt` is the same as missing frames, and exact for any number of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import DensityRatioHMM, ImpossibleDataError, recursion
from drhmm.reference import recursion as reference
from problems import blobs, evidence_problem


@pytest.mark.parametrize("kind", ["dense", "sparse", "left-right"])
@pytest.mark.parametrize("spread", [1, 300])
@pytest.mark.parametrize("longest", [3, 700])
class TestMissingFrames:
    """A gap of k steps is k - 1 missing frames; 700 steps leave the range of double in chains with zeros."""

    @pytest.fixture
    def problem(self, kind, spread, longest):
        log_ratios, transmat, startprob = evidence_problem(1, 12, 4, kind, spread=spread)
        dt = np.random.default_rng(2).integers(1, longest + 1, size=12)
        filled, rows = reference.fill_gaps(log_ratios, dt)
        return log_ratios, transmat, startprob, dt, filled, rows

    @pytest.mark.parametrize("name", ["filter", "smooth"])
    def test_posteriors(self, problem, name):
        log_ratios, transmat, startprob, dt, filled, rows = problem
        expected = getattr(reference, name)(filled, transmat, startprob)[rows]
        assert_allclose(getattr(recursion, name)(log_ratios, transmat, startprob, dt=dt), expected, atol=1e-12)

    def test_fixed_lag_counts_frames(self, problem):
        log_ratios, transmat, startprob, dt, filled, rows = problem
        ends = np.append(rows[2:], [rows[-1]] * 2) + 1
        expected = [
            reference.smooth(filled[:end], transmat, startprob)[row] for row, end in zip(rows, ends, strict=True)
        ]
        posteriors = recursion.fixed_lag(log_ratios, transmat, startprob, lag=2, dt=dt)
        assert_allclose(posteriors, expected, atol=1e-12)


def test_viterbi_is_the_best_path_of_the_states_at_the_frames():
    log_ratios, transmat, startprob = evidence_problem(3, 5, 3, missing=0)
    dt = np.array([1, 3, 1, 2, 5])
    gaps = [np.linalg.matrix_power(transmat, k) for k in dt]
    best = max(
        np.ndindex(*[3] * 5),
        key=lambda path: (
            np.log(startprob[path[0]])
            + sum(np.log(gaps[t][path[t - 1], path[t]]) for t in range(1, 5))
            + sum(log_ratios[t, path[t]] for t in range(5))
        ),
    )
    assert_array_equal(recursion.viterbi(log_ratios, transmat, startprob, dt=dt), best)


@pytest.mark.parametrize("leave", [0.3, 1e-3, 1e-9, 1e-12])
@pytest.mark.parametrize("dt", [2, 1000, 10**6 + 1, 2**40 + 12345, 2**53])
def test_two_states_are_exact_for_any_gap(leave, dt):
    """p = stationary + (start - stationary) (1 - a - b)^dt, by a logarithm that keeps its digits."""
    back = leave / 3
    transmat = [[1 - leave, leave], [back, 1 - back]]
    stationary = back / (leave + back)
    expected = stationary + (1 - stationary) * np.exp(dt * np.log1p(-(leave + back)))
    missing = np.full((2, 2), np.nan)
    posterior = recursion.filter(missing, transmat, [1.0, 0.0], dt=[1, dt])[1, 0]
    # 1 - leave is rounded to 1e-16, which for leave = 1e-12 is 1e-4 of the rate itself: A is that matrix, not this one.
    assert posterior == pytest.approx(expected, abs=1e-13 + 2e-16 / leave)


def test_left_right_gaps_are_exact_where_double_underflows():
    """The state that was left is known to its last digits at any distance."""
    log_ratios = np.array([[0.0, 0.0], [0.0, -1e5]])
    dt = 100_001
    # p0 = 2^-100001 e^0 against p1 = (1 - 2^-100001) e^-100000; the logarithms decide.
    log_odds = dt * np.log(0.5) + 1e5
    posterior = recursion.filter(log_ratios, [[0.5, 0.5], [0.0, 1.0]], [1.0, 0.0], dt=[1, dt])[1]
    assert posterior[0] == pytest.approx(1 / (1 + np.exp(-log_odds)), rel=1e-9)


def test_a_period_is_never_forgotten():
    flip = [[0.0, 1.0], [1.0, 0.0]]
    missing = np.full((3, 2), np.nan)
    posteriors = recursion.filter(missing, flip, [1.0, 0.0], dt=[1, 2**53 - 1, 2**53])
    assert_array_equal(posteriors, [[1, 0], [0, 1], [0, 1]])


def test_the_first_gap_counts_from_the_start():
    missing = np.full((1, 2), np.nan)
    transmat = [[0.9, 0.1], [0.2, 0.8]]
    posterior = recursion.filter(missing, transmat, [1.0, 0.0], dt=[3])
    assert_allclose(posterior, np.array([[1.0, 0.0]]) @ np.linalg.matrix_power(transmat, 2), atol=1e-15)


def test_gaps_do_not_cross_sequences():
    log_ratios, transmat, startprob = evidence_problem(4, 10, 3)
    dt = np.array([2, 1, 1, 7, 1, 1, 1, 3, 3, 1])
    together = recursion.smooth(log_ratios, transmat, startprob, lengths=[6, 4], dt=dt)
    apart = [
        recursion.smooth(log_ratios[part], transmat, startprob, dt=dt[part]) for part in (slice(0, 6), slice(6, 10))
    ]
    assert_array_equal(together, np.concatenate(apart))


def test_impossible_data_after_a_gap_are_named():
    log_ratios = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    with pytest.raises(ImpossibleDataError, match="time step 1 of sequence 0"):
        recursion.filter(log_ratios, [[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], dt=[1, 2**52])


@pytest.mark.parametrize(
    ("dt", "message"),
    [
        ([1, 1], r"shape \(3,\), got shape \(2,\)"),
        ([1.0, 1.0, 1.0], "got 1.0 at row 0"),
        ([1, 0, 1], "dt has 0 at row 1"),
        ([1, 1, -4], "dt has -4 at row 2"),
        ([1, 2**53 + 1, 1], f"dt has {2**53 + 1} at row 1"),
        ([[1], [1, 2]], "one integer per row"),
    ],
)
def test_bad_gaps_are_named(dt, message):
    with pytest.raises(ValueError, match=message):
        recursion.filter(np.zeros((3, 2)), np.full((2, 2), 0.5), [0.5, 0.5], dt=dt)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_states=st.integers(1, 5),
    kind=st.sampled_from(["dense", "sparse", "left-right"]),
    first=st.integers(1, 2**30),
    second=st.integers(1, 2**30),
)
def test_two_gaps_in_a_row_are_one(seed, n_states, kind, first, second):
    log_ratios, transmat, startprob = evidence_problem(seed, 3, n_states, kind, missing=0)
    log_ratios[1] = np.nan
    in_two = recursion.filter(log_ratios, transmat, startprob, dt=[1, first, second])
    in_one = recursion.filter(log_ratios[[0, 2]], transmat, startprob, dt=[1, first + second])
    assert_allclose(in_two[2], in_one[1], atol=1e-12)


@pytest.fixture(scope="module")
def estimator():
    X, y = blobs(0)
    return DensityRatioHMM(window=3, novelty=True, context=None, n_basis=40, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def gaps():
    X, y = blobs(1, n_frames=60)
    dt = np.random.default_rng(0).choice([1, 1, 1, 2, 9], size=60)
    rows = np.cumsum(dt) - 1
    filled = np.full((rows[-1] + 1, 2), np.nan)
    filled[rows] = X
    return X, y, dt, filled, rows


class TestModel:
    """Through windows and kernels, without a context: a gap of k steps is k - 1 rows of NaN."""

    @pytest.mark.parametrize("method", ["smooth", "filter", "frame"])
    def test_predict_proba(self, estimator, gaps, method):
        X, _, dt, filled, rows = gaps
        expected = estimator.predict_proba(filled, method=method)[rows]
        assert_allclose(estimator.predict_proba(X, dt=dt, method=method), expected, atol=1e-12)

    @pytest.mark.parametrize("name", ["novelty_score", "novelty_proba", "log_ratios"])
    def test_evidence_and_novelty(self, estimator, gaps, name):
        X, _, dt, filled, rows = gaps
        assert_allclose(getattr(estimator, name)(X, dt=dt), getattr(estimator, name)(filled)[rows], atol=1e-12)

    def test_score(self, estimator, gaps):
        X, y, dt, *_ = gaps
        assert estimator.score(X, y, dt=dt) == np.mean(estimator.predict(X, dt=dt) == y)

    def test_interleaved_sequences(self, estimator, gaps):
        X, _, dt, *_ = gaps
        interleaved = np.concatenate([X, X])[np.arange(120).reshape(2, 60).T.ravel()]
        result = estimator.predict_proba(interleaved, dt=np.repeat(dt, 2), sequence_id=np.tile([0, 1], 60))
        assert_allclose(result[::2], estimator.predict_proba(X, dt=dt), atol=1e-12)

    def test_lists(self, estimator, gaps):
        X, _, dt, *_ = gaps
        results = estimator.predict_proba([X, X[:20]], dt=[dt, dt[:20]])
        assert_allclose(results[1], estimator.predict_proba(X[:20], dt=dt[:20]), atol=1e-12)

    def test_a_list_of_another_shape_is_refused(self, estimator, gaps):
        X, _, dt, *_ = gaps
        with pytest.raises(ValueError, match="dt must be a list of arrays"):
            estimator.predict([X, X[:20]], dt=[dt, dt])
