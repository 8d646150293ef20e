"""Learning and prediction on Dask with one worker and with two, measured; writes SCALING.md beside this file.

    python benchmarks/cluster/scaling.py --folder /tmp/drhmm-dask [--frames 5000000]

Frames are generated (seeded) into Parquet files in the folder, one partition each. What is there already, data and
measurements, is not made again: a run that was stopped goes on. The models of all runs are asserted to be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import drhmm
import drhmm.dask
from drhmm import DensityRatioHMM
from drhmm.system.progress import progress_bar

FEATURES = ["a", "b", "c", "d", "e"]
ROLES = {"features": FEATURES, "label": "label", "sequence": "sequence", "time": "second"}
SEQUENCE_ROWS = 5_000
N_STATES = 4


def note(text):
    print(text, file=sys.stderr, flush=True)


def partition(number, n_rows):
    """Whole sequences of clouds that take turns, one row a second."""
    random = np.random.default_rng(number)
    means = 1.5 * np.random.default_rng(0).normal(size=(N_STATES, len(FEATURES)))
    states = np.cumsum(random.random(n_rows) < 0.02) * random.integers(1, N_STATES) % N_STATES
    frame = pd.DataFrame(means[states] + random.normal(size=(n_rows, len(FEATURES))), columns=FEATURES)
    rows = np.arange(n_rows)
    return frame.assign(
        label=states,
        sequence=number * n_rows + rows // SEQUENCE_ROWS,
        second=(rows % SEQUENCE_ROWS).astype(float),
    )


def generate(folder, n_frames, n_rows):
    """The files of the first n_frames frames."""
    folder.mkdir(parents=True, exist_ok=True)
    show, paths = progress_bar("data"), []
    for number in range(n_frames // n_rows):
        path = folder / f"rows-{n_rows}-{number:05d}.parquet"
        if not path.exists():
            partition(number, n_rows).to_parquet(path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
        paths.append(path)
        show(number + 1, n_frames // n_rows, "")
    return paths


def peak_memory():
    """The most memory that this process has had, in MB (Linux; getrusage would inherit the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def right(frame):
    return pd.DataFrame({"right": [int((frame["state"] == frame["label"]).sum())], "rows": [len(frame)]})


def measure(paths, n_workers, n_basis):
    """Seconds of learning and prediction and the peak memory of a worker, before and after, on a new cluster."""
    estimator = DensityRatioHMM(n_basis=n_basis, random_state=0, n_threads=1)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("drhmm.dask"))
        idle = max(client.run(peak_memory).values())
        ddf = dd.from_map(pd.read_parquet, paths)
        begin = time.perf_counter()
        drhmm.dask.fit(estimator, ddf, **ROLES)
        learned = time.perf_counter()
        predicted = drhmm.dask.predict(estimator, ddf, sequence="sequence", time="second", whole=True)
        total = predicted.map_partitions(right, meta={"right": int, "rows": int}).sum().compute()
        end = time.perf_counter()
        peak = max(client.run(peak_memory).values())
    estimator.save(paths[0].parent / f"model-{len(paths)}-{n_workers}.drhmm")
    return {
        "fit": learned - begin,
        "predict": end - learned,
        "accuracy": float(total["right"] / total["rows"]),
        "idle": idle,
        "peak": peak,
    }


def assert_equal_models(folder, n_partitions, workers):
    models = [drhmm.load(folder / f"model-{n_partitions}-{n}.drhmm") for n in workers]
    X = partition(0, SEQUENCE_ROWS)[FEATURES]
    for model in models[1:]:
        np.testing.assert_allclose(model.predict_proba(X), models[0].predict_proba(X), rtol=0, atol=1e-9)


def report(options, rows, n_rows):
    """The page: one line for each number of frames and of workers."""
    lines = [
        "# Dask: measured",
        "",
        f"Made by `python benchmarks/cluster/scaling.py --folder FOLDER --frames {options.frames} --rows {n_rows} "
        f"--basis {options.basis}`; {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"Dask {dask.__version__}, distributed {distributed.__version__}, "
        f"drhmm {drhmm.__version__}. Workers are processes of one thread on one machine; medians of {options.repeats}.",
        "",
        f"{len(FEATURES)} columns, {N_STATES} states, {options.basis} kernel centres, partitions of {n_rows:,} rows in "
        "Parquet files. `fit` reads every partition three times (labels, sample, statistics) and cross-validates on a "
        "sample of 20,000 rows; the models of one worker and of two are equal to 1e-9. Memory is the peak of a worker "
        "over that of an idle one. `predict` is told that partitions hold whole sequences, and its results are summed, "
        "not written.",
        "",
        "| frames | workers | fit, s | predict, s | frames per second, fit | predict | memory, MB | accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (frames, workers), row in rows.items():
        lines.append(
            f"| {frames:,} | {workers} | {row['fit']:.1f} | {row['predict']:.1f} | {frames / row['fit']:,.0f} | "
            f"{frames / row['predict']:,.0f} | {row['peak'] - row['idle']:.0f} | {row['accuracy']:.3f} |"
        )
    one, two = rows[options.frames, 1], rows[options.frames, 2]
    lines += [
        "",
        f"From one worker to two: learning {one['fit'] / two['fit']:.2f} times as fast, "
        f"prediction {one['predict'] / two['predict']:.2f} times.",
        "",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where data and measurements are kept")
    parser.add_argument("--frames", type=int, default=5_000_000, help="frames of the largest run")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a partition")
    parser.add_argument("--basis", type=int, default=300, help="kernel centres")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the median is reported")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "SCALING.md", help="the page to write")
    options = parser.parse_args()
    if options.rows % SEQUENCE_ROWS or options.frames % options.rows or options.frames < 4 * options.rows:
        parser.error(f"--rows must be a multiple of {SEQUENCE_ROWS}, and --frames one of --rows, four of them or more")
    os.environ["DRHMM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

    paths = generate(options.folder, options.frames, options.rows)
    record = options.folder / "measured.json"
    measured = json.loads(record.read_text()) if record.exists() else {}
    # A quarter of the frames shows that memory does not grow with them.
    quarter = options.frames // options.rows // 4 * options.rows
    cases = [(frames, workers) for frames in (quarter, options.frames) for workers in (1, 2)]
    for repeat in range(options.repeats):
        for frames, workers in cases:
            key = f"{frames} frames, {workers} workers, {options.rows} rows, {options.basis} centres, run {repeat}"
            if key not in measured:
                measured[key] = measure(paths[: frames // options.rows], workers, options.basis)
                record.write_text(json.dumps(measured, indent=1))
            note(f"{key}: " + ", ".join(f"{name} {value:.3g}" for name, value in measured[key].items()))
    rows = {}
    for frames, workers in cases:
        prefix = f"{frames} frames, {workers} workers, {options.rows} rows, {options.basis} centres, run "
        runs = [measured[prefix + str(repeat)] for repeat in range(options.repeats)]
        rows[frames, workers] = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        assert_equal_models(options.folder, frames // options.rows, (1, 2)) if workers == 2 else None
    page = report(options, rows, options.rows)
    options.output.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
