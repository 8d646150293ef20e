"""What a new user meets on the first day: odd names, dates, weights of any size, answers to send on."""

from __future__ import annotations

import argparse
import json
import re

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import drhmm
import live
from drhmm import DensityRatioHMM, dataframes, plotting
from drhmm.cli import main
from drhmm.cli.fit import _folds
from problems import blobs

QUICK = {"n_basis": 20, "sigma": "default", "rho": "default", "context": None, "random_state": 0}
PRICES = np.array(["a$_$", "_idle", "5$"])


@pytest.fixture(scope="module")
def data():
    return blobs(5, n_frames=240)


@pytest.fixture(scope="module")
def priced(data):
    """A table, and an estimator, whose names and labels are letters of formulas for matplotlib."""
    X, y = data
    table = pd.DataFrame(X, columns=["cost $_$", "_speed"])
    return table, PRICES[y], DensityRatioHMM(**QUICK).fit(table, PRICES[y])


def written(figure):
    """All text of a figure as it is drawn."""
    figure.canvas.draw()
    texts = figure.findobj(matplotlib.text.Text)
    return {text._preprocess_math(text.get_text())[0].strip() for text in texts if text.get_visible()}


PICTURES = {
    "explanation": lambda table, y, model, ax: model.explain(table, 5).plot(ax),
    "ranking": lambda table, y, model, ax: model.rank_columns(table, n_frames=3, random_state=0).plot(ax),
    "evidence": lambda table, y, model, ax: plotting.evidence(
        model.log_ratios(table), states=y, names=model.classes_, ax=ax
    ),
    "transitions": lambda table, y, model, ax: plotting.transitions(model.transmat_, names=model.classes_, ax=ax),
}
DRAWN = {
    "explanation": {"cost $_$", "_speed"},
    "ranking": {"cost $_$", "_speed"},
    "evidence": set(PRICES),
    "transitions": set(PRICES),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_show_names_letter_by_letter(priced, kind):
    axes = Figure().subplots()
    PICTURES[kind](*priced, axes)
    assert DRAWN[kind] <= written(axes.figure)


def test_the_page_of_an_evaluation_takes_any_label(priced, tmp_path):
    table, y, model = priced
    drhmm.evaluate(model, table, y).save_html(tmp_path / "page.html")
    assert "a$_$" in (tmp_path / "page.html").read_text()


def test_drhmm_fit_keeps_the_model_and_draws_labels_of_two_dollars(priced, tmp_path, capsys):
    table, y, _ = priced
    table.assign(state=y).to_csv(tmp_path / "data.csv", index=False)
    options = ["--label", "state", "--output", tmp_path / "model.drhmm", "--html", tmp_path / "page.html"]
    assert main(["fit", *map(str, [tmp_path / "data.csv", *options, "--basis", 20, "--context", "none"])]) == 0
    assert drhmm.load(tmp_path / "model.drhmm").classes.tolist() == sorted(PRICES)
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("dtype", "labels"),
    [("Int64", [0, 1, 2]), ("Float64", [0.0, 1.0, 2.0]), ("string", ["0", "1", "2"]), ("boolean", [False, True])],
)
def test_labels_of_pandas_with_nothing_in_places(data, dtype, labels):
    X, y = data
    column = pd.Series(y > 0 if dtype == "boolean" else y).astype(dtype)
    column[3] = pd.NA
    table = pd.DataFrame(X, columns=["a", "b"]).assign(state=column)
    estimator = dataframes.fit(DensityRatioHMM(**QUICK), table, label="state")
    assert estimator.classes_.tolist() == labels
    assert dataframes.evaluate(estimator, table).n_left_out == 1


@pytest.mark.parametrize("factor", [1e-200, 7.0, 1e90])
def test_sample_weights_matter_up_to_a_factor(data, factor):
    X, y = data
    weights = np.random.RandomState(0).uniform(0.5, 2, size=len(y))
    one, other = (
        DensityRatioHMM(**QUICK).fit(X, y, sample_weight=scale * weights).predict_proba(X) for scale in (1, factor)
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Budapest"])
def test_labels_that_are_dates_are_kept_in_a_file(data, tmp_path, zone):
    X, y = data
    days = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]).tz_localize(zone)[y])
    table = pd.DataFrame(X, columns=["a", "b"]).assign(day=days)
    estimator = dataframes.fit(DensityRatioHMM(**QUICK), table, label="day")
    estimator.save(tmp_path / "model.drhmm")
    assert drhmm.load(tmp_path / "model.drhmm").classes.tolist() == estimator.classes_.tolist()


@pytest.mark.parametrize("only", [True, False])
def test_a_column_of_dates_among_samples_is_named_with_the_way_out(data, only):
    X, y = data
    table = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=len(y), freq="min")})
    table = table if only else table.assign(a=X[:, 0])
    with pytest.raises(ValueError, match=r"column 'when' holds times, 2026-01-01.* at row 0.*time='when'"):
        DensityRatioHMM(**QUICK).fit(table, y)


@pytest.mark.parametrize("only", [True, False])
@pytest.mark.parametrize("make", [lambda df: df, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize(
    ("unit", "words"), [("M8[us]", ""), ("m8[us]", ", convert it to seconds with .dt.total_seconds()")]
)
def test_no_table_makes_samples_of_times(data, only, make, unit, words):
    X, y = data
    table = pd.DataFrame({"when": np.arange(len(y)).astype(unit)})
    table = make(table if only else table.assign(a=X[:, 0]))
    with pytest.raises(ValueError, match=rf"column 'when' holds times, .*leave it out{re.escape(words)}, or name it"):
        DensityRatioHMM(**QUICK).fit(table, y)


@pytest.mark.parametrize(("name", "hint"), [("time", "drhmm.dataframes.fit has it"), ("lenght", "did you mean")])
def test_an_argument_that_fit_does_not_have_is_told_with_a_hint(data, name, hint):
    with pytest.raises(TypeError, match=f"fit has no argument '{name}': {hint}"):
        DensityRatioHMM(**QUICK).fit(*data, **{name: None})


def test_the_estimator_has_the_doors_of_the_model(data):
    X, _ = data
    estimator = DensityRatioHMM(**QUICK).fit(*data)
    stream, batch = estimator.stream(), estimator.stream_batch(2)
    stream.step(X[0])
    batch.step(X[:2])
    assert estimator.resume(stream.snapshot()).n_frames == 1
    assert len(estimator.resume_batch(batch.snapshot())) == 2
    assert estimator.summary() == estimator.model_.summary()


def test_what_only_the_model_has_is_told_by_the_estimator(data):
    with pytest.raises(AttributeError, match=r"no attribute 'with_alarm': the model has it, as in estimator\.model_\."):
        DensityRatioHMM().with_alarm  # noqa: B018


@pytest.mark.parametrize("kind", ["plain", "novelty"])
def test_the_label_of_a_stream_can_be_sent_on_as_json(kind):
    stream = live.model(kind).stream()
    stream.step(np.zeros(stream.model.n_features))
    assert json.loads(json.dumps(stream.label)) in stream.model.classes.tolist()


@pytest.fixture(scope="module")
def found(data, tmp_path_factory):
    """A model of states that were found, in a file."""
    path = tmp_path_factory.mktemp("found") / "model.drhmm"
    DensityRatioHMM(3, **QUICK).fit(data[0]).save(path)
    return path


NAMED = {0: "calm", 1: "volatile", 2: "crash"}


def test_renamed_states_answer_with_their_names_also_live_and_from_a_file(data, found, tmp_path):
    model = drhmm.load(found)
    model.rename(NAMED).save(tmp_path / "named.drhmm")
    named = drhmm.load(tmp_path / "named.drhmm")
    stream = named.stream()
    stream.step(data[0][0])
    assert named.predict(data[0]).tolist() == [NAMED[label] for label in model.predict(data[0]).tolist()]
    assert stream.label in NAMED.values()


def test_drhmm_rename_replaces_the_file_or_writes_another(found, tmp_path):
    other = tmp_path / "other.drhmm"
    assert main(["rename", str(found), "0=calm", "1=a=b", "2=crash", "--output", str(other)]) == 0
    assert drhmm.load(found).classes.tolist() == [0, 1, 2]
    assert main(["rename", str(other), "a=b=volatile"]) == 0
    assert drhmm.load(other).classes.tolist() == ["calm", "volatile", "crash"]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({3: "calm"}, r"labels has 3, which is not a label of the model: \[0, 1, 2\]"),
        ({0: "calm"}, "the new labels are partly text, but 1 would be 1: give every state a text"),
        ({0: 1}, "labels gives 1 to 2 states: their names must differ"),
        ({0: "calm", 1: "", 2: "crash"}, "labels has '' as a name, which stands for an unknown label"),
        ({0: None}, "labels has None as a name, which stands for an unknown label"),
    ],
)
def test_names_that_states_cannot_have(found, labels, problem):
    with pytest.raises(ValueError, match=problem):
        drhmm.load(found).rename(labels)


def test_drhmm_rename_names_the_labels_that_there_are(found, capsys):
    assert main(["rename", str(found), "3=calm"]) == 2
    assert "'3=calm' is not OLD=NEW with a label of the model, 0, 1, 2" in capsys.readouterr().err


def test_no_false_alarms_at_all_cannot_be_asked_for(found, capsys):
    assert main(["stream", str(found), "--false-alarms", "0/7d"]) == 2
    assert "must be a positive number in a time, such as 1/7d" in capsys.readouterr().err


@pytest.fixture(scope="module")
def timed(data):
    """Rows every 0.02 s, in numbers that are not exact, and in dates."""
    X, y = data
    seconds = 0.02 * np.arange(len(y))
    return {
        "numbers": pd.DataFrame({"t": seconds, "a": X[:, 0], "b": X[:, 1], "state": y}),
        "dates": pd.DataFrame({"t": pd.to_datetime(seconds, unit="s"), "a": X[:, 0], "b": X[:, 1], "state": y}),
    }


@pytest.mark.parametrize("kind", ["numbers", "dates"])
def test_the_time_of_a_step_has_no_digits_of_rounding(timed, kind):
    model = dataframes.fit(DensityRatioHMM(**QUICK), timed[kind], label="state", time="t").model_
    assert model.settings["time_step"] == 0.02


def test_stays_are_in_units_of_time_where_the_step_has_one(timed):
    model = dataframes.fit(DensityRatioHMM(**QUICK), timed["dates"], label="state", time="t").model_
    steps = 1 / (1 - np.diagonal(model.transmat if model.tempering is None else model.tempering.transmat))
    for stay in steps:
        assert f"{0.02 * 1e3 * stay:.3g} ms" in model.summary() or f"{0.02 * stay:.3g} s" in model.summary()


def test_stays_are_time_steps_where_nobody_knows_the_unit(timed):
    model = dataframes.fit(DensityRatioHMM(**QUICK), timed["numbers"], label="state", time="t").model_
    assert " ms" not in model.summary()


def test_an_evaluation_knows_the_times(timed):
    estimator = dataframes.fit(DensityRatioHMM(**QUICK), timed["dates"], label="state", time="t")
    found = dataframes.evaluate(estimator, timed["dates"])
    assert found.times[1] - found.times[0] == np.timedelta64(20, "ms")


def test_shuffled_rows_are_told():
    X, y = blobs(5, n_frames=600)
    rows = np.random.RandomState(0).permutation(len(y))
    with pytest.warns(UserWarning, match="as if rows had been shuffled"):
        DensityRatioHMM(**QUICK).fit(X[rows], y[rows])


@pytest.mark.parametrize(("seconds", "parts"), [(1.0, 7), (40.0, 3), (1000.0, 2)])
def test_a_few_sequences_are_held_out_in_turn_as_far_as_time_allows(seconds, parts):
    options = argparse.Namespace(holdout=None, cross_validate=False, folds=None, seed=0)
    folds = _folds(options, [10] * 7, "person", seconds)[0]
    assert len(set(folds.tolist())) == parts
    assert folds.min() == 0


def test_of_many_sequences_some_are_held_out_once():
    options = argparse.Namespace(holdout=None, cross_validate=False, folds=None, seed=0)
    assert _folds(options, [10] * 20, "person", 1.0)[1] == "4 of 20 sequences by 'person'"
