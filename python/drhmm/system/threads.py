"""Limits on the threads of other libraries."""

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
    """Return the libraries with threads; search again after new imports only.

    A search takes milliseconds.
    """
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


def with_own_threads(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a method to limit threads to `n_threads` of its object; like `by_name`."""
    checked = by_name(method)

    @functools.wraps(method)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with limited_threads(thread_count(args[0].n_threads)):  # type: ignore[attr-defined]
            return checked(*args, **kwargs)

    return limited
