"""One model, many threads: no locks, no difference."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import live


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
    from dataclasses import replace

    for _ in range(20):
        model = replace(live.model("plain"), settings={})
        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(lambda m: m.fingerprint, [model] * 8))) == 1


def test_native_calls_leave_the_interpreter_to_others():
    """While one thread predicts, another one counts."""
    model = live.model("window")
    X = live.samples(0, 300_000)
    with ThreadPoolExecutor(1) as threads:
        prediction = threads.submit(model.predict_proba, X, n_threads=1)
        counted = 0
        while not prediction.done():
            counted += 1
    assert counted > 100
    assert np.isfinite(prediction.result()).all()
