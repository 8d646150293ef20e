"""Threads of other libraries, kept to the number that the user asked for."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from ..data.checks import thread_count
from ..data.hints import by_name

_P = ParamSpec("_P")
_R = TypeVar("_R")


@functools.lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """The libraries with threads, looked for again when Python has loaded other modules: that takes milliseconds."""
    return ThreadpoolController()


def limited_threads(n_threads: int) -> AbstractContextManager[object]:
    """A context in which OpenMP, as scikit-learn uses it, starts no more threads than that, and BLAS has one.

    BLAS rounds differently with every number of threads: with one, a model has the same fingerprint on any machine with
    the same instructions.
    """
    controller = _controller(len(sys.modules))
    # Only what is above: fewer threads, from the environment or a caller, are what somebody asked for, too.
    above = {}
    for library in controller.lib_controllers:
        most = 1 if library.user_api == "blas" else n_threads
        if library.num_threads > most:
            above[library.prefix] = most
    return controller.limit(limits=above) if above else contextlib.nullcontext()


def with_own_threads(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that keeps all libraries to the `n_threads` of its object, and answers as `by_name` does."""
    checked = by_name(method)

    @functools.wraps(method)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with limited_threads(thread_count(args[0].n_threads)):  # type: ignore[attr-defined]
            return checked(*args, **kwargs)

    return limited
