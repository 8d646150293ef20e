"""The columns of a result table: what the command and data frames say of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._validation import Array, Lengths, Steps, check_choice
from .model import METHODS, PATH_METHODS, Model
from .novelty import among_known

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
    method: str = "smooth",
    lag: int | None = None,
    probabilities: bool = False,
    n_threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """State, probability and novelty of rows of whole sequences, and the probability of each state if asked for."""
    names = result_names(model, method, probabilities)
    arguments: dict[str, Any] = {"lengths": lengths, "dt": dt, "lag": lag, "n_threads": n_threads}
    if method == "viterbi":
        return {"state": model.predict(X, method=method, **arguments)}
    novelty: Array | None = None
    if "novelty" in names:
        # One recursion for both: predict_proba and novelty_proba are shares of the same posteriors.
        sequences, threads = model._checked(X, lengths, None, dt, method, METHODS, lag, n_threads)
        posteriors = model._all_posteriors(sequences, method, lag, threads)
        novelty = posteriors[:, -1].astype(sequences.dtype, copy=False)
        posteriors = among_known(posteriors, model.n_states).astype(sequences.dtype, copy=False)
    else:
        posteriors = model.predict_proba(X, method=method, **arguments)
    columns = {"state": model.classes[posteriors.argmax(axis=1)], "probability": posteriors.max(axis=1)}
    if novelty is not None:
        columns["novelty"] = np.ascontiguousarray(novelty)
    for place, label in enumerate(model.classes.tolist() if probabilities else []):
        columns[probability_name(label)] = np.ascontiguousarray(posteriors[:, place])
    return columns
