"""How many files of the package a reader passes who follows one call from file to file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import drhmm
from drhmm import DensityRatioHMM
from drhmm.cli import main
from problems import blobs

PACKAGE = Path(drhmm.__file__).parent
X, Y = blobs(0, n_frames=200)


def walk(call, *arguments):
    """The files whose functions ran."""
    files = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        call(*arguments)
    finally:
        sys.setprofile(None)
    return sorted(str(Path(file).relative_to(PACKAGE)) for file in files if Path(file).is_relative_to(PACKAGE))


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(random_state=0).fit(X, Y)


@pytest.mark.slow
def test_a_labelled_fit_passes_through_few_files():
    estimator = DensityRatioHMM(random_state=0)
    files = walk(estimator.fit, X, Y)
    assert "estimator.py" in files
    assert len(files) <= 21, files


@pytest.mark.slow
def test_the_command_fit_passes_through_few_files(tmp_path):
    table = np.column_stack([X, Y])
    np.savetxt(tmp_path / "a.csv", table, delimiter=",", header="a,b,y", comments="", fmt=["%f", "%f", "%d"])
    command = ["fit", str(tmp_path / "a.csv"), "--label", "y", "--output", str(tmp_path / "m.drhmm")]
    main(command)  # imports and makes what is made once
    files = walk(main, command)
    assert "cli/fit.py" in files
    assert len(files) <= 40, files


def test_the_first_prediction_passes_through_few_files():
    files = walk(DensityRatioHMM(random_state=0).fit(X, Y).predict_proba, X)
    assert "_inference.py" in files
    assert len(files) <= 7, files


def test_a_step_of_a_stream_stays_in_one_file(fitted):
    stream = fitted.stream()
    assert walk(stream.step, X[0]) == ["live/streams.py"]
