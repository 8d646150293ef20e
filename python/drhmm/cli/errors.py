"""What is wrong with a file, and where."""

from __future__ import annotations


def one_line(error: object) -> str:
    """What an error or a text says, in one line that a terminal only prints, whatever the data in it are."""
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


#: What messages say to a user of Python, and what to one of the command line.
IN_FLAGS = {
    "novelty=True": "--novelty",
    "; use sigma='default' and rho='default', or numbers": ": give more rows",
    "what makes a time step unknown is in novelty_columns, and in the columns of an alarm's episodes": "the events of "
    "drhmm stream --false-alarms say which columns make a row unknown",
}


def in_flags(error: object) -> str:
    """The same with the names of flags instead of arguments of Python."""
    line = one_line(error)
    for words, flags in IN_FLAGS.items():
        line = line.replace(words, flags)
    return line


class InputError(ValueError):
    """A mistake in a file of the user, with its place: file, line and column as far as they are known."""

    def __init__(self, message: str, file: object, line: int | None = None, column: str | None = None) -> None:
        place = [str(file)]
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column!r}")
        super().__init__(f"{', '.join(place)}: {message}")


class NamesError(InputError):
    """A line of names is wrong: nothing after it can be understood."""
