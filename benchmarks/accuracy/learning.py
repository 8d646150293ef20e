"""Learning with few labels and with none, beside other ways and other packages.

    python benchmarks/accuracy/learning.py --data FOLDER [--seeds 2] [--output benchmarks/accuracy/LEARNING.md]

Results are kept in --store as they come, so that a run that was stopped goes on where it was. FOLDER holds the open
sets of `learning_sets.OPEN`, NAME.npz with the arrays X, y and lengths; without --data, only generators are measured.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from pathlib import Path

import numpy as np
from hmmlearn.hmm import GaussianHMM
from learning_sets import OPEN, case_of, some_labels, sources
from results import Store, complete, markdown_table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from drhmm import DensityRatioHMM, __version__

FEW_WORDS = """Labels are 1 %, 5 % or 20 % of the rows in stretches, five single rows of each state, or one stretch of
each state; the mean of these five is shown. `auto`, `use` and `ignore` are the values of `unlabelled`. `before` is the
partial fit of commit a2997d3, which always used all rows. Self-training has logistic regression, label spreading seven
neighbours; both see single rows. Lines below the mean compare every case with `ignore`, the labelled rows alone."""

NONE_WORDS = """`hmmlearn` is the likeliest of ten starts with full or diagonal covariances. Gaussian HMMs have 2, 3,
4 or 6 states and 1, 3 or 10 columns. The autoregressive chain has `window=2`, for hmmlearn two columns. `before` is
commit a2997d3, where only kernels followed EM. The rules that end EM and choose between
kernels and Gaussians were found on these sets: about ten rules were compared on seeds 0 to 7, and two thresholds were
raised after goal_gps and returns had lost in an earlier run of this table. Expect less of a lead on other data. The
rule for few labels came with its constants, and was not changed here."""

OTHER_WORDS = """## What to label next

`suggest_labels` was tried in a prototype before it was written, on 14 of the sets above and generators, five seeds
each: alternate blocks of 60 rows to learn from and to test on, one stretch of five rows of each state to begin
with, then four more stretches at a time, `unlabelled="ignore"`. Labelled rows until the accuracy reaches 95 % of
that with all labels, at most 280:

| set | random | suggested |
|---|---|---|
| occupancy | 38 | 34 |
| bee | 27 | 23 |
| goal_gps | 30 | 26 |
| mhealth_athens | 168 | 140 |
| recession | 62 | 90 |
| eye_gaze | 280 | 244 |
| apnea_ecg | 102 | 110 |
| kasteren_a | 83 | 43 |
| driver | 30 | 18 |
| ordonez_a | 10 | 10 |
| blobs | 23 | 23 |
| moons | 26 | 30 |
| rings | 79 | 63 |
| returns | 54 | 30 |
| **mean** | **72** | **63** |

Fewer rows in 27 % of the 70 cases, more in 14 %. gait_back and heart_sound, which no way brought to 95 % in a
first trial, were left out. The rule was chosen of seven on another seed: entropy alone, with spacing, margins, and
entropy times density won less, and the last lost to random stretches on these seeds (82 rows).

## Limits

- One of the 170 cases with few labels is worse than the labelled rows alone by more than .1 (bee, one stretch of
  each state, two of them of two rows, .36 instead of .46): hidden single rows have a labelled neighbour, which EM
  predicts easily. To ask for four labelled rows of each state would mend it, and cost .15 to .47 in three cases of
  rings and blobs.
- `select_states`, 1,000 rows, candidates 1 to 3: one state in 9 of 9 draws of normal noise and in 9 of 9 of t-noise (3
  degrees of freedom); two in 6 of 10 of returns, one in the others, whose gains differ too much between blocks.
- A series that only drifts is cut into states by its level. A warning was tried: changes of state that are small
  steps, beside the distance between states. AR(1) series with coefficients from .9 to .99 had ratios from .01 to
  .41, and so had seven of the 13 open sets, generators .79 or more. Smooth signals look the same, so there is no
  warning."""

PATTERNS = ("1 %", "5 %", "20 %", "5 rows", "stretch")
FEW_GENERATORS = ("blobs", "moons", "rings", "returns")
NONE_GENERATORS = (*FEW_GENERATORS, "binary", "autoregressive")
GAUSSIANS = tuple(f"gaussian {states} {columns}" for states in (2, 3, 4, 6) for columns in (1, 3, 10))


def ours(**settings):
    """The labels that a partly labelled fit predicts."""

    def predict(case, labels, seed):
        fitted = DensityRatioHMM(window=case.window, random_state=seed, n_threads=1, **settings)
        return fitted.fit(case.X, labels, lengths=case.lengths).predict(case.X, lengths=case.lengths)

    return predict


def from_sklearn(make):
    """The labels that a semi-supervised classifier predicts, frame by frame."""

    def predict(case, labels, seed):
        return (
            make().fit(StandardScaler().fit_transform(case.X), labels).predict(StandardScaler().fit_transform(case.X))
        )

    return predict


FEW = {
    "auto": ours(unlabelled="auto"),
    "use": ours(unlabelled="use"),
    "ignore": ours(unlabelled="ignore"),
    "self-training": from_sklearn(lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
    "label spreading": from_sklearn(lambda: LabelSpreading("knn", n_neighbors=7, max_iter=200)),
    "before": ours(),  # for an older package on PYTHONPATH
}


def unlabelled(**settings):
    """The states that a fit without labels finds."""

    def find(case, seed):
        fitted = DensityRatioHMM(case.n_states, window=case.window, random_state=seed, n_threads=1, **settings)
        return fitted.fit(case.X, lengths=case.lengths).predict(case.X, lengths=case.lengths)

    return find


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


NONE = {
    "drhmm": unlabelled(),
    "ratio gaussian": unlabelled(ratio="gaussian"),
    "hmmlearn full": hmmlearn("full"),
    "hmmlearn diag": hmmlearn("diag"),
    "before": unlabelled(),
}


def few_keys(options):
    """Cases with few labels."""
    names = [*(OPEN if options.data else ()), *FEW_GENERATORS]
    return [
        {"few": system, "set": name, "labels": pattern, "seed": options.first_seed + seed}
        for seed in range(options.seeds)
        for name in names
        for pattern in PATTERNS
        for system in options.few
    ]


def none_keys(options):
    """Cases without labels; generators have more seeds than open sets."""
    seeds = dict.fromkeys(OPEN if options.data else (), options.seeds)
    seeds |= dict.fromkeys((*NONE_GENERATORS, *GAUSSIANS), max(options.generator_seeds, options.seeds))
    return [
        {"none": system, "set": name, "seed": options.first_seed + seed}
        for name, count in seeds.items()
        for seed in range(count)
        for system in options.none
    ]


def measured(options):
    """From missing keys to results."""

    def results(keys):
        for key in keys:
            case = case_of(options.data, key["set"], key["seed"])
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "few" in key:
                    labels = some_labels(case, key["labels"], key["seed"])
                    hidden = labels < 0
                    found = FEW[key["few"]](case, labels, key["seed"])
                    values = {"accuracy": float(np.mean(found[hidden] == case.y[hidden]))}
                else:
                    values = {"ari": float(adjusted_rand_score(case.y, NONE[key["none"]](case, key["seed"])))}
            yield key, values | {"cpu": time.process_time() - begin}

    return results


def few_table(store, options):
    """Mean accuracy of every way by set, and how often it is worse than the labelled rows alone."""
    keys = few_keys(options)
    systems = [system for system in FEW if all({**key, "few": system} in store for key in keys)]
    values = {
        system: np.array([store[{**key, "few": system}]["accuracy"] for key in keys if key["few"] == keys[0]["few"]])
        for system in systems
    }
    cpu = {
        system: np.mean([store[{**key, "few": system}]["cpu"] for key in keys if key["few"] == keys[0]["few"]])
        for system in systems
    }
    names = np.array([key["set"] for key in keys if key["few"] == keys[0]["few"]])
    rows = [
        [name, *(f"{values[system][names == name].mean():.3f}" for system in systems)]
        for name in dict.fromkeys(names.tolist())
    ]
    rows.append(["**mean**", *(f"**{values[system].mean():.3f}**" for system in systems)])
    lead = {system: values[system] - values["ignore"] for system in systems} if "ignore" in values else {}
    for words, share in {
        "worst beside ignore": lambda d: f"{d.min():.3f}",
        "worse by > .01": lambda d: f"{np.mean(d < -0.01):.1%}",
        "worse by > .1": lambda d: f"{np.mean(d < -0.1):.1%}",
        "better by > .01": lambda d: f"{np.mean(d > 0.01):.1%}",
    }.items():
        rows.append([words, *(share(lead[system]) if lead else "" for system in systems)])
    rows.append(["CPU s", *(f"{cpu[system]:.2f}" for system in systems)])
    return markdown_table(["set", *systems], rows)


def none_table(store, options):
    """Mean adjusted Rand index by set; Gaussian HMMs are one row."""
    keys = none_keys(options)
    systems = [system for system in NONE if all({**key, "none": system} in store for key in keys)]
    rows, groups = [], {}
    for key in keys:
        if key["none"] == keys[0]["none"]:
            groups.setdefault("Gaussian HMMs" if key["set"] in GAUSSIANS else key["set"], []).append(key)
    for name, own in groups.items():
        means = [np.mean([store[{**key, "none": system}]["ari"] for key in own]) for system in systems]
        rows.append([f"{name} ({len(own)})", *(f"{mean:.3f}" for mean in means)])
    every = [key for own in groups.values() for key in own]
    cpu = [np.mean([store[{**key, "none": system}]["cpu"] for key in every]) for system in systems]
    rows.append(["CPU s", *(f"{mean:.2f}" for mean in cpu)])
    return markdown_table(["set (cases)", *systems], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the open sets")
    parser.add_argument("--seeds", type=int, default=2, help="draws of rows and labels")
    parser.add_argument("--generator-seeds", type=int, default=10, help="seeds of generators without labels")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--few", nargs="*", default=[name for name in FEW if name != "before"], choices=FEW)
    parser.add_argument("--none", nargs="*", default=[name for name in NONE if name != "before"], choices=NONE)
    parser.add_argument("--store", type=Path, default=Path("learning_results.jsonl"))
    parser.add_argument("--output", type=Path, help="Markdown file to write; standard output by default")
    options = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    store = Store(options.store)
    text = ["# Learning with few labels and with none, measured", ""]
    text += [f"drhmm {__version__}, `benchmarks/accuracy/learning.py`, sets of at most 1,200 rows.", ""]
    if options.few:
        complete(store, few_keys(options), measured(options), "few labels")
        text += ["## Few labels: accuracy on the rows without one", "", FEW_WORDS, "", *few_table(store, options), ""]
    if options.none:
        complete(store, none_keys(options), measured(options), "no labels")
        text += ["## No labels: adjusted Rand index", "", NONE_WORDS, "", *none_table(store, options), ""]
    if options.data:
        text += [OTHER_WORDS, "", "## Sources of the open sets", "", *sources(), ""]
    if options.output is None:
        print("\n".join(text))
    else:
        options.output.write_text("\n".join(text))


if __name__ == "__main__":
    main()
