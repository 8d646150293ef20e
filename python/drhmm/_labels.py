"""Labels of any dtype, as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._sequences import Sequences

Codes = npt.NDArray[np.int64]


def as_labels(y: Any, sequences: Sequences, name: str = "y") -> npt.NDArray[Any]:
    """One label per row, in the order of the sequences; a list of arrays where X is one."""
    if sequences.is_list:
        if not isinstance(y, list | tuple) or len(y) != len(sequences.lengths):
            raise ValueError(f"{name} must be a list of {len(sequences.lengths)} label arrays, one per sequence in X")
        parts = [np.asarray(part) for part in y]
        for k, (part, length) in enumerate(zip(parts, sequences.lengths, strict=True)):
            if part.shape != (length,):
                raise ValueError(f"{name}[{k}] must have shape {(length,)} as X[{k}] has rows, got {part.shape}")
        return np.concatenate(parts)
    labels = np.asarray(y)
    n_rows = len(sequences.samples)
    if labels.shape == (n_rows, 1):
        labels = labels[:, 0]
    if labels.shape != (n_rows,):
        raise ValueError(f"{name} must have one label per row: shape {(n_rows,)}, got {labels.shape}")
    return sequences.arrange(labels)


def learn_classes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Codes]:
    """Sorted classes and the code of every label."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y has {labels[row]} at row {row}: every label must be known")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError("y mixes labels that cannot be sorted, such as strings and numbers") from None
    if labels.dtype.kind == "f" and np.any(classes != np.floor(classes)):
        raise ValueError("y holds fractions: labels are classes. Unknown label type: continuous")
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes[0]!r}): there is no ratio to learn")
    return classes, codes.astype(np.int64).reshape(-1)


def encode(labels: npt.NDArray[Any], classes: npt.NDArray[Any], name: str = "y") -> Codes:
    """Codes of labels whose classes are known."""
    try:
        position = np.searchsorted(classes, labels)
        known = classes[np.minimum(position, len(classes) - 1)] == labels
    except TypeError:
        known = np.zeros(len(labels), dtype=bool)
    if not np.all(known):
        row = int(np.flatnonzero(~np.asarray(known))[0])
        raise ValueError(f"{name} has the label {labels[row]!r} at row {row}, which was never seen in training")
    return position.astype(np.int64)
