"""Seeded generators of sequences with known states."""

from __future__ import annotations

from .babies import CHANNELS, CONDITIONS, Baby
from .plant import FAULTS, sensors
from .sequences import FREQUENCIES, blobs, markov_chain, moons, rings, sines, sines_training
from .vital_signs import monitor

__all__ = [
    "CHANNELS",
    "CONDITIONS",
    "FAULTS",
    "FREQUENCIES",
    "Baby",
    "blobs",
    "markov_chain",
    "monitor",
    "moons",
    "rings",
    "sensors",
    "sines",
    "sines_training",
]
