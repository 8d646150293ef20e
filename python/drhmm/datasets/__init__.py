"""Seeded generators of sequences with known states."""

from __future__ import annotations

from .accelerometer import accelerometer
from .plant import FAULTS, sensors
from .sequences import FREQUENCIES, blobs, markov_chain, moons, rings, sines, sines_training

__all__ = [
    "FAULTS",
    "FREQUENCIES",
    "accelerometer",
    "blobs",
    "markov_chain",
    "moons",
    "rings",
    "sensors",
    "sines",
    "sines_training",
]
