"""Data that can be learned from, but not as one may think: `fit` goes on, and says what it does about it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from drhmm import DensityRatioHMM
from problems import blobs

QUICK = {"sigma": 1.0, "rho": 0.003, "evidence_scale": 1.0}


@pytest.fixture(scope="module")
def rare():
    """Twenty frames in many thousands, far from all others, in five runs of four."""
    y = np.zeros(40_000, dtype=int)
    for run in range(5):
        y[4000 + 7000 * run : 4004 + 7000 * run] = 1
    return np.random.default_rng(0).normal(size=(len(y), 2)) + 8 * y[:, None], y


class TestRareClasses:
    SETTINGS: ClassVar = {**QUICK, "n_basis": 20}

    @pytest.mark.parametrize("seed", range(5))
    def test_have_a_centre(self, rare, seed):
        X, y = rare
        fitted = DensityRatioHMM(**self.SETTINGS, random_state=seed).fit(X, y)
        assert (fitted.predict(X[y == 1]) == 1).all()

    def test_have_a_centre_in_the_first_block(self, rare):
        X, y = rare
        fitted = DensityRatioHMM(**self.SETTINGS, random_state=0).partial_fit(X, y)
        assert (fitted.predict(X[y == 1]) == 1).all()

    def test_without_a_centre_near_them_are_named(self):
        """As many places as frames of the class, and no more than five centres."""
        X, y = blobs(0, n_frames=300, n_states=2, separation=0.0)
        X[y == 1] += 50 * np.arange(1, (y == 1).sum() + 1)[:, None]
        with pytest.warns(UserWarning, match="no kernel centre is near the frames of class 1, which"):
            DensityRatioHMM(**QUICK, n_basis=5, standardize=False, random_state=0).fit(X, y)

    def test_without_a_centre_near_them_are_named_in_a_later_block(self):
        X, y = blobs(0, n_frames=300, n_states=2)
        estimator = DensityRatioHMM(**QUICK, n_basis=30, random_state=0).partial_fit(X, y)
        with pytest.warns(UserWarning, match="no kernel centre is near the frames of class 1, which"):
            estimator.partial_fit(X + 1000 * y[:, None], y)
