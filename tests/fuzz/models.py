"""Target: inference of models, streams and batches of streams with samples of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from layouts import bytes_of, lay_out, odd
from possible import are_refused, first_impossible
from recursions import lengths_of, steps_of

from drhmm import DensityRatioHMM, ImpossibleDataError

METHODS = ("predict", "predict_proba", "log_ratios", "novelty_score", "novelty_proba", "stream", "batch")


def learned():
    """Small models: plain, with windows, with novelty, with impossible frames."""
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(3, size=40), 5)
    X = 3.0 * random.normal(size=(3, 2))[y] + random.normal(size=(200, 2))
    common = {"n_basis": 15, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
    plain = DensityRatioHMM(**common, sigma=1.0, transition_temper=0.5).fit(X, y).model_
    hard = DensityRatioHMM(**common, sigma=0.3, floor=0.0, durations="geometric").fit(X, y).model_
    transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
    return [
        plain,
        DensityRatioHMM(**common, sigma=2.0, window=3).fit(X, y).model_,
        DensityRatioHMM(**common, sigma=2.0, window=2, novelty=True).fit(X, y).model_,
        replace(hard, transmat=transmat, startprob=np.array([0.5, 0.5, 0.0]), tempering=None),
    ]


prepare = learned


def run(random, models):
    model = models[random.integers(len(models))]
    n_frames = int(random.choice([1, 2, 7, 30, 300]))
    X = random.normal(size=(n_frames, 2)) * random.choice([1.0, 3.0, 100.0, 1e10])
    X[random.random(X.shape) < random.choice([0.0, 0.05])] = np.nan
    is_plain = random.random() < 0.7
    given = lay_out(random, X) if is_plain else odd(random, X)
    if is_plain and np.isinf(np.asarray(given, dtype=np.float64)).any():
        is_plain = False  # float16 has made infinities
    method = METHODS[random.integers(len(METHODS))]
    if method.startswith("novelty") and random.random() < 0.9:
        model = models[2]
    before = bytes_of(given)
    with np.errstate(all="ignore"):
        if method == "stream":
            outcome = follow(random, model, given, is_plain)
        elif method == "batch":
            outcome = follow_many(random, model, given, is_plain)
        else:
            outcome = ask(random, model, method, given, n_frames, is_plain)
    assert bytes_of(given) == before, "an input was changed"
    return outcome


def largest_deviation(model):
    """Of a stream from batch inference: without a floor, an estimate can be the small rest of large terms."""
    return 1e-12 if model.evidence.floor > 0 else 1e-10


def check_refusal(error, is_right):
    """A refusal has a message, and a reason."""
    assert len(str(error)) > 10, repr(error)
    assert not is_right, f"refused what is right: {error}"


def ask(random, model, method, given, n_frames, is_plain):
    """Batch inference: what is right is answered, what is wrong is not, and what is impossible is called so."""
    lengths, good_lengths = lengths_of(random, n_frames)
    dt, good_dt = steps_of(random, n_frames)
    options = {"lengths": lengths, "dt": dt, "n_threads": int(random.choice([1, 3]))}
    way, lag = None, None
    if method in ("predict", "predict_proba", "novelty_proba"):
        way = options["method"] = str(random.choice(["smooth", "smooth", "filter", "frame", "viterbi"]))
        if way == "smooth" or random.random() < 0.05:
            lag = options["lag"] = [None, 0, 3, 10**6, -1, 1.5][random.choice(6, p=[0.4, 0.2, 0.2, 0.14, 0.03, 0.03])]
    is_wrong = (
        (lag is not None and (way != "smooth" or lag in (-1, 1.5)))
        or (way == "viterbi" and method != "predict")
        or (way == "frame" and method == "novelty_proba")
        or (method.startswith("novelty") and model.novelty is None)
    )
    is_right = is_plain and good_lengths and good_dt and not is_wrong
    try:
        answer = getattr(model, method)(given, **options)
    except ImpossibleDataError as error:
        place, first = (error.sequence, error.frame, error.row), impossible(model, given, way, lengths, dt)
        assert place == first, f"impossible at {place}, but the first impossible frame is {first}"
        return "impossible"
    except (ValueError, TypeError) as error:
        check_refusal(error, is_right)
        return "refused"
    assert not is_wrong, f"answered what is wrong: {method}, {options}"
    first = None if way is None else impossible(model, given, way, lengths, dt)
    assert first is None, f"an answer to impossible data: {first}"
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


def impossible(model, given, way, lengths, dt):
    """The first impossible frame, or None; with a floor every frame is possible."""
    if model.evidence.floor > 0:
        return None
    log_ratios = np.asarray(model.log_ratios(given, lengths=lengths, dt=dt), dtype=np.float64)
    if way == "frame":  # each is a sequence of its own
        return first_impossible(log_ratios, model.transmat, model.prior, lengths=[1] * len(log_ratios))
    return first_impossible(log_ratios, model.transmat, model.startprob, lengths, dt)


def refused_frames(model, samples, dt):
    """Whether a stream that is given these samples must refuse each; the window of a model without a floor is one."""
    if model.evidence.floor > 0:
        return [False] * len(samples)
    return are_refused(model.log_ratios(np.array(samples)), model.transmat, model.startprob, dt)


def refused_row(model, given, mask, dt):
    """The first row that a batch of streams must refuse as their first frame, or None."""
    if model.evidence.floor > 0:
        return None
    X = np.array(given, dtype=np.float64)
    rows = np.arange(len(X)) if mask is None else np.flatnonzero(mask)
    if len(rows) == 0:
        return None
    log_ratios, n_steps = model.log_ratios(X[rows]), np.broadcast_to(dt, len(X))[rows]
    first = first_impossible(log_ratios, model.transmat, model.startprob, [1] * len(rows), n_steps)
    return None if first is None else rows[first[2]]


def follow(random, model, given, is_plain):
    """A stream that is given rows as they are, now and then something else; compared with batch inference."""
    stream = model.stream(int(random.choice([0, 0, 2])))
    samples, steps, answers, refused = [], [], [], []
    try:
        rows = iter(given)
    except TypeError:
        return "refused"
    for row in rows:
        is_row = random.random() < 0.9
        x = row if is_row else odd(random, random.normal(size=2))
        dts = [1, 1, 1, 3, 2**53, np.int32(2), 0, -1, 2**53 + 1, 2**70, 1.5, "1", None, True, np.nan]
        place = random.integers(len(dts)) if random.random() < 0.3 else 0
        dt, n_frames = dts[place], stream.n_frames
        try:
            answer = stream.step(x, dt)
        except (ValueError, TypeError) as error:
            is_impossible = isinstance(error, ImpossibleDataError)
            check_refusal(error, is_plain and is_row and place < 6 and not is_impossible)
            assert stream.n_frames == n_frames, "a refused frame was taken"
            if not is_impossible:
                continue
        else:
            is_impossible = False
            answers.append(answer)
        refused.append(is_impossible)
        samples.append(np.full(2, np.nan) if x is None else np.array(x, dtype=np.float64).reshape(2))
        steps.append(int(dt))
        if random.random() < 0.05:
            stream = model.resume(stream.snapshot())
    if not samples:
        return "refused"
    assert refused == refused_frames(model, samples, steps), "another frame is impossible than those refused"
    if not answers:
        return "impossible"
    taken, lag = ~np.array(refused), stream.lag
    method = {"method": "filter"} if lag == 0 else {"lag": lag}
    expected = model.predict_proba(np.array(samples)[taken], dt=np.array(steps)[taken], **method)
    np.testing.assert_allclose(
        np.array(answers[lag:]).reshape(-1, 3),
        expected[: max(len(answers) - lag, 0)],
        rtol=0,
        atol=largest_deviation(model),
    )
    return "right"


def follow_many(random, model, given, is_plain):
    """One step of a batch; what is refused changes no row."""
    try:
        batch = model.stream_batch(len(given) if hasattr(given, "__len__") else 3)
    except ValueError as error:
        check_refusal(error, is_plain)
        return "refused"
    active = [None, np.ones(len(batch), dtype=bool), random.random(len(batch)) < 0.5, [True], "text", 1.0]
    steps = [1, 1, 1, 5, np.ones(len(batch), dtype=int), 0, 1.5, None, "text", np.ones(1)]
    which, place = random.choice(6, p=[0.5, 0.1, 0.25, 0.05, 0.05, 0.05]), random.integers(len(steps))
    mask, dt = active[which], steps[place]
    try:
        answers = batch.step(given, active=mask, dt=dt)
    except ImpossibleDataError as error:
        assert not batch.n_frames.any(), "a refused frame was taken"
        place, first = (error.sequence, error.frame, error.row), refused_row(model, given, mask, dt)
        assert place == (first, 0, first), f"impossible at {place}, but the first impossible row is {first}"
        return "impossible"
    except (ValueError, TypeError) as error:
        check_refusal(error, is_plain and which < 3 and place < 5)
        assert not batch.n_frames.any(), "a refused frame was taken"
        return "refused"
    rows = np.arange(len(batch)) if mask is None else np.flatnonzero(mask)
    assert np.isfinite(answers[rows]).all()
    first = refused_row(model, given, mask, dt)
    assert first is None, f"an answer to impossible data in row {first}"
    X = np.array(given, dtype=np.float64)
    for row in rows[:3]:
        stream = model.stream()
        expected = stream.step(X[row], int(np.broadcast_to(dt, len(batch))[row]))
        np.testing.assert_allclose(answers[row], expected, rtol=0, atol=largest_deviation(model))
    return "right"
