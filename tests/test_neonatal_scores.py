from __future__ import annotations

import numpy as np
import pytest
from neonatal.scores import KEPT, equal_error_rate, scores
from sklearn.metrics import roc_auc_score


def test_the_area_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    truth = random.random(500) < 0.2
    probabilities = np.round(truth + random.normal(size=500), 1)
    assert scores(truth, probabilities).auc == pytest.approx(roc_auc_score(truth, probabilities), abs=1e-12)


@pytest.mark.parametrize(
    ("probabilities", "auc", "eer"),
    [([0.1, 0.2, 0.8, 0.9], 1.0, 0.0), ([0.9, 0.8, 0.2, 0.1], 0.0, 1.0), ([0.3, 0.3, 0.3, 0.3], 0.5, 0.5)],
    ids=["perfect", "upside down", "a coin"],
)
def test_perfect_reversed_and_equal_probabilities(probabilities, auc, eer):
    result = scores(np.array([0, 0, 1, 1]) == 1, np.array(probabilities))
    assert (result.auc, result.eer) == (auc, eer)


def test_the_equal_error_rate_of_a_curve_drawn_by_hand():
    # From (0, 0.5) to (0.5, 1): misses equal false alarms where x = 1 - (0.5 + x).
    assert equal_error_rate(np.array([0, 0, 0.5, 1]), np.array([0, 0.5, 1, 1])) == pytest.approx(0.25)


def test_false_alarms_equal_misses_at_the_equal_error_rate():
    random = np.random.default_rng(1)
    truth = random.random(20_000) < 0.3
    probabilities = truth + random.normal(size=20_000)
    eer = scores(truth, probabilities).eer
    threshold = np.quantile(probabilities[~truth], 1 - eer)
    assert np.mean(probabilities[truth] < threshold) == pytest.approx(eer, abs=1e-3)


def test_the_curve_is_kept_at_fixed_false_alarm_rates():
    truth = np.arange(1000) % 2 == 1
    hits = scores(truth, np.random.default_rng(0).random(1000)).hits
    assert len(hits) == len(KEPT)
    assert np.abs(np.array(hits) - KEPT).max() < 0.1


def test_nan_is_refused_with_its_place():
    with pytest.raises(ValueError, match="NaN at row 1"):
        scores(np.array([True, False]), np.array([0.1, np.nan]))


def test_one_class_alone_is_refused():
    with pytest.raises(ValueError, match="both values"):
        scores(np.array([True, True]), np.array([0.1, 0.2]))
