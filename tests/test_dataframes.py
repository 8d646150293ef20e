"""Tables in, tables out: pandas, polars and Arrow; names of columns, sequences and times."""

from __future__ import annotations

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import drhmm
from drhmm import DensityRatioHMM, ImpossibleDataError, dataframes
from drhmm.dataframes import predict
from drhmm.datasets import sensors
from problems import blobs, two_islands

SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
X, Y = blobs(5, n_frames=200)
NAMES = np.array(["low", "middle", "high"])
COLUMNS = {"heart rate": X[:, 0], "SpO2": X[:, 1]}


@pytest.fixture(params=KINDS)
def make(request):
    """From columns to a table."""
    return KINDS[request.param]


def column(table, name):
    """A column of any table, as an array."""
    return np.asarray(table[name])


@pytest.fixture(scope="module")
def model():
    return DensityRatioHMM(novelty=True, **SETTINGS).fit(pd.DataFrame(COLUMNS), NAMES[Y]).model_


@pytest.fixture(scope="module")
def nameless():
    return DensityRatioHMM(novelty=True, **SETTINGS).fit(X, NAMES[Y]).model_


@pytest.fixture(scope="module")
def numbered():
    return DensityRatioHMM(novelty=True, **SETTINGS).fit(pd.DataFrame(X), Y)


class TestTablesIn:
    def test_a_table_teaches_what_an_array_does(self, make):
        table = make(COLUMNS)
        fitted = DensityRatioHMM(**SETTINGS).fit(table, Y)
        assert fitted.feature_names_in_.tolist() == ["heart rate", "SpO2"]
        assert_array_equal(fitted.theta_, DensityRatioHMM(**SETTINGS).fit(X, Y).theta_)
        assert_array_equal(fitted.predict_proba(table), fitted.model_.predict_proba(X))

    def test_a_list_of_tables_is_a_list_of_sequences(self, make):
        tables = [
            make({name: values[part] for name, values in COLUMNS.items()}) for part in (slice(80), slice(80, None))
        ]
        fitted = DensityRatioHMM(**SETTINGS).fit(tables, [Y[:80], Y[80:]])
        assert_array_equal(fitted.theta_, DensityRatioHMM(**SETTINGS).fit(X, Y, lengths=[80, 120]).theta_)
        assert [len(part) for part in fitted.predict(tables)] == [80, 120]
        assert fitted.feature_names_in_.tolist() == ["heart rate", "SpO2"]

    def test_labels_and_sequences_can_be_columns(self, make):
        table = make({"label": NAMES[Y], "bed": np.repeat([1, 2], 100)})
        fitted = DensityRatioHMM(**SETTINGS).fit(make(COLUMNS), table["label"], sequence_id=table["bed"])
        assert_array_equal(
            fitted.transmat_,
            DensityRatioHMM(**SETTINGS).fit(X, Y, lengths=[100, 100]).transmat_[np.ix_([2, 0, 1], [2, 0, 1])],
        )

    def test_a_sequence_that_is_null_is_refused(self, make):
        table = make({"bed": [1] * 60 + [None] * 140})
        with pytest.raises(ValueError, match=r"sequence_id has (nan|None) at row 60: the sequence is missing"):
            DensityRatioHMM(**SETTINGS).fit(make(COLUMNS), Y, sequence_id=table["bed"])

    def test_a_sequence_that_is_na_is_refused(self, nameless):
        with pytest.raises(ValueError, match="sequence_id has <NA> at row 199: the sequence is missing"):
            nameless.predict(X, sequence_id=pd.Series([1] * 199 + [pd.NA], dtype=object))

    @pytest.mark.parametrize("missing", [3, 60])
    def test_null_is_a_missing_sample(self, make, nameless, missing):
        columns = {name: values.tolist() for name, values in COLUMNS.items()}
        columns["SpO2"][missing] = None
        holes = X.copy()
        holes[missing, 1] = np.nan
        assert_array_equal(nameless.predict_proba(make(columns)), nameless.predict_proba(holes))

    def test_nullable_columns_of_pandas(self, nameless):
        table = pd.DataFrame(COLUMNS).astype("Float64")
        table.loc[7, "SpO2"] = pd.NA
        holes = X.copy()
        holes[7, 1] = np.nan
        assert_array_equal(nameless.predict_proba(table), nameless.predict_proba(holes))

    def test_single_precision_stays_single(self, make, nameless):
        table = make({name: values.astype(np.float32) for name, values in COLUMNS.items()})
        assert nameless.predict_proba(table).dtype == np.float32

    def test_text_is_refused(self, make, nameless):
        with pytest.raises((TypeError, ValueError), match="column 'b' holds text"):
            nameless.predict(make({"a": X[:, 0], "b": ["x"] * 200}))

    def test_a_lazy_frame_is_refused(self, nameless):
        with pytest.raises(TypeError, match=r"LazyFrame, which has not been computed yet; use X.collect\(\)"):
            nameless.predict(pl.DataFrame(COLUMNS).lazy())


WRONG_COLUMNS = {
    "missing": (lambda make: make({"heart rate": X[:, 0]}), "SpO2 missing"),
    "extra": (lambda make: make({**COLUMNS, "bed": X[:, 0]}), "bed never seen in training"),
    "reordered": (lambda make: make({"SpO2": X[:, 1], "heart rate": X[:, 0]}), "another order"),
    "renamed": (
        lambda make: make({"heart rate": X[:, 0], "SO2": X[:, 1]}),
        "SpO2 missing and SO2 never seen in training",
    ),
}


class TestNames:
    @pytest.mark.parametrize("kind", WRONG_COLUMNS)
    def test_a_model_from_a_file_refuses_other_columns(self, make, model, tmp_path, kind):
        model.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        table, message = WRONG_COLUMNS[kind]
        with pytest.raises(ValueError, match=message):
            loaded.predict(table(make))
        with pytest.raises(ValueError, match=message):
            loaded.stream_batch(200).step(table(make))

    def test_a_stream_refuses_a_row_of_other_columns(self, model):
        rows = pd.DataFrame(COLUMNS)
        assert_array_equal(model.stream().step(rows.iloc[0]), model.stream().step(X[0]))
        with pytest.raises(ValueError, match="another order"):
            model.stream().step(rows[["SpO2", "heart rate"]].iloc[0])

    @pytest.mark.parametrize("kind", WRONG_COLUMNS)
    def test_an_estimator_refuses_other_columns(self, make, kind):
        fitted = DensityRatioHMM(**SETTINGS).fit(make(COLUMNS), Y)
        with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
            fitted.predict(WRONG_COLUMNS[kind][0](make))

    def test_tables_of_different_columns_are_refused(self, make):
        tables = [make(COLUMNS), make({"a": X[:, 0], "b": X[:, 1]})]
        with pytest.raises(ValueError, match="the tables in X have different columns"):
            DensityRatioHMM(**SETTINGS).fit(tables, [Y, Y])

    def test_two_columns_of_one_name_are_refused(self):
        with pytest.raises(ValueError, match="two columns with the name 'a'"):
            DensityRatioHMM(**SETTINGS).fit(pd.DataFrame(X, columns=["a", "a"]), Y)


NOT_STRINGS = {
    "reordered": [1, 0],
    "from one": [1, 2],
    "mixed": ["0", 1],
    "bools": [False, True],
    "tuples": [("a", 0), ("a", 1)],
}


class TestNumbersForNames:
    """Names that pandas made up are none; others that are not text would be ignored, and columns mixed up."""

    def test_the_numbers_that_pandas_gives_are_no_names(self, numbered):
        assert not hasattr(numbered, "feature_names_in_")
        assert_array_equal(numbered.predict(pd.DataFrame(X)), numbered.predict(X))
        assert_array_equal(numbered.model_.stream().step(pd.DataFrame(X).iloc[0]), numbered.model_.stream().step(X[0]))

    @pytest.mark.parametrize("kind", NOT_STRINGS)
    def test_fit_refuses_others(self, kind):
        table = pd.DataFrame(X, columns=pd.Index(NOT_STRINGS[kind], dtype=object, tupleize_cols=False))
        with pytest.raises(ValueError, match=r"X has columns with names that are not strings: .*rename the columns"):
            DensityRatioHMM(**SETTINGS).fit(table, Y)

    @pytest.mark.parametrize("kind", NOT_STRINGS)
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "log_ratios", "novelty_score", "novelty_proba"])
    def test_inference_refuses_others(self, numbered, method, kind):
        table = pd.DataFrame(X, columns=pd.Index(NOT_STRINGS[kind], dtype=object, tupleize_cols=False))
        for answering in (numbered, numbered.model_):
            with pytest.raises(ValueError, match="X has columns with names that are not strings"):
                getattr(answering, method)(table)

    def test_a_score_and_more_learning_refuse_others(self, numbered):
        for method in (numbered.score, DensityRatioHMM(**SETTINGS).partial_fit(pd.DataFrame(X), Y).partial_fit):
            with pytest.raises(ValueError, match="names that are not strings: 1, 0;"):
                method(pd.DataFrame(X)[[1, 0]], Y)

    def test_a_list_names_the_table(self, numbered):
        with pytest.raises(ValueError, match=r"X\[1\] has columns with names that are not strings: 1, 0;"):
            numbered.predict([pd.DataFrame(X), pd.DataFrame(X)[[1, 0]]])

    def test_streams_refuse_others(self, numbered):
        table = pd.DataFrame(X)[[1, 0]]
        with pytest.raises(ValueError, match="names that are not strings: 1, 0;"):
            numbered.model_.stream().step(table.iloc[0])
        with pytest.raises(ValueError, match="names that are not strings: 1, 0;"):
            numbered.model_.stream_batch(200).step(table)

    @pytest.mark.parametrize("names", [[0, 1], [1, 0]])
    def test_a_frame_of_results_needs_names(self, numbered, names):
        with pytest.raises(ValueError, match=r"df has columns with names that are not strings: .*rename the columns"):
            predict(numbered, pd.DataFrame(X)[names])

    def test_other_columns_of_a_frame_may_have_any_name(self, model):
        result = predict(model, pd.DataFrame({**COLUMNS, 7: 0}))
        assert_array_equal(result["state"], model.predict(X))


def recording(make, **more):
    """Two interleaved sequences with a gap in one of them, other columns around them, and the seconds of rows."""
    bed = np.arange(200) % 2
    seconds = np.arange(200) // 2 * 5.0
    seconds[100:] += np.where(bed[100:] == 1, 35.0, 0.0)
    columns = {"note": ["?"] * 200, "SpO2": X[:, 1], "second": seconds, "heart rate": X[:, 0], "bed": bed}
    return make({**columns, **more}), bed, seconds


def expected_results(model, bed, seconds, method):
    """State, probability and novelty, sequence by sequence."""
    state, probability, novelty = np.empty(200, dtype=object), np.empty(200), np.empty(200)
    for k in range(2):
        rows = bed == k
        dt = np.append(1, np.diff(seconds[rows]) / 5).astype(int)
        posteriors = model.predict_proba(X[rows], dt=dt, method=method)
        state[rows], probability[rows] = model.classes[posteriors.argmax(axis=1)], posteriors.max(axis=1)
        novelty[rows] = model.novelty_proba(X[rows], dt=dt, method=method)
    return state, probability, novelty


class TestPredictFrame:
    @pytest.mark.parametrize("method", ["smooth", "filter"])
    def test_states_stand_beside_their_rows(self, make, model, method):
        table, bed, seconds = recording(make)
        result = predict(model, table, sequence="bed", time="second", method=method)
        assert type(result) is type(table)
        state, probability, novelty = expected_results(model, bed, seconds, method)
        assert_array_equal(column(result, "state"), state)
        assert_allclose(column(result, "probability"), probability, rtol=0, atol=1e-12)
        assert_allclose(column(result, "novelty"), novelty, rtol=0, atol=1e-12)
        for name in ("note", "bed", "heart rate"):
            assert_array_equal(column(result, name), column(table, name))

    def test_without_a_sequence_all_rows_are_one(self, make, model):
        result = predict(model, make(COLUMNS))
        assert_array_equal(column(result, "state"), model.predict(X))

    def test_an_estimator_will_do(self, make):
        fitted = DensityRatioHMM(**SETTINGS).fit(make(COLUMNS), Y)
        result = predict(fitted, make(COLUMNS))
        assert_array_equal(column(result, "state"), fitted.model_.predict(X))

    def test_the_probability_of_every_state(self, make, model):
        result = predict(model, make(COLUMNS), probabilities=True, lag=3)
        posteriors = model.predict_proba(X, lag=3)
        for place, label in enumerate(model.classes):
            assert_allclose(column(result, f"p({label})"), posteriors[:, place], rtol=0, atol=1e-12)

    def test_the_most_probable_path_has_states_only(self, make, model):
        result = predict(model, make(COLUMNS), method="viterbi")
        assert_array_equal(column(result, "state"), model.predict(X, method="viterbi"))
        assert "probability" not in drhmm.data.sequences.column_names(result)

    def test_the_index_of_pandas_stays(self, model):
        table = pd.DataFrame(COLUMNS, index=np.random.default_rng(0).permutation(200))
        result = predict(model, table)
        assert result.index.equals(table.index)
        assert_array_equal(result["state"], model.predict(X))

    def test_dates_are_seconds(self, make, model):
        start = datetime.datetime(2026, 1, 31, 12)
        table, _, seconds = recording(make)
        dates = [start + datetime.timedelta(seconds=float(second)) for second in seconds]
        dated, _, _ = recording(make, second=dates)
        assert_array_equal(
            column(predict(model, dated, sequence="bed", time="second"), "probability"),
            column(predict(model, table, sequence="bed", time="second"), "probability"),
        )

    def test_dates_with_a_time_zone(self, model):
        table, _, seconds = recording(pd.DataFrame)
        zoned = table.assign(second=pd.Timestamp("2026-03-29", tz="Europe/Berlin") + pd.to_timedelta(seconds, unit="s"))
        assert_array_equal(
            predict(model, zoned, sequence="bed", time="second")["probability"],
            predict(model, table, sequence="bed", time="second")["probability"],
        )

    @pytest.mark.parametrize(
        ("start", "tick", "step"),
        [
            (np.datetime64("2026-01-31T12", "ns"), np.timedelta64(100, "ns"), 1e-7),
            (np.datetime64("2026-01-31T12", "us"), np.timedelta64(1, "us"), 1e-6),
            (np.datetime64("2500-01-31T12", "us"), np.timedelta64(1, "us"), 1e-6),
            (np.timedelta64(2**62, "ns"), np.timedelta64(100, "ns"), 1e-7),
            (np.timedelta64(2**61, "us"), np.timedelta64(1, "us"), 1e-6),
            (np.int64(2**62), np.int64(1), 1.0),
            (np.uint64(2**63 + 1), np.uint64(1), 1.0),
        ],
    )
    @pytest.mark.parametrize("given", [True, False])
    def test_small_gaps_long_after_zero_are_exact(self, make, model, start, tick, step, given):
        dt = np.where(np.arange(200) % 7 == 3, 4, 1)
        counts = np.cumsum(dt).astype(tick.dtype if tick.dtype.kind in "iu" else np.int64)
        table = make({**COLUMNS, "when": start + counts * tick})
        result = predict(model, table, time="when", step=step if given else None)
        assert_array_equal(column(result, "probability"), model.predict_proba(X, dt=dt).max(axis=1))

    def test_integers_at_both_ends_of_their_range(self, model):
        table = pd.DataFrame(COLUMNS).iloc[:2].assign(when=np.array([-(2**63), 2**63 - 1]))
        result = predict(model, table, time="when", step=2.0**60)
        assert_allclose(result["probability"], model.predict_proba(X[:2], dt=[1, 16]).max(axis=1))

    def test_dates_that_do_not_increase_are_shown(self, make, model):
        times = np.datetime64("2026-01-31T12", "us") - np.arange(200) * np.timedelta64(1, "s")
        with pytest.raises(ValueError, match=r"row 1: time does not increase: 2026-01-31T11:59:59\S* after 2026"):
            predict(model, make({**COLUMNS, "when": times}), time="when", step=1.0)

    @pytest.mark.parametrize("n_rows", [1, 5])
    def test_single_rows_have_nothing_to_step_over(self, make, model, n_rows):
        columns = {name: values[:n_rows] for name, values in COLUMNS.items()}
        table = make({**columns, "bed": np.arange(n_rows), "second": np.zeros(n_rows)})
        result = predict(model, table, sequence="bed", time="second")
        expected = model.predict_proba(X[:n_rows], lengths=[1] * n_rows)
        assert_allclose(column(result, "probability"), expected.max(axis=1))

    def test_an_estimator_that_is_not_fitted(self, make):
        with pytest.raises(NotFittedError):
            predict(DensityRatioHMM(), make(COLUMNS))

    def test_a_step_is_that_of_the_argument_then_of_training_then_the_median(self, model):
        from dataclasses import replace

        table = pd.DataFrame({**COLUMNS, "second": np.arange(200) * 4.0})
        knows = replace(model, settings={"time_step": 2.0})

        def probability(steps):
            return model.predict_proba(X, dt=np.append(1, np.full(199, steps))).max(axis=1)

        assert_allclose(predict(model, table, time="second")["probability"], probability(1))
        with pytest.warns(UserWarning, match="does not suit the times"):
            assert_allclose(predict(knows, table, time="second")["probability"], probability(2))
        with pytest.warns(UserWarning, match="does not suit the times"):
            assert_allclose(predict(knows, table, time="second", step=1.0)["probability"], probability(4))

    def test_a_model_without_names_takes_named_features(self, make, nameless, model):
        table, _, _ = recording(make)
        result = predict(nameless, table, sequence="bed", features=["heart rate", "SpO2"])
        assert_array_equal(column(result, "state"), column(predict(model, table, sequence="bed"), "state"))

    @pytest.mark.parametrize(
        ("change", "arguments", "message"),
        [
            ({}, {"sequence": "room"}, "df has no column 'room'; there are note, SpO2"),
            ({"state": [1] * 200}, {}, "df already has a column 'state'"),
            ({}, {"features": ["SpO2", "heart rate"]}, "features has 'SpO2' where the model was learned from 'heart"),
            ({}, {"features": ["SpO2"]}, "the columns of samples are SpO2, the model was learned from 2"),
            ({}, {"time": "note"}, "column 'note', row 0: not a time: '.'"),
            (
                {},
                {"features": ["heart rate", "note"]},
                "column 'note' holds String, such as .*, and samples are numbers",
            ),
            ({}, {"step": 1.0}, r"step=1.0 goes with time"),
            ({}, {"time": "second", "step": -1.0}, r"step must be in \(0, inf\), got -1.0"),
            ({}, {"time": "second"}, "column 'second', row 1: time does not increase: 0 after 0"),
            ({}, {"method": "best"}, "method must be one of"),
            ({}, {"lag": 2, "method": "filter"}, "lag=2 goes with method='smooth'"),
            ({"second": [None] + [1.0] * 199}, {"time": "second"}, "column 'second', row 0: the time is missing"),
            ({"bed": [1] * 3 + [None] * 197}, {"sequence": "bed"}, "column 'bed', row 3: the sequence is missing"),
        ],
    )
    def test_mistakes_are_named(self, make, model, change, arguments, message):
        table, _, _ = recording(make, **change)
        with pytest.raises(ValueError, match=message):
            predict(model, table, **arguments)

    def test_a_sequence_that_is_nan_is_named(self, model):
        table = pl.DataFrame({**COLUMNS, "bed": [1.0] * 5 + [float("nan")] * 195})
        with pytest.raises(ValueError, match="column 'bed' has nan at row 5: the sequence is missing"):
            predict(model, table, sequence="bed")

    def test_a_missing_feature_is_named(self, make, model):
        with pytest.raises(ValueError, match="no column 'SpO2'; there are heart rate"):
            predict(model, make({"heart rate": X[:, 0]}))

    def test_a_frame_without_rows(self, make, model):
        with pytest.raises(ValueError, match="df has no rows"):
            predict(model, make({name: values[:0] for name, values in COLUMNS.items()}))

    def test_impossible_data_are_reported_at_the_row_of_the_frame(self):
        table = pd.DataFrame({"bed": [1, 2, 2, 1], "x": [0.0, 5.0, 5.0, 5.0]})
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 3\)"):
            predict(two_islands(), table, sequence="bed")


class TestFit:
    def table(self, make, **more):
        """Two beds of interleaved rows, five steps missing at one place."""
        beds = np.arange(200) % 2
        seconds = np.arange(200) // 2 + 5 * (np.arange(200) >= 120)
        return make({**COLUMNS, "bed": beds, "second": seconds, "truth": NAMES[Y], **more})

    def test_is_that_of_arrays_split_at_gaps(self, make):
        fitted = dataframes.fit(
            DensityRatioHMM(**SETTINGS), self.table(make), label="truth", sequence="bed", time="second"
        )
        order = np.argsort(np.arange(200) % 2, kind="stable")
        expected = DensityRatioHMM(**SETTINGS).fit(X[order], NAMES[Y][order], lengths=[60, 40, 60, 40])
        assert_allclose(fitted.transmat_, expected.transmat_)
        assert_allclose(fitted.theta_, expected.theta_)

    def test_warns_of_a_time_among_the_features(self, make):
        df = self.table(make)
        with pytest.warns(UserWarning, match="the feature 'second' increases from row to row, as a time does"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="truth", sequence="bed")

    def test_warns_of_an_index_of_times(self):
        df = pd.DataFrame({**COLUMNS, "truth": NAMES[Y]}, index=pd.date_range("2026-01-01", periods=200, freq="min"))
        with pytest.warns(UserWarning, match="the index of df holds times, which are not used"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="truth")

    def test_the_model_remembers_names_and_step(self, make, tmp_path):
        fitted = dataframes.fit(
            DensityRatioHMM(**SETTINGS), self.table(make), label="truth", sequence="bed", time="second"
        )
        fitted.save(tmp_path / "model.drhmm")
        model = drhmm.load(tmp_path / "model.drhmm")
        assert model.settings["columns"] == {"label": "truth", "sequence": "bed", "time": "second"}
        assert model.settings["time_step"] == 1
        assert model.feature_names == ("heart rate", "SpO2")

    def test_predict_uses_what_is_remembered(self, make):
        table = self.table(make)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")
        named = predict(fitted, table, sequence="bed", time="second", step=1.0)
        assert_array_equal(column(predict(fitted, table), "probability"), column(named, "probability"))
        plain = predict(fitted, table, sequence=False, time=False)
        assert_allclose(column(plain, "probability"), fitted.predict_proba(fitted_columns(X)).max(axis=1))

    def test_dates_that_are_text(self, make):
        seconds = column(self.table(make), "second")
        dates = [f"2026-03-02 08:{second // 60:02}:{second % 60:02}" for second in seconds.tolist()]
        named = {"label": "truth", "sequence": "bed"}
        table = self.table(make, when=dates)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, time="when", features=list(COLUMNS), **named)
        expected = dataframes.fit(DensityRatioHMM(**SETTINGS), table, time="second", features=list(COLUMNS), **named)
        assert_allclose(fitted.transmat_, expected.transmat_)
        assert fitted.model_.settings["time_step"] == 1

    def test_dates_that_nobody_can_read(self, make):
        table = self.table(make, when=["2026-03-02", *["3rd of March"] * 199])
        with pytest.raises(ValueError, match=r"column 'when', row 1: not a time: '3rd of March' .* convert the col"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", time="when", features=list(COLUMNS))

    def test_evaluate_uses_what_is_remembered(self, make):
        table = self.table(make)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")
        dt = np.where(np.isin(np.arange(200), (120, 121)), 6, 1)
        expected = drhmm.evaluate(fitted, fitted_columns(X), NAMES[Y], sequence_id=np.arange(200) % 2, dt=dt)
        assert dataframes.evaluate(fitted, table).as_dict() == expected.as_dict()

    def test_evaluate_names_the_row_of_a_label_that_was_never_seen(self):
        table = self.table(pd.DataFrame)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")
        table.loc[7, "truth"] = "flying"
        with pytest.raises(ValueError, match="the label 'flying' at row 7, which was never seen in training"):
            dataframes.evaluate(fitted, table)

    def test_evaluate_asks_for_labels(self, model):
        with pytest.raises(ValueError, match="the model stores no label column: give label"):
            dataframes.evaluate(model, pd.DataFrame(COLUMNS))

    def test_a_column_of_text_is_named_with_its_first_value(self, make):
        with pytest.raises(
            ValueError, match="column 'note' holds String, such as 'so far', and samples are numbers: n"
        ):
            dataframes.fit(DensityRatioHMM(**SETTINGS), self.table(make, note=["so far"] * 200), label="truth")

    def test_the_estimator_points_to_what_finds_columns(self):
        table = self.table(pd.DataFrame)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")
        for asked in (fitted, fitted.model_):
            with pytest.raises(ValueError, match=r"use X\[list\(model\.feature_names\)\], or .* drhmm\.dataframes"):
                asked.predict(table)

    def test_an_array_is_no_frame(self, model):
        with pytest.raises(TypeError, match=r"df is a ndarray, but must be a data frame .* model.predict\(X\)"):
            predict(model, X)

    @pytest.mark.parametrize(("dropped", "role"), [("bed", "sequence"), ("second", "time")])
    def test_predict_refuses_a_table_without_it(self, dropped, role):
        table = self.table(pd.DataFrame)
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")
        with pytest.raises(ValueError, match=f"df has no column '{dropped}'.*as the {role} column.*{role}=False"):
            predict(fitted, table.drop(columns=dropped))

    def test_null_labels_are_unknown(self, make):
        labels = [None if k % 10 == 0 else NAMES[label] for k, label in enumerate(Y)]
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), self.table(make, truth=labels), label="truth")
        assert fitted.classes_.tolist() == sorted(NAMES)
        assert "unlabelled rows" in fitted.unlabelled_reason_

    def test_without_a_label_em_finds_states(self, make):
        fitted = dataframes.fit(DensityRatioHMM(3, **SETTINGS), make(COLUMNS))
        assert fitted.classes_.tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"label": "Truth"}, "label: df has no column 'Truth', did you mean 'truth'"),
            ({"label": "truth", "sequence": "beds"}, "sequence: df has no column 'beds', did you mean 'bed'"),
            ({"label": "truth", "time": "when"}, "time: df has no column 'when'; there are heart rate"),
            ({"sequence": "bed"}, "column 'truth' holds .*, and samples are numbers"),
            ({"label": "truth", "features": ["bed"], "sequence": "bed"}, "the column 'bed' is named twice"),
            ({"label": "truth", "step": 1.0}, "step=1.0 goes with time"),
            (
                {"label": "truth", "time": "second"},
                "column 'second', row 1: time does not increase: 0 after 0; two",
            ),
            ({"label": "truth", "sequence": "bed", "time": "second", "step": "1s"}, "the step of 1 s has one"),
        ],
    )
    def test_mistakes_are_named_and_change_nothing(self, make, arguments, message):
        estimator = DensityRatioHMM(**SETTINGS)
        with pytest.raises(ValueError, match=message):
            dataframes.fit(estimator, self.table(make), **arguments)
        assert not hasattr(estimator, "model_")

    def test_reversed_times_are_named(self):
        table = self.table(pd.DataFrame, second=np.arange(200)[::-1])
        with pytest.raises(ValueError, match="column 'second', row 2: time does not increase: 197 after 199; sort"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="truth", sequence="bed", time="second")


def fitted_columns(values):
    """Samples as a table with the names of training."""
    return pd.DataFrame(values, columns=list(COLUMNS))


class TestStep:
    @pytest.mark.parametrize(
        "step",
        ["2s", "2000 ms", "2 S", 2, 2.0, datetime.timedelta(seconds=2), pd.Timedelta("2s"), np.timedelta64(2, "s")],
    )
    def test_is_a_number_a_duration_or_text(self, model, step):
        dates = pd.Timestamp("2026-01-01") + pd.to_timedelta(2 * np.arange(200) + 10 * (np.arange(200) > 50), unit="s")
        table = pd.DataFrame({**COLUMNS, "when": dates})
        dt = np.where(np.arange(200) == 51, 6, 1)
        expected = model.predict_proba(table[list(COLUMNS)], dt=dt).max(axis=1)
        assert_allclose(predict(model, table, time="when", step=step)["probability"], expected)

    @pytest.mark.parametrize(
        ("step", "shares"),
        [
            ("100ms", "100.0% of the rows come after a gap, and 0.0%"),
            ("3s", "0.5% of the rows come after a gap, and 99.5%"),
        ],
    )
    def test_one_that_does_not_suit_the_times_is_told(self, model, step, shares):
        seconds = np.arange(200) + 1000 * (np.arange(200) > 50)
        table = pd.DataFrame({**COLUMNS, "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(seconds, unit="s")})
        with pytest.warns(UserWarning, match=rf"column 'when': a step of .* median distance is 1 s: {shares}"):
            predict(model, table, time="when", step=step)

    def test_weekends_among_business_days_are_told(self, model):
        table = pd.DataFrame({**COLUMNS, "day": pd.bdate_range("2026-01-05", periods=200)})
        with pytest.warns(
            UserWarning, match=r"column 'day': a step of 86400 s does not suit the times: 19.6% of the rows come"
        ):
            predict(model, table, time="day")

    @pytest.mark.parametrize("step", ["1 year", "-1s", "0s", 0, -1])
    def test_anything_else_is_refused(self, model, step):
        with pytest.raises(ValueError, match="step must be"):
            predict(model, pd.DataFrame({**COLUMNS, "t": np.arange(200)}), time="t", step=step)


def test_narwhals_is_asked_for_by_name():
    code = (
        "import sys; sys.modules['narwhals'] = None; from drhmm.dataframes import predict\n"
        "try: predict(None, None)\nexcept ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "drhmm[dataframes]"' in result.stdout


@pytest.fixture(scope="module")
def rows():
    """Two people, row by row in turn, with a gap in time."""
    people = np.array(["Ada", "Bela"])[np.arange(200) % 2]
    seconds = np.repeat(np.arange(100), 2) + 9 * (np.arange(200) >= 100)
    return {**COLUMNS, "person": people, "second": seconds, "place": NAMES[Y]}


@pytest.fixture(scope="module")
def learned(rows):
    columns = {"label": "place", "sequence": "person", "time": "second"}
    return dataframes.fit(DensityRatioHMM(**SETTINGS), pd.DataFrame(rows), **columns)


class TestExplanation:
    """Of the states that `dataframes.predict` gives: by the columns that the model remembers."""

    def test_is_of_the_state_that_predict_gives(self, make, rows, learned):
        table = make(rows)
        result = predict(learned, table)
        for row in (0, 49, 101, 199):
            found = dataframes.explain(learned, table, row)
            assert found.row == row
            assert found.label == np.asarray(result["state"])[row]
            assert found.probability == pytest.approx(np.asarray(result["probability"])[row], abs=1e-12)

    def test_takes_other_columns_and_none(self, rows, learned):
        table = pd.DataFrame(rows)
        found = dataframes.explain(learned, table.rename(columns={"person": "who"}), 49, sequence="who", time=False)
        expected = learned.explain(table[["heart rate", "SpO2"]], 49, sequence_id=table.person)
        assert found.log_odds == expected.log_odds

    def test_ranks_with_the_remembered_columns(self, rows, learned):
        ranked = dataframes.rank_columns(learned, pd.DataFrame(rows), n_frames=20, random_state=0)
        assert ranked.n_frames == 20
        assert set(ranked.columns) == set(COLUMNS)

    def test_refuses_a_row_that_is_not_there(self, rows, learned):
        with pytest.raises(ValueError, match="row must be at most 199, got 200"):
            dataframes.explain(learned, pd.DataFrame(rows), 200)


class TestEpisodes:
    @pytest.fixture(scope="class")
    @classmethod
    def alarm(cls):
        normal, _ = sensors(2000, n_sensors=2, faults=(), random_state=0)
        fitted = DensityRatioHMM(1, novelty=True, **SETTINGS).fit(pd.DataFrame(normal, columns=["flow", "heat"]))
        return fitted.model_.alarm(1, per=2000, hold_off=30)

    def table(self, make, strange):
        """Two plants, row by row; the second has a fault from its minute 150 to 169."""
        samples, _ = sensors(400, n_sensors=2, faults=(), random_state=1)
        minutes = np.repeat(np.arange(200), 2)
        fault = strange & (np.arange(400) % 2 == 1) & (minutes >= 150) & (minutes < 170)
        plants = np.array(["north", "south"])[np.arange(400) % 2]
        columns = {"flow": samples[:, 0], "heat": samples[:, 1] + 30 * fault, "plant": plants, "minute": minutes}
        return make(columns)

    def test_have_times_and_sequences(self, alarm, make):
        df = self.table(make, True)
        found = dataframes.episodes(alarm, df, sequence="plant", time="minute", step=1)
        (one,) = alarm.episodes(np.column_stack([column(df, "flow"), column(df, "heat")])[1::2])
        names = ("plant", "begin", "last", "peak")
        expected = [["south"], [one.begin], [one.end - 1], [one.peak]]
        assert [list(column(found, name)) for name in names] == expected
        assert column(found, "columns")[0].startswith("heat ")

    def test_have_rows_where_there_are_no_times(self, alarm, make):
        df = self.table(make, True)
        times = dataframes.episodes(alarm, df, sequence="plant", time="minute", step=1)
        rows = dataframes.episodes(alarm, df, sequence="plant", features=["flow", "heat"])
        for name in ("begin", "last", "peak"):
            assert_array_equal(column(rows, name), 2 * np.asarray(column(times, name)) + 1)

    @pytest.mark.parametrize("name", ["begin", "last", "peak", "score", "cause", "columns"])
    def test_a_sequence_column_with_the_name_of_a_result(self, alarm, name):
        df = self.table(pd.DataFrame, True).rename(columns={"plant": name})
        with pytest.raises(ValueError, match=f"the sequence column '{name}' has the name of a result column"):
            dataframes.episodes(alarm, df, sequence=name, time="minute", step=1)

    def test_without_alarms_the_table_is_empty(self, alarm, make):
        found = dataframes.episodes(alarm, self.table(make, False), sequence="plant", time="minute", step=1)
        assert list(column(found, "begin")) == []


class TestTimesSince1970:
    @pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
    @pytest.mark.parametrize("is_float", [False, True])
    def test_the_unit_is_found_and_told(self, unit, ticks, is_float):
        df = pd.DataFrame(sensors(300, n_sensors=2, faults=(), random_state=0)[0], columns=["a", "b"])
        df["t"] = (1_700_000_000 + 10 * np.arange(300)) * ticks
        if is_float:
            df["t"] = df["t"].astype(float)
        estimator = DensityRatioHMM(1, novelty=True, n_basis=20, sigma=1.0, rho=0.01, random_state=0)
        model = dataframes.fit(estimator, df, time="t").model_
        with pytest.warns(UserWarning, match="extrapolated"):
            assert model.alarm(1, per="2h").per == 720
        assert f"10 s, times in {unit} since 1970" in str(model.summary())
        assert f"time_step=10 s, times in {unit}" in repr(model)

    def test_a_step_is_in_the_unit_of_the_times(self):
        df = pd.DataFrame(
            {"a": np.arange(6.0) % 2, "t": 1_700_000_000_000 + 500 * np.arange(6), "y": [0, 0, 0, 1, 1, 1]}
        )
        model = dataframes.fit(DensityRatioHMM(n_basis=5, sigma=1.0, rho=0.1), df, label="y", time="t", step=500).model_
        assert model.settings["time_step"] == 0.5

    def test_numbers_in_no_known_unit_are_not_taken_for_seconds(self):
        df = pd.DataFrame(sensors(300, n_sensors=2, faults=(), random_state=0)[0], columns=["a", "b"])
        df["t"] = 1000 * np.arange(300)
        estimator = DensityRatioHMM(1, novelty=True, n_basis=20, sigma=1.0, rho=0.01, random_state=0)
        model = dataframes.fit(estimator, df, time="t").model_
        with pytest.raises(ValueError, match="the model does not know the time of a step: give step"):
            model.alarm(1, per="1h")
