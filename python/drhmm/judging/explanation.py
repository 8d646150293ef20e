"""Explanation of labels: parts of the log odds of the two likeliest states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..chain.unknown_state import among_known
from ..data.checks import Array, check_integer
from ..data.columns import columns_named
from ..data.sequences import Sequences
from ..evidence.pool_members import AHEAD
from ..evidence.pooled import PooledEvidence
from ..features.frames import random_state_of
from ..learning.training_frames import QUANTILES, TYPICAL
from .text_tables import Shown, TextTable, column_names_of, printable, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model import Model

#: Most columns for exact Shapley values over all subsets.
MOST_EXACT = 9

#: Random orders for more columns, each also reversed, and for 150 columns.
N_ORDERS = 32
FEWER_ORDERS = 16

#: Rows per evaluation.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Explanation(Shown):
    """Parts of the log odds of the two likeliest states of a time step, in nats.

    It prints as tables.

    Attributes
    ----------
    row : int
        The row of the time step.
    label, other, probability, other_probability : object, object, float, float
        The likeliest label and the second likeliest, with their smoothed posteriors.
    log_odds : float
        log p(label) - log p(other) = past + frame + future.
    past, frame, future : float
        Contributions to the log odds of the time steps before, the time step itself, and the time steps after it.
    average, columns : float, dict of str to float
        Mean evidence of typical frames of all states, and the contribution of each column (Shapley values). Their sum
        is `frame`.
    members : dict of str to float
        Contributions to `frame` of each member of the evidence, and of the prior shift.
    novelty : float or None
        The smoothed probability of the unknown, if the model has a state for it; those of `label` and `other` are
        conditional on a known state. `Model.novelty_columns` shows the columns that make a time step unknown.
    missing : str or None
        Why the time step itself is missing, in words: columns without a value, or too few samples for the window.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> model = drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_
    >>> explained = model.explain(X, 100)
    >>> tables, axes = explained.tables(), explained.plot()
    """

    row: int
    label: Any
    other: Any
    probability: float
    other_probability: float
    log_odds: float
    past: float
    frame: float
    future: float
    average: float
    columns: Mapping[str, float]
    members: Mapping[str, float]
    novelty: float | None = None
    missing: str | None = None

    def tables(self) -> list[TextTable]:
        """The explanation as tables."""
        one, other = printable(self.label), printable(self.other)
        unknown = "" if self.novelty is None else f"unknown ({share(self.novelty)}), or if it is known, "
        labels = f"{one} ({share(self.probability)}) rather than {other} ({share(self.other_probability)})"
        title = f"row {self.row}: {unknown}{labels}"
        if self.missing is not None:
            title += f"; the time step itself is missing, {self.missing}"
        parts = [("the past", self.past), ("this time step", self.frame), ("the future", self.future)]
        columns = sorted(self.columns.items(), key=lambda item: -abs(item[1]))
        rows_by_title = {
            title: [*parts, ("log odds", self.log_odds)],
            "this time step, by column": [("a typical frame", self.average), *columns],
            "this time step, by member of the evidence": [*self.members.items()] if len(self.members) > 1 else [],
        }
        return [
            TextTable(title, ["", f"for {one}"], [[name, f"{value:+.3f}"] for name, value in rows])
            for title, rows in rows_by_title.items()
            if rows
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw past, future and columns as bars; see `drhmm.plotting.explanation`."""
        from ..plotting import explanation

        return explanation(self, ax=ax)


@dataclass(frozen=True)
class ColumnRanking(Shown):
    """The importance of each column over many time steps.

    Attributes
    ----------
    columns : dict of str to float
        Mean absolute contribution of each column to the log odds of the two likeliest states, in nats; largest first.
    n_frames : int
        Number of time steps.

    Examples
    --------
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> model = drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_
    >>> ranked = model.rank_columns(X, n_frames=20, random_state=0)
    >>> table, axes = ranked.table(), ranked.plot()
    """

    columns: Mapping[str, float]
    n_frames: int

    def table(self) -> TextTable:
        """The ranking as a table."""
        rows = [[name, f"{value:.3f}"] for name, value in self.columns.items()]
        return TextTable(f"importance of each column, in {self.n_frames:,} time steps", ["column", "nats"], rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the columns as bars; see `drhmm.plotting.ranking`."""
        from ..plotting import ranking

        return ranking(self, ax=ax)


def explain(model: Model, sequences: Sequences, place: int, n_threads: int) -> Explanation:
    """Explain the time step at a position among the rows of whole sequences."""
    _check_choice(model)
    owners = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
    rows, alone = sequences.taken(owners == owners[place])
    everything = [
        model._all_posteriors(alone, method, None, n_threads, "smooth")[[place - rows[0]]]
        for method in ("smooth", "filter")
    ]
    smoothed, filtered = (among_known(posteriors, model.n_states)[0] for posteriors in everything)
    one, other = np.argsort(-smoothed, kind="stable")[:2].tolist()
    piece, names = (
        _piece(model, sequences.samples, np.cumsum([0, *sequences.unbroken]), place, n_threads),
        column_names_of(model),
    )
    frame, average, columns, members = 0.0, 0.0, dict.fromkeys(names, 0.0), {}
    if isinstance(piece, _Piece):
        frame = piece.log_odds(one, other)
        average, values = _by_column(piece, one, other, np.random.RandomState(0))
        columns, members = dict(zip(names, values.tolist(), strict=True)), _by_member(piece, one, other)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = float(np.log(smoothed[one]) - np.log(smoothed[other]))
        so_far = float(np.log(filtered[one]) - np.log(filtered[other]))
    return Explanation(
        row=sequences.row(place),
        label=model.labels[one],
        other=model.labels[other],
        probability=float(smoothed[one]),
        other_probability=float(smoothed[other]),
        log_odds=log_odds,
        past=_difference(so_far, frame),
        frame=frame,
        future=_difference(log_odds, so_far),
        average=average,
        columns=columns,
        members=members,
        novelty=None if model.novelty is None else float(everything[0][0, -1]),
        missing=None if isinstance(piece, _Piece) else piece,
    )


def rank_columns(model: Model, sequences: Sequences, n_frames: int, random_state: Any, n_threads: int) -> ColumnRanking:
    """Rank columns over time steps drawn without replacement."""
    _check_choice(model)
    check_integer(n_frames, "n_frames", low=1)
    random, borders = random_state_of(random_state), np.cumsum([0, *sequences.unbroken])
    smoothed = among_known(model._all_posteriors(sequences, "smooth", None, n_threads), model.n_states)
    total, count = np.zeros(model.n_features), 0
    for place in random.permutation(len(smoothed)).tolist():
        piece = _piece(model, sequences.samples, borders, place, n_threads)
        if isinstance(piece, _Piece):
            one, other = np.argsort(-smoothed[place], kind="stable")[:2].tolist()
            total += np.abs(_by_column(piece, one, other, random)[1])
            count += 1
            if count == n_frames:
                break
    if count == 0:
        raise ValueError("X has no complete frame")
    order = np.argsort(-total, kind="stable")
    names = column_names_of(model)
    return ColumnRanking({names[column]: float(total[column] / count) for column in order}, count)


def _check_choice(model: Model) -> None:
    if model.n_states < 2:
        raise ValueError(
            "a model of one state has no choice to explain; novelty_columns and an alarm's episodes show the columns "
            "that make a time step unknown"
        )


def _difference(one: float, other: float) -> float:
    """Subtract; 0 for infinities of the same sign."""
    return 0.0 if math.isinf(one) and one == other else one - other


@dataclass(frozen=True)
class _Piece:
    """The samples (L, d) that the evidence of a time step uses, and its position."""

    model: Model
    samples: Array
    at: int
    n_threads: int

    def log_odds(self, one: int, other: int, evidence: Any = None) -> float:
        """Log ratio of two states at the time step."""
        ratios = self.log_ratios(self.samples[None], evidence)[0]
        return float(ratios[one] - ratios[other])

    def mixed(self, masks: npt.NDArray[np.bool_], sample: Array, one: int, other: int) -> Array:
        """Log ratio of two states per mask (n, d), with a typical sample outside of it."""
        ratios = self.log_ratios(np.where(masks[:, None, :], self.samples[None], sample[None, None]))
        return ratios[:, one] - ratios[:, other]

    def log_ratios(self, pieces: Array, evidence: Any = None) -> Array:
        """Log ratios (n, S) of the time step in pieces (n, L, d)."""
        source = self.model.evidence if evidence is None else evidence
        if isinstance(source, PooledEvidence):
            blocks = (pieces[k : k + _BLOCK] for k in range(0, len(pieces), _BLOCK))
            return np.concatenate([source.log_ratios_at(block, self.at, self.n_threads) for block in blocks])
        window, samples = self.model.window, np.ascontiguousarray(pieces.reshape(-1, pieces.shape[2]))
        ratios: Array = source.log_ratios(samples, [window] * len(pieces), self.n_threads)
        return ratios[window - 1 :: window]


def _piece(
    model: Model, samples: Array, borders: npt.NDArray[np.int64], place: int, n_threads: int = 1
) -> _Piece | str:
    """Return the piece of a sequence for a time step, or why the time step is missing."""
    part = int(np.searchsorted(borders, place, side="right"))
    begin, end = int(borders[part - 1]), int(borders[part])
    window = samples[max(place - model.window + 1, begin) : place + 1]
    if len(window) < model.window:
        return f"as window={model.window} needs more samples before it"
    if np.isnan(window).any():
        within = "" if model.window == 1 else f" of its {model.window} samples"
        return f"without a value in {columns_named(np.isnan(window).any(axis=0), model.feature_names)}{within}"
    if model.evidence.history == 0:
        return _Piece(model, window, len(window) - 1, n_threads)
    first = max(begin, place - max(model.evidence.history, model.window) + 1)
    while first > begin and np.isnan(samples[first]).any():
        first -= 1  # a NaN takes the value before it
    return _Piece(model, samples[first : min(place + AHEAD + 1, end)], place - first, n_threads)


def _backgrounds(model: Model) -> tuple[Array, Array]:
    """Typical samples (k, d) with weights: medians of the states, else the mean."""
    record = np.array(model.settings.get(TYPICAL), dtype=object)
    if record.shape == (model.n_states, model.n_features, len(QUANTILES)):
        medians = record[:, :, 1]
        there = np.array([all(value is not None for value in row) for row in medians])
        if model.prior[there].sum() > 0:
            return medians[there].astype(np.float64), model.prior[there] / model.prior[there].sum()
    return model.evidence.framing.mean[None], np.ones(1)


def _by_column(piece: _Piece, one: int, other: int, random: np.random.RandomState) -> tuple[float, Array]:
    """Shapley values of the columns, and the mean log ratio of typical frames.

    The value of a set of columns is the mean log ratio of frames with these columns from the frame, and the others from
    typical samples. A Shapley value is the mean contribution of a column over all orders.
    """
    n = piece.samples.shape[1]
    samples, weights = _backgrounds(piece.model)
    average, shares = 0.0, np.zeros(n)
    if n <= MOST_EXACT:
        masks = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 > 0
        values = weights @ np.array([piece.mixed(masks, sample, one, other) for sample in samples])
        sizes = masks.sum(axis=1)
        of_size = np.array([math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n) for k in range(n)])
        for column in range(n):
            without = np.flatnonzero(~masks[:, column])
            shares[column] = of_size[sizes[without]] @ (values[without + (1 << column)] - values[without])
        return float(values[0]), shares
    # Draw new orders for each typical sample: the shares add up for any orders.
    no_history = piece.model.evidence.history == 0
    n_orders = max(8, min(N_ORDERS, FEWER_ORDERS * 150 // n)) if no_history else N_ORDERS // 4
    n_orders = -(-n_orders // len(samples))
    for sample, weight in zip(samples, weights, strict=True):
        orders = np.array([random.permutation(n) for _ in range(n_orders)])
        orders = np.vstack([orders, orders[:, ::-1]])
        masks = np.argsort(orders, axis=1)[:, None, :] < np.arange(n + 1)[:, None]  # (orders, n + 1, n)
        values = piece.mixed(masks.reshape(-1, n), sample, one, other).reshape(len(orders), n + 1)
        average += weight * values[0, 0]
        np.add.at(shares, orders, weight / len(orders) * np.diff(values, axis=1))
    return float(average), shares


def _by_member(piece: _Piece, one: int, other: int) -> dict[str, float]:
    """The contribution of each member of the evidence, and of the prior shift."""
    evidence = piece.model.evidence
    if not isinstance(evidence, PooledEvidence):
        return {str(evidence): piece.log_odds(one, other)}
    found = {}
    for name in evidence.members:
        others: dict[str, Any] = dict.fromkeys(set(evidence.members) - {name})
        found[name] = piece.log_odds(one, other, replace(evidence, prior_shift=0.0, **others))
    if evidence.prior_shift != 0:
        logs = np.log(evidence.prior)
        found["prior shift"] = float(evidence.evidence_scale * evidence.prior_shift * (logs[one] - logs[other]))
    return found
