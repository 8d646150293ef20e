"""Density ratios that are sums over columns."""

from __future__ import annotations

from .._validation import Array
from ..members import AdditiveMember, Member
from .learner import Task
from .member_source import MemberSource


class Additive(MemberSource):
    """Density ratios by additive least squares: for every column a straight line within its range, and decile steps.

    Parameters
    ----------
    floor : float
        Smallest posterior estimate, for balanced states.
    n_threads : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    member_ : AdditiveMember
        Range, edges, slopes and steps.
    prior_ : ndarray of shape (S,)
        Share of each state in the training frames.

    Notes
    -----
    Features are 1, the values of the columns clipped to the range of the training frames, and an indicator of the
    decile that each value is in; a ridge of 10 frames draws everything but the intercept to 0. One solution of linear
    equations serves all states. Evidence that is nearly linear, and steps where a sensor switches, are learned from
    few frames.
    """

    def __init__(self, floor: float = 0.02, n_threads: int | None = None) -> None:
        self.floor = floor
        self.n_threads = n_threads

    def _begin(self, task: Task, search: bool = True) -> tuple[Member, Array | None]:
        return AdditiveMember.before_learning(task.frames[task.weights > 0], task.targets.shape[1]), None
