"""How the files of the second format were made; run it only for a new format, and keep the old files.

Those of the first format were made in the same way, by drhmm 0.1 of October 2026, with ``window=2, novelty=True``.
"""

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
model = DensityRatioHMM(window=2, n_basis=12, transition_temper=0.6, random_state=0).fit(X, names[y]).model_
model = replace(model, feature_names=("first", "second"))
model.save(FOLDER / "format_2.drhmm")
samples = X[:20] + 0.5
answers = {method: model.predict_proba(samples, method=method) for method in ("smooth", "filter")}
np.savez(FOLDER / "format_2.npz", X=samples, **answers)
