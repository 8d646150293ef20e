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
    # Ratio to reach for each peer, or None where no goal was set; "fastest" for the fastest.
    goals: dict[str, float | None] = field(default_factory=dict)

    def lines(self):
        fastest = min(self.peers, key=self.peers.get) if self.peers else None
        for peer, goal in self.goals.items():
            name = fastest if peer == "fastest" else peer
            aim = "none set" if goal is None else f"{goal:g}x"
            if name not in self.peers:
                yield f"| {self.job} | {self.shown(self.ours)} | {peer}: not installed | | {aim} | |"
                continue
            ratio = self.peers[name] / self.ours
            met = "" if goal is None else "yes" if ratio >= goal else "**no**"
            peer_text = f"{name} {self.shown(self.peers[name])}"
            yield f"| {self.job} | {self.shown(self.ours)} | {peer_text} | {ratio:.1f}x | {aim} | {met} |"

    def shown(self, seconds):
        value = seconds / self.per
        return f"{value:.3g} {self.unit}" if value < 1000 else f"{value:,.0f} {self.unit}"


def say(text):
    print(text, file=sys.stderr, flush=True)


#: Seconds between calls that use all cores: threads of a peer go on spinning for a while when it has answered.
REST = 0.1


def interleaved(functions, repeats, rest=0.0):
    """Median time of each function, called in turn, with a rest before each."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            time.sleep(rest)
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def measured(row, ours, peers, repeats, same=None, tolerance=1e-9, rest=0.0):
    """Assert that the answers agree, then time."""
    expected = ours()
    for peer in peers.values():
        answer = peer()
        if same is not False:
            np.testing.assert_allclose(answer, expected, atol=tolerance)
    times = interleaved({"drhmm": ours, **peers}, repeats, rest)
    row.ours = times.pop("drhmm")
    row.peers = times
    for line in row.lines():
        say(line)
    return row


def has(module):
    return importlib.util.find_spec(module) is not None
