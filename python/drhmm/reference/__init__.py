"""Readable numpy versions of every native routine: the oracles of the tests.

Nothing here imports the native core, and nothing in the package calls this at run time. The functions take
validated input; they are written to be compared with the formulas, not to be fast.
"""

from . import durations, features, novelty, objective, pool, ratios, recursion

__all__ = ["durations", "features", "novelty", "objective", "pool", "ratios", "recursion"]
