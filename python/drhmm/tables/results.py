"""The columns of a result table: what the command and data frames say of every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..chain.unknown_state import among_known
from ..data.checks import check_choice
from ..data.columns import TableError
from ..data.sequences import Sequences
from ..exceptions import ImpossibleDataError
from ..model import PATH_METHODS, Model, PathMethod

#: Columns of every result.
RESULTS = ("state", "probability", "novelty")


def probability_name(label: Any) -> str:
    """The name of the column with the probability of one state."""
    return f"p({label})"


def result_names(model: Model, method: str = "smooth", probabilities: bool = False) -> list[str]:
    """Names of the columns that `results` gives."""
    if check_choice(method, "method", PATH_METHODS) == "viterbi":
        return ["state"]
    names = list(RESULTS if model.novelty is not None and method != "frame" else RESULTS[:2])
    return names + [probability_name(label) for label in model.classes.tolist() if probabilities]


def refuse_results(
    columns: Sequence[str], table: str, model: Model, method: str = "smooth", probabilities: bool = False
) -> None:
    """Raise a TableError if a table has a column that the result adds."""
    for name in result_names(model, method, probabilities):
        if name in columns:
            raise TableError(
                f"{table} has a column {name!r} already, the name of a column of the result: drop or rename it",
                on_command_line=f"the column {name!r} has the name of a column of the result",
            )


def results(
    model: Model,
    sequences: Sequences,
    *,
    method: PathMethod = "smooth",
    lag: int | None = None,
    probabilities: bool = False,
    n_threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """The number of the state of every row, its probability and novelty, and the probability of each state."""
    X, lengths = sequences.given, sequences.lengths
    checked, threads = model._checked(X, lengths, None, sequences.dt, method, PATH_METHODS, lag, n_threads)
    try:
        if method == "viterbi":
            evidence = model._evidence(checked, threads, False)
            return {"state": model._recurse("viterbi", evidence, checked, threads)}
        # One recursion for all: predict, predict_proba and novelty_proba are of the same posteriors.
        everything = model._all_posteriors(checked, method, lag, threads)
    except ImpossibleDataError as error:
        raise ImpossibleDataError(error.sequence, error.frame, sequences.row(error.row)) from None
    known = among_known(everything, model.n_states, sequences.row)
    posteriors = known.astype(sequences.dtype, copy=False)
    columns: dict[str, npt.NDArray[Any]] = {"state": known.argmax(axis=1), "probability": posteriors.max(axis=1)}
    if "novelty" in result_names(model, method):
        columns["novelty"] = everything[:, -1].astype(sequences.dtype)
    for place, label in enumerate(model.classes.tolist() if probabilities else []):
        columns[probability_name(label)] = np.ascontiguousarray(posteriors[:, place])
    return columns
