"""The types that users see: a script that uses the public names is clean for both checkers, and runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import drhmm
from drhmm.datasets import blobs

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "data" / "typed_user.py"
PACKAGE = Path(drhmm.__file__).parent

# A package that is installed for development is found by an import hook, which the checkers do not know.
SOURCES = [] if "site-packages" in PACKAGE.parts else [str(PACKAGE.parent)]


# Beside the script: a checker that finds nothing here has not seen the types.
MISTAKE = """import drhmm

name: str = drhmm.load("model.drhmm").n_states
drhmm.load("model.drhmm").predict([[1.0]], method="smoth")
drhmm.DensityRatioHMM(durations="gamma")
"""


@pytest.fixture
def folder(tmp_path):
    """The script and a mistake, without the settings of this project."""
    (tmp_path / "script.py").write_text(SCRIPT.read_text())
    (tmp_path / "mistake.py").write_text(MISTAKE)
    settings = {"typeCheckingMode": "strict", "extraPaths": SOURCES}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    return tmp_path


def errors_of(checker, *arguments, **environment):
    """Lines of the output that report an error."""
    result = subprocess.run(
        [sys.executable, "-m", checker, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 1, result.stdout + result.stderr
    return [line for line in result.stdout.splitlines() if "error:" in line]


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()


def test_mypy_is_strict_and_finds_the_mistakes_only(folder):
    settings = f"--config-file={os.devnull}", f"--cache-dir={folder / 'cache'}", "--follow-imports=silent"
    files = folder / "script.py", folder / "mistake.py"
    errors = errors_of("mypy", "--strict", *settings, *files, MYPYPATH=os.pathsep.join(SOURCES))
    assert len(errors) == 3, errors
    assert "mistake.py:3: error: Incompatible types" in errors[0]
    assert 'mistake.py:4: error: Argument "method"' in errors[1]
    assert 'mistake.py:5: error: Argument "durations"' in errors[2]


def test_pyright_is_strict_and_finds_the_mistakes_only(folder):
    errors = errors_of("pyright", "--pythonpath", sys.executable, "--project", folder)
    assert len(errors) == 3, errors
    assert 'mistake.py:3:13 - error: Type "int" is not assignable to declared type "str"' in errors[0]


def test_the_script_runs(tmp_path, capsys):
    names = {"__name__": "script"}
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), names)
    names["main"](tmp_path)
    assert "instruction set" in capsys.readouterr().out
    X, y = blobs(600, random_state=0)
    df = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y, "person": np.arange(600) // 100})
    with dask.config.set(scheduler="synchronous"):
        states = names["cluster"](dd.from_pandas(df, npartitions=2)).compute()
    assert np.mean(states["state"] == states["label"]) > 0.8
