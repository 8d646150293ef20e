"""Instructions of the hot paths, counted by callgrind: the same on every machine that is busy with other things.

Built from instructions.cpp by CMake (``DRHMM_BUILD_BENCHMARKS``) for AVX2, which is the widest set that valgrind
knows. Counted with one and with three repeats; half of the difference is one repeat without anything around it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from table import say

ROOT = Path(__file__).parents[2]

PATHS = {
    "smooth-2": "smoothing, S=2, per frame",
    "smooth-3": "smoothing, S=3, per frame",
    "smooth-16": "smoothing, S=16, per frame",
    "smooth-64": "smoothing, S=64, per frame",
    "filter-3": "filtering, S=3, per frame",
    "viterbi-3": "best path, S=3, per frame",
    "kernels": "log ratios, B=300, d=10, S=3, per kernel value",
    "kernels-float32": "the same in float32",
    "stream": "one streamed frame in the core, B=300, d=10, S=3",
    "grid": "cross-validation, N=1500, B=300, one sigma, per fold and rho",
}


def instruction_lines():
    """A section of RESULTS.md; says so where the tools are not there."""
    lines = ["", "## Instructions", ""]
    missing = [tool for tool in ("valgrind", "cmake", "c++") if shutil.which(tool) is None]
    if missing:
        return [*lines, f"Not counted: {', '.join(missing)} not installed.", ""]
    with tempfile.TemporaryDirectory() as folder:
        problem = configure(Path(folder))
        if problem is not None:
            return [*lines, f"Not counted: CMake could not configure the program ({problem}).", ""]
        return [*lines, *counted(tuple(PATHS), Path(folder)), ""]


def counted(paths, folder):
    lines = [
        "Counted by callgrind on the AVX2 variant, independent of how busy the machine is.",
        "",
        "| hot path | instructions |",
        "|---|---|",
    ]
    program = build(folder)
    for path in paths:
        lines.append(f"| {PATHS[path]} | {per_unit(program, path, folder):,.1f} |")
        say(lines[-1])
    return lines


def configure(folder):
    """Make ready to build; why that is not possible, such as Eigen not being there, or None."""
    command = ["cmake", "-S", ROOT, "-B", folder, "-DDRHMM_BUILD_PYTHON=OFF", "-DDRHMM_BUILD_BENCHMARKS=ON",
               f"-DCMAKE_PREFIX_PATH={sysconfig.get_path('purelib')}"]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return None
    words = [line.strip() for line in result.stderr.splitlines() if line.strip() and "CMake Error" not in line]
    return words[0] if words else f"status {result.returncode}"


def build(folder):
    subprocess.run(["cmake", "--build", folder, "--target", "drhmm_instructions"], check=True, capture_output=True)
    return folder / "drhmm_instructions"


def per_unit(program, path, folder):
    """Instructions of one repeat, over the units that it has."""
    counts = {}
    for repeats in (1, 3):
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder / 'out'}",
            program,
            path,
            str(repeats),
        ]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        counts[repeats] = int(re.search(r"Collected : (\d+)", result.stderr)[1])
    return (counts[3] - counts[1]) / 2 / int(result.stdout)


if __name__ == "__main__":
    print("\n".join(instruction_lines()))
