"""Result columns of the command line and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..chain.unknown_state import among_known
from ..data.checks import check_choice
from ..data.columns import TableError
from ..data.sequences import Sequences
from ..exceptions import ImpossibleDataError
from ..model import PATH_METHODS, Model, PathMethod

#: Rows of whole sequences per inference call.
MOST_ROWS = 1 << 15

#: Columns of every result.
RESULTS = ("state", "probability", "novelty")


def probability_name(label: Any) -> str:
    """Return the name of the column with the probability of a state."""
    return f"p({label})"


def result_names(model: Model, method: str = "smooth", probabilities: bool = False) -> list[str]:
    """Return the names of the columns of `results`."""
    if check_choice(method, "method", PATH_METHODS) == "viterbi":
        return ["state"]
    names = list(RESULTS if model.novelty is not None and method != "frame" else RESULTS[:2])
    return names + [probability_name(label) for label in model.classes.tolist() if probabilities]


def refuse_results(
    columns: Sequence[str], table: str, model: Model, method: str = "smooth", probabilities: bool = False
) -> None:
    """Raise TableError if a table already has a result column."""
    for name in result_names(model, method, probabilities):
        if name in columns:
            raise TableError(
                f"{table} already has a column {name!r}, the name of a result column: drop or rename it",
                on_command_line=f"the column {name!r} has the name of a result column",
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
    """Infer state numbers, their probabilities, novelty, and all probabilities."""
    X, lengths = sequences.given, sequences.lengths
    checked, threads = model._checked(X, lengths, None, sequences.dt, method, PATH_METHODS, lag, n_threads)
    names = result_names(model, method, probabilities)
    columns = {name: np.empty(len(X), dtype=sequences.dtype) for name in names}
    columns["state"] = np.empty(len(X), dtype=np.int64)
    for number, begin, part in replace(checked, order=sequences.order).parts(MOST_ROWS):
        try:
            found = _results(model, part, method, lag, threads)
        except ImpossibleDataError as error:
            raise ImpossibleDataError(number + error.sequence, error.frame, error.row) from None
        for name, values in zip(names, found, strict=False):
            columns[name][begin : begin + len(values)] = values
    return columns


def _results(model: Model, part: Sequences, method: str, lag: int | None, threads: int) -> list[npt.NDArray[Any]]:
    """Return the result columns in order."""
    if method == "viterbi":
        return [model._recurse("viterbi", model._evidence(part, threads, False), part, threads)]
    # One recursion for all: predict, predict_proba and novelty_proba share posteriors.
    everything = model._all_posteriors(part, method, lag, threads)
    known = among_known(everything, model.n_states, part.row)
    novelty = [everything[:, -1]] if "novelty" in result_names(model, method) else []
    return [known.argmax(axis=1), known.max(axis=1), *novelty, *known.T]
