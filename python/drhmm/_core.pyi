"""The native core: features, ratios and recursions on C-contiguous float64 arrays."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]
_Steps = npt.NDArray[np.int64] | None
_Report = tuple[int, int, int, int]

OUTCOMES: tuple[str, ...]

def frames(samples: _Array, lengths: Sequence[int], mean: _Array, scale: _Array, window: int) -> _Array: ...
def squared_exponential(frames: _Array, centers: _Array, sigma: float) -> _Array: ...
def feature_moment(frames: _Array, targets: _Array, centers: _Array, sigma: float) -> _Array: ...
def cross_validate(
    frames: _Array,
    targets: _Array,
    weights: _Array,
    fold_sizes: Sequence[int],
    centers: _Array,
    sigma: float,
    relative_rhos: Sequence[float],
    n_threads: int = 1,
) -> tuple[_Array, _Array]: ...
def filter(
    log_ratios: _Array,
    transmat: _Array,
    startprob: _Array,
    lengths: Sequence[int],
    n_threads: int = 1,
    dt: _Steps = None,
) -> tuple[_Report, _Array]: ...
def smooth(
    log_ratios: _Array,
    transmat: _Array,
    startprob: _Array,
    lengths: Sequence[int],
    n_threads: int = 1,
    dt: _Steps = None,
) -> tuple[_Report, _Array]: ...
def fixed_lag(
    log_ratios: _Array,
    transmat: _Array,
    startprob: _Array,
    lengths: Sequence[int],
    lag: int,
    n_threads: int = 1,
    dt: _Steps = None,
) -> tuple[_Report, _Array]: ...
def viterbi(
    log_ratios: _Array,
    transmat: _Array,
    startprob: _Array,
    lengths: Sequence[int],
    n_threads: int = 1,
    dt: _Steps = None,
) -> tuple[_Report, npt.NDArray[np.int64]]: ...
def expectation(
    log_ratios: _Array, transmat: _Array, startprob: _Array, lengths: Sequence[int], n_threads: int = 1
) -> tuple[_Report, _Array, _Array]: ...

class GramStatistics:
    def __init__(self, n_centers: int, n_classes: int) -> None: ...
    def add(self, frames: _Array, targets: _Array, weights: _Array, centers: _Array, sigma: float) -> None: ...
    def merge(self, other: GramStatistics) -> None: ...
    @property
    def gram(self) -> _Array: ...
    @property
    def moment(self) -> _Array: ...
    @property
    def mass(self) -> _Array: ...

class RegularizedGram:
    def __init__(self, gram: _Array, rho: float) -> None: ...
    def solve(self, moment: _Array) -> _Array: ...

class LeastSquaresRatio:
    def __init__(
        self,
        *,
        centers: _Array,
        sigma: float,
        theta: _Array,
        prior: _Array,
        floor: float,
        evidence_scale: float,
        mean: _Array,
        scale: _Array,
        window: int,
    ) -> None: ...
    def estimates(self, samples: _Array, lengths: Sequence[int], n_threads: int = 1) -> _Array: ...
    def log_ratios(
        self, samples: _Array, lengths: Sequence[int], n_threads: int = 1, with_novelty: bool = False
    ) -> _Array: ...
