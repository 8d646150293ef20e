"""Readable numpy versions of every native routine: the oracles of the tests.

Nothing here imports the native core. The package calls it in one place: `drhmm.recursion` draws paths and computes
posteriors of transitions here if filtered probabilities underflow. The functions expect valid input, follow the
formulas closely, and are not fast.
"""

from . import durations, features, novelty, objective, pool, ratios, recursion

__all__ = ["durations", "features", "novelty", "objective", "pool", "ratios", "recursion"]
