"""Target: snapshots of streams with changed bytes and numbers, most of them with a fitting checksum."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from mutations import mutated

from drhmm import ImpossibleDataError, SnapshotError
from drhmm.files import model_file
from fuzz import corpus

NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 1.5, 5e-324, 1e308, np.nan, np.inf, -np.inf)
INTEGERS = (0, 1, 2, -1, 2**31, 2**53, 2**53 + 1, 2**61, -(2**61), 2**62, -(2**62), 2**63 - 1, -(2**63), -1074, -1075)


def prepare():
    """Models, and snapshots that are theirs."""
    models = [model_file.from_bytes(content) for content in corpus("model_files")]
    random, made = np.random.default_rng(0), []
    for model in models:
        for lag in (0, 2):
            stream, batch = model.stream(lag), model.stream_batch(4, lag)
            for t in range(10):
                x = random.normal(size=model.n_features)
                stream.step(None if t == 4 else x, 1 + 5 * (t == 7))
                batch.step(random.normal(size=(4, model.n_features)), active=batch.live)
                if t == 5:
                    batch.retire(2)
            made += [(model, "resume", stream.snapshot()), (model, "resume_batch", batch.snapshot())]
    return made + [(models[0], "resume", content) for content in corpus("snapshots")]


def signed(content):
    return content[:-16] + hashlib.sha256(content[:-16]).digest()[:16] if len(content) > 16 else content


def changed(random, content, others):
    """A snapshot made from another one."""
    chance = random.random()
    if chance < 0.3:
        content = mutated(random, content, others)
    else:
        data = bytearray(content)
        for _ in range(int(random.integers(1, 4))):
            place = int(random.integers(len(data) - 8))
            if random.random() < 0.4:
                data[place] = random.integers(256)
            elif random.random() < 0.5:
                data[place : place + 8] = struct.pack("<d", NUMBERS[random.integers(len(NUMBERS))])
            else:
                data[place : place + 8] = struct.pack("<q", INTEGERS[random.integers(len(INTEGERS))])
        content = bytes(data)
    return signed(content) if chance > 0.1 else content


def run(random, snapshots):
    model, method, content = snapshots[random.integers(len(snapshots))]
    if random.random() < 0.02:
        assert judged(random, model, method, content) == "resumed", "a whole snapshot was refused"
        return "resumed"
    return judged(random, model, method, changed(random, content, [other for _, _, other in snapshots]))


def judged(random, model, method, content):
    """What became of a snapshot."""
    try:
        live = getattr(model, method)(content)
    except SnapshotError as error:
        assert len(str(error)) > 10, repr(error)
        return "refused"
    try:
        check(live, method, random, model)
    except ImpossibleDataError:
        return "impossible"
    return "resumed"


def check(live, method, random, model):
    """What was resumed goes on with probabilities and makes a snapshot of its own."""
    with np.errstate(all="ignore"):
        if method == "resume":
            assert np.abs(live.posterior.sum() - 1) < 1e-9
            for _ in range(4):
                answer = live.step(random.normal(size=model.n_features), int(random.choice([1, 7])))
                assert answer is None or np.abs(answer.sum() - 1) < 1e-9
            assert np.isfinite(live.pending()).all()
        else:
            answers = live.step(random.normal(size=(len(live), model.n_features)))
            rows = live.live & (live.n_frames > live.lag)
            assert (np.abs(answers[rows].sum(axis=1) - 1) < 1e-9).all()
            assert np.isfinite(live.posterior[live.live]).all()
    again = getattr(model, method)(live.snapshot())
    assert again.snapshot() == live.snapshot(), "a snapshot is not that of its snapshot"
