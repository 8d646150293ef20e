"""The live sequences of ``drhmm stream`` and their state file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..data.checks import Array, shown
from ..data.times import in_seconds, moment, steps_between
from ..exceptions import SnapshotError
from ..files.atomic_write import write_atomically
from ..files.strict_json import strict_json
from ..live.alarms import Alarm, Episode
from ..live.streams import Stream
from ..model import Model
from .csv_file import identity
from .live_lines import Observation

VERSION = 2
_FORMAT = "drhmm stream"


class LiveSequence:
    """One live sequence: stream, last time, and times of unanswered time steps.

    Times are kept as written in the lines.
    """

    def __init__(self, stream: Stream, sequence: str | None) -> None:
        self.stream = stream
        self.sequence = sequence
        self.last: Any = None
        self.waiting: deque[Any] = deque()
        self.times: dict[str, Any] = {}  # begin, peak and last time step of the current alarm

    def step(self, observation: Observation, step: float | None) -> dict[str, Any] | None:
        """Take one observation; return the answer, or None during the lag."""
        stream, dt = self.stream, 1
        if step is not None:
            now, step_now = in_seconds(moment(observation.time), step)
            before = None if self.last is None else in_seconds(moment(self.last), step)[0]
            dt = steps_between(before, now, step_now)
        posterior = stream.step(observation.sample, dt)
        self.last = observation.time
        self.waiting.append(observation.time)
        if posterior is None:
            return None
        novelty = None if stream.model.novelty is None else stream.lagged_novelty
        return self._answer(stream.n_frames - 1 - stream.lag, posterior, novelty)

    def events(self, observation: Observation) -> Iterator[dict[str, Any]]:
        """Return starts and ends of alarms after the last observation."""
        stream = self.stream
        ended, going_on, frame = stream.ended_alarm, stream.alarm, stream.n_frames - 1
        if ended is not None:
            yield self._event("alarm ends", ended, frame, observation.time)
        if going_on is None:
            self.times = {}
            return
        for name, place in (("begin", going_on.begin), ("peak", going_on.peak), ("last", going_on.end - 1)):
            if place == frame and observation.time is not None:
                self.times[f"{name}_time"] = observation.time
        if going_on.begin == frame:
            yield self._event("alarm begins", going_on, frame, observation.time)

    def _event(self, name: str, episode: Episode, frame: int, time: Any) -> dict[str, Any]:
        event: dict[str, Any] = {} if self.sequence is None else {"sequence": self.sequence}
        event |= {"event": name, "frame": frame}
        if time is not None:
            event["time"] = time
        if name == "alarm ends":
            event |= {"begin": episode.begin, "end": episode.end, "peak": episode.peak} | self.times
        else:
            event |= {"alarm_sum": self.stream.alarm_sum, "healthy": self.stream.alarm_health.is_good}
        columns = {str(column): share for column, share in episode.columns}
        return event | {"cause": episode.cause, "score": episode.score, "columns": columns}

    def pending(self) -> Iterator[dict[str, Any]]:
        """Return the remaining answers at the end of the sequence."""
        posteriors = self.stream.pending()
        novelty = None if self.stream.model.novelty is None else self.stream.pending_novelty()
        first = self.stream.n_frames - len(posteriors)
        for k, posterior in enumerate(posteriors):
            yield self._answer(first + k, posterior, None if novelty is None else float(novelty[k]))

    def _answer(self, frame: int, posterior: Array, novelty: float | None) -> dict[str, Any]:
        model = self.stream.model
        best = int(posterior.argmax())
        labels = model.classes.astype(str) if model.classes.dtype.kind in "mM" else model.classes
        answer: dict[str, Any] = {} if self.sequence is None else {"sequence": self.sequence}
        answer["frame"] = frame
        time = self.waiting.popleft()
        if time is not None:
            answer["time"] = time
        answer["state"] = labels[best].item() if isinstance(labels[best], np.generic) else labels[best]
        answer["probability"] = float(posterior[best])
        answer["probabilities"] = {str(label): p for label, p in zip(labels, posterior.tolist(), strict=True)}
        if novelty is not None:
            answer["novelty"] = novelty
        return answer

    def as_json(self) -> dict[str, Any]:
        """Return the state for a restart."""
        return {
            "sequence": self.sequence,
            "last": self.last,
            "waiting": list(self.waiting),
            "times": self.times,
            "snapshot": base64.b64encode(self.stream.snapshot()).decode(),
        }

    @classmethod
    def from_json(cls, model: Model, entry: Any, options: Mapping[str, Any]) -> LiveSequence:
        """Restore the state under the present options; SnapshotError if invalid."""
        if not isinstance(entry, dict) or set(entry) != {"sequence", "last", "waiting", "times", "snapshot"}:
            raise SnapshotError("the entry of a sequence is invalid")
        sequence, last, waiting, times = (entry[name] for name in ("sequence", "last", "waiting", "times"))
        if not _is_name(sequence, options["sequence"]):
            raise SnapshotError(f"an entry has the sequence {shown(sequence)}, invalid with these options")
        try:
            stream = model.resume(base64.b64decode(entry["snapshot"], validate=True))
        except (TypeError, binascii.Error):
            raise SnapshotError("the state of a sequence is not base64") from None
        if stream.lag != options["lag"]:
            raise SnapshotError(f"the state of a sequence has the lag {stream.lag}, not {options['lag']}")
        n_waiting = min(stream.lag, stream.n_frames)
        if not isinstance(waiting, list) or len(waiting) != n_waiting:
            raise SnapshotError(f"the unanswered time steps are {shown(waiting)}, expected {n_waiting}")
        if not isinstance(times, dict) or not set(times) <= {"begin_time", "peak_time", "last_time"}:
            raise SnapshotError(f"the times of an alarm are {shown(times)}")
        for time in (last, *waiting, *times.values()):
            if not _is_time(time, options["time"]):
                raise SnapshotError(f"an entry has the time {shown(time)}, invalid with these options")
        if waiting and waiting[-1] != last:
            raise SnapshotError(f"the last unanswered time is {shown(waiting[-1])}, not {shown(last)}")
        followed = cls(stream, sequence)
        followed.last, followed.waiting, followed.times = last, deque(waiting), times
        return followed


class LiveSequences:
    """All live sequences by name; None is the name of a single one.

    A restart needs the same ``options``: lag, columns of sequence and time, step, and alarm.
    """

    def __init__(self, model: Model, options: dict[str, Any], alarm: Alarm | None = None) -> None:
        self._model = model
        self._alarm = alarm
        self._options = options
        self._sequences: dict[str | None, LiveSequence] = {}

    @property
    def watches(self) -> bool:
        """Whether an alarm is set."""
        return self._alarm is not None

    def __iter__(self) -> Iterator[LiveSequence]:
        return iter(self._sequences.values())

    def step(self, observation: Observation) -> dict[str, Any] | None:
        """Step the sequence of an observation; start it if it is new."""
        followed = self._sequences.get(observation.sequence)
        if followed is None:
            followed = LiveSequence(self._model.stream(self._options["lag"], alarm=self._alarm), observation.sequence)
        answer = followed.step(observation, self._options["step"])
        self._sequences[observation.sequence] = followed
        return answer

    def events(self, observation: Observation) -> list[dict[str, Any]]:
        """Return the alarm events of an observation after its step."""
        if not self.watches:
            return []
        return list(self._sequences[observation.sequence].events(observation))

    def n_answered(self, sequence: str | None) -> int:
        """Number of answered time steps of a sequence."""
        followed = self._sequences.get(sequence)
        return 0 if followed is None else followed.stream.n_frames - len(followed.waiting)

    def save(self, path: Path) -> None:
        """Write the whole state to a file atomically."""
        streams = [followed.as_json() for followed in self]
        content: dict[str, Any] = {"format": _FORMAT, "version": VERSION, "options": self._options, "streams": streams}
        content["checksum"] = _checksum(content)
        write_atomically(path, json.dumps(content).encode())

    def load(self, path: Path) -> None:
        """Load a file of `save` for the same model and options."""
        try:
            self._sequences = self._read(path.read_bytes())
        except SnapshotError as error:
            raise SnapshotError(f"{path}: {error}") from None

    def _read(self, data: bytes) -> dict[str | None, LiveSequence]:
        try:
            content = strict_json(data)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise SnapshotError("not a snapshot of drhmm stream")
        if content.get("version") != VERSION:
            raise SnapshotError(
                f"the snapshot has the format {shown(content.get('version'))}, this drhmm reads {VERSION}"
            )
        checksum = content.pop("checksum", None)
        if checksum != _checksum(content) or not isinstance(content.get("streams"), list):
            raise SnapshotError("the snapshot is damaged: its checksum does not fit")
        options = content.get("options")
        if options != self._options:
            saved = options if isinstance(options, dict) else {}
            told = [name for name in self._options | saved if saved.get(name, ...) != self._options.get(name, ...)]
            flags = " and ".join({"alarm": "--false-alarms, --hold-off"}.get(name, f"--{name}") for name in told)
            raise SnapshotError(
                f"the snapshot was made with another model, or with other options: {', '.join(told)} differ; use the "
                f"same {flags} as before, or give --snapshot another file"
            )
        if set(content) != {"format", "version", "options", "streams"}:
            raise SnapshotError("the snapshot has missing or unknown entries")
        followed: dict[str | None, LiveSequence] = {}
        for entry in content["streams"]:
            one = LiveSequence.from_json(self._model, entry, self._options)
            if one.sequence in followed:
                raise SnapshotError(f"the sequence {shown(one.sequence)} occurs twice")
            followed[one.sequence] = one
        return followed


def _is_name(sequence: Any, column: str | None) -> bool:
    """Test for a sequence name as in a line; None without a sequence column."""
    if column is None or not isinstance(sequence, str):
        return sequence is None and column is None
    try:
        return identity(sequence) == sequence
    except ValueError:
        return False


def _is_time(time: Any, column: str | None) -> bool:
    """Test for a time as in a line; None without a time column."""
    if column is None:
        return time is None
    try:
        return moment(time) is not None
    except ValueError:
        return False


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
