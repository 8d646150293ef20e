"""Evaluation on labelled sequences: accuracy, calibration, classes and segments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..chain.durations import Stays
from ..data.checks import Array, Lengths, Steps, as_values, thread_count
from ..data.labels import UNKNOWN, Codes, as_labels, bridged, encode
from ..data.sequences import LEARNED_ROWS, Data, Rows, Sequences, numbered_by_appearance
from ..evidence.calibration import bins_of, error_of
from ..model import METHODS, Method, Model
from .text_tables import Shown, TextTable, labels_of, lasting, printable, share

if TYPE_CHECKING:
    from ..estimator import DensityRatioHMM

#: Intervals of probability for the calibration error.
N_BINS = 10

#: Lower limit of probabilities in the log loss.
SMALLEST = 1e-15

#: The most sequences in the table of accuracies.
MOST_NAMED = 20

#: Print a hint if smoothing loses this much accuracy against filtering or single time steps.
CLEARLY = 0.01

#: Print a hint if the model learned from a larger share of the rows.
MOST_LEARNED = 0.1

#: Methods in words.
SPOKEN = {"smooth": "smoothed", "filter": "filtered", "frame": "without the chain"}


@dataclass(frozen=True, eq=False)
class Evaluation(Shown):
    """Results on labelled sequences; prints as tables, also in a notebook.

    Attributes
    ----------
    classes : ndarray of shape (S,)
        The labels.
    accuracy, macro_f1 : float
        Share of time steps with the right label, and mean F1 of the classes that occur. ``baseline`` is the accuracy
        of always predicting the most frequent class.
    log_loss, calibration_error : float
        Mean of -log p(true label), and the expected calibration error of the likeliest label in ten bins.
    precision, recall, f1 : ndarray of shape (S,)
        Values of each class; NaN for 0 / 0.
    confusion : ndarray of int, shape (S, S)
        Time steps by true label (row) and predicted label (column).
    true_segments, predicted_segments : ndarray of int, shape (S,)
        Number of stretches of equal labels within sequences. Time steps without a label count only between two equal
        labels, where they belong to the stretch.
    true_stays, predicted_stays : ndarray of shape (S,)
        Their mean length in time steps; NaN without stretches.
    n_frames, n_left_out : int
        Number of time steps with a label, which are evaluated, and without.
    samples, posteriors, truth, lengths, dt
        The data of the pictures: samples (T, d), posteriors (T, S), codes of the true labels (-1 if unknown), lengths
        of the sequences, and time steps since the last row (None if all are 1).
    model : Model
        The model; after `cross_validate`, one learned from all sequences.
    sequence_names, times : ndarray of shape (T,) or None
        The sequence and the time of each row, if they are known.
    method, method_accuracies : str, dict of str to float
        The method of inference, and the accuracy of every method.
    origin : str
        Description of the held-out rows; only after `cross_validate`.
    learned_share : float
        Estimated share of the rows that the model learned from; 0 after `cross_validate`.

    Examples
    --------
    >>> import drhmm, pathlib, tempfile
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> model = drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_
    >>> evaluation = drhmm.evaluate(model, X, y)
    >>> sorted(evaluation.as_dict())[:2], evaluation.tables()[1].title
    (['accuracy', 'baseline'], 'classes')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     evaluation.save_html(pathlib.Path(folder, "report.html"))
    """

    classes: npt.NDArray[Any]
    accuracy: float
    macro_f1: float
    log_loss: float
    calibration_error: float
    precision: Array
    recall: Array
    f1: Array
    confusion: npt.NDArray[np.int64]
    true_segments: npt.NDArray[np.int64]
    predicted_segments: npt.NDArray[np.int64]
    true_stays: Array
    predicted_stays: Array
    method: str
    n_frames: int
    n_left_out: int
    samples: Array = field(repr=False)
    posteriors: Array = field(repr=False)
    truth: Codes = field(repr=False)
    lengths: Lengths = field(repr=False)
    model: Model = field(repr=False)
    dt: Steps | None = field(default=None, repr=False)
    sequence_names: npt.NDArray[Any] | None = field(default=None, repr=False)
    method_accuracies: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""
    times: npt.NDArray[Any] | None = field(default=None, repr=False)
    learned_share: float = 0.0

    @property
    def labels(self) -> list[str]:
        """The classes as text."""
        return labels_of(self.model)

    @property
    def baseline(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        return float(self.confusion.sum(axis=1).max() / self.n_frames)

    @property
    def sequence_accuracies(self) -> dict[Any, float]:
        """The accuracy of each sequence by name; NaN without labels, empty without names."""
        return {name: accuracy for name, (_, accuracy) in self._by_sequence().items()}

    @property
    def hint(self) -> str | None:
        """Advice if the model learned from these rows, or if smoothing does harm."""
        if self.learned_share > MOST_LEARNED:
            return (
                f"hint: the model learned from about {self.learned_share:.0%} of these rows, so the figures are "
                "optimistic: evaluate rows that it has not learned from, or use cross_validate"
            )
        if self.sequence_names is None:
            return None
        smoothed = self.method_accuracies["smooth"]
        other = max(self.method_accuracies, key=self.method_accuracies.__getitem__)
        if not smoothed < self.method_accuracies[other] - CLEARLY:
            return None
        return (
            f"hint: {share(smoothed)} smoothed is below {share(self.method_accuracies[other])} {SPOKEN[other]}: "
            "held-out sequences differ from the others. Try columns standardised per sequence (page After "
            'fit, "When sequences differ")'
        )

    def _by_sequence(self) -> dict[Any, tuple[int, float]]:
        """Number of labelled time steps and accuracy of each sequence, in order."""
        if self.sequence_names is None:
            return {}
        first, codes = numbered_by_appearance(self.sequence_names, "sequence_names")
        known = self.truth != UNKNOWN
        right = known & (self.posteriors.argmax(axis=1) == self.truth)
        counts = np.bincount(codes[known], minlength=len(first))
        with np.errstate(invalid="ignore"):
            shares = np.bincount(codes[right], minlength=len(first)) / counts
        return dict(
            zip(self.sequence_names[first].tolist(), zip(counts.tolist(), shares.tolist(), strict=True), strict=True)
        )

    def _spread(self) -> list[list[str]]:
        """The range of the accuracies of several sequences."""
        accuracies = [accuracy for count, accuracy in self._by_sequence().values() if count > 0]
        return [["by sequence", f"{share(min(accuracies))} to {share(max(accuracies))}"]] if len(accuracies) > 1 else []

    def _sequence_table(self) -> list[TextTable]:
        """The accuracies of the sequences."""
        rows = [
            [printable(name), f"{count:,}", share(accuracy) if count > 0 else "-"]
            for name, (count, accuracy) in self._by_sequence().items()
        ]
        if len(rows) < (1 if self.origin else 2):
            return []
        left_out = f"; the first {MOST_NAMED} of {len(rows):,}" if len(rows) > MOST_NAMED else ""
        return [TextTable(f"sequences{left_out}", ["sequence", "time steps", "accuracy"], rows[:MOST_NAMED])]

    def tables(self) -> list[TextTable]:
        """All results as tables."""
        labels = self.labels
        bridges = "; time steps without a label count only between equal labels" if self.n_left_out else ""
        left_out = f", {self.n_left_out:,} without a label left out" if self.n_left_out else ""
        figures = [
            ["accuracy", share(self.accuracy)],
            *(
                [SPOKEN[method], share(accuracy)]
                for method, accuracy in self.method_accuracies.items()
                if method != self.method
            ),
            *self._spread(),
            [f"always {labels[int(self.confusion.sum(axis=1).argmax())]}", share(self.baseline)],
            ["macro F1", f"{self.macro_f1:.3f}"],
            ["log loss", f"{self.log_loss:.3f}"],
            ["calibration error", f"{self.calibration_error:.3f}"],
        ]
        by_class = [
            [label, *map(_figure, (self.precision[k], self.recall[k], self.f1[k])), f"{self.confusion[k].sum():,}"]
            for k, label in enumerate(labels)
        ]
        confusion = [[label, *(f"{count:,}" for count in self.confusion[k])] for k, label in enumerate(labels)]
        segments = [
            [
                label,
                f"{self.true_segments[k]:,}",
                f"{self.predicted_segments[k]:,}",
                lasting(self.true_stays[k], self.model),
                lasting(self.predicted_stays[k], self.model),
            ]
            for k, label in enumerate(labels)
        ]
        origin = f", {self.origin}" if self.origin else ""
        title = f"{self.n_frames:,} time steps{left_out}, posteriors by {self.method!r}{origin}"
        return [
            TextTable(title, ["", ""], figures),
            *self._sequence_table(),
            TextTable("classes", ["label", "precision", "recall", "F1", "time steps"], by_class),
            TextTable("confusion: time steps by true label (row) and predicted label", ["true", *labels], confusion),
            TextTable(
                "segments: their number and mean length" + bridges,
                ["label", "true", "predicted", "true length", "predicted length"],
                segments,
            ),
        ]

    def __str__(self) -> str:
        return super().__str__() + ("" if self.hint is None else f"\n\n{self.hint}")

    def as_dict(self) -> dict[str, Any]:
        """All results as JSON values; NaN becomes None."""
        scores = ("accuracy", "baseline", "macro_f1", "log_loss", "calibration_error")
        figures: dict[str, Any] = {name: getattr(self, name) for name in ("n_frames", "n_left_out", "method", *scores)}
        figures["classes"] = self.labels
        for name in ("precision", "recall", "f1", "true_stays", "predicted_stays"):
            figures[name] = [float(value) if np.isfinite(value) else None for value in getattr(self, name)]
        for name in ("confusion", "true_segments", "predicted_segments"):
            figures[name] = getattr(self, name).tolist()
        if self.sequence_names is not None:
            figures["sequences"] = {
                str(name): {"n_frames": count, "accuracy": accuracy if count > 0 else None}
                for name, (count, accuracy) in self._by_sequence().items()
            }
        return figures | {"method_accuracies": dict(self.method_accuracies)}

    def save_html(self, path: str | os.PathLike[str], *, title: str = "How good the model is") -> None:
        """Write an HTML page with all results and pictures, such as ``report.html``.

        It shows posteriors under the signal, ROC curves, calibration, transitions and the worst stretches. Needs
        matplotlib.
        """
        from ..files.atomic_write import write_atomically
        from .report import page

        write_atomically(path, page(self, title).encode())


def evaluate(
    model: Model | DensityRatioHMM,
    X: Data,
    y: Data,
    *,
    lengths: Rows = None,
    sequence_id: Rows = None,
    dt: Rows = None,
    method: Method = "smooth",
    lag: int | None = None,
    unknown: Any = "auto",
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate a model on labelled sequences that it has not learned from.

    Time steps without a label in `y` are left out. Other arguments as in `Model.predict_proba`.

    Parameters
    ----------
    model : Model or DensityRatioHMM
        A model, or a fitted estimator.
    unknown : label or None
        The label that means unknown, as in `DensityRatioHMM`.

    Examples
    --------
    >>> from drhmm import DensityRatioHMM, evaluate
    >>> from drhmm.datasets import blobs
    >>> X, y = blobs(600, random_state=0)
    >>> model = DensityRatioHMM(random_state=0).fit(X[:300], y[:300])
    >>> bool(evaluate(model, X[300:], y[300:]).accuracy > 0.9)
    True
    """
    fitted: Model = model if isinstance(model, Model) else model._fitted_model()
    sequences = fitted.read(X, lengths, sequence_id, dt)
    names = None if sequence_id is None else sequences.arrange(as_values(sequence_id, "sequence_id"))
    return of_sequences(fitted, sequences, y, method, lag, unknown, n_threads, names)


def of_sequences(
    model: Model,
    sequences: Sequences,
    y: Any,
    method: str,
    lag: int | None,
    unknown: Any,
    n_threads: int | None,
    names: npt.NDArray[Any] | None = None,
) -> Evaluation:
    """Evaluate a model by labels, one per row in the caller's order."""
    model.check_method(method, METHODS, lag)
    truth = encode(as_labels(y, sequences), model.classes, sequences, allow_unknown=True, unknown=unknown)
    posteriors = by_method(model, sequences, method, lag, thread_count(n_threads))
    found = evaluation_of(model, sequences, posteriors, truth, method, names)
    return replace(found, learned_share=sequences.known_share(model.settings.get(LEARNED_ROWS) or []))


def by_method(model: Model, sequences: Sequences, method: str, lag: int | None, threads: int) -> dict[str, Array]:
    """Posteriors of known states by every method; the lag belongs to the given one."""
    return {one: model._known_posteriors(sequences, one, lag if one == method else None, threads) for one in METHODS}


def evaluation_of(
    model: Model,
    sequences: Sequences,
    posteriors_by_method: Mapping[str, Array],
    truth: Codes,
    method: str,
    sequence_names: npt.NDArray[Any] | None = None,
    origin: str = "",
) -> Evaluation:
    """Evaluate posteriors of whole sequences, and the accuracy of other methods."""
    posteriors, lengths, known = posteriors_by_method[method], sequences.lengths, truth != UNKNOWN
    if not known.any():
        raise ValueError("y has no known label to compare with")
    predicted = posteriors.argmax(axis=1)
    n = model.n_states
    confusion = np.bincount(truth[known] * n + predicted[known], minlength=n * n).reshape(n, n)
    right = np.diagonal(confusion)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = right / confusion.sum(axis=0), right / confusion.sum(axis=1)
        f1 = 2 * right / (confusion.sum(axis=0) + confusion.sum(axis=1))
    of_truth = posteriors[known, truth[known]]
    said, came_true = posteriors[known].max(axis=1), predicted[known] == truth[known]
    true_segments, true_stays = _segments(truth, lengths, n)
    counted = bridged(truth, lengths) != UNKNOWN
    predicted_segments, predicted_stays = _segments(np.where(counted, predicted, UNKNOWN), lengths, n)
    return Evaluation(
        classes=model.classes,
        accuracy=float(right.sum() / confusion.sum()),
        macro_f1=float(np.mean(f1[confusion.sum(axis=1) > 0])),
        log_loss=float(-np.log(np.maximum(of_truth, SMALLEST)).mean()),
        calibration_error=error_of(*bins_of(said, came_true, N_BINS)),
        precision=precision,
        recall=recall,
        f1=f1,
        confusion=confusion,
        true_segments=true_segments,
        predicted_segments=predicted_segments,
        true_stays=true_stays,
        predicted_stays=predicted_stays,
        method=method,
        n_frames=int(known.sum()),
        n_left_out=int((~known).sum()),
        samples=sequences.samples,
        posteriors=posteriors,
        truth=truth,
        lengths=lengths,
        model=model,
        dt=sequences.dt,
        sequence_names=sequence_names,
        method_accuracies={
            one: float((values.argmax(axis=1) == truth)[known].mean()) for one, values in posteriors_by_method.items()
        },
        origin=origin,
        times=sequences.times,
    )


def _segments(codes: Codes, lengths: Lengths, n_states: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Number and mean length of segments; unknown codes between equal ones count."""
    stays = Stays.of(bridged(codes, lengths), lengths)
    numbers = np.bincount(stays.kinds[:, 0], stays.counts, n_states).astype(np.int64)
    frames = np.bincount(stays.kinds[:, 0], stays.counts * stays.kinds[:, 1], n_states)
    with np.errstate(invalid="ignore", divide="ignore"):
        return numbers, frames / numbers


def _figure(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"
