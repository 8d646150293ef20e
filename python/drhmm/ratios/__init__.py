"""Ratio sources: estimators of density ratios between states.

A ratio source is any object with two methods. ``fit(frames, targets)`` learns from frames (N, D) and targets (N, S),
the probability of each state at each frame (one-hot for known labels). ``log_ratios(frames)`` returns log w_i(y) of new
frames, (n, S), up to a constant per row. A source supports weights if its ``fit`` also takes `sample_weight`.
`DensityRatioHMM` copies a source before it fits it.

Examples
--------
>>> from sklearn.linear_model import LogisticRegression
>>> import drhmm
>>> from drhmm.ratios import Additive, FromClassifier, FromDensities, Gaussian, LeastSquares, Pool, TwoClass
>>> frames, y = drhmm.datasets.blobs(300, random_state=0)
>>> targets = (y[:, None] == [0, 1, 2]).astype(float)  # one-hot
>>> classifier, kernels = FromClassifier(LogisticRegression()), LeastSquares(n_basis=50, random_state=0)
>>> sources = [Additive(), Gaussian(), kernels, classifier, FromDensities("gmm"), Pool([kernels, classifier])]
>>> [bool((source.fit(frames, targets).log_ratios(frames).argmax(axis=1) == y).mean() > 0.85) for source in sources]
[True, True, True, True, True, True]
>>> model = drhmm.DensityRatioHMM(ratio=Pool([kernels, classifier]), random_state=0)
>>> two = TwoClass(alpha=0.1, random_state=0).fit(frames[y < 2], targets[y < 2, :2])
>>> two.relative_ratio(frames).shape, two.log_ratios(frames).shape
((300,), (300, 2))
"""

from .from_classifier import FromClassifier
from .from_densities import FromDensities
from .learner import RatioSource
from .least_squares import Additive, Gaussian, LeastSquares
from .pool import Pool
from .two_class import TwoClass

__all__ = ["Additive", "FromClassifier", "FromDensities", "Gaussian", "LeastSquares", "Pool", "RatioSource", "TwoClass"]
