"""What a user of the public names might write, with types; tests/test_types.py checks it and runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import drhmm
from drhmm import (
    DensityRatioHMM,
    ImpossibleDataError,
    Model,
    ModelFormatError,
    SnapshotError,
    Stream,
    StreamBatch,
    dataframes,
    datasets,
    plotting,
    ratios,
    recursion,
)
from drhmm import dask as drhmm_dask

Array = npt.NDArray[np.float64]


def learn(X: Array, y: npt.NDArray[np.int64], path: Path) -> Model:
    """The estimator: settings, learning, batch inference, saving."""
    estimator = DensityRatioHMM(n_basis=50, window=2, novelty=True, random_state=0)
    fitted = estimator.fit(X, y, lengths=[len(X)])
    accuracy: float = fitted.score(X, y, method="filter")
    posteriors: Array = fitted.predict_proba(X, lag=3)
    unknown: Array = fitted.novelty_proba(X)
    assert accuracy > 0.5
    assert posteriors.shape == (len(X), len(fitted.classes_))
    assert unknown.shape == (len(X),)
    ratio: ratios.RatioSource = ratios.LeastSquares(n_basis=20, sigma=1.0, rho=0.01)
    DensityRatioHMM(3, ratio=ratio, max_iter=3, tol=1.0, random_state=0).fit(X)
    fitted.save(path)
    try:
        return drhmm.load(path)
    except ModelFormatError as error:
        raise SystemExit(str(error)) from error


def follow(model: Model, X: Array) -> str:
    """One live sequence, resumed from a snapshot, and several together."""
    stream: Stream = model.stream(lag=0)
    for x in X[:10]:
        posterior: Array | None = stream.step(x, dt=1)
        assert posterior is None or posterior.shape == (model.n_states,)
    try:
        stream = model.resume(stream.snapshot())
    except SnapshotError:
        stream = model.stream()
    batch: StreamBatch = model.stream_batch(2)
    together: Array = batch.step(X[:2])
    assert together.shape == (2, model.n_states)
    return f"{stream.label} {stream.novelty:.3f}"


def infer(model: Model, X: Array) -> npt.NDArray[np.int64]:
    """Recursions on evidence."""
    evidence: Array = model.log_ratios(X)
    try:
        smoothed = recursion.smooth(evidence, model.transmat, model.startprob)
    except ImpossibleDataError as error:
        raise SystemExit(f"frame {error.frame} of sequence {error.sequence}") from error
    filtered = recursion.filter(evidence, model.transmat, model.startprob, lengths=[len(X)])
    counts = recursion.expected_transitions(evidence, model.transmat, model.startprob)
    assert smoothed.shape == filtered.shape
    assert counts.shape == (model.n_states, model.n_states)
    return recursion.viterbi(evidence, model.transmat, model.startprob)


def tables(model: Model, X: Array) -> pl.DataFrame:
    """A data frame with the state of each row."""
    df = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "second": np.arange(len(X))})
    result: pl.DataFrame = dataframes.predict(model, df, features=["a", "b"], time="second", probabilities=True)
    return result


def cluster(ddf: dd.DataFrame) -> dd.DataFrame:
    """The same on a cluster."""
    estimator = DensityRatioHMM(n_basis=20, sigma=1.0, rho=0.01, random_state=0)
    fitted: DensityRatioHMM = drhmm_dask.fit(estimator, ddf, features=["a", "b"], label="label", sequence="person")
    return drhmm_dask.predict(fitted.model_, ddf, sequence="person", method="filter")


def draw(model: Model, X: Array) -> list[Axes]:
    """A picture."""
    return plotting.sequence(X, {"smoothed": model.predict_proba(X)}, names=model.classes, figure=Figure())


def main(folder: Path) -> None:
    """Everything that needs no cluster, once."""
    X, y = datasets.blobs(600, random_state=0)
    model = learn(X, y, folder / "model.drhmm")
    print(follow(model, X), infer(model, X)[:3], tables(model, X).columns, len(draw(model, X)))
    drhmm.show_versions()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
