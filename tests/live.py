"""Small models of every kind that streams and files are tested with, learned once."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from drhmm import DensityRatioHMM, ImpossibleDataError
from drhmm.chain.durations import stages_of
from drhmm.ratios import FromClassifier
from problems import blobs

KINDS = ["plain", "window", "novelty", "forbidden", "rare", "hard", "classifier", "stages", "stages and novelty"]


@functools.cache
def model(kind):
    """A learned model with three states and two columns; "plain" and "novelty" look at the context.

    "forbidden" and "hard" have zeros in their chain, "rare" tiny numbers as well; "hard" has no floor and narrow
    kernels, too, so that frames exclude states and can be impossible. Those with "stages" have shapes and shortest
    stays.
    """
    X, y = blobs(3, n_frames=400, separation=8.0 if kind == "hard" else 2.0)
    settings = {
        "plain": {"window": 1},
        "window": {"window": 4, "context": None},
        "novelty": {"window": 2, "novelty": True},
        "forbidden": {"window": 3, "evidence_scale": 300.0},
        "rare": {"window": 1, "evidence_scale": 20.0},
        "hard": {"window": 1, "floor": 0.0, "sigma": 0.3, "context": None},
        "classifier": {"window": 2, "ratio": FromClassifier(LogisticRegression())},
        "stages": {"window": 2, "transition_temper": 1.0},
        "stages and novelty": {"window": 1, "novelty": True, "transition_temper": 1.0},
    }[kind]
    learned = DensityRatioHMM(n_basis=30, random_state=0, **settings).fit(X, y).model_
    if kind.startswith("stages"):
        return replace(learned, stages=stages_of(learned.transmat, np.array([3, 1, 2]), np.array([1, 4, 3])))
    if kind not in ("forbidden", "rare", "hard"):
        return learned
    transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
    if kind == "rare":
        transmat = np.array([[1.0, 1e-15, 0.0], [1e-200, 1.0, 1e-13], [0.0, 1e-300, 1.0]])
    return replace(learned, transmat=transmat, startprob=np.array([0.5, 0.5, 0.0]), tempering=None, other_tunings={})


def impossible():
    """Samples of which the last one is impossible for the "hard" model after those before it."""
    X = np.random.default_rng(0).permutation(blobs(3, n_frames=400, separation=8.0)[0])
    for t in range(1, len(X)):
        try:
            model("hard").predict_proba(X[: t + 1], method="filter")
        except ImpossibleDataError as error:
            return X[: error.frame + 1]
    raise AssertionError("nothing is impossible")


def samples(seed, n_frames, missing=0.0, spread=3.0):
    """Samples near the training data and far from it, some of them with a NaN."""
    random = np.random.default_rng(seed)
    X = spread * random.normal(size=(n_frames, 2))
    X[random.random((n_frames, 2)) < missing / 2] = np.nan
    return X


def gaps(seed, n_frames, longest):
    """Steps between frames: half of them 1, the others up to `longest`."""
    random = np.random.default_rng(seed)
    return np.where(random.random(n_frames) < 0.5, 1, random.integers(1, longest + 1, size=n_frames))
