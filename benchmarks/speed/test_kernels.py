"""From samples to posteriors, in batches and in a stream; the answer is asserted before the clock runs."""

from __future__ import annotations

import numpy as np
import pytest
from cases import blocked_estimates, kernel_problem

N_FRAMES = 5000


@pytest.fixture(scope="module")
def problem():
    return kernel_problem(N_FRAMES, n_basis=300, n_columns=10)


@pytest.mark.parametrize("package", ["drhmm", "drhmm-float32", "numpy"])
def test_estimates(benchmark, problem, package):
    model, X = problem
    expected = blocked_estimates(model, X)
    if package == "numpy":
        result = benchmark(blocked_estimates, model, X)
    else:
        result = benchmark(model.evidence.estimates, X, [N_FRAMES], 1, package == "drhmm-float32")
    np.testing.assert_allclose(result, expected, atol=1e-9 if package != "drhmm-float32" else 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predict_proba(benchmark, problem, dtype):
    model, X = problem
    result = benchmark(model.predict_proba, X.astype(dtype), n_threads=1)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, model.predict_proba(X), atol=1e-9 if dtype is np.float64 else 1e-4)


def test_stream(benchmark, problem):
    model, X = problem
    samples = list(X[:1000])

    def stream():
        step = model.stream().step
        return [step(x) for x in samples]

    expected = model.predict_proba(X[:1000], method="filter")
    np.testing.assert_allclose(benchmark(stream), expected, atol=1e-12)


def test_stream_batch(benchmark, problem):
    model, X = problem

    def step():
        return model.stream_batch(1000).step(X[:1000])

    expected = model.predict_proba(X[:1000], lengths=[1] * 1000, method="filter")
    np.testing.assert_allclose(benchmark(step), expected, atol=1e-12)
