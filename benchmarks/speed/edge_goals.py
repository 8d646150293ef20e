"""What a user waits for at single calls: one row, plain Python values, many columns, one explanation."""

from __future__ import annotations

import time

import numpy as np
from table import say

import drhmm


def edge_lines(repeats):
    """A line of the table for each call: processor time of the fastest of some runs, beside a limit."""
    X, y = drhmm.datasets.blobs(600, random_state=0)
    estimator = drhmm.DensityRatioHMM(context=None, random_state=0).fit(X, y)
    model, row = estimator.model_, X[3:4]
    stream = model.stream()
    samples = {
        "float64 array": X[3],
        "list": X[3].tolist(),
        "tuple": tuple(X[3].tolist()),
        "float32 array": X[3].astype(np.float32),
        "int array": X[3].astype(int),
    }
    lines = [
        line(f"one step of a stream, {name}", lambda x=x: stream.step(x), 2.5, "us", repeats)
        for name, x in samples.items()
    ]
    lines += [
        line("Model.predict_proba of one row", lambda: model.predict_proba(row), 15, "us", repeats),
        line("DensityRatioHMM.predict_proba of one row", lambda: estimator.predict_proba(row), 25, "us", repeats),
    ]
    for n_columns in (5, 50, 150):
        wide, labels = many_columns(n_columns)
        model = drhmm.DensityRatioHMM(context=None, sigma="default", rho="default", random_state=0).fit(wide, labels)
        lines.append(
            line(f"explain one step, d={n_columns}", lambda m=model, X=wide[:300]: m.explain(X, 100), 30, "ms", repeats)
        )
    return lines


def many_columns(n_columns, n_frames=1500, n_states=3):
    """Rows and labels of which five columns at most tell the states apart."""
    random = np.random.default_rng(0)
    labels = np.arange(n_frames) // 25 % n_states
    means = random.normal(size=(n_states, n_columns)) * (np.arange(n_columns) < 5)
    return means[labels] + random.normal(size=(n_frames, n_columns)), labels


def line(job, call, limit, unit, repeats):
    """A line of the table of goals."""
    n_calls, per = (300, 1e-6) if unit == "us" else (1, 1e-3)
    best = np.inf
    for _ in range(2 * repeats):
        begin = time.process_time()
        for _ in range(n_calls):
            call()
        best = min(best, (time.process_time() - begin) / n_calls / per)
    text = f"| {job} | {best:.3g} {unit} | | | {limit:g} {unit} | {'yes' if best <= limit else '**no**'} |"
    say(text)
    return text
