"""Readable numpy versions of every native routine: the oracles of the tests.

Nothing here imports the native core, and the package calls nothing here at run time. The functions expect valid input.
They follow the formulas closely, and are not fast.
"""

from . import durations, features, novelty, objective, pool, ratios, recursion

__all__ = ["durations", "features", "novelty", "objective", "pool", "ratios", "recursion"]
