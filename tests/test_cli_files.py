"""Files of the command line: kinds of tables, what is malformed in them, labels of every type, and lost work."""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pytest

import drhmm
from drhmm import DensityRatioHMM, dataframes
from drhmm.cli import main
from problems import blobs

ROWS = 120
X, Y = blobs(5, n_frames=ROWS)
COLUMNS = {
    "person": np.repeat(["p0", "p1"], ROWS // 2),
    "second": np.tile(np.arange(ROWS // 2), 2),
    "heart": X[:, 0],
    "speed": X[:, 1],
    "place": np.array(["rest", "walk", "run"])[Y],
}
NAMED = ["--label", "place", "--sequence", "person", "--time", "second"]


def as_csv(path, columns=COLUMNS, separator=",", decimal="."):
    pd.DataFrame(columns).to_csv(path, index=False, sep=separator, decimal=decimal)
    return path


def fit(data, output, *more):
    return main(["fit", str(data), *NAMED, "--basis", "30", "--holdout", "0", "--output", str(output), *more])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    assert fit(as_csv(folder / "data.csv"), folder / "model.drhmm") == 0
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return drhmm.load(folder / "model.drhmm")


def failed(arguments, capsys):
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


class TestKinds:
    def test_compressed_text(self, folder, tmp_path, model):
        (tmp_path / "data.csv.gz").write_bytes(gzip.compress((folder / "data.csv").read_bytes()))
        assert fit(tmp_path / "data.csv.gz", tmp_path / "model.drhmm") == 0
        assert drhmm.load(tmp_path / "model.drhmm").fingerprint == model.fingerprint

    @pytest.mark.parametrize(("separator", "decimal"), [(";", ","), ("|", "."), ("tab", ".")])
    def test_other_separators(self, tmp_path, model, separator, decimal):
        as_csv(tmp_path / "data.csv", separator="\t" if separator == "tab" else separator, decimal=decimal)
        signs = ["--separator", separator, "--decimal", decimal]
        assert fit(tmp_path / "data.csv", tmp_path / "model.drhmm", *signs) == 0
        assert drhmm.load(tmp_path / "model.drhmm").fingerprint == model.fingerprint

    def test_json_lines(self, tmp_path, model):
        pd.DataFrame(COLUMNS).to_json(tmp_path / "data.jsonl", orient="records", lines=True, double_precision=15)
        assert fit(tmp_path / "data.jsonl", tmp_path / "model.drhmm") == 0
        np.testing.assert_allclose(drhmm.load(tmp_path / "model.drhmm").transmat, model.transmat)

    def test_written_compressed(self, folder, tmp_path):
        outputs = [tmp_path / name for name in ("states.csv", "states.csv.gz")]
        for output in outputs:
            arguments = ["predict", str(folder / "model.drhmm"), str(folder / "data.csv"), "--output", str(output)]
            assert main(arguments) == 0
        assert gzip.decompress(outputs[1].read_bytes()) == outputs[0].read_bytes()

    def test_what_is_kept_stays_as_it_is(self, folder, tmp_path, capsys):
        note = [f'say "{row}", please' if row % 2 else f"0{row}" for row in range(ROWS)]
        as_csv(tmp_path / "data.csv", COLUMNS | {"note": note})
        assert main(["predict", str(folder / "model.drhmm"), str(tmp_path / "data.csv"), "--keep", "note,heart"]) == 0
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert [row["note"] for row in rows] == note
        assert [float(row["heart"]) for row in rows] == X[:, 0].tolist()

    def test_many_blocks_are_one_table(self, folder, tmp_path, monkeypatch):
        """With quotes, and line breaks within them, wherever a block ends."""
        people = np.repeat(['one "and"\nonly', "p,1"], ROWS // 2)
        table = as_csv(tmp_path / "data.csv", COLUMNS | {"person": people})
        assert fit(table, tmp_path / "whole.drhmm") == 0
        monkeypatch.setattr("drhmm.cli.csv_file.BLOCK", 97)
        assert fit(table, tmp_path / "blocks.drhmm") == 0
        found, expected = (drhmm.load(tmp_path / name).fingerprint for name in ("blocks.drhmm", "whole.drhmm"))
        assert found == expected


NUMBERS = ["1.5", " 2 ", "+3", "1e-3", ".5", "7.", "", "NaN", " na ", "none", "True", "false"]


def test_numbers_in_every_spelling(tmp_path, capsys):
    live = DensityRatioHMM(n_basis=20, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), Y).model_
    live.save(tmp_path / "model.drhmm")
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f'"{number}",0\n' for number in NUMBERS))
    assert main(["predict", str(tmp_path / "model.drhmm"), str(tmp_path / "data.csv")]) == 0
    found = [float(row["probability"]) for row in csv.DictReader(capsys.readouterr().out.splitlines())]
    values = np.array([1.5, 2, 3, 1e-3, 0.5, 7, *[np.nan] * 4, 1, 0])
    expected = live.predict_proba(pd.DataFrame({"a": values, "b": 0.0})).max(axis=1)
    np.testing.assert_array_equal(found, expected)


BAD = {
    "a quote in a number": ('a,b,y\n1,2,0\n"1"2,2,1\n', "line 3: ',' expected after '\"'"),
    "an open quote in text": ('a,b,y\n1,2,0\n1,2,"x\n1,2,1\n', "line 3: unexpected end of data"),
    "underscores": ("a,b,y\n1,2,0\n1_0,2,1\n", "line 3, column 'a': not a number: '1_0'"),
    "hexadecimals": ("a,b,y\n1,2,0\n0x1,2,1\n", "line 3, column 'a': not a number: '0x1'"),
    "an infinite value": ("a,b,y\n1,2,0\n1e999,2,1\n", "line 3, column 'a': an infinite value: '1e999'"),
    "semicolons": ("a;b;y\n1;2;0\n", "line 1: the fields are separated by semicolons instead of commas; use --sep"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("kind", ["csv", "csv.gz"])
def test_malformed_text_has_its_line(tmp_path, capsys, kind, text, message):
    data = tmp_path / f"data.{kind}"
    data.write_bytes(gzip.compress(text.encode()) if kind == "csv.gz" else text.encode())
    line = failed(["fit", data, "--label", "y", "--output", tmp_path / "model.drhmm"], capsys)
    assert f"{data}, {message}" in line


def test_decimal_commas_are_only_advised_where_there_are_some(tmp_path, capsys):
    for row, advised in (("1,5;2,5;0", True), ("1.5;2.5;0", False), ("1;2;0", False)):
        (tmp_path / "data.csv").write_text(f"a;b;y\n{row}\n")
        line = failed(["fit", tmp_path / "data.csv", "--label", "y", "--output", tmp_path / "model.drhmm"], capsys)
        assert "use --separator ';'" in line
        assert ("--decimal ," in line) == advised


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "y": 0}\n{"a": 1, "y"\n', "line 2: not JSON"),
        ('{"a": 1, "y": 0}\n\n[1, 2]\n', "line 3: not an object"),
        ('{"a": 1, "y": 0}\n{"a": "x", "y": 1}\n', "line 2, column 'a': 'x' is of another type than the value in line"),
        ('{"a": "x", "y": 0}\n{"a": "1", "y": 1}\n', "line 1, column 'a': not a number: 'x'"),
    ],
)
def test_malformed_json_has_its_line(tmp_path, capsys, text, message):
    (tmp_path / "data.jsonl").write_text(text)
    line = failed(["fit", tmp_path / "data.jsonl", "--label", "y", "--output", tmp_path / "model.drhmm"], capsys)
    assert f"data.jsonl, {message}" in line


class TestLabels:
    """Of every type: `predict --label` and `evaluate` judge in one way."""

    @pytest.mark.parametrize(
        "labels",
        [Y > 0, Y.astype(float), Y, np.array(["true", "False", "x"])[Y]],
        ids=["truth", "float", "int", "text"],
    )
    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_are_judged_in_one_way(self, tmp_path, capsys, labels, kind):
        table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": labels})
        fitted = dataframes.fit(DensityRatioHMM(n_basis=20, random_state=0), table, label="y")
        fitted.save(tmp_path / "model.drhmm")
        data = tmp_path / f"data.{kind}"
        table.to_csv(data, index=False) if kind == "csv" else table.to_parquet(data)
        expected = dataframes.evaluate(fitted, table).accuracy
        assert expected > 0.7
        assert main(["predict", str(tmp_path / "model.drhmm"), str(data), "--label", "y"]) == 0
        assert f"accuracy: {expected:.1%} of {ROWS} rows" in capsys.readouterr().err
        assert main(["evaluate", str(tmp_path / "model.drhmm"), str(data), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["accuracy"] == expected

    @pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "string"])
    def test_of_pandas_may_be_missing(self, dtype):
        labels = pd.Series(Y > 0).astype("boolean" if dtype != "string" else "string").astype(dtype)
        table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": labels})
        table.loc[::10, "y"] = pd.NA
        fitted = dataframes.fit(DensityRatioHMM(n_basis=20, random_state=0), table, label="y")
        assert len(fitted.classes_) == 2
        assert dataframes.evaluate(fitted, table).n_left_out == ROWS // 10

    def test_that_are_dates_are_saved(self, tmp_path):
        dates = pd.to_datetime(np.array(["2026-01-01", "2026-02-01", "2026-03-01"])[Y])
        table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": dates})
        table.loc[::10, "y"] = pd.NaT
        fitted = dataframes.fit(DensityRatioHMM(n_basis=20, random_state=0), table, label="y")
        fitted.save(tmp_path / "model.drhmm")
        assert drhmm.load(tmp_path / "model.drhmm").classes.tolist() == sorted(set(dates.to_pydatetime()))


class TestNothingIsLost:
    def test_a_page_that_cannot_be_drawn_leaves_the_model(self, folder, tmp_path, monkeypatch):
        def fails(*_, **__):
            raise ValueError("Expected end of text")

        monkeypatch.setattr("drhmm.judging.evaluation.Evaluation.save_html", fails)
        files = ["--output", tmp_path / "m.drhmm", "--html", tmp_path / "m.html"]
        arguments = ["fit", folder / "data.csv", *NAMED, *files]
        assert main([str(argument) for argument in arguments]) == 2
        assert drhmm.load(tmp_path / "m.drhmm").n_states == 3

    def test_matplotlib_is_asked_for_before_anything_is_learned(self, folder, tmp_path):
        code = "import sys; sys.modules['matplotlib'] = None; from drhmm.cli import main; sys.exit(main(sys.argv[1:]))"
        files = ["--output", tmp_path / "m.drhmm", "--html", tmp_path / "m.html"]
        arguments = ["fit", folder / "data.csv", *NAMED, *files]
        result = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (2, "")
        assert 'pip install "drhmm[plot]"' in result.stderr

    def test_a_label_that_the_terminal_lacks(self, tmp_path):
        labels = np.array(["Ruhe", "l\u00e4uft", "\u8d70"])[Y]
        as_csv(tmp_path / "data.csv", COLUMNS | {"place": labels})
        environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        command = [sys.executable, "-m", "drhmm"]
        arguments = ["fit", "data.csv", *NAMED, "--basis", "30", "--output", "model.drhmm"]
        for more in (arguments, ["predict", "model.drhmm", "data.csv"]):
            result = subprocess.run([*command, *more], cwd=tmp_path, env=environment, capture_output=True)
            assert (result.returncode, result.stderr) == (0, b"")
        states = {row["state"] for row in csv.DictReader(result.stdout.decode().splitlines())}
        assert states == set(labels)

    def test_a_second_stream_of_one_state_ends_with_a_message(self, folder, tmp_path):
        command = [sys.executable, "-m", "drhmm", "stream", folder / "model.drhmm", "--no-sequence", "--no-time"]
        command += ["--snapshot", tmp_path / "state.json"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            first.stdin.write("1,2\n")
            first.stdin.flush()
            first.stdout.readline()
            second = subprocess.run(command, input="1,2\n", capture_output=True, text=True)
            assert (second.returncode, second.stdout) == (2, "")
            assert "state.json: another drhmm stream keeps its state in this file" in second.stderr
            first.stdin.close()
            assert first.wait() == 0
        third = subprocess.run(command, input="1,2\n", capture_output=True, text=True)
        assert json.loads(third.stdout)["frame"] == 1


class TestAdvice:
    """Messages of the command line name what it has."""

    def test_two_rows(self, tmp_path, capsys):
        (tmp_path / "data.csv").write_text("a,b,y\n1,2,0\n2,1,1\n")
        main(["fit", str(tmp_path / "data.csv"), "--label", "y", "--output", str(tmp_path / "model.drhmm")])
        message = capsys.readouterr().err
        assert "needs at least 5 frames, one per fold, got 2: give more rows" in message
        assert "default" not in message

    @pytest.fixture(scope="class")
    @classmethod
    def one_state(cls, tmp_path_factory):
        path = tmp_path_factory.mktemp("one") / "model.drhmm"
        table = pd.DataFrame(X, columns=["heart", "speed"])
        DensityRatioHMM(1, n_basis=20, novelty=True, random_state=0).fit(table).save(path)
        return path

    def test_an_explanation_of_one_state(self, folder, one_state, capsys):
        line = failed(["explain", one_state, folder / "data.csv", "--row", "3"], capsys)
        assert line.endswith("the events of drhmm stream --false-alarms show the columns that make a row unknown")

    def test_a_snapshot_of_another_alarm(self, one_state, tmp_path):
        command = [sys.executable, "-m", "drhmm", "stream", one_state, "--snapshot", tmp_path / "state.json"]
        first = subprocess.run([*command, "--false-alarms", "1/200"], input="1,2\n", capture_output=True, text=True)
        assert first.returncode == 0, first.stderr
        result = subprocess.run(command, input="1,2\n", capture_output=True, text=True)
        assert (
            "options: alarm differ; use the same --false-alarms, --hold-off as before, or give --snapshot "
            "another file" in result.stderr
        )

    @pytest.mark.parametrize("asked", [0, -1.0])
    def test_alarms_that_are_never_false(self, one_state, asked):
        with pytest.raises(ValueError, match=rf"false_alarms must be positive, such as 0\.1, got {asked}"):
            drhmm.load(one_state).alarm(asked)

    def test_periods_for_times(self, model):
        table = pd.DataFrame(COLUMNS).assign(second=pd.period_range("2026-01-01", periods=ROWS))
        with pytest.raises(
            ValueError, match=r"column 'second' holds period\[D\], and times are numbers or dates; convert it "
        ):
            dataframes.predict(model, table)


@pytest.mark.slow
def test_a_large_file_takes_little_time_and_memory(folder, tmp_path):
    """Numbers are never touched one by one: half a million rows, and a tenth of the time that Python would take."""
    n, random = 500_000, np.random.default_rng(0)
    columns = {name: random.normal(size=n) for name in ("heart", "speed", "other")}
    table = pyarrow.table(
        columns | {"person": np.repeat([f"p{k}" for k in range(50)], n // 50), "second": np.arange(n)}
    )
    pyarrow.csv.write_csv(table, tmp_path / "large.csv")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "drhmm", "predict", folder / "model.drhmm", "large.csv", "--output", "out.csv"]
    subprocess.run([*command, "--threads", "1"], cwd=tmp_path, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 4
    with open(tmp_path / "out.csv", "rb") as file:
        assert sum(1 for _ in file) == n + 1


def test_a_context_that_is_no_number(folder, tmp_path, capsys):
    line = failed(["fit", folder / "data.csv", *NAMED, "--output", tmp_path / "m.drhmm", "--context", "x"], capsys)
    assert "--context must be a number of rows, auto or none, got 'x'" in line


def test_tables_inferred_in_parts_are_inferred_whole(model, monkeypatch):
    """Rows of two people in turn, and a part for each."""
    table = pd.DataFrame(COLUMNS).iloc[np.arange(ROWS).reshape(2, -1).T.ravel()]
    whole = dataframes.predict(model, table, probabilities=True)
    monkeypatch.setattr("drhmm.tables.results.MOST_ROWS", 7)
    parts = dataframes.predict(model, table, probabilities=True)
    pd.testing.assert_frame_equal(parts, whole, rtol=0, atol=1e-12)
