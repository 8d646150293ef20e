"""Stays of states in labels, and what durations follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths, check_integer
from ..data.labels import Codes
from .durations import MOST_STAGES, SKIP, Durations, Sizes, leaving_rates, stages_of

#: Numbers of stages that are tried.
SHAPES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)

#: A shape is tried if its stages are fewer than this share of the mean stay.
LARGEST_SHARE = 0.9

#: Log likelihood that stays must gain for every doubling of the shape.
PULL = 2.0


@dataclass(frozen=True)
class Stays:
    """How often stays were seen: statistics that add up.

    Row k of ``kinds`` is (state, length, was entered, was left): nobody saw the begin of a stay that is the first of
    a sequence, or the end of one that is the last. ``counts[k]`` is how many of the kind there are.
    """

    kinds: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, codes: Codes, lengths: Lengths) -> Stays:
        """The stays in the codes of labels, sequence by sequence; -1 is no state."""
        if len(codes) == 0:
            return cls(np.zeros((0, 4), dtype=np.int64), np.zeros(0, dtype=np.int64))
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        is_new = (np.diff(codes) != 0) | (np.diff(sequence) != 0)
        begins = np.flatnonzero(np.append(True, is_new))
        state, of = codes[begins], sequence[begins]
        # Two neighbouring stays of one sequence are one change of state, which was seen if both are known.
        seen = np.append(False, (of[1:] == of[:-1]) & (state[1:] >= 0) & (state[:-1] >= 0))
        kinds = np.stack([state, np.diff(np.append(begins, len(codes))), seen, np.append(seen[1:], False)], axis=1)
        known = kinds[state >= 0].astype(np.int64)
        return cls._summed(known, np.ones(len(known), dtype=np.int64))

    @classmethod
    def merged(cls, parts: Iterable[Stays]) -> Stays:
        """The stays of several blocks, one or more."""
        each = list(parts)
        return cls._summed(np.concatenate([part.kinds for part in each]), np.concatenate([p.counts for p in each]))

    @classmethod
    def _summed(cls, kinds: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Stays:
        unique, place = np.unique(kinds, axis=0, return_inverse=True)
        sums = np.zeros(len(unique), dtype=np.int64)
        np.add.at(sums, place.ravel(), counts)
        return cls(unique, sums)

    def of_state(self, state: int) -> Stays:
        """Those of one state."""
        own = self.kinds[:, 0] == state
        return Stays(self.kinds[own], self.counts[own])

    def at_least(self, minimum: int) -> Stays:
        """The same, where a stay that was left before the minimum counts as one of the minimum."""
        kinds = self.kinds.copy()
        left = kinds[:, 3] == 1
        kinds[left, 1] = np.maximum(kinds[left, 1], minimum)
        return self._summed(kinds, self.counts)

    def log_likelihood(self, k: int, minimum: int, mean: float) -> float:
        """Log probability of the stays of one state that has the stages of `stages_of`, and lasts `mean` on average.

        The first stay of a sequence counts as one that began there: if it was cut, it speaks for fewer stages.
        With p the probability to advance, r stages take n steps with p C(n-1, r-1) p^(r-1) (1-p)^(n-r), and n or more
        with sum_{j<r} C(n-1, j) p^j (1-p)^(n-1-j).
        """
        skip, forced = SKIP if minimum == 1 and k > 1 else 0.0, max(minimum - k, 0)
        advance = ((1 - skip) * k + skip) / (mean - forced)
        length, left = self.kinds[:, 1] - forced, self.kinds[:, 3] == 1
        terms = _log_binomial(length - 1, k, advance)
        survived = np.where((length < 1)[:, None], 0.0, np.logaddexp.accumulate(terms, axis=1))
        # From r = 1..k stages before the end; a stay goes through all of them, or skips to the last.
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
    """How durations follow from stays: whether shapes are learned, and the shortest stay of each state, (S,)."""

    learned: bool
    minimum: Sizes

    @property
    def are_geometric(self) -> bool:
        """Whether every stay is geometric, whatever the labels are."""
        return not self.learned and bool((self.minimum == 1).all())

    def shapes(self, transmat: Array, stays: Stays) -> Sizes:
        """The number of stages of each state that suits its stays best, (S,); 1 for all unless it is to be learned."""
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
        """The durations with these shapes and the mean stays of `transmat`; None where every stay is geometric."""
        if (np.maximum(shapes, self.minimum) == 1).all():
            return None
        return stages_of(transmat, shapes, self.minimum)


def minimum_stays(min_duration: Any, classes: npt.NDArray[Any]) -> Sizes:
    """The shortest stay of each class, (S,), from one number for all, a dict by label, or one number per class."""
    n_states = len(classes)
    if min_duration is None:
        return np.ones(n_states, dtype=np.int64)
    if isinstance(min_duration, dict):
        labels = classes.tolist()
        for label in min_duration:
            if label not in labels:
                raise ValueError(f"min_duration names {label!r}, which is no class: classes are {labels}")
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
    """Raise a ValueError if known labels, which are certain, have a whole stay that is shorter than its minimum."""
    for state, length, entered, left in Stays.of(codes, lengths).kinds.tolist():
        if entered and left and length < minimum[state]:
            raise ValueError(
                f"min_duration is {minimum[state]} for the class {classes.tolist()[state]!r}, but y has a stay of "
                f"{length} time steps: where some labels are unknown, the known ones are certain"
            )
