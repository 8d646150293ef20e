"""The version, and the facts that a bug report needs."""

from __future__ import annotations

import sys

from . import _core
from ._processor import best_isa
from .data.checks import thread_count

__version__ = "0.1.0"

_PACKAGES = ("numpy", "scikit-learn", "safetensors", "narwhals", "matplotlib", "dask")


def show_versions() -> None:
    """Print versions of packages, platform, instruction set and number of threads.

    Examples
    --------
    >>> import drhmm
    >>> drhmm.show_versions()  # doctest: +ELLIPSIS
    drhmm ...
    """
    import importlib.metadata
    import platform

    rows = [("drhmm", __version__), ("python", sys.version.split()[0]), ("platform", platform.platform())]
    for package in _PACKAGES:
        try:
            rows.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    rows.append(("instruction set", f"{_core.ISA} (the processor has {best_isa()})"))
    rows.append(("threads", str(thread_count(None))))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
