"""Target: fits, partial fits and ratio sources with data, labels, weights and settings of every kind."""

from __future__ import annotations

import warnings

import numpy as np
from layouts import bytes_of, lay_out, odd
from recursions import lengths_of

from drhmm import DensityRatioHMM
from drhmm.ratios import LeastSquares, TwoClass

SETTINGS = {
    "n_states": [None, None, 2, 3, 0, -1, 1.5, "three", 10**9],
    "n_basis": [5, 5, 1, 100, 0, -3, 2.5, "many", 10**12],
    "sigma": [1.0, 1.0, "default", 1e-100, 1e100, 0.0, -1.0, np.nan, np.inf, "text", None],
    "rho": [0.01, 0.01, "default", 1e-100, 1e100, 0.0, -1.0, np.nan, "text"],
    "floor": [0.01, 0.01, 0.0, 0.99, 1.0, -0.1, np.nan, "text"],
    "evidence_scale": [1.0, 1.0, "cv", 0.0, 1e-5, 1e50, np.inf, "text"],
    "standardize": [True, True, False],
    "window": [1, 1, 2, 5, 0, 10**12, 2**63, 1.5],
    "transition_prior": [1.0, 1.0, 0.0, 1e-300, 1e50, -1.0, np.nan, np.ones((2, 2)), "text"],
    "novelty": [False, False, True],
    "novelty_rate": [1e-3, 1e-3, 0.0, 1.0, 1e-300, np.nan],
    "novelty_duration": [50.0, 50.0, 0.5, 1e300, np.inf],
    "max_iter": [3, 3, 1, 0, 1.5],
    "tol": [1e-4, 0.0, -1.0, np.nan],
    "em_update": ["soft", "soft", "paper", "text"],
    "class_weight": [None, None, "balanced", {0: 1.0, 1: 2.0}, {0: 0.0}, "text"],
    "random_state": [0, 1, None, -1, 1.5, "text"],
    "n_threads": [1, 2, 0, -1, 10**6, 1.5],
}


def prepare():
    return None


def labels(random, n_rows):
    y = np.arange(n_rows) // 4 % 2
    y[-1] = 1
    chance = random.random()
    if chance < 0.7:
        return y
    choices = [
        np.array(["a", "b"])[y],
        np.where(random.random(n_rows) < 0.5, -1, y),
        y * 1.0,
        np.where(random.random(n_rows) < 0.3, np.nan, y),
        None,
        y.astype(bool),
        y[:-1],
        np.zeros(n_rows),
        np.full(n_rows, -1),
        np.arange(n_rows),
        np.array([None, "a", 1, np.nan, (1, 2)] * n_rows, dtype=object)[:n_rows],
        y.tolist(),
        y.astype("M8[s]"),
        np.full(n_rows, np.inf),
        y[:, None],
        "text",
        1,
        np.full(n_rows, 2**63, dtype=np.uint64),
    ]
    return choices[random.integers(len(choices))]


def settings(random):
    """Cheap settings, two of them changed at random."""
    chosen = {"n_basis": 5, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0, "max_iter": 3}
    for name in random.choice(list(SETTINGS), size=random.choice([0, 0, 1, 2]), replace=False):
        chosen[str(name)] = SETTINGS[name][random.integers(len(SETTINGS[name]))]
    if random.random() < 0.02:
        chosen |= {"sigma": "cv", "rho": "cv"}
    return chosen


def run(random, _):
    n_rows = int(random.choice([3, 12, 40]))
    X = random.normal(size=(n_rows, 2)) * random.choice([1.0, 1.0, 1e-150, 1e60, 1e-310]) + random.choice([0.0, 1e6])
    if random.random() < 0.2:
        X[random.random(X.shape) < 0.1] = np.nan
    y, lengths = labels(random, n_rows), lengths_of(random, n_rows)[0]
    weights = None if random.random() < 0.8 else odd(random, random.random(n_rows))
    given = lay_out(random, X) if random.random() < 0.85 else odd(random, X)
    before = [bytes_of(value) for value in (given, y, weights)]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if random.random() < 0.2:
                outcome = sources(random, given, weights, n_rows)
            else:
                outcome = estimator(random, given, y, lengths, weights, X)
    except (ValueError, TypeError, MemoryError) as error:
        assert isinstance(error, MemoryError) or len(str(error)) > 10, repr(error)
        outcome = "refused"
    assert before == [bytes_of(value) for value in (given, y, weights)], "an input was changed"
    return outcome


def estimator(random, given, y, lengths, weights, X):
    """Fit or partial fit; a fit that is refused leaves nothing, one that is not predicts probabilities."""
    learner = DensityRatioHMM(**settings(random))
    try:
        if random.random() < 0.2:
            for _ in range(int(random.integers(1, 3))):
                learner.partial_fit(given, y, lengths=lengths, sample_weight=weights)
        else:
            learner.fit(given, y, lengths=lengths, sample_weight=weights)
    except BaseException:
        if not hasattr(learner, "model_"):
            raise
        learner.predict(np.zeros((3, learner.model_.n_features)))  # an earlier block was learned from
        raise
    model = learner.model_
    for values in (model.transmat, model.startprob, model.prior, model.evidence.theta):
        assert np.isfinite(values).all(), "what was learned is not finite"
    n_columns = model.n_features
    plain = X if n_columns == 2 else random.normal(size=(5, n_columns))
    posteriors = model.predict_proba(plain)
    assert np.isfinite(posteriors).all() and np.abs(posteriors.sum(axis=1) - 1).max() < 1e-9
    return "plausible"


def sources(random, given, weights, n_rows):
    """Ratio sources on their own."""
    if random.random() < 0.5:
        targets = odd(random, np.eye(2)[random.integers(2, size=n_rows)])
        source = LeastSquares(n_basis=5, sigma=1.0, rho=0.01, random_state=0).fit(given, targets, weights)
        answer = source.log_ratios(given)
        assert np.isfinite(source.theta_).all(), "what was learned is not finite"
    else:
        source = TwoClass(sigma=1.0, rho=0.01, random_state=0)
        targets = odd(random, np.eye(2)[random.integers(2, size=n_rows)])
        answer = source.fit(given, targets).log_ratios(given)
    assert not np.isnan(answer).any() or np.isnan(np.array(given, dtype=np.float64)).any(), "NaN in log ratios"
    return "plausible"
