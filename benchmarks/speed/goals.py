"""Every speed goal beside its peers, interleaved in one run; writes RESULTS.md and growth.png beside this file.

    python benchmarks/speed/goals.py [--quick] [--output FOLDER]

Each row first asserts that all answers agree, then times ours and the peers in turn and takes medians. One thread
unless a row says otherwise. Peers that are not installed are left out, and said to be: hmmlearn, deeptime, densratio
and scikit-learn come with the `bench` extra, dynamax is optional. Instructions are counted if valgrind, CMake, Eigen
and a compiler are there. What has been measured is in RESULTS.md at once, whatever happens later.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from pathlib import Path

from edge_goals import edge_lines
from growth import growth
from instructions import instruction_lines
from kernel_goals import kernel_rows, memory_line, stream_rows
from learning_goals import em_line, import_line, learning_rows
from recursion_goals import recursion_rows
from table import REST
from threadpoolctl import threadpool_limits

import drhmm
from drhmm import _core

HERE = Path(__file__).parent


def versions():
    names = ("numpy", "scikit-learn", "hmmlearn", "deeptime", "densratio", "dynamax")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: a check, not a measurement")
    parser.add_argument("--output", type=Path, default=HERE, help="where RESULTS.md and growth.png go")
    options = parser.parse_args()
    scale, repeats = (20, 2) if options.quick else (1, 11)
    options.output.mkdir(parents=True, exist_ok=True)
    report = Report(options.output / "RESULTS.md", options.quick, repeats)
    with threadpool_limits(1):
        for measure in (recursion_rows, kernel_rows, stream_rows, learning_rows):
            report.add([line for row in measure(scale, repeats) for line in row.lines()])
    report.add(edge_lines(repeats))
    report.add([memory_line(options.output, scale), import_line(repeats), em_line(), ""])
    table = ["| job | range | slope of the last three |", "|---|---|---|"]
    report.add(["## Growth", "", "![Time against size](growth.png)", "", *table, *growth(options.output, scale), ""])
    if not options.quick:
        report.add([*instruction_lines(), (HERE / "BY_HAND.md").read_text()])
    print(report.text())


class Report:
    """A file that has, at every moment, what has been measured so far."""

    def __init__(self, path, is_quick, repeats):
        self.path, self.is_quick, self.repeats, self.lines = path, is_quick, repeats, []
        self.begin = time.perf_counter()

    def add(self, lines):
        self.lines += lines
        self.path.write_text(self.text())

    def text(self):
        head = [
            "# Speed: measured",
            "",
            f"Made by `python benchmarks/speed/goals.py{' --quick' if self.is_quick else ''}` in "
            f"{time.perf_counter() - self.begin:.0f} s. {processor()}, {os.cpu_count()} cores, instruction set "
            f"{_core.ISA}, Python {platform.python_version()}, {versions()}, drhmm {drhmm.__version__}.",
            "",
            f"Medians of {self.repeats} interleaved runs, of a third as many where a run takes long and of half as "
            f"many on all cores, with a rest of {REST} s before each of these: threads of a peer spin on after its "
            "answer. One thread unless said otherwise; answers are asserted first.",
            "",
            "| job | drhmm | peer | ratio | goal | met |",
            "|---|---|---|---|---|---|",
        ]
        return "\n".join([*head, *self.lines])


if __name__ == "__main__":
    main()
