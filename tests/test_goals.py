"""The report of the speed goals: what was measured is kept, whatever fails after it."""

from __future__ import annotations

import subprocess

import goals
import instructions


def test_what_was_measured_is_written_at_once(tmp_path):
    report = goals.Report(tmp_path / "RESULTS.md", True, 2)
    report.add(["| smoothing | 1 ns |"])
    assert (tmp_path / "RESULTS.md").read_text().endswith("| smoothing | 1 ns |")


def test_without_eigen_instructions_are_left_out_with_one_line(monkeypatch):
    error = "CMake Error at CMakeLists.txt:19 (find_package):\n  Could not find Eigen3\n\n-- Configuring incomplete\n"
    failed = subprocess.CompletedProcess([], 1, "", error)
    monkeypatch.setattr(instructions.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(instructions.subprocess, "run", lambda *_, **__: failed)
    lines = [line for line in instructions.instruction_lines() if line]
    assert lines == ["## Instructions", "Not counted: CMake could not configure the program (Could not find Eigen3)."]
