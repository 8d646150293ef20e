"""The recursion against rational numbers: every path, exactly, on every variant.

Weights are powers of two and transitions multiples of 2^-60, so that their doubles are exact. What the core gets is the
logarithm of a weight, rounded to double: for weights from 2^-90 to 1 this changes a weight by less than 1e-14.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from exact import Oracle, enumerated, largest_error, ratios_to_pivot
from native import EVERY_WAY, Native, name_of

TOLERANCE = 1e-11
N_FRAMES, N_STATES = 6, 3

CHAINS = {
    "mixing": [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]],
    "rare transitions": [[1 - 2**-19, 2**-20, 2**-20], [2**-20, 1 - 2**-19, 2**-20], [2**-20, 2**-20, 1 - 2**-19]],
    "forbidden transitions": [[0.75, 0.25, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]],
    "never moves": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "rarer than 2^-40": [[1 - 2**-50, 2**-50, 0.0], [2**-51, 1 - 2**-50, 2**-51], [0.0, 2**-45, 1 - 2**-45]],
}
STARTS = {"anywhere": [0.5, 0.25, 0.25], "in one state": [1.0, 0.0, 0.0]}


@pytest.fixture(params=EVERY_WAY, ids=name_of)
def variant(request):
    return Native(*request.param)


@cache
def problem(chain, start, seed):
    """Doubles for the core, and the exact answers: smoothed (T, S), transitions (S, S), path, filtered, lagged."""
    random = np.random.default_rng(seed)
    exponents = -random.integers(0, 91, size=(N_FRAMES, N_STATES))
    excluded = random.random((N_FRAMES, N_STATES)) < 0.1
    excluded[:, 0] = False  # the first state stays possible, so that no chain runs into impossible data
    weights = [
        [Fraction(0) if out else Fraction(1, 2 ** int(-e)) for e, out in zip(*row, strict=True)]
        for row in zip(exponents, excluded, strict=True)
    ]
    log_ratios = np.where(excluded, -np.inf, exponents * np.log(2.0))
    exact = enumerated(weights, CHAINS[chain], STARTS[start])
    prefixes = [enumerated(weights[: t + 1], CHAINS[chain], STARTS[start])[0] for t in range(N_FRAMES)]
    filtered = [prefix[-1] for prefix in prefixes]
    lagged = [prefixes[min(t + 2, N_FRAMES - 1)][t] for t in range(N_FRAMES)]
    return (log_ratios, np.array(CHAINS[chain]), np.array(STARTS[start])), exact, filtered, lagged


def ratios(rows):
    return np.array([[float(v / max(row)) for v in row] for row in rows]), np.array([[v == 0 for v in r] for r in rows])


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("seed", range(3))
class TestRationalNumbers:
    def test_smooth(self, variant, chain, start, seed):
        arguments, (smoothed, _, _), _, _ = problem(chain, start, seed)
        assert largest_error(variant.smooth(*arguments, [N_FRAMES])[1], ratios(smoothed)) < TOLERANCE

    def test_filter(self, variant, chain, start, seed):
        arguments, _, filtered, _ = problem(chain, start, seed)
        assert largest_error(variant.filter(*arguments, [N_FRAMES])[1], ratios(filtered)) < TOLERANCE

    def test_fixed_lag(self, variant, chain, start, seed):
        arguments, _, _, lagged = problem(chain, start, seed)
        assert largest_error(variant.fixed_lag(*arguments, [N_FRAMES], 2)[1], ratios(lagged)) < TOLERANCE

    def test_expected_transitions(self, variant, chain, start, seed):
        arguments, (_, counts, _), _, _ = problem(chain, start, seed)
        found = variant.expectation(*arguments, [N_FRAMES])[2]
        expected = np.array([[float(value) for value in row] for row in counts])
        assert (found[expected == 0] == 0).all()
        assert np.abs(found[expected > 0] / expected[expected > 0] - 1).max() < TOLERANCE

    def test_the_path_is_as_probable_as_the_best(self, variant, chain, start, seed):
        arguments, (_, _, best), _, _ = problem(chain, start, seed)
        oracle = Oracle(*arguments)
        path = variant.viterbi(*arguments, [N_FRAMES])[1]
        assert abs(oracle.log_probability(path) - oracle.log_probability(best)) < TOLERANCE

    def test_the_oracle_of_50_digits_itself(self, variant, chain, start, seed):
        arguments, (smoothed, _, _), _, _ = problem(chain, start, seed)
        numbers, zeros = ratios_to_pivot(Oracle(*arguments).smooth())
        exact, exact_zeros = ratios(smoothed)
        assert (zeros == exact_zeros).all()
        assert np.abs(numbers[~zeros] / exact[~zeros] - 1).max() < 1e-12


def test_the_best_path_of_the_oracle_is_that_of_all_paths():
    arguments, (_, _, best), _, _ = problem("mixing", "anywhere", 0)
    oracle = Oracle(*arguments)
    assert mpmath.almosteq(oracle.best_log_probability(), oracle.log_probability(best), 1e-30)
