"""The arena: every system on every set, with nothing set per data set.

``python benchmarks/accuracy/arena.py --data FOLDER`` writes arena.jsonl (one line per finished fold: a run that was
killed goes on where it stopped), arena.md, arena.png (mean ranks with the critical difference) and
arena_calibration.png into the output folder. Evidence in the HMM comes with the same chain, and the same choice of
scale and temper, for all.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from arena_sets import all_sets, sources
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from peers import ARENA, SIGNALS
from results import Store, complete, markdown_table
from scipy.stats import friedmanchisquare, rankdata, studentized_range, t
from sets import DataError, check_folder
from threadpoolctl import threadpool_limits

from drhmm import __version__

OURS = next(iter(ARENA))
SMALLEST = 1e-15
N_BINS = 10

#: What was looked at while defaults were chosen; the other sets were not.
CHOSEN_ON = "sines of seeds 100 to 119, the four protocol splits, and the later sets as `maths2.md` lists them"


def measures(posteriors, y, lengths, n_states):
    """Sums that every measure is made of: of each test sequence, of each class, and of bins of confidence."""
    guess = posteriors.argmax(axis=1)
    loss = -np.log(np.maximum(posteriors[np.arange(len(y)), y], SMALLEST))
    first = np.cumsum([0, *lengths[:-1]])
    confusion = np.zeros((n_states, n_states), dtype=int)
    np.add.at(confusion, (y, guess), 1)
    bins = np.minimum((posteriors.max(axis=1) * N_BINS).astype(int), N_BINS - 1)
    per_bin = [np.bincount(bins, weights=w, minlength=N_BINS) for w in (None, posteriors.max(axis=1), guess == y)]
    return {
        "frames": list(map(int, lengths)),
        "right": np.add.reduceat((guess == y).astype(int), first).tolist(),
        "loss": np.add.reduceat(loss, first).tolist(),
        "true": confusion.sum(axis=1).tolist(),
        "said": confusion.sum(axis=0).tolist(),
        "both": np.diag(confusion).tolist(),
        "bins": [values.tolist() for values in per_bin],
    }


def one_fold(key, fold, window, n_states):
    """Train and test one system on one fold; classes that training does not have keep a probability of 0."""
    (X, y, lengths), (X_test, y_test, test_lengths) = fold
    known, codes = np.unique(y, return_inverse=True)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of searches that end before they converge
        model = {**ARENA, **SIGNALS}[key["system"]](window, key["seed"])
        begin = time.process_time()
        failure = None
        try:
            model.fit(X, codes, lengths)
        except ValueError as error:  # of peers that need more frames of each class: they answer with its share
            failure = str(error)
        middle = time.process_time()
        if failure is None:
            found = model.predict_proba(X_test, test_lengths)
        else:
            found = np.tile(np.bincount(codes) / len(codes), (len(y_test), 1))
        end = time.process_time()
    posteriors = np.zeros((len(y_test), n_states))
    posteriors[:, known] = found / found.sum(axis=1, keepdims=True)
    values = measures(posteriors, y_test, test_lengths, n_states)
    if failure is not None:
        values["failure"] = failure
    return key, {**values, "fit, CPU s": round(middle - begin, 3), "predict, CPU s": round(end - middle, 3)}


def wanted(sets, systems, seed):
    return [
        {"experiment": "arena", "set": one.name, "fold": fold, "system": system, "seed": seed}
        for system in systems
        for one in sets
        for fold in range(len(one.folds))
    ]


def run(store, sets, keys, jobs):
    by_name = {one.name: one for one in sets}

    def results(missing):
        tasks = (
            delayed(one_fold)(
                key, by_name[key["set"]].folds[key["fold"]], by_name[key["set"]].window, by_name[key["set"]].n_states
            )
            for key in missing
        )
        return Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(tasks)

    complete(store, keys, results, "arena")


class Results:
    """All folds of each set and system that are there: accuracy, macro F1, log loss, calibration error and times."""

    def __init__(self, store, sets, systems, seed):
        self._folds = {}
        for key in wanted(sets, systems, seed):
            found = [store[key]] if key in store else [None]
            self._folds.setdefault((key["set"], key["system"]), []).extend(found)
        self.sets = [one for one in sets if all(self.has(one.name, system) for system in systems[:1])]
        self.systems = systems

    def has(self, name, system):
        return all(fold is not None for fold in self._folds[name, system])

    def joined(self, name, system, what):
        return np.concatenate([fold[what] for fold in self._folds[name, system]])

    def summed(self, name, system, what):
        return np.sum([fold[what] for fold in self._folds[name, system]], axis=0)

    def accuracy(self, name, system):
        return self.joined(name, system, "right").sum() / self.joined(name, system, "frames").sum()

    def log_loss(self, name, system):
        return self.joined(name, system, "loss").sum() / self.joined(name, system, "frames").sum()

    def macro_f1(self, name, system):
        true, said, both = (self.summed(name, system, what) for what in ("true", "said", "both"))
        there = true > 0
        return float(np.mean(2 * both[there] / np.maximum(true + said, 1)[there]))

    def calibration(self, name, system):
        count, confidence, right = self.summed(name, system, "bins")
        return float(np.abs(confidence - right).sum() / count.sum())

    def seconds(self, name, system, what):
        return sum(fold[what] for fold in self._folds[name, system])

    def failures(self, name, system):
        return [fold["failure"] for fold in self._folds[name, system] if fold is not None and "failure" in fold]

    def complete_sets(self):
        """Names of the sets on which every system has finished."""
        return [one.name for one in self.sets if all(self.has(one.name, system) for system in self.systems)]

    def difference(self, name, rival, what):
        """Mean difference per frame, ours less the rival's, with a 95 % interval from whole test sequences."""
        frames, ours, theirs = (
            self.joined(name, OURS, "frames"),
            self.joined(name, OURS, what),
            self.joined(name, rival, what),
        )
        if len(frames) < 5:
            return (ours - theirs).sum() / frames.sum(), (-np.inf, np.inf)
        mean = (ours - theirs).sum() / frames.sum()
        residual = (ours - theirs) - mean * frames
        error = np.sqrt((residual**2).sum() * len(frames) / (len(frames) - 1)) / frames.sum()
        reach = t.ppf(0.975, len(frames) - 1) * error
        return mean, (mean - reach, mean + reach)


def ranks(results, measure, good_is_high):
    """Mean rank of each system over the sets that all have finished, and the critical difference of Nemenyi."""
    names = results.complete_sets()
    values = np.array([[measure(name, system) for system in results.systems] for name in names])
    placed = np.array([rankdata(-row if good_is_high else row) for row in np.round(values, 3)])
    k, n = len(results.systems), len(names)
    critical = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n)) if n > 1 else np.inf
    p = friedmanchisquare(*values.T).pvalue if n > 1 and k > 2 else np.nan
    return dict(zip(results.systems, placed.mean(axis=0), strict=True)), critical, p


def report(results, options):
    """The Markdown page."""
    names = [one.name for one in results.sets]
    lines = [
        "# The arena",
        "",
        f"drhmm {__version__}, `python benchmarks/accuracy/arena.py --data FOLDER`, seed {options.seed}.",
        f"Looked at while defaults were chosen: {CHOSEN_ON}.",
        f"Sets that every system has finished: {len(results.complete_sets())} of {len(names)}.",
    ]
    for title, measure, high in (
        ("Accuracy", results.accuracy, True),
        ("Log loss", results.log_loss, False),
        ("Macro F1", results.macro_f1, True),
        ("Calibration error", results.calibration, False),
    ):
        rows = []
        for name in names:
            cells = {s: measure(name, s) if results.has(name, s) else np.nan for s in results.systems}
            best = (np.nanmax if high else np.nanmin)(list(cells.values()))
            texts = [
                "" if np.isnan(v) else f"**{v:.3f}**" if round(v, 3) == round(best, 3) else f"{v:.3f}"
                for v in cells.values()
            ]
            rows.append([name, *texts])
        lines += ["", f"## {title}", "", *markdown_table(["set", *results.systems], rows)]
        if results.complete_sets():
            mean_ranks, critical, p = ranks(results, measure, high)
            order = sorted(mean_ranks, key=mean_ranks.get)
            listed = ", ".join(f"{system} {mean_ranks[system]:.2f}" for system in order)
            lines += ["", f"Mean ranks: {listed}. Critical difference {critical:.2f}, Friedman p = {p:.2g}."]
    lines += ["", "## Where a rival is ahead", ""]
    behind = []
    for name in names:
        for rival in results.systems[1:]:
            if not results.has(name, rival):
                continue
            for what, sign, words in (("right", 1, "accuracy"), ("loss", -1, "log loss")):
                mean, (low, high) = results.difference(name, rival, what)
                if max(sign * low, sign * high) < 0:
                    behind.append(
                        f"- {name}: {rival} in {words}, {abs(mean):.3f} (interval {low:+.3f} to {high:+.3f})."
                    )
    lines += behind or ["Nowhere, with 95 % intervals over whole test sequences (sets of five or more)."]
    failed = [(name, s, results.failures(name, s)) for name in names for s in results.systems]
    failed = [f"- {name}: {s} on {len(why)} folds: {why[0].splitlines()[0]}" for name, s, why in failed if why]
    lines += ["", "## Where a system could not be trained", "", "It then answers with the shares of the classes.", ""]
    lines += failed or ["Nowhere."]
    rows = [
        [
            s,
            *(
                f"{sum(results.seconds(n, s, w) for n in names if results.has(n, s)):.1f}"
                for w in ("fit, CPU s", "predict, CPU s")
            ),
        ]
        for s in results.systems
    ]
    lines += ["", "## Time", "", "Summed over the sets that a system has finished.", ""]
    lines += markdown_table(["system", "fit, CPU s", "predict, CPU s"], rows)
    return [*lines, "", "## Sources", "", *sources()]


def figure_of_ranks(results):
    """Mean ranks with a bar as long as the critical difference."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, measure, high) in zip(
        panels, (("accuracy", results.accuracy, True), ("log loss", results.log_loss, False)), strict=True
    ):
        mean_ranks, critical, _ = ranks(results, measure, high)
        order = sorted(mean_ranks, key=mean_ranks.get, reverse=True) if axes is panels[0] else order  # noqa: F821
        axes.plot([mean_ranks[system] for system in order], range(len(order)), "o", color="black")
        if np.isfinite(critical):
            best = min(mean_ranks.values())
            axes.axvspan(best, best + critical, color="0.9", zorder=0)
        axes.set_title(f"mean rank in {title}; grey: no significant difference to the best", fontsize=8)
        axes.set_yticks(range(len(order)), order)
    return figure


def figure_of_calibration(results):
    """Share of right answers against confidence, all sets together."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.8")
    for system in results.systems:
        names = [one.name for one in results.sets if results.has(one.name, system)]
        count, confidence, right = np.sum([results.summed(name, system, "bins") for name in names], axis=0)
        there = count > 0
        axes.plot(
            (confidence / np.maximum(count, 1))[there], (right / np.maximum(count, 1))[there], "o-", ms=3, label=system
        )
    axes.set(xlabel="probability of the answer", ylabel="share that is right")
    axes.legend(fontsize=7)
    return figure


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the real sets")
    parser.add_argument("--output", type=Path, default=Path("arena"), help="folder for all results (arena)")
    parser.add_argument(
        "--systems",
        nargs="+",
        default=list(ARENA),
        choices=[*ARENA, *SIGNALS],
        help="all by default but those for raw signals, which need torch and aeon",
    )
    parser.add_argument("--sets", nargs="+", help="names of sets; all by default")
    parser.add_argument("--seed", type=int, default=0, help="seed of every system (0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1, the default, is one per core")
    return parser.parse_args(given)


def main(given=None):
    options = arguments(given)
    try:
        check_folder(options.data)
        sets = all_sets(options.data)
    except DataError as error:
        raise SystemExit(str(error)) from None
    sets = [one for one in sets if options.sets is None or one.name in options.sets]
    store = Store(options.output / "arena.jsonl")
    run(store, sets, wanted(sets, options.systems, options.seed), options.jobs)
    write(store, sets, options)


def write(store, sets, options):
    """The page and the pictures of what is there."""
    results = Results(store, sets, options.systems, options.seed)
    (options.output / "arena.md").write_text("\n".join(report(results, options)) + "\n")
    if results.complete_sets():
        figure_of_ranks(results).savefig(options.output / "arena.png", dpi=120)
    figure_of_calibration(results).savefig(options.output / "arena_calibration.png", dpi=120)
    print(f"written: arena.md and its pictures in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
