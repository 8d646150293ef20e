"""The command line, run as a person would."""

from __future__ import annotations

import subprocess
import sys

import pytest

from drhmm import __version__
from drhmm.cli import main

PNG = b"\x89PNG\r\n\x1a\n"


def test_demo_prints_accuracies_and_times_and_writes_a_picture(tmp_path, capsys):
    output = tmp_path / "demo.png"
    assert main(["demo", "--output", str(output), "--train", "50", "--frames", "300"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "fit:",
        "predict:",
        "each frame alone",
        "filtered",
        "smoothed",
        "of frames right",
        str(output),
    ):
        assert words in printed
    assert output.read_bytes().startswith(PNG)


def test_demo_repeats_itself(tmp_path, capsys):
    lines = []
    for name in ("a.png", "b.png"):
        main(["demo", "--output", str(tmp_path / name), "--train", "50", "--frames", "300", "--seed", "5"])
        lines.append([line for line in capsys.readouterr().out.splitlines() if "of frames right" in line])
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise", "-1"], "noise must be in"),
        (["--train", "0"], "n_per_state must be at least 1"),
        (["--output", "no/such/folder/demo.png"], "not a file in an existing folder"),
    ],
)
def test_errors_are_one_line_and_status_two(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("drhmm demo: ")
    assert len(error.splitlines()) == 1


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--help"])
    assert stopped.value.code == 0
    assert "example: drhmm demo" in capsys.readouterr().out


def test_the_installed_module_runs():
    result = subprocess.run([sys.executable, "-m", "drhmm", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"drhmm {__version__}"
