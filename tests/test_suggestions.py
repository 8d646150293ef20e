"""What to label next."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from drhmm import DensityRatioHMM, dataframes
from drhmm.cli import main
from drhmm.datasets import blobs
from drhmm.judging.suggestions import _greedy

X, Y = blobs(300, random_state=0)
LABELS = np.where(np.arange(300) < 60, Y, -1)
SETTINGS = {"n_basis": 30, "sigma": "default", "rho": "default", "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return DensityRatioHMM(**SETTINGS).fit(X[:60], Y[:60]).model_


def places(found):
    return [(one.sequence, one.begin, one.end) for one in found]


def test_stretches_have_the_length_and_keep_their_distance(model):
    begins = sorted(one.begin for one in model.suggest_labels(X, n=4, length=10))
    assert len(begins) == 4
    assert min(np.diff(begins)) >= 20


def test_rows_with_a_label_are_not_suggested(model):
    assert min(one.begin for one in model.suggest_labels(X, LABELS, n=20, length=10)) >= 60


def test_incomplete_rows_are_not_suggested(model):
    gaps = X.copy()
    gaps[:250, 0] = np.nan
    assert all(one.begin >= 250 for one in model.suggest_labels(gaps, length=10))


def test_sequences_of_a_list_are_numbered_and_not_crossed(model):
    found = model.suggest_labels([X[:50], X[50:300]], n=30, length=20)
    assert {one.sequence for one in found} == {0, 1}
    assert all(one.end <= (50, 250)[one.sequence] for one in found)


def test_uncertainty_is_the_mean_entropy_of_posteriors(model):
    one = model.suggest_labels(X, n=1)[0]
    p = model.predict_proba(X)[one.begin : one.end]
    assert_allclose(one.uncertainty, -(p * np.log(p)).sum(axis=1).mean())
    assert one.label == p.sum(axis=0).argmax()


def test_the_first_is_like_most_weight_and_the_second_is_unlike_the_first():
    alike = np.array([[1, 0.9, 0, 0], [0.9, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    rows, starts = np.array([0, 10, 20, 30]), np.arange(4)
    assert _greedy(alike, np.array([1, 1, 0.5, 0.05]), rows, starts, 3, 1) == [0, 20, 10]


def test_many_rows_are_drawn_by_the_seed(model):
    long = np.tile(X, (15, 1))
    one, other = (places(model.suggest_labels(long, n=3, random_state=1)) for _ in range(2))
    assert one == other


def test_the_estimator_answers_as_its_model():
    fitted = DensityRatioHMM(**SETTINGS).fit(X, LABELS)
    assert places(fitted.suggest_labels(X, LABELS)) == places(fitted.model_.suggest_labels(X, LABELS))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"length": 0}, "length must be"),
        ({"length": 301}, "X has no stretch of length=301 time steps that are complete and have no label"),
        ({"y": Y}, "X has no stretch of length=10 time steps that are complete and have no label"),
        ({"y": Y[:5]}, "y must have one label per row"),
    ],
)
def test_what_cannot_be_suggested(model, asked, message):
    with pytest.raises(ValueError, match=message):
        model.suggest_labels(X, **asked)


def table():
    known = [label if k < 60 else None for k, label in enumerate(Y)]
    return pd.DataFrame(X, columns=["a", "b"]).assign(
        who=np.repeat(["one", "two"], 150), time=np.tile(np.arange(150) * 10, 2), place=known
    )


def test_tables_have_sequences_and_times():
    df = table()
    fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="place", sequence="who", time="time")
    found = dataframes.suggest_labels(fitted, df, n=3, length=5, label="place")
    assert list(found.columns) == ["who", "begin", "last", "state", "uncertainty"]
    assert (found["last"] - found["begin"] == 40).all()
    assert ((found["who"] == "two") | (found["begin"] >= 600)).all()


def test_labels_of_the_remembered_column_are_not_suggested(tmp_path, capsys):
    df = table()
    fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="place", sequence="who", time="time")
    found = dataframes.suggest_labels(fitted, df, n=40, length=5)
    assert ((found["who"] == "two") | (found["begin"] >= 600)).all()
    anywhere = dataframes.suggest_labels(fitted, df.drop(columns="place"), n=40, length=5)
    assert ((anywhere["who"] == "one") & (anywhere["begin"] < 600)).any()
    fitted.model_.save(tmp_path / "model.drhmm")
    df.to_csv(tmp_path / "data.csv", index=False)
    asked = ["--stretches", "40", "--length", "5"]
    assert main(["suggest", str(tmp_path / "model.drhmm"), str(tmp_path / "data.csv"), *asked]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert all(row["who"] == "two" or int(row["begin"]) >= 600 for row in rows)


def test_the_command_line_writes_what_tables_have(tmp_path, capsys):
    df = table()
    fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="place", sequence="who", time="time")
    expected = dataframes.suggest_labels(fitted, df, n=2, length=5, label="place", random_state=0)
    fitted.model_.save(tmp_path / "model.drhmm")
    df.to_csv(tmp_path / "data.csv", index=False)
    asked = ["--stretches", "2", "--length", "5", "--label", "place"]
    assert main(["suggest", str(tmp_path / "model.drhmm"), str(tmp_path / "data.csv"), *asked]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["who"], int(row["begin"]), int(row["last"])) for row in rows] == list(
        zip(expected["who"], expected["begin"], expected["last"], strict=True)
    )
    assert [float(row["uncertainty"]) for row in rows] == pytest.approx(expected["uncertainty"].tolist())


def test_the_command_line_refuses_a_sequence_column_named_as_a_result(tmp_path, capsys):
    df = table().rename(columns={"who": "begin"})
    fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), df, label="place", sequence="begin", time="time")
    fitted.model_.save(tmp_path / "model.drhmm")
    df.to_csv(tmp_path / "data.csv", index=False)
    assert main(["suggest", str(tmp_path / "model.drhmm"), str(tmp_path / "data.csv")]) == 2
    assert "the sequence column 'begin' has the name of a result column" in capsys.readouterr().err
