"""``drhmm stream``: one observation per line in, one JSON line per observation out."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from types import FrameType

from .. import io
from .._validation import check_integer
from ..exceptions import ImpossibleDataError
from .errors import InputError
from .followed import FollowedSequences
from .lines import LineReader, Observation
from .tables import check_folder


class _Stopped(BaseException):
    """The process was asked to end while it waited for a line."""


class _Ending:
    """SIGTERM and Ctrl-C end the process between two observations, never within one."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    def __enter__(self) -> _Ending:
        self._before = {number: signal.signal(number, self._asked) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        if self._waiting:
            raise _Stopped

    def next_line(self) -> bytes:
        """The next line of standard input; empty at its end."""
        if self.signal is not None:
            raise _Stopped
        self._waiting = True
        try:
            return sys.stdin.buffer.readline()
        finally:
            self._waiting = False


def run(options: argparse.Namespace) -> int:
    """Follow standard input to its end, or until the process is asked to end."""
    model = io.load(options.model)
    step = options.step if options.step is not None else model.settings.get("time_step")
    if options.time is not None and step is None:
        raise ValueError("--time needs --step: the model does not know how much time passes in one step")
    check_integer(options.every, "--every", low=1)
    sequences = FollowedSequences(model, options.lag)
    if options.snapshot is not None:
        check_folder(options.snapshot)
        if options.snapshot.exists():
            sequences.load(options.snapshot)
    reader = LineReader(model, options.format, options.sequence, options.time)
    with _Ending() as ending:
        try:
            _follow(options, reader, sequences, ending, step if options.time is not None else None)
            if options.snapshot is None:
                for followed in sequences:
                    for answer in followed.pending():
                        _say(answer)
        except _Stopped:
            pass
        finally:
            if options.snapshot is not None:
                sequences.save(options.snapshot)
    return 130 if ending.signal == signal.SIGINT else 0


def _follow(
    options: argparse.Namespace,
    reader: LineReader,
    sequences: FollowedSequences,
    ending: _Ending,
    step: float | None,
) -> None:
    number, n_frames = 0, 0
    while line := ending.next_line():
        number += 1
        try:
            observation = _observation(reader, line, number)
            if observation is None:
                continue
            answer = _answer(sequences, observation, number, step, options)
        except InputError as error:
            if options.bad_lines == "stop":
                raise
            print(f"drhmm stream: {error}", file=sys.stderr, flush=True)
            continue
        if answer is not None:
            _say(answer)
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
    sequences: FollowedSequences,
    observation: Observation,
    number: int,
    step: float | None,
    options: argparse.Namespace,
) -> dict[str, object] | None:
    try:
        return sequences.get(observation.sequence).step(observation, step)
    except ImpossibleDataError as error:
        raise InputError(str(error), "<stdin>", number) from None
    except ValueError as error:
        raise InputError(str(error), "<stdin>", number, options.time) from None


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
