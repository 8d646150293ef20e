"""The native core: features, ratios, recursions and streams on C-contiguous float64 arrays."""

from collections.abc import Callable, Sequence
from typing import Any, final, overload

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Steps = _Integers | None
_Lengths = Sequence[int]
_Levels = tuple[float, float, int, int]  # of the sum and of a frame, hold-off, span

#: Begin, end, peak, score, cause and the time steps of the highest evidence.
_FoundAlarm = tuple[int, int, int, float, int, tuple[int, ...]]
_Report = tuple[int, int, int, int]
_Result = tuple[_Report, _Array]
_Gaussians = tuple[_Array, _Array, _Array, _Array, float]  # of classes, with the number of frames

ISA: str
OUTCOMES: tuple[str, ...]

def frames(samples: _Array, lengths: _Lengths, mean: _Array, scale: _Array, window: int, span: int = 0) -> _Array: ...
def squared_exponential(frames: _Array, centers: _Array, sigma: float) -> _Array: ...
def feature_moment(frames: _Array, targets: _Array, centers: _Array, sigma: float) -> _Array: ...
def cross_validate(
    frames: _Array,
    targets: _Array,
    weights: _Array,
    fold_sizes: _Lengths,
    centers: _Array,
    sigmas: Sequence[float],
    relative_rhos: Sequence[float],
    n_threads: int = 1,
    with_estimates: bool = True,
) -> tuple[_Array, _Array]: ...
def normalized(values: _Array, tolerance: float) -> _Array | None: ...
def add_at_ends(evidence: _Array, lengths: _Lengths, end_weights: _Array) -> None: ...
def first_infinite(values: _Array) -> int: ...
def exponentials(values: _Array) -> _Array: ...

@final
class Chain:
    def __init__(
        self,
        transmat: _Array,
        startprob: _Array,
        sizes: _Integers | None = None,
        stay: _Array | None = None,
        skip: _Array | None = None,
        rate: float = 0.0,
        keep: float = 0.0,
        back: _Array | None = None,
        way: str = "best",
    ) -> None: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_states(self) -> int: ...

def filter(chain: Chain, log_ratios: _Array, lengths: _Lengths, n_threads: int = 1, dt: _Steps = None) -> _Result: ...
def smooth(chain: Chain, log_ratios: _Array, lengths: _Lengths, n_threads: int = 1, dt: _Steps = None) -> _Result: ...
def log_likelihood(
    chain: Chain, log_ratios: _Array, lengths: _Lengths, n_threads: int = 1, dt: _Steps = None
) -> _Result: ...
def fixed_lag(
    chain: Chain, log_ratios: _Array, lengths: _Lengths, lag: int, n_threads: int = 1, dt: _Steps = None
) -> _Result: ...
def viterbi(
    chain: Chain, log_ratios: _Array, lengths: _Lengths, n_threads: int = 1, dt: _Steps = None
) -> tuple[_Report, _Integers, _Array]: ...
def expectation(
    chain: Chain, log_ratios: _Array, lengths: _Lengths, n_threads: int = 1
) -> tuple[_Report, _Array, _Array, _Array]: ...
def draw_paths(
    filtered: _Array, transposed: _Array, which: _Steps, lengths: _Lengths, uniforms: _Array, n_threads: int = 1
) -> _Integers | None: ...
def smoothing_loss(
    evidence: _Array,
    codes: _Integers,
    transitions: _Array,
    start: _Array,
    lengths: _Lengths,
    with_gradient: bool = True,
    n_threads: int = 1,
) -> tuple[float, _Array, _Array, _Array]: ...
def filtering_loss(
    evidence: _Array,
    codes: _Integers,
    transmat: _Array,
    startprob: _Array,
    lengths: _Lengths,
    with_gradient: bool = True,
) -> tuple[float, _Array]: ...

@final
class Context:
    def __init__(
        self, *, mean: _Array, scale: _Array, windows: Sequence[int], kinds: int, signs: _Array, bias: _Array
    ) -> None: ...
    @property
    def history(self) -> int: ...
    def features(self, samples: _Array, lengths: _Lengths, first: int, count: int, outputs: bool = False) -> _Array: ...

@final
class GramStatistics:
    @overload
    def __init__(self, n_centers: int, n_classes: int) -> None: ...
    @overload
    def __init__(self, gram: _Array, moment: _Array, mass: _Array) -> None: ...
    def add(self, frames: _Array, targets: _Array, weights: _Array, centers: _Array, sigma: float) -> None: ...
    def merge(self, other: GramStatistics) -> None: ...
    @property
    def gram(self) -> _Array: ...
    @property
    def moment(self) -> _Array: ...
    @property
    def mass(self) -> _Array: ...

@final
class RegularizedGram:
    def __init__(self, gram: _Array, rho: float) -> None: ...
    def solve(self, moment: _Array) -> _Array: ...

_Table = tuple[_Array, _Array, float, float]

def log_e(table: _Table, scores: _Array) -> _Array: ...

@final
class NoveltyEvidence:
    def __init__(
        self,
        *,
        shares: _Array,
        gaussians: _Gaussians,
        origin: _Array,
        whitening: _Array,
        centers: _Array,
        weights: _Array,
        width: float,
        tables: Sequence[_Table],
        scales: Sequence[float],
        joint: float,
    ) -> None: ...
    def scores(self, frames: _Array, n_threads: int = 1) -> _Array: ...
    def log_evidence(self, frames: _Array, n_threads: int = 1) -> _Array: ...

@final
class PooledRatio:
    def __init__(
        self,
        *,
        mean: _Array,
        scale: _Array,
        window: int,
        span: int,
        prior: _Array,
        least_ratio: float,
        floor: float,
        shift: _Array,
        kernel: tuple[_Array, float, _Array, float] | None = None,
        additive: tuple[_Array, _Array, _Array, _Array, _Array, _Array, float] | None = None,
        gaussian: _Gaussians | None = None,
        novelty: NoveltyEvidence | None = None,
        trend: NoveltyEvidence | None = None,
        context_features: Context | None = None,
        context: _Gaussians | None = None,
        ahead: _Gaussians | None = None,
    ) -> None: ...
    def estimates(self, samples: _Array, lengths: _Lengths, n_threads: int = 1, single: bool = False) -> _Array: ...
    def log_ratios(
        self, samples: _Array, lengths: _Lengths, n_threads: int = 1, with_novelty: bool = False, single: bool = False
    ) -> _Array: ...

def follow_alarm(levels: _Levels, scores: _Array, dt: _Steps | None) -> tuple[_Array, list[_FoundAlarm], int]: ...
def count_alarms(levels: _Levels, excursions: _Array, values: _Array) -> int: ...

@final
class LiveStreams:
    def __init__(
        self,
        *,
        chain: Chain,
        mean: _Array,
        scale: _Array,
        window: int,
        span: int,
        n_known: int,
        lag: int,
        ratio: PooledRatio | None,
        levels: _Levels | None = None,
    ) -> None: ...
    def add(self, n: int) -> _Integers: ...
    def reset(self, rows: Sequence[int]) -> None: ...
    def retire(self, rows: Sequence[int]) -> None: ...
    def live(self) -> _Flags: ...
    def n_frames(self) -> _Integers: ...
    def alarm(self, row: int, is_ended: bool, known: tuple[int, ...]) -> tuple[_FoundAlarm, _Array | None] | None: ...
    def alarm_sum(self, row: int) -> float: ...
    def alarm_marks(self, row: int) -> tuple[int, int]: ...
    def step(
        self, samples: _Array, active: _Flags, dt: _Steps, n_threads: int, evaluate: Callable[[_Array], _Array] | None
    ) -> _Result: ...
    def stepper(self) -> Callable[[Any, Any, Callable[[_Array], _Array] | None], Any]: ...
    def posterior(self, row: int, back: int) -> _Result: ...
    def posteriors(self) -> _Result: ...
    def state(self) -> dict[str, npt.NDArray[Any]]: ...
    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None: ...
