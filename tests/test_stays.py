"""Stays of labels, the durations that follow from them, and what an estimator makes of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import drhmm
from drhmm import DensityRatioHMM
from drhmm.chain.durations import DurationRules, Stays, minimum_stays, stages_of
from drhmm.datasets import blobs, sines
from drhmm.reference import durations as dense

LETTERS = np.array(["a", "b", "c"])


def drawn(random, lengths, n_states=2):
    """Labels with these stays, each followed by another state."""
    states = np.cumsum([0, *random.integers(1, n_states, size=len(lengths) - 1)]) % n_states
    return np.repeat(states, lengths)


def counted(codes, n_states):
    """A transition matrix of frequencies."""
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (codes[:-1], codes[1:]), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)


class TestStays:
    def test_the_first_was_not_entered_and_the_last_not_left(self):
        stays = Stays.of(np.array([0, 0, 1, 1, 1, 0]), [6])
        assert_array_equal(stays.kinds, [[0, 1, 1, 0], [0, 2, 0, 1], [1, 3, 1, 1]])

    def test_nothing_is_counted_across_sequences(self):
        stays = Stays.of(np.array([0, 0, 0, 1]), [2, 2])
        assert_array_equal(stays.kinds, [[0, 1, 0, 1], [0, 2, 0, 0], [1, 1, 1, 0]])

    def test_an_unknown_label_cuts(self):
        stays = Stays.of(np.array([0, 1, -1, 1, 0]), [5])
        assert_array_equal(stays.kinds, [[0, 1, 0, 1], [0, 1, 1, 0], [1, 1, 0, 1], [1, 1, 1, 0]])

    def test_equal_ones_are_counted(self):
        assert_array_equal(Stays.of(np.array([0, 0, 1, 1, 1, 1]), [1, 1, 2, 2]).counts, [2, 2])

    def test_those_of_blocks_add_up(self):
        codes, lengths = np.random.default_rng(0).integers(2, size=200), [50, 30, 120]
        parts = [Stays.of(codes[:50], [50]), Stays.of(np.zeros(0, int), []), Stays.of(codes[50:], [30, 120])]
        whole, merged = Stays.of(codes, lengths), Stays.merged(parts)
        assert_array_equal(merged.kinds, whole.kinds)
        assert_array_equal(merged.counts, whole.counts)

    @pytest.mark.parametrize(("k", "minimum"), [(1, 1), (3, 1), (8, 1), (1, 6), (4, 6), (6, 6), (8, 6)])
    def test_their_log_likelihood_is_that_of_the_stages(self, k, minimum):
        codes = drawn(np.random.default_rng(1), [9, 14, 20, 8, 30, 11, 25, 17, 4])
        transmat = np.array([[0.95, 0.05], [0.0, 1.0]])
        stages = stages_of(transmat, np.array([k, 1]), np.array([minimum, 1]))
        stays = Stays.of(codes, [len(codes)]).of_state(0)
        entry = np.zeros(stages.sizes[0])
        entry[0] += 1 - stages.skip[0]
        entry[-1] += stages.skip[0]
        own = stages.stay[: stages.sizes[0]]
        expected = [np.log(dense.stay_probabilities(own, entry, n)[1 - left]) for _, n, _, left in stays.kinds]
        assert_allclose(stays.log_likelihood(k, minimum, 20.0), np.sum(expected), rtol=1e-10)


class TestShapes:
    RULES = DurationRules(True, np.ones(2, dtype=np.int64))

    def shapes(self, lengths, rules=RULES):
        codes = drawn(np.random.default_rng(2), lengths)
        return rules.shapes(counted(codes, 2), Stays.of(codes, [len(codes)]))

    def test_geometric_stays_have_one_stage(self):
        assert_array_equal(self.shapes(np.random.default_rng(3).geometric(0.05, size=300)), [1, 1])

    def test_regular_stays_have_many(self):
        assert (self.shapes(np.random.default_rng(4).integers(20, 41, size=100)) >= 8).all()

    def test_negative_binomial_stays_have_about_as_many_as_they_were_drawn_with(self):
        lengths = 4 + np.random.default_rng(5).negative_binomial(4, 0.1, size=400)
        assert set(self.shapes(lengths)) <= {3, 4, 6}

    def test_one_stay_is_not_enough_to_tell(self):
        assert_array_equal(self.shapes([30, 30, 30]), [1, 1])

    def test_a_shape_is_below_the_mean_stay(self):
        assert (self.shapes([5] * 200) <= 4).all()

    def test_a_state_that_is_never_left_has_one_stage(self):
        transmat = np.array([[0.9, 0.1], [0.0, 1.0]])
        assert self.RULES.shapes(transmat, Stays.of(np.repeat([0, 1], [30, 900]), [930]))[1] == 1

    def test_stays_below_the_minimum_count_as_the_minimum(self):
        rules = DurationRules(True, np.full(2, 10))
        lengths = np.random.default_rng(6).integers(20, 41, size=100)
        lengths[::7] = 2
        assert (self.shapes(lengths, rules) <= 10).all()

    def test_they_are_not_learned_unless_asked_for(self):
        rules = DurationRules(False, np.ones(2, dtype=np.int64))
        assert_array_equal(self.shapes(np.full(50, 30), rules), [1, 1])


class TestMinimum:
    @pytest.mark.parametrize(
        ("given", "expected"), [(None, [1, 1, 1]), (4, [4, 4, 4]), ({"b": 3}, [1, 3, 1]), ([2, 3, 4], [2, 3, 4])]
    )
    def test_one_number_one_per_label_or_one_per_class(self, given, expected):
        assert_array_equal(minimum_stays(given, LETTERS), expected)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (0, "min_duration must be at least 1, got 0"),
            (2.5, "min_duration must be an integer, got 2.5"),
            (10**9, "min_duration must be at most 10000"),
            ({"x": 3}, r"min_duration has 'x', which is not a class: classes are \['a', 'b', 'c'\]"),
            ({"b": -1}, "min_duration of the class 'b' must be at least 1, got -1"),
            ([1, 2], r"min_duration has 2 numbers for 3 classes"),
        ],
    )
    def test_what_means_nothing_is_refused(self, given, message):
        with pytest.raises(ValueError, match=message):
            minimum_stays(given, LETTERS)


def estimator(**settings):
    settings = {"durations": "negative-binomial", "sigma": "default", "rho": "default", **settings}
    return DensityRatioHMM(**{"window": 4, "n_basis": 50, "random_state": 0, **settings})


def followed(model, X, dt, lag):
    """Answers of a stream, and in the end those of the frames that wait."""
    stream = model.stream(lag)
    answers = [stream.step(x, int(steps)) for x, steps in zip(X, dt, strict=True)]
    return np.array([*answers[lag:], *stream.pending()])


def changes(path):
    return np.flatnonzero(np.diff(path)) + 1


@pytest.fixture(scope="module")
def regular():
    """Noisy sines with stays of 20 to 40 samples: training and test."""
    return sines(1500, noise=0.4, durations=(20, 40), random_state=0), sines(
        1000, noise=0.4, durations=(20, 40), random_state=1
    )


@pytest.fixture(scope="module")
def clouds():
    """Overlapping clouds with stays of 20 to 40 frames."""
    random = np.random.default_rng(2)
    y = drawn(random, random.integers(20, 41, size=40), 3)
    return np.array([[0.0, 0.0], [1.5, 0.0], [0.75, 1.3]])[y] + 0.8 * random.normal(size=(len(y), 2)), y


class TestEstimator:
    def test_regular_stays_are_recognised_better(self, regular):
        train, test = regular
        plain = estimator(durations="geometric", context=None).fit(*train).score(*test)
        assert estimator(context=None).fit(*train).score(*test) > plain + 0.05

    @pytest.mark.slow
    def test_the_best_path_is_better_too(self, regular):
        train, test = regular
        plain = estimator(durations="geometric").fit(*train).score(*test, method="viterbi")
        assert estimator().fit(*train).score(*test, method="viterbi") > plain + 0.05

    @pytest.mark.slow
    def test_without_labels_shapes_are_learned_from_the_states_that_were_found(self, clouds):
        fitted = estimator(n_states=3, window=1, max_iter=20, tol=1e-2).fit(clouds[0])
        assert fitted.model_.durations.shape.max() > 2

    @pytest.mark.slow
    def test_labels_of_some_frames_are_enough(self, clouds):
        X, y = clouds
        some = np.where(np.random.default_rng(0).random(len(y)) < 0.5, y, -1)
        fitted = estimator(window=1, max_iter=20, tol=1e-2).fit(X, some)
        assert fitted.model_.durations.shape.max() > 2

    @pytest.mark.slow
    def test_em_ends_with_more_likely_data(self, clouds):
        settings = {"n_states": 3, "window": 1, "max_iter": 20, "tol": 1e-2}
        plain = estimator(durations="geometric", **settings).fit(clouds[0])
        assert estimator(**settings).fit(clouds[0]).history_[-1] > plain.history_[-1]

    def test_the_default_learns_shapes_of_regular_stays(self, regular):
        (X, y), _ = regular
        assert DensityRatioHMM(n_basis=20, sigma="default", rho="default").fit(X, y).model_.stages is not None

    def test_the_default_is_a_plain_chain_where_stays_are_geometric(self):
        X, y = blobs(400, random_state=0)
        assert DensityRatioHMM(n_basis=20, sigma="default", rho="default").fit(X, y).model_.stages is None

    def test_a_plain_chain_knows_its_durations(self, regular):
        (X, y), _ = regular
        model = DensityRatioHMM(n_basis=20, sigma="default", rho="default").fit(X, y).model_
        assert_allclose(model.durations.mean, 1 / (1 - np.diagonal(model.transmat)))

    def test_no_best_path_is_shorter_than_the_minimum(self, regular):
        train, (X, _) = regular
        path = estimator(durations="geometric", min_duration=25).fit(*train).predict(X, method="viterbi")
        assert np.diff(changes(path)).min() >= 25

    def test_the_minimum_may_differ_by_class(self, regular):
        (X, y), _ = regular
        fitted = estimator(durations="geometric", min_duration={"b": 12}).fit(X, LETTERS[y])
        assert_array_equal(fitted.model_.durations.minimum, [1, 12, 1])

    def test_given_transitions_give_the_mean(self, regular):
        (X, y), _ = regular
        given = np.full((3, 3), 0.02) + 0.94 * np.eye(3)
        assert_allclose(estimator(transmat=given).fit(X, y).model_.durations.mean, 25)

    def test_forbidden_transitions_stay_forbidden(self, regular):
        (X, _), (X_new, _) = regular
        y = np.repeat(np.arange(50) % 3, 30)
        prior = np.where(np.roll(np.eye(3), 1, axis=1) + np.eye(3) > 0, 1.0, -np.inf)
        path = estimator(transition_prior=prior).fit(X, y).predict(X_new, method="viterbi")
        steps = path[changes(path)] - path[changes(path) - 1]
        assert set(steps % 3) == {1}

    def test_states_of_several_stages_last_as_long_as_they_did(self, regular):
        (X, y), _ = regular
        counts = np.zeros((3, 3))
        np.add.at(counts, (y[:-1], y[1:]), 1)
        durations = estimator().fit(X, y).model_.durations
        assert (durations.shape > 1).all()
        assert_allclose(durations.mean, 1 / (1 - np.diagonal(counts) / counts.sum(axis=1)))

    def test_the_transition_matrix_has_their_mean(self, regular):
        (X, y), _ = regular
        fitted = estimator().fit(X, y)
        assert_allclose(fitted.transmat_.diagonal(), 1 - 1 / fitted.model_.durations.mean)

    @pytest.mark.slow
    def test_weights_of_classes_change_the_mean(self, regular):
        (X, y), _ = regular
        plain, weighted = (estimator(class_weight=w).fit(X, y) for w in (None, {0: 1.0, 1: 2.0, 2: 1.0}))
        assert weighted.model_.durations.mean[1] > 1.2 * plain.model_.durations.mean[1]

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"durations": "poisson"}, "durations must be one of .*'poisson'"),
            ({"min_duration": 0}, "min_duration must be at least 1, got 0"),
            ({"min_duration": {7: 3}}, "min_duration has 7, which is not a class"),
        ],
    )
    def test_bad_settings_are_refused(self, regular, settings, message):
        with pytest.raises(ValueError, match=message):
            estimator(**settings).fit(*regular[0])

    def test_known_labels_that_contradict_the_minimum_are_refused_where_others_are_unknown(self, regular):
        (X, y), _ = regular
        some = y.copy()
        some[-5:] = -1
        with pytest.raises(
            ValueError, match=r"min_duration is 35 for the class \d, but y has a stay of \d+ time steps"
        ):
            estimator(min_duration=35).fit(X, some)


class TestBlocks:
    def test_partial_fit_is_fit(self, regular):
        (X, y), _ = regular
        half = 750
        whole = estimator(evidence_scale=1.0).fit(X, y, lengths=[half, half])
        parts = estimator(evidence_scale=1.0)
        for part in (slice(0, half), slice(half, None)):
            parts.partial_fit(X[part], y[part])
        assert_array_equal(parts.model_.stages.sizes, whole.model_.stages.sizes)
        assert_allclose(parts.model_.stages.stay, whole.model_.stages.stay)

    @pytest.mark.slow
    def test_a_cluster_learns_what_fit_learns(self, regular):
        import dask.dataframe as dd
        import pandas as pd

        (X, y), _ = regular
        frame = pd.DataFrame({"x": X[:, 0], "state": y, "part": np.repeat(np.arange(5), 300)})
        learned = drhmm.dask.fit(
            estimator(), dd.from_pandas(frame, npartitions=3), features=["x"], label="state", sequence="part"
        )
        whole = estimator().fit(X, y, lengths=[300] * 5)
        assert_array_equal(learned.model_.stages.sizes, whole.model_.stages.sizes)
        assert_allclose(learned.model_.stages.stay, whole.model_.stages.stay)


SETTINGS = {
    "negative-binomial": {},
    "with novelty": {"novelty": True},
    "shortest stays": {"durations": "geometric", "min_duration": 10},
    "both": {"min_duration": 10},
}


@pytest.fixture(scope="module", params=SETTINGS)
def model(request, regular):
    return estimator(**SETTINGS[request.param]).fit(*regular[0]).model_


class TestInference:
    @pytest.mark.parametrize("lag", [0, 7])
    def test_a_stream_answers_as_batch_inference_does(self, model, lag):
        X, _ = sines(150, noise=0.4, durations=(20, 40), random_state=3)
        X[40:44] = np.nan
        dt = np.ones(150, dtype=int)
        dt[80] = 13
        expected = model.predict_proba(X, dt=dt, **({"lag": lag} if lag else {"method": "filter"}))
        assert_allclose(followed(model, X, dt, lag), expected, atol=1e-12)

    def test_a_snapshot_goes_on(self, model):
        X, _ = sines(100, noise=0.4, durations=(20, 40), random_state=4)
        stream = model.stream()
        for x in X[:50]:
            stream.step(x)
        resumed = model.resume(stream.snapshot())
        for x in X[50:]:
            assert_array_equal(resumed.step(x), stream.step(x))

    def test_streams_together_are_single_ones(self, model):
        X, _ = sines(60, noise=0.4, durations=(20, 40), random_state=5)
        stream, batch = model.stream(), model.stream_batch(2)
        for x in X:
            alone, together = stream.step(x), batch.step(np.stack([x, x]))
        assert_allclose(together, [alone, alone], atol=1e-12)
        assert_allclose(batch.posterior, together, atol=1e-12)

    def test_a_file_keeps_everything(self, model, tmp_path):
        X, _ = sines(100, noise=0.4, durations=(20, 40), random_state=6)
        model.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert loaded.fingerprint == model.fingerprint
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    def test_paths_go_through_gaps(self, model):
        X, _ = sines(100, noise=0.4, durations=(20, 40), random_state=7)
        dt = np.ones(100, dtype=int)
        dt[50] = 4
        filled = np.insert(X, [50, 50, 50], np.nan, axis=0)
        # A NaN holds the last value of a context, a gap begins a new one.
        model = replace(model, evidence=replace(model.evidence, context=None, ahead=None, past=None))
        # No window reaches across a gap: the frames after it lack samples in both.
        expected = np.delete(model.predict(filled, method="viterbi"), [50, 51, 52])
        assert_array_equal(model.predict(X, method="viterbi", dt=dt), expected)


def test_stages_count_for_the_fingerprint(regular):
    plain, longer = (estimator(durations="geometric", min_duration=d).fit(*regular[0]).model_ for d in (5, 6))
    assert plain.fingerprint != longer.fingerprint
