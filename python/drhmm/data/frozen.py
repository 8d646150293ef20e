"""Frozen dataclasses whose arrays cannot be written to, wherever they were sent."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from .checks import read_only


class FrozenArrays:
    """The base of a frozen dataclass: arrays are read-only, also after pickling, which makes the object anew."""

    def __post_init__(self: Any) -> None:
        for item in fields(self):
            if item.init and isinstance(getattr(self, item.name), np.ndarray):
                object.__setattr__(self, item.name, read_only(getattr(self, item.name)))

    def __reduce__(self: Any) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, item.name) for item in fields(self) if item.init)
