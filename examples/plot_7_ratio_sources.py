"""
Where evidence comes from
=========================

The same chain takes ratios from the pool, from kernel least squares alone, from any classifier, from densities, or
from a class of your own. The colours show the evidence of one time step; the titles also the smoothed accuracy.
"""

# %%
# A source of your own needs two methods: learn from frames and soft labels, and turn frames into log ratios.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.linear_model import LogisticRegression

from drhmm import DensityRatioHMM
from drhmm.datasets import moons
from drhmm.plotting import COLORS
from drhmm.ratios import FromClassifier, FromDensities


class NearestMean:
    """Two round clouds of standard deviation 1: the log ratio is a difference of squared distances."""

    def fit(self, frames, targets):
        self.means = targets.T @ frames / targets.sum(axis=0)[:, None]

    def log_ratios(self, frames):
        return -np.square(frames[:, None] - self.means).sum(axis=2) / 2


sources = {
    "the pool (the default)": "pool",
    "kernel least squares alone": "least-squares",
    "a classifier: logistic regression": FromClassifier(LogisticRegression()),
    'densities: FromDensities("kde")': FromDensities("kde"),
    "your own: nearest mean": NearestMean(),
}

# %%
# On two moons a straight line cannot separate single time steps, but the chain compensates for much of it.

X, y = moons(400, noise=0.2, random_state=0)
X_new, y_new = moons(1000, noise=0.2, random_state=1)
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 100), np.linspace(-1.3, 1.8, 70)), axis=-1)
colors = LinearSegmentedColormap.from_list("states", [COLORS[0], "white", COLORS[1]])
figure, panels = plt.subplots(2, 3, figsize=(13, 6.6), layout="constrained")
for axes, (name, source) in zip(panels.flat, sources.items(), strict=False):
    model = DensityRatioHMM(ratio=source, random_state=0).fit(X, y)
    field = model.predict_proba(grid.reshape(-1, 2), method="frame")[:, 1].reshape(grid.shape[:2])
    axes.imshow(field, extent=(-1.8, 2.8, -1.3, 1.8), origin="lower", cmap=colors, vmin=0, vmax=1, alpha=0.7)
    axes.scatter(*X.T, c=np.array(COLORS)[y], s=7, linewidth=0)
    alone, smoothed = (model.score(X_new, y_new, method=method) for method in ("frame", "smooth"))
    axes.set_title(f"{name}\n{alone:.1%} right alone, {smoothed:.1%} smoothed", fontsize=9)
    axes.axis("off")
panels.flat[-1].axis("off")
plt.show()
