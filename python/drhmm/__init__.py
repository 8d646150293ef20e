"""Density ratio HMMs: sequence labelling, filtering and anomaly detection."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _processor as _processor  # first: raises an error where drhmm cannot run
from . import recursion
from .chain.durations import Durations
from .exceptions import ImpossibleDataError, ModelFormatError, SnapshotError
from .files.model_file import load
from .live.alarms import Alarm, AlarmHealth, Episode
from .live.streams import Stream, StreamBatch
from .model import Model
from .version import __version__, show_versions

if TYPE_CHECKING:
    from . import dask, dataframes, datasets, plotting, ratios, reference
    from .estimator import DensityRatioHMM
    from .judging.cross_validation import cross_validate
    from .judging.evaluation import Evaluation, evaluate
    from .judging.explanation import ColumnRanking, Explanation
    from .judging.number_of_states import StateNumbers, select_states
    from .judging.suggestions import Suggestion

__all__ = [
    "Alarm",
    "AlarmHealth",
    "ColumnRanking",
    "DensityRatioHMM",
    "Durations",
    "Episode",
    "Evaluation",
    "Explanation",
    "ImpossibleDataError",
    "Model",
    "ModelFormatError",
    "SnapshotError",
    "StateNumbers",
    "Stream",
    "StreamBatch",
    "Suggestion",
    "__version__",
    "cross_validate",
    "dask",
    "dataframes",
    "datasets",
    "evaluate",
    "load",
    "plotting",
    "ratios",
    "recursion",
    "reference",
    "select_states",
    "show_versions",
]

# Names that need scikit-learn, matplotlib or Dask are imported on first use.
_LAZY = {
    "DensityRatioHMM": ("estimator", "DensityRatioHMM"),
    "ColumnRanking": ("judging.explanation", "ColumnRanking"),
    "Evaluation": ("judging.evaluation", "Evaluation"),
    "Explanation": ("judging.explanation", "Explanation"),
    "cross_validate": ("judging.cross_validation", "cross_validate"),
    "evaluate": ("judging.evaluation", "evaluate"),
    "StateNumbers": ("judging.number_of_states", "StateNumbers"),
    "select_states": ("judging.number_of_states", "select_states"),
    "Suggestion": ("judging.suggestions", "Suggestion"),
    "dask": ("dask", None),
    "dataframes": ("dataframes", None),
    "datasets": ("datasets", None),
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
