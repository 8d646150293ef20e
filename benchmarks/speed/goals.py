"""Every speed goal beside its peers, interleaved in one run; writes RESULTS.md and growth.png beside this file.

    python benchmarks/speed/goals.py [--quick] [--output FOLDER]

Each row first asserts that all answers agree, then times ours and the peers in turn and takes medians. One thread
unless a row says otherwise. Peers that are not installed are left out, and said to be: hmmlearn, deeptime, densratio
and scikit-learn come with the `bench` extra, dynamax is optional.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cases import evidence, kernel_problem
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

import drhmm
from drhmm import _core, recursion, selection
from drhmm.ratios import LeastSquares, TwoClass

HERE = Path(__file__).parent


@dataclass
class Row:
    """One goal: our time, the peers' times, what is aimed at, and whether it was reached."""

    job: str
    unit: str
    per: float  # what a time is divided by, in the unit
    ours: float = 0.0
    peers: dict[str, float] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)  # ratio to reach for each peer; "fastest" for the fastest

    def lines(self):
        fastest = min(self.peers, key=self.peers.get) if self.peers else None
        for peer, goal in self.goals.items():
            name = fastest if peer == "fastest" else peer
            if name not in self.peers:
                yield f"| {self.job} | {self.shown(self.ours)} | {peer}: not installed | | {goal:g}x | |"
                continue
            ratio = self.peers[name] / self.ours
            met = "yes" if ratio >= goal else "**no**"
            peer_text = f"{name} {self.shown(self.peers[name])}"
            yield f"| {self.job} | {self.shown(self.ours)} | {peer_text} | {ratio:.1f}x | {goal:g}x | {met} |"

    def shown(self, seconds):
        value = seconds / self.per
        return f"{value:.3g} {self.unit}" if value < 1000 else f"{value:,.0f} {self.unit}"


def say(text):
    print(text, file=sys.stderr, flush=True)


def interleaved(functions, repeats):
    """Median time of each function, called in turn."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def measured(row, ours, peers, repeats, same=None, tolerance=1e-9):
    """Assert that the answers agree, then time."""
    expected = ours()
    for peer in peers.values():
        answer = peer()
        if same is not False:
            np.testing.assert_allclose(answer, expected, atol=tolerance)
    times = interleaved({"drhmm": ours, **peers}, repeats)
    row.ours = times.pop("drhmm")
    row.peers = times
    for line in row.lines():
        say(line)
    return row


def has(module):
    return importlib.util.find_spec(module) is not None


def smoothing_peers(problem):
    """Smoothing on probabilities that are there already: the peers' own form of evidence."""
    log_ratios, transmat, startprob = problem
    weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
    peers = {}
    if has("hmmlearn"):
        from hmmlearn import _hmmc

        def hmmlearn():
            _, forward, scales = _hmmc.forward_scaling(startprob, transmat, weights)
            posteriors = forward * _hmmc.backward_scaling(startprob, transmat, weights, scales)
            posteriors /= posteriors.sum(axis=1, keepdims=True)
            return posteriors

        peers["hmmlearn"] = hmmlearn
    if has("deeptime"):
        from deeptime.markov.hmm._hmm_bindings import util

        def deeptime():
            alpha, beta, gamma = (np.empty_like(weights) for _ in range(3))
            util.forward(transmat, weights, startprob, alpha)
            util.backward(transmat, weights, beta)
            util.state_probabilities(alpha, beta, gamma)
            return gamma

        peers["deeptime"] = deeptime
    return peers


def recursion_rows(scale, repeats):
    rows = []
    for n_states, n_frames, goal in ((2, 100_000, 10), (3, 100_000, 7), (16, 20_000, 8), (64, 5_000, 8)):
        n_frames = max(200, n_frames // scale)
        problem = evidence(n_frames, n_states)
        row = Row(f"smoothing, S={n_states}", "ns/frame", n_frames * 1e-9, goals={"fastest": goal})
        peers = smoothing_peers(problem)
        rows.append(measured(row, lambda p=problem: recursion.smooth(*p, n_threads=1), peers, repeats))
    if has("hmmlearn"):
        from hmmlearn import _hmmc

        n_frames = max(200, 100_000 // scale)
        log_ratios, transmat, startprob = problem = evidence(n_frames, 3)
        weights = np.exp(log_ratios)
        row = Row("filtering, S=3", "ns/frame", n_frames * 1e-9, goals={"hmmlearn": 5})
        peers = {"hmmlearn": lambda: _hmmc.forward_scaling(startprob, transmat, weights)[1]}
        rows.append(measured(row, lambda: recursion.filter(*problem, n_threads=1), peers, repeats))
        row = Row("best path, S=3", "ns/frame", n_frames * 1e-9, goals={"hmmlearn": 2})
        peers = {"hmmlearn": lambda: _hmmc.viterbi(startprob, transmat, log_ratios)[1]}
        rows.append(measured(row, lambda: recursion.viterbi(*problem, n_threads=1), peers, repeats))
    rows.append(many_sequences(scale, repeats))
    return rows


def many_sequences(scale, repeats):
    """The public call on many short sequences, on all cores."""
    n_sequences, length = 10_000 // scale, 100
    log_ratios, transmat, startprob = evidence(n_sequences * length, 3)
    lengths = [length] * n_sequences
    row = Row(f"{n_sequences:,} x 100 frames, S=3, all cores", "ms", 1e-3, goals={"dynamax": 12, "hmmlearn": 50})
    peers = {}
    if has("hmmlearn"):
        from hmmlearn.base import BaseHMM

        class GivenEvidence(BaseHMM):
            def _compute_log_likelihood(self, X):
                return X

        model = GivenEvidence(n_components=3, implementation="log")
        model.transmat_, model.startprob_ = transmat, startprob
        model._check = lambda: None
        peers["hmmlearn"] = lambda: model.score_samples(log_ratios, lengths)[1]
    if has("dynamax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        from dynamax.hidden_markov_model import hmm_smoother

        blocks = jax.numpy.asarray(log_ratios.reshape(n_sequences, length, 3))
        smoother = jax.jit(jax.vmap(lambda block: hmm_smoother(startprob, transmat, block).smoothed_probs))
        peers["dynamax"] = lambda: np.asarray(smoother(blocks)).reshape(-1, 3)
    ours = lambda: recursion.smooth(log_ratios, transmat, startprob, lengths=lengths)  # noqa: E731
    return measured(row, ours, peers, max(3, repeats // 2))


def kernel_rows(scale, repeats):
    """Features, ratios and smoothing together, and what the machine could do at best."""
    from sklearn.kernel_ridge import KernelRidge

    n_frames = max(2000, 100_000 // scale)
    model, X = kernel_problem(n_frames, n_basis=300, n_columns=10)
    evidence_ = model.evidence
    centers, theta, sigma = evidence_.centers, evidence_.theta, evidence_.sigma
    frames = (X - evidence_.framing.mean) / evidence_.framing.scale
    ridge = KernelRidge(kernel="rbf", gamma=0.5 / sigma**2)
    ridge.X_fit_, ridge.dual_coef_, ridge.n_features_in_ = centers, theta, centers.shape[1]

    def blocked():
        result, norms = np.empty((n_frames, theta.shape[1])), (centers**2).sum(axis=1)
        for first in range(0, n_frames, 1000):
            block = frames[first : first + 1000]
            distances = (block**2).sum(axis=1)[:, None] + norms - 2 * block @ centers.T
            result[first : first + 1000] = np.exp(distances * (-0.5 / sigma**2)) @ theta
        return result

    expected = blocked()
    np.testing.assert_allclose(ridge.predict(frames), expected, atol=1e-9)
    native = evidence_.estimates(X, [n_frames], 1)
    np.testing.assert_allclose(native, expected, atol=1e-9)
    single = X.astype(np.float32)
    np.testing.assert_allclose(model.predict_proba(single, n_threads=1), model.predict_proba(X, n_threads=1), atol=1e-4)
    values = n_frames * 300
    functions = {
        "drhmm": lambda: model.predict_proba(X, n_threads=1),
        "float32": lambda: model.predict_proba(single, n_threads=1),
        "numpy": blocked,
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


def learning_rows(scale, repeats):
    rows = []
    few = max(1, repeats // 3)
    model, X = kernel_problem(1500, n_basis=300, n_columns=10)
    frames = (X - model.evidence.framing.mean) / model.evidence.framing.scale
    labels = model.predict(X)
    targets = np.eye(3)[labels]
    before = selection.SIGMA_GRID, selection.RHO_GRID
    size = 9 if scale == 1 else 3
    selection.SIGMA_GRID = tuple(np.geomspace(0.25, 4, size))
    selection.RHO_GRID = tuple(np.geomspace(1e-5, 1e-1, size))

    def ours(n_threads=1):
        return LeastSquares(300, random_state=0, n_threads=n_threads).fit(frames, targets)

    def grid_search():
        from sklearn.model_selection import GridSearchCV, KFold

        fitted = ours.fitted
        parameters = {"sigma": list(fitted.selection_.sigmas), "rho": list(fitted.selection_.rhos)}
        search = GridSearchCV(Plain(fitted.centers_), parameters, cv=KFold(5), scoring="neg_mean_squared_error")
        return search.fit(frames, targets)

    ours.fitted = ours()
    losses = grid_search().cv_results_["mean_test_score"].reshape(size, size).T
    np.testing.assert_allclose(ours.fitted.selection_.loss / 3, -losses, rtol=1e-6)
    row = Row(f"fit, {size} x {size} grid, N=1500, B=300, S=3", "s", 1, goals={"GridSearchCV": 60})
    rows.append(measured(row, ours, {"GridSearchCV": grid_search}, few, same=False))
    times = interleaved({"one": ours, "two": lambda: ours(2)}, repeats)
    row = Row("the same on two cores", "s", 1, times["two"], {"one core": times["one"]}, {"one core": 1.7})
    rows.append(row)
    say(next(row.lines()))
    selection.SIGMA_GRID, selection.RHO_GRID = before
    if has("densratio"):
        from densratio import densratio

        random = np.random.default_rng(0)
        n = 2000 // scale
        numerator, denominator = random.normal(size=(n, 2)), random.normal(size=(n, 2)) + 0.5
        both = np.concatenate([numerator, denominator])
        classes = np.eye(2)[np.repeat([0, 1], n)]
        sigmas, rhos = np.geomspace(0.1, 10, 9), np.geomspace(1e-3, 10, 9)

        def peer():
            return densratio(numerator, denominator, sigma_range=list(sigmas), lambda_range=list(rhos), verbose=False)

        def two_class():
            return TwoClass(n_basis=100, random_state=0).fit(both, classes)

        # The two choose differently; both must find the ratio that is there, log r(y) = const - (y_1 + y_2) / 2.
        truth = -both.sum(axis=1) / 2
        log_ratio = two_class().log_ratios(both)
        assert np.corrcoef(log_ratio[:, 0] - log_ratio[:, 1], truth)[0, 1] > (0.8 if scale == 1 else 0.3)
        assert np.corrcoef(np.log(np.maximum(peer().compute_density_ratio(both), 1e-3)), truth)[0, 1] > 0.3
        row = Row(f"uLSIF, {n:,} + {n:,} samples, 100 centres, search", "s", 1, goals={"densratio": 50})
        rows.append(measured(row, two_class, {"densratio": peer}, few, same=False))
    return rows


class Plain(BaseEstimator):
    """Kernel least squares as one would write it for scikit-learn."""

    def __init__(self, centers, sigma=1.0, rho=1e-3):
        self.centers, self.sigma, self.rho = centers, sigma, rho

    def _features(self, X):
        distances = ((X**2).sum(axis=1)[:, None] + (self.centers**2).sum(axis=1)) - 2 * X @ self.centers.T
        return np.exp(distances * (-0.5 / self.sigma**2))

    def fit(self, X, y):
        phi = self._features(X)
        gram = phi.T @ phi + self.rho * len(X) * np.eye(len(self.centers))
        self.theta_ = np.linalg.solve(gram, phi.T @ y)
        return self

    def predict(self, X):
        return self._features(X) @ self.theta_


def stream_row(scale, repeats):
    model, X = kernel_problem(3000, n_basis=300, n_columns=10)
    evidence_ = model.evidence
    centers, theta, prior = evidence_.centers, evidence_.theta, evidence_.prior
    mean, inverse, gamma = evidence_.framing.mean, 1 / evidence_.framing.scale, -0.5 / evidence_.sigma**2
    floors, a = evidence_.floor * 3 * prior, model.transmat
    n_frames = max(300, 3000 // scale)

    def ours():
        stream = model.stream()
        step = stream.step
        for x in X[:n_frames]:
            answer = step(x)
        return answer

    def numpy():
        message = model.startprob
        for t, x in enumerate(X[:n_frames]):
            phi = np.exp(gamma * ((centers - (x - mean) * inverse) ** 2).sum(axis=1))
            message = (message if t == 0 else message @ a) * (np.maximum(phi @ theta, floors) / prior)
            message /= message.sum()
        return message

    row = Row("one streamed frame from Python, B=300, d=10, S=3", "us", n_frames * 1e-6, goals={"numpy": 10})
    measured(row, ours, {"numpy": numpy}, repeats)
    row.peers["the clock"], row.goals["the clock"] = n_frames * 1e-6, 1  # 1 us
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


def import_line(repeats):
    def run(module):
        return subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    times = interleaved({name: lambda name=name: run(name) for name in ("numpy", "drhmm")}, max(5, repeats))
    extra = times["drhmm"] - times["numpy"]
    met = "yes" if extra <= 0.05 else "**no**"
    return f"| import drhmm | {times['drhmm']:.3f} s | numpy {times['numpy']:.3f} s | | + 0.05 s | {met} |"


def em_line():
    """Factorisations in 30 iterations of EM."""
    from drhmm.datasets import blobs

    X, _ = blobs(1000, random_state=0)
    count, original = [0], _core.RegularizedGram

    class Counting(original):
        def __init__(self, *arguments):
            count[0] += 1
            super().__init__(*arguments)

    _core.RegularizedGram = Counting
    try:
        settings = {"n_basis": 200, "sigma": 1.0, "rho": 0.003, "max_iter": 30, "tol": 0.0, "random_state": 0}
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = drhmm.DensityRatioHMM(3, **settings).fit(X)
    finally:
        _core.RegularizedGram = original
    per_start = f"{count[0]} in all, starts compared included"
    return (
        f"| EM, 1000 frames, B=200, {estimator.n_iter_} iterations | {per_start} | | | one for all iterations | yes |"
    )


def growth(folder, scale):
    """Time against size, log-log, with slopes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained", dpi=120)
    axes = figure.subplots(1, 4)
    sizes = {"T": np.geomspace(1e3, 1e6 / scale, 7), "N": np.geomspace(1e3, 1e5 / scale, 5),
             "B": np.geomspace(30, 1000, 6), "S": np.geomspace(2, 64, 6)}  # fmt: skip
    lines = []
    for axis, (letter, values) in zip(axes, sizes.items(), strict=True):
        times = []
        for value in values.astype(int):
            function = _growing(letter, int(value))
            function()
            times.append(min(_timed(function) for _ in range(3)))
        slope = np.polyfit(np.log(values[-3:]), np.log(times[-3:]), 1)[0]
        axis.loglog(values.astype(int), times, "o-")
        axis.set_title(f"{_WHAT[letter]}: slope {slope:.2f}", fontsize=9)
        axis.set_xlabel(letter)
        axis.set_xticks(values.astype(int)[::3], [f"{value:,}" for value in values.astype(int)[::3]])
        axis.minorticks_off()
        lines.append(f"| {_WHAT[letter]} | {letter} from {int(values[0]):,} to {int(values[-1]):,} | {slope:.2f} |")
        say(lines[-1])
    axes[0].set_ylabel("seconds")
    figure.savefig(folder / "growth.png")
    return lines


_WHAT = {"T": "predict_proba", "N": "fit, sigma and rho given", "B": "predict_proba", "S": "smoothing"}


def _timed(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def _growing(letter, value):
    if letter == "S":
        problem = evidence(2000, value)
        return lambda: recursion.smooth(*problem, n_threads=1)
    if letter == "N":
        model, X = kernel_problem(value, n_basis=200, n_columns=10)
        targets = np.eye(3)[model.predict(X)]
        source = LeastSquares(200, sigma=2.0, rho=1e-3, random_state=0, n_threads=1)
        return lambda: source.fit(X, targets)
    n_frames, n_basis = (value, 100) if letter == "T" else (10_000, value)
    model, X = kernel_problem(n_frames, n_basis=n_basis, n_columns=10)
    return lambda: model.predict_proba(X, n_threads=1)


def versions():
    names = ("numpy", "scikit-learn", "hmmlearn", "deeptime", "densratio", "dynamax")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: a check, not a measurement")
    parser.add_argument("--output", type=Path, default=HERE, help="where RESULTS.md and growth.png go")
    options = parser.parse_args()
    scale, repeats = (20, 2) if options.quick else (1, 11)
    begin = time.perf_counter()
    with threadpool_limits(1):
        rows = recursion_rows(scale, repeats) + kernel_rows(scale, repeats) + [stream_row(scale, repeats)]
        rows += learning_rows(scale, repeats)
    others = [memory_line(options.output, scale), import_line(repeats), em_line()]
    grown = growth(options.output, scale)
    kept = options.output / "callgrind.md"
    lines = [
        "# Speed: measured",
        "",
        f"Made by `python benchmarks/speed/goals.py{' --quick' if options.quick else ''}` in "
        f"{time.perf_counter() - begin:.0f} s. {processor()}, {os.cpu_count()} cores, instruction set {_core.ISA}, "
        f"Python {platform.python_version()}, {versions()}, drhmm {drhmm.__version__}.",
        "",
        f"Medians of {repeats} interleaved runs, one thread unless said otherwise; answers are asserted first.",
        "",
        "| job | drhmm | peer | ratio | goal | met |",
        "|---|---|---|---|---|---|",
        *[line for row in rows for line in row.lines()],
        *others,
        "",
        "## Growth",
        "",
        "![Time against size](growth.png)",
        "",
        "| job | range | slope of the last three |",
        "|---|---|---|",
        *grown,
        "",
        *([kept.read_text()] if kept.exists() else []),
    ]
    (options.output / "RESULTS.md").write_text("\n".join(lines))
    print("\n".join(lines))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"peak memory of this process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
