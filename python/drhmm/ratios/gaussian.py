"""Density ratios of one Gaussian per state."""

from __future__ import annotations

from ..data.checks import Array
from ..evidence.pool_members import GaussianMember, Member
from .learner import Task
from .member_source import MemberSource


class Gaussian(MemberSource):
    """Density ratios of one Gaussian per state, with covariances shrunk to the pooled one.

    Parameters
    ----------
    floor : float
        Smallest posterior estimate, for balanced states.
    n_threads : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    member_ : GaussianMember
        Means and whitening matrices.
    prior_ : ndarray of shape (S,)
        Share of each state in the training frames.

    Notes
    -----
    Sigma_i = (scatter_i + (D + 1) Sigma_pooled) / (n_i + D + 1) + .01 diag(variances of all frames). A few
    frames per state are enough. With many frames, the kernels of a pool correct what is not Gaussian.

    Examples
    --------
    >>> from drhmm.datasets import blobs
    >>> from drhmm.ratios import Gaussian
    >>> frames, y = blobs(300, random_state=0)
    >>> targets = (y[:, None] == [0, 1, 2]).astype(float)  # one-hot
    >>> source = Gaussian().fit(frames, targets)
    >>> bool((source.log_ratios(frames).argmax(axis=1) == y).mean() > 0.85)
    True
    """

    def __init__(self, floor: float = 0.02, n_threads: int | None = None) -> None:
        self.floor = floor
        self.n_threads = n_threads

    def _begin(self, task: Task, search: bool = True) -> tuple[Member, Array | None]:
        return GaussianMember.before_learning(task.frames[task.weights > 0], task.targets.shape[1]), None
