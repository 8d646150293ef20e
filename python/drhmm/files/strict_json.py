"""JSON of files that nobody should have changed: every name once, and numbers only."""

from __future__ import annotations

import json
from typing import Any


def strict_json(text: bytes | str) -> Any:
    """JSON without names that occur twice and without NaN; a ValueError, or a RecursionError, for anything else."""
    return json.loads(text, object_pairs_hook=unique_names, parse_constant=_refuse)


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a ValueError if a name occurs twice."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
