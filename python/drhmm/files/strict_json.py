"""Strict JSON: unique names and no NaN."""

from __future__ import annotations

import json
from typing import Any


def strict_json(text: bytes | str) -> Any:
    """Parse JSON with unique names and without NaN; else ValueError or RecursionError."""
    return json.loads(text, object_pairs_hook=unique_names, parse_constant=_refuse)


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; a ValueError for a repeated name."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
