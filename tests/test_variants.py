"""One extension per instruction set: which one is loaded, and that all of them give the same answers."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import drhmm
from drhmm import _core
from drhmm._processor import best_isa
from drhmm.reference import features as reference_features
from drhmm.reference import recursion as reference
from problems import evidence_problem

pytestmark = pytest.mark.slow

ORDER = ("baseline", "v3", "v4")
INSTALLED = [isa for isa in ORDER if importlib.util.find_spec(f"drhmm._core_{isa}") is not None]
POSSIBLE = [isa for isa in INSTALLED if ORDER.index(isa) <= ORDER.index(best_isa())]


def choose(*arguments):
    """The rule of drhmm._core, which has made room for the variant it chose."""
    specification = importlib.util.spec_from_file_location(
        "drhmm._core_rule", os.path.join(os.path.dirname(drhmm.__file__), "_core.py")
    )
    module = importlib.util.module_from_spec(specification)
    sys.modules["drhmm._core_rule"] = module
    try:
        specification.loader.exec_module(module)
    finally:
        del sys.modules["drhmm._core_rule"]
    return module.choose(*arguments)


class TestChoice:
    def test_the_best_that_is_built_and_supported(self):
        assert choose(None, "v3", ORDER) == "v3"
        assert choose(None, "v4", ("baseline", "v3")) == "v3"
        assert choose(None, "baseline", ORDER) == "baseline"

    def test_the_one_that_is_asked_for(self):
        assert choose("v3", "v4", ORDER) == "v3"

    @pytest.mark.parametrize(
        ("requested", "supported", "built", "message"),
        [
            ("v4", "v3", ORDER, "this processor can run baseline, v3 only"),
            ("v3", "v4", ("baseline",), "this build of drhmm has baseline only"),
            ("avx", "v4", ORDER, "must be one of baseline, v3, v4"),
            (
                None,
                "baseline",
                ("v3", "v4"),
                "built for another processor: it has v3, v4",
            ),
        ],
    )
    def test_what_cannot_run_is_an_error(self, requested, supported, built, message):
        with pytest.raises(ImportError, match=message):
            choose(requested, supported, built)

    @pytest.mark.parametrize("isa", POSSIBLE)
    def test_the_environment_decides(self, isa):
        code = "import drhmm; drhmm.show_versions()"
        environment = {**os.environ, "DRHMM_ISA": isa}
        result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert f"instruction set  {isa} " in result.stdout

    def test_an_unknown_name_stops_the_import(self):
        environment = {**os.environ, "DRHMM_ISA": "v9"}
        result = subprocess.run([sys.executable, "-c", "import drhmm"], env=environment, capture_output=True, text=True)
        assert "DRHMM_ISA='v9': must be one of" in result.stderr

    def test_the_loaded_variant_says_so(self):
        assert _core.ISA in POSSIBLE

    def test_pickles_do_not_name_the_variant(self):
        statistics = _core.GramStatistics(2, 1)
        assert b"_core_" not in pickle.dumps(statistics)


@pytest.fixture(params=POSSIBLE)
def variant(request):
    return importlib.import_module(f"drhmm._core_{request.param}")


class TestEveryVariant:
    @pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 8, 11, 16, 30, 64, 70])
    @pytest.mark.parametrize("kind", ["dense", "left-right"])
    def test_recursions(self, variant, n_states, kind):
        problem = evidence_problem(n_states, 300, n_states, kind)
        for name in ("filter", "smooth"):
            report, posteriors = getattr(variant, name)(variant.Chain(*problem[1:]), problem[0], [300])
            assert report[0] == 0
            assert_allclose(posteriors, getattr(reference, name)(*problem), atol=1e-12)

    @pytest.mark.grid(7)
    @pytest.mark.parametrize("n_states", [2, 3, 4, 5, 16, 33])
    @pytest.mark.parametrize("rare", [1e-1, 1e-3, 1e-5, 1e-8])
    @pytest.mark.parametrize("spread", [1, 20, 200, 1000])
    def test_rare_transitions_against_contradicting_evidence(self, variant, n_states, rare, spread):
        random = np.random.default_rng(n_states)
        transmat = np.full((n_states, n_states), rare / (n_states - 1))
        np.fill_diagonal(transmat, 1 - rare)
        startprob = np.full(n_states, 1 / n_states)
        log_ratios = spread * random.normal(size=(700, n_states))
        log_ratios[::2, 0] += spread
        log_ratios[random.random(700) < 0.05] = np.nan
        log_ratios[5] = [-np.inf, *range(n_states - 1)]
        for name in ("filter", "smooth"):
            report, posteriors = getattr(variant, name)(variant.Chain(transmat, startprob), log_ratios, [700])
            assert report[0] == 0
            assert_allclose(posteriors, getattr(reference, name)(log_ratios, transmat, startprob), atol=1e-11)

    def test_alternating_evidence(self, variant):
        log_ratios = np.where((np.arange(1000)[:, None] % 2) == [0, 1], 20.0, 0.0)
        chain = np.array([[1 - 1e-5, 1e-5], [1e-5, 1 - 1e-5]]), np.array([0.5, 0.5])
        _, posteriors = variant.smooth(variant.Chain(*chain), log_ratios, [1000])
        assert_allclose(posteriors, reference.smooth(log_ratios, *chain), atol=1e-11)

    def test_an_unusual_row_needs_the_general_recursion(self, variant):
        log_ratios, *chain = evidence_problem(2, 160, 3)
        log_ratios[70] = [0.0, np.inf, 0.0]
        _, posteriors = variant.smooth(variant.Chain(*chain), log_ratios, [10] * 16)
        assert_allclose(posteriors[70], [0, 1, 0])

    def test_paths(self, variant):
        for n_states in (1, 2, 3, 4, 9):
            problem = evidence_problem(n_states, 200, n_states)
            assert (
                variant.viterbi(variant.Chain(*problem[1:]), problem[0], [200])[1] == reference.viterbi(*problem)
            ).all()

    def test_probabilities_are_divided_by_their_sums(self, variant):
        rows = np.array([[0.25, 0.75], [0.3 + 1e-9, 0.7], [-0.0, 1.0]])
        expected = rows / np.array([[1], [1 + 1e-9], [1]])
        assert_allclose(variant.normalized(rows, 1e-8), expected, rtol=1e-15)

    @pytest.mark.parametrize("row", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [np.inf, 0.0], [1 - 2e-8, 0.0]])
    def test_what_are_no_probabilities_is_refused(self, variant, row):
        assert variant.normalized(np.array([[0.5, 0.5], row]), 1e-8) is None

    def test_exponentials(self, variant):
        values = -np.concatenate([np.linspace(0, 708, 100_001), [0.0, 1e-300, 709.0, 1e300, np.inf]])
        expected = np.exp(values)
        expected[values < -708] = 0
        assert_allclose(variant.exponentials(values), expected, rtol=4e-16)

    @pytest.mark.parametrize("n_frames", [1, 3, 16, 17, 300])
    @pytest.mark.parametrize(("n_centers", "window"), [(1, 1), (5, 2), (100, 1), (301, 3)])
    def test_kernels(self, variant, n_frames, n_centers, window):
        random = np.random.default_rng(n_centers)
        samples, mean = random.normal(size=(n_frames, 3)) + 1e6, np.full(3, 1e6)
        centers, theta = random.normal(size=(n_centers, 3 * window)), random.normal(size=(n_centers, 4))
        ratio = variant.PooledRatio(
            mean=mean, scale=np.ones(3), window=window, span=0, prior=np.full(4, 0.25), least_ratio=0.04, floor=0.01,
            shift=np.zeros(4), kernel=(centers, 1.3, theta, 1.0),
        )  # fmt: skip
        frames = reference_features.windows(samples - mean, np.array([n_frames]), window)
        expected = reference_features.squared_exponential(np.nan_to_num(frames), centers, 1.3) @ theta
        expected[np.isnan(frames[:, 0])] = np.nan
        assert_allclose(ratio.estimates(samples, [n_frames]), expected, rtol=1e-12, atol=1e-12)
        assert_allclose(ratio.estimates(samples, [n_frames], 1, True), expected, rtol=1e-5, atol=2e-5)

    def test_kernels_far_away_are_exactly_zero(self, variant):
        ratio = variant.PooledRatio(
            mean=np.zeros(1), scale=np.ones(1), window=1, span=0, prior=np.ones(1), least_ratio=0.0, floor=0.0,
            shift=np.zeros(1), kernel=(np.zeros((1, 1)), 1.0, np.ones((1, 1)), 1.0),
        )  # fmt: skip
        estimates = ratio.estimates(np.array([[0.0], [37.0], [40.0], [1e150]]), [4])
        assert estimates[0, 0] == 1
        assert estimates[1, 0] == pytest.approx(np.exp(-(37.0**2) / 2), rel=1e-12)
        assert estimates[2, 0] == estimates[3, 0] == 0


@pytest.mark.parametrize("isa", POSSIBLE)
def test_streams_of_every_variant(isa):
    """The tests of streams, which go through the whole package, in a process of each variant."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_streaming.py",
        "-k",
        "EqualsBatch",
    ]
    root = os.path.dirname(os.path.dirname(__file__))
    result = subprocess.run(command, cwd=root, env={**os.environ, "DRHMM_ISA": isa}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:]
