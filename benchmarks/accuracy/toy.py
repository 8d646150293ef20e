"""The paper's toy problem (Figs. 2 and 3): is the density ratio HMM ahead of a KDE-HMM and a GMM-HMM at every n?

Three regimes of noisy sines, windows of 4 samples, n training windows of each regime, one switching test sequence of
1000 samples; transition and start probabilities are given to all three systems. "N(0; 0.25)" is read both ways.

Writes toy.jsonl (one line per finished run: a killed run goes on where it stopped), toy.md, toy.png and
toy_sequence.png into the output folder. The full experiment is the default; --runs 20 is the quick one.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from results import Store, complete, markdown_table
from scipy.stats import ttest_rel
from threadpoolctl import threadpool_limits

from drhmm import DensityRatioHMM, __version__, plotting
from drhmm.datasets import sines, sines_training
from drhmm.ratios import FromDensities

TRANSMAT = np.full((3, 3), 0.01) + 0.97 * np.eye(3)
STARTPROB = np.full(3, 1 / 3)
WINDOW = 4
SIZES = (50, 100, 200, 300, 400, 500)
READINGS = {"standard deviation .25": 0.25, "variance .25": 0.5}
SYSTEMS = ("density ratio", "KDE", "GMM")
ESTIMATES = {"frame": "frame alone", "filter": "filtered", "smooth": "smoothed"}


def system(name, seed):
    """A model that is not fitted: the same chain for all, evidence with its settings chosen from the training data."""
    ratio = {"density ratio": "pool", "KDE": FromDensities("kde"), "GMM": FromDensities("gmm")}[name]
    return DensityRatioHMM(
        window=WINDOW, ratio=ratio, transmat=TRANSMAT, startprob=STARTPROB, random_state=seed, n_threads=1
    )


def data_of(key):
    """Training and test data of one run: the same for all systems; the test sequence is the same for all n."""
    seed = key["seed"] + 2 * key["run"]
    train = sines_training(key["n"], window=WINDOW, noise=key["noise"], random_state=seed)
    return train, sines(key["length"], noise=key["noise"], random_state=seed + 1)


def one_run(key):
    """Accuracy of every system and estimate, and the seconds each system took."""
    (X, y), (X_test, y_test) = data_of(key)
    values = {}
    with threadpool_limits(1):  # many small problems: threads would only wait for one another
        for name in SYSTEMS:
            begin = time.process_time()
            model = system(name, key["run"]).fit(X, y)
            values[name] = {method: model.score(X_test, y_test, method=method) for method in ESTIMATES}
            values[name]["seconds"] = round(time.process_time() - begin, 4)
    return key, values


def run_all(store, keys, jobs):
    """Fill the store, in as many processes as asked for."""

    def results(missing):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
        return parallel(delayed(one_run)(key) for key in missing)

    complete(store, keys, results, "toy")


def difference(ours, theirs):
    """Mean paired difference with its 95 % confidence interval and the p value of a paired t test."""
    gaps = ours - theirs
    if len(gaps) < 2 or not gaps.std() > 0:
        return gaps.mean(), (-np.inf, np.inf), 1.0
    test = ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    return gaps.mean(), (interval.low, interval.high), test.pvalue


def verdict(intervals):
    """Ahead of every rival: yes if all intervals are above 0, no if one is below, undecided otherwise."""
    if all(low > 0 for low, _ in intervals):
        return "yes"
    return "no" if any(high < 0 for _, high in intervals) else "undecided"


class Accuracies:
    """Accuracy of every run: ``scores(noise, n, system, method)`` has one number per run."""

    def __init__(self, store, keys):
        self._runs = {}
        for key in keys:
            self._runs.setdefault((key["noise"], key["n"]), []).append(store[key])

    def scores(self, noise, n, name, method):
        return np.array([values[name][method] for values in self._runs[noise, n]])

    def difference(self, noise, n, rival, method):
        ours, theirs = (self.scores(noise, n, name, method) for name in (SYSTEMS[0], rival))
        return difference(ours, theirs)


def wanted(options):
    """Keys of all runs; every n and reading of a run comes before the next run."""
    return [
        {"experiment": "toy", "seed": options.seed, "length": options.length, "run": run, "noise": noise, "n": n}
        for run in range(options.runs)
        for noise in READINGS.values()
        for n in options.sizes
    ]


def spread_table(accuracies, sizes, method):
    rows = []
    for reading, noise in READINGS.items():
        for n in sizes:
            cells = [accuracies.scores(noise, n, name, method) for name in SYSTEMS]
            rows.append([reading, n, *(f"{cell.mean():.3f} ± {cell.std(ddof=1):.3f}" for cell in cells)])
    return markdown_table(["noise", "n", *SYSTEMS], rows)


def claim_table(accuracies, sizes):
    """The paper's claim at every n: yes, or no or undecided with the rivals that are in the way."""
    rows = []
    for (method, words), (reading, noise) in product(reversed(ESTIMATES.items()), READINGS.items()):
        cells = []
        for n in sizes:
            intervals = {rival: accuracies.difference(noise, n, rival, method)[1] for rival in SYSTEMS[1:]}
            answer = verdict(intervals.values())
            behind = [rival for rival, (low, high) in intervals.items() if (high < 0 if answer == "no" else low <= 0)]
            cells.append(f"{answer} ({', '.join(behind)})" if behind else answer)
        rows.append([words, reading, *cells])
    return markdown_table(["estimate", "noise", *(f"n = {n}" for n in sizes)], rows)


def difference_table(accuracies, sizes, method):
    rows = []
    for reading, noise in READINGS.items():
        for n in sizes:
            gaps = [accuracies.difference(noise, n, rival, method) for rival in SYSTEMS[1:]]
            cells = [f"{gap:+.4f} ({low:+.4f} to {high:+.4f})" for gap, (low, high), _ in gaps]
            values = ["< 1e-6" if p < 1e-6 else f"{p:.2g}" for *_, p in gaps]
            both = [cell for pair in zip(cells, values, strict=True) for cell in pair]
            rows.append([reading, n, *both, verdict([interval for _, interval, _ in gaps])])
    header = [text for rival in SYSTEMS[1:] for text in (f"ours minus {rival} (95 % interval)", "p")]
    return markdown_table(["noise", "n", *header, "ahead of both"], rows)


def seconds_table(accuracies, sizes):
    rows = [
        [
            n,
            *(
                f"{np.mean([accuracies.scores(v, n, name, 'seconds') for v in READINGS.values()]):.2f}"
                for name in SYSTEMS
            ),
        ]
        for n in sizes
    ]
    return markdown_table(["n", *SYSTEMS], rows)


def report(accuracies, options):
    """The Markdown page."""
    seconds = sum(
        accuracies.scores(v, n, name, "seconds").sum()
        for v, n, name in product(READINGS.values(), options.sizes, SYSTEMS)
    )
    lines = [
        "# Noisy switching sines",
        "",
        f"drhmm {__version__}, `python benchmarks/accuracy/toy.py --runs {options.runs} --seed {options.seed}` "
        f"took {seconds / 60:.0f} core minutes.",
        f"{options.runs} runs per n; each run has its own training data and its own test sequence of "
        f"{options.length} samples, the same for all systems. n: training windows of each regime. ±: standard "
        "deviation over runs. p: paired t test.",
        "",
        "## Is the density ratio HMM ahead of both rivals?",
        "",
        "Yes: both 95 % intervals of the paired differences are above 0. No: one is below 0. In brackets the rivals "
        "that are ahead, or that cannot be told apart.",
        "",
        *claim_table(accuracies, options.sizes),
    ]
    for method, words in reversed(ESTIMATES.items()):
        lines += ["", f"## Accuracy, {words}", "", *spread_table(accuracies, options.sizes, method)]
        lines += ["", f"Differences in {words} accuracy, run by run:", ""]
        lines += difference_table(accuracies, options.sizes, method)
    lines += ["", "## Seconds per run on one core, learning with its search and three predictions", ""]
    return [*lines, *seconds_table(accuracies, options.sizes)]


def figure_of_accuracy(accuracies, options):
    """Fig. 3 of the paper with both readings, and under it the paired differences."""
    figure = Figure(figsize=(10, 6.4), layout="constrained", dpi=150)
    axes = figure.subplots(2, 2, sharex=True, sharey="row", gridspec_kw={"height_ratios": [3, 2]})
    sizes, shift = np.array(options.sizes), np.array([-4, 0, 4])
    for column, (reading, noise) in enumerate(READINGS.items()):
        top, bottom = axes[:, column]
        for k, name in enumerate(SYSTEMS):
            scores = [accuracies.scores(noise, n, name, "smooth") for n in sizes]
            style = {"color": plotting.COLORS[k], "label": f"{name} HMM", "capsize": 2, "marker": "os^"[k]}
            style |= {"markersize": 5, "elinewidth": 0.9}
            means, spreads = np.mean(scores, axis=1), np.std(scores, axis=1, ddof=1)
            top.errorbar(sizes + shift[k], means, spreads, **style)
            if k > 0:
                gaps = [accuracies.difference(noise, n, name, "smooth") for n in sizes]
                means = np.array([gap for gap, *_ in gaps])
                limits = np.abs(np.array([interval for _, interval, _ in gaps]).T - means)
                style["label"] = f"ahead of {name}"
                bottom.errorbar(sizes + shift[k], means, limits, **style)
        top.set_title(f"noise: {reading}", loc="left", fontsize=10)
        bottom.axhline(0, color="#333333", linewidth=0.8)
        bottom.set_xlabel("training windows of each regime, n")
        bottom.set_xticks(sizes)
    axes[0, 0].set_ylabel("smoothed accuracy\n(mean, standard deviation)")
    axes[1, 0].set_ylabel("density ratio minus rival\n(mean, 95 % interval)")
    axes[0, 1].legend(frameon=False, loc="lower right")
    axes[1, 0].legend(frameon=False, loc="upper right")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure


def figure_of_sequence(options, n=200, shown=600):
    """Fig. 2 of the paper: one sequence with estimates from each frame alone, filtered and smoothed."""
    key = {"seed": options.seed, "run": 0, "noise": READINGS["standard deviation .25"], "n": n, "length": shown}
    (X, y), (X_test, y_test) = data_of(key)
    model = system(SYSTEMS[0], 0).fit(X, y)
    panels = {words: model.predict_proba(X_test, method=method) for method, words in ESTIMATES.items()}
    names = [f"sin({f} t)" for f in ("0.2", "0.4", "0.6")]
    title = f"Density ratio HMM, noise of standard deviation .25, n = {n}"
    axes = plotting.sequence(X_test, panels, states=y_test, names=names, title=title)
    return axes[0].figure


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="runs per n and reading (500)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1, the default, is one per core")
    parser.add_argument("--seed", type=int, default=10_000, help="first seed; a run uses two (10000)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="values of n (50 100 200 300 400 500)")
    parser.add_argument("--length", type=int, default=1000, help="samples of a test sequence (1000)")
    parser.add_argument("--output", type=Path, default=Path("toy"), help="folder for all results (toy)")
    options = parser.parse_args(given)
    for name, low in (("runs", 2), ("length", WINDOW), ("seed", 0)):
        if getattr(options, name) < low:
            parser.error(f"--{name} must be at least {low}, got {getattr(options, name)}")
    if options.jobs == 0:
        parser.error("--jobs must not be 0")
    if min(options.sizes) < 10:
        parser.error(f"--sizes must be at least 10, got {min(options.sizes)}")
    return options


def main(given=None):
    options = arguments(given)
    store = Store(options.output / "toy.jsonl")
    keys = wanted(options)
    run_all(store, keys, options.jobs)
    accuracies = Accuracies(store, keys)
    (options.output / "toy.md").write_text("\n".join(report(accuracies, options)) + "\n")
    figure_of_accuracy(accuracies, options).savefig(options.output / "toy.png")
    figure_of_sequence(options).savefig(options.output / "toy_sequence.png")
    print(f"written: toy.md, toy.png and toy_sequence.png in {options.output}")


if __name__ == "__main__":
    main()
