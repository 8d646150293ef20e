"""
A few labels
============

Labels are expensive. Here four time steps of each state have one, and 792 do not: the labels name the states, and the
unlabelled time steps determine their shape.
"""

# %%
# ``-1`` marks an unknown label (NaN among floats, None among objects); ``unknown=-1`` confirms it. By default the other
# rows are used only if they help to predict hidden labels. Eight labels are too few for this test, so we decide.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from drhmm import DensityRatioHMM
from drhmm.datasets import moons
from drhmm.plotting import COLORS

X, y = moons(800, noise=0.15, random_state=4)
known = np.concatenate([np.flatnonzero(y == state)[:4] for state in (0, 1)])
few = np.full(len(y), -1)
few[known] = y[known]

with_all = DensityRatioHMM(unknown=-1, unlabelled="use", random_state=0).fit(X, few)
labels_only = DensityRatioHMM(unknown=-1, unlabelled="ignore", random_state=0).fit(X, few)

# %%
# The background shows the evidence of a single time step, without the chain.

grid = np.stack(np.meshgrid(np.linspace(-1.7, 2.7, 120), np.linspace(-1.2, 1.7, 80)), axis=-1)
colors = LinearSegmentedColormap.from_list("states", [COLORS[0], "white", COLORS[1]])
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for axes, model, title in ((panels[0], labels_only, "8 labelled time steps"), (panels[1], with_all, "and 792 without")):
    field = model.predict_proba(grid.reshape(-1, 2), method="frame")[:, 1].reshape(grid.shape[:2])
    axes.imshow(field, extent=(-1.7, 2.7, -1.2, 1.7), origin="lower", cmap=colors, vmin=0, vmax=1, alpha=0.5)
    if model is with_all:
        axes.scatter(*X.T, c=np.array(COLORS)[y], s=7, linewidth=0)
    axes.scatter(*X[known].T, c=np.array(COLORS)[y[known]], s=80, edgecolor="black", linewidth=1.3)
    axes.set_title(f"{title}: {model.score(X, y):.1%} of time steps right", fontsize=10)
    axes.axis("off")
plt.show()
