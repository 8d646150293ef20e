"""Kill a process with SIGKILL at random moments and look at what it left: run as a script, for a number of kills.

Each child is a fork of this process, so that it starts in milliseconds; it saves, or streams with snapshots, until it
is killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import drhmm
from drhmm.cli import main
from drhmm.cli.followed import FollowedSequences

OPTIONS = {"lag": 0, "sequence": None, "time": None, "step": None}


def child(work):
    """Start `work` in a forked process."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def kill(pid, longest):
    """Kill a process after a random time; whether it was still running."""
    time.sleep(random.uniform(0, longest))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def saving(path, n_kills):
    """Two models of different size are saved in turn; after each kill one of them is there, and nothing else."""
    model = drhmm.load(path)
    other = replace(model, settings={**model.settings, "padding": "x" * 200_000})
    sizes = {len(model.settings), len(other.settings)}
    folder = path.parent

    def work():
        while True:
            other.save(path)
            model.save(path)

    for _ in range(n_kills):
        assert kill(child(work), 0.02)
        assert len(drhmm.load(path).settings) in sizes
        assert list(folder.iterdir()) == [path], list(folder.iterdir())


def streaming(model_path, folder, n_kills):
    """A stream that saves its state after every observation; after each kill the state is whole."""
    snapshot = folder / "state.json"
    model = drhmm.load(model_path)
    samples = np.random.default_rng(0).normal(size=(2000, model.n_features))
    text = "\n".join(",".join(f"{value:.6f}" for value in row) for row in samples).encode() + b"\n"

    def work():
        read, write = os.pipe()
        if os.fork() == 0:  # the writer ends with the pipe
            os.close(read)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            while True:
                os.write(write, text)
        os.close(write)
        os.dup2(read, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(["stream", str(model_path), "--snapshot", str(snapshot), "--every", "1"])

    frames = 0
    for _ in range(n_kills):
        assert kill(child(work), 0.05)
        if snapshot.exists():
            sequences = FollowedSequences(model, OPTIONS)
            sequences.load(snapshot)
            (followed,) = sequences
            assert followed.stream.n_frames >= frames, "the state went back"
            frames = followed.stream.n_frames
            assert list(folder.iterdir()) == [snapshot], list(folder.iterdir())
    assert frames > 0
    return frames


if __name__ == "__main__":
    kind, model_file, folder_name, count = sys.argv[1:]
    random.seed(0)
    if kind == "save":
        target = Path(folder_name) / "model.drhmm"
        drhmm.load(model_file).save(target)
        saving(target, int(count))
    else:
        streaming(Path(model_file), Path(folder_name), int(count))
    print(f"{count} kills")
