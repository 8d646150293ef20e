"""Conversion of text to numbers and names."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from ..data.checks import shown
from ..data.times import as_step

#: Words of truth-value columns, in lower case.
TRUTHS = {"true": "1", "false": "0"}

#: Words for missing values, in lower case.
MISSING = frozenset({"", "na", "nan", "null", "none"})


def is_missing(text: str) -> bool:
    """Test whether a field is missing."""
    return text.strip().lower() in MISSING


def number(text: str) -> float:
    """Parse a finite number, NaN if missing, else raise ValueError."""
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
    """Test for a number, an infinity, a truth value or a missing field."""
    try:
        float(text)
    except ValueError:
        return is_missing(text) or text.strip().lower() in TRUTHS
    return True


def is_integer(text: str) -> bool:
    """Test for an integer in its usual form."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")


def checked_step(step: Any, name: str) -> float | None:
    """Check the time of one step, a number or text with a unit; None if unknown."""
    if isinstance(step, str):
        with contextlib.suppress(ValueError):
            step = float(step)
    return as_step(step, name)


def identity(value: Any) -> str:
    """Return a sequence name as text or integer, equal for 1 in JSON and CSV."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"not a sequence name: {shown(value)} (text or an integer)")
    name = str(value).strip()
    if not name:
        raise ValueError("there is no sequence name")
    return name
