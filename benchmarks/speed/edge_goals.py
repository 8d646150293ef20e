"""What a user waits for at single calls: one row, plain Python values, many columns, one explanation."""

from __future__ import annotations

import time
import warnings

import numpy as np
from table import say

import drhmm

#: Microseconds of the same calls in an early version of drhmm, interleaved with this one on an idle core.
EARLIER = {"float64 array": 0.50, "list": 3.82, "tuple": 3.90, "float32 array": 5.01, "int array": 5.04}
EARLIER_MODEL, EARLIER_ESTIMATOR = 13.5, 42.2


def edge_lines(repeats):
    """A line of the table for each call: processor time of the fastest of some runs, beside a limit."""
    return [*one_row(repeats), *streams(repeats), *explanations(repeats)]


def one_row(repeats):
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
        line(f"one step of a stream, {name}", lambda x=x: stream.step(x), 2.5, repeats, earlier=EARLIER[name])
        for name, x in samples.items()
    ]
    calls = (("Model", model, 15, EARLIER_MODEL), ("DensityRatioHMM", estimator, 25, EARLIER_ESTIMATOR))
    for name, fitted, limit, earlier in calls:
        np.testing.assert_allclose(fitted.predict_proba(row, method="filter")[0], model.stream().step(X[3]), atol=1e-12)
        job = f"{name}.predict_proba of one row"
        lines.append(line(job, lambda f=fitted: f.predict_proba(row), limit, repeats, earlier=earlier))
    return lines


def streams(repeats):
    """A step of streams with many columns, with a context and with an alarm, beside a row of a batch."""
    lines = []
    for job, n_columns, n_states, limit, settings in (
        ("50 columns, 10 states", 50, 10, None, {"context": None}),
        ("6 columns, 4 states, context", 6, 4, 5, {}),
        ("6 columns, 4 states, alarm", 6, 4, 4, {"context": None, "novelty": True}),
    ):
        X, y = many_columns(n_columns, n_frames=3000, n_states=n_states)
        model = drhmm.DensityRatioHMM(sigma="default", rho="default", random_state=0, **settings).fit(X, y).model_
        if "novelty" in settings:
            with warnings.catch_warnings(action="ignore"):  # few rows for this rate
                model = model.with_alarm(model.alarm(1, per=10_000, hold_off=30))
        stream, rows = model.stream(), list(X[:300])
        batch = model.predict_proba(X[:300], method="filter")
        np.testing.assert_allclose([stream.step(x) for x in rows], batch, atol=1e-9)
        whole = fastest(lambda m=model, X=X: m.predict_proba(X, method="filter", n_threads=1), 1, repeats)
        of_row = whole / len(X) / 1e-6
        steps = lambda s=stream, rows=rows: [s.step(x) for x in rows]  # noqa: E731
        beside = f"a row of a batch {of_row:.3g} us"
        limit = of_row + 1 if limit is None else limit
        lines.append(line(f"one step of a stream, {job}", steps, limit, repeats, beside, n_calls=1, n_parts=300))
    return lines


def explanations(repeats):
    lines = []
    for n_columns in (5, 50, 150):
        wide, labels = many_columns(n_columns)
        model = drhmm.DensityRatioHMM(context=None, sigma="default", rho="default", random_state=0).fit(wide, labels)
        call = lambda m=model, X=wide[:300]: m.explain(X, 100)  # noqa: E731
        lines.append(line(f"explain one step, d={n_columns}", call, 30, repeats, n_calls=1, unit="ms"))
    return lines


def many_columns(n_columns, n_frames=1500, n_states=3):
    """Rows and labels of which five columns at most tell the states apart."""
    random = np.random.default_rng(0)
    labels = np.arange(n_frames) // 25 % n_states
    means = random.normal(size=(n_states, n_columns)) * (np.arange(n_columns) < 5)
    return means[labels] + random.normal(size=(n_frames, n_columns)), labels


def fastest(call, n_calls, repeats):
    """Processor time of a call in seconds, in the fastest of some runs."""
    best = np.inf
    for _ in range(2 * repeats):
        begin = time.process_time()
        for _ in range(n_calls):
            call()
        best = min(best, (time.process_time() - begin) / n_calls)
    return best


def line(job, call, limit, repeats, beside="", *, earlier=None, n_calls=300, n_parts=1, unit="us"):
    """A line of the table of goals; each call has some equal parts."""
    ours = fastest(call, n_calls, repeats) / n_parts / {"us": 1e-6, "ms": 1e-3}[unit]
    beside = f"an early version {earlier:g} {unit}" if earlier else beside
    text = f"| {job} | {ours:.3g} {unit} | {beside} | | {limit:.3g} {unit} | {'yes' if ours <= limit else '**no**'} |"
    say(text)
    return text
