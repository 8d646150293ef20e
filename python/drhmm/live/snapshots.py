"""Snapshots: a header, arrays and a checksum, bound to a model by fingerprint."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..exceptions import SnapshotError

if TYPE_CHECKING:
    from ..model import Model

VERSION = 7
LONGEST_LAG = 100_000

# magic, version, kind, whether there is an alarm, rows, lag, classes, states of the chain, numbers of a frame,
# samples behind it, columns, samples of context, fingerprint of the model
_HEADER = struct.Struct("<8sHBBQIIIIIII16s")
_MAGIC = b"drhmmSNP"
_CHECKSUM_SIZE = 16
_KINDS = ("stream", "batch")
_NAMES = {"stream": "one stream", "batch": "a batch of streams"}

#: Number of reals of an alarm, of integers of its state per row, and of its frames of highest evidence.
_ALARM_SIZE, _WATCH_COUNTS, _WITNESSES = 6, 14, 4

#: The arrays of the native core by name; see cpp/include/drhmm/stream/snapshot.hpp. Without an alarm, those from
#: ``alarm`` on are empty.
State = dict[str, npt.NDArray[Any]]


def _layout(n_rows: int, lag: int, watched: int, sizes: tuple[int, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of each array of a state, in the order of the bytes."""
    n_columns, n_states, frame_size, reach, n_features, history = sizes
    kept = (n_rows, lag + 1)
    return {
        "live": ("?", (n_rows,)),
        "n_frames": ("<i8", (n_rows,)),
        "wide": ("?", (n_rows,)),
        "n_past": ("<i8", (n_rows,)),
        "past": ("<f8", (n_rows, (reach - 1) * n_features)),
        "mantissa": ("<f8", (*kept, n_states)),
        "exponent": ("<i8", (*kept, n_states)),
        "evidence": ("<f8", (*kept, n_columns)),
        "dt": ("<i8", kept),
        "n_context": ("<i8", (n_rows,)),
        "context": ("<f8", (n_rows, history * n_features)),
        "last": ("<f8", (n_rows, n_features if history > 0 else 0)),
        "alarm": ("<f8", (watched * _ALARM_SIZE,)),
        "sums": ("<f8", (watched * n_rows,)),
        "watch_counts": ("<i8", (watched * n_rows, _WATCH_COUNTS)),
        "witness_places": ("<i8", (watched * n_rows, _WITNESSES)),
        "witness_scores": ("<f8", (watched * n_rows, _WITNESSES)),
        "witnesses": ("<f8", (watched * n_rows, _WITNESSES * frame_size)),
    }


def _sizes(model: Model) -> tuple[int, ...]:
    """Sizes of the chain, numbers of a frame, its reach, columns, and history."""
    live, framing = model.tuned("filter"), model.evidence.framing
    chain = live.chain
    return chain.n_columns, chain.n_states, framing.size, framing.reach, model.n_features, live.evidence.history


def pack(kind: str, model: Model, lag: int, state: State) -> bytes:
    """Serialise a state."""
    n_rows = len(state["live"])
    sizes, watched = _sizes(model), int(len(state["alarm"]) > 0)
    header = _HEADER.pack(
        _MAGIC, VERSION, _KINDS.index(kind), watched, n_rows, lag, *sizes, bytes.fromhex(model.fingerprint)
    )
    parts = [
        np.ascontiguousarray(state[name], dtype=dtype).tobytes()
        for name, (dtype, _) in _layout(n_rows, lag, watched, sizes).items()
    ]
    content = header + b"".join(parts)
    return content + hashlib.sha256(content).digest()[:_CHECKSUM_SIZE]


def unpack(kind: str, model: Model, data: bytes) -> tuple[int, State]:
    """Return the lag and the state in the bytes of `pack` for the same model."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a snapshot is bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEADER.size + _CHECKSUM_SIZE or not data.startswith(_MAGIC):
        raise SnapshotError("not a snapshot of drhmm")
    _, version, kind_code, watched, n_rows, lag, *sizes, fingerprint = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the snapshot has the format {version}, this version of drhmm reads {VERSION}")
    if hashlib.sha256(data[:-_CHECKSUM_SIZE]).digest()[:_CHECKSUM_SIZE] != data[-_CHECKSUM_SIZE:]:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit")
    if kind_code >= len(_KINDS) or _KINDS[kind_code] != kind:
        found = _NAMES[_KINDS[kind_code]] if kind_code < len(_KINDS) else "something else"
        raise SnapshotError(f"the snapshot is of {found}, not of {_NAMES[kind]}")
    if fingerprint.hex() != model.fingerprint:
        raise SnapshotError(
            f"the snapshot belongs to another model: fingerprint {fingerprint.hex()}, this one has {model.fingerprint}"
        )
    if tuple(sizes) != _sizes(model) or lag > LONGEST_LAG or watched > 1:
        raise SnapshotError("the snapshot does not fit the model")
    return lag, _read(data, n_rows, lag, watched, _sizes(model))


def _read(data: bytes, n_rows: int, lag: int, watched: int, sizes: tuple[int, ...]) -> State:
    layout = _layout(n_rows, lag, watched, sizes)
    in_bytes = {name: np.dtype(dtype).itemsize * math.prod(shape) for name, (dtype, shape) in layout.items()}
    if _HEADER.size + sum(in_bytes.values()) + _CHECKSUM_SIZE != len(data):
        raise SnapshotError("the snapshot is damaged: its size does not fit its header")
    offset = _HEADER.size
    state = {}
    for name, (dtype, shape) in layout.items():
        values = np.frombuffer(data, dtype=np.uint8, count=in_bytes[name], offset=offset)
        if dtype == "?" and (values > 1).any():
            raise SnapshotError("the snapshot is damaged: a flag is neither 0 nor 1")
        native = values.copy().view(dtype).reshape(shape)
        state[name] = native.astype(np.dtype(dtype).newbyteorder("="), copy=False)
        offset += in_bytes[name]
    return state
