"""Answers to common mistakes in a call: what was probably meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from ._validation import shown

P = ParamSpec("P")
R = TypeVar("R")

#: Names that other packages have for a setting of ours.
OTHER_NAMES = {
    "n_components": "n_states",
    "n_clusters": "n_states",
    "transmat_prior": "transition_prior",
    "n_iter": "max_iter",
    "startprob_prior": "startprob",
    "n_jobs": "n_threads",
}


def by_name(method: Callable[P, R]) -> Callable[P, R]:
    """A method that says which argument a value without a name was meant to be."""
    parameters = inspect.signature(method).parameters.values()
    most = sum(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters)
    first = next(one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY)
    taken = [one.name for one in parameters][1:most]

    @wraps(method)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        if len(arguments) > most:
            raise TypeError(
                f"{method.__name__} takes {', '.join(taken)} by place and everything else by name: did you mean "
                f"{method.__name__}({', '.join(taken)}, {first}={shown(arguments[most], 30)})?"
            )
        return method(*arguments, **named)

    return checked


def check_settings(kind: str, given: Iterable[str], settings: Iterable[str]) -> None:
    """Raise a TypeError for a setting that there is not, with the one that was probably meant."""
    known = list(settings)
    for name in given:
        if name not in known:
            nearest = [OTHER_NAMES[name]] if name in OTHER_NAMES else get_close_matches(name, known, n=1)
            hint = f": did you mean {nearest[0]}?" if nearest else f"; there are {', '.join(known)}"
            raise TypeError(f"{kind} has no setting {name!r}{hint}")
