"""
Live
====

A stream takes one observation at a time and returns the same posteriors as batch inference, in microseconds. It handles
missing observations, gaps, lags and restarts.
"""

# %%
# Two streams on one model: one answers at once, the other ten time steps later, given those time steps.

import matplotlib.pyplot as plt
import numpy as np

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import blobs

X, y = blobs(1500, noise=1.0, stay=0.98, random_state=0)
model = DensityRatioHMM(random_state=0).fit(X, y).model_
X_live, y_live = blobs(300, noise=1.0, stay=0.98, random_state=5)
X_live[100:140] = np.nan  # the sensor does not answer

at_once, later = model.stream(), model.stream(lag=10)
filtered, lagged = [], []
for t, x in enumerate(X_live):
    filtered.append(at_once.step(x))
    answer = later.step(x)
    if answer is not None:
        lagged.append(answer)
    if t == 200:  # the process ends here, and another one resumes from the snapshot
        saved = later.snapshot()
        later = model.resume(saved)
lagged.extend(later.pending())  # the last ten, when the sequence has ended
print(f"a snapshot has {len(saved)} bytes")

# %%
# Between time steps 100 and 140 there is no evidence: the posterior tends to the long-run shares of the states until
# the next sample. With the lag, the end of the gap also uses the samples after it.

axes = plotting.sequence(
    X_live,
    {"answered at once": np.array(filtered), "answered ten time steps later": np.array(lagged)},
    states=y_live,
    names=["A", "B", "C"],
    figure=plt.figure(figsize=(9, 5), layout="constrained"),
)
axes[0].axvspan(100, 140, color="#EEEEEE")
axes[0].text(120, 0, "no samples", ha="center", va="center", fontsize=9)
plt.show()

# %%
# After a gap, ``dt`` is the number of steps that have passed. A gap of 3600 steps costs only a few small products.

print(at_once.step(X_live[0], dt=3600).round(3))
