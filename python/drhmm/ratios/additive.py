"""Density ratios that are sums over columns."""

from __future__ import annotations

from ..data.checks import Array
from ..evidence.pool_members import AdditiveMember, Member
from .learner import Task
from .member_source import MemberSource


class Additive(MemberSource):
    """Density ratios by additive least squares: each column has a straight line within its range, and decile steps.

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
    The features are 1, the value of each column clipped to the range of the training frames, and an indicator of its
    decile. A ridge of 10 frames draws everything but the intercept to 0. One linear system serves all states. A few
    frames suffice to learn nearly linear evidence, and steps where a sensor switches.

    Examples
    --------
    >>> from drhmm.datasets import blobs
    >>> from drhmm.ratios import Additive
    >>> frames, y = blobs(300, random_state=0)
    >>> targets = (y[:, None] == [0, 1, 2]).astype(float)  # one-hot
    >>> source = Additive().fit(frames, targets)
    >>> bool((source.log_ratios(frames).argmax(axis=1) == y).mean() > 0.85)
    True
    """

    def __init__(self, floor: float = 0.02, n_threads: int | None = None) -> None:
        self.floor = floor
        self.n_threads = n_threads

    def _begin(self, task: Task, search: bool = True) -> tuple[Member, Array | None]:
        return AdditiveMember.before_learning(task.frames[task.weights > 0], task.targets.shape[1]), None
