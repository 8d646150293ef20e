"""One model, many threads: no locks, no difference."""

from __future__ import annotations

import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import live
from drhmm import DensityRatioHMM, Model
from drhmm.ratios import FromClassifier
from problems import blobs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["window", "novelty", "forbidden"])
def test_eight_threads_predict_what_one_does(kind):
    model = live.model(kind)
    inputs = [live.samples(seed, 30) for seed in range(20)]
    expected = [model.predict_proba(X, n_threads=1) for X in inputs]

    def predict(_):
        return [model.predict_proba(inputs[k % 20], n_threads=1) for k in range(1000)]

    with ThreadPoolExecutor(8) as threads:
        for answers in threads.map(predict, range(8)):
            assert_array_equal(answers, [expected[k % 20] for k in range(1000)])


def test_streams_of_one_model_on_eight_threads():
    model, X = live.model("novelty"), live.samples(0, 500, missing=0.1)

    def follow(_):
        stream = model.stream(lag=1)
        return [stream.step(x) for x in X][1:]

    expected = follow(0)
    with ThreadPoolExecutor(8) as threads:
        for answers in threads.map(follow, range(8)):
            assert_array_equal(answers, expected)


def test_a_model_can_be_first_used_by_many_threads_at_once():
    """The fingerprint is computed when it is first asked for."""
    for _ in range(20):
        model = replace(live.model("plain"), settings={})
        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(lambda m: m.fingerprint, [model] * 8))) == 1


def test_a_score_is_that_of_one_model_while_another_is_learned(monkeypatch):
    X, y = blobs(0)
    settings = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
    estimator, other = (DensityRatioHMM(**settings).fit(X, labels) for labels in (y, np.array(["a", "b", "c"])[y]))
    expected, predict = estimator.score(X, y), Model.predict

    def predict_while_it_is_refitted(*arguments, **options):
        estimator.model_ = other.model_
        return predict(*arguments, **options)

    monkeypatch.setattr(Model, "predict", predict_while_it_is_refitted)
    assert estimator.score(X, y) == expected


def threads_of_libraries():
    """How many threads each library may start that scikit-learn or numpy have brought."""
    return {library["num_threads"] for library in threadpool_info()}


class Watched(LogisticRegression):
    """Notes how many threads there may be while it works."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(threads_of_libraries())
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        self.seen.append(threads_of_libraries())
        return super().predict_proba(X)


def test_scikit_learn_starts_no_more_threads_than_allowed(monkeypatch):
    X, y = blobs(0, n_frames=60)
    monkeypatch.setattr(Watched, "seen", [])
    with threadpool_limits(limits=4):
        fitted = DensityRatioHMM(ratio=FromClassifier(Watched()), n_threads=1).fit(X, y)
        fitted.predict(X)
        assert Watched.seen
        assert set.union(*Watched.seen) == {1}
        assert threads_of_libraries() == {4}


def test_clusters_are_looked_for_with_no_more_threads_than_allowed(monkeypatch):
    seen = []

    class WatchedKMeans(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(threads_of_libraries())
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr("drhmm.learning.em_starts.KMeans", WatchedKMeans)
    with threadpool_limits(limits=4):
        DensityRatioHMM(2, sigma=1.0, rho=0.01, tol=1.0, n_threads=1, random_state=0).fit(blobs(0)[0])
    assert set.union(*seen) == {1}


def test_fewer_threads_than_allowed_stay_fewer(monkeypatch):
    X, y = blobs(0, n_frames=60)
    monkeypatch.setattr(Watched, "seen", [])
    with threadpool_limits(limits=1):
        DensityRatioHMM(ratio=FromClassifier(Watched()), n_threads=4).fit(X, y)
    assert set.union(*Watched.seen) == {1}


def turns_of_another_thread(work):
    """How often this thread gets its turn while another one works, if turns are only given away, never taken."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        with ThreadPoolExecutor(1) as threads:
            job = threads.submit(work)
            turns = 0
            while not job.done():
                turns += 1
                time.sleep(0)
        job.result()
    finally:
        sys.setswitchinterval(interval)
    return turns


@pytest.fixture(scope="module")
def large_model():
    X, y = blobs(1, n_frames=3000, n_columns=40)
    settings = {"n_basis": 1500, "sigma": 5.0, "rho": 0.01, "evidence_scale": 1.0, "durations": "geometric"}
    return DensityRatioHMM(**settings).fit(X, y).model_


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="no thread waits for another one there")
def test_work_in_python_gives_no_turn_away():
    """What the next tests compare with."""
    assert turns_of_another_thread(lambda: sum(range(3_000_000))) < 10


def test_predictions_leave_the_interpreter_to_others():
    X = live.samples(0, 300_000)
    assert turns_of_another_thread(lambda: live.model("window").predict_proba(X, n_threads=1)) > 20


def test_steps_of_many_rows_leave_the_interpreter_to_others(large_model):
    batch, X = large_model.stream_batch(20_000, n_threads=1), np.zeros((20_000, 40))
    assert turns_of_another_thread(lambda: batch.step(X)) > 20


def test_the_first_long_gap_of_many_states_leaves_the_interpreter_to_others(large_model):
    transmat = 0.7 * np.eye(60) + 0.3 * np.eye(60)[np.arange(1, 61) % 60]
    kernel = replace(large_model.evidence.kernel, theta=np.resize(large_model.evidence.kernel.theta, (1500, 60)))
    evidence = replace(large_model.evidence, kernel=kernel, additive=None, gaussian=None, prior=np.full(60, 1 / 60))
    parts = {"classes": np.arange(60), "transmat": transmat, "startprob": np.full(60, 1 / 60)}
    model = replace(large_model, prior=np.full(60, 1 / 60), evidence=evidence, **parts)
    assert turns_of_another_thread(lambda: model.stream().step(np.zeros(40), dt=2**53)) > 10
