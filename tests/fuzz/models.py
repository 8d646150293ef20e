"""Target: inference of models, streams and batches of streams with samples of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from layouts import bytes_of, lay_out, odd
from recursions import lengths_of, steps_of

from drhmm import DensityRatioHMM, ImpossibleDataError

METHODS = ("predict", "predict_proba", "log_ratios", "novelty_score", "novelty_proba", "stream", "batch")


def learned():
    """Small models: plain, with windows, with novelty, with impossible frames."""
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(3, size=40), 5)
    X = 3.0 * random.normal(size=(3, 2))[y] + random.normal(size=(200, 2))
    common = {"n_basis": 15, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
    plain = DensityRatioHMM(**common, sigma=1.0).fit(X, y).model_
    hard = DensityRatioHMM(**common, sigma=0.3, floor=0.0).fit(X, y).model_
    transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
    return [
        plain,
        DensityRatioHMM(**common, sigma=2.0, window=3).fit(X, y).model_,
        DensityRatioHMM(**common, sigma=2.0, window=2, novelty=True).fit(X, y).model_,
        replace(hard, transmat=transmat, startprob=np.array([0.5, 0.5, 0.0])),
    ]


prepare = learned


def run(random, models):
    model = models[random.integers(len(models))]
    n_frames = int(random.choice([1, 2, 7, 30, 300]))
    X = random.normal(size=(n_frames, 2)) * random.choice([1.0, 3.0, 100.0, 1e10])
    X[random.random(X.shape) < random.choice([0.0, 0.05])] = np.nan
    is_plain = random.random() < 0.7
    given = lay_out(random, X) if is_plain else odd(random, X)
    if is_plain and not np.isfinite(np.asarray(given, dtype=np.float64)[np.isfinite(X)]).all():
        is_plain = False  # float16 has made infinities
    method = METHODS[random.integers(len(METHODS))]
    if method.startswith("novelty") and random.random() < 0.9:
        model = models[2]
    before = bytes_of(given)
    try:
        with np.errstate(all="ignore"):
            if method == "stream":
                outcome = follow(random, model, given)
            elif method == "batch":
                outcome = follow_many(random, model, given)
            else:
                outcome = ask(random, model, method, given, n_frames)
    except ImpossibleDataError:
        outcome = "impossible"
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 10, repr(error)
        expected = ("lengths", "dt", "novelty", "unknown", "lag", "method")
        assert not is_plain or any(word in str(error) for word in expected), f"refused what is right: {error}"
        outcome = "refused"
    assert bytes_of(given) == before, "an input was changed"
    return outcome


def ask(random, model, method, given, n_frames):
    lengths, _ = lengths_of(random, n_frames)
    dt, _ = steps_of(random, n_frames)
    options = {"lengths": lengths, "dt": dt, "n_threads": int(random.choice([1, 3]))}
    if method in ("predict", "predict_proba", "novelty_proba"):
        options["method"] = str(random.choice(["smooth", "smooth", "filter", "frame", "viterbi"]))
        if options["method"] == "smooth" or random.random() < 0.05:
            options["lag"] = [None, 0, 3, 10**6, -1, 1.5][random.choice(6, p=[0.4, 0.2, 0.2, 0.14, 0.03, 0.03])]
    answer = getattr(model, method)(given, **options)
    assert len(answer) == len(given)
    if method == "predict":
        assert np.isin(answer, model.classes).all()
    elif method == "predict_proba":
        assert np.isfinite(answer).all() and np.abs(answer.sum(axis=1) - 1).max() < 1e-5
        plain = np.array(given, dtype=np.float64)
        if getattr(given, "dtype", None) != np.float32:
            np.testing.assert_array_equal(answer, model.predict_proba(plain, **options))
    elif method == "novelty_proba":
        assert ((answer >= 0) & (answer <= 1)).all()
    else:
        missing = np.isnan(answer).reshape(len(answer), -1)
        assert (missing.all(axis=1) == missing.any(axis=1)).all(), "NaN in a part of a row"
        assert not missing.any() or np.isnan(np.array(given, dtype=np.float64)).any() or model.window > 1, "NaN"
    return "right" if method == "predict_proba" else "plausible"


def follow(random, model, given):
    """A stream that is given rows as they are, now and then something else; compared with batch inference."""
    stream = model.stream(int(random.choice([0, 0, 2])))
    taken, steps, answers = [], [], []
    for row in given:
        x = row if random.random() < 0.9 else odd(random, random.normal(size=2))
        dts = [1, 1, 1, 3, 2**53, 0, -1, 2**53 + 1, 2**70, 1.5, "1", None, True, np.int32(2), np.nan]
        dt = dts[random.integers(len(dts))] if random.random() < 0.3 else 1
        n_frames = stream.n_frames
        try:
            answer = stream.step(x, dt)
        except (ValueError, TypeError) as error:
            assert len(str(error)) > 10, repr(error)
            assert stream.n_frames == n_frames, "a refused frame was taken"
            continue
        answers.append(answer)
        taken.append(np.full(2, np.nan) if x is None else np.array(x, dtype=np.float64).reshape(2))
        steps.append(int(dt))
        if random.random() < 0.05:
            stream = model.resume(stream.snapshot())
    if not taken:
        return "refused"
    lag = stream.lag
    method = {"method": "filter"} if lag == 0 else {"lag": lag}
    expected = model.predict_proba(np.array(taken), dt=np.array(steps), **method)
    np.testing.assert_allclose(np.array(answers[lag:]).reshape(-1, 3), expected[: max(len(taken) - lag, 0)], atol=1e-12)
    return "right"


def follow_many(random, model, given):
    """One step of a batch; what is refused changes no row."""
    batch = model.stream_batch(len(given) if hasattr(given, "__len__") else 3)
    active = [None, np.ones(len(batch), dtype=bool), random.random(len(batch)) < 0.5, [True], "text", 1.0]
    steps = [1, 1, 1, 5, np.ones(len(batch), dtype=int), 0, 1.5, None, "text", np.ones(1)]
    mask, dt = active[random.choice(6, p=[0.5, 0.1, 0.25, 0.05, 0.05, 0.05])], steps[random.integers(len(steps))]
    try:
        answers = batch.step(given, active=mask, dt=dt)
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 10, repr(error)
        assert not batch.n_frames.any(), "a refused frame was taken"
        return "refused"
    rows = np.arange(len(batch)) if mask is None else np.flatnonzero(mask)
    assert np.isfinite(answers[rows]).all()
    X = np.array(given, dtype=np.float64)
    for row in rows[:3]:
        stream = model.stream()
        expected = stream.step(X[row], int(np.broadcast_to(dt, len(batch))[row]))
        np.testing.assert_allclose(answers[row], expected, atol=1e-12)
    return "right"
