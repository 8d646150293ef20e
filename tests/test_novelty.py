"""The state for what nobody labelled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from drhmm import DensityRatioHMM, _core, dataframes, recursion
from drhmm.chain.unknown_state import Novelty, among_known
from drhmm.ratios import FromClassifier
from drhmm.reference import ratios as reference
from problems import blobs

X, Y = blobs(0, n_frames=400)
#: The training sequence with a stretch of something never seen in the middle.
STRANGE = np.arange(400)
STRANGE = (STRANGE >= 150) & (STRANGE < 250)
MIXED = np.where(STRANGE[:, None], X + 40.0, X)
FAST = {"n_basis": 80, "random_state": 0}


@pytest.fixture(scope="module", params=["calibrated", "paper"])
def fitted(request):
    return DensityRatioHMM(novelty=True, novelty_evidence=request.param, **FAST).fit(X, Y)


@pytest.fixture(scope="module")
def paper():
    return DensityRatioHMM(novelty=True, novelty_evidence="paper", **FAST).fit(X, Y)


def test_score_of_the_paper_is_one_minus_the_sum_of_theta(paper):
    theta_star = paper.theta_.sum(axis=1, keepdims=True)
    frames = paper.model_.evidence.framing.frames(X, [len(X)])
    explained = reference.posterior_estimates(frames, paper.centers_, paper.sigma_, theta_star)[:, 0]
    assert_allclose(paper.novelty_score(X), np.clip(1 - explained, 0, 1), atol=1e-10)


def test_score_of_the_paper_is_near_one_far_from_all_training_data(paper):
    score = paper.novelty_score(MIXED)
    assert score[STRANGE].min() > 0.99
    assert np.median(score[~STRANGE]) < 0.2


def test_calibrated_score_is_positive_far_from_all_training_data_only():
    score = DensityRatioHMM(novelty=True, **FAST).fit(X, Y).novelty_score(MIXED)
    assert score[STRANGE].min() > 5
    assert np.median(score[~STRANGE]) < 0


@pytest.mark.parametrize("method", ["filter", "smooth"])
def test_probability_finds_the_strange_stretch(fitted, method):
    probability = fitted.novelty_proba(MIXED, method=method)
    assert np.mean((probability > 0.5) == STRANGE) > 0.97


def test_evidence_of_the_paper_is_the_scaled_score(paper):
    evidence = np.column_stack(
        [
            paper.log_ratios(MIXED),
            paper.evidence_scale_ * np.log(np.clip(paper.novelty_score(MIXED), paper.floor, 1)),
        ]
    )
    found = paper.model_.evidence.log_ratios_with_novelty(MIXED, [len(MIXED)], 1)
    assert_allclose(found, evidence, atol=1e-9)


def test_probability_is_that_of_one_more_state(fitted):
    model = fitted.model_.tuned("filter")
    evidence = model.evidence.log_ratios_with_novelty(MIXED, [len(MIXED)], 1)
    transmat = model.novelty.transmat(model.transmat, model.prior)
    startprob = model.novelty.startprob(model.startprob)
    expected = recursion.filter(evidence, transmat, startprob)[:, -1]
    assert_allclose(fitted.novelty_proba(MIXED), expected, atol=1e-12)


def test_rate_and_duration_are_what_they_say():
    novelty = Novelty(rate=0.01, duration=20.0)
    transmat = novelty.transmat(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0.8, 0.2]))
    assert_allclose(transmat.sum(axis=1), 1)
    assert_allclose(transmat[:2, 2], 0.01)
    assert_allclose(transmat[2], [0.04, 0.01, 0.95])


def test_a_higher_rate_sounds_more_alarms():
    calm, nervous = (
        DensityRatioHMM(novelty=True, novelty_rate=rate, **FAST).fit(X, Y).novelty_proba(X).sum()
        for rate in (1e-6, 0.1)
    )
    assert nervous > calm


def test_predict_can_return_the_label_of_the_unknown(fitted):
    predicted = fitted.predict(MIXED, novelty_label=-99)
    assert np.mean((predicted == -99) == STRANGE) > 0.97
    assert predicted.dtype.kind == "i"


def test_a_label_of_another_kind_makes_objects(fitted):
    predicted = fitted.predict(MIXED, novelty_label="strange", method="viterbi")
    assert predicted.dtype == object
    assert np.mean((predicted == "strange") == STRANGE) > 0.97


def test_without_that_label_only_known_ones_come_back(fitted):
    for method in ("smooth", "filter", "frame", "viterbi"):
        assert set(fitted.predict(MIXED, method=method)) <= {0, 1, 2}


def test_probabilities_of_known_states_are_given_that_one_of_them_holds(fitted):
    posteriors = fitted.predict_proba(MIXED)
    assert posteriors.shape == (400, 3)
    assert_allclose(posteriors.sum(axis=1), 1, atol=1e-12)


def test_known_states_are_recognised_as_without_novelty(fitted):
    plain = DensityRatioHMM(**FAST).fit(X, Y)
    assert np.mean(plain.predict(X) == fitted.predict(X)) > 0.97


def test_one_known_state_is_enough():
    fitted = DensityRatioHMM(novelty=True, **FAST).fit(X, np.zeros(400, dtype=int))
    assert (
        np.mean((fitted.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95
    )  # the running mean stays strange for nine rows
    assert_array_equal(fitted.predict_proba(MIXED), np.ones((400, 1)))


def test_one_known_state_without_labels():
    fitted = DensityRatioHMM(1, novelty=True, **FAST).fit(X)
    assert np.mean((fitted.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95


def test_one_known_class_and_minus_one_for_the_rest():
    fitted = DensityRatioHMM(novelty=True, **FAST).fit(X, np.where(np.arange(400) < 300, 1, -1))
    assert_array_equal(fitted.classes_, [1])


def test_the_label_of_a_known_class_is_refused(fitted):
    with pytest.raises(ValueError, match="novelty_label=1 is the label of a known class"):
        fitted.predict(X, novelty_label=1)


def test_a_missing_frame_has_no_score_and_keeps_its_probability(fitted):
    samples = MIXED.copy()
    samples[200] = np.nan
    assert np.isnan(fitted.novelty_score(samples)[200])
    assert fitted.novelty_proba(samples)[200] > 0.5


@pytest.fixture(scope="module", params=["calibrated", "paper"])
def extreme(request):
    settings = {
        "novelty_evidence": request.param,
        "evidence_scale": 1e4,
        "novelty_rate": 1e-30,
        "novelty_duration": 1e9,
        "startprob": [1, 0, 0],
    }
    return DensityRatioHMM(novelty=True, sigma=0.5, rho=0.01, **settings, **FAST).fit(X, Y).model_


@pytest.fixture(scope="module")
def half_strange(extreme):
    """Begins half strange, half of a state that is no start: the only state that is one is far out of reach."""
    around = np.random.default_rng(0).uniform(X.min(), X.max(), size=(2000, 2))
    evidence = extreme.log_ratios(around)
    ahead = evidence.max(axis=1) - evidence[:, 0]
    if extreme.evidence.novelty is None:
        strange = extreme.evidence.evidence_scale * np.log(np.maximum(extreme.novelty_score(around), 1e-9))
        ahead = np.minimum(strange, evidence.max(axis=1)) - evidence[:, 0]
    assert ahead.max() > 2000
    return np.vstack([around[ahead.argmax()], MIXED])


class TestExtremes:
    """However far the unknown is ahead, the known states share what is left of their probability."""

    @pytest.mark.parametrize("method", ["filter", "smooth"])
    def test_batch(self, extreme, half_strange, method):
        assert_allclose(extreme.predict_proba(half_strange, method=method).sum(axis=1), 1, atol=1e-12)

    @pytest.mark.parametrize("lag", [0, 2])
    def test_stream(self, extreme, half_strange, lag):
        stream = extreme.stream(lag)
        answers = [answer for x in half_strange if (answer := stream.step(x)) is not None]
        assert_allclose(np.sum(answers, axis=1), 1, atol=1e-12)

    @pytest.mark.parametrize("lag", [0, 2])
    def test_batch_of_streams(self, extreme, half_strange, lag):
        batch = extreme.stream_batch(1, lag)
        answers = np.array([batch.step(x[None])[0] for x in half_strange])[lag:]
        assert_allclose(answers.sum(axis=1), 1, atol=1e-12)

    def test_single_precision(self, extreme, half_strange):
        results = dataframes.predict(extreme, pd.DataFrame(half_strange.astype(np.float32), columns=["a", "b"]))
        assert np.isfinite(results["probability"]).all()

    def test_evidence_that_needs_no_limit_is_as_it_was(self, paper):
        evidence = paper.model_.evidence
        with_unknown = evidence.log_ratios_with_novelty(MIXED, [len(MIXED)], 1)
        assert_allclose(with_unknown[:, :-1], evidence.log_ratios(MIXED, [len(MIXED)], 1), rtol=1e-13)


class TestForbiddenTransitions:
    """A, something strange, B, and no way from A to B but by way of the unknown."""

    SAMPLES = np.array([[0.0], [0.0], [0.0], [1000.0], [20.0], [20.0]])

    def model(self, **settings):
        random = np.random.default_rng(0)
        parts = [random.normal(0, 1, (200, 1)), random.normal(20, 1, (200, 1))]
        evidence = {"novelty": True, "novelty_evidence": "paper"}  # beyond both states, Gaussians prefer the nearer one
        estimator = DensityRatioHMM(**evidence, transmat=np.eye(2), random_state=0, n_basis=50, **settings)
        return estimator.fit(parts, [[0] * 200, [1] * 200]).model_

    @pytest.mark.parametrize("scale", [100.0, 1e6])
    def test_the_strange_frame_may_be_of_either(self, scale):
        posteriors = self.model(evidence_scale=scale).predict_proba(self.SAMPLES)
        assert_allclose(posteriors[3], 0.5, atol=0.1)

    @pytest.mark.parametrize("scale", [100.0, 1e6])
    def test_stream(self, scale):
        stream = self.model(evidence_scale=scale).stream(2)
        answers = [answer for x in self.SAMPLES if (answer := stream.step(x)) is not None]
        assert_allclose(answers[3], 0.5, atol=0.1)


class TestNothingLeft:
    """What no limit of evidence can prevent is said, and never NaN."""

    def test_in_an_array(self):
        posteriors = np.array([[0.3, 0.3, 0.4], [1e-300, 1e-300, 1.0]])
        with pytest.raises(ValueError, match="at row 1 the unknown leaves the known states no probability"):
            among_known(posteriors, 2)

    @pytest.mark.parametrize("lag", [0, 1])
    def test_in_a_stream(self, lag):
        arguments = {
            "mean": np.zeros(1),
            "scale": np.ones(1),
            "window": 1,
            "span": 0,
            "n_known": 2,
            "lag": lag,
            "ratio": None,
        }
        live = _core.LiveStreams(chain=_core.Chain(np.full((3, 3), 1 / 3), np.full(3, 1 / 3)), **arguments)
        live.add(1)
        step = live.stepper()
        for _ in range(lag):
            step(np.zeros(1), 1, lambda frames: np.array([[-1000.0, -1000.0, 0.0]]))
        report = step(np.zeros(1), 1, lambda frames: np.array([[-1000.0, -1000.0, 0.0]]))
        assert _core.OUTCOMES[report[0]] == "none_known"
        assert live.n_frames().tolist() == [lag]


class TestBadInput:
    def test_a_novelty_out_of_range(self, fitted):
        with pytest.raises(ValueError, match=r"novelty rate must be in \[1e-30, 1\), got 2.0"):
            replace(fitted.model_, novelty=Novelty(2.0, 10.0))

    @pytest.mark.parametrize("rate", [0.0, 1e-31, 1.0, -0.1, 1.5, np.nan])
    def test_rate_outside_zero_and_one(self, rate):
        with pytest.raises(ValueError, match="novelty_rate must be"):
            DensityRatioHMM(novelty=True, novelty_rate=rate).fit(X, Y)

    def test_duration_below_one(self):
        with pytest.raises(ValueError, match="novelty_duration must be in"):
            DensityRatioHMM(novelty=True, novelty_duration=0.5).fit(X, Y)

    def test_a_source_without_kernels_and_the_rule_of_the_paper(self):
        source = FromClassifier(LogisticRegression())
        with pytest.raises(ValueError, match="novelty_evidence='paper' needs ratio='pool', 'least-squares'"):
            DensityRatioHMM(novelty=True, novelty_evidence="paper", ratio=source).fit(X, Y)

    def test_without_a_floor(self):
        with pytest.raises(ValueError, match="novelty=True needs a positive floor"):
            DensityRatioHMM(novelty=True, floor=0.0).fit(X, Y)

    @pytest.mark.parametrize("ask", ["novelty_score", "novelty_proba"])
    def test_a_model_without_it(self, ask):
        plain = DensityRatioHMM(**FAST).fit(X, Y)
        with pytest.raises(ValueError, match="learn it with novelty=True"):
            getattr(plain, ask)(X)

    def test_a_label_for_it_from_a_model_without_it(self):
        with pytest.raises(ValueError, match="learn it with novelty=True"):
            DensityRatioHMM(**FAST).fit(X, Y).predict(X, novelty_label="?")


@pytest.mark.parametrize(("floor", "scale"), [(1e-300, 5.0), (1e-100, 20.0)])
def test_known_states_keep_their_ratios_however_unknown_a_frame_is(floor, scale):
    X, y = blobs(0, n_frames=400)
    settings = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "random_state": 0}
    model = DensityRatioHMM(novelty=True, floor=floor, evidence_scale=scale, **settings).fit(X, y).model_
    strange = np.vstack([X[:3], np.full((30, 2), 50.0), X[:3]])
    assert_allclose(model.predict_proba(strange).sum(axis=1), 1)
    stream = model.stream(5)
    assert np.isfinite([answer for answer in map(stream.step, strange) if answer is not None]).all()
