"""Systems that label sequences: all have fit(X, y, lengths) and predict_proba(X, lengths), states 0..S-1."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import sklearn_crfsuite
from hmmlearn.hmm import GMMHMM
from signal_peers import ConvolutionNetwork, RocketRidge, RollingBoosting
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from drhmm import DensityRatioHMM
from drhmm.ratios import FromClassifier, FromDensities

#: Frames that kernel densities and support vector machines learn from, drawn at random; their cost grows with the
#: square. The search of an SVM's two settings sees fewer still.
MOST_FRAMES = 5000
MOST_SEARCHED = 2000


def windows(X, lengths, width):
    """Frames of `width` samples each, oldest first; a sequence's first sample is repeated before it begins."""
    parts = []
    for samples in cut(X, lengths):
        padded = np.vstack([np.repeat(samples[:1], width - 1, axis=0), samples])
        parts.append(np.hstack([padded[k : k + len(samples)] for k in range(width)]))
    return np.vstack(parts)


def cut(values, lengths):
    """One list or array per sequence."""
    return [values[begin:end] for begin, end in itertools.pairwise(np.cumsum([0, *lengths]))]


def subset(classes, most, seed):
    """Places of at most `most` frames, in their order, every class with its share and at least ten frames."""
    if len(classes) <= most:
        return np.arange(len(classes))
    random, chosen = np.random.RandomState(seed), []
    for state in np.unique(classes):
        own = np.flatnonzero(classes == state)
        n = min(len(own), max(10, round(most * len(own) / len(classes))))
        chosen.append(random.choice(own, n, replace=False))
    return np.sort(np.concatenate(chosen))


class SomeFrames(BaseEstimator):
    """A ratio source that learns from at most `most` frames."""

    def __init__(self, source, most=MOST_FRAMES, random_state=0):
        self.source, self.most, self.random_state = source, most, random_state

    def fit(self, frames, targets):
        rows = subset(targets.argmax(axis=1), self.most, self.random_state)
        self.source.fit(frames[rows], targets[rows])
        return self

    def log_ratios(self, frames):
        return self.source.log_ratios(frames)


class TunedSVM(ClassifierMixin, BaseEstimator):
    """RBF-SVM on at most `most` frames: C and gamma by cross-validated accuracy, then Platt's probabilities."""

    def __init__(self, most=MOST_FRAMES, searched=MOST_SEARCHED, random_state=0):
        self.most, self.searched, self.random_state = most, searched, random_state

    def fit(self, X, y):
        few, some = (subset(y, n, self.random_state) for n in (self.searched, self.most))
        grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.3 / X.shape[1], 1 / X.shape[1], 3 / X.shape[1]]}
        search = GridSearchCV(SVC(), grid, cv=StratifiedKFold(3)).fit(X[few], y[few])
        machine = CalibratedClassifierCV(SVC(**search.best_params_), cv=StratifiedKFold(5), ensemble=False)
        self.machine_ = machine.fit(X[some], y[some])
        self.classes_ = self.machine_.classes_
        return self

    def predict_proba(self, X):
        return self.machine_.predict_proba(X)


class ChainOfRatios:
    """Our recursion with any evidence; chain, standardisation, choice of scale and temper are the same for all."""

    def __init__(self, ratio, window, seed, method="smooth", **settings):
        self.model = DensityRatioHMM(ratio=ratio, window=window, random_state=seed, n_threads=1, **settings)
        self.method = method

    def fit(self, X, y, lengths):
        self.model.fit(X, y, lengths=lengths)

    def predict_proba(self, X, lengths):
        return self.model.predict_proba(X, lengths=lengths, method=self.method)


class FrameAlone:
    """A classifier of single frames."""

    def __init__(self, classifier, window):
        self.model, self.window = make_pipeline(StandardScaler(), classifier), window

    def fit(self, X, y, lengths):
        self.model.fit(windows(X, lengths, self.window), y)

    def predict_proba(self, X, lengths):
        return self.model.predict_proba(windows(X, lengths, self.window))


class MixtureHMMPerClass:
    """One hmmlearn GMMHMM per class, learned from its stretches, joined to one by the transitions between classes.

    The joined model has a state for each (class, state of the class); within a class its own transitions hold, and a
    new class begins in its own start state. The probability of a class is that of its states together.
    """

    N_STATES, N_MIX = 2, 2

    def __init__(self, window, seed):
        self.window, self.seed = window, seed

    def _stretches(self, y, lengths, state):
        """Lengths of the runs of a state, never across sequences."""
        runs = []
        for states in cut(y, lengths):
            runs += [len(list(run)) for value, run in itertools.groupby(states) if value == state]
        return runs

    def fit(self, X, y, lengths):
        logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
        self.scaler = StandardScaler().fit(windows(X, lengths, self.window))
        frames = self.scaler.transform(windows(X, lengths, self.window))
        n_classes, k = int(y.max()) + 1, self.N_STATES
        options = {"covariance_type": "diag", "n_iter": 50, "random_state": self.seed, "min_covar": 1e-3}
        parts = [
            GMMHMM(k, n_mix=self.N_MIX, **options).fit(frames[y == c], self._stretches(y, lengths, c))
            for c in range(n_classes)
        ]
        counts, starts = np.ones((n_classes, n_classes)), np.ones(n_classes)
        for states in cut(y, lengths):
            np.add.at(counts, (states[:-1], states[1:]), 1)
            starts[states[0]] += 1
        between, first = counts / counts.sum(axis=1, keepdims=True), starts / starts.sum()
        whole = GMMHMM(n_classes * k, n_mix=self.N_MIX, **options)
        whole.n_features = frames.shape[1]
        entry = [_normal(part.startprob_) for part in parts]
        whole.startprob_ = np.concatenate([first[c] * entry[c] for c in range(n_classes)])
        whole.transmat_ = np.repeat(between, k, axis=0)[:, np.repeat(np.arange(n_classes), k)] * np.concatenate(entry)
        for c, part in enumerate(parts):
            own = slice(c * k, (c + 1) * k)
            whole.transmat_[own, own] = between[c, c] * _normal(part.transmat_)
        whole.weights_ = np.concatenate([_normal(part.weights_) for part in parts])
        # hmmlearn leaves NaN in components without a frame (of weight 0), and variances of 0 in spite of min_covar.
        whole.means_ = np.nan_to_num(np.concatenate([part.means_ for part in parts]))
        whole.covars_ = np.maximum(np.nan_to_num(np.concatenate([part.covars_ for part in parts]), nan=1.0), 1e-3)
        self.whole, self.n_classes = whole, n_classes

    def predict_proba(self, X, lengths):
        frames = self.scaler.transform(windows(X, lengths, self.window))
        posteriors = self.whole.predict_proba(frames, lengths)
        return posteriors.reshape(len(X), self.n_classes, self.N_STATES).sum(axis=2)


def _normal(probabilities):
    """Rows that sum to 1 and exclude nothing: states of hmmlearn that ended up empty have rows of zeros."""
    safe = np.nan_to_num(probabilities) + 1e-6
    return safe / safe.sum(axis=-1, keepdims=True)


class LinearChainCRF:
    """CRFsuite on every standardised value; the log loss of held-out pieces decides the quadratic penalty."""

    PENALTIES, PIECE, N_FOLDS = (0.1, 1.0, 10.0, 100.0), 500, 3

    def __init__(self, window, seed=0):
        self.window = window

    def _items(self, X, lengths):
        values = self.scaler.transform(windows(X, lengths, self.window))
        names = [f"x{k}" for k in range(values.shape[1])]
        return cut([dict(zip(names, row, strict=True)) for row in values.tolist()], lengths)

    def fit(self, X, y, lengths):
        self.scaler = StandardScaler().fit(windows(X, lengths, self.window))
        self.n_classes = int(y.max()) + 1
        items, labels = self._items(X, lengths), cut(y.astype(str).tolist(), lengths)
        losses = [self._held_out_loss(items, labels, penalty) for penalty in self.PENALTIES]
        self.model = self._fitted(items, labels, self.PENALTIES[int(np.argmin(losses))])

    def _fitted(self, items, labels, penalty):
        return sklearn_crfsuite.CRF(c2=penalty, max_iterations=200, all_possible_transitions=True).fit(items, labels)

    def _held_out_loss(self, items, labels, penalty):
        n = self.PIECE
        pieces = [sequence[k : k + n] for sequence in items for k in range(0, len(sequence), n)]
        truths = [sequence[k : k + n] for sequence in labels for k in range(0, len(sequence), n)]
        loss = 0.0
        for fold in range(self.N_FOLDS):
            rest = [k for k in range(len(pieces)) if k % self.N_FOLDS != fold]
            model = self._fitted([pieces[k] for k in rest], [truths[k] for k in rest], penalty)
            marginals = itertools.chain.from_iterable(model.predict_marginals(pieces[fold :: self.N_FOLDS]))
            truth = itertools.chain.from_iterable(truths[fold :: self.N_FOLDS])
            loss -= sum(np.log(max(frame.get(state, 0.0), 1e-9)) for frame, state in zip(marginals, truth, strict=True))
        return loss

    def predict_proba(self, X, lengths):
        marginals = itertools.chain.from_iterable(self.model.predict_marginals(self._items(X, lengths)))
        return np.array([[frame.get(str(c), 0.0) for c in range(self.n_classes)] for frame in marginals])


#: The paper: kernel least squares without a floor, a scale or a temper.
PAPER = {"floor": 0.0, "evidence_scale": 1.0, "transition_temper": 1.0, "n_basis": 500}


def _logistic():
    return LogisticRegression(max_iter=1000)


def _boosting(seed):
    return HistGradientBoostingClassifier(random_state=seed)


#: Every system of the arena, by how it is made from a window and a seed; ours first, cheap ones before dear ones.
ARENA = {
    "pool (default)": lambda window, seed: ChainOfRatios("pool", window, seed),
    "kernels alone, 500": lambda window, seed: ChainOfRatios("least-squares", window, seed, n_basis=500),
    "paper": lambda window, seed: ChainOfRatios("least-squares", window, seed, **PAPER),
    "LR": lambda window, seed: FrameAlone(_logistic(), window),
    "LR-HMM": lambda window, seed: ChainOfRatios(FromClassifier(_logistic()), window, seed),
    "GMM-HMM": lambda window, seed: ChainOfRatios(FromDensities("gmm"), window, seed),
    "boosting": lambda window, seed: FrameAlone(_boosting(seed), window),
    "boosting, 9 frames": lambda window, seed: FrameAlone(_boosting(seed), max(window, 9)),
    "boosting-HMM": lambda window, seed: ChainOfRatios(FromClassifier(_boosting(seed)), window, seed),
    "KDE-HMM": lambda window, seed: ChainOfRatios(SomeFrames(FromDensities("kde"), random_state=seed), window, seed),
    "SVM": lambda window, seed: FrameAlone(TunedSVM(random_state=seed), window),
    "SVM-HMM": lambda window, seed: ChainOfRatios(FromClassifier(TunedSVM(random_state=seed)), window, seed),
    "GMMHMM (hmmlearn)": MixtureHMMPerClass,
    "CRF": LinearChainCRF,
}

#: Ours live, and the rivals that people use on raw signals.
SIGNALS = {
    "pool, filtered": lambda window, seed: ChainOfRatios("pool", window, seed, method="filter"),
    "boosting, rolling windows": lambda window, seed: RollingBoosting(seed, in_chain=False),
    "boosting-HMM, rolling windows": lambda window, seed: RollingBoosting(seed, in_chain=True),
    "MiniRocket + ridge": lambda window, seed: RocketRidge(seed),
    "convolution network": lambda window, seed: ConvolutionNetwork(seed),
}
