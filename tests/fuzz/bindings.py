"""Target: every function and class of the native core, called directly.

The core trusts the meaning of its numbers (Python has checked it) but never their shape, type, layout or size.
"""

from __future__ import annotations

import contextlib

import numpy as np
from layouts import bytes_of, lay_out, odd

from drhmm import _core

SIZES = (0, 1, 2, 3, -1, 2**31, 2**31 + 1, 2**62, 2**63 - 1, -(2**63), 2**64, 1.5, None, "1")
NUMBERS = (1.0, 0.5, 2.0, 0.0, -1.0, 1e-300, 1e300, np.nan, np.inf, None, "text", 10**400)


def prepare():
    return None


def run(random, _):
    n, d, s, b = (int(size) for size in random.integers(1, 7, size=4))
    if random.random() < 0.1:
        n = int(random.choice([0, 100]))
    name = CALLS[random.integers(len(CALLS))]
    call, arguments = name(random, n, d, s, b)
    is_right = name is not restored
    if random.random() < 0.6:
        is_right = False
        key = list(arguments)[random.integers(len(arguments))]
        arguments[key] = changed(random, arguments[key])
    before = {key: bytes_of(value) for key, value in arguments.items()}
    try:
        with np.errstate(all="ignore"):
            call(**arguments)
        outcome = "answered"
    except (ValueError, TypeError, MemoryError) as error:
        assert isinstance(error, MemoryError) or len(str(error)) > 10, repr(error)
        assert not is_right, f"{name.__name__} refused what is right: {error!r}"
        outcome = "refused"
    assert before == {key: bytes_of(value) for key, value in arguments.items()}, "an input was changed"
    return outcome


def changed(random, value):
    """Another argument in the place of one."""
    if isinstance(value, np.ndarray):
        return lay_out(random, value) if random.random() < 0.5 else odd(random, value)
    if isinstance(value, bool):
        return (True, False, 1, "text", None)[random.integers(5)]
    if isinstance(value, int):
        return SIZES[random.integers(len(SIZES))]
    if isinstance(value, float):
        return NUMBERS[random.integers(len(NUMBERS))]
    if isinstance(value, list):
        wrong = [[], [0], [-1, 4], [2**62, 2**62, 2**62], [2**64], [1.5], "text", None, [True], value[:-1], [*value, 1]]
        return wrong[random.integers(len(wrong))]
    return ("text", 1, 1.5, np.zeros(3))[random.integers(4)]


def chain(random, s):
    return {"transmat": random.dirichlet(np.ones(s), s), "startprob": random.dirichlet(np.ones(s))}


def frames(random, n, d, s, b):
    arguments = {"samples": random.normal(size=(n, d)), "lengths": [n] if n else [], "mean": np.zeros(d)}
    return _core.frames, arguments | {"scale": np.ones(d), "window": int(random.integers(1, 4))}


def squared_exponential(random, n, d, s, b):
    return _core.squared_exponential, {"frames": random.normal(size=(n, d)), "centers": np.ones((b, d)), "sigma": 1.0}


def feature_moment(random, n, d, s, b):
    arguments = {"frames": random.normal(size=(n, d)), "targets": np.ones((n, s))}
    return _core.feature_moment, arguments | {"centers": np.ones((b, d)), "sigma": 1.0}


def cross_validate(random, n, d, s, b):
    n = max(n, 2)
    arguments = {"frames": random.normal(size=(n, d)), "targets": np.ones((n, s)), "weights": np.ones(n)}
    arguments |= {"fold_sizes": [n // 2, n - n // 2], "centers": random.normal(size=(b, d)), "sigmas": [1.0, 2.0]}
    return _core.cross_validate, arguments | {"relative_rhos": [0.1], "n_threads": 2}


def recursion(random, n, d, s, b):
    arguments = {"log_ratios": random.normal(size=(n, s)), **chain(random, s), "lengths": [n] if n else []}
    name = ("filter", "smooth", "viterbi", "fixed_lag", "expectation")[random.integers(5)]
    if name == "fixed_lag":
        arguments["lag"] = 2
    arguments["n_threads"] = 2
    if name != "expectation":
        arguments["dt"] = np.ones(n, dtype=np.int64)
    stages = {}
    if random.random() < 0.3:
        sizes = random.integers(1, 4, size=s)
        stages = {"sizes": sizes, "stay": random.random(sizes.sum()), "skip": random.random(s)}

    def call(transmat, startprob, sizes=None, stay=None, skip=None, **rest):
        return getattr(_core, name)(_core.Chain(transmat, startprob, sizes, stay, skip), **rest)

    return call, arguments | stages


def exponentials(random, n, d, s, b):
    return _core.exponentials, {"values": -random.random((n, d))}


def gram(random, n, d, s, b):
    arguments = {"n_centers": b, "n_classes": s, "frames": random.normal(size=(n, d)), "targets": np.ones((n, s))}
    arguments |= {"weights": np.ones(n), "centers": random.normal(size=(b, d)), "sigma": 1.0, "rho": 0.1}

    def call(n_centers, n_classes, rho, **rest):
        statistics = _core.GramStatistics(n_centers, n_classes)
        statistics.add(**rest)
        statistics.merge(statistics)
        factors = [np.asarray(rest[name], dtype=np.float64) for name in ("targets", "weights")]
        if all(((values >= 0) & (values < 1e150)).all() for values in factors):  # their roots and products are finite
            assert np.isfinite(statistics.mass).all()
        _core.RegularizedGram(statistics.gram, rho).solve(statistics.moment)

    return call, arguments


def solve(random, n, d, s, b):
    return (
        lambda gram, rho, moment: _core.RegularizedGram(gram, rho).solve(moment),
        {"gram": np.eye(b), "rho": 0.1, "moment": np.ones((b, s))},
    )


def pickled(random, n, d, s, b):
    """What unpickling gives to a class."""
    return _core.GramStatistics, {"gram": np.eye(b), "moment": np.ones((b, s)), "mass": np.ones(s)}


def ratio_arguments(random, d, s, b, window):
    columns = d * window
    arguments = {"mean": np.zeros(d), "scale": np.ones(d), "window": window, "span": 0, "prior": np.full(s, 1 / s)}
    arguments |= {"least_ratio": 0.01, "floor": 0.01, "shift": np.zeros(s)}
    arguments |= {"centers": random.normal(size=(b, columns)), "sigma": 1.0, "theta": random.random((b, s))}
    arguments |= {"low": -np.ones(columns), "high": np.ones(columns), "intercept": np.zeros(s)}
    arguments |= {"edges": np.sort(random.normal(size=(columns, 9))), "slopes": random.random((columns, s))}
    arguments |= {"steps": random.random((columns * 10, s)), "origin": np.zeros(columns), "log_scales": np.zeros(s)}
    arguments |= {"means": random.normal(size=(s, columns)), "whitening": random.random((s * columns, columns))}
    return arguments | {"kernel_scale": 1.0, "additive_scale": 0.5, "gaussian_scale": 0.5}


def context_arguments(random, d):
    arguments = {"mean": np.zeros(d), "scale": np.ones(d), "windows": [2, 5], "kinds": int(random.integers(1, 4))}
    return arguments | {"signs": random.integers(-1, 2, size=(d, 252)).astype(float), "bias": random.normal(size=252)}


def context(random, n, d, s, b):
    """Features of the past, and the outputs of its convolutions."""
    arguments = {**context_arguments(random, d), "samples": random.normal(size=(n, d)), "lengths": [n] if n else []}
    arguments |= {"first": 0, "count": n, "outputs": bool(random.integers(2))}

    def call(samples, lengths, first, count, outputs, **rest):
        _core.Context(**rest).features(samples, lengths, first, count, outputs=outputs)

    return call, arguments


def past_members(random, d, s):
    """Members that read the context, in half of the cases."""
    if random.random() < 0.5:
        return {}
    arguments = context_arguments(random, d)
    past, size = _core.Context(**arguments), d * (1 + 2 * arguments["kinds"]) + 252
    member = (np.zeros(size), np.ones(size), np.full(s, 1 / s), 0.01 * random.normal(size=(size, s)), 0.5)
    return {"context_features": past, "context": member} | ({"ahead": member} if random.random() < 0.5 else {})


def pooled_ratio(**given):
    """A ratio of all three members, whose arrays are given by name, and of those of the context."""
    members = {
        "kernel": ("centers", "sigma", "theta", "kernel_scale"),
        "additive": ("low", "high", "edges", "intercept", "slopes", "steps", "additive_scale"),
        "gaussian": ("origin", "means", "whitening", "log_scales", "gaussian_scale"),
    }
    packed = {name: tuple(given.pop(part) for part in parts) for name, parts in members.items()}
    return _core.PooledRatio(**given, **packed)


def ratio(random, n, d, s, b):
    arguments = ratio_arguments(random, d, s, b, int(random.integers(1, 3)))
    arguments |= {"samples": random.normal(size=(n, d)), "lengths": [n] if n else [], "n_threads": 2, "single": False}
    past = past_members(random, d, s)

    def call(samples, lengths, n_threads, single, **rest):
        made = pooled_ratio(**rest, **past)
        made.estimates(samples, lengths, n_threads, single)
        made.log_ratios(samples, lengths, n_threads, with_novelty=True, single=single)

    return call, arguments


def streams(random, n, d, s, b):
    window, lag = int(random.integers(1, 3)), int(random.integers(0, 3))
    made = pooled_ratio(**ratio_arguments(random, d, s, b, window), **past_members(random, d, s))
    arguments = {
        **chain(random, s),
        "mean": np.zeros(d),
        "scale": np.ones(d),
        "window": window,
        "span": 0,
        "n_known": s,
    }
    arguments |= {"lag": lag, "n": max(n, 1), "samples": random.normal(size=(max(n, 1), d))}
    arguments |= {"active": np.ones(max(n, 1), dtype=bool), "dt": np.ones(max(n, 1), dtype=np.int64), "n_threads": 2}
    arguments |= {"x": random.normal(size=d), "row": 0, "back": 0, "rows": [0]}

    def call(n, samples, active, dt, n_threads, x, row, back, rows, **rest):
        if isinstance(n, int) and n > 10**6:
            n = 10**6 if random.random() < 0.01 else 2**40
        rest["chain"] = _core.Chain(rest.pop("transmat"), rest.pop("startprob"))
        live = _core.LiveStreams(**rest, ratio=made)
        live.add(n)
        live.step(samples, active, dt, n_threads, None)
        live.posterior(row, back)
        live.posteriors()
        restored = _core.LiveStreams(**rest, ratio=made)
        restored.restore(live.state())
        live.reset(rows)
        live.retire(rows)
        if n == 1:
            restored.stepper()(x, 1, None)

    return call, arguments


def stepping(random, n, d, s, b):
    """One frame after the other, by the function that streams call."""
    given = {**ratio_arguments(random, d, s, b, 1), **past_members(random, d, s)}
    made = pooled_ratio(**given) if random.random() < 0.5 else None
    model = {"chain": _core.Chain(**chain(random, s)), "mean": np.zeros(d), "scale": np.ones(d), "window": 1, "span": 0}
    model |= {"n_known": s, "lag": n % 3}
    arguments = {"x": random.normal(size=d), "dt": int(random.integers(1, 4))}
    arguments |= {"evaluate": lambda frames: np.zeros((len(frames), s))}

    def call(**arguments):
        live = _core.LiveStreams(**model, ratio=made)
        live.add(1)
        step = live.stepper()
        for _ in range(3):
            answer = step(*arguments.values())
            if isinstance(answer, np.ndarray):
                assert np.isclose(answer.sum(), 1), "no distribution"
        taken = int(live.n_frames()[0])
        assert taken in (0, 3), f"{taken} of three frames taken"
        with contextlib.suppress(TypeError):
            step(*list(arguments.values())[: n % 3])
            raise AssertionError("fewer arguments were taken")

    return call, arguments


def normalized(random, n, d, s, b):
    return _core.normalized, {"values": random.dirichlet(np.ones(s), size=n), "tolerance": 1e-8}


def restored(random, n, d, s, b):
    """A state with anything in it."""
    lag, window = int(random.integers(0, 3)), int(random.integers(1, 3))
    model = {
        "chain": _core.Chain(**chain(random, s)),
        "mean": np.zeros(d),
        "scale": np.ones(d),
        "window": window,
        "span": 0,
    }
    model |= {"n_known": s, "lag": lag}
    live = _core.LiveStreams(**model, ratio=None)
    live.add(2)
    state = live.state()
    for name in random.choice(list(state), size=2, replace=False):
        values = state[str(name)]
        if values.size and values.dtype != bool:
            values.flat[random.integers(values.size)] = random.choice([0, 1, -1, 2, 2**53, -(2**61), 2**62])
        elif values.size:
            values.flat[random.integers(values.size)] ^= True

    def call(**state):
        again = _core.LiveStreams(**model, ratio=None)
        again.restore(state)
        report, posteriors = again.posteriors()
        assert report[0] != 0 or np.isfinite(posteriors[again.live()]).all(), "NaN from a state that was taken"

    return call, state


CALLS = (
    frames,
    squared_exponential,
    feature_moment,
    cross_validate,
    recursion,
    recursion,
    exponentials,
    gram,
    solve,
    pickled,
    context,
    ratio,
    ratio,
    streams,
    streams,
    stepping,
    normalized,
    restored,
)
