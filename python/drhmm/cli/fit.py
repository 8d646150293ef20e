"""``drhmm fit``: from a table to a model file."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..data.checks import Array, Lengths, check_integer, is_missing, shown
from ..data.sequences import NamedColumns, Sequences
from ..data.times import warn_of_times_among_features
from ..data.user_warnings import warn
from ..estimator import DensityRatioHMM
from ..features.frames import Framing, complete_rows
from ..files import model_file as io
from ..judging.cross_validation import MOST_ONE_BY_ONE, held_out, sequence_folds
from ..judging.evaluation import SPOKEN, Evaluation
from ..judging.number_of_states import select_states
from ..judging.text_tables import share
from ..model import METHODS, Model
from .csv_file import is_missing_text
from .errors import InputError
from .output import check_html, check_target, say
from .table_files import Table

#: Default share of held-out rows for one sequence, or for many.
HOLDOUT = 0.2

#: Approximate processor seconds for cross-validation by default.
BUDGET = 120.0


def fit(options: argparse.Namespace) -> None:
    """Read, learn, evaluate on held-out rows, learn from all rows, and save."""
    check_target(options.output, options.data)
    if options.holdout is not None and not 0 <= options.holdout < 1:
        raise ValueError(f"--holdout must be from 0 to below 1, got {options.holdout:g}")
    if options.label is None and options.states is None:
        raise ValueError("give --label COLUMN, or --states N to learn without labels")
    if options.label is not None and isinstance(options.states, range):
        raise ValueError("--states A-B compares models without labels: it does not go with --label")
    if options.step is not None and options.time is None:
        raise ValueError("--step goes with --time")
    is_measured = options.label is not None and (options.holdout != 0 or _is_cross_validated(options))
    if options.html is not None:
        if not is_measured:
            raise ValueError("--html goes with --label, and with --cross-validate or a --holdout above 0")
        check_html(options.html, options.data, options.output)
    if options.label is None and _is_cross_validated(options):
        raise ValueError("--cross-validate goes with --label")
    given = {"novelty_rate": options.novelty_rate, "novelty_duration": options.novelty_duration}
    novelty = {name: value for name, value in given.items() if value is not None}
    if novelty and not options.novelty:
        raise ValueError(f"--{next(iter(novelty)).replace('_', '-')} goes with --novelty")
    check_integer(options.seed, "--seed", low=0, high=2**32 - 1)
    table = Table(options)
    columns = table.columns(None, options.label)
    names, column = list(columns.features), columns.sequence
    sequences, step, labels, kept = table.load(columns, [] if column is None else [column])
    y = None if labels is None else sequences.arrange(labels)
    X = sequences.samples
    if y is not None and options.states is None and is_missing(y).all():
        raise InputError("no row has a label: give --states N to learn without one", options.data, column=options.label)
    # A gap in time ends a sequence, as the states within it are unknown.
    whole, lengths = sequences.lengths, sequences.unbroken
    if is_measured:
        _folds(options, whole, column)  # raises before learning
    if options.features is None:
        remedy = "name it with --time, or the others with --features"
        warn_of_times_among_features(X, lengths, names, remedy)
    _warn_of_odd_labels(y)
    say(f"read {options.data}: {_described(X, y, whole, lengths, names, options.window, column)}")

    verbose = not options.quiet and sys.stderr.isatty()
    estimator = DensityRatioHMM(
        options.states if isinstance(options.states, int) else None,
        window=options.window,
        context=_context(options.context),
        durations=options.durations,
        min_duration=options.min_duration,
        n_basis="auto" if options.basis is None else options.basis,
        novelty=options.novelty,
        unlabelled=options.unlabelled,
        **novelty,
        random_state=options.seed,
        n_threads=options.threads,
        verbose=verbose,
        unknown=None,
    )
    if isinstance(options.states, range):
        numbers = select_states(
            X,
            options.states,
            estimator=estimator,
            lengths=lengths,
            random_state=options.seed,
            n_threads=options.threads,
            verbose=verbose,
        )
        say(str(numbers))
        if numbers.n_states == 1 and not options.novelty:
            raise ValueError("one state describes these rows as well as several: there is nothing to learn")
        estimator.set_params(n_states=numbers.n_states)
    begin, cpu_begin = time.perf_counter(), time.process_time()
    estimator.fit(NamedColumns(X, names), y, lengths=lengths)
    seconds = time.process_time() - cpu_begin  # other programs must not change how the accuracy is measured
    say(f"learned in {time.perf_counter() - begin:.1f} s: {_chosen(estimator)}")
    model = replace(columns, sequence=options.sequence).remembered_by(estimator.model_, step)
    io.save(model, options.output)
    try:
        if y is not None and is_measured:
            folds, words = _folds(options, whole, column, seconds)
            owners = None if column is None or len(whole) == 1 else sequences.arrange(table.owners(kept[column]))
            _measure(options, estimator, model, sequences, y, folds, words, owners)
    finally:
        say(f"saved {options.output}: {options.output.stat().st_size:,} bytes, fingerprint {model.fingerprint}")


def _measure(
    options: argparse.Namespace,
    estimator: DensityRatioHMM,
    model: Model,
    sequences: Sequences,
    y: npt.NDArray[Any],
    folds: npt.NDArray[np.int64],
    words: str,
    owners: npt.NDArray[Any] | None,
) -> None:
    """Evaluate models on held-out rows, print the results, and write the page."""
    try:
        found = held_out(estimator, model, sequences, y, folds, words, owners)
    except ValueError as error:
        say(f"held-out accuracy: not measured: {error}")
        return
    say(f"held-out accuracy: {_measured(found, words)}")
    if options.html is not None:
        found.save_html(options.html, title=f"{options.data.name}: {words}")
        say(f"wrote {options.html}")


def _warn_of_odd_labels(y: Any) -> None:
    """Warn of labels that often mean unknown."""
    labels = [] if y is None else y.tolist()
    odd = [label for label in labels if label == -1 or (isinstance(label, str) and is_missing_text(label))]
    if odd:
        warn(
            f"the label {shown(odd[0])} in {labels.count(odd[0])} rows is a class here: leave fields of unknown labels "
            "empty"
        )


def _context(text: str) -> int | Literal["auto"] | None:
    """Parse the longest window of the context: a number, "auto" or "none"."""
    if text in ("auto", "none"):
        return None if text == "none" else "auto"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--context must be a number of rows, auto or none, got {text!r}") from None


def _described(
    X: Array, y: Any, whole: Lengths, lengths: Lengths, names: list[str], window: int, sequence: str | None
) -> str:
    parts = [f"{len(X):,} rows", f"{len(names)} feature{'s' if len(names) > 1 else ''} ({', '.join(names)})"]
    number = "1 sequence" if len(whole) == 1 else f"{len(whole):,} sequences"
    if len(lengths) > len(whole):
        number = f"{len(whole):,} values of {sequence!r}" if len(whole) > 1 else number
        number += f", in {len(lengths):,} pieces by gaps"
    parts.append(number)
    missing = int(np.isnan(X).any(axis=1).sum())
    if missing:
        parts.append(f"{missing:,} rows with a missing value")
    if y is not None:
        known = ~is_missing(y)
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
    """Describe the results of cross-validation and EM."""
    parts, selection = [], getattr(estimator, "selection_", None)
    if hasattr(estimator, "centers_"):
        parts.append(f"{len(estimator.centers_)} kernel centres")
    if selection is None and parts:
        parts.append(f"sigma {estimator.sigma_:.3g}, rho {estimator.rho_:.3g}")
    elif selection is not None:
        best = np.unravel_index(np.argmin(selection.verdict), selection.verdict.shape)
        parts.append(
            f"cross-validation of {selection.loss.size} settings, pulled towards the defaults, chose sigma "
            f"{estimator.sigma_:.3g} and rho {estimator.rho_:.3g} (held-out squared loss {selection.loss[best]:.4f})"
        )
    scales = ", ".join(f"{name} {scale:.3g}" for name, scale in estimator.member_scales_.items())
    parts.append(f"evidence scales {scales}, temper {estimator.transition_temper_:.3g} ({estimator.scale_reason_})")
    if estimator.model_.stages is not None:
        parts.append("stages of the states " + ", ".join(map(str, estimator.model_.stages.sizes)))
    if estimator.unlabelled_reason_:
        parts.append(estimator.unlabelled_reason_)
    if estimator.history_:
        parts.append(f"EM {'converged' if estimator.converged_ else 'stopped'} after {estimator.n_iter_} iterations")
    return "; ".join(parts)


def _measured(found: Evaluation, words: str) -> str:
    """Return the accuracy and tables of held-out rows."""
    _warn_of_poor(found)
    accuracies = ", ".join(f"{found.method_accuracies[method]:.1%} {SPOKEN[method]}" for method in METHODS)
    return f"{accuracies} ({found.n_frames:,} labelled rows, {words}, learned without them)\n\n{found}\n"


def _warn_of_poor(found: Evaluation) -> None:
    """Warn if held-out accuracy is below that of the most frequent class."""
    if found.accuracy < found.baseline:
        warnings.warn(
            f"the held-out accuracy, {share(found.accuracy)}, is below that of always saying the most frequent "
            f"label, {share(found.baseline)}: the model does not generalise to held-out rows",
            UserWarning,
            stacklevel=2,
        )


def _is_cross_validated(options: argparse.Namespace) -> bool:
    return bool(options.cross_validate or options.folds is not None)


def _folds(
    options: argparse.Namespace, lengths: Lengths, sequence: str | None, seconds: float = 0.0
) -> tuple[npt.NDArray[np.int64], str]:
    """Return the part of each row, -1 if never held out, and a description.

    By default, each of a few sequences is held out in turn, as one of them may differ from all others. They share parts
    if fits of this many processor `seconds` would exceed `BUDGET`.
    """
    is_few = options.holdout is None and 1 < len(lengths) <= MOST_ONE_BY_ONE
    if is_few or _is_cross_validated(options):
        n_folds, random = options.folds, np.random.RandomState(options.seed)
        if not _is_cross_validated(options):
            n_folds = max(2, min(len(lengths), int(BUDGET / max(seconds, 1e-3))))
        return sequence_folds(lengths, n_folds, random, f"sequences by {sequence!r}", "--folds")
    holdout = HOLDOUT if options.holdout is None else options.holdout
    chosen, words = _split(lengths, holdout, options.seed, sequence)
    return np.where(chosen, 0, -1), words


def _split(lengths: Lengths, share: float, seed: int, sequence: str | None) -> tuple[npt.NDArray[np.bool_], str]:
    """Choose the held-out rows: whole sequences, or the end of the only one."""
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
