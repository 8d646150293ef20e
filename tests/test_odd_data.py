"""Data that can be learned from, but not as one may think: `fit` goes on, and says what it does about it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from drhmm import DensityRatioHMM
from drhmm.features.frames import learn_framing
from problems import blobs, rare_class

QUICK = {"sigma": 1.0, "rho": 0.003, "evidence_scale": 1.0}


@pytest.fixture(scope="module")
def rare():
    return rare_class()


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
            DensityRatioHMM(ratio="least-squares", **QUICK, n_basis=5, standardize=False, random_state=0).fit(X, y)

    def test_without_a_centre_near_them_are_named_in_a_later_block(self):
        X, y = blobs(0, n_frames=300, n_states=2)
        estimator = DensityRatioHMM(ratio="least-squares", **QUICK, n_basis=30, random_state=0).partial_fit(X, y)
        with pytest.warns(UserWarning, match="no kernel centre is near the frames of class 1, which"):
            estimator.partial_fit(X + 1000 * y[:, None], y)


class TestConstantColumns:
    X, Y = blobs(0)
    NEW = blobs(1)[0]
    SETTINGS: ClassVar = {"n_basis": 30, "random_state": 0}

    @pytest.mark.parametrize("value", [0.0, 4.0, -1e9])
    def test_are_as_if_they_were_not_there_even_if_they_change_later(self, value):
        settings = {"ratio": "least-squares", **self.SETTINGS}
        expected = DensityRatioHMM(**settings).fit(self.X, self.Y).predict_proba(self.NEW)
        with pytest.warns(UserWarning, match="X is constant, or differs by rounding only, in column 1: what"):
            fitted = DensityRatioHMM(**settings).fit(np.insert(self.X, 1, value, axis=1), self.Y)
        switched = np.insert(self.NEW, 1, np.arange(len(self.NEW)) % 2, axis=1)
        assert_allclose(fitted.predict_proba(switched), expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("value", [0.1, 4.0, -1e9])
    def test_say_nothing_to_a_pool_even_if_they_change_later(self, value):
        X = np.insert(self.X, 1, value, axis=1)
        X[::2, 1] = np.nextafter(value, 1)
        with pytest.warns(UserWarning, match="X is constant, or differs by rounding only, in column 1: what"):
            fitted = DensityRatioHMM(**self.SETTINGS, evidence_scale=[0.5, 0.5, 0.5]).fit(X, self.Y)
        switched = np.insert(self.NEW, 1, np.arange(len(self.NEW)) % 2, axis=1)
        same = np.insert(self.NEW, 1, value, axis=1)
        assert_allclose(fitted.predict_proba(switched), fitted.predict_proba(same), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_that_differ_by_rounding_are_constant(self, kind):
        X = np.insert(self.X, 1, 0.1, axis=1).astype(kind)
        X[::2, 1] = np.nextafter(kind(0.1), kind(1))
        with pytest.warns(UserWarning, match="X is constant"):
            fitted = DensityRatioHMM(**self.SETTINGS).fit(X, self.Y)
        X[:, 1] += kind(1e-6)
        assert fitted.score(X, self.Y) > 0.8

    def test_have_their_names_in_a_table(self):
        table = pd.DataFrame(self.X, columns=["a", "b"]).assign(dead=1.0, off=0.0)
        with pytest.warns(UserWarning, match="in columns 'dead', 'off': what"):
            DensityRatioHMM(**self.SETTINGS).fit(table, self.Y)

    def test_are_said_once(self):
        with pytest.warns(UserWarning, match="constant") as caught:
            DensityRatioHMM(**self.SETTINGS, window=2).fit(np.insert(self.X, 1, 1.0, axis=1), self.Y)
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_small_differences_far_from_zero_are_none(self):
        fitted = DensityRatioHMM(**self.SETTINGS).fit(1e9 + 1e-3 * self.X, self.Y)
        assert fitted.score(1e9 + 1e-3 * self.X, self.Y) > 0.8


class TestOutliers:
    """One frame of ten thousand in the only column that tells two states apart."""

    Y = np.repeat(np.random.default_rng(0).integers(2, size=50), 10)
    X = np.random.default_rng(1).normal(size=(500, 2)) + 4 * np.outer(Y, [1, 0])
    X[250, 0] = 10_000

    @pytest.mark.slow
    def test_do_not_rule_learning_without_labels(self):
        with pytest.warns(UserWarning, match="X has values in column 0 so far from all others"):
            states = DensityRatioHMM(2, n_basis=100, random_state=0).fit(self.X).predict(self.X)
        agreement = (states == self.Y).mean()
        assert max(agreement, 1 - agreement) > 0.95

    def test_are_none_in_columns_that_are_mostly_one_value(self):
        """A switch that is on in one frame of two hundred has no other standard deviation than that of all."""
        X = np.where(np.arange(500)[:, None] % 200 == 0, 1.0, [0.0, 0.0]) + [[0.0, 1.0]] * self.X
        framing = learn_framing(X, 1, True, resist_outliers=True)
        np.testing.assert_allclose(framing.scale, X.std(axis=0))


class TestUnknownLabels:
    X, Y = blobs(0)
    SETTINGS: ClassVar = {**QUICK, "n_basis": 30, "random_state": 0, "max_iter": 5, "tol": 0.1}

    @pytest.mark.parametrize("labels", [[-1, 0, 1], [-2, -1, 0]])
    def test_that_may_be_a_class_are_named(self, labels):
        with pytest.warns(UserWarning, match=r"y has -1 in \d+ rows, which stands for an unknown label; if"):
            fitted = DensityRatioHMM(**self.SETTINGS).fit(self.X, np.array(labels)[self.Y])
        assert fitted.classes_.tolist() == [label for label in labels if label != -1]

    def test_are_a_class_where_none_is_unknown(self):
        y = self.Y - 1
        fitted = DensityRatioHMM(**self.SETTINGS, unknown=None).fit(self.X, y)
        assert fitted.classes_.tolist() == [-1, 0, 1]
        assert fitted.score(self.X, y) == np.mean(fitted.predict(self.X) == y)

    @pytest.mark.parametrize(("labels", "unknown"), [([-1, 0, 1], -1), ([-1.0, 0.0, 1.0], -1), (["?", "a", "b"], "?")])
    def test_may_be_any_label(self, labels, unknown):
        y = np.array(labels)[self.Y]
        fitted = DensityRatioHMM(**self.SETTINGS, unknown=unknown).fit(self.X, y)
        assert fitted.classes_.tolist() == labels[1:]
        assert fitted.score(self.X, y) == np.mean(fitted.predict(self.X)[y != unknown] == y[y != unknown])

    def test_among_other_labels_are_no_surprise(self):
        y = np.where(np.arange(len(self.Y)) % 3 == 0, -1, self.Y)
        assert DensityRatioHMM(**self.SETTINGS).fit(self.X, y).classes_.tolist() == [0, 1, 2]


class TestFewFrames:
    X, Y = blobs(0)

    @pytest.mark.parametrize("count", [1, 2])
    def test_of_a_class_are_named(self, count):
        y = np.where(self.Y == 2, 1, self.Y)
        y[50 : 50 + count] = 2
        with pytest.warns(UserWarning, match=rf"fewer than 3 complete frames have the label 2 \({count}\): too few"):
            DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(self.X, y)

    def test_for_the_states_are_named(self):
        with pytest.warns(UserWarning, match="there are 5 complete frames for 3 states"):
            DensityRatioHMM(3, **QUICK, tol=1.0, random_state=0).fit(self.X[:5])

    def test_of_a_state_that_em_left_tiny_are_named(self):
        X = 0.5 * np.random.default_rng(0).normal(size=(100, 1)) + np.repeat([0, 20, 60], [49, 49, 2])[:, None]
        with pytest.warns(UserWarning, match=r"EM ended with fewer than 3 frames of state \d \(2\)"):
            DensityRatioHMM(3, **QUICK, standardize=False, tol=1.0, random_state=0).fit(X)


class TestMissingSamples:
    X, Y = blobs(0)

    def test_that_windows_multiply_are_counted(self):
        X = self.X.copy()
        X[50:110:10, 0] = np.nan
        expected = "36 of 295 frames were left out of learning: 6 of 300 rows of X have a NaN, .* up to window=6 frames"
        with pytest.warns(UserWarning, match=expected):
            DensityRatioHMM(**QUICK, window=6, n_basis=30, random_state=0).fit(X, self.Y)

    def test_of_single_frames_are_counted(self):
        X = self.X.copy()
        X[::2, 0] = np.nan
        expected = "150 of 300 frames were left out of learning: 150 of 300 rows of X have a NaN$"
        with pytest.warns(UserWarning, match=expected):
            DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(X, self.Y)

    def test_of_a_tenth_of_the_frames_are_no_surprise(self):
        X = self.X.copy()
        X[::10, 0] = np.nan
        DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(X, self.Y)

    def test_the_first_windows_of_sequences_are_no_surprise(self):
        DensityRatioHMM(**QUICK, window=6, n_basis=30, random_state=0).fit(self.X, self.Y, lengths=[100, 200])
