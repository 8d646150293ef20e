"""Learning and prediction on Dask with data of four times the memory of a worker; writes SCALING.md beside this file.

    python benchmarks/cluster/scaling.py [--memory 400] [--workers 1 2] [--folder FOLDER]

The data are seeded, in Parquet files of the folder (temporary by default), one partition each. Workers are processes of
one thread with a limit of memory, at which Dask restarts them. The models of all runs are asserted to be equal, and no
worker may have been restarted. The default runs take less than five minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import drhmm  # drhmm.dask in functions only: workers import this file, and do not need scikit-learn
from drhmm.system.progress import progress_bar

SEQUENCE_ROWS, PARTITION_ROWS, N_STATES, N_TIMES = 5_000, 25_000, 4, 4


def partition(number, features):
    """Whole sequences of clouds that take turns, one row a second."""
    random = np.random.default_rng(number)
    means = 1.5 / np.sqrt(len(features) / 5) * np.random.default_rng(0).normal(size=(N_STATES, len(features)))
    jumps = (random.random(PARTITION_ROWS) < 0.02) * random.integers(1, N_STATES, PARTITION_ROWS)
    states = np.cumsum(jumps) % N_STATES
    rows = np.arange(PARTITION_ROWS)
    frame = pd.DataFrame(means[states] + random.normal(size=(PARTITION_ROWS, len(features))), columns=features)
    sequence = number * PARTITION_ROWS + rows // SEQUENCE_ROWS
    return frame.assign(label=states, sequence=sequence, second=(rows % SEQUENCE_ROWS).astype(float))


def generate(folder, n_partitions, features):
    """Write the partitions that are missing, and return all paths."""
    show, paths = progress_bar("data"), []
    for number in range(n_partitions):
        path = folder / f"{len(features)}-columns-{number:05d}.parquet"
        if not path.exists():
            partition(number, features).to_parquet(path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
        paths.append(path)
        show(number + 1, n_partitions, "")
    return paths


def worker_memory():
    """The process, and the most memory that it has had in MB (getrusage would inherit the parent's)."""
    return os.getpid(), int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3


def right(frame):
    return pd.DataFrame({"right": [int((frame["state"] == frame["label"]).sum())], "rows": [len(frame)]})


def measure(paths, features, n_workers, memory):
    """The model, seconds of learning and prediction, accuracy, and memory of a worker, idle and at most."""
    import drhmm.dask

    estimator = drhmm.DensityRatioHMM(random_state=0, n_threads=1, verbose=sys.stderr.isatty())
    # The memory pools of Arrow keep what they have freed, except that of the system.
    dask.config.set({"distributed.nanny.pre-spawn-environ.ARROW_DEFAULT_MEMORY_POOL": "system"})
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit=f"{memory}MB", dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        client.run(lambda: __import__("drhmm.clusters.partitions"))
        before = dict(client.run(worker_memory).values())
        ddf = dd.from_map(pd.read_parquet, paths)
        begin = time.perf_counter()
        drhmm.dask.fit(estimator, ddf, features=features, label="label", sequence="sequence", time="second")
        learned = time.perf_counter()
        predicted = drhmm.dask.predict(estimator, ddf, whole=True)
        total = predicted.map_partitions(right, meta={"right": int, "rows": int}).sum().compute()
        end = time.perf_counter()
        after = dict(client.run(worker_memory).values())
    assert set(after) == set(before), "a worker was restarted"
    accuracy = float(total["right"] / total["rows"])
    return estimator.model_, learned - begin, end - learned, accuracy, max(before.values()), max(after.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=int, default=400, help="memory of a worker in MB; the data have four times it")
    parser.add_argument("--columns", type=int, default=40, help="columns of samples")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers")
    parser.add_argument("--folder", type=Path, help="where data are kept")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "SCALING.md", help="the page to write")
    options, begin = parser.parse_args(), time.perf_counter()
    os.environ["DRHMM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    features = [f"x{k}" for k in range(options.columns)]
    row_bytes = 8 * (len(features) + 3)
    n_partitions = -(-N_TIMES * options.memory * 10**6 // (row_bytes * PARTITION_ROWS))
    rows = n_partitions * PARTITION_ROWS
    lines = [
        "# Dask: measured",
        "",
        f"Made by `python benchmarks/cluster/scaling.py --memory {options.memory} --columns {options.columns}` in "
        f"{{seconds}} s; {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, Dask "
        f"{dask.__version__}, distributed {distributed.__version__}, drhmm {drhmm.__version__}. One run each.",
        "",
        f"{rows:,} rows of {options.columns} columns, {rows * row_bytes / 1e6:,.0f} MB in memory, {N_STATES} states, "
        f"in Parquet files of {PARTITION_ROWS:,} rows. Workers are processes of one thread with a limit of "
        f"{options.memory} MB, at which Dask restarts them; none was restarted. `fit` has the default settings and "
        "reads every partition three times (labels, sample, statistics). `predict` is told that partitions hold whole "
        "sequences, and its results are summed, not written. The models of all runs are equal to 1e-9.",
        "",
        "| workers | fit, s | predict, s | rows per second, fit | predict | idle worker, MB | at most, MB | accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        paths = generate(options.folder or Path(temporary), n_partitions, features)
        models, X = [], partition(0, features)[features][:SEQUENCE_ROWS]
        for n_workers in options.workers:
            model, fit, predict, accuracy, idle, most = measure(paths, features, n_workers, options.memory)
            models.append(model)
            np.testing.assert_allclose(model.predict_proba(X), models[0].predict_proba(X), rtol=0, atol=1e-9)
            lines.append(
                f"| {n_workers} | {fit:.1f} | {predict:.1f} | {rows / fit:,.0f} | {rows / predict:,.0f} | {idle:.0f} | "
                f"{most:.0f} | {accuracy:.3f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    page = "\n".join(lines).replace("{seconds}", f"{time.perf_counter() - begin:.0f}")
    options.output.write_text(page + "\n")


if __name__ == "__main__":
    main()
