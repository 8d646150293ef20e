"""Live sequences with gaps, missing frames and restarts, each compared with batch inference when it ends."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from measures import Measures

import drhmm
from drhmm import DensityRatioHMM, ImpossibleDataError
from drhmm.datasets import blobs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "fuzz"))

from possible import are_refused

KINDS = ("plain", "window", "novelty", "impossible")

#: Share of the steps before which a snapshot is kept, to see that a refusal leaves it as it is.
SNAPSHOTS = 0.01


def learn(folder: Path) -> None:
    """One small model of each kind, as files that any process can load."""
    X, y = blobs(600, random_state=0)
    common = {"n_basis": 40, "random_state": 0, "rho": 0.003, "evidence_scale": 1.0}
    settings = {
        "plain": {"sigma": 1.0},
        "window": {"sigma": 1.5, "window": 4},
        "novelty": {"sigma": 1.5, "window": 2, "novelty": True},
        "impossible": {"sigma": 0.3, "floor": 0.0},  # frames exclude states, and two states cannot follow one another
    }
    for kind in KINDS:
        with warnings.catch_warnings():
            # A column that never changes in training is ignored, whatever comes later.
            warnings.filterwarnings("ignore", "X is constant", UserWarning)
            model = DensityRatioHMM(**common, **settings[kind]).fit(X * [1, kind != "plain"], y).model_
        if kind == "impossible":
            transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
            model = replace(model, transmat=transmat, startprob=np.array([0.5, 0.5, 0.0]), tempering=None)
        model.save(folder / f"{kind}.drhmm")


@cache
def load(folder: Path, kind: str) -> drhmm.Model:
    return drhmm.load(folder / f"{kind}.drhmm")


def has_floor(model: drhmm.Model) -> bool:
    return model.evidence.floor > 0


def samples(random, n_frames, n_columns=2):
    """Samples of which some are far away and some have a NaN, and steps between them, of which a few are long."""
    X = random.choice([1.0, 3.0]) * random.normal(size=(n_frames, n_columns)) + random.normal(size=n_columns)
    X[random.random(n_frames) < 0.03, 0] = np.nan
    dt = np.where(random.random(n_frames) < 0.95, 1, random.integers(2, 1000, size=n_frames))
    dt[random.random(n_frames) < 0.002] = 2**50
    return X, dt


def continued(folder, kind, snapshot, X, dt):
    """Go on with a stream in this process; run in another one: the frames taken, their answers and a snapshot.

    What is not taken was refused as impossible.
    """
    stream = load(folder, kind).resume(snapshot)
    taken, answers = [], []
    for t in range(len(X)):
        try:
            answers.append(stream.step(X[t], int(dt[t])))
            taken.append(t)
        except ImpossibleDataError:
            continue
    return taken, answers, stream.snapshot()


class Recorded:
    """What one sequence was given, what it answered, and which frames it refused."""

    def __init__(self):
        self.samples, self.steps, self.answers = [], [], []
        self.refused = []

    def add(self, x, dt, answer):
        self.samples.append(x)
        self.steps.append(dt)
        self.answers.append(answer)

    def refuse(self, x, dt):
        self.refused.append((len(self.samples), x, dt))

    def offered(self):
        """Every frame in its order: samples, steps, and whether it was refused."""
        samples, steps, refused = self.samples.copy(), self.steps.copy(), [False] * len(self.samples)
        for n_before, (place, x, dt) in enumerate(self.refused):
            samples.insert(n_before + place, x)
            steps.insert(n_before + place, dt)
            refused.insert(n_before + place, True)
        return np.array(samples), [int(dt) for dt in steps], refused


def check_refused(model, sequences, measures: Measures):
    """A sequence refuses the frames that are impossible after those it has taken, and no others."""
    n_refused = sum(len(sequence.refused) for sequence in sequences)
    measures.refused += n_refused
    if has_floor(model):
        if n_refused > 0:
            raise AssertionError(f"{n_refused} frames were refused by a model with a floor, which leaves all states")
        return
    offered = [sequence.offered() for sequence in sequences if sequence.samples or sequence.refused]
    evidence = model.log_ratios([samples for samples, _, _ in offered], n_threads=1) if offered else []
    for (_, steps, refused), log_ratios in zip(offered, evidence, strict=True):
        expected = are_refused(log_ratios, model.transmat, model.startprob, steps)
        if refused != expected:
            frame = next(t for t in range(len(steps)) if refused[t] != expected[t])
            verdict = "impossible" if expected[frame] else "possible"
            raise AssertionError(f"frame {frame} is {verdict} and was judged otherwise")


def compare(model, lag, sequences, measures: Measures):
    """The answers of sequences that have ended, and batch inference on the same frames, without those refused."""
    check_refused(model, sequences, measures)
    sequences = [sequence for sequence in sequences if sequence.samples]
    if not sequences:
        return
    expected = model.predict_proba(
        [np.array(sequence.samples) for sequence in sequences],
        dt=[np.array(sequence.steps) for sequence in sequences],
        method="smooth" if lag else "filter",
        lag=lag or None,
        n_threads=1,
    )
    for sequence, posteriors in zip(sequences, expected, strict=True):
        waiting = sequence.answers[: min(lag, len(sequence.answers))]
        if any(answer is not None and not np.isnan(answer).all() for answer in waiting):
            raise AssertionError("a frame was answered before its lag had passed")
        answered = posteriors[: max(0, len(posteriors) - lag)]
        measures.deviation(sequence.answers[lag:], answered, has_floor(model))


def one_stream(folder, random, measures: Measures, pool):
    """One stream from its start to its end; resumed now and then, here or in another process."""
    kind = str(random.choice(KINDS))
    model, lag = load(folder, kind), int(random.choice([0, 0, 1, 7]))
    X, dt = samples(random, int(random.integers(1, 500)), model.n_features)
    stream, record = model.stream(lag), Recorded()
    t = 0
    while t < len(X):
        chance = random.random()
        if chance < 0.01:
            stream = model.resume(stream.snapshot())
            measures.restarts += 1
        elif chance < 0.0105:
            end = t + int(random.integers(1, 100))
            taken, answers, snapshot = pool.apply(continued, (folder, kind, stream.snapshot(), X[t:end], dt[t:end]))
            answered = dict(zip(taken, answers, strict=True))
            for k in range(len(X[t:end])):
                if k in answered:
                    record.add(X[t + k], dt[t + k], answered[k])
                else:
                    record.refuse(X[t + k], dt[t + k])
            stream = model.resume(snapshot)
            measures.elsewhere += 1
            measures.frames += len(taken)
            t = end
            continue
        x = None if np.isnan(X[t, 0]) and random.random() < 0.5 else X[t]
        before = stream.snapshot() if random.random() < SNAPSHOTS else None
        begin = time.perf_counter_ns()
        try:
            answer = stream.step(x, int(dt[t]))
        except ImpossibleDataError:
            record.refuse(X[t], dt[t])
            check_unchanged(stream, before)
        else:
            measures.latency(time.perf_counter_ns() - begin)
            record.add(X[t], dt[t], answer)
            measures.frames += 1
            if model.novelty and t % 50 == 0:
                seen = np.array(record.samples), np.array(record.steps)
                expected = model.novelty_proba(seen[0], dt=seen[1], n_threads=1)[-1:]
                measures.deviation([stream.novelty], expected, has_floor(model))
        t += 1
    compare(model, lag, [record], measures)
    if record.samples:
        # With a lag, as a stream does not know that the sequence has ended, which matters to a tempered chain.
        seen = np.array(record.samples), np.array(record.steps)
        pending = model.predict_proba(seen[0], dt=seen[1], lag=lag, n_threads=1)
        measures.deviation(stream.pending(), pending[len(pending) - min(lag, len(pending)) :], has_floor(model))
    measures.sequences += 1


def check_unchanged(stream, before):
    """A refusal leaves a stream as it was, where that was kept."""
    if before is not None and stream.snapshot() != before:
        raise AssertionError("a refused frame has changed the stream")


def many_streams(folder, random, measures: Measures):
    """A batch of streams: rows come and go, are reset, wait, and all are resumed now and then."""
    kind = str(random.choice(KINDS))
    model, lag = load(folder, kind), int(random.choice([0, 0, 3]))
    n_threads = int(random.choice([1, 2]))
    batch = model.stream_batch(int(random.integers(1, 100)), lag, n_threads=n_threads)
    current, finished = [Recorded() for _ in range(len(batch))], []
    for _ in range(int(random.integers(1, 100))):
        chance = random.random()
        if chance < 0.05:
            batch = model.resume_batch(batch.snapshot(), n_threads=n_threads)
            measures.restarts += 1
        elif chance < 0.15 and batch.live.any():
            row = int(random.choice(np.flatnonzero(batch.live)))
            (batch.retire if chance < 0.1 else batch.reset)(row)
            finished.append(current[row])
            current[row] = Recorded()
        elif chance < 0.2:
            for row in batch.add(int(random.integers(1, 4))):
                current[row : row + 1] = [Recorded()]
        X, dt = samples(random, len(batch), model.n_features)
        active = batch.live & (random.random(len(batch)) < 0.9)
        before = batch.snapshot() if random.random() < SNAPSHOTS else None
        step_rows(batch, X, dt, active, current, measures, before)
    compare(model, lag, finished + current, measures)
    measures.sequences += len(finished) + len(current)


def step_rows(batch, X, dt, active, current, measures: Measures, before):
    """One step; a row whose frame is impossible is left out, and the others go on."""
    while True:
        begin = time.perf_counter_ns()
        try:
            answers = batch.step(X, active=active, dt=dt)
            break
        except ImpossibleDataError as error:
            check_unchanged(batch, before)
            row = error.sequence
            if not active[row]:
                raise AssertionError(f"row {row} was refused, for which no sample had come") from None
            active = active.copy()
            active[row] = False
            current[row].refuse(X[row], dt[row])
    measures.batch_latency(time.perf_counter_ns() - begin)
    for row in np.flatnonzero(active):
        current[row].add(X[row], dt[row], answers[row])
    measures.frames += int(active.sum())
