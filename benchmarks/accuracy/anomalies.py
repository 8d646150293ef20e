"""Anomalies in SKAB: detectors that learn from the first 400 rows of each file, which are mostly normal."""

from __future__ import annotations

import time

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from drhmm import DensityRatioHMM

N_TRAINING = 400

#: Share of held-out training rows that a detector's threshold lets pass; the same for all, and not tuned.
PASSED = 0.99

#: Rows that a trailing mean takes together before anything else is done.
WIDTHS = (1, 10)


def trailing_mean(samples, width):
    """Mean of the last `width` rows, of fewer at the beginning."""
    sums = np.vstack([np.zeros(samples.shape[1]), np.cumsum(samples, axis=0)])
    high = np.arange(1, len(samples) + 1)
    low = np.maximum(high - width, 0)
    return (sums[high] - sums[low]) / (high - low)[:, None]


class PrincipalParts:
    """Hotelling's T2 in the space of the principal components and Q outside it, each over its own 99 % quantile."""

    def fit(self, X):
        self.pca = PCA(0.9).fit(X)
        self.limits = [np.quantile(values, PASSED) for values in self._both(X)]
        return self

    def _both(self, X):
        parts = self.pca.transform(X)
        inside = np.sum(parts**2 / self.pca.explained_variance_, axis=1)
        return inside, np.sum((X - self.pca.inverse_transform(parts)) ** 2, axis=1)

    def score_samples(self, X):
        return -np.max([values / limit for values, limit in zip(self._both(X), self.limits, strict=True)], axis=0)


def _kde(X, seed):
    return GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.3, 0.5, 10)}, cv=KFold(5)).fit(X).best_estimator_


def _gmm(X, seed):
    candidates = [GaussianMixture(k, reg_covar=1e-4, random_state=0).fit(X) for k in range(1, 6)]
    return min(candidates, key=lambda mixture: mixture.bic(X))


class FrameNovelty:
    """Our q_* of each row alone, as a score of normality."""

    def __init__(self, seed):
        self.model = DensityRatioHMM(novelty=True, random_state=seed, n_threads=1)

    def fit(self, X):
        self.model.fit(X, np.zeros(len(X), dtype=int))
        return self

    def score_samples(self, X):
        return -self.model.novelty_score(X)


#: From standardised rows and a seed to a fitted object whose score_samples is low at anomalies.
DETECTORS = {
    "density ratio, row alone": lambda X, seed: FrameNovelty(seed).fit(X),
    "isolation forest": lambda X, seed: IsolationForest(random_state=seed).fit(X),
    "one-class SVM": lambda X, seed: OneClassSVM(nu=1 - PASSED).fit(X),
    "KDE": _kde,
    "GMM": _gmm,
    "PCA, T2 + Q": lambda X, seed: PrincipalParts().fit(X),
    "local outlier factor": lambda X, seed: LocalOutlierFactor(novelty=True).fit(X),
}

OURS = "density ratio HMM, p(unknown) > 1/2"
SYSTEMS = (OURS, *DETECTORS)
#: Ours is not among them: all 400 rows are kernel centres, and the seed has nothing to choose.
RANDOM = ("isolation forest",)


def by_chain(X, seed):
    """Alarm and score by the filtered probability of the unknown state, all settings at their defaults."""
    model = DensityRatioHMM(novelty=True, random_state=seed, n_threads=1)
    model.fit(X[:N_TRAINING], np.zeros(N_TRAINING, dtype=int))
    probability = model.novelty_proba(X)[N_TRAINING:]
    return probability > 0.5, probability


def by_threshold(X, make, seed):
    """Alarm where the score is beyond the quantile of the training rows, each scored without its own block."""
    scaler = StandardScaler().fit(X[:N_TRAINING])
    rows = scaler.transform(X)
    training, test = rows[:N_TRAINING], rows[N_TRAINING:]
    held_out = np.empty(N_TRAINING)
    for rest, block in KFold(5).split(training):
        held_out[block] = -make(training[rest], seed).score_samples(training[block])
    score = -make(training, seed).score_samples(test)
    return score > np.quantile(held_out, PASSED), score


def measure(files, system, width, seed):
    """F1, false alarms and misses over all files together, the mean AUC of a file, and the seconds of a file."""
    alarms, truths, areas, begin = [], [], [], time.process_time()
    for X, y in files:
        smooth = trailing_mean(X, width)
        alarm, score = by_chain(smooth, seed) if system == OURS else by_threshold(smooth, DETECTORS[system], seed)
        truth = y[N_TRAINING:] == 1
        alarms.append(alarm)
        truths.append(truth)
        if truth.any() and not truth.all():
            areas.append(roc_auc_score(truth, score))
    alarm, truth = np.concatenate(alarms), np.concatenate(truths)
    return {
        "F1": 2 * np.sum(alarm & truth) / max(alarm.sum() + truth.sum(), 1),
        "false alarms, %": 100 * np.mean(alarm[~truth]),
        "missed, %": 100 * np.mean(~alarm[truth]),
        "AUC": float(np.mean(areas)),
        "CPU s per file": (time.process_time() - begin) / len(files),
    }
