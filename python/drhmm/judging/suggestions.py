"""Suggestions of the stretches whose labels would help most."""

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

#: Kernel width as a multiple of the median distance between frames.
WIDTH = 0.25
#: The most rows that are compared with each other.
MOST_ROWS = 3000
#: Number of frames for the median distance.
MEDIAN_FRAMES = 300


@dataclass(frozen=True)
class Suggestion:
    """Time steps ``begin`` to ``end``, end excluded, whose labels would help.

    ``label`` is their most frequent prediction, and ``uncertainty`` the mean entropy of their posteriors, in nats.

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
    """Return the stretches of `Model.suggest_labels`, the most helpful first."""
    check_integer(n, "n", low=1)
    check_integer(length, "length", low=1)
    n_rows = len(sequences.samples)
    known = np.zeros(n_rows, dtype=bool) if y is None else is_known(as_labels(y, sequences), allow_one=True)
    rows, starts = _candidates(model, sequences, known, length, random_state_of(random_state))
    posteriors = among_known(model._all_posteriors(sequences, "smooth", None, n_threads), model.n_states)
    entropy = -np.where(posteriors > 0, posteriors * np.log(np.maximum(posteriors, 1e-300)), 0.0).sum(axis=1)
    frames = np.ascontiguousarray(model.evidence.framing.frames(sequences.samples, sequences.unbroken)[rows])
    centers = choose_centers(frames, min(len(frames), MEDIAN_FRAMES), np.random.RandomState(0))
    alike = _core.squared_exponential(frames, frames, WIDTH * median_distance(centers))
    first = np.cumsum([0, *sequences.lengths])
    found = []
    for begin in _greedy(alike, entropy[rows], rows, starts, n, length):
        end = begin + length
        number = int(np.searchsorted(first, begin, side="right")) - 1
        label = model.labels[int(posteriors[begin:end].sum(axis=0).argmax())]
        place = int(first[number])
        found.append(Suggestion(number, begin - place, end - place, label, float(entropy[begin:end].mean())))
    return found


def _candidates(
    model: Model, sequences: Sequences, known: npt.NDArray[np.bool_], length: int, random: np.random.RandomState
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Unlabelled complete rows, drawn if there are too many, and starts of stretches."""
    usable = complete_rows(model.evidence.framing.frames(sequences.samples, sequences.unbroken)) & ~known
    if usable.sum() > MOST_ROWS:
        stretch = np.cumsum(usable) // length
        drawn = random.permutation(stretch[-1] + 1)[: max(2, MOST_ROWS // length)]
        usable &= np.isin(stretch, drawn)
    rows = np.flatnonzero(usable)
    part = np.repeat(np.arange(len(sequences.unbroken)), sequences.unbroken)[rows]
    last = np.arange(length - 1, len(rows))
    first = last - length + 1
    starts = first[(rows[last] - rows[first] == length - 1) & (part[last] == part[first])]
    if len(starts) == 0:
        raise ValueError(f"X has no stretch of length={length} time steps that are complete and have no label")
    return rows, starts


def _greedy(
    alike: Array,
    weight: Array,
    rows: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    n: int,
    length: int,
) -> list[int]:
    """Choose stretches similar to many uncertain rows, and unlike those chosen before."""
    begins, chosen = rows[starts], list[int]()
    free = np.ones(len(starts), dtype=bool)
    while len(chosen) < n and free.any():
        sums = np.cumsum(np.append(0.0, alike @ weight))
        best = int(np.where(free, sums[starts + length] - sums[starts], -1.0).argmax())
        chosen.append(int(begins[best]))
        weight = weight * (1 - alike[:, starts[best] : starts[best] + length]).prod(axis=1)
        free &= np.abs(begins - begins[best]) >= 2 * length
    return chosen
