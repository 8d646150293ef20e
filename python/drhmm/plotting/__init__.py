"""Pictures of sequences and models; needs matplotlib.

Install it with ``pip install "drhmm[plot]"``. Every function takes arrays and returns matplotlib axes, from top to
bottom if there are several. It draws in the axes `ax`, or in the `figure` if it needs several axes; by default, it
makes a new figure through pyplot.

Parameters that several functions have:

- `names`: the labels in the order of the states, such as ``model.classes``.
- `times`: increasing numbers or dates for the x axis, such as a column of a table.

Examples
--------
>>> import drhmm
>>> from drhmm import plotting
>>> X, y = drhmm.datasets.blobs(300, random_state=0)
>>> hmm = drhmm.DensityRatioHMM(random_state=0).fit(X, y)
>>> posteriors = hmm.predict_proba(X)
>>> axes = plotting.sequence(X, posteriors, states=y, names=hmm.classes_)
>>> axes = plotting.evidence(hmm.log_ratios(X), states=y)
>>> axes = plotting.roc(y == 0, posteriors[:, 0])
>>> plotting.equal_error_rate([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
0.5
>>> axes = plotting.calibration(y, posteriors)
>>> round(plotting.calibration_error([0, 1, 1, 1], [0.7, 0.7, 0.7, 0.7]), 3)
0.05
>>> axes = plotting.transitions(hmm.transmat_, names=hmm.classes_)
>>> axes = plotting.durations(hmm.model_.durations, y)
>>> axes = plotting.explanation(hmm.explain(X, 100))
>>> axes = plotting.ranking(hmm.rank_columns(X, n_frames=20, random_state=0))
>>> axes = plotting.ratio_map(stay=[0.8, 0.95])
>>> quick = drhmm.DensityRatioHMM(n_basis=20, sigma="default", rho="default", n_init=1, tol=0.05)
>>> axes = plotting.state_numbers(drhmm.select_states(X, [2, 3], estimator=quick, random_state=0))
>>> normal, _ = drhmm.datasets.sensors(2000, faults=(), random_state=0)
>>> watch = drhmm.DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
>>> new, fault = drhmm.datasets.sensors(1000, faults=("bias",), random_state=1)
>>> alarm = watch.alarm(1, per=1000, hold_off=30)
>>> axes = plotting.alarms(watch.novelty_score(new), alarm, truth=fault != "normal")
"""

try:
    import matplotlib as _  # noqa: F401
except ImportError as error:
    raise ImportError(f'pictures need matplotlib: pip install "drhmm[plot]" ({error})') from None

from .chains import durations, ratio_map, transitions
from .curves import calibration, calibration_error, equal_error_rate, roc
from .results import explanation, ranking, state_numbers
from .style import COLORS
from .timelines import alarms, evidence, sequence

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
