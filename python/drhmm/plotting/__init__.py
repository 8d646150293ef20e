"""Pictures of sequences and models; needs matplotlib.

Install it with ``pip install "drhmm[plot]"``. Every function takes arrays and returns matplotlib axes. It draws in the
axes `ax`, or in the `figure` if it needs several axes; by default, it makes a new figure through pyplot.
"""

try:
    import matplotlib as _  # noqa: F401
except ImportError as error:
    raise ImportError(f'pictures need matplotlib: pip install "drhmm[plot]" ({error})') from None

from .alarms import alarms
from .calibration import calibration, calibration_error
from .durations import durations
from .evidence import evidence
from .explanation import explanation, ranking
from .ratio_map import ratio_map
from .roc import equal_error_rate, roc
from .sequence import sequence
from .state_numbers import state_numbers
from .style import COLORS
from .transitions import transitions

__all__ = [
    "COLORS",
    "alarms",
    "calibration",
    "calibration_error",
    "durations",
    "equal_error_rate",
    "evidence",
    "explanation",
    "ranking",
    "ratio_map",
    "roc",
    "sequence",
    "state_numbers",
    "transitions",
]
