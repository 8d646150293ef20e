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

#: The modules of commands, unless they have their own.
MODULES = dict.fromkeys(("predict", "evaluate", "explain", "suggest"), "answers") | {"rename": "info"}


class _Parser(argparse.ArgumentParser):
    """A parser with one-line error messages."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with default values and unwrapped examples."""

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
        raise argparse.ArgumentTypeError(f"one character such as ';', or tab, got {text!r}")
    return sign


def _numbers(text: str) -> int | range:
    """Parse a number, or a range such as 1-8."""
    first, dash, last = text.partition("-")
    try:
        numbers = range(int(first), int(last) + 1) if dash and first else int(text)
    except ValueError:
        numbers = range(0)
    if not isinstance(numbers, int) and not numbers:
        raise argparse.ArgumentTypeError(f"a number, or a range such as 1-8, got {text!r}")
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
    add("--sequence", metavar="COLUMN", help="column of sequences; by default all rows are one sequence")
    add("--time", metavar="COLUMN", help="column of times, numbers or dates; gaps are allowed")
    add("--step", help=step)
    add("--features", type=_names, metavar="A,B,...", help="columns to use; all others by default")
    add("--separator", type=_separator, metavar="SIGN", help="separator of fields; a comma by default, a tab in .tsv")
    add("--decimal", choices=(".", ","), default=".", help="decimal sign of numbers")
    add("--no-header", dest="header", action="store_false", help="columns have the names 1, 2, ...")


def _add_fit(commands: Commands) -> None:
    command = _add(
        commands,
        "fit",
        "learn a model from a table",
        "Learn a model from a table and save it. Sigma, rho, scales and temper are chosen by cross-validation.\n"
        "With labels, the accuracy is measured on held-out rows: 2 to 10 sequences in turn, otherwise one part.\n"
        "The saved model is learned from all rows. A gap in time ends a sequence.",
        "drhmm fit walks.csv --label activity --sequence person --window 6 --output walks.drhmm",
    )
    add = command.add_argument
    _add_columns(command, "time of one step; by default the median time between rows")
    add("--output", type=Path, required=True, metavar="FILE", help="the model file to write")
    add("--label", metavar="COLUMN", help="column of labels; an empty field is unknown")
    add(
        "--states",
        type=_numbers,
        metavar="N",
        help="number of states without labels; 1-8 chooses the best of these",
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
        help="measure the accuracy on all sequences, held out in turn: one by one if at most 10, else in 5 parts",
    )
    add("--folds", type=int, metavar="N", help="cross-validate in N parts")
    add("--html", type=Path, metavar="FILE", help="write a page with held-out results and pictures")
    group = command.add_argument_group("kernels and evidence")
    group.add_argument("--basis", type=int, help="kernel centres (25 per state, at least 150 and at most 500)")
    group.add_argument(
        "--unlabelled",
        choices=("auto", "use", "ignore"),
        default="auto",
        help="learn also from unlabelled rows: if they help, always, or never",
    )
    group = command.add_argument_group("chain")
    group.add_argument(
        "--durations",
        choices=("auto", "geometric", "negative-binomial"),
        default="auto",
        help="durations of states: learned if clearly better, as in a plain chain, or learned",
    )
    group.add_argument("--min-duration", type=int, metavar="N", help="shortest stay in a state, in time steps")
    group = command.add_argument_group("novelty")
    group.add_argument("--novelty", action="store_true", help="add a state for the unknown")
    group.add_argument("--novelty-rate", type=float, help="how often the unknown begins per time step; default 0.001")
    group.add_argument("--novelty-duration", type=float, help="mean time steps of the unknown; 50 by default")
    group = command.add_argument_group("computing")
    group.add_argument("--seed", type=int, default=0, help="random seed")
    group.add_argument("--threads", type=int, help="threads; all cores by default")
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_predict(commands: Commands) -> None:
    command = _add(
        commands,
        "predict",
        "states and probabilities of the rows of a table",
        "Write the most probable state of every row, its probability, and the probability of the unknown, in the\n"
        "order of the rows, with the columns of sequence and time and those of --keep.",
        "drhmm predict walks.drhmm new.csv --sequence person --output states.csv",
    )
    add = command.add_argument
    _add_model_and_columns(command)
    add("--output", type=Path, metavar="FILE", help="the table to write; CSV on standard output by default")
    add("--label", metavar="COLUMN", help="the true state, to print the accuracy")
    add(
        "--method",
        choices=("smooth", "filter", "frame", "viterbi"),
        default="smooth",
        help="infer from the whole sequence, from past and present, or without the chain, or find the best path",
    )
    add("--lag", type=int, help="use only the next LAG rows")
    add("--probabilities", action="store_true", help="add one column per state")
    add("--keep", type=_names, default=[], metavar="A,B,...", help="columns of the table to copy to the output")


def _add_model_and_columns(command: _Parser) -> None:
    command.add_argument("model", type=Path, help="a model file")
    _add_columns(command, "time of one step; by default that of the training data, or the median time between rows")
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
        "evaluate a model on a labelled table",
        "Print accuracy, macro F1, log loss and calibration, the figures of each class, the confusion, and the number\n"
        "and length of segments, true and predicted. The model should not have learned from these rows. By default,\n"
        "columns are those stored in the model.",
        "drhmm evaluate walks.drhmm others.csv --label activity --html report.html",
    )
    add = command.add_argument
    _add_model_and_columns(command)
    add("--label", metavar="COLUMN", help="the true state; an empty field is unknown")
    add(
        "--method",
        choices=("smooth", "filter", "frame"),
        default="smooth",
        help="infer from the whole sequence, from past and present, or without the chain",
    )
    add("--lag", type=int, help="use only the next LAG rows")
    add("--html", type=Path, metavar="FILE", help="write a page with these results and pictures")
    add("--json", action="store_true", help="print the results as JSON")


def _add_explain(commands: Commands) -> None:
    command = _add(
        commands,
        "explain",
        "explain the state of a row of a table",
        "Print the contributions of the past, the future and each column of the row to the log odds of the two\n"
        "likeliest states; or the importance of each column over many rows.",
        "drhmm explain walks.drhmm new.csv --row 49",
    )
    _add_model_and_columns(command)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--row", type=int, metavar="N", help="the row to explain; the first is 0")
    what.add_argument("--columns", action="store_true", help="rank the columns by importance")
    command.add_argument("--frames", type=int, default=200, metavar="N", help="number of rows for --columns, at most")
    command.add_argument("--seed", type=int, default=0, help="seed for drawing these rows")


def _add_suggest(commands: Commands) -> None:
    command = _add(
        commands,
        "suggest",
        "suggest stretches of a table to label next",
        "Write the stretches whose labels would help the model most, the most helpful first: uncertain ones that\n"
        "resemble many others. The output has the numbers (from 0) and times of first and last rows.",
        "drhmm suggest walks.drhmm new.csv --stretches 5 --length 20",
    )
    _add_model_and_columns(command)
    add = command.add_argument
    add(
        "--label",
        metavar="COLUMN",
        help="labels so far, by default in the column of the training data; labelled rows are not suggested",
    )
    add("--stretches", type=int, default=10, metavar="N", help="number of stretches, at most")
    add("--length", type=int, default=10, metavar="N", help="rows of a stretch")
    add("--seed", type=int, default=0, help="seed for drawing at most 3,000 rows to compare")
    add("--output", type=Path, help="the table to write; CSV on standard output by default")


def _add_stream(commands: Commands) -> None:
    command = _add(
        commands,
        "stream",
        "follow observations on standard input",
        "Read one observation per line from standard input, CSV (with a line of names, or columns in the order of the\n"
        "model) or JSON (objects or lists), and write one JSON line for each. An empty field or null is a missing\n"
        'value. With --false-alarms, lines with an entry "event" report the start and end of alarms. Entries are\n'
        'as in an Episode in Python: "cause" is the level exceeded first, "frame" or "sum", "score" the novelty score\n'
        'of the peak so far, and "columns" the unusual ones. "alarm_sum" is the cumulative sum where an alarm begins.\n'
        "With --snapshot, the state is read from the file if it exists, and written on exit, on SIGTERM and every N\n"
        "observations. After a restart, do not repeat answered observations. Status 1 means that an answer could not\n"
        "be delivered: the message names the first unanswered observation, and the saved state does not contain it.",
        "tail -n 0 -f live.csv | drhmm stream walks.drhmm --columns heart,speed --snapshot state.json",
    )
    add = command.add_argument
    add("model", type=Path, help="a model file")
    add("--format", choices=("auto", "csv", "tsv", "json"), default="auto", help="format of the lines")
    add("--columns", type=_names, metavar="A,B,...", help="names of CSV columns, if there is no line of names")
    add("--header", action="store_true", help="the first CSV line has names, even if they are numbers")
    add("--lag", type=int, default=0, help="answer LAG observations later, given these")
    add("--sequence", metavar="COLUMN", help="column with the sequence of an observation; as in training by default")
    add("--time", metavar="COLUMN", help="column of times; gaps are allowed; as in training by default")
    _add_without_columns(command)
    add("--step", help="time of one step, such as 10s; that of the training data by default")
    add(
        "--false-alarms",
        metavar="N/TIME",
        help="report alarms for the unknown, with N false ones in a TIME such as 7d or 10000 (steps)",
    )
    add(
        "--hold-off",
        metavar="TIME",
        help="time without evidence that ends an alarm; 10min, or the novelty duration if the step is unknown",
    )
    add("--events-only", action="store_true", help="write only lines that report alarms")
    add("--snapshot", type=Path, metavar="FILE", help="file for the state between runs")
    add("--every", type=int, default=1000, metavar="N", help="observations between two snapshots")
    add("--bad-lines", choices=("stop", "skip"), default="stop", help="end with an error, or report and continue")


def _add_info(commands: Commands) -> None:
    command = _add(
        commands,
        "info",
        "print the contents of a model file",
        "Print the states, the chain, the evidence and the settings of a model file.",
        "drhmm info walks.drhmm",
    )
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_rename(commands: Commands) -> None:
    command = _add(
        commands,
        "rename",
        "give states other labels",
        "Write a model with other labels, such as names for the states found by drhmm fit --states.",
        "drhmm rename stocks.drhmm 0=calm 1=volatile",
    )
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("labels", nargs="+", metavar="OLD=NEW", help="the old and the new label of a state")
    command.add_argument("--output", type=Path, metavar="FILE", help="the file to write; the same file by default")


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
    add("--seed", type=int, default=0, help="random seed")


def _show_warning(command: str, message: Warning | str, *_: object) -> None:
    """Print a warning on one line; ignore a closed standard error."""
    with contextlib.suppress(OSError):
        print(f"{command}: warning: {in_flags(message)}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; print errors on one line with exit status 2."""
    if sys.stdout is None or sys.stderr is None or sys.stdin is None:
        # A file opened next would take the place of a closed standard stream.
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if getattr(sys, name) is None:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
                setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # some code pages lack characters of labels
    command = "drhmm"
    try:
        options = _parser().parse_args(arguments)
        command = f"drhmm {options.command}"
        if getattr(options, "threads", None) is not None:
            check_integer(options.threads, "--threads", low=1)
        module = importlib.import_module(f".{MODULES.get(options.command, options.command)}", __name__)
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = partial(_show_warning, command)
            status: int | None = getattr(module, options.command)(options)
        sys.stdout.flush()
        return status or 0
    except SystemExit:
        try:
            sys.stdout.flush()
        except OSError:
            close_quietly()
        raise
    except BrokenPipeError:
        # The reader has gone. This is no error; keep Python's flush at exit from reporting one.
        close_quietly()
        return 0
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"{command}: {in_flags(error)}", file=sys.stderr)
        if isinstance(error, OSError):
            close_quietly()
        return 2
