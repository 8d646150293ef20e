"""
Evidence of your own: counts
============================

`drhmm.recursion` runs the chain on evidence of your own: any array of log-likelihoods, or of log posteriors minus log
priors. Here it is a Poisson model of counts, which drhmm itself does not have.
"""

# %%
# Requests per minute to a service that is quiet, busy or under attack. An attack follows a busy time and ends in a
# quiet one: the zeros in the matrix forbid everything else, and stay exact zeros.

import matplotlib.pyplot as plt
import numpy as np

from drhmm import plotting, recursion
from drhmm.datasets import markov_chain

names = ["quiet", "busy", "attack"]
transmat = np.array([[0.97, 0.03, 0.0], [0.03, 0.95, 0.02], [0.06, 0.0, 0.94]])
startprob = np.array([1.0, 0.0, 0.0])
rates = np.array([6.0, 11.0, 18.0])

states = markov_chain(400, transmat, startprob, random_state=9)
counts = np.random.RandomState(1).poisson(rates[states]).astype(float)
counts[250:265] = np.nan  # these minutes are missing

# %%
# Log-likelihoods need no constant: log(count!) is the same for every state and can be left out. A row of NaN is a
# missing time step.

log_likelihoods = counts[:, None] * np.log(rates) - rates

alone = recursion.filter(log_likelihoods, transmat, np.ones(3) / 3, lengths=np.ones(400, dtype=int))
filtered = recursion.filter(log_likelihoods, transmat, startprob)
smoothed = recursion.smooth(log_likelihoods, transmat, startprob)
path = recursion.viterbi(log_likelihoods, transmat, startprob)

plotting.sequence(
    counts[:, None],
    {"each minute alone": alone, "filtered": filtered, "smoothed": smoothed, "the most probable path": np.eye(3)[path]},
    states=states,
    names=names,
    figure=plt.figure(figsize=(9, 6.5), layout="constrained"),
)
plt.show()

# %%
# Evidence that contradicts the chain raises an error with its place.

from drhmm import ImpossibleDataError

certain = np.zeros((3, 3))
certain[1] = [-np.inf, -np.inf, 0.0]  # certainly an attack, but none can follow a quiet minute at once
try:
    recursion.smooth(certain, transmat, startprob)
except ImpossibleDataError as error:
    print(error)
