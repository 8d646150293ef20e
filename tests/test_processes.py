"""Forks after threads, pools of processes, sub-interpreters, native exceptions, full disks: never an abort."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import drhmm
import live
from drhmm import DensityRatioHMM, _core, recursion
from problems import blobs, evidence_problem

# Python 3.12 and newer warn of forks beside threads, which pytest has where tests run side by side.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]


def in_a_fork(work):
    """Run work in a forked process; whether it ended well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_fork_after_threads_predicts_with_threads():
    model, X = live.model("novelty"), live.samples(0, 5000)
    expected = model.predict_proba(X, n_threads=4)
    assert in_a_fork(lambda: assert_array_equal(model.predict_proba(X, n_threads=4), expected))


def test_a_fork_after_threads_fits_with_threads():
    X, y = blobs(0)
    expected = DensityRatioHMM(n_basis=30, random_state=0, n_threads=4).fit(X, y).model_.fingerprint

    def fit():
        assert DensityRatioHMM(n_basis=30, random_state=0, n_threads=4).fit(X, y).model_.fingerprint == expected

    assert in_a_fork(fit)


FORK_WHILE_PREDICTING = """
import os, threading, warnings
import numpy as np
from drhmm import recursion
warnings.simplefilter("ignore")  # Python 3.12 and newer warn of every fork of a process with threads
evidence, transmat = np.random.default_rng(0).normal(size=(20_000, 3)), np.full((3, 3), 1 / 3)
work = lambda: recursion.smooth(evidence, transmat, transmat[0], lengths=[100] * 200, n_threads=4)
expected, over = work(), threading.Event()
def go_on():
    while not over.is_set():
        work()
threads = [threading.Thread(target=go_on) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(work(), expected) else 1)
    assert os.waitpid(pid, 0)[1] == 0
over.set()
for thread in threads:
    thread.join()
"""


def test_a_fork_while_other_threads_predict():
    done = subprocess.run([sys.executable, "-c", FORK_WHILE_PREDICTING], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


EXIT_WHILE_WORKING = """
import threading, time
import live
X, model, started = live.samples(0, 100_000), live.model("window"), threading.Event()
{before}
def go_on():
    while True:
        {work}
        started.set()
threading.Thread(target=go_on, daemon=True).start()
started.wait()
class Last:
    def __del__(self):  # when Python is ending: others may ask for the GIL, and do not get it
        time.sleep(0.5)
last = Last()
"""

WORK = {
    "predict": ("", "model.predict_proba(X, n_threads=2)"),
    "step": ("batch = model.stream_batch(50_000)", "batch.step(X[:50_000])"),
    "step in Python": ("stream = live.model('classifier').stream()", "stream.step(X[0])"),
}


@pytest.mark.parametrize(("before", "work"), WORK.values(), ids=WORK.keys())
def test_the_process_ends_well_while_a_daemon_thread_works(before, work):
    code = EXIT_WHILE_WORKING.format(before=before, work=work)
    folder = os.path.dirname(live.__file__)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def _predict(X):
    return live.model("window").predict_proba(X, n_threads=2)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes(method):
    inputs = [live.samples(seed, 100) for seed in range(6)]
    expected = [_predict(X) for X in inputs]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert_array_equal(pool.map(_predict, inputs), expected)


def test_a_stream_goes_on_in_a_fork_on_both_sides():
    X = live.samples(0, 40)
    stream = live.model("novelty").stream(2)
    for x in X[:20]:
        stream.step(x)
    copy = live.model("novelty").resume(stream.snapshot())
    expected = [copy.step(x) for x in X[20:]]
    assert in_a_fork(lambda: assert_array_equal([stream.step(x) for x in X[20:]], expected))
    assert_array_equal([stream.step(x) for x in X[20:]], expected)


SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
{before}
identity = interpreters.create()
code = '''
try:
    import drhmm
    print("imported")
except ImportError as error:
    print("ImportError:", error)
'''
run = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
failure = run(identity, code)
if failure is not None:
    print(failure)
interpreters.destroy(identity)
{after}
"""


@pytest.mark.parametrize("before", ["", "import drhmm"], ids=["first", "second"])
def test_a_sub_interpreter_is_told_that_it_is_not_supported(before):
    code = SUB_INTERPRETER.format(before=before, after=f"{before}\nprint('goes on')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("ImportError: drhmm does not support sub-interpreters")
    assert done.stdout.endswith("goes on\n")


class TestNativeExceptions:
    def test_in_a_thread_they_reach_the_caller(self):
        frames, targets = np.random.default_rng(0).normal(size=(40, 2)), np.ones((40, 1))
        with pytest.raises(ValueError, match="positive definite"):
            _core.cross_validate(frames, targets, np.ones(40), [10] * 4, frames, [1.0] * 4, [-1.0], n_threads=4)

    def test_of_sizes_that_no_memory_has(self):
        with pytest.raises(MemoryError):
            _core.GramStatistics(2**31, 2)

    @pytest.mark.parametrize("size", [-1, 2**31 + 1, 2**62])
    def test_of_sizes_that_make_no_sense(self, size):
        with pytest.raises(ValueError, match="n_centers must be from 0"):
            _core.GramStatistics(size, 2)

    @pytest.mark.parametrize("name", ["GramStatistics", "RegularizedGram", "PooledRatio", "LiveStreams"])
    def test_there_are_no_objects_without_content(self, name):
        made = getattr(_core, name)
        with pytest.raises(TypeError, match="incompatible constructor arguments"):
            made.__new__(made)

    def test_of_a_ratio_source_that_raises_in_a_stream(self):
        stream = live.model("classifier").stream()
        stream._evaluate = lambda frames: 1 / 0
        with pytest.raises(ZeroDivisionError):
            stream.step([0.0, 0.0])

    def test_in_many_threads_at_once(self):
        """Every call has failures of its own."""
        evidence, transmat, startprob = evidence_problem(0, 50, 3)
        evidence[10] = -np.inf
        failures = []

        def work():
            for _ in range(50):
                try:
                    recursion.smooth(evidence, transmat, startprob, lengths=[5] * 10, n_threads=3)
                except drhmm.ImpossibleDataError as error:
                    failures.append(error.row)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == [10] * 200


class TestFullDisk:
    def test_a_device_without_room_is_named(self):
        with pytest.raises(OSError, match="/dev/full") as caught:
            live.model("plain").save("/dev/full")
        assert caught.value.errno == errno.ENOSPC

    @pytest.mark.parametrize("room", [0, 1, 2000])
    def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(self, tmp_path, room):
        """As a limit on the size of files does it: the first bytes are written, and the rest is an error."""
        path = tmp_path / "model.drhmm"
        live.model("plain").save(path)
        before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        assert len(before) > room
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            with pytest.raises(OSError, match=r"model\.drhmm"):
                live.model("window").save(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("call", ["chmod", "fsync", "replace"])
    def test_an_error_late_in_writing_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch, call):
        path = tmp_path / "model.drhmm"
        live.model("plain").save(path)
        before = path.read_bytes()

        def fail(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            live.model("window").save(path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_a_snapshot_of_the_stream_command_stays_whole(self, tmp_path):
        model, snapshot = tmp_path / "model.drhmm", tmp_path / "state.json"
        live.model("plain").save(model)
        command = [sys.executable, "-m", "drhmm", "stream", str(model), "--snapshot", str(snapshot), "--every", "1"]
        subprocess.run(command, input="1,2\n", capture_output=True, text=True, check=True)
        before = snapshot.read_bytes()
        code = (
            "import resource, sys\nfrom drhmm.cli import main\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nsys.exit(main(sys.argv[1:]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code, *command[3:]], input="1,2\n", capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("drhmm stream: ")
        assert "state.json" in done.stderr
        assert snapshot.read_bytes() == before
        assert sorted(tmp_path.iterdir()) == [model, snapshot]
