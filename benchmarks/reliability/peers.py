"""Smoothed posteriors from log-likelihoods (T, S), as each package computes them from the same array."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings

import numpy as np


def of_drhmm(log_likelihoods, transmat, startprob):
    from drhmm import recursion

    return recursion.smooth(log_likelihoods, transmat, startprob)


def _of_hmmlearn(implementation):
    def smooth(log_likelihoods, transmat, startprob):
        from hmmlearn.base import BaseHMM

        class GivenEvidence(BaseHMM):
            def _compute_log_likelihood(self, X):
                return log_likelihoods[X[:, 0].astype(int)]

            def _check(self):
                pass

        model = GivenEvidence(n_components=len(startprob), implementation=implementation)
        model.transmat_, model.startprob_ = transmat, startprob
        rows = np.arange(len(log_likelihoods))[:, None]  # hmmlearn takes no infinite samples
        return model.score_samples(rows)[1]

    return smooth


def of_deeptime(log_likelihoods, transmat, startprob):
    """Its output models return probabilities, not their logarithms."""
    from deeptime.markov.hmm._hmm_bindings import util

    weights = np.exp(log_likelihoods)
    alpha, beta, gamma = (np.empty_like(weights) for _ in range(3))
    util.forward(transmat, weights, startprob, alpha)
    util.backward(transmat, weights, beta)
    util.state_probabilities(alpha, beta, gamma)
    return gamma


def of_pomegranate(log_likelihoods, transmat, startprob):
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    # Every state must be able to end, or else its own default would add an end state with a probability of its own.
    torch.set_default_dtype(torch.float64)
    n_states = len(startprob)
    states = [Normal([0.0], [1.0], covariance_type="diag") for _ in range(n_states)]
    model = DenseHMM(states, edges=transmat, starts=startprob, ends=np.ones(n_states))
    emissions = torch.tensor(log_likelihoods)[None]
    log_posteriors = model.forward_backward(emissions=emissions)[1][0]
    return torch.exp(log_posteriors).numpy()


def of_dynamax(log_likelihoods, transmat, startprob):
    import jax

    jax.config.update("jax_enable_x64", True)
    from dynamax.hidden_markov_model import hmm_smoother

    return np.asarray(hmm_smoother(startprob, transmat, jax.numpy.asarray(log_likelihoods)).smoothed_probs)


#: name in the table, distribution that must be installed, function
PACKAGES = (
    ("drhmm", "drhmm", of_drhmm),
    ("hmmlearn, log", "hmmlearn", _of_hmmlearn("log")),
    ("hmmlearn, scaling", "hmmlearn", _of_hmmlearn("scaling")),
    ("deeptime", "deeptime", of_deeptime),
    ("pomegranate", "pomegranate", of_pomegranate),
    ("dynamax (64 bits)", "dynamax", of_dynamax),
)


def installed():
    """The packages that can be run here, and the names of those that cannot."""
    there = [(name, smooth) for name, package, smooth in PACKAGES if importlib.util.find_spec(package)]
    absent = [name for name, package, _ in PACKAGES if not importlib.util.find_spec(package)]
    return there, absent


def versions():
    names = dict.fromkeys(package for _, package, _ in PACKAGES if importlib.util.find_spec(package))
    return {name: importlib.metadata.version(name) for name in [*names, "numpy"]}


def quiet(smooth, problem):
    """The posteriors, or the exception that was raised."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return np.asarray(smooth(*problem), dtype=np.float64)
    except Exception as error:  # whatever a package raises is its answer
        return error
