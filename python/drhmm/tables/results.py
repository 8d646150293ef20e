"""The columns of a result table: what the command and data frames say of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..chain.unknown_state import among_known
from ..data.checks import Lengths, Steps, check_choice
from ..model import METHODS, PATH_METHODS, Model, PathMethod

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


def results(
    model: Model,
    X: Any,
    lengths: Lengths,
    dt: Steps | None,
    *,
    method: PathMethod = "smooth",
    lag: int | None = None,
    probabilities: bool = False,
    n_threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """State, probability and novelty of rows of whole sequences, and the probability of each state if asked for."""
    names = result_names(model, method, probabilities)
    if method == "viterbi":
        return {"state": model.predict(X, lengths=lengths, dt=dt, method=method, lag=lag, n_threads=n_threads)}
    # One recursion for all: predict, predict_proba and novelty_proba are of the same posteriors.
    sequences, threads = model._checked(X, lengths, None, dt, method, METHODS, lag, n_threads)
    everything = model._all_posteriors(sequences, method, lag, threads)
    known = among_known(everything, model.n_states)
    posteriors = known.astype(sequences.dtype, copy=False)
    columns = {"state": model.classes[known.argmax(axis=1)], "probability": posteriors.max(axis=1)}
    if "novelty" in names:
        columns["novelty"] = everything[:, -1].astype(sequences.dtype)
    for place, label in enumerate(model.classes.tolist() if probabilities else []):
        columns[probability_name(label)] = np.ascontiguousarray(posteriors[:, place])
    return columns
