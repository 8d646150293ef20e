"""The fuzzer and the soak see what they are there to see: a fault is put into the package, and must be found."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drhmm import DensityRatioHMM, ImpossibleDataError, Model, ModelFormatError, SnapshotError, _core, recursion
from drhmm.files import model_file
from drhmm.live.streams import Stream, StreamBatch
from drhmm.reference import recursion as reference

pytestmark = pytest.mark.slow

if sys.platform != "linux":
    pytest.skip("fuzzing and the soak need limits of memory and /proc", allow_module_level=True)


def scripts(folder, *names):
    """Modules of a folder of scripts; others of the same name, there for other tests, stay what they are."""
    own = {path.stem for place in ("tests/fuzz", "benchmarks/reliability") for path in (ROOT / place).glob("*.py")}
    path, others = sys.path.copy(), {name: sys.modules.pop(name) for name in own & set(sys.modules)}
    sys.path.insert(0, str(ROOT / folder))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path[:] = path
        for name in own & set(sys.modules):
            del sys.modules[name]
        sys.modules.update(others)


ROOT = Path(__file__).resolve().parents[1]
recursions, models, learning, possible, bindings, model_files, snapshots, lines = scripts(
    "tests/fuzz",
    *("recursions", "models", "learning", "possible", "bindings", "model_files", "snapshots", "lines"),
)
soak, episodes, measures = scripts("benchmarks/reliability", "soak", "episodes", "measures")


def findings(target, n_inputs):
    """The messages of what a target finds in some inputs."""
    context, found = target.prepare(), []
    for number in range(n_inputs):
        try:
            target.run(np.random.default_rng([0, number]), context)
        except Exception as error:
            found.append(str(error))
    return found


def refuse(kind):
    """A function that refuses whatever it is given."""

    def call(*_, **__):
        raise kind("this is refused, whatever it is")

    return call


def refuse_as_impossible(*_, **__):
    raise ImpossibleDataError(0, 0, 0)


class TestTheVerdictImpossible:
    def test_is_that_of_the_reference(self):
        outcomes = set()
        for seed in range(300):
            random = np.random.default_rng(seed)
            values = np.where(random.random((6, 3)) < 0.4, -np.inf, random.normal(size=(6, 3)))
            values[random.random(values.shape) < 0.05] = np.inf
            transmat, startprob = (recursions.probabilities(random, shape, "zeros") for shape in ((3, 3), (3,)))
            first = possible.first_impossible(values, transmat, startprob)
            if first is None:
                reference.filter(values, transmat, startprob)
            else:
                with pytest.raises(ValueError, match=f"impossible data at time step {first[1]}"):
                    reference.filter(values, transmat, startprob)
            outcomes.add(first is None)
        assert outcomes == {True, False}

    def test_across_a_gap_is_that_of_missing_frames(self):
        cycle = np.roll(np.eye(3), 1, axis=1)
        evidence = np.where(np.eye(3)[[0, 2, 0]] > 0, 0.0, -np.inf)
        assert possible.first_impossible(evidence, cycle, np.eye(3)[0], dt=[1, 2, 1]) is None
        assert possible.first_impossible(evidence, cycle, np.eye(3)[0], dt=[1, 2 + 3 * 2**50, 1]) is None
        assert possible.first_impossible(evidence, cycle, np.eye(3)[0], dt=[1, 2, 2]) == (0, 2, 2)
        assert possible.first_impossible(evidence, cycle, np.eye(3)[0], lengths=[1, 2]) == (1, 0, 1)

    def test_of_a_stream_leaves_out_what_it_refused(self):
        evidence = np.where(np.eye(2)[[0, 1, 0]] > 0, 0.0, -np.inf)
        assert possible.are_refused(evidence, np.eye(2), np.array([1.0, 0.0]), [1, 1, 1]) == [False, True, False]


class TestRecursions:
    def test_nothing_is_found_as_it_is(self):
        assert findings(recursions, 60) == []

    def test_possible_data_called_impossible(self, monkeypatch):
        monkeypatch.setattr(recursion, "run", refuse_as_impossible)
        assert any("the first impossible frame is None" in text for text in findings(recursions, 60))

    def test_impossible_data_answered(self, monkeypatch):
        honest = recursion.run

        def answer(name, chain, evidence, *arguments):
            try:
                return honest(name, chain, evidence, *arguments)
            except ImpossibleDataError:
                return np.full(evidence.shape, 1 / evidence.shape[1])

        monkeypatch.setattr(recursion, "run", answer)
        assert any("an answer to impossible data" in text for text in findings(recursions, 150))

    def test_evidence_refused(self, monkeypatch):
        monkeypatch.setattr(recursion, "run", refuse(ValueError))
        assert any("refused what is right" in text for text in findings(recursions, 30))

    @pytest.mark.parametrize("name", ["fixed_lag", "viterbi"])
    def test_gaps_that_are_ignored(self, monkeypatch, name):
        honest = recursion.run

        def ignore(called, chain, evidence, lengths, dt, *rest):
            return honest(called, chain, evidence, lengths, None if called == name else dt, *rest)

        monkeypatch.setattr(recursion, "run", ignore)
        monkeypatch.setattr(recursions, "NAMES", (name,))
        assert findings(recursions, 200)


class TestModels:
    def test_nothing_is_found_as_it_is(self):
        assert findings(models, 60) == []

    @pytest.mark.parametrize("refusal", [refuse(ValueError), refuse_as_impossible], ids=["refused", "impossible"])
    @pytest.mark.parametrize(
        ("place", "name", "method"),
        [(Stream, "step", "stream"), (StreamBatch, "step", "batch"), (Model, "predict_proba", "predict_proba")],
    )
    def test_plain_samples_refused(self, monkeypatch, place, name, method, refusal):
        monkeypatch.setattr(place, name, refusal)
        monkeypatch.setattr(models, "METHODS", (method,))
        assert findings(models, 40)

    def test_a_model_without_a_floor_that_refuses_too_much(self, monkeypatch):
        honest = Stream.step

        def step(stream, x, dt=1):
            if stream.model.evidence.floor == 0 and stream.n_frames % 5 == 4:
                raise ImpossibleDataError(0, stream.n_frames, stream.n_frames)
            return honest(stream, x, dt)

        monkeypatch.setattr(Stream, "step", step)
        monkeypatch.setattr(models, "METHODS", ("stream",))
        assert any("another frame is impossible" in text for text in findings(models, 60))

    def test_a_wrong_method_answered(self, monkeypatch):
        monkeypatch.setattr(Model, "novelty_score", lambda _, given, **__: np.zeros(len(given)))
        monkeypatch.setattr(models, "METHODS", ("novelty_score",))
        assert any("answered what is wrong" in text for text in findings(models, 100))


class TestLearning:
    def test_nothing_is_found_as_it_is(self):
        assert findings(learning, 60) == []

    @pytest.mark.parametrize(
        ("place", "name"),
        [
            (DensityRatioHMM, "fit"),
            (DensityRatioHMM, "partial_fit"),
            (Model, "predict_proba"),
            (learning.LeastSquares, "fit"),
            (learning.TwoClass, "fit"),
        ],
    )
    @pytest.mark.parametrize("kind", [ValueError, MemoryError])
    def test_right_data_refused(self, monkeypatch, place, name, kind):
        monkeypatch.setattr(place, name, refuse(kind))
        assert findings(learning, 200)

    def test_a_reason_that_is_not_there(self, monkeypatch):
        def fit(*_, **__):
            raise ValueError("X is constant in every column: there is nothing to learn from")

        monkeypatch.setattr(DensityRatioHMM, "fit", fit)
        assert any("X is constant" in text for text in findings(learning, 60))


class TestBytes:
    def test_nothing_is_found_as_it_is(self):
        assert [findings(target, 40) for target in (bindings, model_files, snapshots, lines)] == [[]] * 4

    def test_arguments_refused(self, monkeypatch):
        monkeypatch.setattr(_core, "frames", refuse(TypeError))
        assert any("refused what is right" in text for text in findings(bindings, 200))

    def test_a_model_file_refused(self, monkeypatch):
        monkeypatch.setattr(model_file, "from_bytes", refuse(ModelFormatError))
        assert "a whole file was refused" in " ".join(findings(model_files, 1000))

    @pytest.mark.parametrize("name", ["resume", "resume_batch"])
    def test_a_snapshot_refused(self, monkeypatch, name):
        monkeypatch.setattr(Model, name, refuse(SnapshotError))
        assert "a whole snapshot was refused" in " ".join(findings(snapshots, 1000))

    def test_lines_refused(self, monkeypatch):
        def main(_):
            sys.stderr.write("drhmm stream: this is refused, whatever it is\n")
            return 2

        monkeypatch.setattr(lines, "main", main)
        assert any("was refused" in text for text in findings(lines, 150))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    episodes.learn(path)
    return path


HERE = SimpleNamespace(apply=lambda function, arguments: function(*arguments))  # the other process


def one_stream(folder, n_episodes=12):
    random, seen = np.random.default_rng(0), measures.Measures()
    for _ in range(n_episodes):
        episodes.one_stream(folder, random, seen, HERE)
    return seen


def many_streams(folder, n_episodes=12):
    random, seen = np.random.default_rng(0), measures.Measures()
    for _ in range(n_episodes):
        episodes.many_streams(folder, random, seen)
    return seen


def judged_otherwise(monkeypatch, kind):
    """Expect the finding of a wrong refusal by models of one kind."""
    monkeypatch.setattr(episodes, "KINDS", (kind,))
    return pytest.raises(AssertionError, match=r"and was judged otherwise|by a model with a floor")


class TestEpisodes:
    @pytest.mark.parametrize("episode", [one_stream, many_streams])
    def test_without_faults_compare_and_refuse(self, folder, episode):
        seen = episode(folder)
        assert seen.compared > 0
        assert seen.refused > 0
        assert max(seen.worst_deviation, seen.worst_without_floor) <= measures.LARGEST_DEVIATION

    @pytest.mark.parametrize("kind", episodes.KINDS)
    def test_a_stream_that_refuses_possible_frames(self, folder, monkeypatch, kind):
        honest, calls = Stream.step, []

        def step(stream, x, dt=1):
            calls.append(1)
            if len(calls) % 50 == 0:
                raise ImpossibleDataError(0, stream.n_frames, stream.n_frames)
            return honest(stream, x, dt)

        monkeypatch.setattr(Stream, "step", step)
        with judged_otherwise(monkeypatch, kind):
            one_stream(folder)

    @pytest.mark.parametrize("kind", episodes.KINDS)
    def test_a_batch_that_refuses_possible_frames(self, folder, monkeypatch, kind):
        honest, random = StreamBatch.step, np.random.default_rng(0)

        def step(batch, X, *, active=None, dt=1):
            if active.any() and random.random() < 0.2:
                row = int(np.flatnonzero(active)[0])
                raise ImpossibleDataError(row, 0, row)
            return honest(batch, X, active=active, dt=dt)

        monkeypatch.setattr(StreamBatch, "step", step)
        with judged_otherwise(monkeypatch, kind):
            many_streams(folder)

    @pytest.mark.parametrize("kind", episodes.KINDS)
    def test_another_process_that_refuses_possible_frames(self, folder, monkeypatch, kind):
        honest = episodes.continued

        def continued(folder, kind, snapshot, X, dt):
            taken, answers, after = honest(folder, kind, snapshot, X[1:], dt[1:])
            return [k + 1 for k in taken], answers, after

        monkeypatch.setattr(episodes, "continued", continued)
        with judged_otherwise(monkeypatch, kind):
            one_stream(folder, 60)

    def test_impossible_frames_that_are_taken(self, folder, monkeypatch):
        honest = Stream.step

        def step(stream, x, dt=1):
            try:
                return honest(stream, x, dt)
            except ImpossibleDataError:
                return honest(stream, None, dt)

        monkeypatch.setattr(episodes, "KINDS", ("impossible",))
        monkeypatch.setattr(Stream, "step", step)
        with pytest.raises(AssertionError, match="is impossible and was judged otherwise"):
            one_stream(folder)

    def test_a_refusal_that_changes_the_stream(self, folder, monkeypatch):
        honest = Stream.step

        def step(stream, x, dt=1):
            try:
                return honest(stream, x, dt)
            except ImpossibleDataError:
                honest(stream, None, dt)
                raise

        monkeypatch.setattr(episodes, "KINDS", ("impossible",))
        monkeypatch.setattr(episodes, "SNAPSHOTS", 1.0)
        monkeypatch.setattr(Stream, "step", step)
        with pytest.raises(AssertionError, match="a refused frame has changed the stream"):
            one_stream(folder)


class TestSoak:
    def test_nothing_compared_is_a_fault(self):
        assert soak.faults(measures.Measures(), [], [1.0], [100.0]) == [
            "no posterior was compared with batch inference"
        ]
        assert soak.faults(measures.Measures(compared=1), [], [1.0], [100.0]) == []

    def test_memory_is_judged_in_long_runs_only_and_the_report_says_so(self):
        options, seen = SimpleNamespace(minutes=1.0, threads=1, seed=0), measures.Measures(compared=1)
        memory = [100.0] * 10 + [200.0] * 10
        assert "not judged in less than 300 s" in soak.report(options, seen, [299.0] * 20, memory, [])
        assert "not judged" not in soak.report(options, seen, [300.0] * 20, memory, [])
        assert "memory grew" in soak.faults(seen, [], [300.0] * 20, memory)[0]

    def test_a_thread_that_does_not_stop_is_a_fault(self, folder, monkeypatch):
        monkeypatch.setattr(soak, "SECONDS_TO_END", 0.2)
        monkeypatch.setattr(soak, "one_stream", lambda *_: time.sleep(5))
        monkeypatch.setattr(soak, "many_streams", lambda *_: time.sleep(5))
        # Well before the time at which the whole process would be ended.
        monkeypatch.setattr(soak.faulthandler, "dump_traceback_later", lambda *_, **__: None)
        begin = time.monotonic()
        _, failures, _, _ = soak.soak(folder, 0.2, 1, 0, 0.1)
        assert time.monotonic() - begin < 4
        assert [text.splitlines()[0] for text in failures] == ["a thread did not stop:"]
