"""
No labels at all
================

Three concentric rings are neither clusters nor Gaussians. But the sequence stays on a ring for about twenty time steps,
and expectation maximisation finds the rings from that.
"""

# %%
# Only ``n_states`` is given. EM starts from clusters of time steps, averaged over their neighbours, and alternates
# between soft labels and density ratios.

from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from drhmm import DensityRatioHMM
from drhmm.datasets import rings
from drhmm.plotting import COLORS

X, y = rings(1000, random_state=0)
model = DensityRatioHMM(n_states=3, random_state=0).fit(X)
found = model.predict(X)
print(f"EM ended after {model.n_iter_} iterations; transitions:\n{model.transmat_.round(3)}")

# %%
# The states of EM have no names, so the accuracy is that of the best naming.


def accuracy(states):
    return max(np.mean(np.array(order)[states] == y) for order in permutations(range(3)))


clusters = KMeans(3, n_init=10, random_state=0).fit_predict(X)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for axes, states, title in ((left, clusters, "k-means"), (middle, found, "density ratio HMM")):
    axes.scatter(*X.T, c=np.array(COLORS)[states], s=9, linewidth=0)
    axes.set_title(f"{title}: {accuracy(states):.1%} right", fontsize=10)
    axes.set_aspect("equal")
    axes.axis("off")
right.plot(np.arange(1, model.n_iter_ + 1), model.history_, marker="o", markersize=4, color="#333333")
right.set(xlabel="iteration", ylabel="gain over independent time steps, nats per time step")
right.set_title("EM", fontsize=10)
right.spines[["top", "right"]].set_visible(False)
plt.show()
