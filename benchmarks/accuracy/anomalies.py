"""Detectors of anomalies that learn from the first 400 rows of a file of SKAB, which are mostly normal."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

N_TRAINING = 400

#: Quantile of the training rows that scores are divided by.
QUANTILE = 0.99


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
        self.limits = [np.quantile(values, QUANTILE) for values in self._both(X)]
        return self

    def _both(self, X):
        parts = self.pca.transform(X)
        inside = np.sum(parts**2 / self.pca.explained_variance_, axis=1)
        return inside, np.sum((X - self.pca.inverse_transform(parts)) ** 2, axis=1)

    def score_samples(self, X):
        return -np.max([values / limit for values, limit in zip(self._both(X), self.limits, strict=True)], axis=0)


def kde(X, seed):
    return GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.3, 0.5, 10)}, cv=KFold(5)).fit(X).best_estimator_


def gmm(X, seed):
    candidates = [GaussianMixture(k, reg_covar=1e-4, random_state=0).fit(X) for k in range(1, 6)]
    return min(candidates, key=lambda mixture: mixture.bic(X))
