"""Suggestions for misspelt or misplaced arguments, and limits on threads."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..data.checks import shown, thread_count

P = ParamSpec("P")
R = TypeVar("R")

#: Settings of other packages, and their names here.
OTHER_NAMES = {
    "n_components": "n_states",
    "n_clusters": "n_states",
    "transmat_prior": "transition_prior",
    "n_iter": "max_iter",
    "startprob_prior": "startprob",
    "n_jobs": "n_threads",
}

#: Arguments of the functions in `drhmm.dataframes`.
OF_TABLES = ("label", "sequence", "time", "step", "features")


def _explain_places(method: Callable[..., Any], names: list[str], most: int, arguments: tuple[Any, ...]) -> str:
    """Describe a surplus positional value and suggest a keyword."""
    taken, meant, value = ", ".join(names[1:most]), names[most], arguments[most]
    if "method" in names and isinstance(value, str):
        meant = "method"
    elif meant == "lengths":
        numbers = np.asarray(value)
        meant, value = "lengths" if numbers.dtype.kind in "iu" else "sequence_id", numbers.tolist()
    name = type(arguments[0]).__name__ if method.__name__ == "__init__" else method.__name__
    hint = f"did you mean {name}({taken}, {meant}={shown(value, 30)})?"
    return f"{name} takes {taken} by position and everything else by name: {hint}"


def _explain_name(method: Callable[..., Any], instance: Any, name: str, known: Sequence[str]) -> str:
    """Describe an unknown argument of a method, or setting of a class."""
    nearest = [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else get_close_matches(name, known, n=1)
    hint = f": did you mean {nearest[0]}?" if nearest else f"; there are {', '.join(known)}"
    if method.__name__ == "__init__":
        return f"{type(instance).__name__} has no setting {name!r}{hint}"
    if name in OF_TABLES:
        hint = f": drhmm.dataframes.{method.__name__} has it, for tables with columns of times and sequences"
    return f"{method.__name__} has no argument {name!r}{hint}"


def by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method to suggest keywords for positional or unknown arguments."""

    @wraps(method)
    def explained(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(*arguments, **named)
        except TypeError:
            parameters = inspect.signature(method).parameters
            names = list(parameters)
            most = [one.kind for one in parameters.values()].count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
            if most < len(arguments) and most < len(names):
                raise TypeError(_explain_places(method, names, most, arguments)) from None
            for name in named:
                if name not in names:
                    raise TypeError(_explain_name(method, arguments[0], name, names[1:])) from None
            raise

    return explained


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """Find the libraries with threads once per set of modules: it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limited_threads(n_threads: int) -> AbstractContextManager[object]:
    """Limit the threads of OpenMP, as in scikit-learn, and give BLAS one.

    BLAS rounds differently with every number of threads: with one, a model has the same fingerprint on any machine with
    the same instructions.
    """
    controller = _controller(len(sys.modules))
    # Only lower the limits: a smaller number from the environment or a caller stays.
    above = {}
    for library in controller.lib_controllers:
        most = 1 if library.user_api == "blas" else n_threads
        if library.num_threads > most:
            above[library.prefix] = most
    return controller.limit(limits=above) if above else contextlib.nullcontext()


def with_own_threads(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method to limit threads to `n_threads` of its object; like `by_name`."""

    @by_name
    @wraps(method)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with limited_threads(thread_count(args[0].n_threads)):  # type: ignore[attr-defined]
            return method(*args, **kwargs)

    return limited
