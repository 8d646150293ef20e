"""The command line, run as a person would."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose

import drhmm
import live
from commands import DRHMM, piped
from drhmm import DensityRatioHMM, __version__, dataframes
from drhmm.cli import main
from drhmm.cli.stream import _alarm, step_of
from problems import blobs

PNG = b"\x89PNG\r\n\x1a\n"
NAMES = np.array(["rest", "walk", "run"])
ROWS = 240


def write_csv(path, columns, delimiter=","):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture(scope="module")
def columns():
    X, y = blobs(5, n_frames=ROWS)
    return {
        "person": [f"p{row // 80}" for row in range(ROWS)],
        "minute": [row % 80 + (5 if row % 80 >= 40 else 0) for row in range(ROWS)],
        "heart rate": X[:, 0].tolist(),
        "speed": X[:, 1].tolist(),
        "activity": NAMES[y].tolist(),
    }


@pytest.fixture(scope="module")
def folder(columns, tmp_path_factory):
    """The same table in every format, a model that was learned from it, and the same that remembers no columns."""
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "data.csv", columns)
    write_csv(folder / "data.tsv", columns, "\t")
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "data.parquet")
    np.savez(
        folder / "data.npz",
        X=np.column_stack([columns["heart rate"], columns["speed"]]),
        feature_names=["heart rate", "speed"],
        lengths=[80] * 3,
        minute=columns["minute"],
        activity=columns["activity"],
    )
    assert main(fit_arguments(folder, "data.csv", "model.drhmm")) == 0
    learned = drhmm.load(folder / "model.drhmm")
    forgetful = {name: value for name, value in learned.settings.items() if name != "columns"}
    replace(learned, settings=forgetful).save(folder / "forgetful.drhmm")
    return folder


#: Not by the columns that the model remembers.
NO_COLUMNS = ("--no-sequence", "--no-time")


def fit_arguments(folder, data, output, *more):
    sequence = "lengths" if data.endswith(".npz") else "person"
    named = ["--label", "activity", "--sequence", sequence, "--time", "minute"]
    return ["fit", str(folder / data), *named, "--window", "2", "--novelty", "--output", str(folder / output), *more]


@pytest.fixture(scope="module")
def model(folder):
    return drhmm.load(folder / "model.drhmm")


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """A model whose columns have the names 1 and 2."""
    path = tmp_path_factory.mktemp("numbered") / "model.drhmm"
    replace(live.model("plain"), feature_names=("1", "2")).save(path)
    return path


@pytest.fixture(scope="module")
def timeless(tmp_path_factory):
    """A model with a state for the unknown, that was learned without times."""
    path = tmp_path_factory.mktemp("timeless") / "model.drhmm"
    live.model("novelty").save(path)
    return path


def expected_filter(model, columns):
    """What batch inference says of the table, gaps and sequences included."""
    X = np.column_stack([columns["heart rate"], columns["speed"]])
    dt = np.where(np.arange(ROWS) % 80 == 40, 6, 1)
    arguments = {"lengths": [80] * 3, "dt": dt}
    return model.predict_proba(X, method="filter", **arguments), model.novelty_proba(X, **arguments)


class TestFit:
    @pytest.mark.parametrize("kind", ["tsv", "parquet", "npz"])
    def test_every_format_gives_the_same_model(self, folder, model, kind):
        assert main(fit_arguments(folder, f"data.{kind}", f"{kind}.drhmm")) == 0
        assert drhmm.load(folder / f"{kind}.drhmm").fingerprint == model.fingerprint

    def test_is_the_estimator_on_sequences_that_end_at_gaps(self, columns, model):
        X = np.column_stack([columns["heart rate"], columns["speed"]])
        estimator = DensityRatioHMM(window=2, novelty=True, random_state=0)
        estimator.fit(X, columns["activity"], lengths=[40] * 6)
        assert estimator.model_.fingerprint == model.fingerprint

    def test_keeps_names_and_settings(self, model):
        assert model.feature_names == ("heart rate", "speed")
        assert model.settings["window"] == 2
        assert model.settings["time_step"] == 1.0

    def test_prints_cross_validation_and_held_out_accuracy(self, folder, capsys):
        main(fit_arguments(folder, "data.csv", "printed.drhmm"))
        printed = capsys.readouterr().out
        for words in (
            "240 rows; 2 features (heart rate, speed); 3 values of 'person', in 6 pieces by gaps; labels rest (",
            "6 rows without a complete window of 2, which are not learned from",
            "cross-validation of 35 settings, pulled towards the defaults, chose sigma",
            "held-out squared loss",
            "held-out accuracy: ",
            "% smoothed, ",
            "each of 3 sequences by 'person' held out in turn, learned without them)",
            "by sequence        ",
            "saved ",
        ):
            assert words in printed

    def test_holds_out_the_end_of_a_single_sequence(self, folder, capsys):
        named = ["--label", "activity", "--features", "heart rate,speed", "--output", str(folder / "one.drhmm")]
        assert main(["fit", str(folder / "data.csv"), *named, "--holdout", "0.25"]) == 0
        assert "(60 labelled rows, the end of the sequence, learned without them)" in capsys.readouterr().out

    def test_learns_without_labels(self, folder, capsys):
        named = ["--features", "heart rate,speed", "--states", "3", "--output", str(folder / "unlabelled.drhmm")]
        assert main(["fit", str(folder / "data.csv"), *named]) == 0
        assert "EM " in capsys.readouterr().out
        assert drhmm.load(folder / "unlabelled.drhmm").classes.tolist() == [0, 1, 2]

    @pytest.mark.slow
    def test_compares_numbers_of_states(self, folder, capsys):
        named = ["--features", "heart rate,speed", "--states", "2-3", "--output", str(folder / "compared.drhmm")]
        assert main(["fit", str(folder / "data.csv"), *named, "--basis", "30"]) == 0
        chosen = drhmm.load(folder / "compared.drhmm").n_states
        assert f"{chosen} states, by the gain of held-out frames" in capsys.readouterr().out

    @pytest.mark.slow
    def test_learns_with_some_labels(self, folder, columns, capsys):
        labels = [label if row % 3 == 0 else "" for row, label in enumerate(columns["activity"])]
        write_csv(folder / "some.csv", {**columns, "activity": labels})
        assert main(fit_arguments(folder, "some.csv", "some.drhmm")) == 0
        assert "160 rows without a label" in capsys.readouterr().out
        assert sorted(drhmm.load(folder / "some.drhmm").classes.tolist()) == ["rest", "run", "walk"]

    @pytest.mark.parametrize("odd", ["-1", "NaN"])
    def test_warns_of_a_label_that_may_stand_for_none(self, folder, columns, odd, capsys):
        labels = [odd if label == "rest" else "1" for label in columns["activity"]]
        write_csv(folder / "odd.csv", {**columns, "activity": labels})
        assert main(fit_arguments(folder, "odd.csv", "odd.drhmm")) == 0
        assert "is a class here: leave fields of unknown labels empty" in capsys.readouterr().err

    def test_columns_of_truth_values_are_numbers(self, folder, columns):
        loud = [row % 7 > 2 for row in range(len(columns["activity"]))]
        write_csv(folder / "loud.csv", {**columns, "loud": loud})
        arguments = fit_arguments(folder, "loud.csv", "loud.drhmm")
        assert main([*arguments, "--features", "speed,loud"]) == 0
        assert drhmm.load(folder / "loud.drhmm").evidence.framing.mean[1] == np.mean(loud)

    @pytest.mark.parametrize("labels", [[-1, 0, 1], ["none", "null", "NA"], ["01", "1", "+1"], ["a,b", "\u00fc", "c"]])
    def test_every_word_is_a_label_but_an_empty_field(self, folder, columns, labels):
        chosen = [labels[NAMES.tolist().index(name)] for name in columns["activity"]]
        write_csv(folder / "labels.csv", {**columns, "activity": chosen})
        assert main(fit_arguments(folder, "labels.csv", "labels.drhmm")) == 0
        assert set(drhmm.load(folder / "labels.drhmm").classes.tolist()) == set(labels)

    @pytest.mark.slow
    @pytest.mark.parametrize(("kind", "largest"), [("parquet", 2), ("parquet", 2**53 + 1), ("npz", 2)])
    def test_missing_numbers_are_no_labels(self, folder, kind, largest, capsys):
        X, y = blobs(5, n_frames=ROWS)
        labels = [None if row % 3 else [0, largest - 1, largest][state] for row, state in enumerate(y.tolist())]
        data = folder / f"numbers.{kind}"
        if kind == "parquet":
            pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": labels}), data)
        else:
            np.savez(data, X=X, y=np.array(labels, dtype=float))
        output = str(folder / "numbers.drhmm")
        assert main(["fit", str(data), "--label", "y", "--basis", "50", "--output", output]) == 0
        assert "160 rows without a label" in capsys.readouterr().out
        assert drhmm.load(output).classes.tolist() == [0, largest - 1, largest]

    def test_lengths_of_an_npz_file_are_sequences(self, folder, capsys):
        X, y = blobs(5, n_frames=ROWS)
        np.savez(folder / "lengths.npz", X=X, y=y, lengths=[80] * 3)
        named = ["--label", "y", "--output", str(folder / "lengths.drhmm"), "--holdout", "0"]
        assert main(["fit", str(folder / "lengths.npz"), *named]) == 0
        assert "240 rows; 2 features (X0, X1); 3 sequences" in capsys.readouterr().out

    @pytest.mark.slow
    def test_saves_the_model_though_nobody_listens(self, folder):
        arguments = " ".join(fit_arguments(folder, "data.csv", "unheard.drhmm"))
        script = f"set -o pipefail; {sys.executable} -u -m drhmm {arguments} | head -c 1 > /dev/null"
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
        assert (folder / "unheard.drhmm").exists()

    def test_a_device_stays_a_device(self, folder):
        assert main([*fit_arguments(folder, "data.csv", "null")[:-1], os.devnull]) == 0
        assert not Path(os.devnull).is_file()

    def test_numbered_columns(self, folder, columns):
        lines = (folder / "data.csv").read_text().splitlines()
        (folder / "plain.csv").write_text("\n".join(line.split(",", 2)[2] for line in lines[1:]))
        named = ["--no-header", "--label", "3", "--output", str(folder / "plain.drhmm")]
        assert main(["fit", str(folder / "plain.csv"), *named]) == 0
        assert drhmm.load(folder / "plain.drhmm").feature_names == ("1", "2")

    @pytest.mark.slow
    def test_shows_a_bar_on_a_terminal(self, folder):
        pty = pytest.importorskip("pty")
        parent, terminal = pty.openpty()
        arguments = fit_arguments(folder, "data.csv", "bar.drhmm")
        process = subprocess.Popen([*DRHMM, *arguments], stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(parent, 1000)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not part:
                break
            shown += part
        os.close(parent)
        assert process.wait() == 0
        assert b"cross-validation [####################] 5/5" in shown


class TestPredict:
    def run(self, folder, capsys, *more, data="data.csv"):
        named = ["--sequence", "lengths" if data.endswith("npz") else "person", "--time", "minute"]
        assert main(["predict", str(folder / "model.drhmm"), str(folder / data), *named, *more]) == 0
        return capsys.readouterr()

    @pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npz"])
    def test_is_batch_inference_with_gaps(self, folder, model, columns, capsys, kind):
        printed = self.run(folder, capsys, "--method", "filter", "--probabilities", data=f"data.{kind}").out
        rows = list(csv.DictReader(io.StringIO(printed)))
        posteriors, novelty = expected_filter(model, columns)
        found = [[float(row[f"p({label})"]) for label in model.classes] for row in rows]
        assert_allclose(found, posteriors, atol=1e-15)
        assert_allclose([float(row["novelty"]) for row in rows], novelty, atol=1e-15)
        assert [row["state"] for row in rows] == model.classes[posteriors.argmax(axis=1)].tolist()
        assert rows[41]["minute"] == "46"

    def test_keeps_the_columns_that_are_asked_for(self, folder, columns, capsys):
        rows = list(csv.DictReader(io.StringIO(self.run(folder, capsys, "--keep", "speed,person").out)))
        assert list(rows[0])[:4] == ["person", "minute", "speed", "state"]
        assert [float(row["speed"]) for row in rows] == [float(value) for value in columns["speed"]]

    def test_a_column_to_keep_that_is_not_there_is_named(self, folder, capsys):
        arguments = ["predict", str(folder / "model.drhmm"), str(folder / "data.csv"), "--keep", "sped"]
        assert main(arguments) == 2
        assert "--keep: there is no column 'sped', did you mean 'speed'?" in capsys.readouterr().err

    def test_interleaved_sequences_and_shuffled_columns(self, folder, model, columns, capsys):
        order = np.arange(ROWS).reshape(3, 80).T.ravel()
        shuffled = {name: [columns[name][row] for row in order] for name in reversed(columns)}
        write_csv(folder / "shuffled.csv", shuffled)
        printed = self.run(folder, capsys, "--method", "filter", data="shuffled.csv").out
        rows = list(csv.DictReader(io.StringIO(printed)))
        posteriors, _ = expected_filter(model, columns)
        assert_allclose([float(row["probability"]) for row in rows], posteriors.max(axis=1)[order], atol=1e-15)

    def test_without_a_header_features_are_places(self, numbered, tmp_path, capsys):
        (tmp_path / "narrow.csv").write_text("0.5,1\n2,-1\n")
        (tmp_path / "wide.csv").write_text("7,0.5,1\n7,2,-1\n")
        assert main(["predict", str(numbered), str(tmp_path / "narrow.csv"), "--no-header"]) == 0
        expected = capsys.readouterr().out
        wide = ["--no-header", "--features", "2,3"]
        assert main(["predict", str(numbered), str(tmp_path / "wide.csv"), *wide]) == 0
        assert capsys.readouterr().out == expected

    @pytest.mark.parametrize("method", [["--lag", "3"], ["--method", "frame"], ["--method", "viterbi"]])
    def test_every_method(self, folder, capsys, method):
        printed = self.run(folder, capsys, *method).out
        assert len(printed.splitlines()) == ROWS + 1

    def test_accuracy_of_known_labels(self, folder, capsys):
        assert "% of 240 rows" in self.run(folder, capsys, "--label", "activity").err

    def test_accuracy_is_that_of_rows_with_a_number_as_label(self, folder, capsys):
        names = ["heart rate", "speed"]
        np.savez(folder / "partly.npz", X=np.zeros((3, 2)), feature_names=names, y=[0.0, np.nan, 1.0])
        model = str(folder / "model.drhmm")
        assert main(["predict", model, str(folder / "partly.npz"), "--label", "y", *NO_COLUMNS]) == 0
        assert "of 2 rows" in capsys.readouterr().err

    @pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npz"])
    def test_writes_every_format(self, folder, capsys, kind):
        output = folder / f"predicted.{kind}"
        self.run(folder, capsys, "--output", str(output))
        if kind == "parquet":
            states = pyarrow.parquet.read_table(output)["state"].to_pylist()
        elif kind == "npz":
            states = np.load(output)["state"].tolist()
        else:
            with open(output, newline="") as file:
                states = [row["state"] for row in csv.DictReader(file, delimiter="\t" if kind == "tsv" else ",")]
        assert set(states) == {"rest", "walk", "run"}
        assert len(states) == ROWS

    @pytest.mark.slow
    def test_a_closed_pipe_ends_quietly(self, folder):
        command = f"{sys.executable} -m drhmm predict model.drhmm data.csv --sequence person --time minute"
        script = f"set -o pipefail; {command} | head -1"
        result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def stream_lines(columns, first=0, last=ROWS, header=True):
    lines = [",".join(str(values[row]) for values in columns.values()) for row in range(first, last)]
    return "\n".join(([",".join(columns)] if header else []) + lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["info", "model.drhmm"], ["info", "model.drhmm", "--json"], ["--help"]])
def test_every_command_takes_a_closed_pipe_quietly(folder, command):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    script = f"set -o pipefail; {sys.executable} -m drhmm {' '.join(command)} | (exec <&-; sleep 1)"
    result = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info model.drhmm > /dev/full", "predict model.drhmm data.csv > /dev/full"])
def test_a_full_disk_is_an_error(folder, command):
    script = f"{sys.executable} -m drhmm {command}"
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 2
    assert "No space left on device" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
class TestStream:
    NAMED = ("--sequence", "person", "--time", "minute")

    def answers(self, folder, text, *more, model="forgetful.drhmm"):
        result = piped(["stream", folder / model, *more], text)
        assert (result.returncode, result.stderr) == (0, "")
        return [json.loads(line) for line in result.stdout.splitlines()]

    ALARM = ("--false-alarms", "1/200", "--hold-off", "5")

    @staticmethod
    def strange(columns):
        """The first 60 rows of the first person, and something unknown from row 20 to 29."""
        rates = columns["heart rate"][:60]
        return {name: values[:60] for name, values in columns.items()} | {
            "heart rate": [rate + (500 if 20 <= row < 30 else 0) for row, rate in enumerate(rates)]
        }

    def events(self, folder, text, *more):
        return [answer for answer in self.answers(folder, text, *self.NAMED, *more) if "event" in answer]

    @pytest.mark.quick
    def test_alarms_are_events(self, folder, model, columns):
        strange = self.strange(columns)
        samples = np.column_stack([strange["heart rate"], strange["speed"]])
        alarm = model.alarm(1, per=200, hold_off=5)
        begins, ends = self.events(folder, stream_lines(strange, last=60), *self.ALARM)
        (episode,) = alarm.episodes(samples, dt=np.diff(strange["minute"], prepend=-1))
        assert (begins["event"], begins["sequence"], begins["frame"]) == ("alarm begins", "p0", episode.begin)
        assert (ends["event"], ends["begin"], ends["end"]) == ("alarm ends", episode.begin, episode.end)
        rows = {"begin_time": episode.begin, "peak_time": episode.peak, "last_time": episode.end - 1}
        assert {name: float(ends[name]) for name in rows} == {
            name: strange["minute"][row] for name, row in rows.items()
        }

    def test_events_say_whether_the_alarms_agree_with_the_promise(self, folder, columns):
        rates = [rate + (500 if row % 12 < 2 else 0) for row, rate in enumerate(columns["heart rate"][:60])]
        strange = {name: values[:60] for name, values in columns.items()} | {"heart rate": rates}
        events = self.events(folder, stream_lines(strange, last=60), "--false-alarms", "1/200", "--hold-off", "2")
        healthy = [event["healthy"] for event in events if event["event"] == "alarm begins"]
        assert healthy[0]
        assert not healthy[-1]

    @pytest.mark.quick
    def test_events_only(self, folder, columns):
        text, more = stream_lines(self.strange(columns), last=60), (*self.NAMED, *self.ALARM, "--lag", "2")
        events = [answer for answer in self.answers(folder, text, *more) if "event" in answer]
        assert self.answers(folder, text, *more, "--events-only") == events
        assert len(events) == 2

    def test_an_alarm_survives_a_restart(self, folder, columns, tmp_path):
        strange = self.strange(columns)
        more = (*self.ALARM, "--snapshot", tmp_path / "state.json")
        parts = [self.events(folder, stream_lines(strange, *rows), *more) for rows in ((0, 25), (25, 60))]
        assert [[event["event"] for event in part] for part in parts] == [["alarm begins"], ["alarm ends"]]

    def test_truth_values_in_json_are_numbers(self, folder):
        lines = ['{"heart rate": true, "speed": 2}\n', '{"heart rate": 1, "speed": 2}\n']
        answers = [piped(["stream", folder / "forgetful.drhmm"], line).stdout for line in lines]
        assert answers[0] == answers[1]

    def test_a_column_that_is_missing_is_told_once_where_an_alarm_watches(self, folder, columns):
        gone = {name: values[:10] for name, values in columns.items()} | {"speed": [""] * 10}
        arguments = ["stream", folder / "model.drhmm", *self.NAMED, *self.ALARM]
        result = piped(arguments, stream_lines(gone, last=10))
        assert result.stderr.count("'speed' is missing: no alarm can begin without it") == 1

    @pytest.mark.parametrize("asked", ["1", "x/7d", "1/year", "0/7d"])
    def test_false_alarms_that_cannot_be_read(self, folder, asked):
        result = piped(["stream", folder / "forgetful.drhmm", "--false-alarms", asked], "")
        assert result.returncode == 2
        assert "--false-alarms must be a" in result.stderr

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            (["1/5000"], {"per": 5000}),
            (["2/300 frames", "--hold-off", "7"], {"false_alarms": 2, "per": 300, "hold_off": 7}),
            (["1/hour", "--step", "10"], {"per": "1h", "step": "10s"}),
            (["1/0.5 day", "--step", "60s", "--hold-off", "5 minutes"], {"per": 720, "hold_off": 5}),
        ],
    )
    def test_alarms_without_a_column_of_times(self, timeless, asked, expected):
        model = drhmm.load(timeless)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            step = step_of(asked[asked.index("--step") + 1] if "--step" in asked else None, model)
            pause = asked[asked.index("--hold-off") + 1] if "--hold-off" in asked else None
            found = _alarm(model, asked[0], pause, step)
            assert found.numbers() == model.alarm(**({"false_alarms": 1} | expected)).numbers()

    def test_a_time_without_a_step_asks_for_the_flag(self, timeless):
        result = piped(["stream", timeless, "--false-alarms", "1/1d"], "")
        assert result.returncode == 2
        assert "the time of --false-alarms is '1d', a time" in result.stderr
        assert "give --step as well" in result.stderr

    def test_a_warning_is_one_line(self, timeless):
        result = piped(["stream", timeless, "--false-alarms", "1/1d", "--step", "10"], "")
        assert (result.returncode, result.stdout) == (0, "")
        assert re.fullmatch(r"drhmm stream: warning: the training data have .*\n", result.stderr)

    @pytest.mark.quick
    def test_is_batch_inference(self, folder, model, columns):
        answers = self.answers(folder, stream_lines(columns), *self.NAMED)
        posteriors, novelty = expected_filter(model, columns)
        found = [[answer["probabilities"][label] for label in model.classes] for answer in answers]
        assert_allclose(found, posteriors, atol=1e-12)
        assert_allclose([answer["novelty"] for answer in answers], novelty, atol=1e-12)
        assert answers[41] | {"probabilities": None, "novelty": None, "probability": None} == {
            "sequence": "p0",
            "frame": 41,
            "time": "46",
            "state": model.classes[posteriors[41].argmax()],
            "probability": None,
            "probabilities": None,
            "novelty": None,
        }

    def test_uses_the_columns_of_training_as_predict_does(self, folder, columns, capsys):
        answers = self.answers(folder, stream_lines(columns), model="model.drhmm")
        capsys.readouterr()
        arguments = ["predict", str(folder / "model.drhmm"), str(folder / "data.csv"), "--method", "filter"]
        assert main(arguments) == 0
        expected = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [answer["state"] for answer in answers] == [row["state"] for row in expected]
        for name in ("probability", "novelty"):
            assert_allclose([answer[name] for answer in answers], [float(row[name]) for row in expected], atol=1e-12)

    @pytest.mark.parametrize("text", ["1,2\n", "[1, 2]\n", "heart rate,speed\n", '{"heart rate": 1, "speed": 2}\n'])
    def test_refuses_observations_without_them(self, folder, text):
        result = piped(["stream", folder / "model.drhmm"], text)
        assert (result.returncode, result.stdout) == (2, "")
        assert "The model was learned with it as the sequence: use --sequence, or --no-sequence" in result.stderr

    def test_every_observation_is_answered_once_with_a_lag(self, folder, model, columns):
        answers = self.answers(folder, stream_lines(columns, 0, 50), *self.NAMED, "--lag", "4")
        assert [answer["frame"] for answer in answers] == list(range(50))
        assert [answer["time"] for answer in answers] == [str(minute) for minute in columns["minute"][:50]]
        X = np.column_stack([columns["heart rate"], columns["speed"]])[:50]
        expected = model.predict_proba(X, dt=np.where(np.arange(50) == 40, 6, 1), lag=4)
        assert_allclose([list(answer["probabilities"].values()) for answer in answers], expected, atol=1e-12)

    def test_json_lines(self, folder, columns):
        entries = [{name: values[row] for name, values in columns.items()} for row in range(60)]
        entries[7]["speed"] = None
        text = "\n".join(json.dumps(entry) for entry in entries)
        altered = {**columns, "speed": ["" if row == 7 else value for row, value in enumerate(columns["speed"])]}
        expected = self.answers(folder, stream_lines(altered, 0, 60), *self.NAMED)
        assert [
            {**answer, "time": str(answer["time"])} for answer in self.answers(folder, text, *self.NAMED)
        ] == expected

    @pytest.mark.slow
    def test_lists_and_plain_columns(self, folder, columns):
        pairs = list(zip(columns["heart rate"][:9], columns["speed"][:9], strict=True))
        as_lists = self.answers(folder, "\n".join(json.dumps(pair) for pair in pairs))
        as_csv = self.answers(folder, "\n".join(f"{a},{b}" for a, b in pairs))
        with_names = self.answers(folder, "speed,heart rate\n" + "\n".join(f"{b},{a}" for a, b in pairs))
        assert as_lists == as_csv == with_names

    @pytest.mark.slow
    def test_a_restart_changes_nothing(self, folder, columns, tmp_path):
        whole = self.answers(folder, stream_lines(columns), *self.NAMED, "--lag", "2")
        state = ["--lag", "2", "--snapshot", tmp_path / "state.json"]
        parts = []
        for first, last in ((0, 30), (30, 31), (31, 120), (120, ROWS)):
            parts += self.answers(folder, stream_lines(columns, first, last), *self.NAMED, *state)
        waiting = {("p0", 78), ("p0", 79), ("p1", 78), ("p1", 79), ("p2", 78), ("p2", 79)}
        assert parts == [answer for answer in whole if (answer["sequence"], answer["frame"]) not in waiting]
        assert list(tmp_path.iterdir()) == [tmp_path / "state.json"]

    @pytest.mark.quick
    def test_sigterm_saves_the_state_and_ends_with_status_0(self, folder, columns, tmp_path):
        process = subprocess.Popen(
            [*DRHMM, "stream", folder / "forgetful.drhmm", "--snapshot", tmp_path / "state.json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        process.stdin.write("heart rate,speed\n1.0,2.0\n2.0,1.0\n")
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["frame"] for _ in range(2)] == [0, 1]
        assert not (tmp_path / "state.json").exists()
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=30)
        assert (process.returncode, error) == (0, "")
        (answer,) = self.answers(folder, "1.5,1.5\n", "--snapshot", tmp_path / "state.json")
        assert answer["frame"] == 2

    @pytest.mark.slow
    def test_saves_every_n_observations(self, folder, columns, tmp_path):
        state = tmp_path / "state.json"
        process = subprocess.Popen(
            [*DRHMM, "stream", folder / "forgetful.drhmm", "--snapshot", state, "--every", "2"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdin.write("1.0,2.0\n2.0,1.0\n3.0,1.0\n")
        process.stdin.flush()
        for _ in range(3):
            process.stdout.readline()
        process.kill()
        process.communicate()
        (answer,) = self.answers(folder, "1.5,1.5\n", "--snapshot", state)
        assert answer["frame"] == 2

    def unheard(self, folder, tmp_path, *more):
        """Three observations that are answered, and then one after the reader has gone: status and error."""
        command = [*DRHMM, "stream", folder / "forgetful.drhmm", *more]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(command, cwd=tmp_path, text=True, **streams) as process:
            process.stdin.write("1.0,2.0\n2.0,1.0\n3.0,1.0\n")
            process.stdin.flush()
            for _ in range(3):
                process.stdout.readline()
            process.stdout.close()
            process.stdin.write("4.0,1.0\n")
            process.stdin.flush()
            return process.wait(timeout=60), process.stderr.read()

    def test_a_closed_pipe_ends_it_with_status_1(self, folder, tmp_path):
        error = "drhmm stream: <stdin>, line 4: no reader: time step 3 and all after it were not answered\n"
        assert self.unheard(folder, tmp_path) == (1, error)

    @pytest.mark.slow
    def test_a_frame_without_an_answer_is_not_in_the_state(self, folder, tmp_path):
        _, error = self.unheard(folder, tmp_path, "--snapshot", "state.json")
        assert error.endswith("; with state.json, go on from line 4\n")
        (answer,) = self.answers(folder, "4.0,1.0\n", "--snapshot", tmp_path / "state.json")
        assert answer["frame"] == 3

    @pytest.mark.slow
    def test_an_answer_that_is_lost_leaves_the_state_that_was_saved_before(self, folder, tmp_path):
        self.answers(folder, "1,2\n2,1\n", "--snapshot", tmp_path / "state.json")
        script = f"{sys.executable} -m drhmm stream {folder}/forgetful.drhmm --snapshot state.json > /dev/full"
        result = subprocess.run(["bash", "-c", script], cwd=tmp_path, input=b"3,1\n", capture_output=True)
        assert result.returncode == 1
        assert result.stderr == (
            b"drhmm stream: <stdin>, line 1: No space left on device: time step 2 and all after it were not answered; "
            b"with state.json, go on from line 1\n"
        )
        (answer,) = self.answers(folder, "3,1\n", "--snapshot", tmp_path / "state.json")
        assert answer["frame"] == 2

    def test_an_answer_that_waited_for_the_end_and_is_lost_is_status_1(self, folder):
        script = f"{sys.executable} -m drhmm stream forgetful.drhmm --lag 3 > /dev/full"
        result = subprocess.run(["bash", "-c", script], cwd=folder, input=b"1,2\n2,1\n", capture_output=True)
        assert result.returncode == 1
        assert b"time step 0 and all after it were not answered\n" in result.stderr

    def test_a_closed_pipe_is_status_1_though_nobody_hears_why(self, folder):
        script = f"set -o pipefail; {sys.executable} -m drhmm stream model.drhmm 2>&1 < data.csv | (exec <&-; sleep 1)"
        assert subprocess.run(["bash", "-c", script], cwd=folder, timeout=60).returncode == 1

    @pytest.mark.slow
    def test_columns_without_a_line_of_names(self, folder, columns):
        expected = self.answers(folder, stream_lines(columns, 0, 20), *self.NAMED)
        named = [*self.NAMED, "--columns", ",".join(columns)]
        assert self.answers(folder, stream_lines(columns, 0, 20, header=False), *named) == expected

    @pytest.mark.slow
    def test_sequences_have_the_same_name_in_json_and_csv(self, folder, tmp_path):
        state = ["--sequence", "id", "--snapshot", tmp_path / "state.json"]
        self.answers(folder, '{"heart rate": 1, "speed": 2, "id": 7}\n', *state)
        (answer,) = self.answers(folder, "id,heart rate,speed\n 7 ,1,2\n", *state)
        assert (answer["sequence"], answer["frame"]) == ("7", 1)

    def test_wrong_names_are_never_skipped(self, folder):
        result = piped(["stream", folder / "forgetful.drhmm", "--bad-lines", "skip"], "speed,pulse\n1,2\n")
        assert (result.returncode, result.stdout) == (2, "")

    def test_numbers_in_the_first_line_are_not_names(self, tmp_path):
        live.model("window").save(tmp_path / "nameless.drhmm")
        result = piped(["stream", tmp_path / "nameless.drhmm"], "1,oops\n1,2\n")
        assert result.returncode == 2
        assert "line 1, column '2': not a number: 'oops'" in result.stderr

    def test_a_line_that_may_be_names_or_numbers_is_refused(self, numbered):
        result = piped(["stream", numbered], "2,1\n-5,5\n")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == (
            "drhmm stream: <stdin>, line 1: 2, 1 may be names of columns or an observation; "
            "use --header, or --columns 1,2 if no line has names\n"
        )

    @pytest.mark.slow
    def test_numbers_that_are_names_are_an_observation_if_columns_are_given(self, numbered):
        result = piped(["stream", numbered, "--columns", "1,2"], "2,1\n-5,5\n")
        assert result.stdout == piped(["stream", numbered], "[2, 1]\n[-5, 5]\n").stdout

    @pytest.mark.slow
    def test_numbers_are_names_if_there_is_a_header(self, numbered):
        result = piped(["stream", numbered, "--header"], "2,1\n-5,5\n")
        assert result.stdout == piped(["stream", numbered], "[5, -5]\n").stdout

    def test_a_line_of_numbers_is_an_observation_of_numbered_columns(self, numbered):
        assert len(piped(["stream", numbered], "1,3\n-5,5\n").stdout.splitlines()) == 2

    def test_a_line_of_tabs_is_a_missing_frame(self, folder):
        answers = self.answers(folder, "heart rate\tspeed\n1\t2\n\t\n3\t4\n", "--format", "tsv")
        assert [answer["frame"] for answer in answers] == [0, 1, 2]

    def test_a_bad_line_begins_no_sequence(self, folder, tmp_path):
        state = tmp_path / "state.json"
        more = ["--sequence", "id", "--snapshot", state, "--bad-lines", "skip"]
        piped(["stream", folder / "forgetful.drhmm", *more], "id,heart rate,speed\na,1,x\nb,1,2\n")
        assert [entry["sequence"] for entry in json.loads(state.read_text())["streams"]] == ["b"]

    @pytest.mark.slow
    @pytest.mark.parametrize("more", [["--lag", "1"], ["--time", "minute"], ["--sequence", "person"]])
    def test_a_restart_with_other_options_is_refused(self, folder, columns, tmp_path, more):
        state = ["--snapshot", tmp_path / "state.json"]
        self.answers(folder, stream_lines(columns, 0, 5), *state)
        result = piped(["stream", folder / "forgetful.drhmm", *state, *more], stream_lines(columns, 5, 9))
        assert result.returncode == 2
        assert f"the snapshot was made with another model, or with other options: {more[0][2:]}" in result.stderr

    def test_lines_that_were_read_are_answered_before_sigterm_ends_it(self, folder, tmp_path):
        """With a file as input: what is left of it has not been read."""
        path = tmp_path / "lines.csv"
        path.write_text("1.5,2.5\n" * 400_000)
        with open(path) as file:
            process = subprocess.Popen(
                [*DRHMM, "stream", folder / "forgetful.drhmm", "--snapshot", tmp_path / "state.json"],
                stdin=file,
                stdout=subprocess.PIPE,
                bufsize=0,  # communicate does not know what readline has put aside
            )
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            n_answers = 1 + len(process.communicate(timeout=60)[0].splitlines())
            consumed = os.lseek(file.fileno(), 0, os.SEEK_CUR)
        assert process.returncode == 0
        assert n_answers < 400_000
        assert 0 <= consumed - len("1.5,2.5\n") * n_answers < len("1.5,2.5\n")

    @pytest.mark.slow
    def test_sigterm_ends_it_though_nobody_reads(self, folder, tmp_path):
        state = tmp_path / "state.json"
        process = subprocess.Popen(
            [*DRHMM, "stream", folder / "forgetful.drhmm", "--snapshot", state, "--every", "1000000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        os.set_blocking(process.stdin.fileno(), False)
        sent = 0
        while sent < 3_000_000:  # until both pipes are full
            try:
                sent += os.write(process.stdin.fileno(), b"1.5,2.5\n" * 1000)
            except BlockingIOError:
                if sent > 100_000:
                    break
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 1
        n_answers = process.stdout.read().count(b"\n")
        process.stdin.close()
        process.stdout.close()
        (answer,) = self.answers(folder, "1.5,2.5\n", "--snapshot", state)
        assert answer["frame"] == n_answers

    def test_a_bad_line_can_be_skipped(self, folder):
        result = piped(["stream", folder / "forgetful.drhmm", "--bad-lines", "skip"], "1,2\n1,oops\n2,1\n")
        assert result.returncode == 0
        assert [json.loads(line)["frame"] for line in result.stdout.splitlines()] == [0, 1]
        assert result.stderr.startswith("drhmm stream: <stdin>, line 2, column 'speed': not a number: 'oops'")
        assert result.stderr.count("\n") == 1

    @pytest.mark.slow
    def test_a_line_without_end_can_be_skipped(self, folder):
        text = "1,2\n" + "1" * (1 << 25) + ",2\n2,1\n"
        result = piped(["stream", folder / "forgetful.drhmm", "--bad-lines", "skip"], text)
        assert result.returncode == 0
        assert [json.loads(line)["frame"] for line in result.stdout.splitlines()] == [0, 1]
        assert result.stderr == "drhmm stream: <stdin>, line 2: a line of more than 16777216 bytes\n"

    @pytest.mark.slow
    def test_a_long_line_is_not_too_long_because_of_the_next_one(self, folder):
        longest = "[1, 2" + "]".rjust((1 << 24) - 5)
        answers = self.answers(folder, longest + "\n[2, 1]\n")
        assert [answer["frame"] for answer in answers] == [0, 1]

    @pytest.mark.slow
    def test_a_bad_line_leaves_the_state_before_it(self, folder, tmp_path):
        state = ["--snapshot", tmp_path / "state.json"]
        assert piped(["stream", folder / "forgetful.drhmm", *state], "1,2\n2,1\n1,oops\n").returncode == 2
        (answer,) = self.answers(folder, "1.5,1.5\n", *state)
        assert answer["frame"] == 2

    def test_never_imports_scikit_learn(self, folder):
        code = (
            "import sys; from drhmm.cli import main; main(['stream', 'forgetful.drhmm']); "
            "print('sklearn' in sys.modules, file=sys.stderr)"
        )
        result = subprocess.run([sys.executable, "-c", code], cwd=folder, input="1,2\n", capture_output=True, text=True)
        assert result.stderr == "False\n"


BAD_LINES = {
    "many digits": ("1," + "9" * 5000 + "\n", [], "line 1, column 'speed': an infinite value: '" + "9" * 56 + "...\n"),
    "many digits in JSON": ('{"heart rate": 1, "speed": [' + "9" * 4000 + "]}\n", [], "not a number: [9"),
    "a long name": ("x" * 5000 + ",b\n", [], "there is no column 'heart rate'; there are " + "x" * 57 + "..., b\n"),
    "a word": ("1,2\n1,abc\n", [], "<stdin>, line 2, column 'speed': not a number: 'abc'"),
    "infinity": ("1,inf\n", [], "line 1, column 'speed': an infinite value: 'inf'"),
    "underscores": ("1,2\n1,1_000\n", [], "line 2, column 'speed': not a number: '1_000'"),
    "too few fields": ("1,2\n1\n", [], "line 2: 1 fields instead of 2"),
    "too many fields": ("1,2,3\n", [], "line 1: 3 fields, the model was learned from 2 features"),
    "a missing column": ("heart rate,pace\n", [], "line 1: there is no column 'speed'; there are heart rate, pace"),
    "two equal columns": ("speed,speed\n", [], "line 1: two columns have the name 'speed'"),
    "an open quote": ('1,"2\n', [], "line 1: unexpected end of data"),
    "half an object": ('{"speed": 1', [], "line 1: not JSON at character 12"),
    "a number of JSON": ("[1, 2]\n5\n", [], "line 2: neither an object nor a list: '5'"),
    "a short list": ("[1]\n", [], "line 1: 1 numbers, the model needs 2"),
    "text in JSON": ('{"heart rate": 1, "speed": "2"}\n', [], "line 1, column 'speed': not a number: '2'"),
    "a list in JSON": ('{"heart rate": [1], "speed": 2}\n', [], "line 1, column 'heart rate': not a number: [1]"),
    "a giant number": ('{"heart rate": 1, "speed": 1e999}\n', [], "line 1, column 'speed': an infinite value"),
    "a giant integer": ('{"heart rate": 1, "speed": 1' + 400 * "0" + "}\n", [], "line 1, column 'speed': an infinite"),
    "an absent name": ('{"heart rate": 1}\n', [], "line 1: there is no 'speed'"),
    "deep JSON": ("[" * 100_000 + "\n", [], "line 1: not JSON"),
    "not UTF-8": ("1,2\n1,\udcff\n", [], "line 2: not UTF-8 text"),
    "time that stands still": (
        "heart rate,speed,t\n1,2,5\n1,2,5\n",
        ["--time", "t"],
        "line 3, column 't': time does not increase: 5 after 5",
    ),
    "a strange time": ("heart rate,speed,t\n1,2,noon\n", ["--time", "t"], "line 2, column 't': not a time: 'noon'"),
    "a list as time": (
        '{"heart rate": 1, "speed": 2, "t": [1]}\n',
        ["--time", "t"],
        "line 1, column 't': not a time: [1]",
    ),
    "a giant time": (
        '{"heart rate": 1, "speed": 2, "t": 1' + 400 * "0" + "}\n",
        ["--time", "t"],
        "line 1, column 't': not a time: an integer of 1329 bits",
    ),
    "a giant gap": (
        "heart rate,speed,t\n1,2,0\n1,2,1e300\n",
        ["--time", "t", "--step", "1"],
        "line 3, column 't': 1e+300 steps of 1 lie between 0 and 1",
    ),
    "a step with a unit": (
        "heart rate,speed,t\n1,2,0\n",
        ["--time", "t", "--step", "1s"],
        "line 2, column 't': the time is a number without a known unit, but the step of 1 s has one",
    ),
    "an empty sequence": (
        "heart rate,speed,id\n1,2,\n",
        ["--sequence", "id"],
        "line 2, column 'id': there is no sequence name",
    ),
    "a strange sequence": (
        '{"heart rate": 1, "speed": 2, "id": 1.5}\n',
        ["--sequence", "id"],
        "line 1, column 'id': not a sequence name: 1.5",
    ),
    "no names for the time": (
        "1,2,3\n",
        ["--time", "t"],
        "line 1: there are no names of columns, but --time needs",
    ),
    "a name twice": ('{"heart rate": 1, "speed": 2, "speed": 3}\n', [], "line 1: not JSON: a name occurs twice"),
    "no time": ('{"heart rate": 1, "speed": 2}\n', ["--time", "t"], "line 1, column 't': there is no value"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "more", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_lines_are_one_line_with_their_place(folder, text, more, message):
    result = piped(["stream", folder / "forgetful.drhmm", *more], text.encode(errors="surrogateescape"))
    assert result.returncode == 2
    assert result.stderr.startswith("drhmm stream: <stdin>, ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


BAD_TABLES = {
    "a word": ("a,b,y\n1,2,0\n1,x,1\n", "line 3, column 'b': not a number: 'x'"),
    "a word late": ("a,b,y\n" + "1,2,0\n" * 60_000 + "1,x,1\n", "line 60002, column 'b': not a number: 'x'"),
    "infinity": ("a,b,y\n1,-inf,0\n", "line 2, column 'b': an infinite value: '-inf'"),
    "semicolons": ("a;b;y\n1,5;2,5;0\n", "line 1: the fields are separated by semicolons instead of commas"),
    "a short row": ("a,b,y\n1,2,0\n\n1,2\n", "line 4: 2 fields instead of 3"),
    "a quoted line break before it": ('a,b,y\n1,2,"0\n0"\n1,x,1\n', "line 4, column 'b': not a number: 'x'"),
    "no names": ("1,2,0\n1,2,1\n", "line 1: the first line has numbers where names should be; use --no-header"),
    "equal names": ("a,a,y\n1,2,0\n", "line 1: two columns have the name 'a'"),
    "an empty file": ("", "the file is empty"),
    "no rows": ("a,b,y\n", "there are no rows"),
    "no label column": ("a,b\n1,2\n", "--label: there is no column 'y'; there are a, b"),
    "a column without a name": (",b,y\n1,2,0\n", "line 1: column 1 has no name"),
    "not UTF-8": ("a,b,y\n1,2,0\n1,\udcff,1\n", "line 3: not UTF-8 text"),
    "an open quote": ('a,b,y\n1,2,0\n1,"2,1\n1,2,0\n', "line 3: unexpected end of data"),
    "no features": ("y\n0\n", "there is no column left for the features"),
    "one class": ("a,b,y\n1,2,0\n2,1,0\n", "y has one class only"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_one_line_with_their_place(tmp_path, capsys, text, message):
    (tmp_path / "data.csv").write_bytes(text.encode(errors="surrogateescape"))
    status = main(["fit", str(tmp_path / "data.csv"), "--label", "y", "--output", str(tmp_path / "model.drhmm")])
    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith("drhmm fit: ")
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "model.drhmm").exists()


#: Command lines with the message that they give.
BAD_CALLS = {
    "no such file": ("fit nothing.csv --label y --output x.drhmm", "nothing.csv"),
    "no such ending": ("fit data.xls --label y --output x.drhmm", "the ending must be one of"),
    "no such folder": ("fit data.csv --label y --output no/x.drhmm", "not a file in an existing"),
    "neither labels nor states": ("fit data.csv --output x.drhmm", "give --label COLUMN, or --states N"),
    "a strange share": ("fit data.csv --label y --output x --holdout 1", "--holdout must be"),
    "no such model": ("predict nothing.drhmm data.csv", "nothing.drhmm"),
    "not a model": ("info data.csv", "data.csv: not a model file"),
    "a model cut short": ("info cut.drhmm", "cut.drhmm: the file is damaged or cut short"),
    "no such column": ("predict model.drhmm data.csv --sequence who", "--sequence: there is no column"),
    "other columns": (
        "predict model.drhmm other.csv --no-sequence --no-time",
        "there is no column 'speed'; there are heart rate, pace. The model needs 'speed'",
    ),
    "lag of a filter": ("predict model.drhmm data.csv --method filter --lag 1", "--lag goes with"),
    "a strange output": ("predict model.drhmm data.csv --output x.xls", "--output: the ending must be"),
    "time backwards": ("predict model.drhmm back.csv --no-sequence --time t", "back.csv, line 3, column 't': time"),
    "not Parquet": ("predict model.drhmm not.parquet", "not.parquet: not a Parquet file"),
    "not npz": ("predict model.drhmm not.npz", "not.npz: not an npz file"),
    "npz with objects": ("predict model.drhmm objects.npz", "objects.npz: not an npz file of plain arrays"),
    "npz without X": ("predict model.drhmm without.npz", "an npz file needs a two-dimensional array X"),
    "a snapshot of something else": ("stream model.drhmm --snapshot data.csv", "data.csv: not a snapshot"),
    "a snapshot in no folder": ("stream model.drhmm --snapshot no/s.json", "not a file in an existing"),
    "step 0": ("predict model.drhmm data.csv --time minute --step 0", "--step must be in (0, inf)"),
    "step -1": ("fit data.csv --label activity --output x --time minute --step -1", "--step"),
    "step inf": ("stream model.drhmm --time minute --step inf", "--step must be a finite number"),
    "step without time": ("stream model.drhmm --no-time --step 1", "goes with --time or --false-alarms"),
    "numbers of states beside labels": (
        "fit data.csv --label activity --states 2-4 --output x.drhmm",
        "--states A-B compares models without labels",
    ),
    "novelty-rate alone": (
        "fit data.csv --label activity --novelty-rate 0.01 --output x.drhmm",
        "--novelty-rate goes with --novelty",
    ),
    "events of no alarm": ("stream model.drhmm --events-only", "--events-only goes with --false-alarms"),
    "hold-off alone": ("stream model.drhmm --hold-off 5", "--hold-off goes with --false-alarms"),
    "threads": ("predict model.drhmm data.csv --threads 0", "--threads must be at least 1"),
    "seed": ("fit data.csv --label activity --output x --seed -1", "--seed must be at least 0"),
    "a label as a feature": (
        "fit data.csv --label activity --features speed,activity --output x",
        "--features: 'activity' is the label",
    ),
    "a feature twice": (
        "fit data.csv --label activity --features speed,speed --output x",
        "--features: 'speed' appears twice",
    ),
    "a column named as a result": ("predict model.drhmm results.csv --sequence state --no-time", "the column 'state'"),
    "features in another order": (
        "predict model.drhmm data.csv --features 'speed,heart rate'",
        "data.csv: --features has 'speed' where the model was learned from 'heart rate'",
    ),
    "a column named as a probability": (
        "predict model.drhmm results.csv --sequence 'p(run)' --probabilities --no-time",
        "the column 'p(run)' has the name of a result column",
    ),
    "a model in place of its data": (
        "fit data.csv --label activity --output ./data.csv",
        "would replace the input data.csv",
    ),
    "a result in place of its data": (
        "predict model.drhmm data.csv --output link.csv",
        "link.csv: would replace the input data.csv",
    ),
    "a result in place of its model": (
        "predict model.csv data.csv --output model.csv",
        "would replace the input model.csv",
    ),
    "a snapshot in place of its model": (
        "stream model.drhmm --snapshot model.drhmm",
        "would replace the input model.drhmm",
    ),
    "Parquet with equal names": (
        "predict model.drhmm equal.parquet",
        "equal.parquet: two columns have the name 'speed'",
    ),
    "a wrong label": ("predict model.drhmm data.csv --label typo --output o.csv", "--label: there is no"),
    "npz without columns": ("predict model.drhmm empty.npz", "with at least one column"),
    "npy as npz": ("predict model.drhmm npy.npz", "npy.npz: not an npz file"),
    "npz with equal names": ("predict model.drhmm equal.npz", "two columns have the name 'speed'"),
    "npz with a second column": ("predict model.drhmm second.npz", "there are two columns 'speed'"),
    "npz without a time": ("predict model.drhmm nat.npz --time t --no-sequence", "row 0: the time is missing"),
    "picoseconds": ("predict model.drhmm fine.npz --time t --no-sequence", "column 't': times in units of ps"),
    "missing sequences": ("predict model.drhmm ids.csv --sequence id --no-time", "csv, line 3, column 'id': the seq"),
    "names twice": (
        "stream model.drhmm --header --columns 'speed,heart rate'",
        "--header and --columns do not go together",
    ),
    "every 0": ("stream model.drhmm --every 0", "--every must be at least 1"),
    "a negative lag": ("stream model.drhmm --lag -1", "lag must be at least 0"),
    "demo noise": ("demo --noise -1", "noise must be in"),
    "demo windows": ("demo --train 0", "n_per_state must be at least 1"),
    "demo folder": ("demo --output no/such/folder/demo.png", "not a file in an existing folder"),
}


@pytest.mark.parametrize(("command", "message"), BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_bad_calls_are_one_line_and_status_two(folder, tmp_path, capsys, monkeypatch, command, message):
    for name in ("data.csv", "model.drhmm"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "cut.drhmm").write_bytes((folder / "model.drhmm").read_bytes()[:-9])
    (tmp_path / "other.csv").write_text("heart rate,pace\n1,2\n")
    (tmp_path / "back.csv").write_text("heart rate,speed,t\n1,2,2026-01-02\n1,2,2026-01-01\n1,2,2026-01-03\n")
    for name in ("not.parquet", "not.npz"):
        (tmp_path / name).write_bytes(b"something else")
    np.savez(tmp_path / "objects.npz", X=np.array([[None]]))
    np.savez(tmp_path / "without.npz", Y=np.zeros((2, 2)))
    (tmp_path / "results.csv").write_text("state,p(run),heart rate,speed\na,b,1,2\n")
    (tmp_path / "model.csv").write_bytes((folder / "model.drhmm").read_bytes())
    (tmp_path / "link.csv").symlink_to("data.csv")
    equal = pyarrow.table([[1.0], [2.0], [3.0]], names=["heart rate", "speed", "speed"])
    pyarrow.parquet.write_table(equal, tmp_path / "equal.parquet")
    (tmp_path / "ids.csv").write_text("id,heart rate,speed\na,1,2\n,1,2\n")
    np.savez(tmp_path / "empty.npz", X=np.zeros((3, 0)))
    with open(tmp_path / "npy.npz", "wb") as file:
        np.save(file, np.zeros((3, 2)))
    names = ["heart rate", "speed"]
    np.savez(tmp_path / "equal.npz", X=np.zeros((3, 3)), feature_names=[*names, "speed"])
    np.savez(tmp_path / "second.npz", X=np.zeros((3, 2)), feature_names=names, speed=np.ones(3))
    times = np.array(["NaT", "2026-01-01", "2026-01-02"], dtype="datetime64[s]")
    np.savez(tmp_path / "nat.npz", X=np.zeros((3, 2)), feature_names=names, t=times)
    np.savez(tmp_path / "fine.npz", X=np.zeros((3, 2)), feature_names=names, t=np.arange(3).astype("M8[ps]"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1,2\n")))
    assert main(shlex.split(command)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"drhmm {command.split()[0]}: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_result_that_would_replace_its_data_leaves_them(folder, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes((folder / "data.csv").read_bytes())
    main(["predict", str(folder / "model.drhmm"), str(data), "--output", str(data)])
    assert data.read_bytes() == (folder / "data.csv").read_bytes()


@pytest.mark.slow
def test_numbers_are_never_read_as_dates(folder, model):
    """20260131 is a number, whatever date.fromisoformat says of it."""
    rows = "\n".join(f"1,2,{20260125 + k}" for k in range(10))
    (folder / "counter.csv").write_text("heart rate,speed,n\n" + rows + "\n")
    result = piped(["predict", folder / "model.drhmm", folder / "counter.csv", "--time", "n", "--no-sequence"], "")
    expected = model.predict_proba(np.tile([1.0, 2.0], (10, 1))).max(axis=1)
    found = [float(row["probability"]) for row in csv.DictReader(io.StringIO(result.stdout))]
    assert_allclose(found, expected, atol=1e-15)


START = 1_760_000_000 * 10**9 + 1


def exact_times(kind):
    """A time column with a step of 1 microsecond, where float64 has 256 ns, and the length of a step."""
    ticks = [START + 1000 * row + 3000 * (row >= 100) for row in range(ROWS)]
    dates = np.array(ticks, dtype="M8[ns]")
    if kind == "integers":
        return ticks, 1e-6
    return (dates if kind == "dates" else dates.astype("M8[us]").astype(str).tolist()), 1e-6


def write_times(folder, columns, kind, ending):
    times, step = exact_times(kind)
    table = {"t": times, **{name: columns[name] for name in ("heart rate", "speed", "activity")}}
    path = folder / f"times.{ending}"
    if ending == "csv":
        write_csv(path, table)
    else:
        pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path, step


EXACT = [("integers", "csv"), ("integers", "parquet"), ("microseconds", "csv"), ("dates", "parquet")]


@pytest.mark.parametrize(("kind", "ending"), EXACT)
def test_the_step_of_times_is_exact(folder, columns, kind, ending):
    path, step = write_times(folder, columns, kind, ending)
    output = folder / "times.drhmm"
    named = ["--label", "activity", "--time", "t", "--holdout", "0", "--basis", "50"]
    assert main(["fit", str(path), *named, "--output", str(output)]) == 0
    assert drhmm.load(output).settings["time_step"] == step


@pytest.mark.filterwarnings("ignore:no row has evidence")  # windows never fill up between gaps
def test_gaps_of_nanoseconds_are_those_of_frames(folder, model, columns, capsys):
    ticks = START + 400 * np.arange(ROWS) + 200 * (np.arange(ROWS) % 7 == 0)
    heart, speed = columns["heart rate"], columns["speed"]
    table = pyarrow.table({"t": ticks.astype("M8[ns]"), "heart rate": heart, "speed": speed})
    pyarrow.parquet.write_table(table, folder / "ns.parquet")
    named = ["--time", "t", "--step", "1e-7", "--no-sequence"]
    assert main(["predict", str(folder / "model.drhmm"), str(folder / "ns.parquet"), *named]) == 0
    found = [float(row["probability"]) for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    with pytest.warns(UserWarning, match="a step of 1e-07 s does not suit the times"):
        expected = dataframes.predict(model, table, sequence=False, time="t", step=1e-7)
    assert found == expected["probability"].to_pylist()


@pytest.mark.filterwarnings("ignore:no row has evidence")  # windows never fill up between gaps
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["integers", "microseconds"])
def test_gaps_of_a_stream_are_exact(folder, model, columns, kind):
    times, step = exact_times(kind)
    heart, speed = columns["heart rate"], columns["speed"]
    lines = "\n".join(f"{a},{b},{t}" for a, b, t in zip(heart, speed, times, strict=True))
    quarter = 250 if kind == "integers" else step / 4  # a plain number is in the unit of the times, here nanoseconds
    more = ["--time", "t", "--step", quarter]
    result = piped(["stream", folder / "forgetful.drhmm", *more], "heart rate,speed,t\n" + lines)
    found = [json.loads(line)["probability"] for line in result.stdout.splitlines()]
    dt = np.full(ROWS, 4)
    dt[[0, 100]] = 1, 16
    expected = model.predict_proba(np.column_stack([heart, speed]), method="filter", dt=dt).max(axis=1)
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("time", ["1760000000000000001", "2026-01-01T00:00:00.000001"])
def test_the_state_of_a_stream_keeps_the_digits_of_times(folder, tmp_path, time):
    more = ["--time", "t", "--step", "1e-6", "--snapshot", tmp_path / "state.json"]
    piped(["stream", folder / "forgetful.drhmm", *more], f"heart rate,speed,t\n1,2,{time}\n")
    assert json.loads((tmp_path / "state.json").read_text())["streams"][0]["last"] == time


@pytest.mark.slow
def test_dates_that_go_back_are_shown_with_their_digits(folder):
    lines = "1,2,1969-12-31T23:59:59.500002\n1,2,1969-12-31T23:59:59.500001\n"
    result = piped(["stream", folder / "forgetful.drhmm", "--time", "t"], "heart rate,speed,t\n" + lines)
    assert "time does not increase: 1969-12-31T23:59:59.500001 after 1969-12-31T23:59:59.500002" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="datetime reads three or six digits of a second")
def test_dates_as_text_have_nanoseconds(folder):
    (folder / "text.csv").write_text(
        "heart rate,speed,t\n1,2,2026-01-01T00:00:00.000000002\n1,2,2026-01-01T00:00:00.000000001\n"
    )
    result = piped(["predict", folder / "model.drhmm", folder / "text.csv", "--time", "t", "--no-sequence"], "")
    assert "line 3, column 't': time does not increase: 2026-01-01T00:00:00.000000001 after" in result.stderr


@pytest.mark.slow
def test_dates_of_any_year_are_exact(folder):
    (folder / "years.csv").write_text(
        "heart rate,speed,t\n1,2,9999-01-01T00:00:00.000002\n1,2,9999-01-01T00:00:00.000001\n"
    )
    result = piped(["predict", folder / "model.drhmm", folder / "years.csv", "--time", "t", "--no-sequence"], "")
    assert "time does not increase: 9999-01-01T00:00:00.000001 after 9999-01-01T00:00:00.000002" in result.stderr


@pytest.mark.slow
def test_dates_of_parquet_may_lie_in_any_year(folder):
    dates = np.array(["2026-01-01", "9999-01-01"], dtype="M8[us]")
    table = pyarrow.table({"t": dates, "heart rate": [1.0, 1.0], "speed": [2.0, 2.0]})
    pyarrow.parquet.write_table(table, folder / "years.parquet")
    named = ["--time", "t", "--step", "86400", "--no-sequence"]
    result = piped(["predict", folder / "model.drhmm", folder / "years.parquet", *named], "")
    assert [line[:10] for line in result.stdout.splitlines()[1:]] == ["2026-01-01", "9999-01-01"]


@pytest.mark.parametrize(("unit", "step"), [("D", 86400), ("h", 3600), ("10s", 10), ("ms", 0.001)])
def test_dates_of_every_unit(folder, columns, unit, step):
    X = np.column_stack([columns["heart rate"], columns["speed"]])
    np.savez(folder / "units.npz", X=X, y=columns["activity"], t=np.arange(ROWS).astype(f"M8[{unit}]"))
    output = folder / "units.drhmm"
    named = ["--label", "y", "--time", "t", "--holdout", "0", "--basis", "50", "--output", str(output)]
    assert main(["fit", str(folder / "units.npz"), *named]) == 0
    assert drhmm.load(output).settings["time_step"] == step


@pytest.mark.slow
def test_dates_of_parquet_come_out_as_dates(folder, columns):
    stamps = np.datetime64("2026-01-01T00:00:00") + np.arange(ROWS).astype("timedelta64[m]")
    table = {"t": stamps, "heart rate": columns["heart rate"], "speed": columns["speed"]}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "dates.parquet")
    named = ["--time", "t", "--step", "60", "--no-sequence"]
    result = piped(["predict", folder / "model.drhmm", folder / "dates.parquet", *named], "")
    assert result.stdout.splitlines()[2].startswith("2026-01-01T00:01:00")


@pytest.fixture
def forge(folder, tmp_path):
    """Change the state of a run as one who knows the checksum can, and load it."""
    from drhmm.cli.live_lines import Observation
    from drhmm.cli.live_sequences import LiveSequences, _checksum

    def load(change, lag=0, sequence=None, time=None):
        options = {"lag": lag, "sequence": sequence, "time": time, "step": None if time is None else 1.0}
        sequences = LiveSequences(drhmm.load(folder / "model.drhmm"), options)
        for t in range(3):
            sequences.step(Observation(np.zeros(2), None if sequence is None else "ann", None if time is None else t))
        sequences.save(tmp_path / "state.json")
        content = json.loads((tmp_path / "state.json").read_text())
        content.pop("checksum")
        change(content, content["streams"][0])
        content["checksum"] = _checksum(content)
        (tmp_path / "state.json").write_text(json.dumps(content))
        sequences.load(tmp_path / "state.json")

    return load


@pytest.mark.parametrize("entry", ["version", "options", "streams", "sequence", "last", "waiting", "snapshot"])
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, "missing"])
def test_forged_states_are_refused_by_name(forge, entry, value):
    def change(content, stream):
        target = content if entry in content else stream
        before = target.pop(entry)
        if value != "missing":
            target[entry] = value
        if target.get(entry, "missing") == before or (entry, value) == ("streams", []):
            raise NotImplementedError  # nothing is forged

    with pytest.raises((drhmm.SnapshotError, NotImplementedError), match=r"state\.json: |^$"):
        forge(change)


NAMED = {"sequence": "who", "time": "when", "lag": 2}

FORGED = {
    "waiting is any JSON": (lambda state, one: one.update(waiting=[{"a": 1}, 2]), NAMED, "time {'a': 1}"),
    "waiting is NaN": (lambda state, one: one.update(waiting=[float("nan"), 2]), NAMED, "not a snapshot"),
    "waiting is infinite": (lambda state, one: one.update(waiting=["1e999", 2]), NAMED, "time '1e999'"),
    "waiting is nothing": (lambda state, one: one.update(waiting=[None, 2]), NAMED, "time None"),
    "waiting is of another frame": (
        lambda state, one: one.update(waiting=[1, 7]),
        NAMED,
        "time is 7, not 2",
    ),
    "waiting without times": (lambda state, one: one.update(waiting=[1, 2]), {"lag": 2}, "the time 1, invalid"),
    "a time without times": (
        lambda state, one: one.update(last=5),
        {},
        "the time 5, invalid with these options",
    ),
    "the same sequence twice": (
        lambda state, one: state["streams"].append(one),
        NAMED,
        "the sequence 'ann' occurs twice",
    ),
    "a name without names": (
        lambda state, one: one.update(sequence="x"),
        {},
        "the sequence 'x', invalid with these options",
    ),
    "no name among names": (
        lambda state, one: one.update(sequence=None),
        NAMED,
        "the sequence None, invalid",
    ),
    "a name with spaces": (
        lambda state, one: one.update(sequence=" ann"),
        NAMED,
        "the sequence ' ann', invalid",
    ),
    "one entry more": (lambda state, one: state.update(more=1), {}, "missing or unknown entries"),
    "a long one": (
        lambda state, one: state.update(version="9" * 5000),
        {},
        r"has the format '9{50,60}\.\.\., this",
    ),
}


@pytest.mark.parametrize(("change", "options", "message"), FORGED.values(), ids=FORGED.keys())
def test_forged_states_are_checked_as_strictly_as_models(forge, change, options, message):
    with pytest.raises(drhmm.SnapshotError, match=rf"state\.json: .*{message}"):
        forge(change, **options)


def test_a_forged_state_has_the_lag_of_the_run(forge, folder):
    other = drhmm.load(folder / "model.drhmm").stream(1).snapshot()
    with pytest.raises(drhmm.SnapshotError, match=r"state\.json: the state of a sequence has the lag 1, not 0"):
        forge(lambda state, one: one.update(snapshot=base64.b64encode(other).decode()))


@pytest.mark.slow
def test_a_snapshot_of_another_model_is_refused(folder, tmp_path):
    live.model("window").save(tmp_path / "other.drhmm")
    piped(["stream", tmp_path / "other.drhmm", "--snapshot", tmp_path / "state.json"], "1,2\n")
    result = piped(["stream", folder / "forgetful.drhmm", "--snapshot", tmp_path / "state.json"], "1,2\n")
    assert result.returncode == 2
    assert "state.json: the snapshot belongs to another model" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda text: text.replace('"last": null', '"last": 5'), lambda text: text[:-20]])
def test_a_damaged_snapshot_is_refused_and_stays(folder, tmp_path, change):
    state = tmp_path / "state.json"
    piped(["stream", folder / "forgetful.drhmm", "--snapshot", state], "1,2\n")
    state.write_text(change(state.read_text()))
    before = state.read_bytes()
    result = piped(["stream", folder / "forgetful.drhmm", "--snapshot", state], "1,2\n")
    assert result.returncode == 2
    assert "state.json: " in result.stderr
    assert state.read_bytes() == before


class TestInfo:
    def test_says_what_is_in_a_model(self, folder, model, capsys):
        assert main(["info", str(folder / "model.drhmm")]) == 0
        printed = capsys.readouterr().out
        for words in (
            model.fingerprint,
            "2 (heart rate, speed)",
            "2 samples",
            "kernel centres",
            "rate 0.001, duration 50 time steps",
            "rest ",
            "walk ",
            "window=2",
        ):
            assert words in printed
        assert "learned_rows" not in printed

    def test_as_json(self, folder, model, capsys):
        assert main(["info", str(folder / "model.drhmm"), "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert "learned_rows" in model.settings
        assert "learned_rows" not in content["settings"]
        assert content["classes"] == model.classes.tolist()
        assert_allclose(content["transmat"], model.transmat)


@pytest.fixture(scope="module")
def learned(folder):
    """A model with durations."""
    more = ["--durations", "negative-binomial", "--min-duration", "3", "--basis", "30"]
    assert main(fit_arguments(folder, "data.csv", "durations.drhmm", *more)) == 0
    return folder / "durations.drhmm"


class TestDurations:
    def test_fit_learns_them(self, learned):
        assert (drhmm.load(learned).durations.minimum >= 3).all()

    def test_info_prints_mean_shape_and_minimum(self, learned, capsys):
        assert main(["info", str(learned)]) == 0
        printed = capsys.readouterr().out
        durations = drhmm.load(learned).durations
        assert re.search(rf"{durations.mean[0]:.1f} +{durations.shape[0]}, {durations.minimum[0]}\+", printed)

    def test_info_has_them_as_json(self, learned, capsys):
        assert main(["info", str(learned), "--json"]) == 0
        content = json.loads(capsys.readouterr().out)["durations"]
        durations = drhmm.load(learned).durations
        assert content == {
            "mean": durations.mean.tolist(),
            "shape": durations.shape.tolist(),
            "minimum": durations.minimum.tolist(),
        }

    def test_a_wrong_minimum_is_one_line(self, folder, capsys):
        assert main(fit_arguments(folder, "data.csv", "wrong.drhmm", "--min-duration", "0")) == 2
        assert "min_duration must be at least 1, got 0" in capsys.readouterr().err


class TestDemo:
    def test_prints_accuracies_and_times_and_writes_a_picture(self, tmp_path, capsys):
        output = tmp_path / "demo.png"
        assert main(["demo", "--output", str(output), "--train", "50", "--frames", "300"]) == 0
        printed = capsys.readouterr().out
        for words in (
            "fit:",
            "predict:",
            "without the chain",
            "filtered",
            "smoothed",
            "of time steps right",
            str(output),
        ):
            assert words in printed
        assert output.read_bytes().startswith(PNG)

    @pytest.mark.slow
    def test_repeats_itself(self, tmp_path, capsys):
        lines = []
        for name in ("a.png", "b.png"):
            main(["demo", "--output", str(tmp_path / name), "--train", "50", "--frames", "300", "--seed", "5"])
            lines.append([line for line in capsys.readouterr().out.splitlines() if "of time steps right" in line])
        assert lines[0] == lines[1]


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "stream", "info", "rename", "demo"])
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert "example: " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["fit"], ["nonsense"], [], ["stream", "m", "--lag", "x"]])
def test_wrong_options_are_one_line_and_status_two(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_installed_module_runs():
    result = subprocess.run([*DRHMM, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"drhmm {__version__}"
