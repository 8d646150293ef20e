"""Few labels, the stretches to label next, no labels, and the number of states, beside other ways and packages.

    python benchmarks/accuracy/learning.py --data FOLDER [--seeds 2] [--page benchmarks/accuracy/LEARNING.md]

Results are kept in --store as they come, so that a run that was stopped goes on where it was. FOLDER holds the open
sets of `learning_sets.OPEN`, NAME.npz with the arrays X, y and lengths; without --data, only generators are measured.
Tables of complete ways replace those of --page.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hmmlearn.hmm import GaussianHMM
from learning_sets import OPEN, case_of, some_labels
from pages import insert
from results import Store, complete, markdown_table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from drhmm import DensityRatioHMM, select_states

PATTERNS = ("1 %", "5 %", "20 %", "5 rows", "stretch")
FEW_GENERATORS = ("blobs", "moons", "rings", "returns")
NONE_GENERATORS = (*FEW_GENERATORS, "binary", "autoregressive")
UNREACHED = ("eeg_eye", "gait_back", "heart_sound")
COUNTED = ("noise", "t-noise", "returns", "gaussian 2 3", "gaussian 3 3", "gaussian 4 3")
NUMBERS = range(1, 6)
#: Rows of a block to learn from or to test on, of a stretch, stretches at a time, and the most labelled rows.
BLOCK, STRETCH, AT_ONCE, MOST_LABELLED = 60, 5, 4, 280
GAUSSIANS = tuple(f"gaussian {states} {columns}" for states in (2, 3, 4, 6) for columns in (1, 3, 10))


def ours(**settings):
    """The labels of a partly labelled fit, or the states of a fit without labels."""

    def predict(case, seed, labels=None):
        fitted = DensityRatioHMM(
            case.n_states if labels is None else None,
            window=case.window,
            random_state=seed,
            n_threads=1,
            **settings,
        )
        return fitted.fit(case.X, labels, lengths=case.lengths).predict(case.X, lengths=case.lengths)

    return predict


def from_sklearn(make):
    """The labels that a semi-supervised classifier predicts, frame by frame."""

    def predict(case, seed, labels):
        X = StandardScaler().fit_transform(case.X)
        return make().fit(X, labels).predict(X)

    return predict


def gaussian_hmm(X, n_states, covariance, seeds, lengths=None):
    """The likeliest of the starts of hmmlearn that end; None without one."""
    found = []
    for seed in seeds:
        model = GaussianHMM(n_states, covariance, n_iter=100, random_state=seed)
        try:
            found.append((model.fit(X, lengths).score(X, lengths), -seed, model))
        except ValueError:
            continue
    return max(found)[-1] if found else None


def hmmlearn(covariance):
    """The states of the likeliest of ten starts; windows become columns."""

    def find(case, seed):
        skipped = case.window - 1
        X = np.hstack([case.X[k : len(case.X) - skipped + k] for k in range(case.window)])
        X, lengths = StandardScaler().fit_transform(X), case.lengths if skipped == 0 else [len(X)]
        model = gaussian_hmm(X, case.n_states, covariance, range(10 * seed, 10 * seed + 10), lengths)
        found = np.zeros(len(X), dtype=int) if model is None else model.predict(X, lengths)
        return np.append(np.full(skipped, found[0]), found)

    return find


def random_stretches(model, X, known, lengths, random):
    """Begins of stretches without a label, at least one length apart."""
    begins, ends, chosen = np.cumsum([0, *lengths[:-1]]), np.cumsum(lengths), []
    for begin in random.permutation(np.concatenate(list(map(np.arange, begins, ends - STRETCH + 1)))):
        if (known[begin : begin + STRETCH] < 0).all() and all(abs(begin - one) >= 2 * STRETCH for one in chosen):
            chosen.append(begin)
    return chosen[:AT_ONCE]


def suggested_stretches(model, X, known, lengths, random):
    """Begins of the stretches that a model suggests."""
    begins = np.cumsum([0, *lengths])
    found = model.suggest_labels(X, known, n=AT_ONCE, length=STRETCH, lengths=lengths, random_state=0)
    return [begins[one.sequence] + one.begin for one in found]


def chosen_number(case, seed):
    """The number of states by held-out gain."""
    return select_states(case.X, NUMBERS, random_state=seed, n_threads=1).n_states


def by_bic(case, seed):
    """The number of states with the smallest BIC of hmmlearn, the likeliest of three starts."""
    models = {n: gaussian_hmm(case.X, n, "full", range(100 * seed, 100 * seed + 3)) for n in NUMBERS}
    return min((n for n in NUMBERS if models[n]), key=lambda n: models[n].bic(case.X))


def few_score(case, key, way):
    """Accuracy on rows without a label."""
    labels = some_labels(case, key["labels"], key["seed"])
    hidden = labels < 0
    return np.mean(way(case, key["seed"], labels)[hidden] == case.y[hidden])


def next_score(case, key, way):
    """Labelled rows until the accuracy on other blocks is 95 % of that with all labels."""
    ends = np.cumsum(case.lengths)
    begins = [np.arange(end - n, end, BLOCK) for end, n in zip(ends, case.lengths, strict=True)]
    rows = np.split(np.arange(len(case.y)), np.concatenate(begins)[1:])
    (X, y, lengths), (X_test, y_test, lengths_test) = (
        (case.X[np.concatenate(part)], case.y[np.concatenate(part)], list(map(len, part)))
        for part in (rows[::2], rows[1::2])
    )
    seen, settings = np.isin(y_test, y), {"unlabelled": "ignore", "context": None, "n_threads": 1}

    def learned(labels):
        fitted = DensityRatioHMM(random_state=key["seed"], **settings).fit(X, labels, lengths=lengths)
        return fitted, np.mean((fitted.predict(X_test, lengths=lengths_test) == y_test)[seen])

    random, known, ends = np.random.RandomState(key["seed"]), np.full(len(y), -1), np.cumsum(lengths)
    for state in np.unique(y):
        begin = random.choice(np.flatnonzero(y == state))
        end = min(begin + STRETCH, ends[np.searchsorted(ends, begin, side="right")])
        others = np.flatnonzero(y[begin:end] != state)
        end = begin + others[0] if len(others) > 0 else end
        known[begin:end] = y[begin:end]
    goal, random = 0.95 * learned(y)[1], np.random.RandomState(1000 + key["seed"])
    while (count := np.sum(known >= 0)) < MOST_LABELLED:
        model, accuracy = learned(known)
        if accuracy >= goal:
            return count
        for begin in way(model, X, known, lengths, random):
            known[begin : begin + STRETCH] = y[begin : begin + STRETCH]
    return MOST_LABELLED


def none_score(case, key, way):
    """Adjusted Rand index."""
    return adjusted_rand_score(case.y, way(case, key["seed"]))


def count_score(case, key, way):
    """Whether the number of states is right."""
    return way(case, key["seed"]) == case.n_states


@dataclass(frozen=True)
class Experiment:
    """A score of a case, a key and a way; the ways by name; sets, and generators with seeds of their own.

    The way "before" is for an older package on PYTHONPATH.
    """

    score: Callable
    ways: dict
    sets: tuple = ()
    generators: tuple = ()
    labels: tuple = (None,)
    digits: int = 3

    def cases(self, options):
        """The keys without a way."""
        sets = [name for name in self.sets if options.data or name not in OPEN]
        seeds = dict.fromkeys(sets, options.seeds) | dict.fromkeys(self.generators, options.generator_seeds)
        return [
            {"set": name, "seed": options.first_seed + seed} | ({"labels": pattern} if pattern else {})
            for name, count in seeds.items()
            for seed in range(count)
            for pattern in self.labels
        ]


EXPERIMENTS = {
    "few": Experiment(
        few_score,
        {
            "auto": ours(unlabelled="auto"),
            "use": ours(unlabelled="use"),
            "ignore": ours(unlabelled="ignore"),
            "self-training": from_sklearn(lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
            "label spreading": from_sklearn(lambda: LabelSpreading("knn", n_neighbors=7, max_iter=200)),
            "before": ours(),
        },
        (*OPEN, *FEW_GENERATORS),
        labels=PATTERNS,
    ),
    "next": Experiment(
        next_score,
        {"random": random_stretches, "suggested": suggested_stretches},
        tuple(name for name in (*OPEN, *FEW_GENERATORS) if name not in UNREACHED),
        digits=0,
    ),
    "none": Experiment(
        none_score,
        {
            "drhmm": ours(),
            "ratio gaussian": ours(ratio="gaussian"),
            "hmmlearn full": hmmlearn("full"),
            "hmmlearn diag": hmmlearn("diag"),
            "before": ours(),
        },
        tuple(OPEN),
        (*NONE_GENERATORS, *GAUSSIANS),
    ),
    "count": Experiment(count_score, {"select_states": chosen_number, "hmmlearn BIC": by_bic}, generators=COUNTED),
}


def measured(kind, options):
    """From missing keys to results."""

    def results(keys):
        for key in keys:
            case, begin = case_of(options.data, key["set"], key["seed"]), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = EXPERIMENTS[kind].score(case, key, EXPERIMENTS[kind].ways[key[kind]])
            yield key, {"value": float(value), "cpu": time.process_time() - begin}

    return results


def table(kind, store, cases):
    """Mean values of every complete way by set; with few labels, also the leads over labelled rows alone."""
    ways = [way for way in EXPERIMENTS[kind].ways if all({**case, kind: way} in store for case in cases)]
    values, cpu = (
        {way: np.array([store[{**case, kind: way}][name] for case in cases]) for way in ways}
        for name in ("value", "cpu")
    )
    names = np.array(["Gaussian HMMs" if kind == "none" and one["set"] in GAUSSIANS else one["set"] for one in cases])
    digits = EXPERIMENTS[kind].digits
    rows = [
        [f"{name} ({np.sum(names == name)})", *(f"{values[way][names == name].mean():.{digits}f}" for way in ways)]
        for name in dict.fromkeys(names.tolist())
    ]
    if kind in ("few", "next"):
        rows.append(["**mean**", *(f"**{values[way].mean():.{digits}f}**" for way in ways)])
    if "ignore" in ways:
        for words, share in {
            "worst beside ignore": lambda lead: f"{lead.min():.3f}",
            "worse by > .01": lambda lead: f"{np.mean(lead < -0.01):.1%}",
            "worse by > .1": lambda lead: f"{np.mean(lead < -0.1):.1%}",
            "better by > .01": lambda lead: f"{np.mean(lead > 0.01):.1%}",
        }.items():
            rows.append([words, *(share(values[way] - values["ignore"]) for way in ways)])
    rows.append(["CPU s", *(f"{cpu[way].mean():.2f}" for way in ways)])
    return "\n".join(markdown_table(["set (cases)", *ways], rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the open sets")
    parser.add_argument("--seeds", type=int, default=2, help="draws of rows and labels")
    parser.add_argument("--generator-seeds", type=int, default=10, help="seeds of generators without labels")
    parser.add_argument("--first-seed", type=int, default=0)
    for kind, experiment in EXPERIMENTS.items():
        usual = [way for way in experiment.ways if way != "before"]
        parser.add_argument(f"--{kind}", nargs="*", default=usual, choices=experiment.ways, help="ways to measure")
    parser.add_argument("--store", type=Path, default=Path("learning_results.jsonl"))
    parser.add_argument("--page", type=Path, help="page with the tables to replace; standard output by default")
    options = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    store = Store(options.store)
    for kind, experiment in EXPERIMENTS.items():
        cases, ways = experiment.cases(options), getattr(options, kind)
        complete(store, [{**case, kind: way} for case in cases for way in ways], measured(kind, options), kind)
        if ways:
            text = table(kind, store, cases)
            if options.page is None:
                print(text, end="\n\n")
            else:
                options.page.write_text(insert(options.page.read_text(), kind, text))


if __name__ == "__main__":
    main()
