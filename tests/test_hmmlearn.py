"""An independent package gives the same posteriors and paths."""

from __future__ import annotations

import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM
from numpy.testing import assert_allclose

from drhmm import recursion
from drhmm.reference import recursion as reference
from problems import transition_matrix


def gaussian_hmm(seed, n_states, kind):
    random = np.random.default_rng(seed)
    model = GaussianHMM(n_components=n_states, covariance_type="diag")
    model.transmat_ = transition_matrix(random, n_states, kind)
    model.startprob_ = random.dirichlet(np.ones(n_states))
    model.means_ = random.normal(size=(n_states, 2)) * 2
    model.covars_ = random.uniform(0.5, 2, size=(n_states, 2))
    return model


@pytest.mark.grid(7)
@pytest.mark.parametrize("n_frames", [1, 2, 10, 300, 5000])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_states", range(1, 21))
def test_posteriors_and_path(n_states, kind, n_frames):
    model = gaussian_hmm(n_states, n_states, kind)
    X, _ = model.sample(n_frames, random_state=n_states)
    log_ratios = model._compute_log_likelihood(X)
    problem = (log_ratios, model.transmat_, model.startprob_)
    assert_allclose(recursion.smooth(*problem), model.predict_proba(X), atol=1e-10)
    with np.errstate(divide="ignore"):
        path = model.decode(X)[1]
    assert_allclose(
        reference.path_log_probability(recursion.viterbi(*problem), *problem),
        reference.path_log_probability(path, *problem),
        rtol=1e-12,
    )
