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

# Names that need scikit-learn, matplotlib or Dask are imported on first use; a module by its own name.
_LAZY = dict.fromkeys(("dask", "dataframes", "datasets", "plotting", "ratios", "reference"), "") | {
    "DensityRatioHMM": "estimator",
    "ColumnRanking": "judging.explanation",
    "Evaluation": "judging.evaluation",
    "Explanation": "judging.explanation",
    "cross_validate": "judging.cross_validation",
    "evaluate": "judging.evaluation",
    "StateNumbers": "judging.number_of_states",
    "select_states": "judging.number_of_states",
    "Suggestion": "judging.suggestions",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'drhmm' has no attribute {name!r}")
    module = importlib.import_module(f".{_LAZY[name] or name}", __name__)
    globals()[name] = value = getattr(module, name) if _LAZY[name] else module
    return value


def __dir__() -> list[str]:
    return __all__
