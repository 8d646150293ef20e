"""Pictures of sequences and what a model makes of them; needs matplotlib (``pip install "drhmm[plot]"``).

Every function takes plain arrays and returns matplotlib axes: ``axes.figure.savefig("picture.png")`` keeps them.
"""

from .alarms import alarms
from .calibration import calibration, calibration_error
from .durations import durations
from .evidence import evidence
from .ratio_map import ratio_map
from .roc import equal_error_rate, roc
from .sequence import sequence
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
    "ratio_map",
    "roc",
    "sequence",
    "transitions",
]
