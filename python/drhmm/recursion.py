"""Inference on evidence: filtering, smoothing, paths and the likelihood.

Evidence is an array of log ratios, shape (T, S). Row t is log w_i(y_t), the log density of the observation in state i,
up to any constant per row. Log-likelihoods work, and so do log posteriors minus log priors. ``-inf`` excludes a state,
``+inf`` excludes all others, a row of NaN is a missing observation. `transmat[i, j]` is p(x_t = j | x_{t-1} = i),
`startprob[i]` is p(x_1 = i); exact zeros are allowed and stay exact zeros.

If rows are not evenly spaced, `dt` is the number of steps of the chain before each row: k if k - 1 rows are missing.
The first entry of a sequence counts from its start, where it is 1. A gap of any length costs one product for each
binary digit of dt.

All functions take the arguments of `filter` and raise the same errors.

Examples
--------
>>> import numpy as np
>>> from drhmm import recursion
>>> problem = np.log([[4.0, 1.0], [1.0, 4.0], [4.0, 1.0]]), [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]
>>> recursion.filter(*problem).round(3)
array([[0.8  , 0.2  ],
       [0.416, 0.584],
       [0.753, 0.247]])
>>> recursion.smooth(*problem)[1].round(3), recursion.fixed_lag(*problem, lag=1)[0].round(3)
(array([0.669, 0.331]), array([0.584, 0.416]))
>>> recursion.viterbi(*problem)
array([0, 0, 0])
>>> best = recursion.viterbi_log_probability(*problem) - recursion.log_likelihood(*problem)
>>> np.exp(best).round(3)  # posterior probability of that path
array([0.634])
>>> paths = recursion.sample_paths(*problem, 10_000, random_state=0)
>>> bool(np.allclose(paths.mean(axis=0), recursion.smooth(*problem)[:, 1], atol=0.02))
True
>>> recursion.transition_posteriors(*problem)[0].round(3)
array([[0.651, 0.102],
       [0.018, 0.229]])
>>> recursion.expected_transitions(*problem).round(3)
array([[1.303, 0.12 ],
       [0.12 , 0.458]])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import _core
from .chain.durations import Durations
from .chain.transitions import stationary_distribution
from .chain.unknown_state import Novelty, none_known
from .data.checks import (
    Array,
    Cores,
    Integers,
    Lengths,
    Steps,
    as_lengths,
    as_matrix,
    as_startprob,
    as_steps,
    as_transmat,
    check_integer,
    thread_count,
)
from .data.sequences import Data, Rows
from .exceptions import ImpossibleDataError

#: The largest difference between finite log ratios of a frame beside forbidden transitions.
LARGEST_DIFFERENCE = 2.0**36

#: Posteriors have a relative error of 1e-11 down to here; smaller ones are computed again on logarithms.
SMALLEST_EXACT = 1e-100

#: Smaller posteriors need not be exact.
NEGLIGIBLE = 1e-30

__all__ = [
    "expected_transitions",
    "filter",
    "fixed_lag",
    "log_likelihood",
    "sample_paths",
    "smooth",
    "stationary_distribution",
    "transition_posteriors",
    "viterbi",
    "viterbi_log_probability",
]


def native_chain(
    transmat: Array,
    startprob: Array,
    stages: Durations | None = None,
    novelty: Novelty | None = None,
    prior: Array | None = None,
) -> _core.Chain:
    """Build the chain of a model; the unknown returns to known states by `prior`."""
    if novelty is None or prior is None:
        if stages is None:
            return _core.Chain(transmat, startprob)
        return _core.Chain(transmat, startprob, stages.sizes, stages.stay, stages.skip)
    start = novelty.startprob(startprob)
    if stages is None:
        return _core.Chain(novelty.transmat(transmat, prior), start)
    back = np.repeat(prior / prior.sum() / novelty.duration / stages.sizes, stages.sizes)
    return _core.Chain(
        transmat, start, stages.sizes, stages.stay, stages.skip, novelty.rate, 1 - 1 / novelty.duration, back
    )


def _problem(
    log_ratios: Any, transmat: Any, startprob: Any, lengths: Any, dt: Any, n_threads: Cores
) -> tuple[_core.Chain, Array, Lengths, Steps | None, int]:
    """Check the arguments of `filter`."""
    evidence = as_matrix(log_ratios, "log_ratios", ". Join several sequences in one array and give their lengths")
    n_frames, n_states = evidence.shape
    if n_frames == 0 or n_states == 0:
        raise ValueError(f"log_ratios is empty: shape {evidence.shape}")
    chain = _core.Chain(as_transmat(transmat, n_states), as_startprob(startprob, n_states))
    return chain, evidence, as_lengths(lengths, n_frames), as_steps(dt, n_frames), thread_count(n_threads)


def _raise(report: tuple[int, int, int, int], lengths: Lengths) -> None:
    """Raise the exception of a failed outcome of the core."""
    outcome, sequence, frame, column = report
    if outcome != 0:
        raise_failure(outcome, sequence, frame, sum(lengths[:sequence]) + frame, column)


def run(
    name: str, chain: _core.Chain, evidence: Array, lengths: Lengths, dt: Steps | None, n_threads: int, *lag: int
) -> npt.NDArray[Any]:
    """Run a recursion of the core on checked arguments."""
    report, result, *_ = getattr(_core, name)(chain, evidence, lengths, *lag, n_threads, dt)
    _raise(report, lengths)
    found: npt.NDArray[Any] = result
    return found


def raise_failure(outcome: int, sequence: int, frame: int, row: int, column: int) -> NoReturn:
    """Raise the exception of a failed outcome of the core."""
    name = _core.OUTCOMES[outcome]
    if name == "impossible":
        raise ImpossibleDataError(sequence, frame, row)
    if name == "partial_nan":
        raise ValueError(f"log_ratios has NaN at row {row}, column {column}, but not in the whole row")
    if name == "too_far":
        raise ValueError(
            f"log_ratios at row {row}, column {column} is finite, but more than {LARGEST_DIFFERENCE:.2g} below that of "
            "another state; use -inf to exclude a state"
        )
    if name == "none_known":
        raise ValueError(none_known(row))
    raise AssertionError(f"the native core reported {name} at row {row}")


def filter(  # noqa: A001
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> Array:
    """Posterior given the past and the present: p(x_t = i | y_1..y_t), (T, S).

    Parameters
    ----------
    log_ratios : array of shape (T, S)
        Evidence, see the module.
    transmat, startprob : array of shape (S, S), array of shape (S,)
        Transition probabilities, whose rows sum to 1, and probabilities of the first state.
    lengths : sequence of int, optional
        Lengths of the sequences that `log_ratios` holds one after the other; one sequence by default.
    dt : array of int, shape (T,), optional
        Steps of the chain before each row, see the module; all 1 by default.
    n_threads : int, optional
        Threads over sequences; all cores by default.

    Raises
    ------
    ImpossibleDataError
        If the evidence of a time step excludes every state that is possible there.
    """
    return run("filter", *_problem(log_ratios, transmat, startprob, lengths, dt, n_threads))


def smooth(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> Array:
    """Posterior of each state given the whole sequence: p(x_t = i | y_1..y_T), (T, S)."""
    return run("smooth", *_problem(log_ratios, transmat, startprob, lengths, dt, n_threads))


def fixed_lag(
    log_ratios: Data,
    transmat: Data,
    startprob: Data,
    lag: int,
    *,
    lengths: Rows = None,
    dt: Rows = None,
    n_threads: Cores = None,
) -> Array:
    """Posterior given `lag` more time steps: p(x_t = i | y_1..y_min(t+lag, T)).

    ``lag=0`` is filtering; a lag of T - 1 or more is smoothing. The lag counts rows, whatever their `dt`. The work per
    row grows with it.
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt, n_threads)
    return run("fixed_lag", *problem, min(check_integer(lag, "lag", low=0), len(problem[1])))


def viterbi(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> npt.NDArray[np.int64]:
    """Most probable path of each sequence: indices of states, shape (T,).

    Of equally probable predecessors, the lower index wins. With `dt`, the most probable states at the rows, summed over
    the states in between.
    """
    return run("viterbi", *_problem(log_ratios, transmat, startprob, lengths, dt, n_threads))


def viterbi_log_probability(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> Array:
    """Log probability of the best path with its evidence, shape (sequences,).

    max over paths of log p(x_1..x_T) + sum_t log w_{x_t}(y_t), for the evidence as given. Minus `log_likelihood` it is
    the log posterior probability of the path.
    """
    chain, evidence, parts, steps, threads = _problem(log_ratios, transmat, startprob, lengths, dt, n_threads)
    report, _, log_probabilities = _core.viterbi(chain, evidence, parts, threads, steps)
    _raise(report, parts)
    return log_probabilities


def log_likelihood(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> Array:
    """Log likelihood of each sequence, shape (sequences,).

    log sum over paths of p(x_1..x_T) prod_t w_{x_t}(y_t), for the evidence as given. For log-likelihoods, other
    packages call it score or marginal log likelihood. With ratios to the density of all time steps, it is the gain over
    independent time steps. A missing time step adds 0.
    """
    return run("log_likelihood", *_problem(log_ratios, transmat, startprob, lengths, dt, n_threads))


def _step_matrices(transmat: Array, steps: Steps | None) -> tuple[Array, npt.NDArray[np.int64] | None]:
    """A^k for each occurring number of steps k, (K, S, S), and its index for each row."""
    if steps is None:
        return transmat[None], None
    kinds, which = np.unique(steps, return_inverse=True)
    powers = np.stack([np.linalg.matrix_power(transmat, int(k)) for k in kinds])
    return powers, np.ascontiguousarray(which.reshape(-1), dtype=np.int64)


def sample_paths(
    log_ratios: Data,
    transmat: Data,
    startprob: Data,
    n_paths: int = 1,
    *,
    lengths: Rows = None,
    dt: Rows = None,
    random_state: int | np.random.Generator | None = None,
    n_threads: Cores = None,
) -> npt.NDArray[np.int64]:
    """Draw whole paths from their posterior.

    `smooth` gives probabilities at single time steps. Paths answer questions about several: the number of changes, the
    longest stay, the first time of a state. They are drawn backwards from filtered posteriors, with the seed or
    generator `random_state`. Returns the indices of states, shape (n_paths, T); with `dt`, at the rows.
    """
    chain, evidence, parts, steps, threads = _problem(log_ratios, transmat, startprob, lengths, dt, n_threads)
    n = check_integer(n_paths, "n_paths", low=1)
    uniforms = np.random.default_rng(random_state).random((n, len(evidence)))
    filtered = run("filter", chain, evidence, parts, steps, threads)
    matrix = as_transmat(transmat, evidence.shape[1])
    powers, which = _step_matrices(matrix, steps)
    transposed = np.ascontiguousarray(powers.transpose(0, 2, 1)).reshape(-1, evidence.shape[1])
    paths = _core.draw_paths(filtered, transposed, which, parts, uniforms, threads)
    if paths is not None:
        return paths
    from .reference import recursion as reference

    pieces = [
        reference.draw_paths(evidence[one], powers, start, uniforms[:, one], own)
        for one, start, own in _each_sequence(parts, matrix, startprob, steps, which)
    ]
    return np.concatenate(pieces, axis=1)


def _each_sequence(
    lengths: Lengths, transmat: Array, startprob: npt.ArrayLike, steps: Steps | None, which: Integers | None
) -> Iterator[tuple[slice, Array, npt.NDArray[np.int64] | None]]:
    """Iterate over the rows, start probabilities and step matrices of each sequence."""
    start, begin = as_startprob(startprob, len(transmat)), 0
    for length in lengths:
        rows = slice(begin, begin + length)
        if which is None or steps is None:
            yield rows, start, None
        else:
            yield rows, start @ np.linalg.matrix_power(transmat, int(steps[begin]) - 1), which[rows]
        begin += length


def transition_posteriors(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, dt: Rows = None, n_threads: Cores = None
) -> Array:
    """p(x_t = i, x_{t+1} = j | y_1..y_T), shape (T - 1, S, S): times of changes.

    Exact zeros between the last time step of a sequence and the first of the next. `expected_transitions` gives the sum
    without these (T - 1) S^2 numbers.
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt, n_threads)
    _, evidence, parts, steps, _ = problem
    n_states, filtered, smoothed = evidence.shape[1], run("filter", *problem), run("smooth", *problem)
    matrix = as_transmat(transmat, n_states)
    powers, which = _step_matrices(matrix, steps)
    # p(i, j) = f_t(i) A_ij s_{t+1}(j) / sum_k f_t(k) A_kj
    joint = np.empty((len(evidence) - 1, n_states, n_states))
    predicted = np.empty((len(evidence) - 1, n_states))
    for k, power in enumerate(powers):
        rows = slice(None) if which is None else which[1:] == k
        predicted[rows] = filtered[:-1][rows] @ power
        joint[rows] = filtered[:-1][rows][:, :, None] * power
    small = predicted < SMALLEST_EXACT
    joint *= np.where(small, 0.0, smoothed[1:] / np.where(small, 1.0, predicted))[:, None, :]
    too_little: npt.NDArray[np.bool_] = np.any(small & (smoothed[1:] > NEGLIGIBLE), axis=1)
    borders = np.cumsum(parts)[:-1] - 1
    joint[borders], too_little[borders] = 0.0, False
    if too_little.any():
        from .reference import recursion as reference

        for one, start, own in _each_sequence(parts, matrix, startprob, steps, which):
            if too_little[one.start : one.stop - 1].any():
                joint[one.start : one.stop - 1] = reference.transition_posteriors(evidence[one], powers, start, own)
    return joint


def expected_transitions(
    log_ratios: Data, transmat: Data, startprob: Data, *, lengths: Rows = None, n_threads: Cores = None
) -> Array:
    """sum_t p(x_t = i, x_{t+1} = j | y_1..y_T), (S, S), within sequences."""
    chain, evidence, parts, _, threads = _problem(log_ratios, transmat, startprob, lengths, None, n_threads)
    return expect(chain, evidence, parts, threads)[1]


def expect(chain: _core.Chain, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array, float]:
    """Smoothed posteriors, expected transitions and log likelihood: the E step."""
    report, posteriors, counts, log_likelihoods = _core.expectation(chain, evidence, lengths, n_threads)
    _raise(report, lengths)
    return posteriors, counts, float(log_likelihoods.sum())
