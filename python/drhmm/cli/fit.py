"""``drhmm fit``: from a table to a model file."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import io
from .._labels import UNKNOWN
from .._sequences import as_sequences
from .._tables import NamedColumns
from .._text_tables import TextTable, printable, share
from .._validation import Array, Lengths, check_integer
from ..estimator import DensityRatioHMM
from ..evaluation import Evaluation, evaluate
from ..features import Framing, complete_rows
from ..model import METHODS
from ..summary import COLUMNS
from .columns import Columns, ordered
from .errors import InputError
from .output import say
from .tables import check_target
from .values import checked_step

#: Held-out sequences whose accuracy is printed, at most.
MOST_NAMED = 20

#: By how much smoothing must be worse than each frame alone to be told.
CLEARLY = 0.03


def run(options: argparse.Namespace) -> None:
    """Read, learn, measure on held-out rows, learn from all rows, and save."""
    check_target(options.output, options.data)
    if not 0 <= options.holdout < 1:
        raise ValueError(f"--holdout must be from 0 to below 1, got {options.holdout:g}")
    if options.label is None and options.states is None:
        raise ValueError("give --label COLUMN, or --states N to learn without labels")
    if options.step is not None and options.time is None:
        raise ValueError("--step goes with --time")
    check_integer(options.seed, "--seed", low=0, high=2**32 - 1)
    columns = Columns(options.features, options.label, options.sequence, options.time)
    table = columns.read(options.data, options.header)
    names = columns.feature_names(table)
    rows, step = ordered(table, columns, checked_step(options.step, "--step"))
    X = table.numbers(names)[rows.order]
    y = None if options.label is None else table.labels(options.label)[rows.order]
    if y is not None and options.states is None and all(label is None for label in y.tolist()):
        raise InputError("no row has a label: give --states N to learn without", options.data, column=options.label)
    # A gap in time ends a sequence: nobody knows what happened in it.
    lengths = as_sequences(X, rows.lengths, dt=rows.dt).unbroken
    say(f"read {options.data}: {_described(X, y, lengths, names, options.window)}")

    verbose = not options.quiet and sys.stderr.isatty()
    estimator = DensityRatioHMM(
        options.states,
        window=options.window,
        durations=options.durations,
        min_duration=options.min_duration,
        n_basis="auto" if options.basis is None else options.basis,
        novelty=options.novelty,
        novelty_rate=options.novelty_rate,
        novelty_duration=options.novelty_duration,
        random_state=options.seed,
        n_threads=options.threads,
        verbose=verbose,
        unknown=None,
    )
    begin = time.perf_counter()
    estimator.fit(NamedColumns(X, names), y, lengths=lengths)
    say(f"learned in {time.perf_counter() - begin:.1f} s: {_chosen(estimator)}")
    if y is not None and options.holdout > 0:
        column = columns.sequence_of(table)
        held_out, words = _split(rows.lengths, options.holdout, options.seed, column)
        owners = None if column is None else table.identities(column)[rows.order]
        say(f"held-out accuracy: {_measured(estimator, X, y, lengths, held_out, words, owners)}")

    remembered = {"label": columns.label, "sequence": columns.sequence, "time": columns.time}
    settings = dict(estimator.model_.settings) | {COLUMNS: remembered}
    if step is not None:
        settings["time_step"] = float(step)
    model = replace(estimator.model_, settings=settings)
    io.save(model, options.output)
    say(f"saved {options.output}: {options.output.stat().st_size:,} bytes, fingerprint {model.fingerprint}")


def _described(X: Array, y: Any, lengths: Lengths, names: list[str], window: int) -> str:
    parts = [f"{len(X):,} rows", f"{len(names)} features ({', '.join(names)})"]
    parts.append("1 sequence" if len(lengths) == 1 else f"{len(lengths):,} sequences")
    missing = int(np.isnan(X).any(axis=1).sum())
    if missing:
        parts.append(f"{missing:,} rows with a missing value")
    if y is not None:
        known = np.array([label is not None for label in y.tolist()])
        values, counts = np.unique(np.array(y[known].tolist()), return_counts=True)
        named = ", ".join(f"{value} ({count:,})" for value, count in zip(values, counts, strict=True))
        parts.append(f"labels {named}" if named else "no labels")
        if named and not known.all():
            parts.append(f"{int((~known).sum()):,} rows without a label")
    if 1 < window <= max(lengths):
        framing = Framing(np.zeros(X.shape[1]), np.ones(X.shape[1]), window)
        left_out = len(X) - int(complete_rows(framing.frames(X, lengths)).sum())
        parts.append(f"{left_out:,} rows without a complete window of {window}, which are not learned from")
    return "; ".join(parts)


def _chosen(estimator: DensityRatioHMM) -> str:
    """What cross-validation and EM came to."""
    parts = [f"{len(estimator.centers_)} kernel centres"]
    selection = estimator.selection_
    if selection is None:
        parts.append(f"sigma {estimator.sigma_:.3g}, rho {estimator.rho_:.3g}")
    else:
        best = np.unravel_index(np.argmin(selection.verdict), selection.verdict.shape)
        parts.append(
            f"cross-validation of {selection.loss.size} settings, pulled towards the defaults, chose sigma "
            f"{estimator.sigma_:.3g} and rho {estimator.rho_:.3g} (held-out squared loss {selection.loss[best]:.4f})"
        )
    scales = ", ".join(f"{name} {scale:.3g}" for name, scale in estimator.member_scales_.items())
    parts.append(f"evidence scales {scales} and temper {estimator.transition_temper_:.3g} by {estimator.scale_reason_}")
    if estimator.model_.stages is not None:
        parts.append("stages of the states " + ", ".join(map(str, estimator.model_.stages.sizes)))
    if estimator.history_:
        parts.append(f"EM {'converged' if estimator.converged_ else 'stopped'} after {estimator.n_iter_} iterations")
    return "; ".join(parts)


def _measured(
    estimator: DensityRatioHMM,
    X: Array,
    y: npt.NDArray[Any],
    lengths: Lengths,
    held_out: npt.NDArray[np.bool_],
    words: str,
    owners: npt.NDArray[Any] | None,
) -> str:
    """Accuracy and tables of held-out rows, by a second model that did not learn from them."""
    (train, train_lengths), (test, test_lengths) = (_part(held_out == side, lengths) for side in (False, True))
    other = DensityRatioHMM(**{**estimator.get_params(), "verbose": False})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other.fit(X[train], y[train], lengths=train_lengths)
        found = {
            method: evaluate(other, X[test], y[test], lengths=test_lengths, method=method, unknown=None)
            for method in METHODS
        }
    except ValueError as error:
        return f"not measured: {error}"
    spoken = {"smooth": "smoothed", "filter": "filtered", "frame": "each time step alone"}
    accuracies = ", ".join(f"{found[method].accuracy:.1%} {spoken[method]}" for method in METHODS)
    _warn_of_poor(found["smooth"], found["frame"], len(lengths))
    own = [] if owners is None else [_by_sequence(found["smooth"], owners[test])]
    tables = "\n\n".join(table.as_text() for table in [*own, *found["smooth"].tables()])
    return f"{accuracies} ({found['smooth'].n_frames:,} labelled rows, {words}, learned without them)\n\n{tables}\n"


def _by_sequence(found: Evaluation, owners: npt.NDArray[Any]) -> TextTable:
    """The accuracy of each held-out sequence by its name."""
    known = found.truth != UNKNOWN
    right = found.posteriors.argmax(axis=1) == found.truth
    rows = []
    for name in dict.fromkeys(owners.tolist()):
        own = known & (owners == name)
        rows.append([printable(name), f"{own.sum():,}", share(right[own].mean()) if own.any() else "-"])
    left_out = f"; {MOST_NAMED} of {len(rows):,}" if len(rows) > MOST_NAMED else ""
    return TextTable(f"held-out sequences{left_out}", ["sequence", "time steps", "accuracy"], rows[:MOST_NAMED])


def _warn_of_poor(smoothed: Evaluation, alone: Evaluation, n_sequences: int) -> None:
    """Warn of labels that are worse than the simplest ones, and of smoothing that does harm."""
    if smoothed.accuracy < smoothed.baseline:
        warnings.warn(
            f"the held-out accuracy, {share(smoothed.accuracy)}, is below that of always saying the most frequent "
            f"label, {share(smoothed.baseline)}: what was learned does not carry over to rows that were held out",
            UserWarning,
            stacklevel=2,
        )
    if n_sequences > 1 and smoothed.accuracy < alone.accuracy - CLEARLY:
        warnings.warn(
            f"smoothing, {share(smoothed.accuracy)}, is worse than each time step alone, {share(alone.accuracy)}: "
            "sequences may differ from one another, for example by offsets, and columns that are standardised within "
            "each sequence may help",
            UserWarning,
            stacklevel=2,
        )


def _split(lengths: Lengths, share: float, seed: int, sequence: str | None) -> tuple[npt.NDArray[np.bool_], str]:
    """Which rows are held out: whole sequences, no part of which is learned from, or the end of the only one."""
    held_out = np.zeros(sum(lengths), dtype=bool)
    if len(lengths) == 1:
        held_out[len(held_out) - int(share * len(held_out)) :] = True
        return held_out, "the end of the sequence"
    begins = np.cumsum([0, *lengths[:-1]])
    chosen: list[int] = []
    for number in np.random.RandomState(seed).permutation(len(lengths)).tolist():
        if held_out.sum() + lengths[number] > share * len(held_out) and chosen:
            continue
        if len(chosen) + 1 == len(lengths):
            break
        chosen.append(number)
        held_out[begins[number] : begins[number] + lengths[number]] = True
    return held_out, f"{len(chosen):,} of {len(lengths):,} sequences by {sequence!r}"


def _part(chosen: npt.NDArray[np.bool_], lengths: Lengths) -> tuple[npt.NDArray[np.int64], Lengths]:
    ends = np.cumsum(lengths)
    sizes = [int(chosen[end - length : end].sum()) for end, length in zip(ends, lengths, strict=True)]
    return np.flatnonzero(chosen), [size for size in sizes if size > 0]
