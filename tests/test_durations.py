"""Stages of states: what they mean, checked against enumeration of segmentations and the dense expansion."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import _core
from drhmm.chain.durations import Durations, stages_of
from drhmm.chain.unknown_state import Novelty
from drhmm.exceptions import ImpossibleDataError
from drhmm.recursion import expect, native_chain, run
from drhmm.reference import durations as dense
from drhmm.reference import recursion as reference
from problems import transition_matrix

# Shapes and shortest stays of three states.
CASES = {
    "geometric": ([1, 1, 1], [1, 1, 1]),
    "negative-binomial": ([1, 2, 3], [1, 1, 1]),
    "shortest stays": ([1, 1, 1], [1, 2, 4]),
    "both": ([2, 3, 1], [3, 2, 1]),
}


def problem(seed, n_frames, case, *, kind="dense", unknown=False, spread=1.5):
    """Evidence of three states, or of these and the unknown, a chain, its stages and shares."""
    random = np.random.default_rng(seed)
    log_ratios = random.normal(size=(n_frames, 4 if unknown else 3)) * spread
    log_ratios[random.random(n_frames) < 0.2] = np.nan
    transmat = 0.3 * transition_matrix(random, 3, kind) + 0.7 * np.eye(3)
    stages = stages_of(transmat, *map(np.array, CASES[case]))
    return log_ratios, transmat, random.dirichlet(np.ones(3)), stages, random.dirichlet(np.ones(3))


def parts(stages):
    return stages.sizes, stages.stay, stages.skip


@pytest.mark.parametrize("kind", ["dense", "left-right"])
@pytest.mark.parametrize("case", CASES)
class TestSegmentations:
    """Every path of states, its probability from the probabilities of its stays."""

    def enumerated(self, log_ratios, transmat, startprob, stages):
        return dense.enumerate_segmentations(log_ratios, transmat, startprob, *parts(stages))

    def test_smoothing_sums_over_them(self, case, kind):
        log_ratios, *chain, _ = problem(1, 6, case, kind=kind)
        smoothed = run("smooth", native_chain(*chain), log_ratios, [6], None, 1)
        assert_allclose(smoothed, self.enumerated(log_ratios, *chain)[0], atol=1e-12)

    def test_filtering_is_smoothing_of_the_past(self, case, kind):
        log_ratios, *chain, _ = problem(2, 6, case, kind=kind)
        last = [self.enumerated(log_ratios[: t + 1], *chain)[0][-1] for t in range(6)]
        assert_allclose(run("filter", native_chain(*chain), log_ratios, [6], None, 1), last, atol=1e-12)

    def test_a_lag_is_smoothing_of_a_prefix(self, case, kind):
        log_ratios, *chain, _ = problem(3, 6, case, kind=kind)
        expected = [self.enumerated(log_ratios[: t + 3], *chain)[0][t] for t in range(6)]
        assert_allclose(run("fixed_lag", native_chain(*chain), log_ratios, [6], None, 1, 2), expected, atol=1e-12)

    def test_expected_transitions_sum_over_them(self, case, kind):
        log_ratios, *chain, _ = problem(4, 6, case, kind=kind)
        counts = expect(native_chain(*chain), log_ratios, [6], 1)[1]
        assert_allclose(counts, self.enumerated(log_ratios, *chain)[1], atol=1e-12)

    def test_the_best_path_is_the_best_of_them(self, case, kind):
        log_ratios, *chain, _ = problem(5, 7, case, kind=kind)
        path = run("viterbi", native_chain(*chain), log_ratios, [7], None, 1)
        assert_array_equal(path, self.enumerated(log_ratios, *chain)[3])

    def test_their_likelihood_is_that_of_the_dense_expansion(self, case, kind):
        log_ratios, transmat, startprob, stages, _ = problem(6, 6, case, kind=kind)
        expanded = dense.expand(transmat, startprob, *parts(stages))
        of_stages = np.repeat(log_ratios, stages.sizes, axis=1)
        likelihood = reference.log_likelihood(of_stages, *expanded)
        assert_allclose(likelihood, self.enumerated(log_ratios, transmat, startprob, stages)[2], atol=1e-12)


@pytest.mark.parametrize("case", CASES)
class TestUnknown:
    """The unknown interrupts every stage, and returns to any stage."""

    NOVELTY = Novelty(0.1, 4.0)

    def chain(self, transmat, startprob, stages, prior):
        return native_chain(transmat, startprob, stages, self.NOVELTY, prior)

    def enumerated(self, log_ratios, transmat, startprob, stages, prior):
        unknown = prior, self.NOVELTY.rate, self.NOVELTY.duration
        return dense.enumerate_segmentations(log_ratios, transmat, startprob, *parts(stages), unknown)

    def test_smoothing_sums_over_segmentations(self, case):
        log_ratios, *model = problem(7, 5, case, unknown=True)
        smoothed = run("smooth", self.chain(*model), log_ratios, [5], None, 1)
        assert_allclose(smoothed, self.enumerated(log_ratios, *model)[0], atol=1e-12)

    @pytest.mark.slow
    def test_the_best_path_is_the_best_segmentation(self, case):
        log_ratios, *model = problem(8, 6, case, unknown=True)
        path = run("viterbi", self.chain(*model), log_ratios, [6], None, 1)
        assert_array_equal(path, self.enumerated(log_ratios, *model)[3])

    def test_rows_sum_to_one(self, case):
        _, *model = problem(9, 1, case, unknown=True)
        transmat, startprob, stages, prior = model
        expanded = dense.expand(transmat, startprob, *parts(stages))
        rows, start = dense.with_unknown(*expanded, stages.sizes, prior, self.NOVELTY.rate, self.NOVELTY.duration)
        assert_allclose([*rows.sum(axis=1), start.sum()], 1)


@pytest.mark.parametrize("case", CASES)
class TestDenseExpansion:
    def expanded(self, log_ratios, transmat, startprob, stages):
        return np.repeat(log_ratios, stages.sizes, axis=1), *dense.expand(transmat, startprob, *parts(stages))

    @pytest.mark.parametrize("spread", [1.5, 300.0])
    def test_posteriors(self, case, spread):
        log_ratios, *chain, _ = problem(10, 200, case, spread=spread)
        expected = dense.collapse(reference.smooth(*self.expanded(log_ratios, *chain)), chain[2].sizes)
        assert_allclose(run("smooth", native_chain(*chain), log_ratios, [200], None, 1), expected, atol=1e-10)

    def test_counts(self, case):
        log_ratios, *chain, _ = problem(11, 200, case)
        counts = reference.expected_transitions(*self.expanded(log_ratios, *chain))
        expected = dense.collapse_counts(counts, chain[2].sizes)
        assert_allclose(expect(native_chain(*chain), log_ratios, [200], 1)[1], expected, atol=1e-10)

    def test_gaps(self, case):
        log_ratios, *chain, _ = problem(12, 20, case)
        dt = np.random.default_rng(0).integers(1, 5, size=20)
        filled, rows = reference.fill_gaps(log_ratios, dt)
        expected = run("smooth", native_chain(*chain), filled, [len(filled)], None, 1)[rows]
        assert_allclose(run("smooth", native_chain(*chain), log_ratios, [20], dt, 1), expected, atol=1e-12)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("case", CASES)
class TestBestPath:
    """The native best segmentation against the readable one, on sequences too long to enumerate."""

    NOVELTY = Novelty(0.02, 6.0)

    def problem(self, seed, n_frames, case, unknown, **more):
        log_ratios, transmat, startprob, stages, prior = problem(seed, n_frames, case, unknown=unknown, **more)
        ours = native_chain(transmat, startprob, stages, *((self.NOVELTY, prior) if unknown else ()))
        own = (prior, self.NOVELTY.rate, self.NOVELTY.duration) if unknown else None
        return log_ratios, ours, (transmat, startprob, *parts(stages), own)

    def log_probability(self, path, log_ratios, chain):
        evidence = reference.prepare(log_ratios)[np.arange(len(path)), path].sum()
        return np.log(dense.segmentation_probability(path, *chain)) + evidence

    def assert_as_probable(self, log_ratios, ours, chain):
        path = run("viterbi", ours, log_ratios, [len(log_ratios)], None, 1)
        best = self.log_probability(dense.viterbi(log_ratios, *chain), log_ratios, chain)
        assert_allclose(self.log_probability(path, log_ratios, chain), best, rtol=1e-12)

    def test_it_is_as_probable_as_that_of_the_reference(self, case, unknown):
        self.assert_as_probable(*self.problem(14, 300, case, unknown))

    def test_steps_of_a_gap_are_steps_without_evidence(self, case, unknown):
        log_ratios, ours, chain = self.problem(15, 60, case, unknown)
        dt = np.random.default_rng(1).integers(1, 9, size=60)
        filled, rows = reference.fill_gaps(log_ratios, dt)
        assert_array_equal(run("viterbi", ours, log_ratios, [60], dt, 1), dense.viterbi(filled, *chain)[rows])

    def test_its_probability_is_that_of_its_segments(self, case, unknown):
        log_ratios, ours, chain = self.problem(16, 150, case, unknown)
        _, path, (log_probability,) = _core.viterbi(ours, log_ratios, [150])
        assert_allclose(log_probability, self.log_probability(path, log_ratios, chain))

    def test_evidence_that_is_far_apart_excludes_states(self, case, unknown):
        log_ratios, ours, chain = self.problem(17, 200, case, unknown, spread=400.0)
        log_ratios[:, 0][log_ratios[:, 0] < -600] = -np.inf
        self.assert_as_probable(log_ratios, ours, chain)

    def test_impossible_evidence_is_named(self, case, unknown):
        log_ratios, ours, _ = self.problem(18, 20, case, unknown)
        log_ratios[13] = -np.inf
        with pytest.raises(ImpossibleDataError, match="time step 13"):
            run("viterbi", ours, log_ratios, [20], None, 1)


def test_stages_of_one_each_are_the_plain_chain():
    log_ratios, transmat, startprob, stages, _ = problem(13, 50, "geometric")
    plain = run("smooth", native_chain(transmat, startprob), log_ratios, [50], None, 1)
    assert_allclose(run("smooth", native_chain(transmat, startprob, stages), log_ratios, [50], None, 1), plain)


def test_rare_transitions_of_states_of_one_stage_keep_their_digits():
    transmat = np.array([[1.0, 1e-20], [0.1, 0.9]])
    stages = stages_of(transmat, np.array([1, 2]), np.ones(2, int))
    log_ratios = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    counts = expect(native_chain(transmat, np.array([1.0, 0.0]), stages), log_ratios, [2], 1)[1]
    assert_allclose(counts, [[0, 1], [0, 0]])


class TestDurations:
    TRANSMAT = np.array([[0.9, 0.1, 0.0], [0.0, 0.95, 0.05], [0.0, 0.0, 1.0]])

    @pytest.mark.parametrize("case", CASES)
    def test_the_mean_is_that_of_the_transition_matrix(self, case):
        stages = stages_of(self.TRANSMAT, *map(np.array, CASES[case]))
        assert_allclose(stages.mean, [10, 20, np.inf])

    @pytest.mark.parametrize("case", CASES)
    def test_probabilities_sum_to_one_and_have_the_mean(self, case):
        stages = stages_of(self.TRANSMAT, *map(np.array, CASES[case]))
        probabilities = stages.probabilities(2000)
        assert_allclose(probabilities.sum(axis=1), [1, 1, 0])
        assert_allclose(probabilities[:2] @ np.arange(1, 2001), stages.mean[:2])

    def test_probabilities_are_those_of_the_reference(self):
        stages = stages_of(self.TRANSMAT, np.array([3, 1, 1]), np.array([5, 1, 1]))
        of_first = [dense.stay_probabilities(stages.stay[:5], np.eye(5)[0], n)[0] for n in range(1, 31)]
        assert_allclose(stages.probabilities(30)[0], of_first)

    def test_no_stay_is_shorter_than_the_minimum(self):
        stages = stages_of(self.TRANSMAT, np.array([1, 3, 1]), np.array([4, 6, 2]))
        assert_array_equal(stages.minimum, [4, 6, 1])
        assert_array_equal((stages.probabilities(10)[:2] > 0).argmax(axis=1) + 1, [4, 6])

    def test_short_stays_remain_possible_without_a_minimum(self):
        assert (stages_of(self.TRANSMAT, np.array([8, 8, 1]), np.ones(3, int)).probabilities(1)[:2] > 0).all()

    def test_a_mean_below_the_minimum_is_raised_to_it(self):
        stages = stages_of(self.TRANSMAT, np.ones(3, int), np.array([15, 1, 1]))
        assert_allclose(stages.mean[0], 15)

    def test_a_state_that_is_never_left_has_one_stage(self):
        assert stages_of(self.TRANSMAT, np.full(3, 4), np.full(3, 6)).sizes[2] == 1

    def test_shape_counts_the_stages_that_can_last(self):
        assert_array_equal(stages_of(self.TRANSMAT, np.array([2, 3, 1]), np.array([6, 1, 1])).shape, [2, 3, 1])

    def test_a_state_that_is_left_too_rarely_for_stages_is_refused(self):
        with pytest.raises(ValueError, match="left with probability 1e-17 per time step: too rarely for 4 stages"):
            stages_of(np.array([[1.0, 1e-17], [0.5, 0.5]]), np.array([4, 1]), np.ones(2, int))

    def test_arrays_cannot_be_written_to(self):
        with pytest.raises(ValueError, match="read-only"):
            Durations.geometric(self.TRANSMAT).stay[0] = 0.0

    def test_pickling_keeps_them(self):
        stages = stages_of(self.TRANSMAT, np.array([2, 3, 1]), np.array([6, 1, 1]))
        for first, second in zip(parts(stages), parts(pickle.loads(pickle.dumps(stages))), strict=True):
            assert_array_equal(first, second)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            (([0], [], [0.0]), "sizes must be 1 to 10000 stages of each state, got"),
            (([2], [0.5], [0.0]), r"stay must have shape \(2,\) and skip \(1,\), got \(1,\) and \(1,\)"),
            (([2], [0.5, 1.0], [0.0]), "stay has 1.0 at place 1"),
            (([1, 1], [0.5, np.nan], [0.0, 0.0]), "stay has nan at place 1"),
            (([2], [0.5, 0.5], [-0.1]), "skip has -0.1 at place 0"),
        ],
    )
    def test_arrays_that_mean_nothing_are_refused(self, arrays, message):
        with pytest.raises(ValueError, match=message):
            Durations(*map(np.array, arrays))
