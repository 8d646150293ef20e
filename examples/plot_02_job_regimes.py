"""
Regimes in a price series
=========================

Without labels: how many regimes does a series have, what are they, and when did they change? The prices are simulated,
with calm, nervous and panicking days.
"""

import matplotlib.pyplot as plt
import numpy as np

from drhmm import DensityRatioHMM, plotting, select_states
from drhmm.datasets import markov_chain

random = np.random.RandomState(0)
regimes = markov_chain(800, [[0.98, 0.02, 0], [0.02, 0.96, 0.02], [0, 0.06, 0.94]], random_state=1)
returns = np.array([0.4, 1.3, 4.0])[regimes] * random.standard_normal(800)
prices = 100 * np.exp(np.cumsum(returns) / 100)
X = np.log(np.abs(np.diff(np.log(prices), prepend=np.log(100))) + 1e-5)[:, None]

# %%
# The number of states that predicts held-out days best, or the smallest that is hardly worse. Of the three regimes
# it finds two: the days of panic are too few to predict better with a state of their own.

numbers = select_states(X, range(2, 5), random_state=0)
numbers.plot()

# %%
# The states:

model = DensityRatioHMM(numbers.n_states, random_state=0).fit(X)
print(model.model_.summary())

# %%
# The probability of each state on every day. EM numbers the states in any order. As the prices are simulated, we know
# the true regimes, and assign each state to the regime with which it shares most days.

posteriors = model.predict_proba(X)
shared = np.eye(3)[regimes].T @ posteriors  # days that each regime shares with each state
by_regime = posteriors @ np.eye(3)[shared.argmax(axis=0)]
plotting.sequence(prices[:, None], by_regime, states=regimes, names=["calm", "nervous", "panic"])
plt.show()
