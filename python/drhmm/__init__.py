"""Density ratio hidden Markov models: sequence labelling, filtering and anomaly detection."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _processor as _processor  # first: it says where drhmm cannot run
from . import recursion
from .alarms import Alarm, Episode
from .durations import Durations
from .exceptions import ImpossibleDataError, ModelFormatError, SnapshotError
from .io import load
from .model import Model
from .streaming import Stream, StreamBatch
from .version import __version__, show_versions

if TYPE_CHECKING:
    from . import dask, datasets, frames, plotting, ratios, reference
    from .estimator import DensityRatioHMM

__all__ = [
    "Alarm",
    "DensityRatioHMM",
    "Durations",
    "Episode",
    "ImpossibleDataError",
    "Model",
    "ModelFormatError",
    "SnapshotError",
    "Stream",
    "StreamBatch",
    "__version__",
    "dask",
    "datasets",
    "frames",
    "load",
    "plotting",
    "ratios",
    "recursion",
    "reference",
    "show_versions",
]

# Names that bring scikit-learn, matplotlib or Dask with them arrive when they are first used.
_LAZY = {
    "DensityRatioHMM": ("estimator", "DensityRatioHMM"),
    "dask": ("dask", None),
    "datasets": ("datasets", None),
    "frames": ("frames", None),
    "plotting": ("plotting", None),
    "ratios": ("ratios", None),
    "reference": ("reference", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'drhmm' has no attribute {name!r}")
    module_name, attribute = _LAZY[name]
    module = importlib.import_module(f".{module_name}", __name__)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
