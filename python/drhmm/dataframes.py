"""Learn from pandas, polars and Arrow tables, and return predictions as tables.

Needs narwhals (``pip install "drhmm[dataframes]"``) and the library of the table. `evaluate`, `cross_validate`,
`explain` and `rank_columns` return the same as the functions and methods of these names for arrays.

Examples
--------
>>> import pandas as pd
>>> from drhmm import DensityRatioHMM, dataframes, datasets
>>> X, y = datasets.blobs(300, random_state=0)
>>> df = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "place": y, "person": [k // 100 for k in range(300)]})
>>> estimator = dataframes.fit(DensityRatioHMM(random_state=0), df, label="place", sequence="person")
>>> predicted = dataframes.predict(estimator, df)
>>> list(predicted.columns), bool((predicted.state == df.place).mean() > 0.9)
(['x', 'y', 'place', 'person', 'state', 'probability'], True)
>>> bool(dataframes.evaluate(estimator, df).accuracy > 0.9)
True
>>> list(dataframes.cross_validate(estimator, df, label="place", sequence="person").sequence_accuracies)
[0, 1, 2]
>>> bool(dataframes.explain(estimator, df, 150).label == predicted.state[150])
True
>>> sorted(dataframes.rank_columns(estimator, df, n_frames=20, random_state=0).columns)
['x', 'y']
>>> started = df.assign(place=df.place.where(df.index % 100 < 20))  # label the others
>>> list(dataframes.suggest_labels(estimator, started, n=3, label="place").columns)
['person', 'begin', 'last', 'state', 'uncertainty']
>>> sensors = pd.DataFrame(datasets.sensors(2000, faults=(), random_state=0)[0], columns=list("abcdefgh"))
>>> model = DensityRatioHMM(1, novelty=True, random_state=0).fit(sensors).model_
>>> sensors.loc[500:520, "c"] += 20
>>> found = dataframes.episodes(model.alarm(1, per=2000, hold_off=30), sensors)
>>> found["begin"].tolist(), found["columns"][0].startswith("c ")
([500], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .data.checks import thread_count
from .data.columns import Columns, Role, remembered, remembered_columns, remembered_label
from .data.sequences import NamedColumns, Sequences
from .data.times import Step, warn_of_times_among_features
from .data.user_warnings import warn
from .judging import evaluation, explanation
from .judging.evaluation import Evaluation
from .judging.explanation import ColumnRanking, Explanation
from .model import Method, Model, PathMethod
from .tables.results import refuse_results, results
from .tables.rows import as_frame, fitted_model, index_of, narwhals, plain, read_rows, read_sequences, values_of
from .tables.stretches import refuse_owner, stretches, suggested

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame, IntoDataFrameT

    from .estimator import DensityRatioHMM
    from .live.alarms import Alarm

__all__ = ["cross_validate", "episodes", "evaluate", "explain", "fit", "predict", "rank_columns", "suggest_labels"]


def fit(
    estimator: DensityRatioHMM,
    df: IntoDataFrame,
    *,
    label: str | None = None,
    sequence: str | None = None,
    time: str | None = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
) -> DensityRatioHMM:
    """Learn from the rows of a data frame.

    The model remembers the label, sequence and time columns and the time of one step, for `predict` and the command
    line.

    Parameters
    ----------
    estimator : DensityRatioHMM
        The settings; fitted in place.
    df : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        Rows of samples. Rows of a sequence are in order but need not be adjacent. Null and NaN are missing values.
    label : str, optional
        The column of labels, null if unknown. Without it, EM finds `n_states` states.
    sequence : str, optional
        The column with the sequence of each row; without it, all rows are one sequence.
    time : str, optional
        The column of times, numbers or dates that increase within a sequence. A gap in time ends a sequence.
    step : float, str, timedelta or numpy.timedelta64, optional
        The time of one step: a number in the unit of the time column (seconds for dates), a duration, or text such as
        "1s", "200ms" or "5 min". By default, the median time between rows.
    features : sequence of str, optional
        The columns of samples; by default all except label, sequence and time.

    Returns
    -------
    DensityRatioHMM
        The fitted estimator; after an error, it is unchanged.
    """
    if isinstance(estimator, type):
        raise TypeError(f"estimator is the class {estimator.__name__}: give an object of it, {estimator.__name__}()")
    rows, columns, y = _to_learn_from(df, label=label, sequence=sequence, time=time, step=step, features=features)
    estimator.fit(NamedColumns(rows.given, columns.features), y, lengths=rows.unbroken)
    estimator.model_ = columns.remembered_by(estimator.model_, columns.step)
    return estimator


def _to_learn_from(df: Any, **named: Any) -> tuple[Sequences, Columns, npt.NDArray[Any] | None]:
    """Read whole sequences, their columns with the time of one step, and labels."""
    frame = as_frame(df)
    columns = Columns.to_learn_from(frame.columns, index=index_of(frame), **named)
    if columns.time is None and getattr(getattr(frame.to_native(), "index", None), "dtype", np.dtype(int)).kind == "M":
        warn("the index of df holds times, which are not used: give df.reset_index() and time= to detect gaps")
    rows, used = read_sequences(frame, columns)
    if named["features"] is None:
        remedy = "name it with time=, or the others with features="
        warn_of_times_among_features(rows.samples, rows.lengths, columns.features, remedy)
    y = None if columns.label is None else rows.arrange(values_of(frame[columns.label]))
    return rows, replace(columns, step=used), y


def predict(
    model: Model | DensityRatioHMM,
    df: IntoDataFrameT,
    *,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    method: PathMethod = "smooth",
    lag: int | None = None,
    probabilities: bool = False,
    n_threads: int | None = None,
) -> IntoDataFrameT:
    """Predict the state of each row with its probability and that of the unknown.

    If the model has column names, other columns and the order of columns do not matter.

    Parameters
    ----------
    model : Model or DensityRatioHMM
        A model, or a fitted estimator.
    df : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        Rows of samples, as in `fit`.
    sequence : str or False, optional
        The column with the sequence of each row; by default that stored in the model. Without one, or with False, all
        rows are one sequence.
    time : str or False, optional
        The column of times, numbers or dates that increase within a sequence; by default that stored in the model. If
        two rows are k steps apart, k - 1 rows are missing, as with `dt` of `drhmm.Model.predict_proba`.
    step : float, str, timedelta or numpy.timedelta64, optional
        As in `fit`; by default that of the training data (``model.settings["time_step"]``), or the median time between
        rows.
    features : sequence of str, optional
        The columns of samples in the order of training. By default those that the model was learned from, or without
        names, all except sequence and time.
    method : {"smooth", "filter", "frame", "viterbi"}
        As in `drhmm.Model.predict`; "viterbi" returns only states, and "frame" no novelty.
    lag : int, optional
        With "smooth", use only the next `lag` time steps.
    probabilities : bool
        Whether to add a column ``p(label)`` for each state.
    n_threads : int, optional
        Threads; all cores by default.

    Returns
    -------
    table of the type of `df`
        All rows and columns of `df`, with the columns ``state`` (the most probable label), ``probability`` (among the
        known states) and, if the model has a state for the unknown, ``novelty`` (the probability of the unknown).
    """
    nw = narwhals()
    fitted, frame = fitted_model(model), as_frame(df)
    refuse_results(frame.columns, "df", fitted, method, probabilities)
    rows, _ = read_rows(fitted, frame, sequence=sequence, time=time, step=step, features=features)
    columns = results(fitted, rows, method=method, lag=lag, probabilities=probabilities, n_threads=n_threads)
    columns["state"] = fitted.classes[columns["state"]]
    series = [
        nw.new_series(name, plain(rows.restore(values)), backend=frame.implementation)
        for name, values in columns.items()
    ]
    result: IntoDataFrameT = frame.with_columns(*series).to_native()
    return result


def evaluate(
    model: Model | DensityRatioHMM,
    df: IntoDataFrame,
    *,
    label: str | None = None,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    method: Method = "smooth",
    lag: int | None = None,
    unknown: Any = "auto",
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate a model on labelled rows of a data frame that it has not learned from.

    Parameters
    ----------
    model, df, sequence, time, step, features
        As in `predict`.
    label : str, optional
        The column of true labels, null if unknown; by default that stored in the model.
    method, lag, unknown, n_threads
        As in `drhmm.evaluate`.
    """
    fitted, frame = fitted_model(model), as_frame(df)
    column = remembered(fitted, "label", label, frame.columns, index=index_of(frame))
    if column is None and "label" in remembered_columns(fitted):
        raise ValueError("an evaluation needs true labels: name their column with label=")
    if column is None:
        raise ValueError("the model stores no label column: give label")
    sequences, columns = read_rows(
        fitted, frame, label=column, sequence=sequence, time=time, step=step, features=features
    )
    labels = values_of(frame[column])
    owners = None if columns.sequence is None else sequences.arrange(values_of(frame[columns.sequence]))
    return evaluation.of_sequences(fitted, sequences, labels, method, lag, unknown, n_threads, owners)


def cross_validate(
    estimator: DensityRatioHMM,
    df: IntoDataFrame,
    *,
    label: str,
    sequence: str | None = None,
    time: str | None = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    n_folds: int | None = None,
    method: Method = "smooth",
    lag: int | None = None,
    random_state: Any = 0,
) -> Evaluation:
    """Evaluate models on the sequences of a data frame, each held out in turn.

    The ``model`` of the result is that of `fit`, learned from all rows.

    Parameters
    ----------
    estimator : DensityRatioHMM
        The settings; not changed.
    df, label, sequence, time, step, features
        As in `fit`; all rows of a sequence are held out together, despite gaps.
    n_folds, method, lag, random_state
        As in `drhmm.cross_validate`.
    """
    from .judging.cross_validation import cross_validate as of_arrays

    rows, columns, y = _to_learn_from(df, label=label, sequence=sequence, time=time, step=step, features=features)
    assert y is not None
    found = of_arrays(
        estimator,
        NamedColumns(rows.given, columns.features),
        y,
        sequence_id=None if sequence is None else rows.arrange(values_of(as_frame(df)[sequence])),
        dt=rows.dt,
        n_folds=n_folds,
        method=method,
        lag=lag,
        random_state=random_state,
    )
    return replace(found, model=columns.remembered_by(found.model, columns.step))


def explain(
    model: Model | DensityRatioHMM,
    df: IntoDataFrame,
    row: int,
    *,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Explanation:
    """Explain the state that `predict` gives to a row of a data frame.

    Parameters
    ----------
    model, df, sequence, time, step, features, n_threads
        As in `predict`; give all rows of the sequence, as the past and the future count.
    row : int
        The position of the row in the table, counted from 0 (not its index).
    """
    fitted = fitted_model(model)
    sequences, _ = read_rows(fitted, as_frame(df), sequence=sequence, time=time, step=step, features=features)
    return explanation.explain(fitted, sequences, sequences.place(row, "row"), thread_count(n_threads))


def rank_columns(
    model: Model | DensityRatioHMM,
    df: IntoDataFrame,
    *,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    n_frames: int = 200,
    random_state: Any = None,
    n_threads: int | None = None,
) -> ColumnRanking:
    """Rank the columns of a data frame by their importance for the states.

    Parameters
    ----------
    model, df, sequence, time, step, features, n_threads
        As in `predict`.
    n_frames, random_state
        As in `drhmm.Model.rank_columns`.
    """
    fitted = fitted_model(model)
    sequences, _ = read_rows(fitted, as_frame(df), sequence=sequence, time=time, step=step, features=features)
    return explanation.rank_columns(fitted, sequences, n_frames, random_state, thread_count(n_threads))


def episodes(
    alarm: Alarm,
    df: IntoDataFrameT,
    *,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> IntoDataFrameT:
    """Find the alarms in a data frame; return a table with one row per alarm.

    Parameters
    ----------
    alarm : Alarm
        Created by `drhmm.Model.alarm`.
    df, sequence, time, step, features, n_threads
        As in `predict`.

    Returns
    -------
    table of the type of `df`
        The sequence, if there is a sequence column; ``begin``, ``last`` and ``peak`` as times, or row numbers without a
        time column; ``score`` and ``cause`` as in `drhmm.Episode`, and the unusual ``columns`` as text.
    """
    nw, model, frame = narwhals(), alarm.model, as_frame(df)
    sequences, columns = read_rows(model, frame, sequence=sequence, time=time, step=step, features=features)
    refuse_owner(columns, "begin", "last", "peak", "score", "cause", "columns")
    found = alarm._episodes_of(sequences, n_threads)
    told = [", ".join(f"{name} {share:.0%}" for name, share in one.columns) for one in found]
    entries = {
        "score": ([one.score for one in found], nw.Float64),
        "cause": ([one.cause for one in found], nw.String),
        "columns": (told, nw.String),
    }
    peaks = {"peak": [one.peak for one in found]}
    result: IntoDataFrameT = stretches(frame, sequences, columns, found, peaks, entries)
    return result


def suggest_labels(
    model: Model | DensityRatioHMM,
    df: IntoDataFrameT,
    *,
    n: int = 10,
    length: int = 10,
    label: str | None = None,
    sequence: Role = None,
    time: Role = None,
    step: Step | None = None,
    features: Sequence[str] | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> IntoDataFrameT:
    """Suggest stretches to label next, as a table with the most helpful first.

    Parameters
    ----------
    model, df, sequence, time, step, features, n_threads
        As in `predict`.
    n, length, random_state
        As in `drhmm.Model.suggest_labels`.
    label : str, optional
        The column of the labels so far, null if unknown: labelled rows are not suggested. By default that stored in the
        model, if `df` has it.

    Returns
    -------
    table of the type of `df`
        The sequence, if there is a sequence column; ``begin`` and ``last`` as times, or row numbers without a time
        column; ``state`` and ``uncertainty``, the label and uncertainty of a `drhmm.Suggestion`.
    """
    fitted, frame = fitted_model(model), as_frame(df)
    label = remembered_label(fitted, frame.columns) if label is None else label
    named = {"label": label, "sequence": sequence, "time": time, "step": step, "features": features}
    sequences, columns = read_rows(fitted, frame, **named)
    y = None if label is None else values_of(frame[label])
    asked = (n, length, random_state, thread_count(n_threads))
    result: IntoDataFrameT = suggested(fitted, frame, sequences, columns, y, *asked)
    return result
