from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drhmm import _core, recursion
from drhmm.reference import features as reference_features
from drhmm.reference import ratios as reference_ratios
from drhmm.reference import recursion as reference_recursion

# Faults that are made by means of the system: limits of memory as Linux has them, forks and signals.
collect_ignore: list[str] = []
if sys.platform != "linux":
    collect_ignore += ["test_memory.py"]
if sys.platform == "win32":
    collect_ignore += ["test_processes.py", "test_interruption.py"]


def pytest_xdist_auto_num_workers(config):
    """Folders run side by side, on four cores at most; files that are named run in this process, as for a debugger."""
    if any(Path(argument.partition("::")[0]).is_file() for argument in config.args):
        return 0
    for library in ("OMP", "OPENBLAS"):  # whose threads wait for each other by spinning
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    return min(os.cpu_count() or 1, 4)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what a grid leaves out as exhaustive, and the first parameters of what is neither that nor slow as quick."""
    seen = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        grid = item.get_closest_marker("grid")
        if grid is not None and seen[test] % grid.args[0] > 0:
            item.add_marker("exhaustive")
        if seen[test] == 0 and not {"slow", "exhaustive"} & {marker.name for marker in item.iter_markers()}:
            item.add_marker("quick")
        seen[test] += 1


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    """Figures are made through pyplot, which keeps them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(params=["native", "reference"])
def engine(request):
    """The recursions, native and reference: the same tests hold for both."""
    return recursion if request.param == "native" else reference_recursion


def _native_gram(features, frames, centers, sigma, targets, weights):
    statistics = _core.GramStatistics(len(centers), targets.shape[1])
    statistics.add(frames, targets, weights, centers, sigma)
    return statistics.gram, statistics.moment, statistics.mass


@pytest.fixture(params=["native", "reference"])
def stages(request):
    """Frames, features, Gram statistics and solves under the same names, native and reference."""
    if request.param == "native":
        return SimpleNamespace(
            name="native",
            frames=lambda x, lengths, window: _core.frames(
                x, lengths, np.zeros(x.shape[1]), np.ones(x.shape[1]), window
            ),
            features=_core.squared_exponential,
            gram=_native_gram,
            solve=lambda gram, moment, rho: _core.RegularizedGram(gram, rho).solve(moment),
        )
    return SimpleNamespace(
        name="reference",
        frames=lambda x, lengths, window: reference_features.windows(x, np.asarray(lengths), window),
        features=reference_features.squared_exponential,
        gram=lambda features, frames, centers, sigma, targets, weights: reference_ratios.gram_statistics(
            features, targets, weights
        ),
        solve=reference_ratios.solve_theta,
    )
