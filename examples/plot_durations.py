"""
States that last about equally long
===================================

A washing machine does not stop in the middle of a rinse. But in a Markov chain the most frequent stay has length 1, for
any mean. If time steps are noisy and stays are regular, a model of durations labels more time steps correctly.
"""

# %%
# Noisy sines switch between three frequencies. Every stay has 20 to 40 samples, and all of these lengths are equally
# probable.

import matplotlib.pyplot as plt

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import sines

X, y = sines(3000, noise=0.5, durations=(20, 40), random_state=0)
X_new, y_new = sines(1500, noise=0.5, durations=(20, 40), random_state=1)

settings = {"window": 4, "n_basis": 200, "random_state": 0}
plain = DensityRatioHMM(durations="geometric", **settings).fit(X, y)
regular = DensityRatioHMM(**settings).fit(X, y)

# %%
# The shape of a state is the number of successive stages of a stay, learned from the labels. One stage is a plain
# chain; more stages make stays more regular. The default (``durations="auto"``) keeps the shapes if they clearly label
# held-out data better, as here; ``"geometric"`` is the plain chain.

for name, model in (("plain", plain), ("regular", regular)):
    durations = model.model_.durations
    print(f"{name}: mean stays {durations.mean.round(1)}, shapes {durations.shape}")
names = ["slow", "middle", "fast"]
plotting.durations(regular.model_.durations, y, names=names, figure=plt.figure(figsize=(8, 4.6), layout="constrained"))
plt.show()

# %%
# In new data the plain chain is uncertain. The other model expects a change after about thirty samples, and finds most
# of the stays.

shown = slice(1000, 1500)
posteriors = {
    "plain chain": plain.predict_proba(X_new)[shown],
    "durations learned": regular.predict_proba(X_new)[shown],
}
plotting.sequence(
    X_new[shown],
    posteriors,
    states=y_new[shown],
    names=names,
    figure=plt.figure(figsize=(10, 5.5), layout="constrained"),
)
plt.show()
for name, model in (("plain", plain), ("regular", regular)):
    scores = {method: model.score(X_new, y_new, method=method) for method in ("smooth", "filter", "viterbi")}
    print(name, {method: f"{score:.1%}" for method, score in scores.items()})

# %%
# If only the shortest stay is known, ``min_duration`` also helps a little, without learning.

least = DensityRatioHMM(min_duration=20, **settings).fit(X, y)
print(f"at least 20 samples: {least.score(X_new, y_new):.1%}")

# %%
# Live, the same model answers one time step after the other, with probabilities of states, not of stages.

stream = regular.stream(lag=10)
for x in X_new[:200]:
    posterior = stream.step(x)
print(f"ten time steps ago: {names[posterior.argmax()]}, truly {names[y_new[189]]}")
