"""The jobs of the documentation as executed notebooks: cells run, quickly, and pictures and tables appear."""

from __future__ import annotations

import re
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
LONGEST_CELL = 20  # seconds of one core; on a busy machine they take longer
CLOCK = "print(__import__('time').process_time())"

#: What an object shows where it is the last of a cell.
SHOWN = """
from drhmm import DensityRatioHMM, cross_validate, datasets, evaluate, select_states
X, y = datasets.blobs(300, random_state=0)
estimator = DensityRatioHMM(n_basis=30, novelty=True, random_state=0).fit(X, y)
"""
OBJECTS = {
    "model": "estimator.model_",
    "stream": "estimator.stream()",
    "evaluation": "evaluate(estimator, X, y)",
    "explanation": "estimator.explain(X, 100)",
    "ranking": "estimator.rank_columns(X, n_frames=20, random_state=0)",
    "numbers of states": "select_states(X, [2, 3], estimator=DensityRatioHMM(n_basis=20, n_init=1), random_state=0)",
}


def executed(cells, folder):
    """The cells of a notebook after they ran in a folder, each within its time."""
    timed = [nbformat.v4.new_code_cell(cell) for pair in ((cell, CLOCK) for cell in cells) for cell in pair]
    notebook = nbformat.v4.new_notebook(cells=timed)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    clocks = [0.0, *(float(cell.outputs[0]["text"]) for cell in notebook.cells[1::2])]
    assert np.diff(clocks).max() < LONGEST_CELL
    return notebook.cells[::2]


def kinds(cell):
    """What kinds of output a cell has."""
    return {kind for output in cell.outputs for kind in output.get("data", {})}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("plot_*_job_*.py")))
def test_a_job_runs_as_a_notebook_with_pictures(name, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    text = re.sub(r'^""".*?"""', "", (EXAMPLES / name).read_text(), flags=re.DOTALL)
    cells = executed(re.split(r"^# %%\n", text, flags=re.MULTILINE), EXAMPLES)
    assert any("image/png" in kinds(cell) for cell in cells)


@pytest.mark.exhaustive
def test_objects_are_tables_in_a_notebook(tmp_path):
    _, *cells = executed([SHOWN, *OBJECTS.values()], tmp_path)
    assert {name for name, cell in zip(OBJECTS, cells, strict=True) if "text/html" not in kinds(cell)} == set()
