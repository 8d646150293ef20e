"""How much evidence and chain count for one kind of answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Exponents of the members by name, the temper of the chain and the prior shift: kappa_m, tau and beta.

    Without ``shapes``, stays are geometric, even if the model has learned their shapes.
    """

    scales: Mapping[str, float]
    temper: float
    prior_shift: float
    shapes: bool = True
