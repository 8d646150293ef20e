"""Suggestions for misspelt or misplaced arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .checks import shown

P = ParamSpec("P")
R = TypeVar("R")

#: Names of our settings in other packages.
OTHER_NAMES = {
    "n_components": "n_states",
    "n_clusters": "n_states",
    "transmat_prior": "transition_prior",
    "n_iter": "max_iter",
    "startprob_prior": "startprob",
    "n_jobs": "n_threads",
}

#: Arguments of `drhmm.dataframes`, which finds the columns by itself.
OF_TABLES = ("label", "sequence", "time", "step", "features")


def n_places(method: Callable[..., Any]) -> int:
    """Count the positional arguments of a method, including self."""
    kinds = [one.kind for one in inspect.signature(method).parameters.values()]
    return kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)


def refuse_places(method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Raise TypeError for a surplus positional value and suggest a keyword."""
    most, names = n_places(method), list(inspect.signature(method).parameters)
    if len(names) > most:
        taken, meant, value = ", ".join(names[1:most]), names[most], arguments[most]
        if "method" in names and isinstance(value, str):
            meant = "method"
        elif meant == "lengths":
            numbers = np.asarray(value)
            meant, value = "lengths" if numbers.dtype.kind in "iu" else "sequence_id", numbers.tolist()
        raise TypeError(
            f"{method.__name__} takes {taken} by place and everything else by name: did you mean "
            f"{method.__name__}({taken}, {meant}={shown(value, 30)})?"
        )


def _meant(name: str, known: Sequence[str]) -> str:
    """Suggest the closest known name, or list all names."""
    nearest = [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else get_close_matches(name, known, n=1)
    return f": did you mean {nearest[0]}?" if nearest else f"; there are {', '.join(known)}"


def by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method to suggest keywords for positional or unknown arguments."""
    most, known = n_places(method), list(inspect.signature(method).parameters)

    @wraps(method)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        if len(arguments) > most:
            refuse_places(method, arguments)
        for name in named:
            if name not in known:
                of_table = (
                    f": drhmm.dataframes.{method.__name__} has it, for tables with columns of times and sequences"
                )
                hint = of_table if name in OF_TABLES else _meant(name, known[1:])
                raise TypeError(f"{method.__name__} has no argument {name!r}{hint}")
        return method(*arguments, **named)

    return checked


def known_settings(construct: Callable[P, R]) -> Callable[P, R]:
    """Decorate a constructor to suggest the setting with the closest name."""
    known = list(inspect.signature(construct).parameters)[1:]

    @wraps(construct)
    def checked(*arguments: P.args, **settings: P.kwargs) -> R:
        for name in settings:
            if name not in known:
                raise TypeError(f"{type(arguments[0]).__name__} has no setting {name!r}{_meant(name, known)}")
        return construct(*arguments, **settings)

    return checked
