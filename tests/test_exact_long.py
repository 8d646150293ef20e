"""The recursion against arithmetic of 50 digits: long sequences, tiny posteriors, every kind of chain and variant.

`python tests/test_exact_long.py` is the longer version: more states, more frames, and the largest error of each case.
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest

from exact import Oracle, largest_error, ratios_to_pivot
from native import EVERY_WAY, Native, name_of
from test_variants import POSSIBLE

pytestmark = [pytest.mark.slow, pytest.mark.grid(7)]

TOLERANCE = 1e-11


def sticky(n_states, rare):
    transmat = np.full((n_states, n_states), rare)
    np.fill_diagonal(transmat, 1 - (n_states - 1) * rare)
    return transmat, np.full(n_states, 1 / n_states)


def left_right(n_states):
    transmat = 0.75 * np.eye(n_states) + 0.25 * np.eye(n_states, k=1)
    transmat[-1, -1] = 1
    return transmat, np.eye(n_states)[0]


def noise(n_frames, n_states, spread, seed=0):
    return spread * np.random.default_rng(seed).normal(size=(n_frames, n_states))


def contradicting(n_frames, n_states, rare, depth):
    """Frames that take turns against a chain that hardly moves, and between them some that exclude a state almost."""
    log_ratios = noise(n_frames, n_states, 1.0)
    log_ratios[::2, 0] += 30
    log_ratios[1::2, 1] += 30
    log_ratios[5::9, 0] -= depth
    log_ratios[7::9, 1] -= depth
    return log_ratios, *sticky(n_states, rare)


def against_the_start(n_frames, n_states, depth, lengths):
    """Sequences that can start in one state only, while their first frames speak for the others."""
    log_ratios = noise(n_frames, n_states, 1.0)
    starts = np.cumsum([0, *lengths[:-1]])
    log_ratios[starts, 0] -= depth
    return log_ratios, sticky(n_states, 0.05)[0], np.eye(n_states)[0], lengths


def hardly_against_the_start(n_frames, n_states, lengths):
    """First frames that speak for the one state that is no start, and nearly exclude all others but one."""
    log_ratios = noise(n_frames, n_states, 1.0)
    starts = np.cumsum([0, *lengths[:-1]])
    log_ratios[starts] = [0, -40, *[-730.6] * (n_states - 2)]
    transmat, _ = sticky(n_states, 2.0**-19)
    return log_ratios, transmat, np.array([0, *[1 / (n_states - 1)] * (n_states - 1)]), lengths


def with_missing(problem):
    problem[0][np.random.default_rng(1).random(len(problem[0])) < 0.2] = np.nan
    return problem


def with_unequal_row_sums(n_states, lengths):
    """Rows of the matrix that sum to one to the last digits only, as those that people bring do."""
    transmat, startprob = sticky(n_states, 2.0**-20)
    transmat[0, 0] += 3 * n_states * np.finfo(float).eps
    transmat[1, 1] -= 3 * n_states * np.finfo(float).eps
    return noise(sum(lengths), n_states, 0.01), transmat, startprob, lengths


# Each one: log_ratios, transmat, startprob and, where there are several sequences, lengths.
CASES = {
    "lanes, one sequence": lambda: (noise(3000, 3, 2.0), *sticky(3, 0.1)),
    "lanes, short sequences": lambda: (noise(1200, 3, 2.0), *sticky(3, 0.1), [7, 93, 1, 199, 300, 2, 598]),
    "lanes, rare transitions": lambda: (noise(3000, 2, 3.0), *sticky(2, 2.0**-20)),
    "lanes, slow to forget": lambda: (noise(3000, 2, 0.01), *sticky(2, 2.0**-20)),
    "lanes, loud": lambda: (noise(1500, 3, 200.0), *sticky(3, 1e-3)),
    "lanes, missing frames": lambda: with_missing((noise(1500, 2, 2.0), *sticky(2, 0.05))),
    "lanes, tiny posteriors, 500": lambda: contradicting(640, 3, 2.0**-20, 500),
    "lanes, tiny posteriors, 690": lambda: contradicting(640, 3, 2.0**-20, 690),
    "lanes, tiny posteriors, 720": lambda: contradicting(640, 3, 2.0**-20, 720),
    "lanes, against the start": lambda: against_the_start(900, 3, 800, [300, 1, 299, 300]),
    "lanes, hardly against the start": lambda: hardly_against_the_start(900, 3, [300, 1, 299, 300]),
    "lanes, unequal row sums": lambda: with_unequal_row_sums(2, [900, 1400, 300, 1000]),
    "rows, one sequence": lambda: (noise(300, 12, 2.0), *sticky(12, 0.02)),
    "rows, short sequences": lambda: (noise(300, 12, 2.0), *sticky(12, 0.02), [5, 95, 1, 199]),
    "rows, tiny posteriors, 690": lambda: contradicting(300, 9, 2.0**-20, 690),
    "rows, tiny posteriors, 720": lambda: contradicting(300, 9, 2.0**-20, 720),
    "rows, against the start": lambda: against_the_start(300, 9, 800, [100, 1, 199]),
    "rows, hardly against the start": lambda: hardly_against_the_start(300, 9, [100, 1, 199]),
    "short, one sequence": lambda: (noise(40, 5, 2.0), *sticky(5, 0.02)),
    "short, tiny posteriors, 500": lambda: contradicting(60, 2, 2.0**-20, 500),
    "short, tiny posteriors, 690": lambda: contradicting(60, 3, 2.0**-20, 690),
    "short, tiny posteriors, 720": lambda: contradicting(60, 9, 2.0**-20, 720),
    "short, against the start": lambda: against_the_start(40, 3, 800, [20, 1, 19]),
    "short, hardly against the start": lambda: hardly_against_the_start(40, 3, [20, 1, 19]),
    "more states than sizes": lambda: (noise(30, 65, 2.0), *sticky(65, 0.005)),
    "checked, left-right": lambda: (noise(800, 3, 2.0), *left_right(3)),
    "checked, left-right, loud": lambda: (noise(400, 4, 1000.0), *left_right(4)),
    "checked, never moves": lambda: (noise(800, 3, 30.0), np.eye(3), np.full(3, 1 / 3)),
    "checked, rare transitions": lambda: (noise(800, 3, 20.0), *sticky(3, 2.0**-30)),
    "checked, against the start": lambda: (noise(300, 3, 1.0) - [2000, 0, 0], *left_right(3)),
    "scaled, 1e-300": lambda: (noise(500, 3, 30.0), *sticky(3, 1e-300)),
    "scaled, 1e-300, loud": lambda: (noise(300, 3, 3000.0), *sticky(3, 1e-300)),
}
#: Kinds that are quick enough for every recursion; fixed-lag smoothing and transition counts know no stretches.
GENERAL = [name for name in CASES if name.startswith(("short", "checked", "scaled"))]


class Exact:
    """The exact answers to a case, each computed once."""

    def __init__(self, log_ratios, transmat, startprob, lengths=None):
        self.lengths = lengths or [len(log_ratios)]
        self.arguments = log_ratios, transmat, startprob, self.lengths
        parts = np.split(log_ratios, np.cumsum(self.lengths)[:-1])
        self.oracles = [Oracle(part, transmat, startprob) for part in parts]
        self._rows = {}

    def rows(self, name, *arguments):
        if name not in self._rows:
            rows = [row for oracle in self.oracles for row in getattr(oracle, name)(*arguments)]
            self._rows[name] = ratios_to_pivot(rows)
        return self._rows[name]

    def expected_transitions(self):
        return sum(np.array(oracle.expected_transitions()) for oracle in self.oracles)


@cache
def exact_of(case):
    return Exact(*CASES[case]())


def error_of(variant, case, name, *arguments):
    exact = exact_of(case)
    report, posteriors = getattr(variant, name)(*exact.arguments, *arguments)
    assert report[0] == 0
    return largest_error(posteriors, exact.rows(name, *arguments))


@pytest.fixture(params=EVERY_WAY, ids=name_of)
def variant(request):
    return Native(*request.param)


@pytest.mark.parametrize("case", CASES)
class TestPosteriors:
    def test_filter(self, variant, case):
        assert error_of(variant, case, "filter") < TOLERANCE

    def test_smooth(self, variant, case):
        assert error_of(variant, case, "smooth") < TOLERANCE


@pytest.mark.parametrize("case", GENERAL)
class TestGeneralRecursions:
    def test_fixed_lag(self, variant, case):
        assert error_of(variant, case, "fixed_lag", 3) < TOLERANCE

    def test_expected_transitions(self, variant, case):
        exact = exact_of(case)
        report, _, counts, _ = variant.expectation(*exact.arguments)
        expected = exact.expected_transitions()
        assert report[0] == 0
        matters = expected > 1e-100
        assert (counts[expected == 0] == 0).all()
        assert np.abs(counts[matters] / expected[matters].astype(float) - 1).max() < TOLERANCE

    def test_the_path_is_as_probable_as_the_best(self, variant, case):
        exact = exact_of(case)
        path = variant.viterbi(*exact.arguments)[1]
        for own, oracle in zip(np.split(path, np.cumsum(exact.lengths)[:-1]), exact.oracles, strict=True):
            assert abs(oracle.log_probability(own) - oracle.best_log_probability()) < 1e-9


@pytest.mark.parametrize("gap", [2, 100, 5000])
@pytest.mark.parametrize("kind", ["mixing", "forbidden"])
def test_gaps_of_many_steps(variant, kind, gap):
    transmat, startprob = sticky(3, 2.0**-10) if kind == "mixing" else left_right(3)
    log_ratios, dt = noise(30, 3, 5.0), np.where(np.arange(30) % 7 == 3, gap, 1)
    exact = ratios_to_pivot(Oracle(log_ratios, transmat, startprob, dt).smooth())
    report, posteriors = variant.smooth(log_ratios, transmat, startprob, [30], 1, dt)
    assert report[0] == 0
    assert largest_error(posteriors, exact) < TOLERANCE


def test_some_posteriors_are_as_small_as_that():
    smallest = [exact_of(case).rows("smooth")[0] for case in CASES if "tiny" in case]
    assert min(rows[rows > 1e-300].min() for rows in smallest) < 1e-296


LONG = {
    "lanes, 50,000 frames": lambda: (noise(50_000, 3, 2.0), *sticky(3, 0.05)),
    "lanes, 50,000 frames, rare": lambda: (noise(50_000, 2, 0.5), *sticky(2, 2.0**-20)),
    "lanes, 100,000 frames, hardly any evidence": lambda: (noise(100_000, 2, 1e-3), *sticky(2, 2.0**-20)),
    "lanes, 100,000 frames, the same evidence": lambda: (np.tile([1e-4, 0], (100_000, 1)), *sticky(2, 2.0**-20)),
    "lanes, 8 states": lambda: (noise(5000, 8, 2.0), *sticky(8, 2.0**-12)),
    "lanes, 7 states, short": lambda: (noise(3000, 7, 2.0), *sticky(7, 0.01), [1, 2, 3, 994, 500, 1500]),
    "rows, 16 states": lambda: (noise(3000, 16, 2.0), *sticky(16, 2.0**-8)),
    "rows, 64 states": lambda: (noise(400, 64, 2.0), *sticky(64, 2.0**-8)),
    "rows, unequal row sums": lambda: with_unequal_row_sums(9, [900, 1400, 300, 1000]),
    "checked, 20,000 frames": lambda: (noise(20_000, 3, 2.0), *left_right(3)),
    "checked, never moves, 20,000 frames": lambda: (noise(20_000, 2, 1.0), np.eye(2), np.full(2, 0.5)),
}


def main():
    print("| case | " + " | ".join(f"{isa}: filter, smooth" for isa in POSSIBLE) + " |")
    print("|---" * (len(POSSIBLE) + 1) + "|")
    CASES.update(LONG)
    for case in CASES:
        cells = []
        for isa in POSSIBLE:
            errors = [error_of(Native(isa), case, name) for name in ("filter", "smooth")]
            cells.append(", ".join(f"{error:.1e}" for error in errors))
        print(f"| {case} | " + " | ".join(cells) + " |", flush=True)
        print(case, file=sys.stderr, flush=True)
        exact_of.cache_clear()


if __name__ == "__main__":
    main()
