"""Text to numbers and labels, with one idea of what "nothing" is."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from ..data.checks import shown
from ..data.times import as_step

#: Words, in lower case, of columns that hold truth values.
TRUTHS = {"true": "1", "false": "0"}

#: Words, in lower case, that stand for a value that is not there.
MISSING = frozenset({"", "na", "nan", "null", "none"})


def is_missing(text: str) -> bool:
    """Whether a field stands for nothing."""
    return text.strip().lower() in MISSING


def number(text: str) -> float:
    """A finite number, or NaN for nothing; a ValueError in words for anything else."""
    if is_missing(text):
        return math.nan
    try:
        value = float(TRUTHS.get(text.strip().lower(), text))
    except ValueError:
        value = math.nan
    if math.isnan(value) or "_" in text:
        raise ValueError(f"not a number: {shown(text)} (an empty field is a missing value)")
    if math.isinf(value):
        raise ValueError(f"an infinite value: {shown(text)}")
    return value


def is_number(text: str) -> bool:
    """Whether a field is a number, an infinite one among them, a truth value, or nothing."""
    try:
        float(text)
    except ValueError:
        return is_missing(text) or text.strip().lower() in TRUTHS
    return True


def is_integer(text: str) -> bool:
    """Whether text is an integer as it is usually written."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def checked_step(step: Any, name: str) -> float | None:
    """The time of one step, a number or text with a unit; None if it is not known."""
    if isinstance(step, str):
        with contextlib.suppress(ValueError):
            step = float(step)
    return as_step(step, name)


def identity(value: Any) -> str:
    """A sequence by its name: text or an integer, the same for 1 in JSON and in CSV."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"not a name of a sequence: {shown(value)} (text or an integer)")
    name = str(value).strip()
    if not name:
        raise ValueError("there is no name of a sequence")
    return name
