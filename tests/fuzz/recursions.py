"""Target: `drhmm.recursion` with evidence, chains, lengths, gaps and lags of every kind."""

from __future__ import annotations

import expected
import numpy as np
from layouts import bytes_of, lay_out, odd
from possible import first_impossible

from drhmm import ImpossibleDataError, recursion
from drhmm.reference import recursion as reference

NAMES = ("filter", "smooth", "fixed_lag", "viterbi", "expected_transitions")


def prepare():
    return None


def probabilities(random, shape, kind):
    """Rows that sum to one: dense, with zeros, with tiny numbers, or certain."""
    values = random.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    if kind == "zeros":
        values = values * (random.random(shape) < 0.5)
        values[..., 0] += 1e-3
    elif kind == "tiny":
        values = values ** random.integers(1, 60)
        values[..., -1] += 1e-2
    elif kind == "certain":
        values = np.zeros(shape)
        np.put_along_axis(values, random.integers(shape[-1], size=(*shape[:-1], 1)), 1.0, axis=-1)
    return values / values.sum(axis=-1, keepdims=True)


def evidence(random, n_frames, n_states):
    """Log ratios: moderate, strong, excluding, with missing rows."""
    values = random.normal(size=(n_frames, n_states)) * random.choice([1.0, 1.0, 30.0, 1000.0, 1e6])
    if random.random() < 0.3:
        values[random.random(values.shape) < 0.1] = -np.inf
    if random.random() < 0.1:
        values[random.random(values.shape) < 0.02] = np.inf
    if random.random() < 0.5:
        values[random.random(n_frames) < 0.1] = np.nan
    if random.random() < 0.05:
        values[:] = random.choice([0.0, -1e5, 1e300, np.nan])
    return values


def lengths_of(random, n_frames):
    """Lengths that sum to the number of frames, None, or something else; and whether they are right."""
    chance = random.random()
    if chance < 0.5:
        return None, True
    if chance < 0.93:
        cuts = np.unique(random.integers(1, n_frames, size=3)) if n_frames > 1 else []
        parts = np.diff([0, *cuts, n_frames])
        return random.permutation(parts) if chance < 0.7 else parts.tolist(), True
    wrong = [
        [],
        [0],
        [n_frames, 0],
        [n_frames + 1],
        [-1, n_frames + 1],
        [2**63 - 1, 2**63 - 1],
        "text",
        [1.5],
        [[n_frames]],
    ]
    wrong += [n_frames, [n_frames + 0.0], [2**62] * 4, [True], None, [n_frames - 1]]
    return wrong[random.integers(len(wrong))], False


def steps_of(random, n_frames):
    """Gaps, small enough for the reference, or large, or no gaps at all; and whether they are right."""
    chance = random.random()
    if chance < 0.6:
        return None, True
    steps = np.where(random.random(n_frames) < 0.7, 1, random.integers(1, 6, size=n_frames))
    if chance < 0.75:
        return lay_out(random, steps, ("plain", "strided", "reversed", "misaligned", "read-only", "big-endian")), True
    if chance < 0.95:
        return np.where(random.random(n_frames) < 0.7, 1, 2 ** random.integers(0, 54, size=n_frames)), True
    wrong = [steps - 1, steps[:-1], steps * 1.0, -steps, np.full(n_frames, 2**63 - 1), "text", 1, [], steps[:, None]]
    return wrong[random.integers(len(wrong))], False


def run(random, _):
    n_states = int(random.choice([1, 2, 2, 3, 3, 4, 5, 8, 9, 17, 65], p=[0.05, *[0.13] * 6, *[0.17 / 4] * 4]))
    n_frames = int(random.choice([1, 2, 3, 10, 40, 300]))
    kinds = ("dense", "dense", "zeros", "tiny", "certain")
    arrays = {
        "log_ratios": evidence(random, n_frames, n_states),
        "transmat": probabilities(random, (n_states, n_states), kinds[random.integers(5)]),
        "startprob": probabilities(random, (n_states,), kinds[random.integers(5)]),
    }
    lengths, good_lengths = lengths_of(random, n_frames)
    dt, good_dt = steps_of(random, n_frames)
    given = {name: lay_out(random, values) if name == "log_ratios" else values for name, values in arrays.items()}
    is_plain = good_lengths and good_dt
    exact = ("plain", "fortran", "strided", "reversed", "misaligned", "read-only", "big-endian", "object", "list")
    for name in ("transmat", "startprob"):
        given[name] = lay_out(random, arrays[name], exact)
    if random.random() < 0.25:
        name = ("log_ratios", "transmat", "startprob")[random.integers(3)]
        given[name] = odd(random, arrays[name])
        is_plain = False
    name = NAMES[random.integers(len(NAMES))]
    options = {"lengths": lengths, "n_threads": int(random.choice([1, 2, 5]))}
    if name != "expected_transitions":
        options["dt"] = dt
    lag = (int(random.choice([0, 1, 5, 2**40])),) if name == "fixed_lag" else ()
    before = {key: bytes_of(value) for key, value in (given | {"dt": dt, "lengths": lengths}).items()}
    try:
        with np.errstate(all="ignore"):
            answer = (
                getattr(recursion, name)(**given, **options)
                if not lag
                else recursion.fixed_lag(*given.values(), *lag, **options)
            )
    except ImpossibleDataError as error:
        place, first = (error.sequence, error.frame, error.row), first_impossible(**problem(given, options))
        assert place == first, f"impossible at {place}, but the first impossible frame is {first}"
        outcome = "impossible"
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 10, repr(error)
        assert not is_plain or is_reason(str(error), given["log_ratios"]), f"refused what is right: {error}"
        outcome = "refused"
    else:
        first = first_impossible(**problem(given, options))
        assert first is None, f"an answer to impossible data: {first}"
        outcome = check(name, answer, given, options.get("dt"), lengths, lag)
    after = {key: bytes_of(value) for key, value in (given | {"dt": dt, "lengths": lengths}).items()}
    assert before == after, "an input was changed"
    return outcome


def problem(given, options):
    """What was given, as plain arrays."""
    arrays = {name: np.array(values, dtype=np.float64) for name, values in given.items()}
    return arrays | {name: options.get(name) for name in ("lengths", "dt")}


def is_reason(words, log_ratios):
    """Whether a refusal of evidence that is otherwise right names what is there: layouts may bring it about."""
    values = np.array(log_ratios, dtype=np.float64)
    if "but not in the whole row" in words:
        missing = np.isnan(values)
        return bool((missing.any(axis=1) & ~missing.all(axis=1)).any())
    if "below that of another state" in words:
        finite = np.isfinite(values)
        largest = np.where(finite, values, -np.inf).max(axis=1)
        least = np.where(finite, values, np.inf).min(axis=1)
        return bool((largest - least > recursion.LARGEST_DIFFERENCE).any())
    return False


def check(name, answer, given, dt, lengths, lag):
    """The answer is a distribution, and that of the reference where the reference can say."""
    log_ratios = np.array(given["log_ratios"], dtype=np.float64)
    transmat, startprob = np.array(given["transmat"], dtype=np.float64), np.array(given["startprob"], dtype=np.float64)
    n_frames, n_states = log_ratios.shape
    if name == "viterbi":
        assert answer.shape == (n_frames,) and answer.min() >= 0 and answer.max() < n_states
    elif name == "expected_transitions":
        parts = 1 if lengths is None else len(lengths)
        assert answer.shape == (n_states, n_states) and (answer >= 0).all()
        assert abs(answer.sum() - (n_frames - parts)) < 1e-6 * n_frames
    else:
        assert answer.shape == (n_frames, n_states) and np.isfinite(answer).all()
        assert (answer >= 0).all() and np.abs(answer.sum(axis=1) - 1).max() < 1e-9
    finite = log_ratios[np.isfinite(log_ratios)]
    small = n_frames <= 10 and n_states <= 5 and (finite.size == 0 or np.abs(finite).max() < 1e3)
    tiny = ((transmat > 0) & (transmat < 1e-290)).any() or ((startprob > 0) & (startprob < 1e-290)).any()
    if not small or tiny or (dt is not None and np.max(dt) > 10):
        return "plausible"
    begin, parts, counts = 0, [], 0.0
    steps = np.ones(n_frames, dtype=np.int64) if dt is None else np.asarray(dt).astype(np.int64)
    for length in [n_frames] if lengths is None else lengths:
        rows = slice(begin, begin + length)
        begin += length
        chain = transmat, startprob
        with np.errstate(all="ignore"):
            if name == "viterbi":
                ours, best = expected.path_scores(answer[rows], log_ratios[rows], *chain, steps[rows])
                assert ours > best - 1e-9 * (1 + abs(best)), f"a path of {ours} is not the best one, of {best}"
            elif name == "expected_transitions":
                counts = counts + reference.expected_transitions(log_ratios[rows], *chain)
            else:
                parts.append(expected.posteriors(name, log_ratios[rows], *chain, steps[rows], *lag))
    if name == "expected_transitions":
        np.testing.assert_allclose(answer, counts, atol=1e-9)
    elif name != "viterbi":
        np.testing.assert_allclose(answer, np.concatenate(parts), atol=1e-9)
    return "right"
