"""The weights of evidence and chain for one kind of answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Exponents kappa_m by member, temper tau of the chain and prior shift beta.

    Without ``shapes``, stays are geometric, even if the model has learned their shapes.
    """

    scales: Mapping[str, float]
    temper: float
    prior_shift: float
    shapes: bool = True
