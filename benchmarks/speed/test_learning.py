"""Learning; the answer is asserted before the clock runs."""

from __future__ import annotations

import numpy as np
import pytest
from cases import kernel_problem
from learning_goals import Plain

from drhmm import DensityRatioHMM
from drhmm.datasets import rings
from drhmm.ratios import LeastSquares, TwoClass
from drhmm.reference import ratios as reference


@pytest.fixture(scope="module")
def frames():
    model, X = kernel_problem(600, n_basis=100, n_columns=10)
    frames = np.ascontiguousarray((X - model.evidence.framing.mean) / model.evidence.framing.scale)
    return frames, np.eye(3)[model.predict(X)]


def test_fit_with_given_settings(benchmark, frames):
    X, targets = frames
    fitted = benchmark(LeastSquares(100, sigma=2.0, rho=1e-3, random_state=0, n_threads=1).fit, X, targets)
    expected = Plain(fitted.centers_, 2.0, 1e-3).fit(X, targets).theta_
    np.testing.assert_allclose(fitted.theta_, expected, rtol=1e-6, atol=1e-9)


def test_fit_with_cross_validation(benchmark, frames):
    X, targets = frames
    fitted = benchmark(LeastSquares(100, random_state=0, n_threads=1).fit, X, targets)
    seen = fitted.selection_
    folds = np.arange(600) * 5 // 600
    for s, sigma in enumerate(seen.sigmas):
        loss, _ = reference.cross_validate(X, targets, folds, fitted.centers_, sigma, seen.rhos)
        np.testing.assert_allclose(seen.loss[s], np.asarray(loss) / 600, rtol=1e-6)


def test_ratio_of_two_densities(benchmark):
    random = np.random.default_rng(0)
    both = np.concatenate([random.normal(size=(500, 2)) + 0.5, random.normal(size=(500, 2))])
    fitted = benchmark(TwoClass(n_basis=100, random_state=0).fit, both, np.eye(2)[np.repeat([0, 1], 500)])
    log_ratio = fitted.log_ratios(both)
    assert np.corrcoef(log_ratio[:, 1] - log_ratio[:, 0], -both.sum(axis=1))[0, 1] > 0.8


def test_expectation_maximisation(benchmark):
    X, y = rings(1000, random_state=0)
    fitted = benchmark(DensityRatioHMM(3, n_basis=200, sigma=0.5, rho=1e-3, random_state=0).fit, X)
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (fitted.predict(X), y), 1)
    assert confusion.max(axis=1).sum() > 980
