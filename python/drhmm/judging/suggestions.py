"""Suggestions of stretches to label next, because their labels would help most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..chain.unknown_state import among_known
from ..data.checks import Array, check_integer
from ..data.labels import as_labels, is_known
from ..data.sequences import Sequences
from ..features.frames import choose_centers, complete_rows, median_distance, random_state_of
from ..model import Model

#: Kernel width over the median distance between frames.
WIDTH = 0.5
#: Rows that are compared with one another, at most.
MOST_ROWS = 3000
#: Frames that the median distance is taken from.
MEDIAN_FRAMES = 300


@dataclass(frozen=True)
class Suggestion:
    """Time steps ``begin`` to ``end``, end excluded, of a sequence, whose labels would help.

    ``label`` is the most frequent prediction, ``uncertainty`` the mean entropy of their posteriors, in nats.

    Examples
    --------
    >>> from drhmm import DensityRatioHMM
    >>> from drhmm.datasets import blobs
    >>> X, y = blobs(300, random_state=0)
    >>> model = DensityRatioHMM(random_state=0).fit(X[:60], y[:60]).model_
    >>> for stretch in model.suggest_labels(X, n=2, length=5):
    ...     assert stretch.end - stretch.begin == 5
    """

    sequence: int
    begin: int
    end: int
    label: Any
    uncertainty: float


def suggest_labels(
    model: Model, sequences: Sequences, y: Any, n: int, length: int, random_state: Any, n_threads: int
) -> list[Suggestion]:
    """The stretches of `Model.suggest_labels`, the most helpful first."""
    check_integer(n, "n", low=1)
    check_integer(length, "length", low=1)
    n_rows = len(sequences.samples)
    known = np.zeros(n_rows, dtype=bool) if y is None else is_known(as_labels(y, sequences), allow_one=True)
    stretches = _stretches(model, sequences, known, length, random_state_of(random_state))
    posteriors = among_known(model._all_posteriors(sequences, "smooth", None, n_threads), model.n_states)
    entropy = -np.where(posteriors > 0, posteriors * np.log(np.maximum(posteriors, 1e-300)), 0.0).sum(axis=1)
    rows = np.concatenate([np.arange(begin, end) for begin, end in stretches])
    frames = np.ascontiguousarray(model.evidence.framing.frames(sequences.samples, sequences.unbroken)[rows])
    centers = choose_centers(frames, min(len(frames), MEDIAN_FRAMES), np.random.RandomState(0))
    alike = _core.squared_exponential(frames, frames, WIDTH * median_distance(centers))
    first = np.cumsum([0, *sequences.lengths])
    found = []
    for begin, end in _greedy(alike, entropy[rows], stretches, n):
        number = int(np.searchsorted(first, begin, side="right")) - 1
        label = model.labels[int(posteriors[begin:end].sum(axis=0).argmax())]
        place = int(first[number])
        found.append(Suggestion(number, begin - place, end - place, label, float(entropy[begin:end].mean())))
    return found


def _stretches(
    model: Model, sequences: Sequences, known: npt.NDArray[np.bool_], length: int, random: np.random.RandomState
) -> list[tuple[int, int]]:
    """Stretches side by side, without labels or gaps, drawn where there are too many."""
    complete = complete_rows(model.evidence.framing.frames(sequences.samples, sequences.unbroken))
    usable = np.cumsum(np.append(0, complete & ~known))
    ends = np.cumsum(sequences.unbroken).tolist()
    stretches = [
        (begin, begin + length)
        for end, size in zip(ends, sequences.unbroken, strict=True)
        for begin in range(end - size, end - length + 1, length)
        if usable[begin + length] - usable[begin] == length
    ]
    if not stretches:
        raise ValueError(f"X has no stretch of length={length} time steps that are complete and have no label")
    drawn = random.permutation(len(stretches))[: max(1, MOST_ROWS // length)]
    return [stretches[k] for k in sorted(drawn)]


def _greedy(alike: Array, weight: Array, stretches: list[tuple[int, int]], n: int) -> list[tuple[int, int]]:
    """One stretch after the other: that whose rows are like most rows that are uncertain, and unlike those chosen."""
    length, places = stretches[0][1] - stretches[0][0], np.array(stretches)
    free = np.ones(len(stretches), dtype=bool)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < n and free.any():
        score = (alike @ weight).reshape(-1, length).sum(axis=1)
        best = int(np.where(free, score, -1.0).argmax())
        chosen.append(stretches[best])
        weight = weight * (1 - alike[:, best * length : (best + 1) * length]).prod(axis=1)
        free &= (places[:, 0] >= places[best, 1] + length) | (places[:, 1] <= places[best, 0] - length)
    return chosen
