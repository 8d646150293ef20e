"""Rows of the goals table: ours, the peers, the ratio, what is aimed at, and whether it was reached."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Row:
    """One goal: our time, the peers' times, what is aimed at, and whether it was reached."""

    job: str
    unit: str
    per: float  # what a time is divided by, in the unit
    ours: float = 0.0
    peers: dict[str, float] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)  # ratio to reach for each peer; "fastest" for the fastest

    def lines(self):
        fastest = min(self.peers, key=self.peers.get) if self.peers else None
        for peer, goal in self.goals.items():
            name = fastest if peer == "fastest" else peer
            if name not in self.peers:
                yield f"| {self.job} | {self.shown(self.ours)} | {peer}: not installed | | {goal:g}x | |"
                continue
            ratio = self.peers[name] / self.ours
            met = "yes" if ratio >= goal else "**no**"
            peer_text = f"{name} {self.shown(self.peers[name])}"
            yield f"| {self.job} | {self.shown(self.ours)} | {peer_text} | {ratio:.1f}x | {goal:g}x | {met} |"

    def shown(self, seconds):
        value = seconds / self.per
        return f"{value:.3g} {self.unit}" if value < 1000 else f"{value:,.0f} {self.unit}"


def say(text):
    print(text, file=sys.stderr, flush=True)


def interleaved(functions, repeats):
    """Median time of each function, called in turn."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def measured(row, ours, peers, repeats, same=None, tolerance=1e-9):
    """Assert that the answers agree, then time."""
    expected = ours()
    for peer in peers.values():
        answer = peer()
        if same is not False:
            np.testing.assert_allclose(answer, expected, atol=tolerance)
    times = interleaved({"drhmm": ours, **peers}, repeats)
    row.ours = times.pop("drhmm")
    row.peers = times
    for line in row.lines():
        say(line)
    return row


def has(module):
    return importlib.util.find_spec(module) is not None
