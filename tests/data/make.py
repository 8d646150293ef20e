"""How the files of the first format were made; run it only for a new format, and keep the old files."""

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
model = DensityRatioHMM(window=2, novelty=True, n_basis=12, random_state=0).fit(X, names[y]).model_
model = replace(model, feature_names=("first", "second"))
model.save(FOLDER / "format_1.drhmm")
stream, samples = model.stream(), X[:20] + 0.5
for x in samples[:5]:
    stream.step(x)
np.savez(
    FOLDER / "format_1.npz",
    X=samples,
    posteriors=model.predict_proba(samples),
    filtered=model.predict_proba(samples, method="filter"),
    snapshot=np.frombuffer(stream.snapshot(), np.uint8),
)
