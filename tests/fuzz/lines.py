"""Target: `drhmm stream` with CSV and JSON lines, and with the file in which its state survives a restart."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from make_corpus import LINES
from mutations import mutated

from drhmm.cli import main
from drhmm.cli.live_sequences import _checksum
from fuzz import corpus

#: Characters of a line on standard error: what it echoes is shortened.
LONGEST_MESSAGE = 2000

OPTIONS = (
    [],
    ["--bad-lines=skip"],
    ["--bad-lines=skip", "--lag=2"],
    ["--bad-lines=skip", "--format=csv"],
    ["--bad-lines=skip", "--format=json"],
    ["--bad-lines=skip", "--sequence=who"],
    ["--bad-lines=skip", "--sequence=who", "--time=when", "--step=1"],
    ["--time=when", "--step=0.5", "--bad-lines=skip"],
    ["--columns=a,b", "--bad-lines=skip"],
    ["--columns=who,a,b", "--sequence=who", "--bad-lines=skip"],
)

#: Options with which every row of a text is answered, by their place above.
FITTING = {
    "plain.csv": (0, 1, 2, 3, 8),
    "names.csv": (0, 1, 2, 3),
    "sequences.csv": (6,),
    "dates.csv": (7,),
    "lists.json": (0, 1, 2, 4, 8),
    "objects.json": (8,),
    "sequences.json": (8, 9),
}

#: Texts that begin with the names of their columns.
NAMED = ("names.csv", "sequences.csv", "dates.csv")


def prepare():
    folder = Path(tempfile.mkdtemp())
    for k, content in enumerate(corpus("model_files")):
        (folder / f"{k}.drhmm").write_bytes(content)
    return folder, corpus("lines"), len(list(folder.iterdir()))


def called(arguments, text):
    """The command in this process: status, standard output, standard error."""
    saved, errors, sys.stderr = (os.dup(0), os.dup(1)), sys.stderr, io.StringIO()
    incoming, outgoing = os.memfd_create("in"), os.memfd_create("out")
    try:
        os.write(incoming, text)
        os.lseek(incoming, 0, os.SEEK_SET)
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        status = main(arguments)
        words = sys.stderr.getvalue()
    finally:
        sys.stderr = errors
        os.dup2(saved[0], 0)
        os.dup2(saved[1], 1)
        for descriptor in (*saved, incoming):
            os.close(descriptor)
    size = os.lseek(outgoing, 0, os.SEEK_END)
    os.lseek(outgoing, 0, os.SEEK_SET)
    output = b""
    while len(output) < size:
        output += os.read(outgoing, size)
    os.close(outgoing)
    return status, output, words


def run(random, context):
    folder, texts, n_models = context
    model = folder / f"{random.integers(n_models)}.drhmm"
    text = texts[random.integers(len(texts))]
    if random.random() < 0.9:
        text = mutated(random, text, texts)
    place = int(random.integers(len(OPTIONS)))
    arguments = ["stream", str(model), *OPTIONS[place]]
    check_whole(arguments, text, place)
    state = folder / "state.json"
    state.unlink(missing_ok=True)
    if random.random() < 0.2:
        arguments += ["--snapshot", str(state), "--every=3"]
        called(arguments, texts[random.integers(len(texts))])
        if state.exists() and random.random() < 0.5:
            change = forged if random.random() < 0.5 else mutated
            state.write_bytes(change(random, state.read_bytes(), texts))
    return judged(arguments, text)


def forged(random, content, texts):
    """A state in which one entry is another, with the checksum that it should have."""
    state = json.loads(content)
    state.pop("checksum")
    entries = [state, *state["streams"]]
    entry = entries[random.integers(len(entries))]
    odd = [None, True, 5, -1e300, "x", " x", "1e999", [], [None], [5, {}], {}, 2 * json.loads(content)["streams"]]
    entry[str(random.choice(sorted(entry)))] = odd[random.integers(len(odd))]
    state["checksum"] = _checksum(state)
    return json.dumps(state).encode()


def check_whole(arguments, text, place):
    """A text that is as it was, with options that fit it, is answered row by row, and nothing is said about it."""
    for name, places in FITTING.items():
        if place in places and text == LINES[name].encode():
            status, output, words = called(arguments, text)
            n_rows = len(text.splitlines()) - (name in NAMED)
            assert (status, len(output.splitlines()), words) == (0, n_rows, ""), f"{name} was refused: {words}"


def changed(random, content, texts):
    """Lines made from others."""
    return mutated(random, content, texts)


def judged(arguments, text):
    """What became of some lines."""
    status, output, words = called(arguments, text)
    assert status in (0, 2), f"status {status}"
    assert status == 0 or words.startswith("drhmm stream: "), words
    assert "Traceback" not in words
    assert all(line.startswith("drhmm stream: ") for line in words.splitlines() if line), words
    assert all(len(line) < LONGEST_MESSAGE for line in words.splitlines()), words
    for line in output.splitlines():
        answer = json.loads(line)
        total = sum(answer["probabilities"].values())
        assert np.isfinite(total) and abs(total - 1) < 1e-9, line
    return "answered" if status == 0 else "refused"
