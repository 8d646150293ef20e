"""
One step of the chain on a ratio
================================

Two states, each kept with probability a. Between two time steps the chain moves the ratio of their probabilities
towards 1, the more the smaller a is: the first figure of the paper.
"""

# %%
# A missing time step has no evidence, so filtering a time step with evidence and one of NaN gives the predicted ratio.

import matplotlib.pyplot as plt
import numpy as np

from drhmm import recursion

ratios = np.logspace(-4, 4, 161)
figure, axes = plt.subplots(figsize=(5.5, 4.6), layout="constrained")
for stay in (0.5, 0.8, 0.95, 0.99, 0.999, 1.0):
    evidence = np.array([[[np.log(ratio), 0.0], [np.nan, np.nan]] for ratio in ratios]).reshape(-1, 2)
    transmat = [[stay, 1 - stay], [1 - stay, stay]]
    posteriors = recursion.filter(evidence, transmat, [0.5, 0.5], lengths=[2] * len(ratios))[1::2]
    color = plt.get_cmap("viridis")(0.9 * (np.log10(1.001 - stay) + 3) / 2.7)
    axes.loglog(ratios, posteriors[:, 0] / posteriors[:, 1], color=color, label=f"a = {stay:g}")
axes.set(xlabel="ratio after a time step", ylabel="ratio predicted for the next time step")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# With a = 0.5 the past is forgotten at once, with a = 1 never. In between the predicted ratio is at most a / (1 - a):
# however certain one time step is, stronger evidence of the next one reverses it.
