"""Smoothing and Viterbi on given evidence, beside hmmlearn; the answer is asserted before the clock runs.

Run with ``pytest -n 0 benchmarks/speed --benchmark-enable --benchmark-group-by=param:n_states``.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import evidence
from hmmlearn.base import BaseHMM

from drhmm import recursion

N_FRAMES = 20_000


class GivenEvidence(BaseHMM):
    """hmmlearn on log-likelihoods that are already there."""

    def _compute_log_likelihood(self, X):
        return X


def peer(transmat, startprob, implementation):
    model = GivenEvidence(n_components=len(startprob), implementation=implementation)
    model.transmat_, model.startprob_ = transmat, startprob
    model._compute_likelihood = lambda X: np.exp(X)
    model._check = lambda: None
    return model


@pytest.mark.parametrize("package", ["drhmm", "hmmlearn-scaling", "hmmlearn-log"])
@pytest.mark.parametrize("n_states", [2, 3, 16])
def test_smooth(benchmark, n_states, package):
    problem = evidence(N_FRAMES, n_states)
    expected = peer(*problem[1:], "log").score_samples(problem[0])[1]
    if package == "drhmm":
        result = benchmark(recursion.smooth, *problem, n_threads=1)
    else:
        model = peer(*problem[1:], package.split("-")[1])
        result = benchmark(lambda: model.score_samples(problem[0])[1])
    np.testing.assert_allclose(result, expected, atol=1e-9)


@pytest.mark.parametrize("package", ["drhmm", "hmmlearn"])
@pytest.mark.parametrize("n_states", [3, 16])
def test_viterbi(benchmark, n_states, package):
    problem = evidence(N_FRAMES, n_states)
    model = peer(*problem[1:], "log")
    expected = model.decode(problem[0])[1]
    if package == "drhmm":
        result = benchmark(recursion.viterbi, *problem, n_threads=1)
    else:
        result = benchmark(lambda: model.decode(problem[0])[1])
    np.testing.assert_array_equal(result, expected)
