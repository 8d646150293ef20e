"""From samples to posteriors: batches and streams, time and memory, beside numpy, scikit-learn and the machine."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from cases import blocked_estimates, kernel_problem
from table import Row, interleaved, measured, say

from drhmm import DensityRatioHMM, _core
from drhmm.datasets import sensors
from drhmm.reference import novelty as reference


def kernel_rows(scale, repeats):
    """Features, ratios and smoothing together, and what the machine could do at best."""
    from sklearn.kernel_ridge import KernelRidge

    n_frames = max(2000, 100_000 // scale)
    model, X = kernel_problem(n_frames, n_basis=300, n_columns=10)
    evidence_ = model.evidence
    centers, theta, sigma = evidence_.kernel.centers, evidence_.kernel.theta, evidence_.kernel.sigma
    frames = (X - evidence_.framing.mean) / evidence_.framing.scale
    ridge = KernelRidge(kernel="rbf", gamma=0.5 / sigma**2)
    ridge.X_fit_, ridge.dual_coef_, ridge.n_features_in_ = centers, theta, centers.shape[1]

    expected = blocked_estimates(model, X)
    np.testing.assert_allclose(ridge.predict(frames), expected, atol=1e-9)
    native = evidence_.estimates(X, [n_frames], 1)
    np.testing.assert_allclose(native, expected, atol=1e-9)
    single = X.astype(np.float32)
    np.testing.assert_allclose(model.predict_proba(single, n_threads=1), model.predict_proba(X, n_threads=1), atol=1e-4)
    values = n_frames * 300
    functions = {
        "drhmm": lambda: model.predict_proba(X, n_threads=1),
        "float32": lambda: model.predict_proba(single, n_threads=1),
        "numpy": lambda: blocked_estimates(model, X),
        "KernelRidge": lambda: ridge.predict(frames),
        "two cores": lambda: model.predict_proba(X, n_threads=2),
        "product": lambda: _products(frames, centers),
        "exponential": lambda: _exponentials(values),
    }
    times = interleaved(functions, repeats)
    limit = times["product"] * (1 + theta.shape[1] / 10) + times["exponential"]
    unit = {"unit": "ns/kernel", "per": values * 1e-9}
    rows = [
        Row("predict_proba, B=300, d=10, S=3", ours=times["drhmm"], peers=_only(times, "numpy", "KernelRidge"),
            goals={"numpy": 2, "KernelRidge": 6}, **unit),
        Row("the same in float32", ours=times["float32"], peers={"float64": times["drhmm"]},
            goals={"float64": 2}, **unit),
        Row("the same on two cores", ours=times["two cores"], peers={"one core": times["drhmm"]},
            goals={"one core": 1.7}, **unit),
        Row("the same against the machine (products at BLAS speed, exponentials at the core's)", ours=times["drhmm"],
            peers={"limit": limit}, goals={"limit": 0.85}, **unit),
    ]  # fmt: skip
    for row in rows:
        for line in row.lines():
            say(line)
    return rows


def _only(times, *names):
    return {name: times[name] for name in names}


def _products(frames, centers):
    """Products at the speed of BLAS, in a block that stays in the cache."""
    block, target = frames[:256], np.empty((256, len(centers)))
    for _ in range(0, len(frames), 256):
        np.dot(block, centers.T, out=target)


_BUFFER = np.empty(0)


def _exponentials(n):
    """The best exponentials that are here: those of the core, without anything else."""
    global _BUFFER
    if len(_BUFFER) != 1 << 14:
        _BUFFER = -np.random.default_rng(0).random(1 << 14) * 10
    for _ in range(max(1, n >> 14)):
        _core.exponentials(_BUFFER)


def stream_rows(scale, repeats):
    """One frame at a time."""
    return [stream_row(scale, repeats), novelty_row(scale, repeats)]


def stream_row(scale, repeats):
    model, X = kernel_problem(3000, n_basis=300, n_columns=10)
    evidence_ = model.evidence
    centers, theta, prior = evidence_.kernel.centers, evidence_.kernel.theta, evidence_.prior
    mean, inverse, gamma = evidence_.framing.mean, 1 / evidence_.framing.scale, -0.5 / evidence_.kernel.sigma**2
    floors, a = evidence_.least_ratio * prior, model.transmat
    n_frames = max(300, 3000 // scale)
    samples = list(X[:n_frames])

    def ours():
        step = model.stream().step
        for x in samples:
            answer = step(x)
        return answer

    def numpy():
        message = model.startprob
        for t, x in enumerate(samples):
            phi = np.exp(gamma * ((centers - (x - mean) * inverse) ** 2).sum(axis=1))
            message = (message if t == 0 else message @ a) * (np.maximum(phi @ theta, floors) / prior)
            message /= message.sum()
        return message

    row = Row("one streamed frame from Python, B=300, d=10, S=3", "us", n_frames * 1e-6, goals={"numpy": 10})
    measured(row, ours, {"numpy": numpy}, repeats)
    row.peers["the clock"], row.goals["the clock"] = n_frames * 1e-6, 1  # 1 us
    return row


def novelty_row(scale, repeats):
    """Watching eight correlated sensors in which nothing is wrong: one known state, and the unknown."""
    # In a random order, so that evidence has no running means.
    normal = np.random.RandomState(0).permutation(sensors(3000, faults=(), random_state=0)[0])
    model = DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
    n_frames = max(300, 3000 // scale)
    samples = list(sensors(n_frames, faults=(), random_state=1)[0])
    evidence_, n_columns = model.evidence.novelty.now, normal.shape[1]
    framing, densities = model.evidence.framing, evidence_.densities
    precision = densities.gaussian_whitening.T @ densities.gaussian_whitening
    covariances = np.linalg.inv(precision).reshape(1, n_columns, n_columns)
    kernels = densities.origin, densities.whitening, densities.centers, densities.weights, densities.width
    chain = model.novelty.transmat(np.ones((1, 1)), np.ones(1)), model.novelty.startprob(np.ones(1))

    def ours():
        stream = model.stream()
        for x in samples:
            stream.step(x)
        return stream.novelty

    def numpy():
        message = chain[1]
        for t, x in enumerate(samples):
            frame = ((x - framing.mean) / framing.scale)[None]
            scores = (
                reference.gaussian_score(frame, densities.means, covariances, densities.shares),
                reference.kernel_score(frame, *kernels),
            )
            logs = [
                reference.log_e(reference.surprise(score, *table.arrays()))
                for score, table in zip(scores, evidence_.tables, strict=True)
            ]
            likelihood = np.array([1.0, np.exp(reference.pooled(logs, evidence_.scales, evidence_.joint)[0])])
            message = (message if t == 0 else message @ chain[0]) * likelihood
            message /= message.sum()
        return message[1]

    row = Row("one streamed frame with novelty, d=8, one known state", "us", n_frames * 1e-6, goals={"numpy": 10})
    measured(row, ours, {"numpy": numpy}, repeats)
    row.peers["the clock"], row.goals["the clock"] = 1.6 * n_frames * 1e-6, 1  # 1.6 us
    return row


MEMORY = """
import sys, numpy as np, drhmm
model = drhmm.load(sys.argv[1]); n = int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(n, 10))
model.predict_proba(X[:1000])
def peak():  # of this process alone: getrusage remembers that of its parent
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024
before = peak()
output = model.predict_proba(X)
print(peak() - before, output.nbytes)
"""


def memory_line(folder, scale):
    model, _ = kernel_problem(3000, n_basis=300, n_columns=10)
    model.save(folder / "memory.drhmm")
    n_frames = 1_000_000 // scale
    command = [sys.executable, "-c", MEMORY, str(folder / "memory.drhmm"), str(n_frames)]
    extra, output = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    (folder / "memory.drhmm").unlink()
    limit = 1.3 * output + 64e6
    met = "yes" if extra <= limit else "**no**"
    return (
        f"| memory, predict on {n_frames:,} frames | {extra / 1e6:.0f} MB | | | {limit / 1e6:.0f} MB "
        f"(1.3 x output + 64 MB) | {met} |"
    )
