"""Memory exhaustion is a MemoryError, and everything stays usable."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import exhaustion

pytestmark = pytest.mark.exhaustive

FOLDER = Path(__file__).parent


ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # it ends the process where threads of its own get no memory
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(exhaustion.LARGE),
}


def exhausted(work, n_threads):
    """How often the work gave its answer, and how often MemoryError."""
    arguments = [sys.executable, FOLDER / "exhaustion.py", work, str(n_threads)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-2000:]
    return map(int, done.stdout.split())


@pytest.mark.parametrize("work", exhaustion.WORKS)
def test_without_memory_the_answer_is_right_or_a_memory_error(work):
    right, failed = exhausted(work, n_threads=1)
    assert failed > 0
    assert right + failed == exhaustion.STEPS


@pytest.mark.parametrize("work", ["predicting", "path", "wide_smoothing", "batch_step"])
def test_threads_without_memory_do_not_end_the_process(work):
    """Other threads keep memory of their own, and MemoryError is rare: glibc aborted in a thread that came too late."""
    assert sum(exhausted(work, n_threads=2)) == exhaustion.STEPS


THREADS = """
import resource, numpy as np
from drhmm import recursion
from exhaustion import used
evidence, transmat = np.random.default_rng(0).normal(size=(1000, 3)), np.full((3, 3), 1 / 3)
expected = recursion.smooth(evidence, transmat, transmat[0], lengths=[10] * 100, n_threads=1)
resource.setrlimit(resource.RLIMIT_AS, (used() + 2**29, resource.getrlimit(resource.RLIMIT_AS)[1]))
import threading
try:
    threading.Thread(target=int).start()
    raise SystemExit("a thread could start")
except RuntimeError:
    pass
for n_threads in (2, 3, 64):
    answer = recursion.smooth(evidence, transmat, transmat[0], lengths=[10] * 100, n_threads=n_threads)
    assert np.array_equal(answer, expected)
"""


def test_where_no_thread_can_be_started_the_caller_does_all_the_work():
    """Stacks of 1 GB each, and room for half of one."""

    def large_stacks():
        resource.setrlimit(resource.RLIMIT_STACK, (2**30, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    done = subprocess.run(
        [sys.executable, "-c", THREADS], cwd=FOLDER, capture_output=True, text=True, preexec_fn=large_stacks
    )
    assert done.returncode == 0, done.stderr[-2000:]
