"""The command line does not flatter: hold-outs, `drhmm evaluate`, remembered columns, and messages that help."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

import drhmm
from drhmm import DensityRatioHMM
from drhmm.cli import main
from drhmm.cli.fit import _split

N_PEOPLE, N_ROWS = 5, 80


def write(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture(scope="module")
def columns():
    """Five people, each with an offset of their own, and a gap in the middle of each."""
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(2, size=N_PEOPLE * N_ROWS // 8), 8)
    people = np.repeat(np.arange(N_PEOPLE), N_ROWS)
    seconds = np.tile(np.arange(N_ROWS) + 9 * (np.arange(N_ROWS) >= 40), N_PEOPLE)
    heart = 3 * y + random.normal(size=len(y)) + people
    return {
        "person": [f"p{k}" for k in people],
        "second": seconds,
        "heart": heart.round(4),
        "speed": random.normal(size=len(y)).round(4),
        "Activity": np.array(["rest", "walk"])[y],
    }


NAMED = ["--label", "Activity", "--sequence", "person", "--time", "second"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, columns):
    folder = tmp_path_factory.mktemp("evaluate")
    write(folder / "data.csv", columns)
    output = ["--output", str(folder / "model.drhmm"), "--basis", "30", "--holdout", "0"]
    assert main(["fit", str(folder / "data.csv"), *NAMED, *output]) == 0
    return folder


def failed(arguments, capsys):
    """The message of a command that fails."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


class TestHoldOut:
    def test_is_whole_sequences_whatever_gaps_they_have(self, folder, capsys):
        output = ["--output", str(folder / "other.drhmm"), "--basis", "30", "--holdout", "0.3"]
        assert main(["fit", str(folder / "data.csv"), *NAMED, *output]) == 0
        printed = capsys.readouterr().out
        assert "5 values of 'person', in 10 pieces by gaps" in printed
        assert "(80 labelled rows, 1 of 5 sequences by 'person', learned without them)" in printed

    def test_prints_classes_and_segments(self, folder, capsys):
        output = ["--output", str(folder / "other.drhmm"), "--basis", "30", "--holdout", "0.3"]
        main(["fit", str(folder / "data.csv"), *NAMED, *output])
        printed = capsys.readouterr().out
        for words in ("macro F1", "calibration error", "precision", "confusion", "predicted length"):
            assert words in printed

    def test_names_every_held_out_sequence_with_its_accuracy(self, folder, capsys):
        output = ["--output", str(folder / "other.drhmm"), "--basis", "30", "--holdout", "0.4"]
        assert main(["fit", str(folder / "data.csv"), *NAMED, *output]) == 0
        printed = capsys.readouterr().out
        table = printed[printed.index("\nsequences\n") + 1 :].splitlines()[2:4]
        assert all(re.fullmatch(r"  p\d +80 +\d+\.\d %", line) for line in table)

    def test_labels_that_do_not_carry_over_are_told(self, folder, columns, tmp_path, capsys):
        """People whose signal means the opposite, and one label nearly always."""
        flipped = np.where(np.arange(N_PEOPLE * N_ROWS) // N_ROWS % 2 == 0, 1, -1)
        y = columns["Activity"] == "walk"
        write(tmp_path / "data.csv", {**columns, "heart": flipped * (8 * y - 4.0) + columns["speed"]})
        assert main(["fit", str(tmp_path / "data.csv"), *NAMED, "--output", str(tmp_path / "m.drhmm")]) == 0
        assert "is below that of always saying the most frequent label" in capsys.readouterr().err

    def test_no_row_of_a_held_out_sequence_is_learned_from(self):
        lengths = [10, 20, 30, 40]
        held_out, _ = _split(lengths, 0.4, 0, "person")
        shares = [part.mean() for part in np.split(held_out, np.cumsum(lengths)[:-1])]
        assert set(shares) == {0.0, 1.0}


class TestCrossValidation:
    def test_prints_what_python_says_of_all_sequences(self, folder, columns, capsys):
        output = ["--output", str(folder / "crossed.drhmm"), "--basis", "30", "--cross-validate"]
        assert main(["fit", str(folder / "data.csv"), *NAMED, *output]) == 0
        X = np.column_stack([columns["heart"], columns["speed"]])
        expected = drhmm.cross_validate(
            DensityRatioHMM(n_basis=30, random_state=0),
            X,
            columns["Activity"],
            sequence_id=columns["person"],
            dt=np.where(np.arange(len(X)) % N_ROWS == 40, 10, 1),
        )
        table = "\n\n".join(one.as_text() for one in expected.tables()[1:])
        printed = capsys.readouterr().out
        assert table in printed
        assert "each of 5 sequences by 'person' held out in turn" in printed

    @pytest.mark.slow
    def test_writes_a_page(self, folder):
        page = folder / "crossed.html"
        output = ["--output", str(folder / "crossed.drhmm"), "--basis", "30", "--folds", "2", "--html", str(page)]
        assert main(["fit", str(folder / "data.csv"), *NAMED, *output]) == 0
        assert (
            "<h1>data.csv: 5 sequences by &#x27;person&#x27; in 2 parts, each held out in turn</h1>" in page.read_text()
        )

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--label", "Activity", "--holdout", "0", "--html", "x.html"], "--html goes with --label"),
            (["--states", "2", "--cross-validate"], "--cross-validate goes with --label"),
            ([*NAMED, "--folds", "7"], "--folds is 7, but there are 5 sequences by 'person'"),
            ([*NAMED, "--folds", "1"], "--folds must be at least 2, got 1"),
        ],
    )
    def test_wrong_options_are_told_before_anything_is_learned(self, folder, capsys, more, message):
        output = folder / "never.drhmm"
        assert message in failed(["fit", folder / "data.csv", *more, "--output", output], capsys)
        assert not output.exists()


class TestEvaluate:
    def test_prints_what_python_says(self, folder, columns, capsys):
        assert main(["evaluate", str(folder / "model.drhmm"), str(folder / "data.csv")]) == 0
        X = np.column_stack([columns["heart"], columns["speed"]])
        dt = np.where(np.arange(len(X)) % N_ROWS == 40, 10, 1)
        model = drhmm.load(folder / "model.drhmm")
        expected = drhmm.evaluate(model, X, columns["Activity"], sequence_id=columns["person"], dt=dt)
        assert str(expected) in capsys.readouterr().out

    def test_prints_json(self, folder, capsys):
        assert main(["evaluate", str(folder / "model.drhmm"), str(folder / "data.csv"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["n_frames"] == N_PEOPLE * N_ROWS

    @pytest.mark.slow
    def test_writes_a_page(self, folder):
        page = folder / "report.html"
        arguments = ["evaluate", str(folder / "model.drhmm"), str(folder / "data.csv"), "--html", str(page)]
        assert main(arguments) == 0
        assert "<h1>model.drhmm on data.csv</h1>" in page.read_text()

    def test_an_unknown_label_is_named_with_its_column(self, folder, columns, tmp_path, capsys):
        write(tmp_path / "data.csv", {**columns, "Activity": ["run"] * len(columns["second"])})
        message = failed(["evaluate", folder / "model.drhmm", tmp_path / "data.csv"], capsys)
        assert "data.csv, line 2, column 'Activity': the label 'run' was never seen in training" in message

    def test_a_model_without_a_label_column_asks_for_one(self, folder, tmp_path, capsys):
        X = np.random.default_rng(0).normal(size=(60, 2))
        y = (X[:, 0] > 0).astype(int)
        DensityRatioHMM(n_basis=20, random_state=0).fit(X, y).save(tmp_path / "model.drhmm")
        message = failed(["evaluate", tmp_path / "model.drhmm", folder / "data.csv"], capsys)
        assert "the model stores no label column: give --label COLUMN" in message


class TestRemembered:
    def test_predict_uses_the_columns_of_training(self, folder, capsys):
        for named in ([], ["--sequence", "person", "--time", "second"]):
            assert main(["predict", str(folder / "model.drhmm"), str(folder / "data.csv"), *named]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
        assert lines[0] == "person,second,state,probability"

    def test_they_can_be_left_out(self, folder, capsys):
        arguments = ["predict", str(folder / "model.drhmm"), str(folder / "data.csv"), "--no-sequence", "--no-time"]
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith("state,probability\n")

    @pytest.mark.parametrize(("dropped", "role"), [("person", "sequence"), ("second", "time")])
    def test_a_table_without_them_is_refused(self, folder, columns, tmp_path, capsys, dropped, role):
        write(tmp_path / "data.csv", {name: values for name, values in columns.items() if name != dropped})
        message = failed(["predict", folder / "model.drhmm", tmp_path / "data.csv"], capsys)
        assert f"--{role}: there is no column '{dropped}'" in message
        assert f"use --{role}, or --no-{role}" in message

    def test_info_names_them(self, folder, capsys):
        assert main(["info", str(folder / "model.drhmm")]) == 0
        assert "sequence column    person" in capsys.readouterr().out


class TestMessages:
    @pytest.fixture
    def fit(self, folder, tmp_path, capsys):
        def fails(*named, data=folder / "data.csv"):
            return failed(["fit", data, *named, "--output", tmp_path / "model.drhmm"], capsys)

        return fails

    def test_the_wrong_case_of_a_label(self, fit):
        assert "--label: there is no column 'activity', did you mean 'Activity'? there are person" in fit(
            "--label", "activity"
        )

    def test_a_column_of_text(self, fit):
        message = fit("--label", "Activity")
        assert "column 'person': the column holds text, such as 'p0', and features are numbers" in message
        assert "--sequence" in message

    def test_reversed_times(self, fit, columns, tmp_path):
        write(tmp_path / "data.csv", {**columns, "second": columns["second"][::-1]})
        message = fit(*NAMED, data=tmp_path / "data.csv")
        assert "line 3, column 'second': time does not increase: 87 after 88; sort the rows" in message

    def test_a_constant_column_by_its_name(self, folder, columns, tmp_path, capsys):
        write(tmp_path / "data.csv", {**columns, "speed": [1] * len(columns["second"])})
        main(["fit", str(tmp_path / "data.csv"), *NAMED, "--output", str(tmp_path / "m.drhmm"), "--holdout", "0"])
        assert "in column 'speed'" in capsys.readouterr().err

    def test_a_step_with_a_unit_beside_numbers(self, fit):
        message = fit(*NAMED, "--step", "1s")
        assert "column 'second': times are numbers without a known unit, but the step of 1 s has one" in message

    def test_a_word_for_nothing(self, fit, columns, tmp_path):
        write(tmp_path / "data.csv", {**columns, "speed": ["n/a", *columns["speed"][1:]]})
        message = fit(*NAMED, data=tmp_path / "data.csv")
        assert "line 2, column 'speed': not a number: 'n/a' (an empty field is a missing value)" in message

    def test_one_class(self, fit, columns, tmp_path):
        write(tmp_path / "data.csv", {**columns, "Activity": ["rest"] * len(columns["second"])})
        assert "To tell one class from everything else, use --novelty" in fit(*NAMED, data=tmp_path / "data.csv")

    def test_no_labels(self, fit, columns, tmp_path):
        write(tmp_path / "data.csv", {**columns, "Activity": [""] * len(columns["second"])})
        message = fit(*NAMED, data=tmp_path / "data.csv")
        assert "column 'Activity': no row has a label: give --states N to learn without" in message

    def test_a_step_that_does_not_suit_the_times(self, columns, tmp_path, capsys):
        write(tmp_path / "data.csv", columns)
        output = ["--output", str(tmp_path / "m.drhmm"), "--basis", "30", "--holdout", "0", "--step", "3"]
        assert main(["fit", str(tmp_path / "data.csv"), *NAMED, *output]) == 0
        assert "drhmm fit: warning: column 'second': a step of 3 does not suit the times" in capsys.readouterr().err

    def test_a_step_that_is_none(self, fit):
        assert "--step must be a positive number, or a number with a unit" in fit(*NAMED, "--step", "soon")


def test_a_step_with_a_unit_beside_dates(folder, columns, tmp_path):
    dates = [f"2026-01-01T00:{second // 60:02}:{second % 60:02}" for second in columns["second"]]
    write(tmp_path / "data.csv", {**columns, "second": dates})
    output = ["--output", str(tmp_path / "model.drhmm"), "--basis", "30", "--holdout", "0", "--step", "1s"]
    assert main(["fit", str(tmp_path / "data.csv"), *NAMED, *output]) == 0
    found, expected = (drhmm.load(place / "model.drhmm") for place in (tmp_path, folder))
    assert found.fingerprint == expected.fingerprint
    assert found.settings["time_step"] == 1


class TestExplain:
    def test_prints_why_a_row_has_its_state(self, folder, capsys):
        data, model = folder / "data.csv", folder / "model.drhmm"
        assert main(["explain", str(model), str(data), "--row", "49"]) == 0
        table = pd.read_csv(data)
        assert capsys.readouterr().out.strip() == str(drhmm.dataframes.explain(drhmm.load(model), table, 49)).strip()

    def test_ranks_the_columns(self, folder, capsys):
        assert main(["explain", str(folder / "model.drhmm"), str(folder / "data.csv"), "--columns"]) == 0
        assert "importance of each column, in 200 time steps" in capsys.readouterr().out

    def test_refuses_a_row_that_is_not_there(self, folder, capsys):
        message = failed(["explain", folder / "model.drhmm", folder / "data.csv", "--row", "400"], capsys)
        assert "--row must be at most 399, got 400" in message


def test_a_forgotten_time_is_offered(tmp_path, capsys, columns):
    dates = [f"2026-03-02 08:{second // 60:02}:{second % 60:02}" for second in columns["second"]]
    write(tmp_path / "dates.csv", columns | {"second": dates})
    arguments = ["--label", "Activity", "--sequence", "person", "--output", tmp_path / "model.drhmm"]
    message = failed(["fit", tmp_path / "dates.csv", *arguments], capsys)
    assert (
        "the column holds text, such as '2026-03-02 08:00:00', and features are numbers: name it with --time" in message
    )
