"""Exceptions of drhmm."""

from __future__ import annotations


class ImpossibleDataError(ValueError):
    """The evidence of a time step contradicts all states that the chain allows.

    Its place: ``frame`` counts within the ``sequence``, ``row`` among all rows of the call.

    Examples
    --------
    >>> import numpy as np
    >>> from drhmm import recursion
    >>> recursion.smooth([[0.0, -np.inf], [-np.inf, 0.0]], np.eye(2), [0.5, 0.5])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    drhmm.exceptions.ImpossibleDataError: impossible data: the evidence at time step 1 of sequence 0 (row 1) ...
    """

    def __init__(self, sequence: int, frame: int, row: int) -> None:
        super().__init__(sequence, frame, row)
        self.sequence = sequence
        self.frame = frame
        self.row = row

    def __str__(self) -> str:
        place = f"time step {self.frame} of sequence {self.sequence} (row {self.row})"
        return (
            f"impossible data: the evidence at {place} excludes every state that transmat and startprob allow there; "
            "use a positive floor, a transition prior, or NaN to mark the time step as missing "
            "(known labels are evidence, too)"
        )


class ModelFormatError(ValueError):
    """A file is not a readable model: damaged, incomplete, or of another format.

    Examples
    --------
    >>> import drhmm
    >>> drhmm.load(drhmm.__file__)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    drhmm.exceptions.ModelFormatError: ...
    """


class SnapshotError(ValueError):
    """Bytes are not a snapshot of this model: damaged, or of another model or format.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_.resume(b"of another model")
    Traceback (most recent call last):
    drhmm.exceptions.SnapshotError: not a snapshot of drhmm
    """
