"""The context: statistics and convolutions of the past of each time step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.checks import Array, FrozenArrays, Lengths
from .frames import Framing

#: Windows of the statistics, in samples; those beyond twice the mean stay are left out.
WINDOWS = (5, 17, 65)

#: The longest window, in samples.
LONGEST_WINDOW = 2**20

#: The most columns of samples and statistics. Above it, drop the longest windows, then log changes, then log spreads.
MOST_STATISTICS = 120

#: The most columns with statistics, evenly spread among all; convolutions can read any column.
MOST_COLUMNS = 200

#: Convolutions: 84 patterns of nine taps at each of three dilations, on signed sums of at most nine columns.
N_KERNELS = 252
MOST_SUMMED = 9

#: The most time steps for learning the biases of the convolutions.
MOST_OUTPUTS = 4000
OUTPUT_STRETCH = 50

#: Biases are this much above a quantile of outputs, so that rounding does not decide ties, even in float32.
ABOVE_TIES = 1e-6

#: Time steps with features in memory at once.
BLOCK = 4096

#: Rows closer than this share a block.
NEAR = 100


@dataclass(frozen=True)
class Context(FrozenArrays):
    """Features of the past of a time step.

    The sample itself; mean, log spread and log change (the first `kinds` of them) of every column over each of the
    `windows`; and the share of the last five outputs of each convolution above its bias. `mean` and `scale` (d,)
    standardise samples, `signs` (d, 252) define the sums of columns for the convolutions, and `bias` (252,) has their
    biases. `drhmm.reference.context` has the formulas.
    """

    AXES: ClassVar[dict[str, str]] = {"mean": "d", "scale": "d", "signs": "d K", "bias": "K"}

    mean: Array
    scale: Array
    windows: tuple[int, ...]
    kinds: int
    signs: Array
    bias: Array
    native: _core.Context = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        native = _core.Context(
            mean=self.mean,
            scale=self.scale,
            windows=list(self.windows),
            kinds=self.kinds,
            signs=self.signs,
            bias=self.bias,
        )
        object.__setattr__(self, "native", native)

    @property
    def size(self) -> int:
        """Number of features."""
        return min(len(self.mean), MOST_COLUMNS) * (1 + self.kinds * len(self.windows)) + len(self.bias)

    def blocks(
        self, samples: Array, lengths: Lengths, rows: npt.NDArray[np.int64] | None = None
    ) -> Iterator[tuple[slice, Array]]:
        """Iterate over blocks of rows and their features: all rows, or those near `rows`."""
        if rows is None:
            stretches = [(0, len(samples))]
        else:
            cuts = np.flatnonzero(np.diff(rows) > NEAR) + 1
            stretches = [(int(own[0]), int(own[-1]) + 1) for own in np.split(rows, cuts) if len(own) > 0]
        for begin, end in stretches:
            for first in range(begin, end, BLOCK):
                count = min(BLOCK, end - first)
                yield slice(first, first + count), self.native.features(samples, lengths, first, count)

    def features(self, samples: Array, lengths: Lengths) -> Array:
        """Return the features of all time steps, (T, F)."""
        return self.native.features(samples, lengths, 0, len(samples))


def learn_context(
    framing: Framing,
    samples: Array,
    lengths: Lengths,
    mean_stay: float,
    longest: int | None,
    random_state: np.random.RandomState,
) -> Context:
    """Choose windows up to twice the mean stay or `longest`, convolutions and biases."""
    limit = 2 * mean_stay if longest is None else longest
    windows = [w for w in WINDOWS if w <= limit] or [WINDOWS[0] if longest is None else longest]
    if longest is not None and windows[-1] < longest:
        windows.append(longest)
    d, kinds = samples.shape[1], 3
    while d * (1 + kinds * len(windows)) > MOST_STATISTICS and len(windows) > 1:
        windows.pop()
    while d * (1 + kinds * len(windows)) > MOST_STATISTICS and kinds > 1:
        kinds -= 1
    signs = np.zeros((d, N_KERNELS))
    for kernel in range(N_KERNELS):
        size = min(d, int(2 ** random_state.uniform(0, np.log2(min(d, MOST_SUMMED) + 1))))
        signs[random_state.choice(d, size, replace=False), kernel] = random_state.choice([-1.0, 1.0], size)
    context = Context(framing.mean, framing.scale, tuple(windows), kinds, signs, np.zeros(N_KERNELS))
    # Use some stretches, spread evenly: the outputs of a row need the rows before it.
    size = min(OUTPUT_STRETCH, len(samples))
    begins = np.unique(np.linspace(0, len(samples) - size, MOST_OUTPUTS // OUTPUT_STRETCH).astype(int))
    outputs = np.vstack([context.native.features(samples, lengths, int(row), size, outputs=True) for row in begins])
    quantiles = random_state.uniform(0.1, 0.9, N_KERNELS)
    outputs.sort(axis=0)
    place = quantiles * (len(outputs) - 1)
    low, high = (np.take_along_axis(outputs, end(place).astype(int)[None], 0)[0] for end in (np.floor, np.ceil))
    bias = low + (high - low) / 2
    return replace(context, bias=bias + ABOVE_TIES * (1 + np.abs(bias)))


def rows_ahead(lengths: Lengths, steps: int) -> npt.NDArray[np.int64]:
    """Return each row `steps` time steps later, at most the last of its sequence."""
    ends = np.repeat(np.cumsum(lengths), lengths) - 1
    later: npt.NDArray[np.int64] = np.minimum(np.arange(len(ends)) + steps, ends)
    return later
