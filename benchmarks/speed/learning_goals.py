"""Learning: grid searches, expectation maximisation and what an import costs."""

from __future__ import annotations

import subprocess
import sys
import warnings
from contextlib import contextmanager

import numpy as np
from cases import kernel_problem
from sklearn.base import BaseEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from table import Row, has, interleaved, measured, say

import drhmm
from drhmm import _core
from drhmm.datasets import blobs
from drhmm.ratios import LeastSquares, TwoClass, two_class
from drhmm.tuning import kernel_search


def learning_rows(scale, repeats):
    few = max(1, repeats // 3)
    return [*grid_rows(9 if scale == 1 else 3, few, repeats), *ulsif_rows(scale, few)]


def grid_rows(size, few, repeats):
    """Sigma and rho by cross-validation, beside the same least squares in numpy, and beside kernel ridge regression."""
    model, X = kernel_problem(1500, n_basis=300, n_columns=10)
    frames = (X - model.evidence.framing.mean) / model.evidence.framing.scale
    targets = np.eye(3)[model.predict(X)]

    def ours(n_threads=1):
        return LeastSquares(300, random_state=0, n_threads=n_threads).fit(frames, targets)

    grids = {"SIGMA_GRID": tuple(np.geomspace(0.25, 4, size)), "RHO_GRID": tuple(np.geomspace(1e-5, 1e-1, size))}
    with replaced(kernel_search, **grids):
        fitted = ours()
        sigmas, rhos = fitted.selection_.sigmas, fitted.selection_.rhos

        def search(estimator, **parameters):
            grid = {name: list(values) for name, values in parameters.items()}
            return GridSearchCV(estimator, grid, cv=KFold(5), scoring="neg_mean_squared_error").fit(frames, targets)

        def numpy_search():
            return search(Plain(fitted.centers_), sigma=sigmas, rho=rhos)

        def ridge_search():
            return search(KernelRidge(kernel="rbf"), gamma=0.5 / sigmas**2, alpha=rhos * 1200)

        losses = numpy_search().cv_results_["mean_test_score"].reshape(size, size).T
        np.testing.assert_allclose(fitted.selection_.loss / 3, -losses, rtol=1e-6)
        # All 1200 training frames as centres instead of 300: another estimator, about as good.
        assert 0.8 < fitted.selection_.loss.min() / 3 / -ridge_search().best_score_ < 1.25
        job = f"fit, {size} x {size} grid, N=1500, B=300, S=3"
        peers = {"GridSearchCV of KernelRidge": ridge_search, "GridSearchCV of the same in numpy": numpy_search}
        # The goal was set by the time of scikit-learn's own estimator; the same in numpy is there to compare.
        goals = dict(zip(peers, (60, None), strict=True))
        row = measured(Row(job, "s", 1, goals=goals), ours, peers, few, same=False)
        times = interleaved({"one": ours, "two": lambda: ours(2)}, repeats)
    two = Row("the same on two cores", "s", 1, times["two"], {"one core": times["one"]}, {"one core": 1.7})
    say(next(two.lines()))
    return [row, two]


def ulsif_rows(scale, few):
    """The ratio of two densities, with grids of the same size for both."""
    if not has("densratio"):
        return []
    from densratio import densratio

    random = np.random.default_rng(0)
    n = 2000 // scale
    numerator, denominator = random.normal(size=(n, 2)), random.normal(size=(n, 2)) + 0.5
    both = np.concatenate([denominator, numerator])
    classes = np.eye(2)[np.repeat([0, 1], n)]
    sigmas, rhos = np.geomspace(0.1, 10, 9), np.geomspace(1e-3, 10, 9)

    def peer():
        return densratio(numerator, denominator, sigma_range=list(sigmas), lambda_range=list(rhos), verbose=False)

    def ours():
        return TwoClass(n_basis=100, random_state=0).fit(both, classes)

    with replaced(two_class, SIGMA_GRID=tuple(sigmas), RHO_GRID=tuple(rhos)):
        # The two choose differently; both must find the ratio that is there, log r(y) = const - (y_1 + y_2) / 2.
        truth = -both.sum(axis=1) / 2
        least = 0.8 if scale == 1 else 0.3
        assert np.corrcoef(ours().log_ratios(both)[:, 1], truth)[0, 1] > least
        assert np.corrcoef(np.log(np.maximum(peer().compute_density_ratio(both), 1e-3)), truth)[0, 1] > 0.3
        row = Row(f"uLSIF, {n:,} + {n:,} samples, 100 centres, 9 x 9 grid", "s", 1, goals={"densratio": 50})
        return [measured(row, ours, {"densratio": peer}, few, same=False)]


@contextmanager
def replaced(module, **values):
    """Other values of module constants for a while."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class Plain(BaseEstimator):
    """Kernel least squares as one would write it for scikit-learn."""

    def __init__(self, centers, sigma=1.0, rho=1e-3):
        self.centers, self.sigma, self.rho = centers, sigma, rho

    def _features(self, X):
        distances = ((X**2).sum(axis=1)[:, None] + (self.centers**2).sum(axis=1)) - 2 * X @ self.centers.T
        return np.exp(distances * (-0.5 / self.sigma**2))

    def fit(self, X, y):
        phi = self._features(X)
        gram = phi.T @ phi + self.rho * len(X) * np.eye(len(self.centers))
        self.theta_ = np.linalg.solve(gram, phi.T @ y)
        return self

    def predict(self, X):
        return self._features(X) @ self.theta_


def import_line(repeats):
    def run(module):
        return subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    times = interleaved({name: lambda name=name: run(name) for name in ("numpy", "drhmm")}, max(5, repeats))
    extra = times["drhmm"] - times["numpy"]
    met = "yes" if extra <= 0.05 else "**no**"
    return f"| import drhmm | {times['drhmm']:.3f} s | numpy {times['numpy']:.3f} s | | + 0.05 s | {met} |"


def em_line():
    """Factorisations in a few iterations of EM and in many."""
    (few, n_few), (many, n_many) = factorisations(2), factorisations(30)
    assert n_few < n_many
    met = "yes" if few == many else "**no**"
    return (
        f"| EM, 1000 frames, B=200 | {many} factorisations in {n_many} iterations, {few} in {n_few} "
        f"(all but one compare starts) | | | one for all iterations | {met} |"
    )


def factorisations(most_iterations):
    """Count factorisations and iterations; EM may end before the limit."""
    X, _ = blobs(1000, random_state=0)
    count, original = [0], _core.RegularizedGram

    def counting(*arguments):
        count[0] += 1
        return original(*arguments)

    settings = {"n_basis": 200, "sigma": 1.0, "rho": 0.003, "max_iter": most_iterations, "tol": 0.0, "random_state": 0}
    with replaced(_core, RegularizedGram=counting), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = drhmm.DensityRatioHMM(3, **settings).fit(X)
    return count[0], estimator.n_iter_
