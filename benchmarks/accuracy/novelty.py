"""The unknown: our evidence and alarms beside detectors of others, alone and with the same chain.

``python benchmarks/accuracy/novelty.py --data FOLDER --output FOLDER`` writes novelty.md. The seeds of the sensors were
not looked at while the rule was chosen.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from anomalies import N_TRAINING, PrincipalParts, gmm, kde, trailing_mean
from neonatal import ratio_systems
from neonatal.protocol import prepare
from neonatal.vital_signs import monitor
from sets import anomaly_files
from sklearn.covariance import LedoitWolf
from sklearn.ensemble import IsolationForest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from drhmm import DensityRatioHMM, recursion
from drhmm.chain.unknown_state import Novelty
from drhmm.datasets import FAULTS, blobs, moons, rings, sensors
from drhmm.evidence.score_pvalues import ScoreTable
from drhmm.evidence.unknown import SCALES, blocks_of

NOVELTY = Novelty(1e-3, 50.0)
DAY, WEEK, HOLD_OFF = 1440, 10_080, 60

#: Training frames of detectors whose time grows with the square of them, at most.
MOST = 2000


class Mahalanobis:
    """Squared distance from the mean, by a shrunk covariance."""

    def fit(self, X):
        self.covariance = LedoitWolf().fit(X)
        return self

    def score_samples(self, X):
        return -self.covariance.mahalanobis(X)


class Pyod:
    """A detector of PyOD."""

    def __init__(self, detector):
        self.detector = detector

    def fit(self, X):
        self.detector.fit(X)
        return self

    def score_samples(self, X):
        return -self.detector.decision_function(X)


def _few(X, seed):
    return X if len(X) <= MOST else X[np.sort(np.random.RandomState(seed).choice(len(X), MOST, replace=False))]


#: From standardised rows and a seed to a fitted object whose score_samples is low at anomalies.
DETECTORS = {
    "Mahalanobis": lambda X, seed: Mahalanobis().fit(X),
    "PCA, T2 + Q": lambda X, seed: PrincipalParts().fit(X),
    "GMM": lambda X, seed: gmm(_few(X, seed), seed),
    "KDE": lambda X, seed: kde(_few(X, seed), seed),
    "one-class SVM": lambda X, seed: OneClassSVM(nu=0.01).fit(_few(X, seed)),
    "LOF": lambda X, seed: LocalOutlierFactor(novelty=True).fit(_few(X, seed)),
    "isolation forest": lambda X, seed: IsolationForest(random_state=seed).fit(X),
}
try:
    from pyod.models.copod import COPOD
    from pyod.models.ecod import ECOD

    DETECTORS["ECOD"] = lambda X, seed: Pyod(ECOD()).fit(X)
    DETECTORS["COPOD"] = lambda X, seed: Pyod(COPOD()).fit(X)
except ImportError:
    warnings.warn("PyOD is not installed: its detectors are left out", stacklevel=1)

OURS = "drhmm"


def filtered(log_evidence):
    """p(unknown) of one sequence with one known state, filtered."""
    chain = NOVELTY.transmat(np.ones((1, 1)), np.ones(1)), NOVELTY.startprob(np.ones(1))
    return recursion.filter(np.column_stack([np.zeros(len(log_evidence)), log_evidence]), *chain)[:, 1]


def detect(name, train, labels, test, seed):
    """Scores of test rows alone, and p(unknown) with the chain."""
    if name == OURS:
        fitted = DensityRatioHMM(novelty=True, random_state=seed, n_threads=1).fit(train, labels)
        return fitted.novelty_score(test), fitted.novelty_proba(test)
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    blocks, held_out = blocks_of(labels), np.empty(len(train))
    for block in np.unique(blocks):
        rows = blocks == block
        held_out[rows] = -DETECTORS[name](train[~rows], seed).score_samples(train[rows])
    score = -DETECTORS[name](train, seed).score_samples(test)
    table = ScoreTable.learn(held_out)
    most = NOVELTY.rate * NOVELTY.duration / (1 + NOVELTY.rate * NOVELTY.duration)
    own = table.log_e(held_out)
    scale = next((scale for scale in SCALES if filtered(scale * own).mean() <= most), SCALES[-1])
    return score, filtered(scale * table.log_e(score))


def left_out(samples, labels, seed):
    """Known classes to learn from and a test with all of them, for every class that is left out."""
    half = len(samples) // 2
    for label in np.unique(labels):
        known = labels[:half] != label
        truth = labels[half:] == label
        if truth.any() and not truth.all() and len(np.unique(labels[:half][known])) > 0:
            yield samples[:half][known], labels[:half][known], samples[half:], truth


def cases(name, folder, seeds):
    """(seed, train, labels, test, truth) of a set."""
    if name == "sensors":
        for seed in seeds:
            train, _ = sensors(WEEK, faults=(), random_state=1000 + seed)
            test, fault = sensors(WEEK, n_events=4, random_state=2000 + seed)
            yield seed, train, np.zeros(len(train), int), test, fault != "normal"
    elif name.startswith("SKAB"):
        for X, y in anomaly_files(folder):
            rows = trailing_mean(X, 10 if "ten" in name else 1)
            yield 0, rows[:N_TRAINING], np.zeros(N_TRAINING, int), rows[N_TRAINING:], y[N_TRAINING:] == 1
    elif name in ("blobs", "rings", "moons"):
        make = {"blobs": blobs, "rings": rings, "moons": moons}[name]
        for seed in seeds[:3]:
            samples, labels = make(3000, random_state=1000 + seed)
            yield from ((seed, *case) for case in left_out(samples, labels, seed))
    else:
        with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as data:
            samples, labels = data["X"], data["y"]
        yield from ((0, *case) for case in left_out(samples, labels, 0))


SETS = ("sensors", "SKAB, rows", "SKAB, means of ten", "blobs", "rings", "moons", "bee", "mhealth_athens")


def measure(name, system, folder, seeds):
    """Mean AUC of rows alone and with the chain, F1 and share of normal rows with p(unknown) > 1/2, seconds."""
    alone, chain, alarms, truths, normal, begin = [], [], [], [], [], time.process_time()
    for seed, train, labels, test, truth in cases(name, folder, seeds):
        score, probability = detect(system, train, labels, test, seed)
        alone.append(roc_auc_score(truth, score))
        chain.append(roc_auc_score(truth, probability))
        alarms.append(probability > 0.5)
        truths.append(truth)
        normal.append(probability[~truth].mean())
    alarm, truth = np.concatenate(alarms), np.concatenate(truths)
    return {
        "AUC alone": np.mean(alone),
        "AUC with chain": np.mean(chain),
        "F1": 2 * np.sum(alarm & truth) / max(alarm.sum() + truth.sum(), 1),
        "p(unknown) while normal": np.mean(normal),
        "CPU s": time.process_time() - begin,
    }


def measure_alarms(seeds):
    """False alarms asked for and got on fresh normal sensors, and what is found of every fault."""
    rows = []
    for seed in seeds:
        train, _ = sensors(10_000, faults=(), random_state=3000 + seed)
        fresh, _ = sensors(4 * WEEK, faults=(), random_state=4000 + seed)
        test, fault = sensors(2 * WEEK, n_events=6, random_state=5000 + seed)
        model = DensityRatioHMM(1, novelty=True, random_state=seed, n_threads=1).fit(train).model_
        for per in (DAY, WEEK):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                alarm = model.alarm(1, per=per, hold_off=HOLD_OFF)
            on = np.zeros(len(test), dtype=bool)
            for episode in alarm.follow(model.novelty_score(test))[1]:
                on[episode.begin : episode.end] = True
            starts = np.flatnonzero((fault != "normal") & (np.append("normal", fault[:-1]) == "normal"))
            ends = [start + int(np.argmax(np.append(fault[start:], "normal") == "normal")) for start in starts]
            found = [on[start:end].any() for start, end in zip(starts, ends, strict=True)]
            got = len(alarm.follow(model.novelty_score(fresh))[1]) / (4 * WEEK) * per
            frames = {kind: on[fault == kind].mean() for kind in FAULTS}
            mean = model.novelty_proba(fresh).mean()
            rows.append({"seed": seed, "per": per, "got": got, "events": np.mean(found), "p": mean, **frames})
    return rows


def measure_babies(seeds, n_babies, n_samples):
    """AUC of the evidence, AUC and log loss of p(unknown) against abnormal, and the loss of always saying the share.

    A baby is tested on what the others teach, as in the paper's experiment.
    """
    truths, probabilities, areas, alone = [], [], [], []
    for seed in seeds:
        patients = prepare(monitor(n_babies, n_samples, random_state=seed))
        for place, patient in enumerate(patients):
            if not patient.has("abnormal"):
                continue
            others = patients[:place] + patients[place + 1 :]
            truth = patient.truth["abnormal"]
            probability, evidence = ratio_systems.novelty(patient, others, seed)
            truths.append(truth)
            probabilities.append(np.clip(probability, 1e-15, 1 - 1e-15))
            if truth.any() and not truth.all():
                areas.append(roc_auc_score(truth, probability))
                alone.append(roc_auc_score(truth, np.nan_to_num(evidence)))
    truth, probability = np.concatenate(truths), np.concatenate(probabilities)
    share = np.full(len(truth), truth.mean())
    return {
        "babies": len(truths),
        "AUC alone": float(np.mean(alone)),
        "AUC with chain": float(np.mean(areas)),
        "log loss": float(log_loss(truth, probability)),
        "log loss of the share": float(log_loss(truth, share)),
    }


def table(rows, columns):
    """A table in Markdown."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    shown = [
        [f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in columns] for row in rows
    ]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in shown])


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with skab.npz, bee.npz and mhealth_athens.npz")
    parser.add_argument("--output", type=Path, required=True, help="folder for novelty.md")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--babies", type=int, default=2, help="seeds of fifteen simulated babies for 24 hours each")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--systems", nargs="*", default=(OURS, *DETECTORS))
    options = parser.parse_args(given)
    options.output.mkdir(parents=True, exist_ok=True)
    page = ["# The unknown", "", "## Alarms on correlated sensors", ""]
    rows = measure_alarms(range(options.seeds))
    columns = ("per", "got", "events", "p", *FAULTS)
    means = []
    for per in (DAY, WEEK):
        own = [row for row in rows if row["per"] == per]
        means.append({name: float(np.mean([row[name] for row in own])) for name in columns})
        got = [row["got"] for row in own]
        page.append(f"Asked for one in {per} frames, got {min(got):.2f} to {max(got):.2f} per seed.")
    page += ["", table(means, columns)]
    if options.babies > 0:
        found = measure_babies(range(6000, 6000 + options.babies), 15, 24 * 3600)
        page += ["", "## Simulated babies, abnormal against all else", "", table([found], tuple(found))]
    print("\n".join(page), flush=True)
    for name in options.sets:
        found = []
        for system in options.systems:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seeds = range(min(options.seeds, 3)) if name == "sensors" else range(options.seeds)
                found.append({"system": system} | measure(name, system, options.data, seeds))
            print(name, found[-1], flush=True)
        page += ["", f"## {name}", "", table(found, tuple(found[0]))]
        (options.output / "novelty.md").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
