"""What can go wrong, by name."""

from __future__ import annotations


class ImpossibleDataError(ValueError):
    """The evidence of one frame contradicts every state that the chain can be in.

    Attributes
    ----------
    sequence : int
        Index of the sequence.
    frame : int
        Index of the frame within its sequence.
    row : int
        Index of the frame among all rows of the call.
    """

    def __init__(self, sequence: int, frame: int, row: int) -> None:
        super().__init__(sequence, frame, row)
        self.sequence = sequence
        self.frame = frame
        self.row = row

    def __str__(self) -> str:
        place = f"frame {self.frame} of sequence {self.sequence} (row {self.row})"
        return (
            f"impossible data: the evidence at {place} excludes every state that transmat and startprob allow there; "
            "use a positive floor, a transition prior, or NaN to mark the frame as missing "
            "(known labels are evidence, too)"
        )


class ModelFormatError(ValueError):
    """A file is not a model that this version can read: damaged, incomplete, of another kind or of a newer format."""


class SnapshotError(ValueError):
    """Bytes are not a snapshot that this model can resume: damaged, of another model or of a newer format."""
