"""
Labelled sequences
==================

A noisy sine switches between three frequencies, and one sequence of each is labelled. The model learns density ratios
of short windows, and a chain models how long a regime lasts.
"""

# %%
# The training data are a list of three sequences, one per regime. ``window=4`` describes each time step by four
# samples. Cross-validation chooses the width and the regularisation of the kernels.

import matplotlib.pyplot as plt

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import sines, sines_training

X, y = sines_training(200, random_state=0)
stay = [[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]]
model = DensityRatioHMM(window=4, transmat=stay, random_state=0).fit(X, y)
print(f"sigma {model.sigma_:.2f}, rho {model.rho_:g}, evidence scale {model.evidence_scale_:g}")

# %%
# The training sequences never switch, so the transition matrix is given here, and the evidence scale is 1. If your
# sequences do switch, leave the matrix out: transitions are counted, and the scale is learned.
#
# Single time steps are often wrong. Filtering adds the past, and smoothing also adds the future.

X_new, y_new = sines(600, random_state=1)
plotting.sequence(
    X_new,
    {
        "without the chain": model.predict_proba(X_new, method="frame"),
        "filtered: past and present": model.predict_proba(X_new, method="filter"),
        "smoothed: the whole sequence": model.predict_proba(X_new),
    },
    states=y_new,
    names=["slow", "middle", "fast"],
    figure=plt.figure(figsize=(9, 6), layout="constrained"),
)
plt.show()
