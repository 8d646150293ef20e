"""Why a frame has its label: parts that sum to the log odds, against brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from drhmm import DensityRatioHMM, plotting
from drhmm.judging.explanation import MOST_EXACT, _backgrounds, _piece
from drhmm.ratios import FromClassifier
from problems import blobs

X, Y = blobs(3, n_frames=300, separation=1.0, n_columns=3)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
LABELS = np.array(["low", "middle", "high"])[Y]
SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "random_state": 0}

KINDS = {
    "pool": {},
    "window": {"window": 3},
    "novelty": {"novelty": True},
    "durations": {"durations": "negative-binomial", "min_duration": 2},
    "a source": {"ratio": FromClassifier(LogisticRegression()), "evidence_scale": 1.0},
}


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(**SETTINGS).fit(TABLE, LABELS)


@pytest.fixture(scope="module", params=KINDS)
def any_kind(request):
    return DensityRatioHMM(**SETTINGS | KINDS[request.param]).fit(TABLE, LABELS)


class TestExplain:
    @pytest.mark.parametrize("row", [0, 100, 299])
    def test_parts_sum_to_the_log_odds_of_the_posterior(self, any_kind, row):
        found = any_kind.explain(TABLE, row)
        posterior = any_kind.predict_proba(TABLE)[row]
        one, other = (any_kind.classes_.tolist().index(label) for label in (found.label, found.other))
        expected = np.log(posterior[one]) - np.log(posterior[other])
        assert one == posterior.argmax()
        assert found.log_odds == pytest.approx(expected, abs=1e-9)
        assert found.past + found.frame + found.future == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("row", [10, 250])
    def test_columns_and_members_sum_to_what_the_frame_says(self, any_kind, row):
        found = any_kind.explain(TABLE, row)
        ratios = any_kind.log_ratios(TABLE)[row]
        one, other = (any_kind.classes_.tolist().index(label) for label in (found.label, found.other))
        assert found.frame == pytest.approx(ratios[one] - ratios[other], abs=1e-9)
        assert found.average + sum(found.columns.values()) == pytest.approx(found.frame, abs=1e-9)
        assert sum(found.members.values()) == pytest.approx(found.frame, abs=1e-9)

    def test_the_past_is_what_is_known_without_the_frame(self):
        fitted = DensityRatioHMM(context=None, **SETTINGS).fit(TABLE, LABELS)
        found = fitted.explain(TABLE, 150)
        without = TABLE.copy()
        without.iloc[150] = np.nan
        smoothing = replace(fitted.model_, other_tunings={})
        predicted = smoothing.predict_proba(without, method="filter")[150]
        one, other = (fitted.classes_.tolist().index(label) for label in (found.label, found.other))
        assert found.past == pytest.approx(np.log(predicted[one] / predicted[other]), abs=1e-9)

    def test_columns_have_the_mean_of_all_orders(self, fitted):
        found, model = fitted.explain(TABLE, 20), fitted.model_
        piece, (samples, weights) = _piece(model, X, np.array([0, 300]), 20), _backgrounds(model)
        one, other = (fitted.classes_.tolist().index(label) for label in (found.label, found.other))
        expected = np.zeros(3)
        for order in itertools.permutations(range(3)):
            masks = np.array([[column in order[:k] for column in range(3)] for k in range(4)])
            values = weights @ np.array([piece.mixed(masks, sample, one, other) for sample in samples])
            expected[list(order)] += np.diff(values) / 6
        assert_allclose(list(found.columns.values()), expected, atol=1e-9)

    def test_a_column_that_says_nothing_adds_nothing(self):
        noise = np.column_stack([X, np.zeros(300)])
        with pytest.warns(UserWarning, match="constant"):
            fitted = DensityRatioHMM(**SETTINGS).fit(noise, LABELS)
        assert fitted.explain(noise, 20).columns["column 3"] == pytest.approx(0, abs=1e-12)

    def test_many_columns_still_sum(self):
        wide = np.random.default_rng(0).normal(size=(300, MOST_EXACT + 3)) + Y[:, None]
        found = DensityRatioHMM(**SETTINGS).fit(wide, LABELS).explain(wide, 20)
        assert found.average + sum(found.columns.values()) == pytest.approx(found.frame, abs=1e-9)

    def test_a_missing_frame_says_nothing(self, fitted):
        holes = TABLE.copy()
        holes.iloc[150] = np.nan
        found = fitted.explain(holes, 150)
        assert found.frame == 0
        assert found.past + found.future == pytest.approx(found.log_odds, abs=1e-9)

    def test_a_missing_frame_says_which_column_has_no_value(self, fitted):
        holes = TABLE.copy()
        holes.loc[150, "b"] = np.nan
        found = fitted.explain(holes, 150)
        assert found.missing == "without a value in column 'b'"
        assert "the time step itself is missing, without a value in column 'b'" in str(found).splitlines()[0]
        assert fitted.explain(TABLE, 150).missing is None

    def test_the_first_frames_of_a_window_are_missing_for_lack_of_samples(self):
        fitted = DensityRatioHMM(window=3, **SETTINGS).fit(TABLE, LABELS)
        assert fitted.explain(TABLE, 1).missing == "as window=3 needs more samples before it"

    def test_rows_are_those_of_the_caller(self, fitted):
        ids = np.arange(300) % 2
        found = fitted.explain(TABLE, 101, sequence_id=ids)
        alone = fitted.explain(TABLE[1::2], 50)
        assert found.row == 101
        assert found.log_odds == pytest.approx(alone.log_odds, abs=1e-9)

    def test_of_a_list_it_takes_the_sequence_and_the_row(self, fitted):
        found = fitted.explain([TABLE[:100], TABLE[100:]], (1, 20))
        assert found.log_odds == pytest.approx(fitted.explain(TABLE[100:], 20).log_odds, abs=1e-9)

    @pytest.mark.parametrize(
        ("frame", "message"), [(300, "frame must be at most 299, got 300"), (-1, "frame must be at least 0, got -1")]
    )
    def test_a_row_that_is_not_there_is_refused(self, fitted, frame, message):
        with pytest.raises(ValueError, match=message):
            fitted.explain(TABLE, frame)

    def test_typical_frames_are_those_of_the_states(self, fitted):
        samples, weights = _backgrounds(fitted.model_)
        assert samples.shape == (3, 3)
        assert weights.sum() == pytest.approx(1)

    def test_prints_and_draws(self, fitted):
        found = fitted.explain(TABLE, 20)
        assert "log odds" in str(found)
        assert "by column" in found._repr_html_()
        axes = found.plot()
        assert plotting.explanation(found, ax=axes) is axes
        assert [label.get_text() for label in axes.get_yticklabels()][:3] == ["past", "future", "typical frame"]


def test_the_unknown_comes_first_where_there_is_one():
    X, y = blobs(3, n_frames=300)
    model = DensityRatioHMM(n_basis=30, sigma=1.0, rho=0.01, novelty=True, random_state=0).fit(X, y).model_
    strange = X.copy()
    strange[100:110] += 50
    explained = model.explain(strange, 105)
    assert explained.novelty == model.novelty_proba(strange, method="smooth")[105]
    assert explained.novelty > 0.99
    assert str(explained).startswith(f"row 105: unknown ({100 * explained.novelty:.1f} %), or if it is known, ")


class TestRanking:
    @pytest.fixture(scope="class")
    @classmethod
    def ranking(cls):
        random = np.random.default_rng(0)
        values = np.column_stack(
            [random.normal(size=300), 3 * Y + random.normal(size=300), Y + random.normal(size=300)]
        )
        table = pd.DataFrame(values, columns=["noise", "strong", "weak"])
        return DensityRatioHMM(**SETTINGS).fit(table, Y).rank_columns(table, n_frames=40, random_state=0)

    def test_the_column_that_tells_states_apart_is_first(self, ranking):
        assert list(ranking.columns) == ["strong", "weak", "noise"]
        assert ranking.n_frames == 40

    def test_prints_and_draws(self, ranking):
        assert str(ranking).splitlines()[2].startswith("  strong")
        assert "<table>" in ranking._repr_html_()
        assert ranking.plot().get_yticklabels()[0].get_text() == "strong"

    def test_frames_that_are_all_missing_are_refused(self, fitted):
        with pytest.raises(ValueError, match="X has no complete frame"):
            fitted.rank_columns(TABLE * np.nan)
