"""
Something unknown
=================

With ``novelty=True`` the chain has one more state, the unknown. It needs no examples: its evidence is the distance from
the training data, and two numbers give its expected rate and duration.
"""

# %%
# A signal with two labelled regimes; the test signal has an event outside both, and a single outlier.

import matplotlib.pyplot as plt
import numpy as np

from drhmm import DensityRatioHMM
from drhmm.datasets import markov_chain

random = np.random.RandomState(0)


def two_levels(n_samples, seed):
    states = markov_chain(n_samples, [[0.99, 0.01], [0.02, 0.98]], random_state=seed)
    level = np.array([[0.0, 1.0], [2.0, -1.0]])[states]
    return level + 0.4 * random.standard_normal((n_samples, 2)), states


X, y = two_levels(2000, 1)
model = DensityRatioHMM(novelty=True, novelty_rate=1e-3, novelty_duration=50, random_state=0).fit(X, y)

X_new, y_new = two_levels(600, 2)
X_new[350:420] = [-3.0, -2.0] + 0.4 * random.standard_normal((70, 2))  # an event without labels
X_new[150] += 4.0  # one odd sample

# %%
# The score of one time step is high for every outlier. The probability weighs it against the rate and the duration:
# during the event it stays near 1, after the single outlier it falls within a few time steps. If a missed event costs
# ten times as much as a false alarm, the alarm level is 1 / (1 + 10), the dotted line.

figure, panels = plt.subplots(3, 1, figsize=(9, 5), sharex=True, layout="constrained")
panels[0].plot(X_new, linewidth=0.8)
panels[0].set_title("the signal", loc="left", fontsize=9)
panels[1].plot(model.novelty_score(X_new), color="#666666", linewidth=0.8)
panels[1].set_title("score of each time step alone", loc="left", fontsize=9)
panels[2].plot(model.novelty_proba(X_new), color="#D55E00", label="filtered, for alarms")
panels[2].plot(model.novelty_proba(X_new, method="smooth"), color="#0072B2", linewidth=1, label="smoothed, for reports")
panels[2].axhline(1 / 11, color="#666666", linewidth=0.8, linestyle=":")
panels[2].set_title("probability of something unknown; dotted: 1 / 11", loc="left", fontsize=9)
panels[2].legend(frameon=False, fontsize=9)
panels[2].set_xlabel("time step")
for axes in panels:
    axes.axvspan(350, 420, color="#F0E442", alpha=0.3, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``predict`` can label it.

labels = model.predict(X_new, novelty_label=-1)
print(f"{np.mean(labels[350:420] == -1):.0%} of the event found; also unknown: {np.flatnonzero(labels[:350] == -1)}")

# %%
# At (1.0, 2.5) the same event is closer to the first regime. It is found, too.

near = X_new.copy()
near[350:420] = [1.0, 2.5] + 0.4 * random.standard_normal((70, 2))
print(f"{np.mean(model.predict(near, novelty_label=-1)[350:420] == -1):.0%} of the near event found")
