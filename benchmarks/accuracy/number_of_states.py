"""How often the number of states is found: `drhmm.select_states` beside hmmlearn's BIC on the same sequences.

    python benchmarks/accuracy/number_of_states.py [--seeds 10] [--frames 1000] [--output FILE]

Blobs, moons and rings with 2 to 5 true states; both choose among 2 to 7. The Gaussians of hmmlearn have full
covariances and the best of three starts.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from hmmlearn.hmm import GaussianHMM

from drhmm import select_states
from drhmm.datasets import markov_chain

CANDIDATES = range(2, 8)
STAY = 0.95


def sequence(kind, n_states, n_frames, seed):
    """Points of a kind of which each state has its own place, and the states."""
    random = np.random.RandomState(1000 * n_states + seed)
    transmat = np.full((n_states, n_states), (1 - STAY) / (n_states - 1))
    np.fill_diagonal(transmat, STAY)
    y = markov_chain(n_frames, transmat, random_state=random)
    if kind == "blobs":
        radius = 1 / np.sin(np.pi / n_states)  # neighbours are 2 apart
        angle = 2 * np.pi * y / n_states
        centers = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return centers + 0.5 * random.standard_normal((n_frames, 2)), y
    if kind == "moons":
        angle = np.pi * random.random_sample(n_frames)
        upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        lower = np.stack([-np.cos(angle), 0.5 - np.sin(angle)], axis=1)
        points = np.where(y[:, None] % 2 == 0, upper, lower) + np.stack([y, np.zeros(n_frames)], axis=1)
        return points + 0.1 * random.standard_normal((n_frames, 2)), y
    angle = 2 * np.pi * random.random_sample(n_frames)
    radius = 1 + y + 0.15 * random.standard_normal(n_frames)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y


def by_bic(X, seed):
    """The number of states with the smallest BIC."""
    best = {}
    for number in CANDIDATES:
        values = []
        for start in range(3):
            model = GaussianHMM(number, covariance_type="full", n_iter=100, random_state=100 * seed + start)
            try:
                values.append(model.fit(X).bic(X))
            except ValueError:
                continue
        best[number] = min(values, default=np.inf)
    return min(best, key=best.get)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--kinds", nargs="+", default=["blobs", "moons", "rings"])
    parser.add_argument("--states", nargs="+", type=int, default=[2, 3, 4, 5])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for kind in options.kinds:
            for n_states in options.states:
                X, _ = sequence(kind, n_states, options.frames, seed)
                begin = time.perf_counter()
                ours = select_states(X, CANDIDATES, random_state=seed)
                seconds = time.perf_counter() - begin
                row = {
                    "kind": kind,
                    "states": n_states,
                    "seed": seed,
                    "drhmm": ours.n_states,
                    "bic": by_bic(X, seed),
                    "seconds": seconds,
                    "gains": ours.gains.round(4).tolist(),
                    "differences": ours.differences.round(5).tolist(),
                    "errors": ours.difference_errors.round(5).tolist(),
                }
                found.append(row)
                print(json.dumps(row), flush=True)
    lines = ["| data | true states | drhmm.select_states | hmmlearn BIC |", "|---|---|---|---|"]
    for kind in options.kinds:
        for n_states in options.states:
            rows = [row for row in found if (row["kind"], row["states"]) == (kind, n_states)]
            right = {name: sum(row[name] == n_states for row in rows) for name in ("drhmm", "bic")}
            lines.append(f"| {kind} | {n_states} | {right['drhmm']} of {len(rows)} | {right['bic']} of {len(rows)} |")
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
