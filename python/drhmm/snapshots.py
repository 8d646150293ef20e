"""The state of streams as bytes: a header, plain arrays and a checksum, bound to one model by its fingerprint."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .exceptions import SnapshotError

if TYPE_CHECKING:
    from .model import Model

VERSION = 1
LONGEST_LAG = 100_000

# magic, version, kind, rows, lag, states of the chain, window, columns, fingerprint of the model
_HEADER = struct.Struct("<8sHBQIIII16s")
_MAGIC = b"drhmmSNP"
_CHECKSUM_SIZE = 16
_KINDS = ("stream", "batch")
_NAMES = {"stream": "one stream", "batch": "a batch of streams"}

State = tuple[npt.NDArray[Any], ...]


def _arrays(n_rows: int, lag: int, n_states: int, window: int, n_columns: int) -> list[tuple[str, tuple[int, ...]]]:
    """Dtype and shape of each array of the state, in the order of the native core."""
    kept = (n_rows, lag + 1, n_states)
    return [
        ("?", (n_rows,)),  # live
        ("<i8", (n_rows,)),  # n_frames
        ("?", (n_rows,)),  # wide
        ("<i8", (n_rows,)),  # n_past
        ("<f8", (n_rows, (window - 1) * n_columns)),  # past
        ("<f8", kept),  # mantissa
        ("<i8", kept),  # exponent
        ("<f8", kept),  # evidence
        ("<i8", kept[:2]),  # dt
    ]


def _sizes(model: Model) -> tuple[int, int, int]:
    return len(model.chain()[1]), model.window, model.n_features


def pack(kind: str, model: Model, lag: int, state: State) -> bytes:
    """The bytes of a state."""
    n_rows = len(state[0])
    sizes = _sizes(model)
    header = _HEADER.pack(_MAGIC, VERSION, _KINDS.index(kind), n_rows, lag, *sizes, bytes.fromhex(model.fingerprint))
    parts = [
        np.ascontiguousarray(values, dtype=dtype).tobytes()
        for values, (dtype, _) in zip(state, _arrays(n_rows, lag, *sizes), strict=True)
    ]
    content = header + b"".join(parts)
    return content + hashlib.sha256(content).digest()[:_CHECKSUM_SIZE]


def unpack(kind: str, model: Model, data: bytes) -> tuple[int, State]:
    """The lag and the state in bytes that `pack` made for the same model."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a snapshot is bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEADER.size + _CHECKSUM_SIZE or not data.startswith(_MAGIC):
        raise SnapshotError("not a snapshot of drhmm")
    _, version, kind_code, n_rows, lag, *sizes, fingerprint = _HEADER.unpack_from(data)
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
    if tuple(sizes) != _sizes(model) or lag > LONGEST_LAG:
        raise SnapshotError("the snapshot does not fit the model")
    return lag, _read(data, n_rows, lag, tuple(sizes))


def _read(data: bytes, n_rows: int, lag: int, sizes: tuple[int, ...]) -> State:
    layout = _arrays(n_rows, lag, *sizes)
    sizes_in_bytes = [np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in layout]
    if _HEADER.size + sum(sizes_in_bytes) + _CHECKSUM_SIZE != len(data):
        raise SnapshotError("the snapshot is damaged: its size does not fit its header")
    offset = _HEADER.size
    state = []
    for (dtype, shape), size in zip(layout, sizes_in_bytes, strict=True):
        values = np.frombuffer(data, dtype=np.uint8, count=size, offset=offset)
        if dtype == "?" and (values > 1).any():
            raise SnapshotError("the snapshot is damaged: a flag is neither 0 nor 1")
        state.append(values.copy().view(dtype).reshape(shape).astype(np.dtype(dtype).newbyteorder("="), copy=False))
        offset += size
    return tuple(state)
