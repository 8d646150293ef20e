"""The live sequences of ``drhmm stream``, and the file that they survive a restart in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._files import clear_leftover, write_atomically
from .._validation import Array
from ..exceptions import SnapshotError
from ..model import Model
from ..streaming import Stream
from .lines import Observation
from .values import moment, steps_between

VERSION = 1
_FORMAT = "drhmm stream"


class Followed:
    """One live sequence: its stream, and the times of the frames that wait for their answer."""

    def __init__(self, stream: Stream, sequence: Any, last: float | None = None, waiting: Any = ()) -> None:
        self.stream = stream
        self.sequence = sequence
        self.last = last
        self.waiting: deque[Any] = deque(waiting)

    def step(self, observation: Observation, step: float | None) -> dict[str, Any] | None:
        """Take one observation; the answer, or None while there is none."""
        stream, dt, now = self.stream, 1, None
        if step is not None:
            now = moment(observation.time)
            dt = steps_between(self.last, now, step)
        posterior = stream.step(observation.sample, dt)
        self.last = now
        self.waiting.append(observation.time)
        if posterior is None:
            return None
        novelty = None if stream.model.novelty is None else stream.lagged_novelty
        return self._answer(stream.n_frames - 1 - stream.lag, posterior, novelty)

    def pending(self) -> Iterator[dict[str, Any]]:
        """Answers to the frames that wait, at the end of the sequence."""
        posteriors = self.stream.pending()
        for k, posterior in enumerate(posteriors):
            back = len(posteriors) - 1 - k
            novelty = None if self.stream.model.novelty is None else float(self.stream._posterior(0, back)[-1])
            yield self._answer(self.stream.n_frames - 1 - back, posterior, novelty)

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
        answer["probabilities"] = {str(label): value for label, value in zip(labels, posterior.tolist(), strict=True)}
        if novelty is not None:
            answer["novelty"] = novelty
        return answer


class FollowedSequences:
    """All live sequences of a process, by the value of the sequence column; None if there is one only."""

    def __init__(self, model: Model, lag: int) -> None:
        self._model = model
        self._lag = lag
        self._sequences: dict[Any, Followed] = {}

    def __iter__(self) -> Iterator[Followed]:
        return iter(self._sequences.values())

    def get(self, sequence: Any) -> Followed:
        """The sequence of an observation, begun if it is new."""
        key = _key(sequence)
        if key not in self._sequences:
            self._sequences[key] = Followed(self._model.stream(self._lag), sequence)
        return self._sequences[key]

    def save(self, path: Path) -> None:
        """Write all of it to a file, complete or not at all."""
        streams = [
            {
                "sequence": followed.sequence,
                "last": followed.last,
                "waiting": list(followed.waiting),
                "snapshot": base64.b64encode(followed.stream.snapshot()).decode(),
            }
            for followed in self
        ]
        content: dict[str, Any] = {"format": _FORMAT, "version": VERSION, "lag": self._lag, "streams": streams}
        content["checksum"] = _checksum(content)
        write_atomically(path, json.dumps(content).encode())

    def load(self, path: Path) -> None:
        """Go on from a file that `save` wrote for the same model and lag."""
        clear_leftover(path)
        try:
            content = json.loads(path.read_bytes())
            checksum = content.pop("checksum")
            if content.get("format") != _FORMAT:
                raise KeyError("format")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise SnapshotError(f"{path}: not a snapshot of drhmm stream") from None
        if content["version"] != VERSION:
            raise SnapshotError(f"{path}: the snapshot has the format {content['version']}, this drhmm reads {VERSION}")
        if checksum != _checksum(content):
            raise SnapshotError(f"{path}: the snapshot is damaged: its checksum does not fit")
        if content["lag"] != self._lag:
            raise SnapshotError(f"{path}: the snapshot was made with --lag {content['lag']}, not {self._lag}")
        for entry in content["streams"]:
            try:
                stream = self._model.resume(base64.b64decode(entry["snapshot"]))
            except SnapshotError as error:
                raise SnapshotError(f"{path}: {error}") from None
            followed = Followed(stream, entry["sequence"], entry["last"], entry["waiting"])
            self._sequences[_key(entry["sequence"])] = followed


def _key(sequence: Any) -> Any:
    """A value of the sequence column that can be looked up."""
    return json.dumps(sequence, sort_keys=True) if isinstance(sequence, list | dict) else sequence


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
