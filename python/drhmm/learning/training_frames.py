"""Training frames with their labels, weights and folds."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.checks import LARGEST, Array, as_weights, shown
from ..data.labels import UNKNOWN, Codes
from ..data.sequences import Sequences
from ..data.user_warnings import warn
from ..features.frames import Framing, complete_rows
from ..tuning.folds import folds_of

if TYPE_CHECKING:
    from ..ratios.learner import Task

#: The fewest frames of a class or state that can be learned well.
FEW = 3

#: Share of frames that windows may lose to missing samples without a warning.
LOST = 0.1

#: Entry of the settings with the origin of scales, temper and prior shift.
SCALE_REASON = "scale_reason"

#: Entry of the settings with the use of unlabelled rows and the reason.
UNLABELLED = "unlabelled_reason"

#: Entry with the typical values of each column in each state.
TYPICAL = "typical_values"

#: Quantiles of the typical values.
QUANTILES = (0.1, 0.5, 0.9)

#: The most recorded values.
MOST_RECORDED = 30_000

#: The most frames without a draw for judging kernel widths and members.
MOST_DRAWN = 50_000

Quantiles = list[list[list[float | None]]]
Places = npt.NDArray[np.int64]


class TrainingFrames:
    """Complete frames of the training sequences.

    Attributes
    ----------
    frames : ndarray of shape (N, D)
        Frames without NaN.
    rows : ndarray of shape (N,)
        Their places among all rows.
    folds, weights : ndarray of shape (N,)
        Fold and weight of each frame.
    given_weights : ndarray of shape (N,) or None
        The weights, if any were given.
    samples : ndarray of shape (n_rows, d)
        Samples of every row.
    codes : ndarray of shape (n_rows,)
        State of every row, complete or not; -1 where unknown.
    """

    _whole: TrainingFrames | None = None

    def __init__(
        self, sequences: Sequences, framing: Framing, codes: Codes, n_states: int, weights: Array | None
    ) -> None:
        frames = framing.frames(sequences.samples, sequences.lengths)
        self.rows = np.flatnonzero(complete_rows(frames))
        if len(self.rows) == 0:
            raise ValueError(
                f"X has no complete frame: window={framing.window} needs that many samples in a row without NaN, "
                f"and the sequences have lengths {sequences.lengths[:10]}"
            )
        _warn_of_missing_frames(sequences, framing.window, len(self.rows))
        self.frames = frames if len(self.rows) == len(frames) else np.ascontiguousarray(frames[self.rows])
        self.samples = sequences.samples
        self.codes, self.n_states, self.lengths = codes, n_states, sequences.lengths
        self.folds = folds_of(self.sequence[self.rows], codes[self.rows], n_states)
        self.given_weights = None if weights is None else np.ascontiguousarray(weights[self.rows])
        self.weights = np.ones(len(self.rows)) if self.given_weights is None else self.given_weights

    def relabelled(self, codes: Codes) -> TrainingFrames:
        """Return the same frames with other labels."""
        part = copy.copy(self)
        part.codes, part._whole = codes, None
        part.folds = folds_of(self.sequence[self.rows], codes[self.rows], self.n_states)
        return part

    def taken(self, chosen: npt.NDArray[np.bool_]) -> TrainingFrames:
        """Select rows; neighbouring rows form sequences."""
        part, own, places = copy.copy(self), chosen[self.rows], np.flatnonzero(chosen)
        new = np.append(True, (np.diff(places) > 1) | (np.diff(self.sequence[places]) > 0))
        part.lengths = np.diff(np.append(np.flatnonzero(new), len(places))).tolist()
        part.rows = np.searchsorted(places, self.rows[own])
        part.frames, part.samples = np.ascontiguousarray(self.frames[own]), self.samples[places]
        part.weights = np.ascontiguousarray(self.weights[own])
        part.given_weights = None if self.given_weights is None else part.weights
        part = part.relabelled(self.codes[places])
        whole = part._whole = copy.copy(part)
        whole.samples, whole.lengths = self.samples, self.lengths
        whole.rows, whole.codes = self.rows[own], np.where(chosen, self.codes, UNKNOWN)
        return part

    @property
    def whole(self) -> TrainingFrames:
        """The same frames in the sequences from which they were taken."""
        return self if self._whole is None else self._whole

    @property
    def n_rows(self) -> int:
        """Number of rows of X, complete frames or not."""
        return len(self.codes)

    @property
    def sequence(self) -> Places:
        """The sequence of every row, counted from 0."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def labelled(self) -> bool:
        """Whether the state of every row is known."""
        return bool((self.codes != UNKNOWN).all())

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether the state of each complete frame is known, (N,)."""
        known: npt.NDArray[np.bool_] = self.codes[self.rows] != UNKNOWN
        return known

    def task(self, targets: Array, drawn: Places | None = None) -> Task:
        """The task of a ratio source."""
        from ..ratios.learner import Task  # imports scikit-learn, which inference does not need

        return Task(self.frames, targets, self.weights, self.folds, self.given_weights is not None, drawn)

    def drawn(self, judged: Places) -> Places | None:
        """The frames for judging members: `judged`, and more if few; None for all."""
        if len(self.rows) <= MOST_DRAWN:
            return None
        chosen = np.isin(self.rows, judged)
        if chosen.sum() < MOST_DRAWN // 5:
            others = np.flatnonzero(~chosen)
            chosen[others[np.linspace(0, len(others) - 1, MOST_DRAWN // 2).astype(int)]] = True
        return np.flatnonzero(chosen)

    def judged_codes(self) -> Codes:
        """Codes of all rows, unknown if no other fold has a frame of the same class."""
        codes, own = self.codes.copy(), self.codes[self.rows]
        counts = np.zeros((self.folds.max() + 1, self.n_states), dtype=np.int64)
        np.add.at(counts, (self.folds[own >= 0], own[own >= 0]), 1)
        elsewhere = counts.sum(axis=0) - counts[self.folds]
        alone = (own >= 0) & (elsewhere[np.arange(len(own)), np.maximum(own, 0)] == 0)
        codes[self.rows[alone]] = UNKNOWN
        return codes

    def one_hot(self) -> Array:
        """One-hot targets of the complete frames, (N, S); zeros where unknown."""
        targets: Array = np.vstack([np.eye(self.n_states), np.zeros(self.n_states)])[self.codes[self.rows]]
        return targets

    def check_classes(self, classes: npt.NDArray[Any]) -> None:
        """Check that every class has complete frames of positive weight."""
        own = self.codes[self.rows]
        known = own != UNKNOWN
        mass, counts = (np.bincount(own[known], values, self.n_states) for values in (self.weights[known], None))
        for code, label in enumerate(classes):
            if not counts[code] > 0:
                raise ValueError(
                    f"the class {label!r} has no complete frame: all of its frames lack samples in their window"
                )
            if not mass[code] > 0:
                raise ValueError(f"the class {label!r} has weight 0 in all of its frames")
        few = [
            f"{label!r} ({int(count)})" for label, count in zip(classes.tolist(), counts, strict=True) if count < FEW
        ]
        if few:
            warn(f"fewer than {FEW} complete frames have the label {', '.join(few)}: too few to learn from")

    def warn_of_few_frames(self) -> None:
        """Warn if there are too few frames per state."""
        if len(self.rows) < FEW * self.n_states:
            warn(
                f"there are {len(self.rows)} complete frames for {self.n_states} states: states with fewer than {FEW} "
                "frames are accidental"
            )

    def spread(self, values: Array) -> Array:
        """Spread values of complete frames (N, S) over all rows (n_rows, S), else NaN."""
        everywhere = np.full((self.n_rows, values.shape[1]), np.nan)
        everywhere[self.rows] = values
        return everywhere


def _warn_of_missing_frames(sequences: Sequences, window: int, n_complete: int) -> None:
    """Warn if many windows contain a NaN."""
    n_windows = sum(max(length - window + 1, 0) for length in sequences.lengths)
    n_missing = int(np.isnan(sequences.samples).any(axis=1).sum())
    if n_windows - n_complete > LOST * n_windows:
        warn(
            f"{n_windows - n_complete} of {n_windows} frames were left out of learning: {n_missing} of "
            f"{len(sequences.samples)} rows of X have a NaN"
            + (f", and each is in up to window={window} frames" if window > 1 else "")
        )


def class_weights(class_weight: Any, classes: npt.NDArray[Any], codes: Codes) -> Array:
    """Weight of each class, (S,), as in scikit-learn, from the codes of known labels."""
    from sklearn.utils.class_weight import compute_class_weight

    if isinstance(class_weight, Mapping):
        known = classes.tolist()
        others = [label for label in class_weight if label not in known]
        if others and not all(label in class_weight for label in known):
            raise ValueError(f"class_weight has {others[0]!r}, which is no class: there are {shown(known, 100)}")
    per_class: Array = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    wrong = ~((per_class > 0) & (per_class <= LARGEST))
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"class_weight is {per_class[place]} for the class {classes[place]!r}: weights are positive")
    return per_class


def row_weights(
    class_weight: Any, sample_weight: Any, sequences: Sequences, codes: Codes, classes: npt.NDArray[Any]
) -> Array | None:
    """Combine both kinds of weights into one per row, or None."""
    weights = None if sample_weight is None else as_weights(sample_weight, sequences)
    if class_weight is None:
        return weights
    known = codes != UNKNOWN
    by_class = np.ones(len(codes))
    by_class[known] = class_weights(class_weight, classes, codes[known])[codes[known]]
    return by_class if weights is None else by_class * weights


def typical_values(samples: Array, states: Codes, n_states: int) -> Quantiles | None:
    """Quantiles of columns by state, (S, d, 3); None without samples, or if too many."""
    if n_states * samples.shape[1] * len(QUANTILES) > MOST_RECORDED:
        return None
    places = [np.flatnonzero(states == state) for state in range(n_states)]
    own = [samples[rows[:: 1 + len(rows) // MOST_DRAWN]] for rows in places]
    values = [
        np.quantile(part, QUANTILES, axis=0).T if len(part) > 0 else np.full((samples.shape[1], 3), np.nan)
        for part in own
    ]
    return [
        [[float(f"{value:.6g}") if np.isfinite(value) else None for value in column] for column in state]
        for state in values
    ]
