"""Ratio sources: estimators of density ratios between states.

A ratio source is any object with two methods. ``fit(frames, targets)`` learns from frames (N, D) and targets (N, S),
the probability of each state at each frame (one-hot for known labels). ``log_ratios(frames)`` returns log w_i(y) of new
frames, (n, S), up to a constant per row. A source supports weights if its ``fit`` also takes `sample_weight`.
`DensityRatioHMM` copies a source before it fits it.
"""

from .from_classifier import FromClassifier
from .from_densities import FromDensities
from .learner import RatioSource
from .least_squares import Additive, Gaussian, LeastSquares
from .pool import Pool
from .two_class import TwoClass

__all__ = ["Additive", "FromClassifier", "FromDensities", "Gaussian", "LeastSquares", "Pool", "RatioSource", "TwoClass"]
