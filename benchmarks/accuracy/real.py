"""Four real sets, every peer: accuracy, macro F1, AUC, log loss, calibration error and times.

Writes real.jsonl (one line per finished result: a killed run goes on where it stopped), real.md, real.png and
real_calibration.png into the output folder. The sets are not part of this project: --data names a folder with
apnea_ecg.npz, occupancy.npz, mhealth_athens.npz and skab.npz; without it a message says where each comes from.

Beside the splits of the protocol there are blind ones, which nobody had looked at when the defaults were fixed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import anomalies
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from peers import PEERS
from results import Store, complete, markdown_table
from sets import SOURCES, DataError, anomaly_files, check_folder, labelled_splits
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from drhmm import __version__, plotting

OURS = next(iter(PEERS))
HIGH_IS_GOOD = {"accuracy": True, "macro F1": True, "AUC": True, "log loss": False, "calibration error": False}
TIMES = ("fit, CPU s", "predict, CPU s")
SHOWN = ("density ratio HMM", "GMM-HMM", "RBF-SVM", "linear-chain CRF")


def scores(y, posteriors):
    """Everything that is measured of probabilities, (n, S)."""
    n_states = posteriors.shape[1]
    guess = posteriors.argmax(axis=1)
    area = roc_auc_score(y, posteriors[:, 1]) if n_states == 2 else roc_auc_score(y, posteriors, multi_class="ovr")
    return {
        "accuracy": float(np.mean(guess == y)),
        "macro F1": f1_score(y, guess, average="macro"),
        "AUC": area,
        "log loss": log_loss(y, posteriors, labels=np.arange(n_states)),
        "calibration error": plotting.calibration_error(y, posteriors),
    }


def measure_split(split, system, seed, kept):
    """Train and test one system on one split; its probabilities are kept in a file for the pictures."""
    (X, y, lengths), (X_test, y_test, test_lengths) = split.train, split.test
    model = PEERS[system].make(split.window, seed)
    begin = time.process_time()
    model.fit(X, y, lengths)
    middle = time.process_time()
    posteriors = model.predict_proba(X_test, test_lengths)
    end = time.process_time()
    posteriors = posteriors / posteriors.sum(axis=1, keepdims=True)
    if kept is not None:
        np.save(kept, posteriors.astype(np.float32))
    return {**scores(y_test, posteriors), "fit, CPU s": middle - begin, "predict, CPU s": end - middle}


def labelled_keys(splits, options):
    return [
        {"experiment": "real", "split": split.name, "system": system, "seed": seed}
        for split in splits
        for system, peer in PEERS.items()
        for seed in range(options.seeds if peer.random else 1)
    ]


def anomaly_keys(options):
    return [
        {"experiment": "skab", "width": width, "system": system, "seed": seed}
        for width in anomalies.WIDTHS
        for system in anomalies.SYSTEMS
        for seed in range(options.seeds if system in anomalies.RANDOM else 1)
    ]


def kept_file(options, key):
    """Where the probabilities of a result are kept that a picture shows."""
    if key["split"] != "apnea_ecg" or key["system"] not in SHOWN or key["seed"] != 0:
        return None
    return options.output / f"{key['split']}-{key['system']}.npy".replace(" ", "_")


def run(options, splits):
    """All results that are not there yet."""
    store, by_name = Store(options.output / "real.jsonl"), {split.name: split for split in splits}
    files = anomaly_files(options.data)

    def labelled(missing):
        for key in missing:
            split = by_name[key["split"]]
            yield key, measure_split(split, key["system"], key["seed"], kept_file(options, key))

    def unlabelled(missing):
        for key in missing:
            yield key, anomalies.measure(files, key["system"], key["width"], key["seed"])

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of searches that end before they converge
        complete(store, labelled_keys(splits, options), labelled, "labelled sets")
        complete(store, anomaly_keys(options), unlabelled, "skab")
    return store


def summary(store, keys, columns):
    """Mean and spread over seeds: {system: {column: (mean, spread, n)}}."""
    systems = {}
    for key in keys:
        systems.setdefault(key["system"], []).append(store[key])
    return {
        system: {c: (np.mean([v[c] for v in values]), np.ptp([v[c] for v in values]) / 2, len(values)) for c in columns}
        for system, values in systems.items()
    }


def table(results, high_is_good, digits, times):
    """Lines of Markdown; the best of each column in bold, ± half the range over seeds where there are several."""
    best = {c: (max if good else min)(cells[c][0] for cells in results.values()) for c, good in high_is_good.items()}
    rows = []
    for system, cells in results.items():
        row = [system]
        for column in high_is_good:
            mean, spread, n = cells[column]
            text = f"{mean:.{digits[column]}f}"
            text = f"**{text}**" if text == f"{best[column]:.{digits[column]}f}" else text
            row.append(text + (f" ± {spread:.{digits[column]}f}" if n > 1 else ""))
        rows.append(row + [f"{cells[column][0]:.2g}" for column in times])
    return markdown_table(["system", *high_is_good, *times], rows)


def verdict(results, column, good):
    """Who is first and where ours stands."""
    means = {system: round(cells[column][0], 3) for system, cells in results.items()}
    own = OURS if OURS in means else anomalies.OURS
    order = sorted(means, key=means.get, reverse=good)
    place = 1 + sum(mean > means[own] if good else mean < means[own] for mean in means.values())
    ties = [system for system in order if system != own and means[system] == means[own]]
    shared = f", level with {', '.join(ties)}" if ties else ""
    if place == 1:
        behind = [system for system in order if means[system] != means[own]]
        following = f"; next {behind[0]}, {means[behind[0]]:.3f}" if behind else ""
        return f"{column}: ours is first ({means[own]:.3f}{shared}{following})"
    leader = f"{order[0]} is first ({means[order[0]]:.3f})"
    return f"{column}: {leader}, ours is number {place} of {len(order)} ({means[own]:.3f}{shared})"


def report(store, splits, options):
    """The Markdown page."""
    digits = dict.fromkeys(HIGH_IS_GOOD, 3)
    lines = [
        "# Real sequences",
        "",
        f"drhmm {__version__}, `python benchmarks/accuracy/real.py --data FOLDER --seeds {options.seeds}`, one core.",
        f"±: half the range over {options.seeds} seeds, for systems that depend on one. Bold: best of a column.",
    ]
    for blind in (False, True):
        title = "Blind splits: run once, after all defaults were fixed" if blind else "Splits of the protocol"
        lines += ["", f"## {title}"]
        for split in (split for split in splits if split.blind == blind):
            keys = [key for key in labelled_keys(splits, options) if key["split"] == split.name]
            results = summary(store, keys, (*HIGH_IS_GOOD, *TIMES))
            sizes = f"{len(split.train[1])} rows to learn from, {len(split.test[1])} to label"
            lines += ["", f"### {split.name}", "", f"Trained on {split.words}; {sizes}.", ""]
            lines += table(results, HIGH_IS_GOOD, digits, TIMES)
            lines += [
                "",
                "; ".join(verdict(results, c, HIGH_IS_GOOD[c]) for c in ("accuracy", "AUC", "log loss")) + ".",
            ]
    good = {"F1": True, "false alarms, %": False, "missed, %": False, "AUC": True}
    for width in anomalies.WIDTHS:
        keys = [key for key in anomaly_keys(options) if key["width"] == width]
        results = summary(store, keys, (*good, "CPU s per file"))
        lines += ["", f"## SKAB, mean of the last {width} row{'s' if width > 1 else ''}", ""]
        lines += table(results, good, {c: 1 if "%" in c else 3 for c in good}, ["CPU s per file"])
        lines += ["", "; ".join(verdict(results, c, True) for c in ("F1", "AUC")) + "."]
    return [*lines, "", "## Sources", "", *(f"- {name}: {source}." for name, source in SOURCES.items())]


def figure_of_scores(store, splits, options):
    """Accuracy and log loss of every system, one column per set of the protocol; blind splits are hollow."""
    names = ["apnea_ecg", "occupancy", "occupancy without Light", "mhealth_athens"]
    figure = Figure(figsize=(12, 6.5), layout="constrained", dpi=150)
    axes = figure.subplots(2, len(names), sharey=True)
    for column, name in enumerate(names):
        for split in (split for split in splits if split.name.split(",")[0] == name):
            keys = [key for key in labelled_keys(splits, options) if key["split"] == split.name]
            results = summary(store, keys, HIGH_IS_GOOD)
            for axis, measure in zip(axes[:, column], ("accuracy", "log loss"), strict=True):
                for k, (system, cells) in enumerate(results.items()):
                    ink = plotting.COLORS[5] if system == OURS else "#555555"
                    face = "none" if split.blind else ink
                    mean, spread, _ = cells[measure]
                    axis.errorbar(
                        mean,
                        -k + 0.22 * split.blind,
                        xerr=spread,
                        fmt="o",
                        color=ink,
                        markerfacecolor=face,
                        markersize=6,
                    )
        axes[0, column].set_title(name, loc="left", fontsize=10)
        axes[0, column].set_xlabel("accuracy")
        axes[1, column].set_xlabel("log loss, nats")
        axes[1, column].set_xscale("log")
        axes[1, column].xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes[1, column].xaxis.set_major_formatter("{x:g}")
        axes[1, column].xaxis.set_minor_formatter(NullFormatter())
    for axis in axes.flat:
        axis.set_yticks(-np.arange(len(PEERS)), list(PEERS), fontsize=9)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Filled: the protocol. Hollow: blind splits of the same set.", x=0.01, ha="left", fontsize=10)
    return figure


def figure_of_calibration(splits, options):
    """Reliability diagram of four systems on the apnea recordings."""
    (split,) = (split for split in splits if split.name == "apnea_ecg")
    curves = {}
    for system in SHOWN:
        path = kept_file(options, {"split": split.name, "system": system, "seed": 0})
        curves[system] = np.clip(np.load(path).astype(float), 0, 1)
    axes = plotting.calibration(split.test[1], curves)
    axes.set_xlim(0.49, 1.01)
    axes.set_ylim(0.3, 1.01)
    axes.set_aspect("auto")
    axes.set_title("apnea_ecg: the likelier state of each minute", loc="left", fontsize=10)
    return axes.figure


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the four sets")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of systems that depend on one (3)")
    parser.add_argument("--output", type=Path, default=Path("real"), help="folder for all results (real)")
    options = parser.parse_args(given)
    if options.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {options.seeds}")
    return options


def main(given=None):
    options = arguments(given)
    try:
        check_folder(options.data)
        splits = labelled_splits(options.data)
        options.output.mkdir(parents=True, exist_ok=True)
        store = run(options, splits)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    (options.output / "real.md").write_text("\n".join(report(store, splits, options)) + "\n")
    figure_of_scores(store, splits, options).savefig(options.output / "real.png")
    figure_of_calibration(splits, options).savefig(options.output / "real_calibration.png")
    print(f"written: real.md, real.png and real_calibration.png in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
