"""The command ``drhmm``."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..data.checks import check_integer
from ..version import __version__
from .errors import in_flags
from .output import close_quietly


class _Parser(argparse.ArgumentParser):
    """A parser with one-line error messages."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with defaults, and with examples as written."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.default not in (None, False, True, argparse.SUPPRESS)
        return f"{action.help} (default: %(default)s)" if has_default else action.help


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[_Parser]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _separator(text: str) -> str:
    sign = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sign) != 1 or not sign.isascii():
        raise argparse.ArgumentTypeError(f"one sign such as ';', or tab, got {text!r}")
    return sign


def _numbers(text: str) -> int | range:
    """Parse one number, or several such as 1-8."""
    first, dash, last = text.partition("-")
    try:
        numbers = range(int(first), int(last) + 1) if dash and first else int(text)
    except ValueError:
        numbers = range(0)
    if not isinstance(numbers, int) and not numbers:
        raise argparse.ArgumentTypeError(f"a number, or the first and the last of several such as 1-8, got {text!r}")
    return numbers


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="drhmm",
        description="Density ratio hidden Markov models on the command line.",
        epilog="example: drhmm fit labelled.csv --label state --output model.drhmm\n"
        "         drhmm predict model.drhmm new.csv\n"
        "         tail -n +1 -f live.csv | drhmm stream model.drhmm",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"drhmm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_fit(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_explain(commands)
    _add_suggest(commands)
    _add_stream(commands)
    _add_info(commands)
    _add_rename(commands)
    _add_demo(commands)
    return parser


def _add(commands: Commands, name: str, summary: str, description: str, example: str) -> _Parser:
    command: _Parser = commands.add_parser(
        name, help=summary, description=description, epilog=f"example: {example}", formatter_class=_Help
    )
    return command


def _add_columns(command: _Parser, step: str) -> None:
    """Add the options for the roles of columns."""
    add = command.add_argument
    add(
        "data",
        type=Path,
        help="a table: .csv, .tsv or .jsonl, also with .gz, .parquet, or .npz with X and optionally feature_names, "
        "lengths and columns",
    )
    add("--sequence", metavar="COLUMN", help="the sequence that a row belongs to; one by default")
    add("--time", metavar="COLUMN", help="time of a row, a number or a date; gaps are allowed")
    add("--step", help=step)
    add("--features", type=_names, metavar="A,B,...", help="columns to use; all others by default")
    add("--separator", type=_separator, metavar="SIGN", help="separator of fields; by default a comma, in .tsv a tab")
    add("--decimal", choices=(".", ","), default=".", help="decimal sign of numbers")
    add("--no-header", dest="header", action="store_false", help="columns have the names 1, 2, ...")


def _add_fit(commands: Commands) -> None:
    command = _add(
        commands,
        "fit",
        "learn a model from a table",
        "Learn a model from a table and save it. Sigma, rho, scales and temper are chosen by cross-validation.\n"
        "With labels, up to 10 sequences are held out in turn to measure the accuracy; of one sequence or of more, a\n"
        "part is held out once. The model that is saved has learned from all rows. A gap in time ends a sequence.",
        "drhmm fit walks.csv --label activity --sequence person --window 6 --output walks.drhmm",
    )
    add = command.add_argument
    _add_columns(command, "time between rows when none is missing; the median by default")
    add("--output", type=Path, required=True, metavar="FILE", help="the model file to write")
    add("--label", metavar="COLUMN", help="column of labels; only an empty field is unknown")
    add(
        "--states",
        type=_numbers,
        metavar="N",
        help="number of states without labels; 1-8 compares these and takes the best",
    )
    add("--window", type=int, default=1, help="number of rows per time step of the model")
    add(
        "--context",
        default="auto",
        metavar="N|auto|none",
        help="longest window of statistics of past rows; auto: by the mean stay",
    )
    add("--holdout", type=float, help="hold out this share of the rows once; 0 measures no accuracy")
    add(
        "--cross-validate",
        action="store_true",
        help="measure the accuracy on all sequences, held out in turn: one by one up to 10, in 5 parts otherwise",
    )
    add("--folds", type=int, metavar="N", help="the same in N parts")
    add("--html", type=Path, metavar="FILE", help="write a page with held-out results and pictures")
    group = command.add_argument_group("kernels and evidence")
    group.add_argument("--basis", type=int, help="kernel centres (25 per state, at least 150 and at most 500)")
    group.add_argument(
        "--unlabelled",
        choices=("auto", "use", "ignore"),
        default="auto",
        help="use of unlabelled rows beside labelled ones: only if they help, always, or never",
    )
    group = command.add_argument_group("chain")
    group.add_argument(
        "--durations",
        choices=("auto", "geometric", "negative-binomial"),
        default="auto",
        help="how long states last: learned if that is clearly better, as in a plain chain, or learned",
    )
    group.add_argument("--min-duration", type=int, metavar="N", help="shortest stay in a state, in time steps")
    group = command.add_argument_group("novelty")
    group.add_argument("--novelty", action="store_true", help="add a state for the unknown")
    group.add_argument("--novelty-rate", type=float, help="probability that it begins at a time step; 0.001 by default")
    group.add_argument("--novelty-duration", type=float, help="mean number of time steps that it lasts; 50 by default")
    group = command.add_argument_group("computing")
    group.add_argument("--seed", type=int, default=0, help="seed of everything random")
    group.add_argument("--threads", type=int, help="threads; all cores by default")
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_predict(commands: Commands) -> None:
    command = _add(
        commands,
        "predict",
        "states and probabilities of the rows of a table",
        "Write the most probable state of every row, its probability, and the probability of the unknown, in the\n"
        "order of the rows. The columns of sequence and time stand beside them, and those of --keep.",
        "drhmm predict walks.drhmm new.csv --sequence person --output states.csv",
    )
    add = command.add_argument
    _add_model_and_columns(command)
    add("--output", type=Path, metavar="FILE", help="the table to write; CSV on standard output")
    add("--label", metavar="COLUMN", help="the true state, to print the accuracy")
    add(
        "--method",
        choices=("smooth", "filter", "frame", "viterbi"),
        default="smooth",
        help="given the whole sequence, the past and present, without the chain, or the most probable path",
    )
    add("--lag", type=int, help="use only the next LAG rows")
    add("--probabilities", action="store_true", help="add one column per state")
    add("--keep", type=_names, default=[], metavar="A,B,...", help="columns of the table to write beside the states")


def _add_model_and_columns(command: _Parser) -> None:
    command.add_argument("model", type=Path, help="a model file")
    _add_columns(command, "time between rows when none is missing; that of the training data, or the median")
    _add_without_columns(command)
    command.add_argument("--threads", type=int, help="threads; all cores by default")


def _add_without_columns(command: _Parser) -> None:
    """Add the options for ignoring columns stored in the model."""
    for name in ("sequence", "time"):
        command.add_argument(
            f"--no-{name}",
            dest=name,
            action="store_const",
            const=False,
            help=f"ignore the {name} column stored in the model",
        )


def _add_evaluate(commands: Commands) -> None:
    command = _add(
        commands,
        "evaluate",
        "how good a model is on a labelled table",
        "Print accuracy, macro F1, log loss and calibration, the figures of each class, the confusion, and the number\n"
        "and length of segments, true and predicted, on rows that the model should not have learned from. Columns are\n"
        "those stored in the model, unless they are named.",
        "drhmm evaluate walks.drhmm others.csv --label activity --html report.html",
    )
    add = command.add_argument
    _add_model_and_columns(command)
    add("--label", metavar="COLUMN", help="the true state; an empty field is unknown")
    add(
        "--method",
        choices=("smooth", "filter", "frame"),
        default="smooth",
        help="given the whole sequence, the past and present, or without the chain",
    )
    add("--lag", type=int, help="use only the next LAG rows")
    add("--html", type=Path, metavar="FILE", help="write a page with these results and pictures")
    add("--json", action="store_true", help="print the results as JSON")


def _add_explain(commands: Commands) -> None:
    command = _add(
        commands,
        "explain",
        "why a row of a table has its state",
        "Print how the log odds of the two likeliest states of a row came about: by the past, the future, and each\n"
        "column of the row; or how much each column matters over many rows.",
        "drhmm explain walks.drhmm new.csv --row 49",
    )
    _add_model_and_columns(command)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--row", type=int, metavar="N", help="the row to explain; the first is 0")
    what.add_argument("--columns", action="store_true", help="rank the columns by importance")
    command.add_argument("--frames", type=int, default=200, metavar="N", help="the most rows for --columns")
    command.add_argument("--seed", type=int, default=0, help="seed of these rows")


def _add_suggest(commands: Commands) -> None:
    command = _add(
        commands,
        "suggest",
        "which stretches of a table to label next",
        "Write the stretches whose labels would help the model most, the most helpful first: uncertain ones that are\n"
        "like many others. Times of the first and the last row, or their numbers (the first row is 0).",
        "drhmm suggest walks.drhmm new.csv --stretches 5 --length 20",
    )
    _add_model_and_columns(command)
    add = command.add_argument
    add("--label", metavar="COLUMN", help="labels so far: rows that have one are not suggested")
    add("--stretches", type=int, default=10, metavar="N", help="how many, at most")
    add("--length", type=int, default=10, metavar="N", help="rows of a stretch")
    add("--seed", type=int, default=0, help="seed of the rows that are compared, 3,000 at most")
    add("--output", type=Path, help="write there, not to standard output")


def _add_stream(commands: Commands) -> None:
    command = _add(
        commands,
        "stream",
        "follow observations on standard input",
        "Read one observation per line from standard input, CSV (with a line of names, or columns in the order of the\n"
        "model) or JSON (objects or lists), and write one JSON line for each. An empty field or null is a missing\n"
        'value. With --false-alarms there are further lines with an entry "event", when an alarm begins and ends.\n'
        'Their entries are those of an Episode in Python: "cause" is the level that was exceeded first, "frame" or\n'
        '"sum", "score" the novelty score of the peak so far, and "columns" the unusual ones. Where an alarm begins,\n'
        '"alarm_sum" is the cumulative sum.\n'
        "With --snapshot, the state is read from the file if it is there, and written on exit, on SIGTERM and\n"
        "every N observations. Do not send observations again that were answered before a restart. Status 1 means\n"
        "that an answer could not be delivered. The message names the first observation without an answer, and the\n"
        "saved state does not contain it.",
        "tail -n 0 -f live.csv | drhmm stream walks.drhmm --columns heart,speed --snapshot state.json",
    )
    add = command.add_argument
    add("model", type=Path, help="a model file")
    add("--format", choices=("auto", "csv", "tsv", "json"), default="auto", help="of the lines")
    add("--columns", type=_names, metavar="A,B,...", help="names of CSV columns, if no line has them")
    add("--header", action="store_true", help="the first CSV line has names, though they are numbers")
    add("--lag", type=int, default=0, help="answer LAG observations later, with these known")
    add("--sequence", metavar="COLUMN", help="the sequence that an observation belongs to; as in training by default")
    add("--time", metavar="COLUMN", help="time of an observation; gaps are allowed; as in training by default")
    _add_without_columns(command)
    add("--step", help="time of one step, such as 10s; that of the training data by default")
    add(
        "--false-alarms",
        metavar="N/TIME",
        help="report alarms for the unknown, with N false ones per time such as 7d or 10000 steps",
    )
    add(
        "--hold-off",
        metavar="TIME",
        help="time without evidence that ends an alarm; 10min, or the novelty duration if no step is known",
    )
    add("--events-only", action="store_true", help="write lines where alarms begin and end, and no others")
    add("--snapshot", type=Path, metavar="FILE", help="file that keeps the state across restarts")
    add("--every", type=int, default=1000, metavar="N", help="observations between two snapshots")
    add("--bad-lines", choices=("stop", "skip"), default="stop", help="end with an error, or report and continue")


def _add_info(commands: Commands) -> None:
    command = _add(
        commands,
        "info",
        "what is in a model file",
        "Print the states, the chain, the evidence and the settings of a model file.",
        "drhmm info walks.drhmm",
    )
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("--json", action="store_true", help="as JSON")


def _add_rename(commands: Commands) -> None:
    command = _add(
        commands,
        "rename",
        "give states other labels",
        "Write a model with other labels, such as names for states that drhmm fit --states has found.",
        "drhmm rename stocks.drhmm 0=calm 1=volatile",
    )
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("labels", nargs="+", metavar="OLD=NEW", help="the label of a state, and the new one")
    command.add_argument("--output", type=Path, metavar="FILE", help="the model file to write; the same by default")


def _add_demo(commands: Commands) -> None:
    command = _add(
        commands,
        "demo",
        "train and test on noisy switching sines, and draw the result",
        "Learn three regimes of noisy sines from labelled windows, then follow a signal that switches between them:\n"
        "the example of the paper's second figure.",
        "drhmm demo --noise 0.25 --output sines.png",
    )
    add = command.add_argument
    add("--output", type=Path, default=Path("drhmm-demo.png"), help="the picture to write")
    add("--noise", type=float, default=0.25, help="standard deviation of the noise")
    add("--train", type=int, default=200, help="training windows of each regime")
    add("--frames", type=int, default=1000, help="length of the test sequence")
    add("--seed", type=int, default=0, help="seed of everything random")


def _show_warning(command: str, message: Warning | str, *_: object) -> None:
    """Print a warning on one line; ignore a closed standard error."""
    with contextlib.suppress(OSError):
        print(f"{command}: warning: {in_flags(message)}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; print errors on one line with exit status 2.

    A closed pipe ends the command quietly.
    """
    if sys.stdout is None or sys.stderr is None or sys.stdin is None:
        # If a standard stream is closed, files opened next must not take its place.
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if getattr(sys, name) is None:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
                setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a label outside the code page must not end the work
    command = "drhmm"
    try:
        options = _parser().parse_args(arguments)
        command = f"drhmm {options.command}"
        if getattr(options, "threads", None) is not None:
            check_integer(options.threads, "--threads", low=1)
        module = importlib.import_module(f".{options.command}", __name__)
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = partial(_show_warning, command)
            status: int | None = module.run(options)
        sys.stdout.flush()
        return status or 0
    except SystemExit:
        try:
            sys.stdout.flush()
        except OSError:
            close_quietly()
        raise
    except BrokenPipeError:
        # The reader has gone: not an error, and Python's own flush at exit must not report one.
        close_quietly()
        return 0
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"{command}: {in_flags(error)}", file=sys.stderr)
        if isinstance(error, OSError):
            close_quietly()
        return 2
