"""Cross-validation over whole sequences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from ..data.checks import Lengths, as_values, check_integer, thread_count
from ..data.labels import as_labels, encode
from ..data.sequences import Data, NamedColumns, Rows, Sequences, as_sequences, feature_names_of
from ..data.user_warnings import warn
from ..estimator import DensityRatioHMM
from ..features.frames import random_state_of
from ..model import METHODS, Method, Model
from ..system.progress import no_progress, progress_bar
from ..tuning.folds import N_FOLDS, contiguous_folds, drawn_folds
from .evaluation import Evaluation, by_method, evaluation_of
from .text_tables import printable

#: Hold out sequences one by one, by default, if there are at most this many.
MOST_ONE_BY_ONE = 10

Folds = npt.NDArray[np.int64]


def cross_validate(
    estimator: DensityRatioHMM,
    X: Data,
    y: Data,
    *,
    lengths: Rows = None,
    sequence_id: Rows = None,
    dt: Rows = None,
    n_folds: int | None = None,
    method: Method = "smooth",
    lag: int | None = None,
    random_state: Any = 0,
) -> Evaluation:
    """Evaluate models on whole sequences, each held out in turn.

    The sequences are divided into parts, and a model learned from the other parts labels each part. The figures are
    those of all parts together. A single sequence is cut into blocks.

    The result has the accuracy of each sequence and method. Its ``model`` has learned from all sequences; its ``hint``
    gives advice if the sequences seem to differ.

    Parameters
    ----------
    estimator : DensityRatioHMM
        The settings; not changed.
    X, y, lengths, sequence_id
        As in `DensityRatioHMM.fit`; time steps without a label are learned from, but not evaluated.
    dt, method, lag
        As in `Model.predict_proba`; for learning, a gap ends a sequence.
    n_folds : int, optional
        Number of parts. By default one for each sequence if there are at most 10, and 5 otherwise.
    random_state : int, RandomState or None
        Seed of the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from drhmm import DensityRatioHMM, cross_validate
    >>> from drhmm.datasets import blobs
    >>> X, y = blobs(300, random_state=0)
    >>> person = np.repeat(["Ada", "Bela", "Cleo"], 100)
    >>> evaluation = cross_validate(DensityRatioHMM(n_basis=30, random_state=0), X, y, sequence_id=person)
    >>> list(evaluation.sequence_accuracies)
    ['Ada', 'Bela', 'Cleo']
    """
    if not isinstance(estimator, DensityRatioHMM):
        raise ValueError(f"estimator must be a DensityRatioHMM, got {type(estimator).__name__}")
    sequences, names = as_sequences(X, lengths, sequence_id, dt), feature_names_of(X)
    labels = as_labels(y, sequences)
    folds, words = sequence_folds(sequences.lengths, n_folds, random_state_of(random_state))
    owners: npt.NDArray[Any] | None = None
    if len(sequences.lengths) > 1:
        numbers = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
        owners = numbers if sequence_id is None else sequences.arrange(as_values(sequence_id, "sequence_id"))
    samples: Any = sequences.given if names is None else NamedColumns(sequences.given, names)
    model = clone(estimator).fit(samples, labels, lengths=sequences.unbroken).model_
    model.check_method(method, METHODS, lag)
    return held_out(estimator, model, sequences, labels, folds, words, owners, method, lag)


def sequence_folds(
    lengths: Lengths, n_folds: int | None, random: np.random.RandomState, what: str = "sequences", name: str = "n_folds"
) -> tuple[Folds, str]:
    """Return the part of each row and a description of the parts.

    Parts are whole sequences, or blocks of a single sequence.
    """
    if n_folds is not None:
        check_integer(n_folds, name, low=2)
    if len(lengths) == 1:
        number = N_FOLDS if n_folds is None else n_folds
        if number > lengths[0]:
            raise ValueError(f"{name} is {number}, but the sequence has {lengths[0]} rows")
        return contiguous_folds(lengths, number), f"each of {number} blocks of the sequence held out in turn"
    number = (len(lengths) if len(lengths) <= MOST_ONE_BY_ONE else N_FOLDS) if n_folds is None else n_folds
    if number > len(lengths):
        raise ValueError(f"{name} is {number}, but there are {len(lengths)} {what}")
    folds = np.repeat(drawn_folds(len(lengths), number, random), lengths)
    if number == len(lengths):
        return folds, f"each of {number} {what} held out in turn"
    return folds, f"{len(lengths):,} {what} in {number} parts, each held out in turn"


def held_out(
    estimator: DensityRatioHMM,
    model: Model,
    sequences: Sequences,
    labels: npt.NDArray[Any],
    folds: Folds,
    words: str,
    owners: npt.NDArray[Any] | None = None,
    method: str = "smooth",
    lag: int | None = None,
) -> Evaluation:
    """Evaluate the rows of each fold by a model learned from all other rows.

    Rows of the fold -1 are never held out. The given model has learned from all rows, and defines the classes.
    """
    truth = encode(labels, model.classes, sequences, allow_unknown=True, unknown=estimator.unknown)
    code_of = {label: code for code, label in enumerate(model.classes.tolist())}
    posteriors = {one: np.zeros((len(truth), model.n_states)) for one in METHODS}
    threads, n_folds = thread_count(estimator.n_threads), int(folds.max()) + 1
    progress = progress_bar("held-out parts") if estimator.verbose else no_progress
    for fold in range(n_folds):
        own = folds == fold
        _warn_of_lost_classes(model, truth, own)
        rows, train = sequences.taken(~own)
        learned = _learned(estimator, train, labels[rows], fold)
        rows, test = sequences.taken(own)
        places = np.array([code_of[label] for label in learned.classes.tolist()])
        for one, inferred in by_method(learned, test, method, lag, threads).items():
            posteriors[one][np.ix_(rows, places)] = inferred
        progress(fold + 1, n_folds, "")
    rows, measured = sequences.taken(folds >= 0)
    posteriors = {one: values[rows] for one, values in posteriors.items()}
    names = None if owners is None else owners[rows]
    return evaluation_of(model, measured, posteriors, truth[rows], method, names, words)


def _learned(estimator: DensityRatioHMM, train: Sequences, labels: npt.NDArray[Any], fold: int) -> Model:
    """Fit a model to some sequences without warnings."""
    samples = train.samples.astype(train.dtype, copy=False)
    other = clone(estimator).set_params(verbose=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: Model = other.fit(samples, labels, lengths=train.unbroken).model_
    except ValueError as error:
        raise ValueError(f"without the held-out part {fold}: {error}") from error
    return model


def _warn_of_lost_classes(model: Model, truth: npt.NDArray[np.int64], own: npt.NDArray[np.bool_]) -> None:
    """Warn of labels that only one part has."""
    lost = np.setdiff1d(truth[own], truth[~own])
    for label in model.classes[lost[lost >= 0]].tolist():
        warn(
            f"the label {printable(label)} is in one held-out part only: all its time steps count as wrong, as a "
            "model of the other parts does not know it"
        )
