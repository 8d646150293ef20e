"""How the stored model and its answers were made; run it only for a new format."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from drhmm import DensityRatioHMM
from problems import blobs

FOLDER = Path(__file__).parent

X, y = blobs(7, n_frames=150)
names = np.array(["low", "middle", "high"])
settings = {"n_basis": 12, "sigma": 1.0, "rho": 0.01, "random_state": 0}
model = DensityRatioHMM(window=2, novelty=True, **settings).fit(X, names[y]).model_
model = replace(model, feature_names=("first", "second"))
model = model.with_alarm(model.alarm(1, per=100, hold_off=5))
model.save(FOLDER / "format_5.drhmm")
samples = X[:40] + 0.5
samples[20:30] += 30.0
episodes = [[episode.begin, episode.end] for episode in model.own_alarm.episodes(samples)]
np.savez(FOLDER / "format_5.npz", X=samples, novelty=model.novelty_proba(samples), episodes=episodes)
