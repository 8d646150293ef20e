"""Kill a process with SIGKILL at every moment that can matter and look at what it left: run as a script.

Each child is a fork of this process, so that it starts in milliseconds. It saves, or streams with snapshots, and is
killed just before or just after one of its calls of the system, which are counted: no clock decides, so that a busy
machine sees the same moments as an idle one.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import drhmm
from drhmm.cli import main
from drhmm.cli.live_sequences import LiveSequences

#: Calls of the system that change a file or its name, or take part in it: functions of posix and fcntl.
SYSTEM_CALLS = {"chmod", "close", "flock", "fsync", "link", "open", "read", "replace", "unlink", "write"}

OPTIONS = {"lag": 0, "sequence": None, "time": None, "step": None, "alarm": None}


def killed(work, moment):
    """Run `work`, which must not end, in a forked process, and kill it at one moment."""
    pid = os.fork()
    if pid == 0:
        moments = itertools.count()

        def watch(_, event, function):
            is_moment = event in ("c_call", "c_return") and function.__module__ in ("posix", "fcntl")
            if is_moment and function.__name__ in SYSTEM_CALLS and next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(watch)
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL, "it ended by itself"


def beside(path):
    """Files beside one, but for what a killed writer of it may leave: the next writer clears it."""
    return [other.name for other in path.parent.iterdir() if other.name not in (path.name, f".{path.name}.drhmm-tmp")]


def saving(path, n_kills):
    """Two models of different size are saved in turn; after each kill one of them is there, and nothing stays."""
    model = drhmm.load(path)
    other = replace(model, settings={**model.settings, "padding": "x" * 200_000})
    sizes = {len(model.settings), len(other.settings)}

    def work():
        while True:
            other.save(path)
            model.save(path)

    for moment in range(n_kills):
        killed(work, moment)
        assert len(drhmm.load(path).settings) in sizes
        assert not beside(path)
    model.save(path)
    assert list(path.parent.iterdir()) == [path]


def streaming(model_path, folder, n_kills):
    """A stream that saves its state after every observation; after each kill the state is whole."""
    snapshot, lines = folder / "state.json", model_path.with_name("lines.csv")
    model = drhmm.load(model_path)
    samples = np.random.default_rng(0).normal(size=(100, model.n_features))
    lines.write_text("".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in samples))

    def work():
        os.dup2(os.open(lines, os.O_RDONLY), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(["stream", str(model_path), "--snapshot", str(snapshot), "--every", "1"])

    frames = 0
    for moment in range(n_kills):
        killed(work, moment)
        if snapshot.exists():
            sequences = LiveSequences(model, OPTIONS)
            sequences.load(snapshot)
            (followed,) = sequences
            assert followed.stream.n_frames >= frames, "the state went back"
            frames = followed.stream.n_frames
        assert not beside(snapshot)
    assert frames > 0


if __name__ == "__main__":
    kind, model_file, folder_name, count = sys.argv[1:]
    if kind == "save":
        target = Path(folder_name) / "model.drhmm"
        drhmm.load(model_file).save(target)
        saving(target, int(count))
    else:
        streaming(Path(model_file), Path(folder_name), int(count))
    print(f"{count} kills")
