"""How long states last: every state is a row of stages that share its evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, check_integer, read_only

Sizes = npt.NDArray[np.int64]

#: An entry into a state of several stages goes to the last one with this probability: short stays remain possible.
SKIP = 0.05

#: Stages that a state may have, and with them the longest minimum stay.
MOST_STAGES = 10_000


@dataclass(frozen=True, eq=False)
class Durations:
    """The stages of every state: the distribution of its stays.

    A stay goes through the stages of its state in order. It leaves the state from the last one.

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
        # A stage that never ends is the only one of its state, and the state is never left.
        longest = np.where(np.repeat(sizes, sizes) == 1, 1.0, np.nextafter(1.0, 0.0))
        for name, values, high in (("stay", self.stay, longest), ("skip", self.skip, np.ones(len(sizes)))):
            wrong = np.flatnonzero(~((values >= 0) & (values <= high)))
            if len(wrong) > 0:
                raise ValueError(f"{name} has {values[wrong[0]]} at place {wrong[0]}: not a probability of this stage")

    def __reduce__(self) -> tuple[object, ...]:
        return Durations, (self.sizes, self.stay, self.skip)

    @classmethod
    def geometric(cls, transmat: Array) -> Durations:
        """One stage for each state: what a plain chain does."""
        return stages_of(transmat, np.ones(len(transmat), dtype=np.int64), np.ones(len(transmat), dtype=np.int64))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.sizes)

    @property
    def mean(self) -> Array:
        """Mean stay of each state in steps, shape (S,); inf for a state that is never left."""
        with np.errstate(divide="ignore"):
            steps = 1 / (1 - self.stay)
        ends = np.cumsum(self.sizes) - 1
        last = steps[ends].copy()
        steps[ends] = 0.0
        means: Array = (1 - self.skip) * np.add.reduceat(steps, ends - self.sizes + 1) + last
        return means

    @property
    def shape(self) -> Sizes:
        """Number of stages of each state that can last, shape (S,): 1 is geometric, more is more regular."""
        can_last = np.add.reduceat((self.stay > 0).astype(np.int64), np.cumsum(self.sizes) - self.sizes)
        return np.maximum(can_last, 1)

    @property
    def minimum(self) -> Sizes:
        """Shortest stay of each state that is possible, shape (S,)."""
        return np.where(self.skip > 0, 1, self.sizes)

    def probabilities(self, longest: int) -> Array:
        """Probability that a stay lasts 1, 2, ..., `longest` steps, shape (S, longest)."""
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
    """Probability that each state is left at a step, shape (S,)."""
    rates: Array = np.where(np.eye(len(transmat), dtype=bool), 0.0, transmat).sum(axis=1)
    return rates


def stages_of(transmat: Array, shape: Sizes, minimum: Sizes) -> Durations:
    """Stages with the mean stays of a transition matrix.

    State i leaves at a step with 1 - A_ii on average. It has ``shape[i]`` equal stages. Where ``minimum[i]`` is above
    1, stages that are certain to advance stand in front until there are so many, and every stay passes all of them; a
    mean stay below the minimum is raised to it.
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
                f"state {state} is left with {away[state]:g} at a step: too rarely to have {forced + k} stages"
            )
        sizes.append(forced + k)
        stay.append([0.0] * forced + [1 - min(advance, 1.0)] * k)
    return Durations(np.array(sizes), np.concatenate(stay), skip)
