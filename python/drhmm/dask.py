"""Learning and inference on a Dask cluster.

Needs ``pip install "drhmm[dask]"``. The statistics for least squares and the chain are sums over time steps: each
worker reads its partitions once and returns small matrices. Prediction needs partitions of whole sequences.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from .clusters.partitions import (
    PLACE,
    Pieces,
    after_check,
    check_whole,
    empty_result,
    first_split,
    ids_of,
    pieces_of,
    predict_partition,
    read,
    statistics_of,
    take,
)
from .clusters.sample import choose
from .data.checks import check_integer
from .data.columns import Columns, Role
from .data.labels import is_known
from .data.times import Step
from .estimator import DensityRatioHMM
from .learning.block_sums import PartialFit, Statistics, check_additive, pooled_evidence_of
from .learning.training_frames import class_weights
from .model import Model, PathMethod
from .tables.results import refuse_results

try:
    import dask
    import dask.dataframe as dd
    import pandas as pd
    from dask.diagnostics import ProgressBar
    from dask.tokenize import normalize_token
except ImportError as error:
    raise ImportError(f'drhmm.dask needs Dask: pip install "drhmm[dask]" ({error})') from None

if TYPE_CHECKING:
    from dask.delayed import Delayed

__all__ = ["fit", "predict"]

#: Number of statistics that one task adds.
SPLIT_EVERY = 8

#: Approximate number of pieces in a sample.
N_PIECES = 50


def fit(
    estimator: DensityRatioHMM,
    ddf: dd.DataFrame,
    *,
    features: Sequence[str],
    label: str,
    sequence: str,
    time: str | None = None,
    step: Step | None = None,
    sample_size: int = 20_000,
    whole: bool | None = None,
) -> DensityRatioHMM:
    """Learn from the labelled rows of a Dask data frame.

    A sample that fits in memory sets the standardisation, kernel centres, sigma, rho, deciles, scales, temper and the
    evidence for the unknown, as in `drhmm.DensityRatioHMM.fit`. With these settings, the model is learned from all
    rows: a tree of tasks adds up the statistics of the partitions. Each thread of a worker holds one partition at a
    time; only the partitions of a lost worker are computed again.

    Parameters
    ----------
    estimator : DensityRatioHMM
        The settings, with evidence learned from sums, such as the default; fitted in place. With ``verbose=True``, each
        pass over the partitions shows its progress.
    ddf : dask.dataframe.DataFrame
        Rows of samples, each with a label.
    features : sequence of str
        The columns of samples.
    label, sequence, time, step
        As in `drhmm.dataframes.fit`, except that a time column orders the rows of a sequence; the step is the median
        of the sample by default. The model remembers them.
    sample_size : int
        Rows of the sample: pieces of sequences, drawn by the estimator's `random_state`, and more for classes below 100
        rows. If the table has no more rows, the result is that of `drhmm.DensityRatioHMM.fit`.
    whole : bool, optional
        Whether every sequence is in one partition; True is checked. Found from the sequence column by default. If
        False, a shuffle collects the rows of each sequence.

    Returns
    -------
    DensityRatioHMM
        The fitted estimator; `partial_fit` can continue.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from drhmm import DensityRatioHMM
    >>> from drhmm.dask import fit, predict
    >>> from drhmm.datasets import blobs
    >>> X, y = blobs(600, random_state=0)
    >>> df = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "state": y, "person": [k // 100 for k in range(600)]})
    >>> ddf = dd.from_pandas(df, npartitions=3)
    >>> estimator = fit(DensityRatioHMM(random_state=0), ddf, features=["x", "y"], label="state", sequence="person")
    >>> predicted = predict(estimator.model_, ddf.drop(columns="state"), sequence="person").compute()
    >>> bool((predicted.state == df.state).mean() > 0.9)
    True
    """
    check_additive(estimator.ratio, estimator.class_weight, "drhmm.dask.fit")
    estimator._check_parameters()
    check_integer(sample_size, "sample_size", low=1)
    _check_frame(ddf)
    columns = Columns.to_learn_from(
        list(ddf.columns), label=label, sequence=sequence, time=time, step=step, features=features, table="ddf"
    )
    ddf = ddf[[*columns.features, *columns.marks]]
    longest = max(sample_size // N_PIECES, 2 * estimator.window)
    tasks = _of_partitions(pieces_of, ddf[columns.marks], columns, longest)
    pieces: list[Pieces] = _computed(tasks, "labels", estimator.verbose)
    _check_labels(pieces, estimator, label)
    ids = [part.ids for part in pieces]
    if whole:
        check_whole(ids, sequence)
    first, used = _fit_sample(estimator, ddf, columns, pieces, sample_size)
    columns = replace(columns, step=used)

    evidence = pooled_evidence_of(first.model_)
    weights = (
        None
        if estimator.class_weight is None
        else class_weights(estimator.class_weight, first.classes_, np.arange(len(first.classes_)))
    )
    whole = first_split(ids) is None if whole is None else whole
    level = _of_partitions(
        statistics_of,
        ddf if whole else _by_sequence(ddf, sequence),
        columns,
        dask.delayed(evidence, traverse=False),
        first.classes_,
        weights,
    )
    merge = dask.delayed(Statistics.merged, pure=True)
    while len(level) > 1:
        level = [merge(level[k : k + SPLIT_EVERY]) for k in range(0, len(level), SPLIT_EVERY)]
    (statistics,) = _computed(level, "all rows", estimator.verbose)
    model = columns.remembered_by(first.model_, used)
    partial = PartialFit.begin(model, estimator._rules(first.classes_), estimator.get_params())
    estimator._adopt_partial(partial.add(statistics), getattr(first, "selection_", None))
    return estimator


def predict(
    model: Model | DensityRatioHMM,
    ddf: dd.DataFrame,
    *,
    sequence: str | None = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    method: PathMethod = "smooth",
    lag: int | None = None,
    probabilities: bool = False,
    n_threads: int = 1,
    whole: bool | None = None,
) -> dd.DataFrame:
    """Predict the state of each row with its probability, computed on demand.

    Parameters
    ----------
    model : Model or DensityRatioHMM
        A model, or a fitted estimator.
    ddf : dask.dataframe.DataFrame
        Rows of samples.
    sequence, time, step, features, method, lag, probabilities
        As in `drhmm.dataframes.predict`, except that a time column orders the rows of a sequence.
    n_threads : int
        Threads of one task.
    whole : bool, optional
        As in `fit`, except that True is checked only when the last partition is computed (ValueError). After a shuffle,
        rows stay in their new partitions.

    Returns
    -------
    dask.dataframe.DataFrame
        All rows and columns of `ddf` with the columns of `drhmm.dataframes.predict`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from drhmm import DensityRatioHMM
    >>> from drhmm.dask import predict
    >>> from drhmm.datasets import blobs
    >>> X, y = blobs(200, random_state=0)
    >>> df = pd.DataFrame(X, columns=["x", "y"]).assign(person=[k // 100 for k in range(200)])
    >>> estimator = DensityRatioHMM(random_state=0).fit(df[["x", "y"]], y)
    >>> predicted = predict(estimator, dd.from_pandas(df, npartitions=2), sequence="person")
    >>> sorted(predicted.columns)
    ['person', 'probability', 'state', 'x', 'y']
    """
    fitted = model if isinstance(model, Model) else model._fitted_model()
    _check_frame(ddf)
    refuse_results(list(ddf.columns), "ddf", fitted, method, probabilities)
    columns = Columns.to_infer_from(
        fitted, list(ddf.columns), sequence=sequence, time=time, step=step, features=features, table="ddf"
    )
    sequence, time = columns.sequence, columns.time
    if sequence is None:
        raise ValueError("the model stores no sequence column: give sequence")
    if time is not None and columns.step is None:
        raise ValueError("the model does not know the time of one step: give step")
    options: dict[str, Any] = {
        "step": columns.step,
        "features": list(columns.features),
        "method": method,
        "lag": lag,
        "probabilities": probabilities,
        "n_threads": n_threads,
    }
    meta = empty_result(ddf._meta, fitted, options)
    is_checked = bool(whole)
    if whole is None:
        whole = first_split(_computed(_of_partitions(ids_of, ddf[[sequence]], sequence), "", False)) is None
    if not whole:
        ddf = _by_sequence(ddf, sequence)
    predicted = ddf.map_partitions(predict_partition, fitted, sequence, time, options, meta=meta)
    return _checked(predicted, sequence) if is_checked else predicted


@normalize_token.register(Model)  # type: ignore[untyped-decorator]
def _token(model: Model) -> tuple[object, ...]:
    """Return a token that identifies a model in the names of tasks."""
    return "drhmm.Model", model.fingerprint, model.feature_names


def _check_frame(ddf: Any) -> None:
    if not isinstance(ddf, dd.DataFrame):
        raise TypeError(
            f"ddf must be a dask.dataframe.DataFrame, got {type(ddf).__name__}; "
            "dask.dataframe.from_pandas converts a pandas.DataFrame"
        )


def _computed(tasks: list[Delayed], what: str, verbose: bool) -> list[Any]:
    """Compute tasks, with Dask's bar of progress if `verbose`."""
    if not verbose:
        return list(dask.compute(*tasks))
    sys.stderr.write(f"drhmm.dask.fit reads {what}\n")
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is None:
        with ProgressBar(out=sys.stderr):
            return list(dask.compute(*tasks))
    from distributed import progress

    futures = client.compute(tasks)
    progress(futures, notebook=False)  # type: ignore[no-untyped-call]
    return list(client.gather(futures))


def _of_partitions(function: Any, ddf: dd.DataFrame, *arguments: Any) -> list[Delayed]:
    """Return one task for every partition, in order."""
    task = dask.delayed(function, pure=True)
    return [task(part, *arguments) for part in ddf.to_delayed()]


def _check_labels(pieces: Sequence[Pieces], estimator: DensityRatioHMM, label: str) -> None:
    values = np.concatenate([part.labels for part in pieces])
    if len(values) == 0:
        raise ValueError("ddf has no rows")
    known = is_known(values, estimator.novelty, estimator.unknown)
    if not known.all():
        raise ValueError(
            f"column {label!r} has rows without a label ({values[~known][0]}): drhmm.dask.fit learns from labelled "
            "rows only"
        )


def _checked(predicted: dd.DataFrame, sequence: str) -> dd.DataFrame:
    """Check that no sequence is split before the last partition is delivered."""
    # Older versions of Dask compute fused tasks twice, for the result and the check.
    parts = predicted.optimize(fuse=False).to_delayed(optimize_graph=False)
    task, last = dask.delayed(ids_of, pure=True), dask.delayed(after_check, pure=True)
    parts[-1] = last(parts[-1], [task(part, sequence) for part in parts], sequence)
    divisions = predicted.divisions if predicted.known_divisions else None
    return dd.from_delayed(parts, meta=predicted._meta, divisions=divisions, verify_meta=False)


def _by_sequence(ddf: dd.DataFrame, sequence: str) -> dd.DataFrame:
    """Collect each sequence in one partition; the column `PLACE` keeps the order."""
    ddf = ddf.assign(**{PLACE: 1})
    return ddf.assign(**{PLACE: ddf[PLACE].cumsum()}).shuffle(on=sequence)


def _fit_sample(
    estimator: DensityRatioHMM, ddf: dd.DataFrame, columns: Columns, pieces: Sequence[Pieces], sample_size: int
) -> tuple[DensityRatioHMM, float | None]:
    """Fit a copy of the estimator to a sample; also return the time of one step."""
    chosen = choose(pieces, estimator.window, sample_size, estimator.random_state)
    everything = sum(map(len, chosen)) == sum(len(part.lengths) for part in pieces)
    task = dask.delayed(take, pure=True)
    tasks = [
        task(part, columns, part_pieces.begins[rows].tolist(), part_pieces.lengths[rows].tolist())
        for part, part_pieces, rows in zip(ddf.to_delayed(), pieces, chosen, strict=True)
        if rows
    ]
    taken = _computed(tasks, "a sample", estimator.verbose)
    frames = [frame for part in taken for frame in part]
    if not everything:
        # Make each piece a sequence: the rows between pieces are not in the sample.
        frames = [frame.assign(**{str(columns.sequence): k}) for k, frame in enumerate(frames)]
    sample = pd.concat(frames, ignore_index=True)
    rows, labels, step = read(sample, columns)
    table = pd.DataFrame(rows.given, columns=list(columns.features))
    first: DensityRatioHMM = clone(estimator).fit(table, labels, lengths=rows.unbroken)
    return first, step
