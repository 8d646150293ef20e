"""
A raw signal
============

An accelerometer gives 25 samples per second while somebody rests, walks, climbs stairs and runs. The activities differ
in the wave, not in the single sample: a value near zero occurs in all of them. The *context* describes the past of
each time step by means, spreads and changes over windows, and by short convolutions.
"""

# %%
# The default uses the context. ``context=None`` switches it off.

import matplotlib.pyplot as plt

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import accelerometer

X, y = accelerometer(4000, random_state=0)
X_new, y_new = accelerometer(4000, random_state=1)
models = {
    "with the context": DensityRatioHMM(random_state=0).fit(X, y),
    "without it": DensityRatioHMM(context=None, random_state=0).fit(X, y),
}
accuracies = {
    name: {method: model.score(X_new, y_new, method=method) for method in ("smooth", "filter", "frame")}
    for name, model in models.items()
}
for name, found in accuracies.items():
    print(f"{name}: " + ", ".join(f"{method} {accuracy:.2f}" for method, accuracy in found.items()))

# %%
# ``"frame"`` uses no chain. As activities last for a while, the chain helps live (``"filter"``), and most afterwards
# (``"smooth"``). Without the context all are less accurate.
#
# Forty seconds of the new signal: the lower two rows of probabilities have the context.

shown = slice(1000, 2000)
posteriors = {
    f"{spoken}, {name}": model.predict_proba(X_new[shown], method=method)
    for name, model in reversed(models.items())
    for method, spoken in (("filter", "live"), ("smooth", "afterwards"))
}
axes = plotting.sequence(
    X_new[shown, 2:],
    posteriors,
    states=y_new[shown],
    names=models["without it"].classes_,
    columns=["up"],
    times=[t / 25 for t in range(1000)],
    figure=plt.figure(figsize=(9, 7), layout="constrained"),
)
axes[-1].set_xlabel("seconds")
plt.show()

# %%
# The scales and temper for each kind of answer, chosen by cross-validation. Only smoothing uses ``ahead``, the context
# of four time steps later.

for method, tuning in models["with the context"].model_.tunings.items():
    scales = ", ".join(f"{member} {scale:.3f}" for member, scale in tuning.scales.items())
    print(f"{method}: {scales}; temper {tuning.temper:.2f}")
