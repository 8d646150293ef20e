"""Seeded generators of samples X, one column per sensor, and their states y.

Examples
--------
>>> from drhmm import datasets
>>> [draw(500, random_state=0)[0].shape for draw in (datasets.blobs, datasets.moons, datasets.rings)]
[(500, 2), (500, 2), (500, 2)]
>>> X, y = datasets.sines(5, random_state=0)
>>> X.shape, y
((5, 1), array([1, 1, 1, 1, 1]))
>>> X, y = datasets.sines_training(100, random_state=0)
>>> len(X), X[0].shape
(3, (103, 1))
>>> X, y = datasets.accelerometer(2000, random_state=0)
>>> X.shape, sorted(set(y.tolist()))
((2000, 3), ['rest', 'run', 'stairs', 'walk'])
>>> X, y = datasets.sensors(2000, faults=("bias", "stuck"), random_state=0)
>>> sorted(set(y.tolist()))
['bias', 'normal', 'stuck']
>>> datasets.markov_chain(4, [[0.0, 1.0], [1.0, 0.0]], [1.0, 0.0], random_state=0)
array([0, 1, 0, 1])
"""

from __future__ import annotations

from .plant import FAULTS, sensors
from .sequences import FREQUENCIES, accelerometer, blobs, markov_chain, moons, rings, sines, sines_training

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
