"""Draw `demo_narrow.png`, the front picture for phones: that of ``drhmm demo``, tall and with larger letters."""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import FREQUENCIES, sines, sines_training

random = np.random.RandomState(0)
X, y = sines_training(200, window=4, noise=0.25, random_state=random)
X_test, y_test = sines(1000, noise=0.25, random_state=random)
model = DensityRatioHMM(window=4, random_state=0).fit(X, y)
names = {"frame": "without the chain", "filter": "filtered", "smooth": "smoothed"}
posteriors = {name: model.predict_proba(X_test, method=method) for method, name in names.items()}
with rc_context({"font.size": 11}):
    figure = Figure(figsize=(4.2, 5.6), layout="constrained", dpi=180)
    axes = plotting.sequence(
        X_test, posteriors, states=y_test, names=[f"f = {frequency}" for frequency in FREQUENCIES], figure=figure
    )
    for axis in axes:
        axis.title.set_fontsize(12)
        axis.set_title(axis.get_title(loc="left"), loc="left", fontsize=12, pad=3)
figure.savefig(Path(__file__).parent / "demo_narrow.png")
