"""Durations in numpy: expanded stages, and enumeration of segmentations.

State i has ``sizes[i]`` stages with the same evidence. Stage u lasts with ``stay[u]``, else the next one follows. The
last stage leads to state j with B_ij = A_ij / sum_{l != i} A_il. An entry into state j begins at its first stage, or
with ``skip[j]`` at its last. A sequence begins at any stage of its first state.
A state for the unknown is the last one, has one stage, and interrupts every stage with ``rate``.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from .features import Array
from .recursion import log, prepare

Sizes = npt.NDArray[np.int64]
#: Prior, rate and duration of the state for the unknown, if there is one.
Unseen = tuple[Array, float, float] | None

#: Probability of longer stays below which the hazard is taken to be constant.
RARE = 1e-12


def owners(sizes: Sizes) -> Sizes:
    """The state of each stage, shape (U,)."""
    return np.repeat(np.arange(len(sizes)), sizes)


def leaving(transmat: Array) -> Array:
    """B_ij, the transitions out of a state, (S, S); zeros if it is never left."""
    others = np.where(np.eye(len(transmat), dtype=bool), 0.0, transmat)
    totals = others.sum(axis=1, keepdims=True)
    shares: Array = np.divide(others, totals, out=np.zeros_like(others), where=totals > 0)
    return shares


def expand(transmat: Array, startprob: Array, sizes: Sizes, stay: Array, skip: Array) -> tuple[Array, Array]:
    """Transition and start probabilities of stages, shapes (U, U) and (U,)."""
    ends = np.cumsum(sizes) - 1
    begins = ends - sizes + 1
    expanded = np.diag(stay)
    inside = np.setdiff1d(np.arange(len(stay)), ends)
    expanded[inside, inside + 1] = 1 - stay[inside]
    # The row of a state of one stage is that of the transition matrix: 1 - stay would lose digits of rare transitions.
    others = np.where(np.eye(len(sizes), dtype=bool), 0.0, transmat)
    left = np.where(sizes[:, None] == 1, others, (1 - stay[ends])[:, None] * leaving(transmat))
    expanded[np.ix_(ends, begins)] += left * (1 - skip)
    expanded[np.ix_(ends, ends)] += left * skip
    return expanded, np.repeat(startprob / sizes, sizes)


def with_unknown(
    expanded: Array, start: Array, sizes: Sizes, prior: Array, rate: float, duration: float
) -> tuple[Array, Array]:
    """Add a stage for the unknown at the end, shapes (U + 1, U + 1) and (U + 1,)."""
    n_stages = len(start)
    larger = np.empty((n_stages + 1, n_stages + 1))
    larger[:-1, :-1] = (1 - rate) * expanded
    larger[:-1, -1] = rate
    larger[-1, :-1] = np.repeat(prior / prior.sum() / sizes, sizes) / duration
    larger[-1, -1] = 1 - 1 / duration
    return larger, np.append((1 - rate) * start, rate)


def collapse(of_stages: Array, sizes: Sizes) -> Array:
    """Posteriors of states (T, S) from those of stages (T, U)."""
    sums: Array = np.add.reduceat(of_stages, np.cumsum(sizes) - sizes, axis=1)
    return sums


def collapse_counts(of_stages: Array, sizes: Sizes) -> Array:
    """Expected transitions of states (S, S) from those of stages, inner ones as stays."""
    return collapse(collapse(of_stages, sizes).T, sizes).T


def _entries(sizes: Sizes, skip: Array) -> list[Array]:
    """Probability that an entry into each state begins at each of its stages."""
    rows = [np.zeros(size) for size in sizes]
    for row, share in zip(rows, skip, strict=True):
        row[0] += 1 - share
        row[-1] += share
    return rows


def stay_probabilities(stay: Array, entry: Array, length: int) -> tuple[float, float]:
    """Probability of a stay of `length` frames, and of a longer or equal one."""
    at = entry
    for _ in range(length - 1):
        at = at * stay + np.append(0.0, (at * (1 - stay))[:-1])
    return float(at[-1] * (1 - stay[-1])), float(at.sum())


def segmentation_probability(
    path: Sizes, transmat: Array, startprob: Array, sizes: Sizes, stay: Array, skip: Array, unknown: Unseen = None
) -> float:
    """Probability of a path of states; `unknown` is (prior, rate, duration)."""
    n_states, others, entered = len(sizes), leaving(transmat), _entries(sizes, skip)
    prior, rate, duration = (startprob, 0.0, 1.0) if unknown is None else unknown
    stages = np.split(stay, np.cumsum(sizes)[:-1])
    runs = [(state, len(list(group))) for state, group in itertools.groupby(path.tolist())]
    first = runs[0][0]
    total = rate if first == n_states else (1 - rate) * startprob[first]
    for k, (state, length) in enumerate(runs):
        following = runs[k + 1][0] if k + 1 < len(runs) else None
        if state == n_states:
            total *= (1 - 1 / duration) ** (length - 1)
            if following is not None:
                total *= prior[following] / prior.sum() / duration
            continue
        # A stay whose start was not observed may be at any of its stages.
        unseen = k == 0 or runs[k - 1][0] == n_states
        entry = np.full(sizes[state], 1 / sizes[state]) if unseen else entered[state]
        exactly, at_least = stay_probabilities(stages[state], entry, length)
        total *= (1 - rate) ** (length - 1)
        if following is None:
            total *= at_least
        elif following == n_states:
            total *= at_least * rate
        else:
            total *= exactly * (1 - rate) * others[state, following]
    return float(total)


def enumerate_segmentations(
    log_ratios: Array, transmat: Array, startprob: Array, sizes: Sizes, stay: Array, skip: Array, unknown: Unseen = None
) -> tuple[Array, Array, float, Sizes]:
    """Posteriors, transitions, log likelihood and best path from all paths of states."""
    evidence = prepare(log_ratios)
    n, s = evidence.shape
    posteriors, counts, likelihood = np.zeros((n, s)), np.zeros((s, s)), 0.0
    pivots = evidence.max(axis=1)
    best, best_path = -1.0, np.zeros(n, dtype=np.int64)
    for states in itertools.product(range(s), repeat=n):
        path = np.array(states)
        weight = segmentation_probability(path, transmat, startprob, sizes, stay, skip, unknown)
        weight *= float(np.exp(evidence[np.arange(n), path] - pivots).prod())
        posteriors[np.arange(n), path] += weight
        np.add.at(counts, (path[:-1], path[1:]), weight)
        likelihood += weight
        if weight > best:
            best, best_path = weight, path
    return posteriors / likelihood, counts / likelihood, float(np.log(likelihood) + pivots.sum()), best_path


def hazards(stay: Array, entry: Array, longest: int) -> Array:
    """Probability that a stay of age 1, 2, ... ends; constant from the last age on."""
    at, ends = entry, []
    for _ in range(longest):
        ends.append(at[-1] * (1 - stay[-1]) / at.sum())
        moved = at * stay + np.append(0.0, (at * (1 - stay))[:-1])
        if len(stay) == 1 or moved.sum() < RARE:
            break
        at = moved
    return np.array(ends)


def viterbi(
    log_ratios: Array, transmat: Array, startprob: Array, sizes: Sizes, stay: Array, skip: Array, unknown: Unseen = None
) -> Sizes:
    """Most probable path of states, shape (T,): the best segmentation.

    A single path of stages is far less probable than its segmentation, so the recursion runs over states and the ages
    of their stays. A stay that began before the sequence has its own ages.
    """
    evidence = prepare(log_ratios)
    n, s = evidence.shape
    known = len(sizes)
    prior, rate, duration = (startprob, 0.0, 1.0) if unknown is None else unknown
    # Rows of ages: stays that were entered, stays that were not, and the unknown, which has one age.
    rows, entered = [], _entries(sizes, skip)
    for state, stages in enumerate(np.split(stay, np.cumsum(sizes)[:-1])):
        uniform = np.full(sizes[state], 1 / sizes[state])
        rows += [hazards(stages, entry, n) for entry in (entered[state], uniform)]
        if sizes[state] == 1:
            rows[-2:] = [np.array([np.delete(transmat[state], state).sum()])] * 2
    rows += [np.array([1 / duration])] * (s - known)
    state_of = np.array([*np.repeat(np.arange(known), 2), *[known] * (s - known)])
    begins = np.cumsum([0, *(len(row) for row in rows)])
    ages = np.repeat(state_of, np.diff(begins))
    interrupted = np.where(ages == known, 0.0, rate)
    leave = log((1 - interrupted) * np.concatenate(rows))
    go_on = log((1 - interrupted) * (1 - np.concatenate(rows)))
    interruption = log(interrupted)
    # Transitions between rows of ages at the end of a stay, or from the unknown.
    target = np.zeros((len(rows), len(rows)))
    target[: 2 * known : 2, : 2 * known : 2] = target[1 : 2 * known : 2, : 2 * known : 2] = leaving(transmat)
    target[2 * known :, 1 : 2 * known : 2] = prior / prior.sum()
    target, first = log(target), np.zeros(len(rows))
    first[1 : 2 * known : 2], first[2 * known :] = (1 - rate) * startprob, rate

    score, since = np.full(len(ages), -np.inf), np.zeros(len(ages), dtype=np.int64)
    score[begins[:-1]] = log(first)
    from_row, from_time = np.zeros((n, len(rows)), dtype=np.int64), np.zeros((n, len(rows)), dtype=np.int64)
    for t in range(n):
        if t > 0:
            ended = score + leave
            last = [begin + int(ended[begin:end].argmax()) for begin, end in itertools.pairwise(begins)]
            into = ended[last][:, None] + target
            origin = into.argmax(axis=0)
            entry, from_time[t] = into.max(axis=0), since[last][origin]
            if s > known:
                stopped = int((score + interruption).argmax())
                entry[-1], from_time[t, -1] = score[stopped] + interruption[stopped], since[stopped]
                origin[-1] = np.searchsorted(begins, stopped, side="right") - 1
            from_row[t] = origin
            older, kept = score + go_on, since
            score, since = np.full(len(ages), -np.inf), np.full(len(ages), t)
            for row, (begin, end) in enumerate(itertools.pairwise(begins)):
                score[begin + 1 : end], since[begin + 1 : end] = older[begin : end - 1], kept[begin : end - 1]
                if older[end - 1] > score[end - 1]:
                    score[end - 1], since[end - 1] = older[end - 1], kept[end - 1]
                if entry[row] > score[begin]:
                    score[begin], since[begin] = entry[row], t
        score = score + evidence[t, ages]
        pivot = score.max()
        if np.isneginf(pivot):
            raise ValueError(f"impossible data at time step {t}")
        score = score - pivot
    path = np.empty(n, dtype=np.int64)
    place, end = int(score.argmax()), n
    row, begin = int(np.searchsorted(begins, place, side="right") - 1), int(since[place])
    while end > 0:
        path[begin:end] = state_of[row]
        row, begin, end = int(from_row[begin, row]), int(from_time[begin, row]), begin
    return path
