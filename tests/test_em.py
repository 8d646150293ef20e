"""Learning without labels and with some."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from drhmm import DensityRatioHMM, _core, recursion
from drhmm.chain.transitions import chain_rules
from drhmm.datasets import blobs, moons, rings
from drhmm.learning.em import run_em
from drhmm.learning.training_frames import TrainingFrames
from drhmm.learning.unlabelled import FEWEST_DRAWN, PIECE, _drawn
from drhmm.ratios import FromDensities, LeastSquares
from drhmm.ratios.learner import Task
from drhmm.recursion import native_chain
from drhmm.reference import features as reference_features
from drhmm.reference import recursion as reference
from drhmm.tuning.folds import contiguous_folds


def matched(predicted, truth, n_states):
    """Accuracy under the best naming of the states."""
    return max(np.mean(np.array(names)[predicted] == truth) for names in itertools.permutations(range(n_states)))


def few_labels(y, per_state, seed=0):
    labels = np.full(len(y), -1)
    random = np.random.RandomState(seed)
    for state in np.unique(y):
        labels[random.choice(np.flatnonzero(y == state), per_state, replace=False)] = state
    return labels


class TestWithoutLabels:
    @pytest.mark.slow
    @pytest.mark.parametrize(("make", "n_states", "least"), [(moons, 2, 0.99), (rings, 3, 0.99), (blobs, 3, 0.96)])
    def test_states_are_found(self, make, n_states, least):
        scores = []
        for seed in range(3):
            X, y = make(1000, random_state=seed)
            fitted = DensityRatioHMM(n_states, n_basis=200, random_state=seed).fit(X)
            scores.append(matched(fitted.predict(X), y, n_states))
        assert np.mean(scores) >= least

    def test_what_is_reported(self):
        X, _ = moons(400, random_state=0)
        fitted = DensityRatioHMM(2, n_basis=50, random_state=0).fit(X)
        assert_array_equal(fitted.classes_, [0, 1])
        assert fitted.converged_
        assert fitted.n_iter_ == len(fitted.history_) > 1
        assert fitted.history_[-1] > 0

    @pytest.mark.slow
    def test_it_stops_after_max_iter_and_says_so(self):
        X, _ = moons(400, random_state=0)
        estimator = DensityRatioHMM(2, n_basis=50, max_iter=2, tol=0, random_state=0)
        with pytest.warns(ConvergenceWarning, match="EM did not converge in max_iter=2 iterations"):
            fitted = estimator.fit(X)
        assert fitted.n_iter_ == 2
        assert not fitted.converged_

    @pytest.mark.slow
    def test_of_several_starts_the_largest_gain_is_kept(self):
        X, _ = rings(400, random_state=1)
        settings = {"n_basis": 50, "random_state": 0}
        one = DensityRatioHMM(3, n_init=1, **settings).fit(X)
        four = DensityRatioHMM(3, n_init=4, **settings).fit(X)
        assert four.history_[-1] >= one.history_[-1] - 1e-12

    @pytest.mark.slow
    def test_finds_rings_that_lie_close_together(self):
        random = np.random.RandomState(0)
        states = np.repeat(random.permutation(np.tile(np.arange(4), 8)), 25)
        angle = 2 * np.pi * random.random_sample(len(states))
        radius = 1 + states + 0.15 * random.standard_normal(len(states))
        X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        assert matched(DensityRatioHMM(4, random_state=0).fit(X).predict(X), states, 4) > 0.95

    @pytest.mark.slow
    def test_same_seed_same_result(self):
        X, _ = blobs(300, random_state=0)
        first, second = (DensityRatioHMM(3, n_basis=50, random_state=7).fit(X) for _ in range(2))
        assert_array_equal(first.predict_proba(X), second.predict_proba(X))

    @pytest.mark.slow
    def test_several_sequences_and_missing_frames(self):
        X, y = blobs(600, random_state=0)
        X = X.copy()
        X[100:103] = np.nan
        fitted = DensityRatioHMM(3, n_basis=80, random_state=0).fit(X, lengths=[200, 150, 250])
        assert matched(fitted.predict(X, lengths=[200, 150, 250]), y, 3) > 0.95

    @pytest.mark.slow
    def test_another_source_of_evidence(self):
        X, y = blobs(500, random_state=0)
        source = FromDensities(GaussianMixture(1, random_state=0))
        fitted = DensityRatioHMM(3, ratio=source, random_state=0).fit(X)
        assert matched(fitted.predict(X), y, 3) > 0.95

    def test_verbose_shows_progress_on_standard_error(self, capsys):
        X, _ = moons(200, random_state=0)
        DensityRatioHMM(2, n_basis=30, random_state=0, verbose=True).fit(X)
        printed = capsys.readouterr()
        assert "EM 1 of 3 [" in printed.err
        assert "gain" in printed.err
        assert printed.err.endswith("\n")
        assert printed.out == ""

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:EM")  # the printed rule starves states
    def test_the_rule_of_the_paper_can_be_asked_for(self):
        X, _ = rings(300, random_state=0)
        soft, printed = (
            DensityRatioHMM(3, n_basis=40, em_update=rule, random_state=0).fit(X) for rule in ("soft", "paper")
        )
        assert not np.array_equal(soft.theta_, printed.theta_)


class TestSomeLabels:
    @pytest.mark.slow
    @pytest.mark.parametrize(("make", "n_states"), [(moons, 2), (rings, 3), (blobs, 3)])
    def test_five_labels_per_state_name_the_states(self, make, n_states):
        X, y = make(1000, random_state=0)
        names = np.array(["one", "two", "three"])[:n_states]
        labels = np.array([None] * 1000, dtype=object)
        few = few_labels(y, 5)
        labels[few >= 0] = names[few[few >= 0]]
        fitted = DensityRatioHMM(n_basis=200, random_state=0).fit(X, labels)
        assert np.mean(fitted.predict(X) == names[y]) > 0.95

    @pytest.mark.slow
    @pytest.mark.parametrize("unknown", [-1, np.nan])
    def test_unknown_is_minus_one_among_integers_and_nan_among_floats(self, unknown):
        X, y = blobs(300, random_state=0)
        labels = np.where(np.arange(300) % 3 == 0, y, unknown)
        fitted = DensityRatioHMM(n_basis=50, random_state=0).fit(X, labels)
        assert_array_equal(fitted.classes_, [0, 1, 2])

    def test_known_labels_stay_clamped_through_em(self):
        X, y = blobs(300, random_state=0)
        wrong = few_labels(y, 20)
        known = np.flatnonzero(wrong >= 0)
        wrong[known[0]] = (wrong[known[0]] + 1) % 3  # a label that the data contradict
        seen = []
        training = training_frames(X, wrong, 3)
        source = LeastSquares(n_basis=50, sigma="default", rho="default", random_state=0)
        updates = source.updates(training.task(training.one_hot()))

        def spy(targets):
            seen.append(targets)
            return updates(targets)

        start = np.where(wrong[:, None] >= 0, training.one_hot(), 1 / 3)
        result = run_em(spy, training, chain_rules(1.0, None, None, 3), start, max_iter=5, tol=0.0, n_threads=1)
        for targets in (*seen, result.targets):
            assert_allclose(targets[known], np.eye(3)[wrong[known]], rtol=1e-15, atol=0)

    def test_all_labels_known_is_labelled_learning(self):
        X, y = blobs(300, random_state=0)
        assert DensityRatioHMM(n_basis=50, random_state=0).fit(X, y).history_ == []

    def test_minus_one_and_one_alone_are_two_classes(self):
        X, y = moons(200, random_state=0)
        fitted = DensityRatioHMM(n_basis=50, random_state=0).fit(X, 2 * y - 1)
        assert_array_equal(fitted.classes_, [-1, 1])
        assert fitted.history_ == []


def training_frames(X, codes, n_states, lengths=None):
    from drhmm.data.sequences import as_sequences
    from drhmm.features.frames import learn_framing

    return TrainingFrames(as_sequences(X, lengths), learn_framing(X, 1, True), codes.astype(np.int64), n_states, None)


class TestFactoredLeastSquares:
    def updates(self, frames, targets, weights, n_basis, paper=False):
        source = LeastSquares(n_basis=n_basis, sigma=0.9, rho=0.02, random_state=0)
        return source.updates(Task(frames, targets, weights, contiguous_folds([len(frames)])), paper=paper)

    def test_theta_solves_the_soft_label_equations(self):
        random = np.random.default_rng(0)
        frames, targets = random.normal(size=(200, 2)), random.dirichlet(np.ones(3), 200)
        weights = random.uniform(0.5, 2, 200)
        updates = self.updates(frames, targets, weights, n_basis=30)
        (trained,) = updates.trained(targets, hold_out=False)
        phi = reference_features.squared_exponential(frames, trained.member.centers, 0.9)
        gram = phi.T @ (weights[:, None] * phi) + 0.02 * weights.sum() * np.eye(30)
        assert_allclose(gram @ trained.member.theta, phi.T @ (weights[:, None] * targets), rtol=1e-8, atol=1e-8)

    def test_the_printed_rule_has_each_class_in_its_own_gram_matrix(self):
        random = np.random.default_rng(0)
        frames, targets = random.normal(size=(100, 2)), random.dirichlet(np.ones(2), 100)
        updates = self.updates(frames, targets, np.ones(100), n_basis=10, paper=True)
        (trained,) = updates.trained(targets, hold_out=False)
        phi = reference_features.squared_exponential(frames, trained.member.centers, 0.9)
        for i in range(2):
            gram = phi.T @ (targets[:, [i]] * phi) + 0.02 * 100 * np.eye(10)
            assert_allclose(gram @ trained.member.theta[:, i], phi.T @ targets[:, i], rtol=1e-9)

    def test_the_gram_matrix_is_factored_once(self, monkeypatch):
        factored = []
        original = _core.RegularizedGram

        def counting(*arguments):
            factored.append(1)
            return original(*arguments)

        monkeypatch.setattr(_core, "RegularizedGram", counting)
        X, _ = moons(200, random_state=0)
        training = training_frames(X, np.full(200, -1), 2)
        source = LeastSquares(n_basis=40, sigma="default", rho="default", random_state=0)
        updates = source.updates(training.task(training.one_hot()))
        start = np.eye(2)[(X[:, 1] > 0.25).astype(int)]
        run_em(updates, training, chain_rules(1.0, None, None, 2), start, max_iter=30, tol=0.0, n_threads=1)
        assert len(factored) == 1


class TestGain:
    def test_is_the_log_likelihood_over_that_of_independent_frames(self):
        """Against the likelihood of all paths, on evidence that is a true ratio p(y | i) / p(y)."""
        random = np.random.default_rng(0)
        X = random.normal(size=(6, 1))
        training = training_frames(X, np.full(6, -1), 2)
        evidence = np.log(random.uniform(0.5, 1.5, size=(6, 2)))
        transmat, startprob = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0.6, 0.4])
        rules = chain_rules(0.0, transmat, startprob, 2)
        result = run_em(
            lambda targets: evidence, training, rules, np.full((6, 2), 0.5), max_iter=1, tol=0.0, n_threads=1
        )
        total = 0.0
        for path in itertools.product(range(2), repeat=6):
            steps = [startprob[path[0]], *(transmat[i, j] for i, j in itertools.pairwise(path))]
            total += np.prod(steps) * np.exp(sum(evidence[t, state] for t, state in enumerate(path)))
        assert_allclose(result.gain, np.log(total) / 6)


def test_a_state_that_runs_empty_is_kept_alive_with_a_warning():
    X, _ = moons(100, random_state=0)
    training = training_frames(X, np.full(100, -1), 2)
    only_first = np.tile([0.0, -80.0], (100, 1))
    with pytest.warns(UserWarning, match="state 1 ran out of frames"):
        result = run_em(
            lambda targets: only_first,
            training,
            chain_rules(1.0, None, None, 2),
            np.tile([0.9, 0.1], (100, 1)),
            max_iter=4,
            tol=0.0,
            n_threads=1,
        )
    assert np.isfinite(result.history).all()


@pytest.mark.slow
def test_forbidden_transitions_stay_forbidden_through_em():
    X, _ = blobs(300, random_state=0)
    prior = np.ones((3, 3))
    prior[2, 0] = -np.inf
    fitted = DensityRatioHMM(3, n_basis=50, transition_prior=prior, random_state=0).fit(X)
    assert fitted.transmat_[2, 0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_states_are_ordered_to_suit_a_left_right_chain(seed):
    states = np.repeat([0, 1, 2], 100)
    X = np.random.default_rng(seed).normal(size=(300, 2)) + 3 * np.stack([states, states % 2], axis=1)
    prior = np.triu(np.ones((3, 3)))
    prior[np.tril_indices(3, -1)] = prior[0, 2] = -np.inf
    fitted = DensityRatioHMM(3, n_basis=60, transition_prior=prior, random_state=seed).fit(X)
    assert np.mean(fitted.predict(X) == states) > 0.97


@pytest.mark.slow
def test_the_unit_of_weights_does_not_matter():
    X, _ = blobs(300, random_state=0)
    plain, tiny = (
        DensityRatioHMM(3, n_basis=40, random_state=0).fit(X, sample_weight=np.full(300, weight))
        for weight in (1.0, 1e-3)
    )
    assert_allclose(tiny.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:EM")
@pytest.mark.parametrize("density", ["gmm", "kde"])
def test_more_states_than_a_density_has_frames_for(density):
    X, _ = moons(24, random_state=0)
    fitted = DensityRatioHMM(6, ratio=FromDensities(density), n_init=1, max_iter=2, random_state=0).fit(X)
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


class TestManyRows:
    """Starts are compared on a draw of them."""

    def test_few_rows_are_all_seen(self):
        training = training_frames(np.arange(2 * FEWEST_DRAWN)[:, None], np.full(2 * FEWEST_DRAWN, -1), 2)
        assert _drawn(training, np.random.RandomState(0)) is training

    def test_a_draw_has_whole_pieces_and_all_labels(self):
        n = 20_000
        codes = np.full(n, -1)
        codes[[5, n - 1]] = 0, 1
        part = _drawn(training_frames(np.arange(n)[:, None], codes, 2), np.random.RandomState(0))
        assert FEWEST_DRAWN <= part.n_rows <= FEWEST_DRAWN + 2 * PIECE
        assert part.n_rows == len(np.unique(part.samples // PIECE)) * PIECE
        assert sorted(part.samples[part.codes >= 0, 0]) == [5, n - 1]

    def test_rows_of_a_draw_keep_their_sequences(self):
        training = training_frames(np.arange(8.0)[:, None], np.full(8, -1), 2, lengths=[5, 3])
        part = training.taken(np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=bool))
        assert part.lengths == [2, 2, 1, 1]
        assert_array_equal(part.samples[part.rows, 0], [0, 1, 3, 4, 5, 7])

    def test_all_rows_are_learned_from_in_the_end(self):
        X, y = blobs(7000, random_state=0)
        quick = DensityRatioHMM(3, n_basis=20, sigma="default", rho="default", n_init=1, random_state=0).fit(X)
        assert matched(quick.predict(X), y, 3) > 0.98
        assert quick.model_.transmat.diagonal().min() > 0.9


def test_the_gain_survives_any_constant_per_row():
    X = np.random.default_rng(0).normal(size=(20, 1))
    training = training_frames(X, np.full(20, -1), 2)
    evidence = np.random.default_rng(1).normal(size=(20, 2))
    rules, start = chain_rules(1.0, None, None, 2), np.full((20, 2), 0.5)
    gains = [
        run_em(lambda _, e=evidence + shift: e, training, rules, start, max_iter=1, tol=0.0, n_threads=1).gain
        for shift in (0.0, 1000.0, -1000.0)
    ]
    assert_allclose(np.array(gains) - [0.0, 1000.0, -1000.0], gains[0])


def test_the_e_step_of_many_sequences_is_one_call():
    log_ratios = np.random.default_rng(0).normal(size=(30, 2))
    transmat, startprob = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.5, 0.5])
    posteriors, counts, _ = recursion.expect(native_chain(transmat, startprob), log_ratios, [10, 20], 1)
    expected = recursion.smooth(log_ratios, transmat, startprob, lengths=[10, 20])
    assert_allclose(posteriors, expected, atol=1e-14)
    parts = [recursion.expected_transitions(part, transmat, startprob) for part in np.split(log_ratios, [10])]
    assert_allclose(counts, sum(parts))


def test_the_e_step_knows_the_log_likelihood():
    log_ratios = np.random.default_rng(0).normal(size=(7, 2))
    transmat, startprob = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.5, 0.5])
    paths = np.indices([2] * 7).reshape(7, -1).T
    logs = [reference.path_log_probability(path, log_ratios, transmat, startprob) for path in paths]
    found = recursion.expect(native_chain(transmat, startprob), log_ratios, [7], 1)[2]
    assert found == pytest.approx(np.logaddexp.reduce(logs), abs=1e-12)
