"""Errors in files, with file, line and column."""

from __future__ import annotations


def one_line(error: object) -> str:
    """Format an error as one line of printable characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


#: Phrases of messages in Python, and their equivalents on the command line.
IN_FLAGS = {
    "novelty=True": "--novelty",
    "; use sigma='default' and rho='default', or numbers": ": give more rows",
    "novelty_columns and an alarm's episodes show the columns that make a time step unknown": "the events of drhmm "
    "stream --false-alarms show the columns that make a row unknown",
}


def in_flags(error: object) -> str:
    """Replace Python arguments in a message by flags."""
    line = one_line(error)
    for words, flags in IN_FLAGS.items():
        line = line.replace(words, flags)
    return line


class InputError(ValueError):
    """A mistake in an input file, with file, line and column if known."""

    def __init__(self, message: str, file: object, line: int | None = None, column: str | None = None) -> None:
        place = [str(file)]
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column!r}")
        super().__init__(f"{', '.join(place)}: {message}")


class NamesError(InputError):
    """An invalid line of names, without which no other line can be read."""
