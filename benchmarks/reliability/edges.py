"""What six implementations of smoothing return where it is hard, beside arithmetic of 50 digits.

    python benchmarks/reliability/edges.py [--output table.md] [--quick]

One table in Markdown: the same arrays go into every package. Packages that are not installed are left out and named:
`pip install hmmlearn deeptime pomegranate dynamax mpmath gmpy2` has all of them. `--quick` leaves out the longest case.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from peers import installed, quiet, versions

from exact import Oracle, largest_error, ratios_to_pivot

LEFT_RIGHT = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])


def chain(n_states, stay=0.9):
    transmat = np.full((n_states, n_states), (1 - stay) / (n_states - 1))
    np.fill_diagonal(transmat, stay)
    return transmat, np.full(n_states, 1 / n_states)


def cases(quick):
    """Name, log-likelihoods (T, S), transmat, startprob."""
    random = np.random.default_rng(0)
    usual = random.normal(size=(100, 3)) - 5
    impossible, deep = usual.copy(), usual.copy()
    impossible[50] = -np.inf
    deep[50] -= 1e5
    yield "a frame impossible in every state, T=100, S=3", impossible, *chain(3)
    yield "one frame at -1e5, T=100, S=3", deep, *chain(3)
    yield "all frames at -1e5, T=100, S=3", usual - 1e5, *chain(3)
    strong = 1000 * random.normal(size=(200, 3))
    yield "left-right chain, strong evidence, T=200, S=3", strong, LEFT_RIGHT, np.array([1.0, 0.0, 0.0])
    yield "many states, T=300, S=100", 3 * random.normal(size=(300, 100)), *chain(100)
    if not quick:
        yield "long, T=1,000,000, S=2", random.normal(size=(1_000_000, 2)), *chain(2, 0.99)


def verdict(answer, exact):
    """How an answer differs from that of the oracle; exact is None where there is none to be had."""
    if isinstance(answer, Exception):
        text = f"{type(answer).__name__}: {answer}"
        return f"error `{text[:70]}{'…' if len(text) > 70 else ''}`"
    n_nan = int(np.isnan(answer).any(axis=1).sum())
    if n_nan:
        return f"**NaN** in {n_nan:,} of {len(answer):,} frames"
    if exact is None:
        return "**an answer**, without a word"
    expected = exact[0] / exact[0].sum(axis=1, keepdims=True)
    difference = np.abs(answer - expected).max()
    if difference > 1e-3:
        wrong = int((np.abs(answer - expected).max(axis=1) > 1e-3).sum())
        return f"**wrong** by up to {difference:.2g}, in {wrong:,} of {len(answer):,} frames"
    with np.errstate(all="ignore"):
        relative = largest_error(answer, exact)
    if not np.isfinite(relative):
        return f"within {difference:.0e}; ratios lost"
    return f"within {difference:.0e}; ratios within {relative:.0e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, help="write the table here; standard output by default")
    parser.add_argument("--quick", action="store_true", help="leave out the case of a million frames")
    arguments = parser.parse_args()
    packages, absent = installed()
    lines = ["| case | " + " | ".join(name for name, _ in packages) + " |", "|---" * (len(packages) + 1) + "|"]
    for name, *problem in cases(arguments.quick):
        print(f"{name}: oracle", file=sys.stderr, flush=True)
        is_possible = not np.isneginf(problem[0]).all(axis=1).any()
        exact = ratios_to_pivot(Oracle(*problem).smooth()) if is_possible else None
        cells = []
        for package, smooth in packages:
            print(f"{name}: {package}", file=sys.stderr, flush=True)
            cells.append(verdict(quiet(smooth, problem), exact))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + "."]
    if absent:
        lines.append(f"Not installed, and left out: {', '.join(absent)}.")
    text = "\n".join(lines) + "\n"
    if arguments.output is None:
        print(text, end="")
    else:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
