"""Inference on evidence: filtering, smoothing, fixed-lag smoothing, the best path, expected transitions.

Evidence is an array of log ratios, shape (T, S): row t is log w_i(y_t), the log density of the frame in state i, up
to any constant per row. Log-likelihoods work, and so do log posteriors minus log priors. ``-inf`` excludes a state,
``+inf`` excludes all others, a row of NaN is a missing frame. `transmat[i, j]` is p(x_t = j | x_{t-1} = i),
`startprob[i]` is p(x_1 = i); exact zeros are legal and stay exact zeros.

Where frames are not evenly spaced, `dt` says how many steps of the chain lead to each: 1 where nothing is missing, k
where k - 1 steps have no frame. The first entry of a sequence counts from its start, where it is 1. A gap of any length
costs one product for each binary digit of dt.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import _core
from ._validation import (
    Array,
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
from .exceptions import ImpossibleDataError
from .novelty import none_known

#: Finite log ratios of one frame may lie this far apart where transitions are forbidden, and anywhere elsewhere.
LARGEST_DIFFERENCE = 2.0**36

__all__ = ["expected_transitions", "filter", "fixed_lag", "smooth", "viterbi"]


def _problem(
    log_ratios: Any, transmat: Any, startprob: Any, lengths: Any, dt: Any = None
) -> tuple[_core.Chain, Array, Lengths, Steps | None]:
    evidence = as_matrix(
        log_ratios, "log_ratios", ". Sequences follow one another in one array, and lengths= says where they end"
    )
    n_frames, n_states = evidence.shape
    if n_frames == 0 or n_states == 0:
        raise ValueError(f"log_ratios is empty: shape {evidence.shape}")
    chain = _core.Chain(as_transmat(transmat, n_states), as_startprob(startprob, n_states))
    return chain, evidence, as_lengths(lengths, n_frames), as_steps(dt, n_frames)


def _raise(report: tuple[int, int, int, int], lengths: Lengths) -> None:
    """Turn the core's report into an exception, if it is one."""
    outcome, sequence, frame, column = report
    if outcome != 0:
        raise_failure(outcome, sequence, frame, sum(lengths[:sequence]) + frame, column)


def run(
    name: str,
    chain: _core.Chain,
    evidence: Array,
    lengths: Lengths,
    dt: Steps | None,
    n_threads: int,
    *lag: int,
) -> Any:
    """A recursion of the core on arguments that have been checked; what the public functions and models call."""
    report, result, *_ = getattr(_core, name)(chain, evidence, lengths, *lag, n_threads, dt)
    _raise(report, lengths)
    return result


def raise_failure(outcome: int, sequence: int, frame: int, row: int, column: int) -> NoReturn:
    """The exception of an outcome of the native core that is not ok."""
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
    log_ratios: Any,
    transmat: Any,
    startprob: Any,
    *,
    lengths: Any = None,
    dt: Any = None,
    n_threads: int | None = None,
) -> Array:
    """Posterior of each state given the past and the present.

    Parameters
    ----------
    log_ratios : array of shape (T, S)
        Evidence, see the module.
    transmat : array of shape (S, S)
        Transition probabilities; rows sum to 1.
    startprob : array of shape (S,)
        Probabilities of the first state.
    lengths : sequence of int, optional
        Lengths of the sequences that `log_ratios` holds one after the other; one sequence by default.
    dt : array of int, shape (T,), optional
        Steps of the chain that lead to each frame, see the module; all 1 by default.
    n_threads : int, optional
        Threads over sequences; all cores by default.

    Returns
    -------
    ndarray of shape (T, S)
        p(x_t = i | y_1..y_t); rows sum to 1.

    Raises
    ------
    ImpossibleDataError
        If the evidence of a frame excludes every state that is possible there.

    Examples
    --------
    >>> import numpy as np
    >>> from drhmm import recursion
    >>> A = [[0.9, 0.1], [0.1, 0.9]]
    >>> recursion.filter(np.log([[4.0, 1.0], [1.0, 4.0]]), A, [0.5, 0.5]).round(3)
    array([[0.8  , 0.2  ],
           [0.416, 0.584]])
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt)
    posteriors: Array = run("filter", *problem, thread_count(n_threads))
    return posteriors


def smooth(
    log_ratios: Any,
    transmat: Any,
    startprob: Any,
    *,
    lengths: Any = None,
    dt: Any = None,
    n_threads: int | None = None,
) -> Array:
    """Posterior of each state given the whole sequence.

    Parameters and errors as in `filter`.

    Returns
    -------
    ndarray of shape (T, S)
        p(x_t = i | y_1..y_T); rows sum to 1.
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt)
    posteriors: Array = run("smooth", *problem, thread_count(n_threads))
    return posteriors


def fixed_lag(
    log_ratios: Any,
    transmat: Any,
    startprob: Any,
    lag: int,
    *,
    lengths: Any = None,
    dt: Any = None,
    n_threads: int | None = None,
) -> Array:
    """Posterior of each state given the past, the present and the next `lag` frames.

    Parameters and errors as in `filter`. ``lag=0`` is filtering; a lag of T - 1 or more is smoothing. The lag
    counts frames, whatever `dt` is between them; the work per frame grows with it.

    Returns
    -------
    ndarray of shape (T, S)
        p(x_t = i | y_1..y_min(t+lag, T)); rows sum to 1.
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt)
    lag = min(check_integer(lag, "lag", low=0), len(problem[1]))
    posteriors: Array = run("fixed_lag", *problem, thread_count(n_threads), lag)
    return posteriors


def viterbi(
    log_ratios: Any,
    transmat: Any,
    startprob: Any,
    *,
    lengths: Any = None,
    dt: Any = None,
    n_threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Most probable path of each sequence.

    Parameters and errors as in `filter`.

    Returns
    -------
    ndarray of shape (T,)
        State indices; of predecessors that are equally probable to the last digit, the lower index wins. With `dt`,
        the most probable states at the frames, whatever happened between them.
    """
    problem = _problem(log_ratios, transmat, startprob, lengths, dt)
    path: npt.NDArray[np.int64] = run("viterbi", *problem, thread_count(n_threads))
    return path


def expected_transitions(
    log_ratios: Any, transmat: Any, startprob: Any, *, lengths: Any = None, n_threads: int | None = None
) -> Array:
    """Expected number of transitions between states, summed over all sequences.

    Parameters and errors as in `filter`.

    Returns
    -------
    ndarray of shape (S, S)
        sum_t p(x_t = i, x_{t+1} = j | y_1..y_T); nothing is counted across sequences.
    """
    return expectation(log_ratios, transmat, startprob, lengths=lengths, n_threads=n_threads)[1]


def expectation(
    log_ratios: Any, transmat: Any, startprob: Any, *, lengths: Any = None, n_threads: int | None = None
) -> tuple[Array, Array, float]:
    """Smoothed posteriors, expected transitions and the log likelihood in one pass: the E step of learning."""
    chain, evidence, parts, _ = _problem(log_ratios, transmat, startprob, lengths)
    return expect(chain, evidence, parts, thread_count(n_threads))


def expect(chain: _core.Chain, evidence: Array, lengths: Lengths, n_threads: int) -> tuple[Array, Array, float]:
    """The same on arguments that have been checked."""
    report, posteriors, counts, log_likelihoods = _core.expectation(chain, evidence, lengths, n_threads)
    _raise(report, lengths)
    return posteriors, counts, float(log_likelihoods.sum())
