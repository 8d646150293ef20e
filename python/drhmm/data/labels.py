"""Labels of any dtype and their integer codes; -1 is the code of an unknown label."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import Lengths, Values, as_values, is_missing, shown
from .sequences import Sequences
from .user_warnings import warn

Codes = npt.NDArray[np.int64]

UNKNOWN = -1

#: Texts that often stand for an unknown label in files.
MISSING = ("NA", "N/A", "nan", "NaN", "None", "null", "NULL")

#: The fewest rows for recognising a shuffled order, and the standard errors allowed for chance.
FEWEST_SHUFFLED, SURE = 300, 3.0

#: An integer as written in files.
_INTEGER = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")


class UnseenLabelError(ValueError):
    """A label that is not among the classes of training, and its row."""

    def __init__(self, label: Any, row: int, classes: npt.NDArray[Any]) -> None:
        example, hint = classes[:1].tolist()[0], ""
        if isinstance(label, str) != isinstance(example, str):
            hint = f", where labels were {'text' if isinstance(example, str) else 'numbers'}, such as {example!r}"
        super().__init__(f"y has the label {label!r} at row {row}, which was never seen in training{hint}")
        self.label, self.row = label, row


def as_labels(y: Any, sequences: Sequences) -> npt.NDArray[Any]:
    """Return one label per row, by sequence; y is a list of arrays if X is one."""
    if sequences.is_list:
        if not isinstance(y, list | tuple) or len(y) != len(sequences.lengths):
            raise ValueError(f"y must be a list of {len(sequences.lengths)} label arrays, one per sequence in X")
        parts = [as_values(part, f"y[{k}]") for k, part in enumerate(y)]
        kinds = {part.dtype.kind for part in parts}
        mixed = len({kind in "US" for kind in kinds}) > 1 and kinds != {"U", "O"}
        if mixed or ("b" in kinds and not kinds.isdisjoint("iuf")):
            raise ValueError(f"y mixes labels of different kinds: {', '.join(str(part.dtype) for part in parts[:5])}")
        for k, (part, length) in enumerate(zip(parts, sequences.lengths, strict=True)):
            if part.shape != (length,):
                raise ValueError(f"y[{k}] must have shape {(length,)}, a label per row of X[{k}], got {part.shape}")
        together = np.concatenate(parts)
        for k, part in enumerate(parts):
            is_lost = part.dtype.kind == "i" and together.dtype.kind != "i"
            for row in np.flatnonzero((part == UNKNOWN) & is_lost):
                raise ValueError(
                    f"y[{k}] has -1 at row {row}, which is unknown among integers, but together the labels are "
                    f"{together.dtype}: give all sequences labels of one dtype"
                )
        return together
    labels = as_values(y, "y")
    n_rows = len(sequences.samples)
    if labels.shape == (n_rows, 1):
        from sklearn.exceptions import DataConversionWarning

        warn("A column-vector y was passed when a 1d array was expected; use y.ravel()", DataConversionWarning)
        labels = labels[:, 0]
    if labels.shape != (n_rows,):
        are_lengths = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.sum() == n_rows
        hint = f": did you mean lengths={shown(labels.tolist(), 30)}?" if are_lengths else ""
        raise ValueError(f"y must have one label per row: shape {(n_rows,)}, got {labels.shape}{hint}")
    return sequences.arrange(labels)


def bridged(codes: Codes, lengths: Lengths) -> Codes:
    """Fill unknown codes between two equal codes of a sequence."""
    known = np.flatnonzero(codes != UNKNOWN)
    filled = codes.copy()
    if len(known) > 0:
        own, sequence = codes[known], np.repeat(np.arange(len(lengths)), lengths)[known]
        belongs = (own[1:] == own[:-1]) & (sequence[1:] == sequence[:-1])
        between = np.repeat(np.where(belongs, own[:-1], UNKNOWN), np.diff(known))
        inside = filled[known[0] : known[-1]]
        inside[inside == UNKNOWN] = between[inside == UNKNOWN]
    return filled


def is_known(labels: npt.NDArray[Any], allow_one: bool, unknown: Any = "auto") -> npt.NDArray[np.bool_]:
    """Mark the known labels: neither missing nor equal to `unknown`.

    "auto" means empty text, and -1 among integers, except if -1 and 1 are the only labels and one class is not enough.
    """
    known = ~is_missing(labels)
    if isinstance(unknown, str) and unknown == "auto":
        if labels.dtype.kind in "OU":
            known &= np.array([not (isinstance(label, str) and not label.strip()) for label in labels], dtype=np.bool_)
        if labels.dtype.kind == "i" and (allow_one or set(np.unique(labels)) != {-1, 1}):
            known &= labels != UNKNOWN
    elif unknown is not None:
        known &= np.array([label != unknown for label in labels.tolist()], dtype=np.bool_)
    return known


def _warn_of_doubtful_labels(labels: npt.NDArray[Any], known: npt.NDArray[np.bool_]) -> None:
    """Warn of classes such as "NA", and of -1 beside 0 and 1 or -2, a class perhaps."""
    values = labels[known]
    for name in MISSING if labels.dtype.kind in "OU" else ():
        if n_rows := int((values == name).sum()):
            warn(
                f"y has the class {name!r} in {n_rows} rows; if it stands for an unknown label, use None or an empty "
                "field; otherwise confirm with unknown=None"
            )
    if labels.dtype.kind != "i" or known.all():
        return
    classes = np.unique(values).tolist()
    if classes == [0, 1] or classes[0] < UNKNOWN:
        warn(
            f"y has -1 in {int((~known).sum())} rows, which stands for an unknown label; if -1 is a class, use "
            "unknown=None or other labels; otherwise confirm with unknown=-1"
        )


def learn_classes(
    labels: npt.NDArray[Any], sequences: Sequences, allow_one: bool = False, unknown: Any = "auto"
) -> tuple[npt.NDArray[Any], Codes]:
    """Return the sorted classes and the code of each label."""
    known = is_known(labels, allow_one, unknown)
    if not known.any():
        return labels[:0], np.full(len(labels), UNKNOWN, dtype=np.int64)
    if isinstance(unknown, str) and unknown == "auto":
        _refuse_two_unknowns(labels, known, sequences)
        _warn_of_doubtful_labels(labels, known)
    values = labels[known]
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise ValueError("y mixes labels that cannot be sorted, such as strings and numbers") from None
    if labels.dtype.kind == "f":
        for place in np.flatnonzero(np.isinf(labels)):
            found = f"{labels[place]} at row {sequences.row(int(place))}"
            raise ValueError(f"y has {found}: a label is finite, or NaN where it is unknown")
        if np.any(classes != np.floor(classes)):
            raise ValueError("y holds fractions: labels are classes. Unknown label type: continuous")
    if len(classes) < 2 and not allow_one:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}): there is no ratio to learn. To tell one class from "
            "everything else, use novelty=True"
        )
    all_codes = np.full(len(labels), UNKNOWN, dtype=np.int64)
    all_codes[known] = codes.reshape(-1)
    return classes, all_codes


def _refuse_two_unknowns(labels: npt.NDArray[Any], known: npt.NDArray[np.bool_], sequences: Sequences) -> None:
    """Raise ValueError for -1 beside None or NaN, except as one of the classes -1, 1."""
    if labels.dtype.kind not in "fO" or known.all():
        return
    minus = [isinstance(label, int | float | np.number) and label == UNKNOWN for label in labels.tolist()]
    if any(minus) and not set(labels[known].tolist()) <= {-1, 1}:
        row, other = sequences.row(minus.index(True)), sequences.row(int(np.flatnonzero(~known)[0]))
        raise ValueError(
            f"y has -1 at row {row} and {labels[~known][0]} at row {other}: either may stand for an unknown label; use "
            "only one of them, unknown=None if -1 is a class, or unknown=-1 if it is not"
        )


def as_classes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Match labels of a file to classes; 1, 1.0 and "1" are equal."""
    if labels.dtype.kind in "mM":
        return labels
    meant = {_spelled(known): known for known in classes.tolist()} | {str(known): known for known in classes.tolist()}
    found = np.empty(len(labels), dtype=object)
    found[:] = [
        None if label is None else meant.get(str(label), meant.get(_spelled(label), label)) for label in labels.tolist()
    ]
    return found


def plain_labels(classes: npt.NDArray[Any]) -> list[Any]:
    """Convert labels to Python values, except dates, which could lose digits."""
    return list(classes) if classes.dtype.kind in "mM" else classes.tolist()


def warn_of_shuffled_rows(sequences: Sequences, codes: Codes, n_classes: int) -> None:
    """Warn if neither labels nor samples depend on the previous row."""
    inside = np.ones(len(codes), dtype=bool)
    inside[np.cumsum([0, *sequences.lengths[:-1]])] = False
    rows = np.flatnonzero(inside)
    if len(rows) < FEWEST_SHUFFLED or (codes == UNKNOWN).any():
        return
    shares = np.bincount(codes, minlength=n_classes) / len(codes)
    chance = float((shares**2).sum())
    if not abs(np.mean(codes[rows] == codes[rows - 1]) - chance) < SURE * math.sqrt(chance * (1 - chance) / len(rows)):
        return
    samples = np.nan_to_num(sequences.samples)
    samples -= samples.mean(axis=0)
    spread = np.maximum(np.mean(samples**2, axis=0), np.finfo(np.float64).tiny)
    follows = np.abs(np.mean(samples[rows] * samples[rows - 1], axis=0)) / spread
    if (follows < SURE / math.sqrt(len(rows))).all():
        warn(
            "neither labels nor samples depend on the previous row, as if rows had been shuffled: give rows in the "
            "order of time, and hold out whole sequences or stretches of time instead of single rows"
        )


def renamed(classes: npt.NDArray[Any], labels: Mapping[Any, Any]) -> npt.NDArray[Any]:
    """Rename labels; a ValueError for an unknown label or an ambiguous name."""
    known = plain_labels(classes)
    for label in labels:
        if label not in known:
            raise ValueError(f"labels has {label!r}, which is not a label of the model: {shown(known, 200)}")
    found = [labels.get(label, label) for label in known]
    if len({isinstance(label, str) for label in found}) > 1:
        left = next(label for label in known if not isinstance(labels.get(label, label), str))
        raise ValueError(
            f"the new labels are partly text, but {left!r} would be {labels.get(left, left)!r}: give every state a text"
        )
    values = as_values(found, "labels")
    nameless = ~is_known(values, allow_one=True, unknown=None) | np.array([label == "" for label in found])
    if nameless.any():
        raise ValueError(f"labels has {found[int(nameless.argmax())]!r} as a name, which stands for an unknown label")
    for label in found:
        if found.count(label) > 1:
            raise ValueError(f"labels gives {label!r} to {found.count(label)} states: their names must differ")
    return values


def _spelled(label: Any) -> str:
    """Normalise the spelling: 1.0 as 1, truth values in lower case."""
    text = str(label)
    number = _INTEGER.fullmatch(text)
    if number is not None:
        return number[1]
    return text.lower() if text.lower() in ("true", "false") else text


def encode(
    labels: Values, classes: Values, sequences: Sequences, *, allow_unknown: bool = False, unknown: Any = "auto"
) -> Codes:
    """Return the codes of labels; unknown labels are -1 if they are allowed."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([code_of.get(label, UNKNOWN) for label in labels.tolist()], dtype=np.int64)
    wrong = codes == UNKNOWN
    if allow_unknown:
        wrong &= is_known(labels, allow_one=True, unknown=unknown)
    for place in np.flatnonzero(wrong):
        raise UnseenLabelError(labels[[place]].tolist()[0], sequences.row(int(place)), classes)
    return codes


def read_labels(
    y: npt.ArrayLike | None, sequences: Sequences, n_states: int | None, allow_one: bool, unknown: Any
) -> tuple[npt.NDArray[Any], Codes]:
    """Return classes and codes; without labels, the classes are 0..n_states-1."""
    if y is None:
        classes, codes = np.arange(0), np.full(len(sequences.samples), UNKNOWN, dtype=np.int64)
    else:
        classes, codes = learn_classes(as_labels(y, sequences), sequences, allow_one, unknown)
    if len(classes) == 0:
        if n_states is None:
            raise ValueError(
                "n_states is needed where no time step is labelled; without it, DensityRatioHMM requires y to be "
                "passed, but the target y is None or holds no known label"
            )
        return np.arange(n_states), codes
    if n_states is not None and n_states != len(classes):
        raise ValueError(f"n_states is {n_states}, but y has {len(classes)} classes: {classes.tolist()}")
    return classes, codes
