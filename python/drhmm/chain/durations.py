"""Durations: a state is a sequence of stages with the same evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths, check_integer, read_only
from ..data.labels import Codes

Sizes = npt.NDArray[np.int64]

#: Probability of entering a state at its last stage, so that short stays remain possible.
SKIP = 0.05

#: The most stages of a state, and so the longest minimum stay.
MOST_STAGES = 10_000

#: Candidate numbers of stages.
SHAPES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)

#: Shapes must be below this share of the mean stay.
LARGEST_SHARE = 0.9

#: Required gain in log likelihood per doubling of the shape.
PULL = 2.0


@dataclass(frozen=True, eq=False)
class Durations:
    """The stages of all states, which give the distributions of stays.

    A stay goes through the stages of its state in order and leaves it from the last one.

    Attributes
    ----------
    sizes : ndarray of int, shape (S,)
        Number of stages of each state.
    stay : ndarray of shape (sum of sizes,)
        Probability that a stage lasts for one more step; otherwise the next stage follows.
    skip : ndarray of shape (S,)
        Probability that an entry into a state goes to its last stage instead of its first.

    Examples
    --------
    >>> import numpy as np
    >>> from drhmm import Durations
    >>> durations = Durations.geometric(np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> durations.mean.round(6)
    array([10.,  5.])
    >>> durations.probabilities(3).round(3)
    array([[0.1  , 0.09 , 0.081],
           [0.2  , 0.16 , 0.128]])
    """

    sizes: Sizes
    stay: Array
    skip: Array

    def __post_init__(self) -> None:
        sizes = np.array(self.sizes, dtype=np.int64)
        sizes.setflags(write=False)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "stay", read_only(self.stay))
        object.__setattr__(self, "skip", read_only(self.skip))
        if sizes.ndim != 1 or not ((sizes >= 1) & (sizes <= MOST_STAGES)).all():
            raise ValueError(f"sizes must be 1 to {MOST_STAGES} stages of each state, got {sizes.tolist()}")
        if self.stay.shape != (sizes.sum(),) or self.skip.shape != sizes.shape:
            raise ValueError(
                f"stay must have shape {(int(sizes.sum()),)} and skip {sizes.shape}, "
                f"got {self.stay.shape} and {self.skip.shape}"
            )
        # Only the single stage of a state that is never left may last forever.
        longest = np.where(np.repeat(sizes, sizes) == 1, 1.0, np.nextafter(1.0, 0.0))
        for name, values, high in (("stay", self.stay, longest), ("skip", self.skip, np.ones(len(sizes)))):
            wrong = np.flatnonzero(~((values >= 0) & (values <= high)))
            if len(wrong) > 0:
                raise ValueError(f"{name} has {values[wrong[0]]} at place {wrong[0]}: not a probability of this stage")

    def __reduce__(self) -> tuple[object, ...]:
        return Durations, (self.sizes, self.stay, self.skip)

    @classmethod
    def geometric(cls, transmat: Array) -> Durations:
        """Return one stage per state, as in a plain chain."""
        return stages_of(transmat, np.ones(len(transmat), dtype=np.int64), np.ones(len(transmat), dtype=np.int64))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.sizes)

    @property
    def mean(self) -> Array:
        """Mean stay of each state in time steps, shape (S,); inf for absorbing states."""
        with np.errstate(divide="ignore"):
            steps = 1 / (1 - self.stay)
        ends = np.cumsum(self.sizes) - 1
        last = steps[ends].copy()
        steps[ends] = 0.0
        means: Array = (1 - self.skip) * np.add.reduceat(steps, ends - self.sizes + 1) + last
        return means

    @property
    def shape(self) -> Sizes:
        """Repeatable stages per state, (S,): 1 is geometric, more are more regular."""
        can_last = np.add.reduceat((self.stay > 0).astype(np.int64), np.cumsum(self.sizes) - self.sizes)
        return np.maximum(can_last, 1)

    @property
    def minimum(self) -> Sizes:
        """Shortest possible stay of each state, shape (S,)."""
        return np.where(self.skip > 0, 1, self.sizes)

    def probabilities(self, longest: int) -> Array:
        """Probabilities of stays of 1, 2, ..., `longest` time steps, shape (S, longest)."""
        check_integer(longest, "longest", low=1)
        ends = np.cumsum(self.sizes) - 1
        at = np.zeros(len(self.stay))
        at[ends - self.sizes + 1] += 1 - self.skip
        at[ends] += self.skip
        answer = np.empty((self.n_states, longest))
        for length in range(longest):
            advanced = at * (1 - self.stay)
            answer[:, length] = advanced[ends]
            advanced[ends] = 0.0
            at = at * self.stay
            at[1:] += advanced[:-1]
        return answer


def leaving_rates(transmat: Array) -> Array:
    """Probability of leaving each state at a time step, shape (S,)."""
    rates: Array = np.where(np.eye(len(transmat), dtype=bool), 0.0, transmat).sum(axis=1)
    return rates


def check_stages(stages: Durations, transmat: Array) -> None:
    """Raise ValueError for invalid stages."""
    if stages.n_states != len(transmat):
        raise ValueError(f"there are stages of {stages.n_states} states for {len(transmat)} classes")
    stay, diagonal = stages.stay[np.cumsum(stages.sizes) - 1], np.diagonal(transmat)
    fits = np.where(stages.sizes > 1, leaving_rates(transmat) > 0, np.isclose(stay, diagonal, 0, 1e-8))
    for state in np.flatnonzero(~fits):
        raise ValueError(
            f"the last of the {stages.sizes[state]} stages of state {state} stays with {stay[state]:g}, "
            f"but transmat has {diagonal[state]:g} on its diagonal"
        )


def stages_of(transmat: Array, shape: Sizes, minimum: Sizes) -> Durations:
    """Choose stages that have the mean stays of a transition matrix.

    State i has the mean stay 1 / (1 - A_ii) and ``shape[i]`` equal stages. If ``minimum[i]`` is above 1, stages that
    always advance come first, up to ``minimum[i]`` stages in all, and every stay passes all of them. A mean stay below
    the minimum is raised to it.
    """
    away = leaving_rates(transmat)
    sizes, stay, skip = [], [], np.zeros(len(transmat))
    for state, (k, d) in enumerate(zip(shape.tolist(), minimum.tolist(), strict=True)):
        if away[state] == 0 or (k == 1 and d == 1):
            sizes.append(1)
            stay.append([1.0 if away[state] == 0 else float(transmat[state, state])])
            continue
        mean, forced = 1 / away[state], max(d - k, 0)
        skip[state] = SKIP if d == 1 else 0.0
        advance = ((1 - skip[state]) * k + skip[state]) / max(mean - forced, k)
        if 1 - advance == 1:
            raise ValueError(
                f"state {state} is left with probability {away[state]:g} per time step: too rarely for "
                f"{forced + k} stages"
            )
        sizes.append(forced + k)
        stay.append([0.0] * forced + [1 - min(advance, 1.0)] * k)
    return Durations(np.array(sizes), np.concatenate(stay), skip)


@dataclass(frozen=True)
class Stays:
    """Counts of observed stays, which add up over blocks.

    Row k of ``kinds`` is (state, length, was entered, was left), and ``counts[k]`` the number of such stays. The first
    stay of a sequence has an unknown start, and the last one an unknown end.
    """

    kinds: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, codes: Codes, lengths: Lengths) -> Stays:
        """Count the stays in label codes, sequence by sequence; -1 is unknown."""
        if len(codes) == 0:
            return cls(np.zeros((0, 4), dtype=np.int64), np.zeros(0, dtype=np.int64))
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        is_new = (np.diff(codes) != 0) | (np.diff(sequence) != 0)
        begins = np.flatnonzero(np.append(True, is_new))
        state, of = codes[begins], sequence[begins]
        # Two neighbouring stays of a sequence are an observed change if both are known.
        seen = np.append(False, (of[1:] == of[:-1]) & (state[1:] >= 0) & (state[:-1] >= 0))
        kinds = np.stack([state, np.diff(np.append(begins, len(codes))), seen, np.append(seen[1:], False)], axis=1)
        known = kinds[state >= 0].astype(np.int64)
        return cls._summed(known, np.ones(len(known), dtype=np.int64))

    @classmethod
    def merged(cls, parts: Iterable[Stays]) -> Stays:
        """Add up the stays of several blocks."""
        each = list(parts)
        return cls._summed(np.concatenate([part.kinds for part in each]), np.concatenate([p.counts for p in each]))

    @classmethod
    def _summed(cls, kinds: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Stays:
        unique, place = np.unique(kinds, axis=0, return_inverse=True)
        sums = np.zeros(len(unique), dtype=np.int64)
        np.add.at(sums, place.ravel(), counts)
        return cls(unique, sums)

    def of_state(self, state: int) -> Stays:
        """Select the stays of one state."""
        own = self.kinds[:, 0] == state
        return Stays(self.kinds[own], self.counts[own])

    def at_least(self, minimum: int) -> Stays:
        """Raise complete stays below the minimum to the minimum."""
        kinds = self.kinds.copy()
        left = kinds[:, 3] == 1
        kinds[left, 1] = np.maximum(kinds[left, 1], minimum)
        return self._summed(kinds, self.counts)

    def log_likelihood(self, k: int, minimum: int, mean: float) -> float:
        """Log likelihood of the stays of a state with the given stages and mean.

        The first stay of a sequence counts as one that began there: if it was cut, it favours fewer stages.
        With p the probability to advance, r stages take n steps with p C(n-1, r-1) p^(r-1) (1-p)^(n-r), and n or more
        with sum_{j<r} C(n-1, j) p^j (1-p)^(n-1-j).
        """
        skip, forced = SKIP if minimum == 1 and k > 1 else 0.0, max(minimum - k, 0)
        advance = ((1 - skip) * k + skip) / (mean - forced)
        length, left = self.kinds[:, 1] - forced, self.kinds[:, 3] == 1
        terms = _log_binomial(length - 1, k, advance)
        survived = np.where((length < 1)[:, None], 0.0, np.logaddexp.accumulate(terms, axis=1))
        # Columns are for r = 1..k stages: a stay passes all k, or enters at the last.
        logs = np.where(left[:, None], np.log(advance) + terms, survived)
        with np.errstate(divide="ignore"):
            logs = np.logaddexp(np.log(1 - skip) + logs[:, -1], np.log(skip) + logs[:, 0])
        return float(self.counts @ logs)


def _log_binomial(n: npt.NDArray[np.int64], k: int, p: float) -> Array:
    """Log C(n, j) p^j (1-p)^(n-j) for j = 0..k-1, shape (len(n), k); -inf where j > n."""
    j = np.arange(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.log(np.maximum(n[:, None] - j[1:] + 1, 0) / j[1:])
    logs = np.cumsum(np.hstack([np.zeros((len(n), 1)), steps]), axis=1)
    logs = logs + j * np.log(p) + (n[:, None] - j) * np.log1p(-p)
    return np.where(j > n[:, None], -np.inf, logs)


@dataclass(frozen=True)
class DurationRules:
    """Rules for durations: learned shapes or none, and the minimum stays (S,)."""

    learned: bool
    minimum: Sizes

    @property
    def are_geometric(self) -> bool:
        """Whether stays are geometric for any labels."""
        return not self.learned and bool((self.minimum == 1).all())

    def shapes(self, transmat: Array, stays: Stays) -> Sizes:
        """Choose the shape of each state by its stays, (S,); all 1 unless learned."""
        away = leaving_rates(transmat)
        return np.array(
            [
                self._shape(stays.of_state(state), int(self.minimum[state]), away[state]) if self.learned else 1
                for state in range(len(transmat))
            ]
        )

    @staticmethod
    def _shape(stays: Stays, minimum: int, away: float) -> int:
        allowed = [k for k in SHAPES if k == 1 or max(k, minimum) * away < LARGEST_SHARE]
        if away == 0 or len(allowed) == 1:
            return 1
        lifted = stays.at_least(minimum)
        scores = [lifted.log_likelihood(k, minimum, 1 / away) - PULL * np.log2(k) for k in allowed]
        return allowed[int(np.argmax(scores))]

    def stages(self, transmat: Array, shapes: Sizes) -> Durations | None:
        """Build durations from mean stays and shapes; None if all stays are geometric."""
        if (np.maximum(shapes, self.minimum) == 1).all():
            return None
        return stages_of(transmat, shapes, self.minimum)


def minimum_stays(min_duration: Any, classes: npt.NDArray[Any]) -> Sizes:
    """Return minimum stays (S,) from one number, a dict by label, or a list."""
    n_states = len(classes)
    if min_duration is None:
        return np.ones(n_states, dtype=np.int64)
    if isinstance(min_duration, dict):
        labels = classes.tolist()
        for label in min_duration:
            if label not in labels:
                raise ValueError(f"min_duration has {label!r}, which is not a class: classes are {labels}")
        values = [min_duration.get(label, 1) for label in labels]
    elif isinstance(min_duration, list | tuple) or np.ndim(min_duration) > 0:
        values = list(min_duration)
        if len(values) != n_states:
            raise ValueError(f"min_duration has {len(values)} numbers for {n_states} classes: {classes.tolist()}")
    else:
        return np.full(n_states, check_integer(min_duration, "min_duration", low=1, high=MOST_STAGES))
    return np.array(
        [
            check_integer(value, f"min_duration of the class {label!r}", low=1, high=MOST_STAGES)
            for label, value in zip(classes.tolist(), values, strict=True)
        ]
    )


def check_minimum(codes: Codes, lengths: Lengths, minimum: Sizes, classes: npt.NDArray[Any]) -> None:
    """Raise ValueError if a complete, known stay is shorter than its minimum."""
    for state, length, entered, left in Stays.of(codes, lengths).kinds.tolist():
        if entered and left and length < minimum[state]:
            raise ValueError(
                f"min_duration is {minimum[state]} for the class {classes.tolist()[state]!r}, but y has a stay of "
                f"{length} time steps, and known labels stay as given if others are unknown"
            )
