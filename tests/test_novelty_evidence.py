"""Evidence for the unknown: scores, p-values, e-values, scales, and the columns that stick out."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import genpareto
from sklearn.linear_model import LogisticRegression

import drhmm
from drhmm import DensityRatioHMM, recursion
from drhmm.datasets import sensors
from drhmm.evidence.excursions import Excursions
from drhmm.evidence.score_pvalues import ScoreTable, pareto_tail
from drhmm.evidence.unknown import SPAN, beside, blocks_of, learn_densities
from drhmm.ratios import FromClassifier
from drhmm.reference import novelty as reference
from problems import blobs

X, Y = blobs(0, n_frames=400)
CHAIN = np.ones((1, 1)), np.ones(1)  # of one known state
STRANGE = (np.arange(400) >= 150) & (np.arange(400) < 250)
MIXED = np.where(STRANGE[:, None], X + 40.0, X)
NORMAL, _ = sensors(3000, n_sensors=4, faults=(), random_state=0)
FRESH, _ = sensors(6000, n_sensors=4, faults=(), random_state=1)


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def plant():
    return DensityRatioHMM(1, novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(NORMAL).model_


def frames_of(model, samples):
    return model.evidence.framing.frames(samples, [len(samples)])


def reference_log_evidence(model, frames, with_means=False):
    evidence = model.evidence.novelty.trend if with_means else model.evidence.novelty.now
    densities, n_columns = evidence.densities, frames.shape[1]
    whitening = densities.gaussian_whitening.reshape(-1, n_columns, n_columns)
    covariances = np.array([np.linalg.inv(own.T @ own) for own in whitening])
    scores = (
        reference.gaussian_score(frames, densities.means, covariances, densities.shares),
        reference.kernel_score(
            frames, densities.origin, densities.whitening, densities.centers, densities.weights, densities.width
        ),
    )
    logs = [
        reference.log_e(reference.surprise(own, *table.arrays()))
        for own, table in zip(scores, evidence.tables, strict=True)
    ]
    return reference.pooled(logs, evidence.scales, evidence.joint)


class TestDefinitions:
    @pytest.mark.parametrize("p", [1e-12, 0.003, 0.2, 0.7, 0.999])
    def test_e_is_the_mean_of_powers_of_p(self, p):
        expected = quad(lambda k: k * p ** (k - 1), 0, 1)[0]
        assert_allclose(np.exp(reference.log_e(np.array([-np.log(p)]))), expected, rtol=1e-8)

    def test_e_is_a_half_where_nothing_is_strange(self):
        assert_allclose(np.exp(reference.log_e(np.array([0.0, 1e-9]))), 0.5, rtol=1e-8)

    def test_the_mean_of_e_over_uniform_p_is_one(self):
        # p = exp(-s): the integral over p is that of exp(log_e - s) over s.
        mean = quad(lambda s: float(np.exp(reference.log_e(np.array([s]))[0] - s)), 0, np.inf, limit=500)[0]
        assert_allclose(mean, 1, atol=2e-2)

    @pytest.mark.parametrize("shape", [0.0, 0.3])
    def test_the_tail_is_found(self, shape):
        excesses = genpareto.rvs(shape, scale=2.0, size=20_000, random_state=0)
        assert_allclose(pareto_tail(excesses), (shape, 2.0), atol=0.06)

    def test_p_values_of_normal_scores_are_uniform(self):
        random = np.random.default_rng(0)
        table = ScoreTable.learn(random.gamma(3.0, size=20_000))
        pvalues = np.exp(-reference.surprise(random.gamma(3.0, size=50_000), *table.arrays()))
        for level in (0.001, 0.01, 0.1, 0.5, 0.9):
            assert_allclose(np.mean(pvalues <= level), level, rtol=0.35)

    def test_of_equal_scores_the_largest_p_value_counts(self):
        table = ScoreTable.learn(np.repeat([0.0, 1.0, 2.0], [10, 60, 30]))
        assert np.exp(-reference.surprise(np.array([1.0]), *table.arrays()))[0] > 0.85

    def test_constant_scores_have_a_tail(self):
        table = ScoreTable.learn(np.ones(50))
        assert_allclose(reference.surprise(np.array([1.0]), *table.arrays()), 0, atol=1e-12)
        assert reference.surprise(np.array([2.0]), *table.arrays())[0] > 10

    def test_known_states_beside_the_unknown_have_mean_one(self):
        known, shares = np.random.default_rng(0).normal(size=(20, 3)), np.array([0.2, 0.3, 0.5])
        assert_allclose(np.exp(beside(known, np.zeros(20), shares)[:, :3]) @ shares, 1)

    def test_blocks_are_contiguous_within_each_class(self):
        assert blocks_of(np.array([0, 1] * 10)).tolist() == np.repeat(np.arange(5), 4).tolist()


class TestRunningMeans:
    @pytest.fixture
    def gappy(self):
        samples = FRESH[:300].copy()
        samples[[40, 41, 120], [0, 3, 1]] = np.nan
        return samples

    def frames(self, model, samples):
        frames = frames_of(model, samples)
        return np.hstack([frames, reference.running_means(frames, SPAN)])

    def test_frames_have_those_of_the_reference(self, plant, gappy):
        found = plant.evidence.framing.frames_with_means(gappy, [len(gappy)])
        expected = self.frames(plant, gappy)
        present = ~np.isnan(found[:, 0])
        assert_allclose(found[present], expected[present], atol=1e-12)

    def test_log_evidence_is_that_of_the_reference(self, plant, gappy):
        frames = self.frames(plant, gappy)
        complete, now = ~np.isnan(frames).any(axis=1), frames[:, :4]
        expected = reference_log_evidence(plant, now)
        expected[complete] = reference_log_evidence(plant, frames[complete], with_means=True)
        assert_allclose(plant.novelty_score(gappy), expected, rtol=1e-8, atol=1e-8)

    def test_they_begin_anew_with_sequences_and_gaps(self, plant):
        whole, dt = FRESH[:60], np.ones(60, dtype=int)
        dt[35] = 2
        in_parts = np.concatenate([plant.novelty_score(part) for part in (whole[:20], whole[20:35], whole[35:])])
        assert_allclose(plant.novelty_score(whole, lengths=[20, 40], dt=dt), in_parts, rtol=1e-12)

    def test_streams_say_what_batch_says(self, plant, gappy):
        dt = np.ones(300, dtype=int)
        dt[200] = 4
        stream, found = plant.stream(), []
        for t, (x, step) in enumerate(zip(gappy, dt.tolist(), strict=True)):
            stream = plant.resume(stream.snapshot()) if t % 50 == 7 else stream
            stream.step(x, dt=step)
            found.append(stream.novelty)
        assert_allclose(found, plant.novelty_proba(gappy, dt=dt), rtol=1e-9, atol=1e-12)

    def test_a_small_lasting_shift_is_seen(self, plant):
        shifted = FRESH[:1000] + NORMAL.std(axis=0) * [1.5, 0, 0, 0]
        trend, now = plant.novelty_score(shifted), plant.evidence.novelty.now
        alone = now.log_evidence(frames_of(plant, shifted))
        assert np.median(trend[SPAN:]) > np.median(alone) + 1

    def test_columns_see_them(self, plant):
        shifted = FRESH[:100] + NORMAL.std(axis=0) * [0, 3, 0, 0]
        parts = plant.novelty_columns(shifted)[SPAN:]
        assert parts.sum(axis=0).argmax() == 1

    def test_e_values_have_mean_one_or_less_on_fresh_normal_rows(self, plant):
        assert np.exp(plant.novelty_score(FRESH)).mean() < 1.2

    def test_files_keep_them(self, plant, tmp_path):
        plant.save(tmp_path / "plant.drhmm")
        again = drhmm.load(tmp_path / "plant.drhmm")
        assert again.fingerprint == plant.fingerprint
        assert_array_equal(again.novelty_score(FRESH[:50]), plant.novelty_score(FRESH[:50]))

    def test_independent_rows_have_none(self):
        samples = np.random.RandomState(0).normal(size=(500, 2))
        assert DensityRatioHMM(1, novelty=True, random_state=0).fit(samples).model_.evidence.novelty.span == 0

    def test_states_that_last_briefly_have_none(self, fitted):
        assert fitted.model_.evidence.novelty.trend is None

    def test_an_outlier_in_the_training_data_does_not_widen_them(self, plant):
        spoilt = NORMAL.copy()
        spoilt[::200] += 8 * NORMAL.std(axis=0)
        model = DensityRatioHMM(1, novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(spoilt).model_
        widths = [np.linalg.det(one.evidence.novelty.trend.densities.whitening) for one in (plant, model)]
        ratio = np.prod(model.evidence.framing.scale / plant.evidence.framing.scale) ** 2
        assert_allclose(widths[1] / ratio, widths[0], rtol=0.5)

    def test_sources_of_the_user_have_them(self):
        source = FromClassifier(LogisticRegression())
        states = np.repeat([0, 1], 1500)
        model = DensityRatioHMM(ratio=source, novelty=True, random_state=0).fit(NORMAL + 5 * states[:, None], states)
        assert model.model_.evidence.novelty.span == SPAN
        stream, part = model.stream(), FRESH[:40]
        found = [stream.step(x) is not None and stream.novelty for x in part]
        assert_allclose(found, model.novelty_proba(part), rtol=1e-9)


class TestNative:
    @pytest.mark.parametrize("samples", [X, MIXED])
    def test_log_evidence_is_that_of_the_reference(self, fitted, samples):
        expected = reference_log_evidence(fitted.model_, frames_of(fitted.model_, samples))
        assert_allclose(fitted.novelty_score(samples), expected, rtol=1e-8, atol=1e-8)

    def test_batch_has_the_evidence_of_both(self, fitted):
        model = fitted.model_
        both = model.evidence.log_ratios_with_novelty(X, [len(X)], 1)
        assert_allclose(both, beside(fitted.log_ratios(X), fitted.novelty_score(X), model.prior), atol=1e-9)

    @pytest.mark.parametrize("lag", [0, 3])
    def test_streams_say_what_batch_says(self, fitted, lag):
        stream, batch = fitted.model_.stream(lag), fitted.model_.stream_batch(1, lag)
        novelty = []
        for x in MIXED:
            stream.step(x)
            batch.step(x[None])
            novelty.append((stream.novelty, batch.novelty[0]))
        expected = fitted.novelty_proba(MIXED)
        assert_allclose(novelty, np.column_stack([expected, expected]), atol=1e-9)

    @pytest.mark.parametrize("form", ["batch", "stream"])
    def test_one_known_state_is_as_likely_as_its_evidence_says(self, plant, form):
        log_evidence = plant.novelty_score(FRESH[:300])
        evidence = np.column_stack([np.zeros(300), log_evidence])
        expected = recursion.filter(evidence, plant.novelty.transmat(*CHAIN), plant.novelty.startprob(CHAIN[1]))[:, 1]
        if form == "batch":
            found = plant.novelty_proba(FRESH[:300])
        else:
            stream = plant.stream()
            found = [stream.novelty for x in FRESH[:300] if stream.step(x) is not None]
        assert_allclose(found, expected, rtol=1e-9)

    def test_far_away_everything_is_finite(self, fitted):
        score = fitted.novelty_score(np.array([[1e30, -1e30], [1e200, 0.0]]))
        assert np.isfinite(score).all()
        assert (score > 50).all()


class TestCalibration:
    def test_held_out_p_values_are_uniform_on_fresh_normal_data(self):
        # Frames that are independent, so that shares of them are exact enough.
        normal, fresh = np.random.default_rng(0).normal(size=(2, 4000, 3)) @ np.array(
            [[1.0, 0.9, 0], [0, 0.5, 0], [1, 0, 1]]
        )
        model = DensityRatioHMM(1, novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(normal).model_
        now = model.evidence.novelty.now
        scores = zip(now.scores(frames_of(model, fresh)).T, now.tables, strict=True)
        pvalues = np.exp(-np.column_stack([reference.surprise(own, *table.arrays()) for own, table in scores]))
        for level in (0.01, 0.1, 0.5):
            assert_allclose(np.mean(pvalues <= level, axis=0), level, rtol=0.35)

    def test_the_mean_of_e_on_fresh_normal_data_is_at_most_one(self, plant):
        assert np.exp(plant.novelty_score(FRESH)).mean() < 1.2

    def test_rate_and_duration_hold_on_normal_data(self, plant):
        expected = plant.novelty.rate * plant.novelty.duration
        assert plant.novelty_proba(FRESH).mean() < 2 * expected / (1 + expected)

    def test_a_bias_that_breaks_correlations_is_found(self, plant):
        samples, truth = sensors(2000, n_sensors=4, faults=("bias",), n_events=3, random_state=2)
        assert (plant.novelty_proba(samples)[truth == "bias"] > 0.5).mean() > 0.8


class TestSources:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"ratio": "least-squares"},
            {"ratio": FromClassifier(LogisticRegression())},
            {"window": 3},
            {"durations": "negative-binomial"},
        ],
    )
    def test_every_source_finds_the_strange_stretch(self, settings):
        fitted = DensityRatioHMM(novelty=True, random_state=0, n_basis=50, **settings).fit(X, Y)
        assert np.mean((fitted.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95

    def test_a_source_of_the_user_in_a_stream(self):
        fitted = DensityRatioHMM(novelty=True, ratio=FromClassifier(LogisticRegression())).fit(X, Y)
        stream = fitted.model_.stream()
        novelty = [stream.step(x) is not None and stream.novelty for x in MIXED]
        assert_allclose(novelty, fitted.novelty_proba(MIXED), atol=1e-9)

    def test_without_labels(self):
        fitted = DensityRatioHMM(1, novelty=True, n_basis=50, random_state=0).fit(X)
        assert np.mean((fitted.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95

    @pytest.mark.slow
    def test_partly_labelled(self):
        fitted = DensityRatioHMM(novelty=True, n_basis=50, random_state=0).fit(X, np.where(np.arange(400) < 300, Y, -1))
        assert np.mean((fitted.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95

    def test_single_precision(self, fitted):
        assert_allclose(fitted.novelty_proba(MIXED.astype(np.float32)), fitted.novelty_proba(MIXED), atol=1e-3)

    def test_partial_fit_keeps_what_the_first_block_says_of_the_unknown(self):
        settings = {"novelty": True, "n_basis": 50, "sigma": 1.0, "rho": 0.01, "random_state": 0}
        estimator = DensityRatioHMM(**settings).partial_fit(X[:200], Y[:200])
        first = estimator.model_.evidence.novelty
        estimator.partial_fit(X[200:], Y[200:])
        assert estimator.model_.evidence.novelty is first
        assert np.mean((estimator.novelty_proba(MIXED) > 0.5) == STRANGE) > 0.95

    def test_a_class_of_one_frame(self):
        labels = Y.copy()
        labels[7] = 9
        with pytest.warns(UserWarning, match="fewer than 3 complete frames"):
            fitted = DensityRatioHMM(novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(X, labels)
        assert np.isfinite(fitted.novelty_proba(X)).all()

    def test_weights_of_zero_leave_frames_out(self):
        samples, weights = X.copy(), np.ones(400)
        samples[:20], weights[:20] = 300.0, 0.0
        settings = {"n_basis": 50, "sigma": 1.0, "rho": 0.01, "random_state": 0}
        fitted = DensityRatioHMM(novelty=True, **settings).fit(samples, Y, sample_weight=weights)
        assert fitted.novelty_score(samples)[:20].min() > fitted.novelty_score(samples)[20:].max()


class TestFiles:
    def test_a_saved_model_says_the_same(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert loaded.fingerprint == fitted.model_.fingerprint
        assert_array_equal(loaded.novelty_proba(MIXED), fitted.model_.novelty_proba(MIXED))

    def test_a_pickled_model_says_the_same(self, fitted):
        copied = pickle.loads(pickle.dumps(fitted.model_))
        assert_array_equal(copied.novelty_proba(MIXED), fitted.novelty_proba(MIXED))

    def test_a_pickled_model_of_a_source(self):
        fitted = DensityRatioHMM(novelty=True, ratio=FromClassifier(LogisticRegression())).fit(X, Y)
        copied = pickle.loads(pickle.dumps(fitted.model_))
        assert_array_equal(copied.novelty_proba(MIXED), fitted.novelty_proba(MIXED))


class TestColumns:
    def test_a_biased_sensor_sticks_out(self, plant):
        samples = FRESH[:50].copy()
        samples[:, 2] += 3.0
        assert_array_equal(np.nansum(plant.novelty_columns(samples), axis=0).argmax(), 2)

    def test_parts_of_the_gaussian_are_its_squared_distance(self, plant):
        evidence, frames = plant.evidence.novelty.now, frames_of(plant, FRESH[:20])
        densities = evidence.densities
        white = (frames - densities.means[0]) @ densities.gaussian_whitening.T
        assert_allclose(evidence._gaussian_parts(frames).sum(axis=1), (white**2).sum(axis=1), rtol=1e-10)

    def test_parts_of_the_kernels_are_their_mean_squared_distance(self, plant):
        evidence, frames = plant.evidence.novelty.now, frames_of(plant, FRESH[:20])
        densities = evidence.densities
        white = (frames - densities.origin) @ densities.whitening.T
        squares = ((white[:, None] - densities.centers) ** 2).sum(axis=2)
        shares = densities.weights * np.exp(-squares / (2 * densities.width**2))
        expected = (shares * squares).sum(axis=1) / shares.sum(axis=1)
        assert_allclose(evidence._kernel_parts(frames).sum(axis=1), expected, rtol=1e-9)

    def test_a_window_adds_up_its_samples(self):
        fitted = DensityRatioHMM(1, novelty=True, window=2, n_basis=50, random_state=0).fit(NORMAL[:500])
        parts = fitted.model_.novelty_columns(NORMAL[:10])
        assert parts.shape == (10, 4)
        assert np.isnan(parts[0]).all()
        assert np.isfinite(parts[1:]).all()


class TestExcursions:
    def test_they_are_those_of_the_cumulative_sum(self):
        logs = np.array([1.0, -3.0, 2.0, 2.0, -1.0, -5.0, np.nan, 0.5])
        found = Excursions.of(logs, [6, 2])
        assert_array_equal(found.places, [[0, 0, 1], [0, 2, 3], [1, 1, 1]])
        assert_array_equal(found.values, [1.0, 2.0, 2.0, -1.0, 0.5])
        assert (found.n_frames, found.n_outliers, found.least) == (7, 0, 0.0)

    def test_they_begin_where_the_clock_is(self):
        logs = np.array([-1.0, 1.0, -3.0, 2.0, -1.0, 1.0])
        found = Excursions.of(logs, [4, 2], np.array([1, 1, 1, 7, 1, 5]))
        assert_array_equal(found.places, [[0, 1, 1], [0, 9, 1], [1, 5, 1]])

    def test_the_highest_are_kept_and_the_height_of_the_others_is_known(self):
        found = Excursions.of(np.array([1.0, -3.0, 2.0, 2.0, -1.0, -5.0, 3.0]), [7], most=4)
        assert_array_equal(found.places, [[0, 2, 3], [0, 6, 1]])
        assert_array_equal(found.values, [2.0, 2.0, -1.0, 3.0])
        assert found.least == 1

    @pytest.mark.parametrize(("n_outliers", "size"), [(1, 1000.0), (10, 20.0), (50, 300.0)])
    def test_outliers_are_left_out(self, n_outliers, size):
        logs = np.random.RandomState(0).exponential(size=10_000) - 2
        logs[:: 10_000 // n_outliers] = size + np.arange(n_outliers)
        found = Excursions.of(logs, [10_000])
        assert (found.n_outliers, found.n_frames) == (n_outliers, 10_000 - n_outliers)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("draw", ["exponential", "rounded", "lognormal"])
    def test_a_long_tail_has_no_outliers(self, draw, seed):
        random = np.random.RandomState(seed)
        logs = random.lognormal(size=10_000) if draw == "lognormal" else random.exponential(size=10_000)
        assert Excursions.of(np.round(logs) if draw == "rounded" else logs, [10_000]).n_outliers == 0


class TestBadInput:
    def test_the_name_of_the_evidence(self):
        with pytest.raises(ValueError, match="novelty_evidence must be one of"):
            DensityRatioHMM(novelty=True, novelty_evidence="q").fit(X, Y)

    def test_columns_of_the_rule_of_the_paper(self):
        settings = {"n_basis": 50, "sigma": 1.0, "rho": 0.01}
        model = DensityRatioHMM(novelty=True, novelty_evidence="paper", **settings).fit(X, Y).model_
        with pytest.raises(ValueError, match="novelty_evidence='calibrated'"):
            model.novelty_columns(X)

    def test_covariances_that_do_not_fit_in_memory(self, monkeypatch):
        monkeypatch.setattr("drhmm.evidence.unknown.MOST_NUMBERS", 10)
        with pytest.raises(ValueError, match="use a smaller window, or novelty_evidence='paper'"):
            DensityRatioHMM(novelty=True, n_basis=50, sigma=1.0, rho=0.01).fit(X, Y)

    def test_a_table_of_another_model(self, fitted):
        evidence = fitted.model_.evidence
        with pytest.raises(ValueError, match="states and the frames"):
            replace(
                evidence, novelty=replace(evidence.novelty, now=replace(evidence.novelty.now, densities=_densities(3)))
            )


def _densities(n_columns):
    random = np.random.RandomState(0)
    return learn_densities(random.normal(size=(50, n_columns)), np.ones((50, 1)), np.ones(50), 1.0, random)
