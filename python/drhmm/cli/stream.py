"""``drhmm stream``: one observation per line in, one JSON line per observation out."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
from types import FrameType
from typing import Any

from .. import io
from .._validation import check_integer
from ..exceptions import ImpossibleDataError
from .errors import InputError, NamesError, one_line
from .followed import FollowedSequences
from .lines import LineReader, Observation
from .tables import check_target
from .values import checked_step

#: Seconds to wait for a reader after the process was asked to end.
PATIENCE = 1.0

#: Bytes of a line: what never ends must not fill the memory.
LONGEST_LINE = 1 << 24


class _Stopped(BaseException):
    """The process was asked to end while nobody read what it wrote."""


class _Lines:
    """Lines of standard input, until its end or until SIGTERM, SIGHUP or Ctrl-C.

    A signal never interrupts an observation, and lines that have been read are answered before the process ends.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._buffer = b""
        self._is_over = False

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

    def write(self, data: bytes) -> None:
        """Write to standard output; after a signal, without waiting long for somebody to read."""
        rest = memoryview(data)
        while len(rest) > 0:
            if os.name != "nt":
                asked = self.signal is not None
                wake = [] if asked else [self._wake]
                ready = select.select(wake, [1], [], PATIENCE if asked else None)[1]
                if not ready and asked:
                    raise _Stopped
                if not ready:
                    continue
            rest = rest[os.write(1, rest[: select.PIPE_BUF if os.name != "nt" else len(rest)]) :]

    def next(self) -> bytes | None:
        """The next line; None at the end."""
        while b"\n" not in self._buffer:
            if self._is_over or self.signal is not None or not self._wait():
                rest, self._buffer = self._buffer, b""
                return rest if rest and self.signal is None else None
            part = os.read(0, 1 << 16)
            self._is_over = not part
            self._buffer += part
            if len(self._buffer) > LONGEST_LINE:
                raise ValueError(f"<stdin> has a line of more than {LONGEST_LINE} bytes")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line + b"\n"

    def _wait(self) -> bool:
        """Wait for input; False if a signal came first."""
        if os.name == "nt":
            return True
        ready, _, _ = select.select([0, self._wake], [], [])
        return self._wake not in ready


def run(options: argparse.Namespace) -> int:
    """Follow standard input to its end, or until the process is asked to end."""
    model = io.load(options.model)
    check_integer(options.every, "--every", low=1)
    check_integer(options.lag, "--lag", low=0)
    model.stream(options.lag)
    step = checked_step(options.step, "--step")
    if options.time is None and step is not None:
        raise ValueError("--step goes with --time")
    if options.time is not None and step is None:
        step = checked_step(model.settings.get("time_step"), "the model's time_step")
        if step is None:
            raise ValueError("--time needs --step: the model does not know how much time passes in one step")
    repeated = {"lag": options.lag, "sequence": options.sequence, "time": options.time, "step": step}
    sequences = FollowedSequences(model, repeated)
    if options.header and options.columns is not None:
        raise ValueError("--header and --columns do not go together: either a line has the names, or none")
    reader = LineReader(
        model,
        kind=options.format,
        sequence=options.sequence,
        time=options.time,
        columns=options.columns,
        header=options.header,
    )
    if options.snapshot is not None:
        check_target(options.snapshot, options.model)
        if options.snapshot.exists():
            sequences.load(options.snapshot)
    with _Lines() as lines:
        try:
            _follow(options, lines, reader, sequences)
            if options.snapshot is None:
                for followed in sequences:
                    for answer in followed.pending():
                        _say(lines, answer)
        except _Stopped:
            pass
        finally:
            if options.snapshot is not None:
                sequences.save(options.snapshot)
    return 130 if lines.signal == signal.SIGINT else 0


def _follow(options: argparse.Namespace, lines: _Lines, reader: LineReader, sequences: FollowedSequences) -> None:
    number, n_frames = 0, 0
    while (line := lines.next()) is not None:
        number += 1
        try:
            observation = _observation(reader, line, number)
            if observation is None:
                continue
            answer = _answer(sequences, observation, number, options.time)
        except NamesError:
            raise
        except InputError as error:
            if options.bad_lines == "stop":
                raise
            print(f"drhmm stream: {one_line(error)}", file=sys.stderr, flush=True)
            continue
        if answer is not None:
            _say(lines, answer)
        n_frames += 1
        if options.snapshot is not None and n_frames % options.every == 0:
            sequences.save(options.snapshot)


def _observation(reader: LineReader, line: bytes, number: int) -> Observation | None:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text ({error.reason})", "<stdin>", number) from None
    return reader.read(text, number)


def _answer(
    sequences: FollowedSequences, observation: Observation, number: int, time: str | None
) -> dict[str, Any] | None:
    try:
        return sequences.step(observation)
    except ImpossibleDataError as error:
        raise InputError(str(error), "<stdin>", number) from None
    except ValueError as error:
        raise InputError(str(error), "<stdin>", number, time) from None


def _say(lines: _Lines, answer: dict[str, Any]) -> None:
    lines.write(json.dumps(answer).encode() + b"\n")
