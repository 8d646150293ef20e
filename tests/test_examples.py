"""Examples do what they say, in few lines; the gallery runs all of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
SHORT = sorted(path.name for pattern in ("plot_*_job_*.py", "plot_*_real_*.py") for path in EXAMPLES.glob(pattern))


def run(name, monkeypatch):
    """The names of an example after it has run in its folder, as the gallery runs it."""
    monkeypatch.chdir(EXAMPLES)
    names = {}
    exec(compile((EXAMPLES / name).read_text(), name, "exec"), names)
    return names


@pytest.mark.parametrize("name", SHORT)
def test_a_job_or_a_question_takes_at_most_thirty_lines(name):
    text = (EXAMPLES / name).read_text()
    docstring = ast.parse(text).body[0].end_lineno
    lines = [line for line in text.splitlines()[docstring:] if line.strip() and not line.startswith("#")]
    assert len(lines) <= 30


def test_labels_for_a_table_of_several_recordings(monkeypatch):
    names = run("plot_01_job_my_table.py", monkeypatch)
    assert names["evaluation"].accuracy > 0.9
    assert set(names["states"].state) == {"vacant", "occupied"}


def test_alarms_for_a_machine(monkeypatch):
    names = run("plot_03_job_alarms.py", monkeypatch)
    found = [names["fault"][episode.peak] for episode in names["episodes"]]
    assert {"bias", "swap"} <= set(found)
    assert found.count("normal") <= 1


def test_minutes_of_apnea_in_nights_of_other_people(monkeypatch, capsys):
    names = run("plot_04_real_apnea.py", monkeypatch)
    assert set(names["train"].night).isdisjoint(names["test"].night)
    assert names["evaluation"].accuracy > names["evaluation"].baseline + 0.1
    assert "a33" in capsys.readouterr().out


def test_the_whole_trip_gives_better_probabilities_than_its_points(monkeypatch, capsys):
    names = run("plot_05_real_gps.py", monkeypatch)
    assert set(names["train"].trip).isdisjoint(names["test"].trip)
    assert names["found"]["whole trip"].log_loss < names["found"]["without the chain"].log_loss
    assert names["found"]["whole trip"].accuracy > names["found"]["live"].baseline + 0.3
    assert "segments in the labels" in capsys.readouterr().out


def test_why_a_time_step_has_its_label(monkeypatch, capsys):
    names = run("plot_why.py", monkeypatch)
    found = names["explained"]
    parts = found.past + found.future + found.average + sum(found.columns.values())
    assert parts == pytest.approx(found.log_odds, abs=1e-9)
    assert "light" in capsys.readouterr().out


def test_the_context_and_the_chain_help_with_a_raw_signal(monkeypatch, capsys):
    found = run("plot_raw_signal.py", monkeypatch)["accuracies"]
    with_context, without = found["with the context"], found["without it"]
    assert all(with_context[method] > without[method] + 0.05 for method in with_context)
    assert with_context["smooth"] > with_context["filter"] + 0.05 > with_context["frame"] + 0.1
    assert "ahead" in capsys.readouterr().out
