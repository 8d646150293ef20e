"""The recursions of one variant of the core, called with arrays instead of a chain, by one of its ways."""

from __future__ import annotations

import importlib

from test_variants import POSSIBLE

#: Which numbers a recursion runs on: what is best, or one of its ways alone.
WAYS = ("best", "alone", "lanes", "scaled")


class Native:
    """``smooth(log_ratios, transmat, startprob, lengths, ...)`` and so on."""

    def __init__(self, isa, way="best"):
        self.core = importlib.import_module(f"drhmm._core_{isa}")
        self.way = way

    def __getattr__(self, name):
        def call(log_ratios, transmat, startprob, *arguments):
            chain = self.core.Chain(transmat, startprob, way=self.way)
            return getattr(self.core, name)(chain, log_ratios, *arguments)

        return call


EVERY_WAY = [(isa, way) for isa in POSSIBLE for way in WAYS]


def name_of(isa_and_way):
    return "-".join(isa_and_way)
