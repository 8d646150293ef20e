"""A model with a tempered chain: what inference runs on, and where a sequence ends."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import DensityRatioHMM, recursion
from drhmm.chain.transitions import tempered
from drhmm.reference import objective as reference
from drhmm.reference import recursion as reference_recursion
from problems import blobs

TEMPER = 0.4


@pytest.fixture(scope="module")
def fitted():
    X, y = blobs(0)
    return DensityRatioHMM(n_basis=30, transition_temper=TEMPER, random_state=0).fit(X, y)


@pytest.fixture
def samples():
    X, _ = blobs(1, n_frames=60)
    X[59] = np.nan  # the last frame of a sequence is missing
    return X


CHAINS = {
    "dense": np.array([[0.9, 0.05, 0.05, 0.0], [0.1, 0.8, 0.05, 0.05], [0.3, 0.2, 0.4, 0.1], [0.1, 0.1, 0.1, 0.7]]),
    "circle": np.array([[0.9, 0.1, 0, 0], [0, 0.9, 0.1, 0], [0, 0, 0.5, 0.5], [1.0, 0, 0, 0]]),
    "sticky": 1e-9 + (1 - 4e-9) * np.eye(4),
}


@pytest.mark.parametrize("kind", CHAINS)
def test_equals_the_reference(kind):
    random = np.random.default_rng(0)
    transmat, startprob, prior = CHAINS[kind], random.dirichlet(np.ones(4)), np.full(4, 0.25)
    chain, start, tempering = tempered(transmat, startprob, TEMPER, prior)
    evidence = random.normal(size=(20, 4))
    with_ends = tempering.at_ends(evidence, [20])
    powers = reference.power(transmat, TEMPER), reference.power(startprob, TEMPER)
    assert_allclose(
        reference_recursion.smooth(with_ends, chain, start), reference.smoothed(evidence, *powers)[0], atol=1e-9
    )


def test_the_tempered_chain_is_the_one_of_the_reference():
    random = np.random.default_rng(1)
    transmat, startprob = random.dirichlet(np.ones(3), 3), random.dirichlet(np.ones(3))
    for found, expected in zip(
        tempered(transmat, startprob, TEMPER, np.full(3, 1 / 3))[:2],
        reference.tempered(transmat, startprob, TEMPER)[:2],
        strict=True,
    ):
        assert_allclose(found, expected, atol=1e-12)


def test_a_temper_of_one_leaves_the_chain_alone():
    transmat, _, tempering = tempered(np.eye(2), np.full(2, 0.5), 1.0, np.full(2, 0.5))
    assert_array_equal(transmat, np.eye(2))
    assert tempering is None


def test_smoothing_is_that_with_powers_of_the_counted_chain(fitted, samples):
    lengths = [25, 35]
    log_ratios = fitted.log_ratios(samples, lengths=lengths)
    powers = reference.power(fitted.transmat_, TEMPER), reference.power(fitted.startprob_, TEMPER)
    expected = [reference.smoothed(part, *powers)[0] for part in np.split(log_ratios, [25])]
    assert_allclose(fitted.predict_proba(samples, lengths=lengths), np.concatenate(expected), atol=1e-11)


def test_best_paths_are_those_with_powers_of_the_counted_chain(fitted, samples):
    log_ratios = fitted.log_ratios(samples)
    powers = reference.power(fitted.transmat_, TEMPER), reference.power(fitted.startprob_, TEMPER)
    assert_array_equal(fitted.predict(samples, method="viterbi"), reference_recursion.viterbi(log_ratios, *powers))


def test_filtering_runs_on_the_tempered_chain(fitted, samples):
    model = fitted.model_.tuned("filter")
    expected = recursion.filter(model.log_ratios(samples), model.transmat, model.startprob)
    assert_array_equal(fitted.predict_proba(samples, method="filter"), expected)


@pytest.mark.parametrize("lag", [0, 3])
def test_a_stream_answers_as_a_batch(fitted, samples, lag):
    stream = fitted.stream(lag=lag)
    answers = [stream.step(x) for x in samples]
    batch = fitted.predict_proba(samples, lag=lag)
    assert_allclose(np.array(answers[lag:]), batch[: len(batch) - lag], atol=1e-12)


def test_the_counted_chain_stays_on_record(fitted):
    model = fitted.model_
    assert_array_equal(model.tempering.transmat, fitted.transmat_)
    assert (np.diag(model.transmat) < np.diag(fitted.transmat_)).all()
    assert fitted.transition_temper_ == model.tempering.temper == TEMPER


def test_survives_pickling(fitted, samples):
    copy = pickle.loads(pickle.dumps(fitted.model_))
    assert_array_equal(copy.predict_proba(samples), fitted.predict_proba(samples))


def test_the_unknown_has_no_end_weight(samples):
    X, y = blobs(0)
    model = DensityRatioHMM(n_basis=30, transition_temper=TEMPER, novelty=True, random_state=0).fit(X, y).model_
    model = replace(model, other_tunings={})
    flat = replace(model, tempering=None)
    assert not np.array_equal(
        model.novelty_proba(samples, method="smooth"), flat.novelty_proba(samples, method="smooth")
    )
    assert_array_equal(model.novelty_proba(samples), flat.novelty_proba(samples))


def test_partial_fit_goes_on_with_the_temper():
    X, y = blobs(0)
    whole = DensityRatioHMM(n_basis=30, transition_temper=TEMPER, random_state=0).partial_fit(X, y).partial_fit(X, y)
    assert whole.transition_temper_ == TEMPER
    assert_allclose(whole.model_.transmat.sum(axis=1), 1)


class TestStatesThatCannotBeReached:
    TRANSMAT = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])

    def test_are_named(self):
        with pytest.raises(ValueError, match="state 0 cannot be reached from state 1: use transition_temper=1"):
            tempered(self.TRANSMAT, np.full(3, 1 / 3), 0.5, np.full(3, 1 / 3))

    def test_leave_the_chain_as_it_is(self):
        X, y = blobs(0)
        order = np.argsort(y, kind="stable")
        fitted = DensityRatioHMM(n_basis=30, transmat=self.TRANSMAT, random_state=0).fit(X[order], y[order])
        assert fitted.transition_temper_ == 1


@pytest.mark.parametrize("temper", [0.0, 1.5, np.nan, "hot"])
def test_a_temper_out_of_range_is_refused(temper):
    X, y = blobs(0)
    with pytest.raises(ValueError, match="transition_temper must be"):
        DensityRatioHMM(transition_temper=temper).fit(X, y)
