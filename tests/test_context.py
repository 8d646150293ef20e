"""Context: features of the past, the members that read them, and the tunings of live answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import drhmm
from drhmm import DensityRatioHMM, _core, recursion
from drhmm.data.sequences import as_sequences
from drhmm.evidence.pool_members import ContextMember
from drhmm.evidence.pooled import pooled_evidence
from drhmm.features.context import N_KERNELS, Context, learn_context, rows_ahead
from drhmm.features.frames import learn_framing
from drhmm.learning.block_sums import Statistics
from drhmm.reference import context as reference

RANDOM = np.random.default_rng(0)
FAST = {"n_basis": 40, "sigma": 1.0, "rho": 0.01, "random_state": 0, "n_threads": 1}


def waves(n_rows, seed, n_columns=2):
    """Two states with the same values but other frequencies: single samples say nothing."""
    random = np.random.default_rng(seed)
    y = (np.arange(n_rows) // 40) % 2
    phase = np.cumsum(np.where(y == 0, 0.3, 0.9))
    X = np.column_stack([np.sin(phase + k) for k in range(n_columns)])
    return X + 0.1 * random.normal(size=X.shape), y


def context_of(samples, windows=(5, 17), kinds=3):
    random = np.random.RandomState(1)
    signs = random.choice([-1.0, 0.0, 1.0], size=(samples.shape[1], N_KERNELS))
    mean, scale = np.nanmean(samples, axis=0), np.nanstd(samples, axis=0)
    return Context(mean, scale, windows, kinds, signs, random.normal(size=N_KERNELS))


@pytest.fixture(scope="module")
def fitted():
    X, y = waves(1200, 0)
    return DensityRatioHMM(**FAST).fit(X, y, lengths=[400] * 3)


class TestFeatures:
    @pytest.mark.parametrize("kinds", [1, 2, 3])
    @pytest.mark.parametrize("windows", [(5,), (2, 17), (5, 17, 65)])
    def test_are_those_of_the_reference(self, windows, kinds):
        samples = RANDOM.normal(size=(90, 3)).cumsum(axis=0)
        context = context_of(samples, windows, kinds)
        arrays = (context.mean, context.scale, list(windows), kinds, context.signs, context.bias)
        expected = reference.context_features(samples, *arrays)
        assert_allclose(context.features(samples, [90]), expected, atol=1e-10)

    def test_statistics_are_those_of_200_columns(self):
        samples = RANDOM.normal(size=(50, 430))
        signs = np.zeros((430, N_KERNELS))
        signs[np.arange(N_KERNELS), np.arange(N_KERNELS)] = 1.0
        context = Context(samples.mean(axis=0), samples.std(axis=0), (5,), 2, signs, np.zeros(N_KERNELS))
        expected = reference.context_features(samples, context.mean, context.scale, [5], 2, signs, context.bias)
        assert context.size == expected.shape[1] == 3 * 200 + N_KERNELS
        assert_allclose(context.features(samples, [50]), expected, atol=1e-10)

    def test_nothing_crosses_a_sequence(self):
        samples = RANDOM.normal(size=(70, 2))
        context = context_of(samples)
        parts = [context.features(part, [len(part)]) for part in np.split(samples, [30])]
        assert_array_equal(context.features(samples, [30, 40]), np.concatenate(parts))

    def test_a_nan_holds_the_last_value_of_its_column(self):
        samples = RANDOM.normal(size=(60, 2))
        samples[0, 0] = samples[20:23, 1] = np.nan
        context = context_of(samples)
        filled = samples.copy()
        filled[0, 0], filled[20:23, 1] = context.mean[0], samples[19, 1]
        assert_allclose(context.features(samples, [60]), context.features(filled, [60]), atol=1e-12)

    @pytest.mark.parametrize("first", [0, 1, 30, 36, 37, 70, 119])
    def test_a_part_has_the_bits_of_the_whole(self, first):
        samples = RANDOM.normal(size=(120, 2))
        samples[25:31, 0] = np.nan
        context = context_of(samples, (5, 17))
        whole = context.features(samples, [50, 70])
        assert_array_equal(context.native.features(samples, [50, 70], first, 120 - first), whole[first:])

    def test_the_past_alone_counts(self):
        samples = RANDOM.normal(size=(100, 2))
        context = context_of(samples)
        changed = samples.copy()
        changed[60:] += 5.0
        assert_array_equal(context.features(changed, [100])[:60], context.features(samples, [100])[:60])

    @pytest.mark.parametrize("n_states", [2, 5])
    def test_members_read_them_as_in_numpy(self, n_states):
        samples = RANDOM.normal(size=(300, 3))
        past = context_of(samples)
        center, spread = RANDOM.normal(size=past.size), 0.1 + RANDOM.random(past.size)
        intercept, prior = np.full(n_states, 1 / n_states), np.full(n_states, 1 / n_states)
        member = ContextMember(center, spread, intercept, RANDOM.normal(size=(past.size, n_states)) / 50, 0.1)
        evidence = pooled_evidence(learn_framing(samples, 1, True), prior, 0.02, [member], past=past)
        ratios = np.maximum(member.estimates(past.features(samples, [300])) / prior, evidence.least_ratio)
        assert_allclose(evidence.log_ratios(samples, [300], 1), np.log(ratios), atol=1e-10)

    def test_rows_ahead_stay_in_their_sequence(self):
        assert rows_ahead([3, 4], 2).tolist() == [2, 2, 2, 5, 6, 6, 6]


class TestWindows:
    def learned(self, mean_stay, longest=None, n_columns=2):
        samples = RANDOM.normal(size=(200, n_columns))
        framing = learn_framing(samples, 1, True)
        return learn_context(framing, samples, [200], mean_stay, longest, np.random.RandomState(0))

    @pytest.mark.parametrize(("stay", "windows"), [(1, (5,)), (9, (5, 17)), (40, (5, 17, 65)), (1000, (5, 17, 65))])
    def test_reach_up_to_twice_the_mean_stay(self, stay, windows):
        assert self.learned(stay).windows == windows

    @pytest.mark.parametrize(("longest", "windows"), [(3, (3,)), (5, (5,)), (20, (5, 17, 20)), (200, (5, 17, 65, 200))])
    def test_reach_up_to_the_longest_that_is_asked_for(self, longest, windows):
        assert self.learned(1, longest).windows == windows

    def test_many_columns_have_fewer_statistics(self):
        context = self.learned(1000, n_columns=50)
        assert (context.windows, context.kinds) == ((5,), 1)


class TestModel:
    def test_finds_states_that_single_samples_do_not_show(self, fitted):
        X, y = waves(800, 1)
        alone = DensityRatioHMM(context=None, **FAST).fit(*waves(1200, 0), lengths=[400] * 3)
        assert fitted.score(X, y, method="filter") > 0.9 > 0.75 > alone.score(X, y, method="filter")

    @pytest.mark.parametrize("context", [None, "auto", 9])
    def test_takes_a_longest_window(self, context):
        X, y = waves(600, 0)
        model = DensityRatioHMM(context=context, **FAST).fit(X, y, lengths=[200] * 3).model_
        windows = {None: None, "auto": (5, 17, 65), 9: (5, 9)}[context]
        assert (None if model.evidence.past is None else model.evidence.past.windows) == windows

    @pytest.mark.parametrize(
        ("context", "message"),
        [
            ("long", "context must be a number of time steps, 'auto' or None, got 'long'"),
            (1, r"context must be an integer of at least 2, got 1|context must be .*2.*got 1"),
            (2.5, "context must be an integer"),
        ],
    )
    def test_refuses_other_contexts(self, context, message):
        with pytest.raises((ValueError, TypeError), match=message):
            DensityRatioHMM(context=context).fit(*waves(200, 0))

    @pytest.mark.parametrize("lag", [0, 3, 6])
    def test_a_stream_answers_as_a_batch_through_gaps_and_nan(self, fitted, lag):
        X, _ = waves(150, 2)
        X[60:63], X[90, 0] = np.nan, np.nan
        dt = np.ones(150, dtype=int)
        dt[100] = 7
        stream, answers = fitted.model_.stream(lag), []
        for k, x in enumerate(X):
            answers.append(stream.step(x, dt=int(dt[k])))
            if k % 37 == 0:
                stream = fitted.model_.resume(stream.snapshot())
        expected = fitted.predict_proba(X, dt=dt, lag=lag) if lag else fitted.predict_proba(X, dt=dt, method="filter")
        assert_allclose(np.array(answers[lag:]), expected[: 150 - lag], atol=1e-12)

    def test_single_precision_is_close(self, fitted):
        X, _ = waves(200, 3)
        single = fitted.predict_proba(X.astype(np.float32))
        assert single.dtype == np.float32
        assert_allclose(single, fitted.predict_proba(X), atol=1e-3)

    def test_a_file_keeps_the_context_and_the_tunings(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert loaded.tunings == fitted.model_.tunings
        X, _ = waves(100, 4)
        for method in ("smooth", "filter", "frame"):
            assert_array_equal(loaded.predict_proba(X, method=method), fitted.predict_proba(X, method=method))

    def test_blocks_have_the_same_context_members_as_one_fit(self):
        X, y = waves(1200, 0)
        blocks = DensityRatioHMM(**FAST).partial_fit(X[:600], y[:600], classes=[0, 1], lengths=[300] * 2)
        more = blocks.partial_fit(X[600:], y[600:], lengths=[300] * 2).model_
        whole = DensityRatioHMM(**FAST).partial_fit(X, y, classes=[0, 1], lengths=[300] * 4).model_
        assert set(more.evidence.members) == set(whole.evidence.members)
        assert np.mean(more.predict(X) == y) == pytest.approx(np.mean(whole.predict(X) == y), abs=0.02)

    def test_blocks_of_a_model_with_look_ahead_alone_have_its_sums(self, fitted):
        X, y = waves(300, 0)
        evidence = fitted.model_.evidence
        both, alone = (
            Statistics.of(one, as_sequences(X), y, None) for one in (evidence, replace(evidence, context=None))
        )
        assert_array_equal(alone.sums["ahead"]["moment"], both.sums["ahead"]["moment"])
        assert "context" not in alone.sums

    def test_weights_of_zero_leave_rows_out_of_the_sums(self):
        X, y = waves(800, 0)
        weights = np.repeat([1.0, 0.0], 400)
        noisy = np.concatenate([y[:400], 1 - y[400:]])
        fitted = DensityRatioHMM(**FAST).fit(X, noisy, lengths=[100] * 8, sample_weight=weights)
        assert fitted.score(X[:400], y[:400]) > 0.9

    def test_an_explanation_has_one_entry_per_column(self, fitted):
        X, _ = waves(200, 5)
        found = fitted.explain(X, 150)
        assert list(found.columns) == ["column 0", "column 1"]
        assert {"context", "ahead"} <= set(found.members)
        assert found.average + sum(found.columns.values()) == pytest.approx(found.frame, abs=1e-9)
        assert sum(found.members.values()) == pytest.approx(found.frame, abs=1e-9)


class TestTunings:
    def test_each_kind_of_answer_has_its_own(self, fitted):
        tunings = fitted.model_.tunings
        assert set(tunings) == {"smooth", "filter", "frame"}
        assert tunings["filter"].scales != tunings["smooth"].scales

    def test_given_scales_hold_for_every_kind(self):
        model = DensityRatioHMM(evidence_scale=0.5, **FAST).fit(*waves(400, 0), lengths=[200] * 2).model_
        assert set(model.tunings) == {"smooth"}
        assert model.tuned("filter") is model


class TestFilteringLoss:
    def problem(self):
        evidence = RANDOM.normal(size=(40, 3))
        evidence[7], evidence[12, 1] = np.nan, -8.0
        codes = RANDOM.integers(-1, 3, size=40)
        transmat = RANDOM.dirichlet(np.ones(3), 3)
        return evidence, codes, transmat, RANDOM.dirichlet(np.ones(3)), [25, 15]

    def test_is_that_of_the_filter(self):
        evidence, codes, transmat, startprob, lengths = self.problem()
        posteriors = recursion.filter(evidence, transmat, startprob, lengths=lengths)
        judged = codes >= 0
        expected = -np.log(posteriors[judged, codes[judged]]).sum()
        loss, _ = _core.filtering_loss(evidence, codes, transmat, startprob, lengths)
        assert loss == pytest.approx(expected, rel=1e-12)

    def test_has_the_derivatives_of_finite_differences(self):
        evidence, codes, *chain = self.problem()
        _, gradient = _core.filtering_loss(evidence, codes, *chain)
        expected = np.zeros_like(evidence)
        for place in np.argwhere(~np.isnan(evidence)):
            losses = []
            for step in (1e-5, -1e-5):
                moved = evidence.copy()
                moved[tuple(place)] += step
                losses.append(_core.filtering_loss(moved, codes, *chain, False)[0])
            expected[tuple(place)] = (losses[0] - losses[1]) / 2e-5
        assert_allclose(gradient, expected, atol=1e-7)
