from __future__ import annotations

import sys
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The quick tests: those marked quick, and every test that is not marked slow, with the first of its parameters."""
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in seen and item.get_closest_marker("slow") is None:
            item.add_marker("quick")
        seen.add(test)


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
