"""EM on Gaussians beside kernels, and what both share: gains that compare, and an end when they fall."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

import drhmm
from drhmm import DensityRatioHMM
from drhmm.chain.transitions import chain_rules
from drhmm.cli import main
from drhmm.datasets import markov_chain, rings
from drhmm.learning.em import run_em
from drhmm.learning.training_frames import TrainingFrames
from drhmm.ratios import Gaussian, LeastSquares, least_squares
from drhmm.ratios.learner import Task, normalised
from drhmm.tuning.folds import contiguous_folds


def clouds(n=600, seed=0, n_columns=3):
    """Three Gaussian states with covariances of their own."""
    random = np.random.RandomState(seed)
    y = markov_chain(n, np.full((3, 3), 0.025) + 0.925 * np.eye(3), random_state=random)
    means = 2 * random.standard_normal((3, n_columns))
    roots = random.standard_normal((3, n_columns, n_columns)) * 0.7
    return means[y] + np.einsum("tde,te->td", roots[y], random.standard_normal((n, n_columns))), y


def switching(n=1000, seed=1):
    """Two states that differ only in how a sample follows the one before."""
    random = np.random.RandomState(seed)
    y, x = markov_chain(n, [[0.99, 0.01], [0.01, 0.99]], random_state=random), np.zeros(n)
    for t in range(1, n):
        x[t] = (0.9, -0.9)[y[t]] * x[t - 1] + random.standard_normal()
    return x[:, None], y


def task_of(X, y, n_states):
    return Task(X, np.eye(n_states)[y], np.ones(len(X)), contiguous_folds([len(X)]))


class TestWhichIsTaken:
    @pytest.mark.slow
    def test_gaussians_where_the_states_are_gaussian(self):
        X, y = clouds()
        found = DensityRatioHMM(3, random_state=0).fit(X)
        kernels = DensityRatioHMM(3, ratio="least-squares", random_state=0).fit(X)
        assert list(found.member_scales_) == ["gaussian"]
        assert found.scale_reason_.startswith("Gaussians predict held-out time steps better than kernels, by ")
        assert adjusted_rand_score(y, found.predict(X)) >= adjusted_rand_score(y, kernels.predict(X))

    @pytest.mark.slow
    def test_gaussians_where_a_sample_depends_on_the_one_before(self):
        X, y = switching()
        found = DensityRatioHMM(2, window=2, random_state=0).fit(X)
        assert adjusted_rand_score(y, found.predict(X)) > 0.88

    @pytest.mark.slow
    def test_kernels_where_states_surround_each_other(self):
        X, _ = rings(600, random_state=0)
        assert list(DensityRatioHMM(3, random_state=0).fit(X).member_scales_) == ["kernel"]

    def test_kernels_where_columns_are_discrete(self):
        random = np.random.RandomState(0)
        y = np.repeat(np.arange(20) % 2, 15)
        X = (random.uniform(size=(300, 4)) < np.array([[0.1], [0.9]])[y]).astype(float)
        assert list(DensityRatioHMM(2, random_state=0).fit(X).member_scales_) == ["kernel"]


class TestAskedForByName:
    def fitted(self):
        X, _ = clouds()
        return X, DensityRatioHMM(3, ratio="gaussian", random_state=0).fit(X)

    def test_finds_gaussian_states(self):
        X, y = clouds()
        found = self.fitted()[1]
        assert adjusted_rand_score(y, found.predict(X)) > 0.9
        assert not hasattr(found, "centers_")

    def test_the_gain_never_falls(self):
        history = self.fitted()[1].history_
        assert (np.diff(history) >= 0).all()

    def test_files_and_streams_answer_as_the_model_does(self, tmp_path):
        X, found = self.fitted()
        found.model_.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert_array_equal(loaded.predict_proba(X), found.predict_proba(X))
        stream = loaded.stream()
        live = np.array([stream.step(row) for row in X[:50]])
        assert_allclose(live, loaded.predict_proba(X[:50], method="filter"), atol=1e-12)

    def test_weights_count(self):
        X, _ = clouds(300)
        settings = {"ratio": "gaussian", "random_state": 0}
        plain, doubled = (
            DensityRatioHMM(3, **settings).fit(X, sample_weight=weights).predict_proba(X)
            for weights in (None, np.full(300, 2.0))
        )
        assert_allclose(doubled, plain, atol=1e-9)

    def test_with_labels_and_with_the_unknown(self):
        X, y = clouds()
        labelled = DensityRatioHMM(ratio="gaussian", context=None).fit(X, y)
        assert labelled.score(X, y) > 0.9
        with_unknown = DensityRatioHMM(3, ratio="gaussian", novelty=True, random_state=0).fit(X)
        assert with_unknown.novelty_proba(np.full((5, 3), 100.0))[-1] > 0.9

    def test_the_command_line_names_what_was_learned(self, tmp_path, capsys):
        X, _ = switching(400)
        np.savetxt(tmp_path / "data.csv", X, header="a", comments="")
        command = ["fit", str(tmp_path / "data.csv"), "--states", "2", "--window", "2", "--output"]
        assert main([*command, str(tmp_path / "model.drhmm")]) == 0
        told = capsys.readouterr().out
        assert re.search(
            r"evidence scales \w+ 1, temper 1 \((default, as|Gaussians predict) .*\); EM converged after", told
        )


class TestDensities:
    def member(self):
        X, y = clouds()
        return X, Gaussian().fit(X, np.eye(3)[y]).member_

    def test_are_those_of_gaussians(self):
        X, member = self.member()
        whitening = member.whitening.reshape(3, 3, 3)
        for i in range(3):
            covariance = np.linalg.inv(whitening[i].T @ whitening[i])
            expected = multivariate_normal(member.means[i], covariance).logpdf(X)
            assert_allclose(member.log_densities(X)[:, i], expected, rtol=1e-9)

    def test_of_newest_columns_given_the_others(self):
        X, member = self.member()
        whitening = member.whitening.reshape(3, 3, 3)
        for i in range(3):
            covariance = np.linalg.inv(whitening[i].T @ whitening[i])
            older = multivariate_normal(member.means[i, :2], covariance[:2, :2]).logpdf(X[:, :2])
            expected = member.log_densities(X)[:, i] - older
            assert_allclose(member.log_densities(X, 1)[:, i], expected, rtol=1e-8, atol=1e-10)

    def test_em_has_their_likelihood_over_that_of_one_gaussian(self):
        X, y = clouds()
        targets = np.eye(3)[y]
        updates = Gaussian().updates(task_of(X, y, 3))
        source = Gaussian(0.0, ridge=1e-4)
        alone = source.fit(X, np.ones((len(X), 1))).member_.log_densities(X)
        expected = source.fit(X, targets).member_.log_densities(X) - alone
        assert_allclose(updates(targets), expected, rtol=1e-9, atol=1e-9)


class TestGains:
    def test_normalised_ratios_are_those_to_the_density_of_all_frames(self):
        random = np.random.default_rng(0)
        logs, prior = random.normal(size=(50, 3)), random.dirichlet(np.ones(3))
        assert_allclose(np.exp(normalised(logs, prior)) @ prior, 1)
        assert_allclose(normalised(logs + random.normal(size=(50, 1)), prior), normalised(logs, prior))

    def test_kept_features_give_what_evaluating_them_again_gives(self, monkeypatch):
        X, y = clouds(200)
        task, targets = task_of(X, y, 3), np.random.default_rng(0).dirichlet(np.ones(3), 200)
        source = LeastSquares(n_basis=40, sigma="default", rho="default", random_state=0)
        kept = source.updates(task)(targets)
        monkeypatch.setattr(least_squares, "MOST_FEATURES", 0)
        assert_allclose(source.updates(task)(targets), kept, atol=1e-9)

    def test_em_ends_before_the_gain_falls(self):
        from drhmm.data.sequences import as_sequences
        from drhmm.features.frames import learn_framing

        X = np.random.default_rng(0).normal(size=(40, 1))
        training = TrainingFrames(as_sequences(X), learn_framing(X, 1, True), np.full(40, -1), 2, None)
        evidence = iter([np.zeros((40, 2)), np.full((40, 2), 0.5), np.full((40, 2), 0.2)])
        seen = []

        def update(targets):
            seen.append(targets)
            return next(evidence)

        start = np.random.default_rng(1).dirichlet(np.ones(2), 40)
        result = run_em(update, training, chain_rules(1.0, None, None, 2), start, max_iter=9, tol=0.0, n_threads=1)
        assert_allclose(result.history, [0.0, 0.5], atol=1e-12)
        assert_array_equal(result.targets, seen[1])
        assert result.converged
