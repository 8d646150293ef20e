"""The jobs of a new user: examples of at most thirty lines that do the job; the gallery runs all of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
JOBS = sorted(path.name for path in EXAMPLES.glob("plot_*_job_*.py"))


def run(name, monkeypatch):
    """The names of an example after it has run in its folder, as the gallery runs it."""
    monkeypatch.chdir(EXAMPLES)
    names = {}
    exec(compile((EXAMPLES / name).read_text(), name, "exec"), names)
    return names


@pytest.mark.parametrize("name", JOBS)
def test_a_job_takes_at_most_thirty_lines(name):
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


def test_why_a_frame_has_its_label(monkeypatch, capsys):
    names = run("plot_why.py", monkeypatch)
    found = names["explained"]
    parts = found.past + found.future + found.average + sum(found.columns.values())
    assert parts == pytest.approx(found.log_odds, abs=1e-9)
    assert "light" in capsys.readouterr().out
