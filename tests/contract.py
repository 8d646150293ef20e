"""What a rebuilt drhmm must answer as before: ten models, fitted in two ways, and each command.

    python tests/contract.py record before.npz
    python tests/contract.py compare before.npz after.npz    # exit status 1 where they differ by more than 1e-12

All settings are given, so that a new default changes nothing here. Fingerprints stand for bits: if one differs while
the posteriors agree, it is named, and is no failure.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

from drhmm import DensityRatioHMM
from drhmm.ratios import FromClassifier, LeastSquares, Pool

TOLERANCE = 1e-12
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
NOT_COMPARED = re.compile(r"\b[0-9a-f]{32}\b|in [\d.]+ m?s\b|[\d,]+ bytes")  # fingerprints, times and sizes of files
SETTINGS = {
    "context": None,
    "window": 2,
    "ratio": "pool",
    "durations": "geometric",
    "n_basis": 60,
    "sigma": "cv",
    "rho": "cv",
    "floor": 0.02,
    "evidence_scale": "cv",
    "standardize": True,
    "transition_prior": 1.0,
    "transition_temper": "cv",
    "n_init": 2,
    "max_iter": 30,
    "tol": 1e-4,
    "em_update": "soft",
    "unlabelled": "use",
    "random_state": 0,
    "n_threads": 1,
}
GIVEN = {"sigma": 2.0, "rho": 0.01, "evidence_scale": 1.0, "transition_temper": 1.0}
KNOWN = inspect.signature(DensityRatioHMM).parameters


def signal(n_frames, n_states, seed, stay=0.95):
    """Noisy clouds that follow each other in a ring, with some missing samples."""
    random = np.random.RandomState(seed)
    states = np.cumsum(random.uniform(size=n_frames) > stay) % n_states
    centers = random.normal(size=(n_states, 3)) * 2
    X = centers[states] + random.normal(size=(n_frames, 3))
    X[random.uniform(size=X.shape) < 0.01] = np.nan
    return X, states


def problems():
    """Name, settings, X, y and arguments of fit of each model."""
    X, y = signal(600, 3, 0)
    few = np.where(np.random.RandomState(1).uniform(size=len(y)) < 0.1, y, -1)
    yield "labelled", {}, X, y, {"lengths": [200, 150, 250]}
    yield "partly", {}, X, few, {}
    yield "unlabelled", {"n_states": 3}, X, None, {}
    yield "novelty", {"novelty": True, "novelty_rate": 1e-3, "novelty_duration": 50.0}, X, y, {}
    yield "durations", {"durations": "negative-binomial"}, X, y, {"lengths": [300, 300]}
    yield "float32", {}, X.astype(np.float32), y, {}
    yield "two_sources", {"ratio": Pool([LeastSquares(), FromClassifier(GaussianNB())])}, X, y, {}
    yield "weights", {"class_weight": "balanced"}, X, y, {"sample_weight": np.linspace(0.5, 2.0, len(y))}
    X, y = signal(900, 24, 2, stay=0.8)
    ring = np.where(np.eye(24) + np.eye(24, k=1) + np.eye(24, k=-23) > 0, 1.0, -np.inf)
    yield "sparse_chain", {"transition_prior": ring}, X, y, {}
    X, y = signal(1500, 40, 3, stay=0.9)
    yield "many_classes", {}, X, y, {}


def answers(name, settings, X, y, arguments):
    """Everything that a fitted model says about a signal that it has not seen."""
    given = {key: value for key, value in (SETTINGS | settings).items() if key in KNOWN}
    model = DensityRatioHMM(**given).fit(X, y, **arguments).model_
    new = signal(200, model.n_states, 4)[0].astype(X.dtype)
    stream = model.stream()
    found = {
        "fingerprint": np.array(model.fingerprint),
        "classes": model.classes,
        "transmat": model.transmat,
        "log_ratios": model.log_ratios(new),
        "path": model.predict(new, method="viterbi"),
        "lagged": model.predict_proba(new, lag=3),
        "gaps": model.predict_proba(new, dt=np.where(np.arange(200) % 50 == 49, 7, 1)),
        "gain": np.array(model.gain(new)),
        "stream": np.array([stream.step(x) for x in new]),
    }
    for method in ("smooth", "filter", "frame"):
        found[method] = model.predict_proba(new, method=method)
    if model.novelty is not None:
        found["novelty"] = model.novelty_proba(new)
        found["score"] = model.novelty_score(new)
    return {f"{name}.{key}": value for key, value in found.items()}


def command_lines(folder):
    """Each command with its input, in an order in which files are there before they are read."""
    X, y = signal(300, 3, 5)
    rows = [f"{a!r},{b!r},{c!r},s{state}".replace("nan", "") for (a, b, c), state in zip(X.tolist(), y, strict=True)]
    for name, part in (("train", rows[:200]), ("new", rows[200:])):
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,state", *part, ""]))
    yield (
        "fit train.csv --label state --novelty --output model.drhmm --window 2 --durations geometric --basis 60"
        f" --seed 0 --threads 1 --quiet{' --context none' if 'context' in KNOWN else ''}",
        "",
    )
    yield "predict model.drhmm new.csv --probabilities --label state", ""
    yield "predict model.drhmm new.csv --method viterbi --output states.csv", ""
    yield "evaluate model.drhmm new.csv --label state --json", ""
    yield "evaluate model.drhmm new.csv --label state", ""
    yield "explain model.drhmm new.csv --row 49", ""
    yield "explain model.drhmm new.csv --columns --frames 20", ""
    yield "stream model.drhmm --lag 2", (folder / "new.csv").read_text()
    yield "info model.drhmm", ""
    yield "info model.drhmm --json", ""
    yield "demo --train 30 --frames 100 --output demo.png", ""
    yield "predict model.drhmm missing.csv", ""


def command_outputs():
    """What each command prints, its errors and its exit status."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for arguments, text in command_lines(Path(folder)):
            command = [sys.executable, "-m", "drhmm", *arguments.split()]
            done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True)
            found[f"drhmm {arguments.removesuffix(' --context none')}"] = np.array(
                f"{done.stdout}{done.stderr}status {done.returncode}"
            )
        found["states.csv"] = np.array((Path(folder) / "states.csv").read_text())
    return found


def record():
    """Each model with learned scales and with given ones, which stay when scales are learned in another way."""
    everything = {}
    for name, settings, *data in problems():
        everything.update(answers(name, settings, *data))
        everything.update(answers(f"{name}, scales given", GIVEN | settings, *data))
    return everything | command_outputs()


def differences(before, after):
    """What differs by more than the tolerance, as lines; those in brackets are notes."""
    for key in sorted(before.keys() ^ after.keys()):
        yield f"{key}: only in the {'first' if key in before else 'second'} file"
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key], after[key]
        if key.endswith(".fingerprint"):
            if old != new:
                yield f"({key}: {old} became {new})"
        elif old.dtype.kind == "U" and old.ndim == 0:
            yield from _text_differences(key, str(old), str(new))
        elif old.shape != new.shape or old.dtype.kind != new.dtype.kind:
            yield f"{key}: {old.dtype}{old.shape} became {new.dtype}{new.shape}"
        elif old.dtype.kind != "f":
            if not np.array_equal(old, new):
                yield f"{key}: {np.count_nonzero(old != new)} of {old.size} differ"
        else:
            far = ~np.isclose(new, old, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
            if far.any():
                yield f"{key}: {far.sum()} of {far.size} differ, by up to {np.nanmax(np.abs(new - old)[far]):.3g}"


def _text_differences(key, old, new):
    """Lines that differ otherwise than by the rounding of their numbers; times are left out."""
    old_lines, new_lines = (NOT_COMPARED.sub("...", text).splitlines() for text in (old, new))
    if len(old_lines) != len(new_lines):
        yield f"{key}: {len(old_lines)} lines became {len(new_lines)}"
    for number, (first, second) in enumerate(zip(old_lines, new_lines, strict=False), start=1):
        numbers = [np.array(NUMBER.findall(line), dtype=float) for line in (first, second)]
        is_near = NUMBER.sub("#", first) == NUMBER.sub("#", second) and np.allclose(*numbers, TOLERANCE, TOLERANCE)
        if not is_near:
            yield f"{key}, line {number}: {first!r} became {second!r}"


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "record":
        np.savez_compressed(sys.argv[2], **record())
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        with np.load(sys.argv[2]) as first, np.load(sys.argv[3]) as second:
            lines = list(differences(first, second))
            count = len(first.files)
        print("\n".join([*lines, f"{count} answers compared"]))
        sys.exit(any(not line.startswith("(") for line in lines))
    else:
        sys.exit(__doc__)
