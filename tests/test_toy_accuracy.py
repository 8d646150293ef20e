"""The paper's toy problem: accuracy over 20 seeds."""

from __future__ import annotations

import numpy as np
import pytest

from drhmm import DensityRatioHMM
from drhmm.datasets import sines, sines_training

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def accuracy():
    """Mean frame, filtered and smoothed accuracy at standard deviation .25 with 200 windows per regime."""
    scores = {"frame": [], "filter": [], "smooth": []}
    for seed in range(20):
        X, y = sines_training(200, noise=0.25, random_state=seed)
        X_test, y_test = sines(1000, noise=0.25, random_state=1000 + seed)
        estimator = DensityRatioHMM(window=4, random_state=seed).fit(X, y)
        for method, values in scores.items():
            values.append(estimator.score(X_test, y_test, method=method))
    return {method: np.mean(values) for method, values in scores.items()}


def test_smoothed(accuracy):
    assert accuracy["smooth"] >= 0.87


def test_filtered(accuracy):
    assert accuracy["filter"] >= 0.79


def test_frame(accuracy):
    assert 0.50 <= accuracy["frame"] <= 0.60
