"""A stream is batch inference, one frame at a time, and survives everything that happens to it."""

from __future__ import annotations

import contextlib
import copy
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.testing import assert_allclose, assert_array_equal

import live
from drhmm import DensityRatioHMM, ImpossibleDataError, Stream, StreamBatch
from problems import blobs

# Sequences of missing samples are drawn, too.
pytestmark = pytest.mark.filterwarnings("ignore:no row has evidence")

TOLERANCE = 1e-12


def follow(stream, X, dt=None):
    """Answers to all frames, those that wait at the end among them."""
    steps = np.ones(len(X), dtype=int) if dt is None else dt
    answers = [stream.step(x, int(k)) for x, k in zip(X, steps, strict=True)]
    assert [answer is None for answer in answers] == [t < stream.lag for t in range(len(X))]
    return np.array([answer for answer in answers if answer is not None] + list(stream.pending()))


sequences = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n_frames": st.integers(1, 40) | st.just(200),
        "missing": st.sampled_from([0.0, 0.2, 0.9]),
        "spread": st.sampled_from([1.0, 3.0, 30.0]),
    }
)


@pytest.mark.parametrize("kind", [kind for kind in live.KINDS if kind != "hard"])
class TestEqualsBatch:
    @settings(deadline=None, max_examples=40)
    @given(sequence=sequences, longest=st.sampled_from([1, 3, 50, 10**12]))
    def test_filter(self, kind, sequence, longest):
        model, X = live.model(kind), live.samples(**sequence)
        dt = live.gaps(sequence["seed"], len(X), longest)
        expected = model.predict_proba(X, dt=dt, method="filter")
        assert_allclose(follow(model.stream(), X, dt), expected, atol=TOLERANCE)

    @settings(deadline=None, max_examples=40)
    @given(sequence=sequences, longest=st.sampled_from([1, 3, 50, 10**12]), lag=st.integers(0, 12))
    def test_fixed_lag(self, kind, sequence, longest, lag):
        model, X = live.model(kind), live.samples(**sequence)
        dt = live.gaps(sequence["seed"], len(X), longest)
        expected = model.predict_proba(X, dt=dt, lag=lag)
        assert_allclose(follow(model.stream(lag), X, dt), expected, atol=TOLERANCE)

    @settings(deadline=None, max_examples=20)
    @given(sequence=sequences, lag=st.integers(0, 5), cuts=st.sets(st.integers(0, 39), max_size=6))
    def test_cutting_anywhere_changes_not_one_bit(self, kind, sequence, lag, cuts):
        model, X = live.model(kind), live.samples(**sequence)
        dt = live.gaps(sequence["seed"], len(X), 1000)
        stream, answers = model.stream(lag), []
        for t, x in enumerate(X):
            if t in cuts:
                stream = model.resume(stream.snapshot())
            answer = stream.step(x, int(dt[t]))
            if answer is not None:
                answers.append(answer)
        assert_array_equal(np.array([*answers, *stream.pending()]), follow(model.stream(lag), X, dt))


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.integers(0, 399), min_size=1, max_size=40), lag=st.integers(0, 6))
def test_impossible_data_are_impossible_in_a_stream_at_the_same_frame(rows, lag):
    model, X = live.model("hard"), blobs(3, n_frames=400, separation=8.0)[0][rows]
    try:
        expected = model.predict_proba(X, lag=lag)
    except ImpossibleDataError as error:
        stream = model.stream(lag)
        for x in X[: error.frame]:
            stream.step(x)
        with pytest.raises(ImpossibleDataError, match=f"time step {error.frame} of sequence 0"):
            stream.step(X[error.frame])
    else:
        assert_allclose(follow(model.stream(lag), X), expected, atol=TOLERANCE)


class TestAnswers:
    def test_novelty_is_that_of_the_batch(self):
        model, X = live.model("novelty"), live.samples(0, 30)
        stream, expected = model.stream(), model.novelty_proba(X)
        for x, probability in zip(X, expected, strict=True):
            stream.step(x)
            assert stream.novelty == pytest.approx(probability, abs=TOLERANCE)

    def test_lagged_novelty_belongs_to_the_frame_of_the_answer(self):
        model, X = live.model("novelty"), live.samples(1, 30)
        stream, expected = model.stream(3), model.novelty_proba(X, method="smooth", lag=3)
        seen = []
        for x in X:
            stream.step(x)
            seen.append(stream.lagged_novelty)
        assert seen[:3] == [None] * 3
        assert_allclose(seen[3:], expected[:-3], atol=TOLERANCE)

    def test_novelty_without_a_state_for_the_unknown_says_so(self):
        with pytest.raises(ValueError, match="novelty=True"):
            live.model("plain").stream().novelty  # noqa: B018

    def test_posterior_is_filtered_whatever_the_lag(self):
        model, X = live.model("window"), live.samples(2, 20)
        stream = model.stream(5)
        follow(stream, X)
        assert_allclose(stream.posterior, model.predict_proba(X, method="filter")[-1], atol=TOLERANCE)

    def test_before_the_first_frame_the_posterior_is_the_start(self):
        model = live.model("forbidden")
        assert_array_equal(model.stream().posterior, model.startprob)

    def test_label_is_the_most_probable_one(self):
        model, X = live.model("plain"), live.samples(3, 20)
        stream = model.stream()
        follow(stream, X)
        assert stream.label == model.predict(X, method="filter")[-1]

    def test_none_is_a_missing_frame(self):
        model = live.model("plain")
        stream, other = model.stream(), model.stream()
        stream.step([0.0, 1.0])
        other.step([0.0, 1.0])
        assert_array_equal(stream.step(None), other.step([np.nan, 2.0]))

    def test_reset_starts_a_new_sequence(self):
        model, X = live.model("window"), live.samples(4, 20)
        stream = model.stream(2)
        first = follow(stream, X)
        stream.reset()
        assert stream.n_frames == 0
        assert_array_equal(follow(stream, X), first)

    def test_any_array_of_numbers_is_a_sample(self):
        model = live.model("plain")
        expected = model.stream().step(np.array([1.0, 2.0]))
        assert_array_equal(_one_column().stream().step(np.array(3.0)), _one_column().stream().step(3))
        for x in ([1, 2], (1.0, 2.0), np.array([[1.0, 2.0]]), np.array([1, 2], dtype=np.float32)):
            assert_array_equal(model.stream().step(x), expected)

    def test_wide_numbers_are_used_where_needed_and_left_again(self):
        stream = live.model("forbidden").stream()
        X, _ = blobs(3, n_frames=400)
        wide = []
        for x in [*X[:100], *[None] * 100]:
            stream.step(x)
            wide.append(bool(stream._live.state()["wide"][0]))
        assert any(wide[:100])
        assert not wide[-1]


def _one_column():
    X, y = blobs(0, n_columns=1)
    return DensityRatioHMM(n_basis=10, random_state=0).fit(X, y).model_


class TestBadFrames:
    """Whatever is refused, the stream stays as it was."""

    @pytest.mark.parametrize(
        ("x", "dt", "message"),
        [
            ([1.0], 1, r"one sample with 2 columns, got shape \(1,\)"),
            ([[1.0, 2.0], [3.0, 4.0]], 1, r"one sample with 2 columns, got shape \(2, 2\)"),
            ([1.0, np.inf], 1, r"x has an infinite value \(inf\) at column 1"),
            ([-np.inf, 1.0], 1, r"infinite value \(-inf\) at column 0"),
            ([[1.0], 2.0], 1, "x is not one sample of 2 numbers"),
            ([10**400, 1.0], 1, "x must hold numbers"),
            (np.array(["1", 2.0], dtype=object), 1, "x must hold numbers, got '1'"),
            (np.ma.masked_invalid([1.0, np.nan]), 1, "x is a masked array"),
            (["a", "b"], 1, "x must hold numbers"),
            ([1.0, 2.0], 0, "dt must be at least 1, got 0"),
            ([1.0, 2.0], -3, "dt must be at least 1, got -3"),
            ([1.0, 2.0], 1.5, "dt must be an integer, got 1.5"),
            ([1.0, 2.0], 2**53 + 1, "dt must be at most"),
        ],
    )
    @pytest.mark.parametrize("kind", ["window", "classifier"])
    def test_is_named(self, kind, x, dt, message):
        stream = live.model(kind).stream(1)
        follow(stream, live.samples(5, 10))
        before = stream.snapshot()
        with pytest.raises(ValueError, match=message):
            stream.step(x, dt)
        assert stream.snapshot() == before

    def test_impossible_data_change_nothing(self):
        *possible, last = live.impossible()
        stream = live.model("hard").stream(2)
        for x in possible:
            stream.step(x)
        before = stream.snapshot()
        with pytest.raises(ImpossibleDataError, match=f"time step {len(possible)} of sequence 0"):
            stream.step(last)
        assert stream.snapshot() == before

    @pytest.mark.parametrize("lag", [-1, 1.5, 100_001, True])
    def test_lag_is_checked(self, lag):
        with pytest.raises(ValueError, match="lag must be"):
            live.model("plain").stream(lag)

    def test_a_failing_source_changes_nothing(self):
        class Moody:
            broken = False

            def fit(self, frames, targets):
                self.means = targets.T @ frames / targets.sum(axis=0)[:, None]

            def log_ratios(self, frames):
                if Moody.broken:
                    raise OSError("the network is down")
                return -np.square(frames[:, None] - self.means).sum(axis=2)

        X, y = blobs(0)
        stream = DensityRatioHMM(ratio=Moody(), window=2).fit(X, y).stream()
        follow(stream, X[:5])
        before = stream.snapshot()
        Moody.broken = True
        with pytest.raises(OSError, match="the network is down"):
            stream.step(X[5])
        assert stream.snapshot() == before


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
    @pytest.mark.parametrize("kind", ["novelty", "classifier"])
    def test_goes_on_by_itself(self, kind, copied):
        model, X = live.model(kind), live.samples(7, 20)
        stream = model.stream(2)
        follow(stream, X[:10])
        other = copied(stream)
        expected = [stream.step(x) for x in X[10:]]
        assert_array_equal([other.step(x) for x in X[10:]], expected)

    def test_joblib(self, tmp_path):
        stream = live.model("window").stream()
        follow(stream, live.samples(8, 10))
        joblib.dump(stream, tmp_path / "stream")
        assert joblib.load(tmp_path / "stream").snapshot() == stream.snapshot()

    def test_repr_says_how_far_it_is(self):
        stream = live.model("plain").stream(2)
        stream.step(None)
        assert repr(stream).startswith("Stream(n_frames=1, lag=2, Model(")


@pytest.mark.slow
def test_resumes_in_another_process(tmp_path):
    model, X = live.model("novelty"), live.samples(9, 60, missing=0.2)
    model.save(tmp_path / "model.drhmm")
    np.save(tmp_path / "X.npy", X)
    stream = model.stream(3)
    follow(stream, X[:25])
    (tmp_path / "snapshot").write_bytes(stream.snapshot())
    code = (
        "import sys, numpy as np, drhmm\n"
        "stream = drhmm.load('model.drhmm').resume(open('snapshot', 'rb').read())\n"
        "np.save('answers.npy', [stream.step(x) for x in np.load('X.npy')[25:]])\n"
        "print('sklearn' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert_array_equal(np.load(tmp_path / "answers.npy"), [stream.step(x) for x in X[25:]])
    assert result.stdout == "False\n"


class BatchMachine(RuleBasedStateMachine):
    """A batch of streams does what single streams do, whatever is added, reset, retired, cut and left out."""

    kind, lag = "window", 2

    def __init__(self):
        super().__init__()
        self.model = live.model(self.kind)
        self.batch = self.model.stream_batch(2, self.lag)
        self.streams = {0: self.model.stream(self.lag), 1: self.model.stream(self.lag)}

    @rule(seed=st.integers(0, 2**32 - 1), some=st.booleans(), longest=st.sampled_from([1, 4, 10**9]))
    def step(self, seed, some, longest):
        n = len(self.batch)
        X, dt = live.samples(seed, n, missing=0.2), live.gaps(seed, n, longest)
        active = self.batch.live
        if some:
            active &= np.random.default_rng(seed).random(n) < 0.5
        answers = self.batch.step(X, active=active if some else None, dt=dt)
        for row in range(n):
            expected = self.streams[row].step(X[row], int(dt[row])) if active[row] else None
            if expected is None:
                assert np.isnan(answers[row]).all()
            else:
                assert_allclose(answers[row], expected, atol=TOLERANCE)

    @rule(n=st.integers(1, 3))
    def add(self, n):
        for row in self.batch.add(n).tolist():
            assert row not in self.streams
            self.streams[row] = self.model.stream(self.lag)

    @precondition(lambda self: self.streams)
    @rule(data=st.data())
    def reset(self, data):
        row = data.draw(st.sampled_from(sorted(self.streams)))
        self.batch.reset(row)
        self.streams[row].reset()

    @precondition(lambda self: self.streams)
    @rule(data=st.data())
    def retire(self, data):
        rows = data.draw(st.sets(st.sampled_from(sorted(self.streams)), min_size=1))
        self.batch.retire(sorted(rows))
        for row in rows:
            del self.streams[row]

    @rule()
    def cut(self):
        self.batch = self.model.resume_batch(self.batch.snapshot())

    @invariant()
    def rows_are_the_same(self):
        assert set(np.flatnonzero(self.batch.live).tolist()) == set(self.streams)
        for row, stream in self.streams.items():
            assert self.batch.n_frames[row] == stream.n_frames
            assert_allclose(self.batch.posterior[row], stream.posterior, atol=TOLERANCE)


class ClassifierBatchMachine(BatchMachine):
    kind, lag = "classifier", 0


BatchMachine.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=25)
ClassifierBatchMachine.TestCase.settings = settings(deadline=None, max_examples=10, stateful_step_count=15)
TestBatch = BatchMachine.TestCase
TestClassifierBatch = ClassifierBatchMachine.TestCase


class TestStreamBatch:
    def test_many_rows_on_two_threads_are_those_on_one(self):
        model, X = live.model("novelty"), live.samples(10, 5000, missing=0.1)
        results = []
        for n_threads in (1, 2):
            batch = model.stream_batch(len(X), n_threads=n_threads)
            batch.step(X)
            results.append(batch.step(X[::-1].copy()))
        assert_array_equal(*results)

    def test_novelty_of_every_row(self):
        model, X = live.model("novelty"), live.samples(11, 6)
        batch = model.stream_batch(6)
        batch.step(X)
        batch.step(X[::-1])
        batch.retire(5)
        expected = [model.novelty_proba(np.array([X[row], X[5 - row]]))[-1] for row in range(5)]
        assert_allclose(batch.novelty, [*expected, np.nan], atol=TOLERANCE)

    def test_an_impossible_row_is_named_and_no_row_has_changed(self):
        X = live.impossible()
        frame = len(X) - 1
        batch = live.model("hard").stream_batch(3)
        for x in X[:frame]:
            batch.step([[np.nan, np.nan], x, [np.nan, np.nan]])
        before = batch.snapshot()
        with pytest.raises(ImpossibleDataError) as caught:
            batch.step([[np.nan, np.nan], X[frame], [np.nan, np.nan]])
        assert (caught.value.sequence, caught.value.frame, caught.value.row) == (1, frame, 1)
        assert batch.snapshot() == before
        batch.step(np.full((3, 2), np.nan))
        assert batch.n_frames.tolist() == [frame + 1] * 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"X": np.zeros((2, 2))}, r"X must have shape \(3, 2\), got \(2, 2\)"),
            ({"X": [[0, 0], [0, np.inf], [0, 0]]}, "at row 1, column 1"),
            ({"X": np.zeros((3, 2)), "active": [1, 1, 1]}, "active must have one bool per row"),
            ({"X": np.zeros((3, 2)), "active": [True]}, "active must have one bool per row"),
            ({"X": np.zeros((3, 2)), "active": [True, True, True]}, "row 2, which is retired"),
            ({"X": np.zeros((3, 2)), "active": np.ma.masked_equal([True] * 3, True)}, "active is a masked array"),
            ({"X": np.zeros((3, 2)), "dt": 0}, "dt has 0 at row 0"),
            ({"X": np.zeros((3, 2)), "dt": [1, 1, -1]}, "dt has -1 at row 2"),
            ({"X": np.zeros((3, 2)), "dt": 1.5}, "dt must hold integers from 1 to 9007199254740992, one per row"),
            ({"X": np.zeros((3, 2)), "dt": [[1], [1, 2], 3]}, "dt must have one integer per row"),
            (
                {"X": np.zeros((3, 2)), "dt": None},
                "dt must hold integers from 1 to 9007199254740992, one per row, got None",
            ),
        ],
    )
    def test_bad_steps_are_named_and_change_nothing(self, arguments, message):
        batch = live.model("window").stream_batch(3)
        batch.retire(2)
        before = batch.snapshot()
        with pytest.raises(ValueError, match=message):
            batch.step(**arguments)
        assert batch.snapshot() == before

    def test_an_infinite_value_in_a_row_that_is_not_active_is_ignored(self):
        batch = live.model("plain").stream_batch(2)
        assert np.isfinite(batch.step([[0, 0], [np.inf, 0]], active=[True, False])[0]).all()

    @pytest.mark.parametrize("rows", [3, -1, [0, 7], 1.5, "a"])
    @pytest.mark.parametrize("method", ["reset", "retire"])
    def test_unknown_rows_are_named(self, method, rows):
        batch = live.model("plain").stream_batch(3)
        with pytest.raises(ValueError, match=r"there is no row|rows must be row numbers"):
            getattr(batch, method)(rows)

    def test_a_retired_row_cannot_be_reset(self):
        batch = live.model("plain").stream_batch(3)
        batch.retire([0, 1])
        with pytest.raises(ValueError, match="row 1 is retired"):
            batch.reset(1)

    def test_retired_rows_are_used_again_before_new_ones(self):
        batch = live.model("plain").stream_batch(4)
        batch.retire([2, 0])
        assert batch.add(3).tolist() == [0, 2, 4]

    def test_an_empty_batch_steps(self):
        batch = live.model("plain").stream_batch()
        assert batch.step(np.empty((0, 2))).shape == (0, 3)

    @pytest.mark.parametrize("method", ["reset", "retire"])
    def test_masked_rows_are_refused(self, method):
        with pytest.raises(ValueError, match="rows is a masked array"):
            getattr(live.model("window").stream_batch(2), method)(np.ma.array([0, 1], mask=[False, True]))

    def test_a_gap_as_an_array_of_no_dimension(self):
        model, X = live.model("window"), live.samples(12, 2)
        first, second = model.stream_batch(2), model.stream_batch(2)
        assert_array_equal(first.step(X, dt=np.array(3)), second.step(X, dt=3))

    def test_pending_frames_are_those_of_one_row(self):
        with pytest.raises(ValueError, match=r"row must be an integer, got \[0, 1\]"):
            live.model("window").stream_batch(2, 3).pending([0, 1])

    def test_pending_frames_of_a_row(self):
        model, X = live.model("window"), live.samples(12, 6)
        batch, stream = model.stream_batch(2, 3), model.stream(3)
        for x in X:
            batch.step([x, x], active=[True, False])
            stream.step(x)
        assert_allclose(batch.pending(0), stream.pending(), atol=TOLERANCE)
        assert batch.pending(1).shape == (0, 3)

    def test_columns_of_another_name_are_refused(self):
        class Table(np.ndarray):
            columns = ("b", "a")

        model = replace(live.model("plain"), feature_names=("a", "b"))
        with pytest.raises(ValueError, match="learned from a, b, in this order"):
            model.stream_batch(3).step(np.zeros((3, 2)).view(Table))

    @pytest.mark.parametrize("n", [-1, 1.5, 2**31 + 1, 10**30])
    def test_strange_numbers_of_rows_are_refused(self, n):
        with pytest.raises(ValueError, match="n must be"):
            live.model("plain").stream_batch(n)

    def test_pickle(self):
        batch = live.model("window").stream_batch(3, 1)
        batch.step(live.samples(12, 3))
        assert pickle.loads(pickle.dumps(batch)).snapshot() == batch.snapshot()

    def test_repr_counts_rows(self):
        batch = live.model("plain").stream_batch(3)
        batch.retire(1)
        assert repr(batch).startswith("StreamBatch(3 rows, 2 live, lag=0, ")


@pytest.mark.slow
class TestTwoThreads:
    """A step of the first thread waits in a ratio source while the second one uses the same stream."""

    @pytest.fixture
    def waiting(self):
        class Slow:
            entered, go_on = threading.Event(), threading.Event()
            slow = False

            def fit(self, frames, targets):
                self.n_states = targets.shape[1]

            def log_ratios(self, frames):
                if Slow.slow:
                    Slow.entered.set()
                    assert Slow.go_on.wait(30)
                return np.zeros((len(frames), self.n_states))

        X, y = blobs(0)
        model = DensityRatioHMM(ratio=Slow(), evidence_scale=1.0).fit(X, y).model_
        Slow.slow = True
        return model, Slow

    @pytest.mark.parametrize(
        "use",
        [
            lambda stream: stream.step([0.0, 0.0]),
            lambda stream: stream.snapshot(),
            lambda stream: stream.posterior,
            lambda stream: stream.reset(),
            lambda stream: stream.n_frames,
        ],
    )
    def test_a_stream_in_use_raises(self, waiting, use):
        model, source = waiting
        stream = model.stream()
        thread = threading.Thread(target=stream.step, args=([1.0, 1.0],))
        thread.start()
        assert source.entered.wait(30)
        try:
            with pytest.raises(RuntimeError, match="in use by another thread"):
                use(stream)
        finally:
            source.go_on.set()
            thread.join()
        assert stream.n_frames == 1

    def test_a_batch_in_use_raises(self, waiting):
        model, source = waiting
        batch = model.stream_batch(1)
        thread = threading.Thread(target=batch.step, args=([[1.0, 1.0]],))
        thread.start()
        assert source.entered.wait(30)
        try:
            with pytest.raises(RuntimeError, match="in use by another thread"):
                batch.add(1)
        finally:
            source.go_on.set()
            thread.join()

    def test_native_steps_raise_or_count_but_are_never_lost(self):
        """A big model, whose steps leave the GIL: every step that did not raise is a frame, however many collide."""
        X, y = blobs(1, n_frames=3000, n_columns=40)
        stream = DensityRatioHMM(n_basis=1500, sigma=5.0, rho=0.01, evidence_scale=1.0).fit(X, y).stream()
        counts = [0] * 4

        def feed(k):
            for x in X[:500]:
                with contextlib.suppress(RuntimeError):
                    stream.step(x)
                    counts[k] += 1

        threads = [threading.Thread(target=feed, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.n_frames == sum(counts)


def test_estimator_makes_streams_of_its_model():
    X, y = blobs(0)
    estimator = DensityRatioHMM(n_basis=20, random_state=0).fit(X, y)
    stream = estimator.stream(lag=1)
    assert isinstance(stream, Stream)
    assert stream.model is estimator.model_
    assert isinstance(estimator.model_.stream_batch(2), StreamBatch)


def test_log_ratios_without_a_floor_differ_from_batch_by_the_rounding_of_their_sum_only():
    """Kernels are added in another order; where they cancel to 1/k of their sizes, rounding counts k times.

    The size of a kernel is its value times that of its exponent, which is made from |y|^2, |c|^2 and y.c.
    """
    X, y = blobs(3, n_frames=400, separation=2.0)
    settings = {"ratio": "least-squares", "floor": 0.0, "sigma": 0.3, "evidence_scale": 1.0, "transition_temper": 1.0}
    model = DensityRatioHMM(n_basis=30, random_state=0, **settings).fit(X, y).model_
    kernel = model.evidence.kernel
    evidence, samples = model.evidence, live.samples(5, 3000)
    stream, streamed = model.stream(), []
    for x in samples:
        stream.step(x)
        streamed.append(stream._live.state()["evidence"][0, 0])
    origin = kernel.centers.mean(axis=0)
    frames = (samples - evidence.framing.mean) / evidence.framing.scale - origin
    centers = kernel.centers - origin
    exponents = ((frames[:, None] - centers) ** 2).sum(axis=2) / (2 * kernel.sigma**2)
    parts = ((frames**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)) / (2 * kernel.sigma**2)
    features, batch = np.exp(-exponents), evidence.log_ratios(samples, [len(samples)], 1)
    there = np.isfinite(batch)
    assert_array_equal(np.isfinite(streamed), there)
    sizes = (features * (1 + parts)) @ np.abs(kernel.theta)
    cancellation = (sizes / np.abs(features @ kernel.theta))[there]
    assert cancellation.max() > 1000
    assert (np.abs(np.array(streamed)[there] - batch[there]) <= 8 * 2.0**-53 * (1 + cancellation)).all()


class TestMappings:
    X, Y = blobs(3, n_frames=200)
    SETTINGS: ClassVar = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}

    @pytest.fixture
    def fitted(self):
        return DensityRatioHMM(**self.SETTINGS).fit(pd.DataFrame(self.X, columns=["heart", "speed"]), self.Y)

    def test_may_be_in_any_order(self, fitted):
        one, other = fitted.stream(), fitted.stream()
        np.testing.assert_array_equal(
            one.step({"speed": self.X[0, 1], "more": "text", "heart": self.X[0, 0]}), other.step(self.X[0])
        )

    def test_none_in_a_mapping_is_a_missing_value(self, fitted):
        one, other = fitted.stream(), fitted.stream()
        np.testing.assert_array_equal(one.step({"speed": None, "heart": 1.0}), other.step(None))

    def test_a_name_that_is_not_there(self, fitted):
        stream = fitted.stream()
        with pytest.raises(ValueError, match="x has no column 'speed', did you mean 'Speed'"):
            stream.step({"Speed": 1.0, "heart": 1.0})
        assert stream.n_frames == 0

    def test_text_in_a_mapping(self, fitted):
        with pytest.raises(ValueError, match="x has 'high' in 'speed': a sample has numbers, or None"):
            fitted.stream().step({"heart": 1.0, "speed": "high"})

    def test_a_model_without_names(self):
        stream = DensityRatioHMM(**self.SETTINGS).fit(self.X, self.Y).stream()
        with pytest.raises(ValueError, match="x is a mapping, but the model was learned without names"):
            stream.step({"heart": 1.0, "speed": 1.0})
