"""``drhmm stream``: answer each observation with a line of JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ..data.checks import LARGEST, check_integer
from ..data.columns import remembered_columns, remembered_hint, remembered_step
from ..data.times import StepSeconds, frames_of
from ..exceptions import ImpossibleDataError
from ..files import model_file as io
from ..files.atomic_write import reserve
from ..live.alarms import Alarm
from ..model import Model
from .csv_file import checked_step
from .errors import InputError, NamesError, one_line
from .live_lines import LineReader, Observation
from .live_sequences import LiveSequences
from .output import check_target

#: Seconds to wait for a reader after a signal.
PATIENCE = 1.0

#: The most bytes of a line, to limit the memory.
LONGEST_LINE = 1 << 24


class _UndeliveredError(Exception):
    """An answer could not be written: the reason and the first such time step."""

    def __init__(self, error: OSError, frame: int, sequence: str | None) -> None:
        reason = "no reader" if isinstance(error, BrokenPipeError | TimeoutError) else error.strerror
        whose = "" if sequence is None else f" of sequence {sequence!r}"
        super().__init__(f"{reason}: time step {frame}{whose} and all after it were not answered")


@dataclass
class _Progress:
    """The current line, the number of saved lines, and whether an answer is due."""

    line: int = 0
    n_saved: int = 0
    is_due: bool = False
    told: set[str] = field(default_factory=set)

    def tell_missing(self, observation: Observation, names: Sequence[str]) -> None:
        """Report each missing column once: no alarm can begin without it."""
        for name, is_missing in zip(names, np.isnan(observation.sample), strict=True):
            if is_missing and name not in self.told:
                self.told.add(name)
                _report(f"<stdin>, line {self.line}: {name!r} is missing: no alarm can begin without it")


class _Lines:
    """Lines of standard input, until its end, SIGTERM, SIGHUP or Ctrl-C.

    A signal does not interrupt an observation. Lines already read are answered first, if there is a reader.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._buffer = b""
        self._is_over = False
        self._skips = False

    def __enter__(self) -> _Lines:
        names = ("SIGTERM", "SIGINT", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        self._handlers = {number: signal.signal(number, self._asked) for number in numbers}
        self._wake, self._alarm = os.pipe()
        os.set_blocking(self._alarm, False)
        self._before = signal.set_wakeup_fd(self._alarm)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._alarm)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.signal = number

    def wait_for_reader(self) -> None:
        """Wait until standard output is ready; OSError if the reader has gone.

        Call this before an observation changes the state, so that the state has only answered time steps.
        """
        while os.name != "nt":
            asked = self.signal is not None
            poll = select.poll()
            poll.register(1, select.POLLOUT)
            if not asked:
                poll.register(self._wake, select.POLLIN)
            events = dict(poll.poll(1000 * PATIENCE if asked else None)).get(1, 0)
            if events & (select.POLLERR | select.POLLHUP):
                raise BrokenPipeError
            if events:
                return
            if asked:
                raise TimeoutError

    def write(self, data: bytes) -> None:
        """Write to standard output when `wait_for_reader` has found it ready."""
        rest = memoryview(data)
        while len(rest) > 0:
            rest = rest[os.write(1, rest[: select.PIPE_BUF if os.name != "nt" else len(rest)]) :]
            if len(rest) > 0:
                self.wait_for_reader()

    def next(self, number: int) -> bytes | None:
        """Return the line with this number, skipping overlong ones; None at the end."""
        while b"\n" not in self._buffer:
            if self._is_over or self.signal is not None or not self._wait():
                rest, self._buffer = self._buffer, b""
                return rest if rest and self.signal is None else None
            part = os.read(0, 1 << 16)
            self._is_over = not part
            if self._skips:
                _, end, part = part.partition(b"\n")
                self._skips = not end
            self._buffer += part
            if len(self._buffer) > LONGEST_LINE and not -1 < self._buffer.find(b"\n") <= LONGEST_LINE:
                _, end, self._buffer = self._buffer.partition(b"\n")
                self._skips = not end
                raise InputError(f"a line of more than {LONGEST_LINE} bytes", "<stdin>", number)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line + b"\n"

    def _wait(self) -> bool:
        """Wait for input; False if a signal came first."""
        if os.name == "nt":
            return True
        ready, _, _ = select.select([0, self._wake], [], [])
        return self._wake not in ready


def stream(options: argparse.Namespace) -> int:
    """Follow standard input to its end or until a signal.

    Only one process at a time may use a state file.
    """
    if options.snapshot is None:
        return _run(options)
    check_target(options.snapshot, options.model)
    try:
        lock = reserve(options.snapshot)
    except BlockingIOError:
        message = "another drhmm stream keeps its state in this file: use another file, or end the other process first"
        raise InputError(message, options.snapshot) from None
    with lock:
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    model = io.load(options.model)
    check_integer(options.every, "--every", low=1)
    check_integer(options.lag, "--lag", low=0)
    model.stream(options.lag)
    columns, hints = live_columns(options, model)
    timed = columns["time"] is not None
    if options.step is not None and not timed and options.false_alarms is None:
        raise ValueError("--step goes with --time or --false-alarms")
    step = step_of(options.step, model)
    if timed and step is None:
        raise ValueError("--time needs --step: the model does not know how much time passes in one step")
    has_unit = options.step is not None or isinstance(step, StepSeconds)
    alarm = _alarm(model, options.false_alarms, options.hold_off, step if has_unit else None)
    if options.events_only and alarm is None:
        raise ValueError("--events-only goes with --false-alarms, or a model that has an alarm")
    repeated = {
        "lag": options.lag,
        **columns,
        "step": step if timed else None,
        "alarm": None if alarm is None else list(alarm.numbers()),
    }
    sequences = LiveSequences(model, repeated, alarm)
    if options.header and options.columns is not None:
        raise ValueError("--header and --columns do not go together")
    reader = LineReader(
        model,
        kind=options.format,
        sequence=columns["sequence"],
        time=columns["time"],
        hints=hints,
        columns=options.columns,
        header=options.header,
    )
    if options.snapshot is not None and options.snapshot.exists():
        sequences.load(options.snapshot)
    progress, undelivered = _Progress(), None
    with _Lines() as lines:
        try:
            _follow(options, lines, reader, sequences, progress, columns["time"])
            if options.snapshot is None and not options.events_only:
                for followed in sequences:
                    for answer in followed.pending():
                        _wait_for_reader(lines, answer["frame"], followed.sequence)
                        _say(lines, answer)
        except _UndeliveredError as error:
            undelivered = error
        finally:
            # If the last answer was lost, keep the old file, so that a restart repeats it.
            if options.snapshot is not None and not progress.is_due:
                sequences.save(options.snapshot)
                progress.n_saved = progress.line - 1
    if undelivered is not None:
        again = f"; with {options.snapshot}, go on from line {progress.n_saved + 1}" if options.snapshot else ""
        _report(f"<stdin>, line {progress.line}: {undelivered}{again}")
        return 1
    return 130 if lines.signal == signal.SIGINT else 0


def live_columns(options: argparse.Namespace, model: Model) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the sequence and time columns by role, and advice for missing ones."""
    named = {"sequence": options.sequence, "time": options.time}
    known = remembered_columns(model)
    used = {role: None if name is False else name or known.get(role) for role, name in named.items()}
    hints = {used[role]: remembered_hint(role) if named[role] is None else "" for role in named}
    return used, {name: hint for name, hint in hints.items() if name is not None}


def step_of(given: str | None, model: Model) -> float | None:
    """Return the given or stored time of one step."""
    return checked_step(given, "--step") or checked_step(remembered_step(model), "the model's time_step")


def _alarm(model: Model, false_alarms: str | None, hold_off: str | None, step: float | None) -> Alarm | None:
    """Return the alarm of --false-alarms, such as 1/7d or 2/10000, or of the model."""
    if false_alarms is None:
        if hold_off is not None:
            raise ValueError("--hold-off goes with --false-alarms")
        return model.own_alarm
    number, slash, period = false_alarms.partition("/")
    asked = 0.0
    with contextlib.suppress(ValueError):
        asked = float(number)
    if not 0 < asked <= LARGEST or not slash:
        raise ValueError(
            f"--false-alarms must be a positive number in a time, such as 1/7d or 2/10000, got {false_alarms!r}"
        )
    per = frames_of(period, "the time of --false-alarms", step, low=1, remedy="--step")
    pause = None if hold_off is None else frames_of(hold_off, "--hold-off", step, low=0, remedy="--step")
    return model.alarm(asked, per, pause, step=step)


def _follow(
    options: argparse.Namespace,
    lines: _Lines,
    reader: LineReader,
    sequences: LiveSequences,
    progress: _Progress,
    time: str | None,
) -> None:
    n_frames = 0
    while True:
        progress.line += 1
        try:
            line = lines.next(progress.line)
            if line is None:
                return
            observation = _observation(reader, line, progress.line)
            if observation is None:
                continue
            if sequences.watches:
                progress.tell_missing(observation, reader.features)
            _wait_for_reader(lines, sequences.n_answered(observation.sequence), observation.sequence)
            answer = _answer(sequences, observation, progress.line, time)
        except NamesError:
            raise
        except InputError as error:
            if options.bad_lines == "stop":
                raise
            _report(str(error))
            continue
        if answer is not None and not options.events_only:
            progress.is_due = True
            _say(lines, answer)
            progress.is_due = False
        for event in sequences.events(observation):
            progress.is_due = True
            _say(lines, event)
            progress.is_due = False
        n_frames += 1
        if options.snapshot is not None and n_frames % options.every == 0:
            sequences.save(options.snapshot)
            progress.n_saved = progress.line


def _observation(reader: LineReader, line: bytes, number: int) -> Observation | None:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text ({error.reason})", "<stdin>", number) from None
    return reader.read(text, number)


def _answer(sequences: LiveSequences, observation: Observation, number: int, time: str | None) -> dict[str, Any] | None:
    try:
        return sequences.step(observation)
    except ImpossibleDataError as error:
        raise InputError(str(error), "<stdin>", number) from None
    except ValueError as error:
        raise InputError(str(error), "<stdin>", number, time) from None


def _wait_for_reader(lines: _Lines, frame: int, sequence: str | None) -> None:
    try:
        lines.wait_for_reader()
    except OSError as error:
        raise _UndeliveredError(error, frame, sequence) from None


def _say(lines: _Lines, answer: dict[str, Any]) -> None:
    try:
        lines.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
    except OSError as error:
        raise _UndeliveredError(error, answer["frame"], answer.get("sequence")) from None


def _report(text: str) -> None:
    """Report on standard error; keep working if it is closed."""
    with contextlib.suppress(OSError):
        print(f"drhmm stream: {one_line(text)}", file=sys.stderr, flush=True)
