"""The choice of the number of states on held-out sequences."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from ..data.checks import Array, Lengths, check_integer, check_number, thread_count
from ..data.sequences import Sequences, as_sequences, feature_names_of
from ..data.user_warnings import warn
from ..estimator import DensityRatioHMM
from ..features.frames import random_state_of
from ..system.progress import no_progress, progress_bar
from ..tuning.folds import drawn_folds, even_blocks, mean_and_error
from .text_tables import Shown, TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Number of blocks, if there are fewer sequences.
FEWEST_UNITS = 10
#: The least gain of further states, as a share of the gain of equally useful ones.
WORTH_HAVING = 0.25
#: The total gain of all held-out frames, in nats, above which one state is not enough.
LEAST_TOTAL = 5.0


@dataclass(frozen=True)
class StateNumbers(Shown):
    """Held-out gains by number of states, and the chosen number.

    Attributes
    ----------
    n_states : int
        The smallest number whose gain is as good as the largest; see `select_states`.
    candidates : ndarray of int, shape (K,)
        The numbers that were tried.
    gains : ndarray of shape (K,)
        Mean gain of a held-out frame, in nats; see `Model.gain`.
    standard_errors : ndarray of shape (K,)
        Standard errors of the gains, over units.
    differences, difference_errors : ndarray of shape (K,)
        Difference of the largest gain and each gain, and its standard error over units.
    unit_gains : ndarray of shape (K, units)
        Mean gain of every held-out unit, a whole sequence or a long block of one.
    units : str
        Description of the units.
    reason : str
        The reason for the choice, in words.

    Examples
    --------
    >>> from drhmm import DensityRatioHMM, select_states
    >>> from drhmm.datasets import blobs
    >>> X, _ = blobs(300, random_state=0)
    >>> quick = DensityRatioHMM(n_basis=20, sigma="default", rho="default", n_init=1, tol=0.05)
    >>> numbers = select_states(X, [2, 3], estimator=quick, random_state=0)
    >>> numbers.candidates
    array([2, 3])
    >>> numbers.table().columns[:2]
    ['states', 'gain']
    >>> axes = numbers.plot()
    """

    n_states: int
    candidates: npt.NDArray[np.int64]
    gains: Array
    standard_errors: Array
    differences: Array
    difference_errors: Array
    unit_gains: Array
    units: str
    reason: str

    def table(self) -> TextTable:
        """The gains as a table, with the errors of the differences."""
        best, rows = int(self.gains.argmax()), []
        for k, count in enumerate(self.candidates.tolist()):
            marks = ["chosen"] * (count == self.n_states) + ["largest gain"] * (k == best)
            figures = (self.gains[k], self.differences[k], self.difference_errors[k])
            rows.append([str(count), *(f"{value:.4f}" for value in figures), ", ".join(marks)])
        states = f"{self.n_states} state" + "s" * (self.n_states > 1)
        title = f"{states}, by the gain of held-out frames ({self.units}): {self.reason}"
        return TextTable(title, ["states", "gain", "below the largest", "error of that", ""], rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gains; see `drhmm.plotting.state_numbers`."""
        from ..plotting import state_numbers

        return state_numbers(self, ax=ax)


def select_states(
    X: npt.ArrayLike,
    candidates: Iterable[int] = range(1, 9),
    *,
    estimator: DensityRatioHMM | None = None,
    lengths: npt.ArrayLike | None = None,
    sequence_id: npt.ArrayLike | None = None,
    n_folds: int = 3,
    worth_having: float = WORTH_HAVING,
    random_state: Any = None,
    n_threads: int | None = None,
    verbose: bool = False,
) -> StateNumbers:
    """Choose the number of states without labels by the gain on held-out sequences.

    For each number, EM learns from some of the sequences, and `Model.gain` scores the others, so that every sequence is
    scored once. Few sequences are cut into long blocks.

    Parameters
    ----------
    X, lengths, sequence_id
        As in `DensityRatioHMM.fit`.
    candidates : iterable of int
        Numbers of states to try. One state has the gain 0 by definition.
    estimator : DensityRatioHMM, optional
        The settings of all models except `n_states`; by default those of `DensityRatioHMM`.
    n_folds : int
        Number of parts, each held out in turn.
    worth_having : float
        Further states must gain at least this share, from 0 to 1, of the gain of equally useful states. With 0, only
        the standard error counts, which finds rare states.
    random_state : int, RandomState or None
        Seed of the parts, and of models without a seed of their own.
    n_threads : int, optional
        Threads; all cores by default.
    verbose : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    StateNumbers
        The chosen number is ``n_states``. Prints as a table; ``plot()`` draws the gains.

    Notes
    -----
    One state is chosen unless the largest gain, summed over all held-out frames, exceeds 5 nats: if frames are
    independent, the probability of that is about exp(-5). Otherwise, the choice is the smallest number of two or more
    whose gain is at most one standard error below the largest. The error is that of the difference over units, as some
    units are easier for all models. Further states must also be worth having: the gain of K equally useful states is
    proportional to log K. A number is rejected only if its difference to the largest gain is more than a quarter
    (`worth_having`) of the difference by this rule.

    Examples
    --------
    >>> from drhmm import DensityRatioHMM, select_states
    >>> from drhmm.datasets import blobs
    >>> X, _ = blobs(300, random_state=0)
    >>> select_states(X, range(2, 5), estimator=DensityRatioHMM(ratio="gaussian", n_init=1), random_state=0).n_states
    3
    """
    if not isinstance(candidates, Iterable):
        raise ValueError(f"candidates must be several numbers, such as range(2, 5), got {candidates!r}")
    feature_names_of(X)  # refuses equal names of columns
    numbers = sorted({check_integer(number, "candidates", low=1) for number in candidates})
    if numbers in ([], [1]):
        raise ValueError(f"candidates is {numbers}: give at least one number of states above 1")
    check_integer(n_folds, "n_folds", low=2)
    share = check_number(worth_having, "worth_having", low=0, high=1)
    random, threads = random_state_of(random_state), thread_count(n_threads)
    settings = DensityRatioHMM() if estimator is None else clone(estimator)
    settings.set_params(n_threads=threads)
    if settings.random_state is None:
        settings.set_params(random_state=int(random.randint(2**31)))
    sequences = as_sequences(X, lengths, sequence_id)
    units, words = _units(sequences.lengths, settings.window, n_folds)
    folds = drawn_folds(len(units), n_folds, random)
    apart = replace(sequences, lengths=[end - begin for begin, end in units])
    progress = progress_bar("numbers of states") if verbose else no_progress
    unit_gains, weights, done = np.zeros((len(numbers), len(units))), np.zeros(len(units)), 0
    for fold in range(n_folds):
        own = np.flatnonzero(folds == fold)
        held_out = np.repeat(folds == fold, apart.lengths)
        (_, train), (_, test) = sequences.taken(~held_out), apart.taken(held_out)
        for k, number in enumerate(numbers):
            if number == 1:
                continue
            gains, counts = _held_out(settings, number, train, test, threads)
            unit_gains[k, own] = gains / np.maximum(counts, 1)
            weights[own], done = counts, done + 1
            progress(done, n_folds * (len(numbers) - numbers.count(1)), f"{number} states")
    found = _chosen(np.array(numbers), unit_gains[:, weights > 0], weights[weights > 0], words, share)
    if 1 not in numbers and found.gains.max() <= 0:
        warn(
            f"no number of states has a gain above 0, the largest is {found.gains.max():.4f}: one state describes "
            "held-out time steps as well; other columns, a window or more data may help"
        )
    return found


def _units(lengths: Lengths, window: int, n_folds: int) -> tuple[list[tuple[int, int]], str]:
    """Return the rows of the units that are held out together, and their name."""
    if len(lengths) >= FEWEST_UNITS:
        return even_blocks(lengths, 1), f"{len(lengths)} sequences"
    blocks = even_blocks(lengths, FEWEST_UNITS, 2 * window)
    if len(blocks) < n_folds:
        raise ValueError(f"X has {sum(lengths)} rows, too few to hold out {n_folds} parts with window={window}")
    return blocks, f"{len(blocks)} blocks of about {round(sum(lengths) / len(blocks))} time steps"


def _held_out(
    settings: DensityRatioHMM, n_states: int, train: Sequences, test: Sequences, n_threads: int
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the summed gain and number of time steps of every held-out unit."""
    with warnings.catch_warnings():
        # Empty states and unfinished EM show in the gains.
        warnings.simplefilter("ignore")
        model = clone(settings).set_params(n_states=n_states).fit(train.samples, lengths=train.lengths).model_
    gains, counts = model.sequence_gains(test, n_threads)
    return gains, counts


def _chosen(
    numbers: npt.NDArray[np.int64], unit_gains: Array, weights: Array, units: str, worth_having: float = WORTH_HAVING
) -> StateNumbers:
    gains, errors = mean_and_error(unit_gains, weights)
    best = int(gains.argmax())
    mean, difference_errors = mean_and_error(unit_gains[best] - unit_gains, weights)
    full_use = gains[best] * (1 - np.log(numbers) / np.log(max(numbers[best], 2)))
    good = mean <= np.maximum(difference_errors, worth_having * full_use)
    total = gains[numbers > 1].max() * weights.sum()
    good[numbers == 1] = total <= LEAST_TOTAL
    chosen = int(np.flatnonzero(good)[0])
    if numbers[chosen] == 1:
        reason = f"several states gain {total:.1f} nats in all held-out time steps, not more than {LEAST_TOTAL:g}"
    elif chosen == best:
        reason = "the largest gain"
    elif mean[chosen] <= difference_errors[chosen]:
        reason = f"less than one standard error below the largest gain, that of {numbers[best]} states"
    else:
        reason = (
            f"{numbers[best]} states gain {mean[chosen]:.4f} more, less than {worth_having:g} of the "
            f"{full_use[chosen]:.4f} that states in full use would"
        )
    number = int(numbers[chosen])
    return StateNumbers(number, numbers, gains, errors, mean, difference_errors, unit_gains, units, reason)
