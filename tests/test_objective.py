"""The tempered chain, and the loss by which scales, temper and prior shift are chosen, with its gradient."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import _core
from drhmm.reference import objective as reference
from drhmm.reference import recursion as reference_recursion
from problems import evidence_problem

LENGTHS = [9, 1, 14]


def native_loss(evidence, codes, transitions, start, lengths=None, n_threads=1):
    return _core.smoothing_loss(evidence, codes, transitions, start, lengths or [len(codes)], True, n_threads)


@pytest.fixture(params=["native", "reference"])
def engine(request):
    """The loss of one sequence with its gradient, native and reference."""
    return SimpleNamespace(loss=native_loss if request.param == "native" else reference.loss_and_gradient)


def problem(seed, n_frames=7, n_states=3, kind="dense"):
    evidence, transmat, startprob = evidence_problem(seed, n_frames, n_states, kind)
    codes = np.random.default_rng(seed).integers(-1, n_states, size=n_frames)
    if kind == "left-right":
        codes = np.zeros(n_frames, dtype=np.int64)
    return evidence, codes, transmat, startprob


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_loss_is_that_of_all_paths_one_by_one(engine, kind):
    evidence, codes, transmat, startprob = problem(0, kind=kind)
    posteriors, _, path = reference_recursion.enumerate_paths(evidence, transmat, startprob)
    codes = np.where(codes >= 0, path, -1)
    expected = -np.log(posteriors[codes >= 0, codes[codes >= 0]]).sum()
    assert_allclose(engine.loss(evidence, codes, transmat, startprob)[0], expected, rtol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_finite_differences(engine, seed):
    evidence, codes, transmat, startprob = problem(seed, n_frames=12)
    _, *gradients = engine.loss(evidence, codes, transmat, startprob)
    step = 1e-6
    for which, values in enumerate((evidence, np.log(transmat), np.log(startprob))):
        expected = np.zeros_like(values)
        for place in np.ndindex(values.shape):
            losses = []
            for sign in (1, -1):
                moved = [evidence.copy(), np.log(transmat), np.log(startprob)]
                moved[which][place] += sign * step
                losses.append(engine.loss(moved[0], codes, np.exp(moved[1]), np.exp(moved[2]))[0])
            expected[place] = 0.0 if np.isnan(losses).any() else (losses[0] - losses[1]) / (2 * step)
        if which == 0:
            expected[np.isnan(evidence)] = 0.0
        assert_allclose(gradients[which], expected, atol=1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse", "left-right"])
def test_native_equals_the_reference(kind):
    evidence, codes, transmat, startprob = problem(5, n_frames=200, n_states=5, kind=kind)
    codes = np.where(codes >= 0, reference_recursion.viterbi(evidence, transmat, startprob), -1)
    native = native_loss(evidence, codes, transmat, startprob)
    for ours, theirs in zip(native, reference.loss_and_gradient(evidence, codes, transmat, startprob), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_threads_do_not_change_anything():
    evidence, codes, transmat, startprob = problem(1, n_frames=sum(LENGTHS))
    for one, four in zip(
        native_loss(evidence, codes, transmat, startprob, LENGTHS, 1),
        native_loss(evidence, codes, transmat, startprob, LENGTHS, 4),
        strict=True,
    ):
        assert_array_equal(one, four)


def test_weights_of_any_unit_give_the_same_loss(engine):
    evidence, codes, transmat, startprob = problem(2)
    loss = engine.loss(evidence, codes, transmat, startprob)[0]
    assert_allclose(engine.loss(evidence, codes, 7 * transmat, 0.1 * startprob)[0], loss, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_long_sequences_neither_underflow_nor_overflow(unit):
    evidence, codes, transmat, startprob = problem(7, n_frames=3000)
    loss, by_evidence, *_ = native_loss(evidence, codes, transmat, startprob)
    scaled = native_loss(evidence, codes, unit * transmat, startprob)
    assert_allclose(scaled[0], loss, rtol=1e-11)
    assert_allclose(scaled[1], by_evidence, atol=1e-10)


def test_evidence_that_excludes_the_true_state_keeps_the_loss_finite():
    evidence = np.array([[0.0, -np.inf], [0.0, -1.0]])
    loss, by_evidence, *_ = native_loss(evidence, np.array([1, 0]), np.full((2, 2), 0.5), np.full(2, 0.5))
    assert np.isfinite(loss)
    assert np.isfinite(by_evidence).all()


class TestTempered:
    @pytest.mark.parametrize("temper", [1.0, 0.5, 0.05])
    def test_smoothing_with_powers_is_smoothing_with_the_tempered_chain(self, temper):
        evidence, _, transmat, startprob = problem(3, n_frames=30)
        chain, start, ends = reference.tempered(transmat, startprob, temper)
        powers = reference.power(transmat, temper), reference.power(startprob, temper)
        with_ends = evidence.copy()
        with_ends[-1] = np.where(np.isnan(evidence[-1]), 0.0, evidence[-1]) + ends
        assert_allclose(
            reference_recursion.smooth(with_ends, chain, start), reference.smoothed(evidence, *powers)[0], atol=1e-12
        )

    def test_the_chain_is_proper(self):
        _, _, transmat, startprob = problem(4)
        chain, start, _ = reference.tempered(transmat, startprob, 0.3)
        assert_allclose(chain.sum(axis=1), 1)
        assert_allclose(start.sum(), 1)

    def test_a_temper_of_one_changes_nothing(self):
        _, _, transmat, startprob = problem(4)
        chain, start, ends = reference.tempered(transmat, startprob, 1.0)
        assert_allclose(chain, transmat, atol=1e-14)
        assert_allclose(start, startprob, atol=1e-14)
        assert_allclose(ends, 0, atol=1e-13)


def test_the_objective_has_the_gradient_of_finite_differences():
    random = np.random.default_rng(0)
    members = [random.normal(size=(24, 3)) for _ in range(3)]
    for member in members:
        member[5] = np.nan
    _, codes, transmat, startprob = problem(6, n_frames=24)
    prior = np.array([0.2, 0.5, 0.3])
    parameters = np.array([-2.0, 0.5, -1.0, 0.6, 0.4])

    def value(at):
        return reference.objective(members, codes, LENGTHS, transmat, startprob, prior, (0.5, 0.1, 0.5), at)

    expected = [
        (value(parameters + step)[0] - value(parameters - step)[0]) / 2e-6 for step in 1e-6 * np.eye(len(parameters))
    ]
    assert_allclose(value(parameters)[1], expected, rtol=1e-6, atol=1e-7)
