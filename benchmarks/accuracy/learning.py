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


def hmmlearn(covariance):
    """The states of the likeliest of ten starts; windows become columns."""

    def find(case, seed):
        X, skipped = case.X, case.window - 1
        if skipped:
            X = np.hstack([X[k : len(X) - skipped + k] for k in range(case.window)])
        X, best = StandardScaler().fit_transform(X), None
        lengths = case.lengths if skipped == 0 else [len(X)]
        for start in range(10):
            model = GaussianHMM(case.n_states, covariance, n_iter=100, random_state=10 * seed + start)
            try:
                score = model.fit(X, lengths).score(X, lengths)
            except ValueError:
                continue
            if best is None or score > best[0]:
                best = score, model.predict(X, lengths)
        found = np.zeros(len(X), dtype=int) if best is None else best[1]
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
    best = {}
    for number in NUMBERS:
        for start in range(3):
            model = GaussianHMM(number, covariance_type="full", n_iter=100, random_state=100 * seed + start)
            try:
                best[number] = min(model.fit(case.X).bic(case.X), best.get(number, np.inf))
            except ValueError:
                continue
    return min(best, key=best.get)


def few_score(case, key, way):
    """Accuracy on rows without a label."""
    labels = some_labels(case, key["labels"], key["seed"])
    hidden = labels < 0
    return np.mean(way(case, key["seed"], labels)[hidden] == case.y[hidden])


def next_score(case, key, way):
    """Labelled rows until the accuracy on other blocks is 95 % of that with all labels."""
    begins, ends = np.cumsum([0, *case.lengths[:-1]]), np.cumsum(case.lengths)
    blocks = [
        (at, min(at + BLOCK, end)) for begin, end in zip(begins, ends, strict=True) for at in range(begin, end, BLOCK)
    ]
    (X, y, lengths), (X_test, y_test, lengths_test) = (
        (
            np.concatenate([case.X[begin:end] for begin, end in part]),
            np.concatenate([case.y[begin:end] for begin, end in part]),
            [end - begin for begin, end in part],
        )
        for part in (blocks[::2], blocks[1::2])
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


#: Score and ways by kind of task; "before" is for an older package on PYTHONPATH.
KINDS = {
    "few": few_score,
    "next": next_score,
    "none": none_score,
    "count": count_score,
}
WAYS = {
    "few": {
        "auto": ours(unlabelled="auto"),
        "use": ours(unlabelled="use"),
        "ignore": ours(unlabelled="ignore"),
        "self-training": from_sklearn(lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
        "label spreading": from_sklearn(lambda: LabelSpreading("knn", n_neighbors=7, max_iter=200)),
        "before": ours(),
    },
    "next": {"random": random_stretches, "suggested": suggested_stretches},
    "none": {
        "drhmm": ours(),
        "ratio gaussian": ours(ratio="gaussian"),
        "hmmlearn full": hmmlearn("full"),
        "hmmlearn diag": hmmlearn("diag"),
        "before": ours(),
    },
    "count": {"select_states": chosen_number, "hmmlearn BIC": by_bic},
}


def cases_of(kind, options):
    """Cases of a kind of task, with more seeds of generators without labels."""
    sets, n = OPEN if options.data else (), options.seeds
    seeds = {
        "few": dict.fromkeys((*sets, *FEW_GENERATORS), n),
        "next": dict.fromkeys([name for name in (*sets, *FEW_GENERATORS) if name not in UNREACHED], n),
        "none": dict.fromkeys(sets, n) | dict.fromkeys((*NONE_GENERATORS, *GAUSSIANS), options.generator_seeds),
        "count": dict.fromkeys(COUNTED, options.generator_seeds),
    }[kind]
    return [
        {"set": name, "seed": options.first_seed + seed} | ({"labels": pattern} if kind == "few" else {})
        for name, count in seeds.items()
        for seed in range(count)
        for pattern in (PATTERNS if kind == "few" else ("",))
    ]


def measured(kind, options):
    """From missing keys to results."""

    def results(keys):
        for key in keys:
            case, begin = case_of(options.data, key["set"], key["seed"]), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = KINDS[kind](case, key, WAYS[kind][key[kind]])
            yield key, {"value": float(value), "cpu": time.process_time() - begin}

    return results


def table(kind, store, cases):
    """Mean values of every complete way by set; with few labels, also the leads over labelled rows alone."""
    ways = [way for way in WAYS[kind] if all({**case, kind: way} in store for case in cases)]
    values, cpu = (
        {way: np.array([store[{**case, kind: way}][name] for case in cases]) for way in ways}
        for name in ("value", "cpu")
    )
    gathers = kind == "none"
    names = np.array(["Gaussian HMMs" if gathers and case["set"] in GAUSSIANS else case["set"] for case in cases])
    digits = 0 if kind == "next" else 3
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
    for kind, ways in WAYS.items():
        parser.add_argument(f"--{kind}", nargs="*", default=[way for way in ways if way != "before"], choices=ways)
    parser.add_argument("--store", type=Path, default=Path("learning_results.jsonl"))
    parser.add_argument("--page", type=Path, help="page with the tables to replace; standard output by default")
    options = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    store = Store(options.store)
    for kind in WAYS:
        cases, ways = cases_of(kind, options), getattr(options, kind)
        complete(store, [{**case, kind: way} for case in cases for way in ways], measured(kind, options), kind)
        if ways:
            text = table(kind, store, cases)
            if options.page is None:
                print(text, end="\n\n")
            else:
                options.page.write_text(insert(options.page.read_text(), kind, text))


if __name__ == "__main__":
    main()
