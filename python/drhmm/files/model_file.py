"""Model files: safetensors with a checked JSON description, without code."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evidence.pooled import PooledEvidence
from ..exceptions import ModelFormatError
from ..model import Model
from ..version import __version__
from .atomic_write import write_atomically
from .serialization import DESCRIPTION, description_of, digest, parts_of, tensors_of
from .strict_json import strict_json

#: Version of the file format.
FORMAT_VERSION = 5

_KEY = "drhmm"

#: The array with the bytes of objects, for evidence from sources other than a pool.
OBJECTS = "objects"

_METADATA = ("checksum", "format_version", "library_version", "fingerprint", "feature_names", "settings", "alarm")
_NO_CHECKSUM = "sha256:" + 64 * "0"
_CHECKSUM = re.compile("sha256:[0-9a-f]{64}")
_LARGEST_HEADER = 100_000_000


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; see `Model.save`."""
    write_atomically(path, to_bytes(model))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] | None = None) -> Model:
    """Read a model file of `Model.save`.

    Needs only numpy, safetensors and the native core, but not scikit-learn. The model has the same fingerprint as when
    it was saved. Raises ModelFormatError if the file is damaged, cut short, not a model, or of another format.

    Parameters
    ----------
    path : path
        The file.
    trusted : list of str, optional
        Allowed types of objects in the file, such as ``"drhmm.ratios.from_classifier.FromClassifier"``; skops allows
        many of scikit-learn itself. By default, files with objects are refused; models of the pool have none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(300, random_state=0)
    >>> model = drhmm.DensityRatioHMM(random_state=0).fit(X, y).model_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder, "model.drhmm"))
    ...     served = drhmm.load(pathlib.Path(folder, "model.drhmm"))
    >>> bool((served.predict(X) == model.predict(X)).all())
    True
    """
    try:
        return from_bytes(_read(path), trusted)
    except ModelFormatError as error:
        raise ModelFormatError(f"{os.fspath(path)}: {error}") from None


def to_bytes(model: Model) -> bytes:
    """Serialise a model to bytes."""
    from safetensors.numpy import save as serialize

    # Put the checksum first: `str.replace` below must find it before any other text.
    metadata = {
        "checksum": _NO_CHECKSUM,
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "fingerprint": model.fingerprint,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "settings": dict(model.settings),
        "alarm": None if model.kept_alarm is None else list(model.kept_alarm),
        **description_of(model),
    }
    tensors: dict[str, npt.NDArray[Any]] = {
        name: np.array(values, dtype="<f8", order="C") for name, values in tensors_of(model).items()
    }
    if not isinstance(model.evidence, PooledEvidence):
        tensors[OBJECTS] = np.frombuffer(_dump_sources(model.evidence.sources), dtype=np.uint8)
    content = serialize(tensors, {_KEY: json.dumps(metadata, allow_nan=False)})
    return content.replace(_NO_CHECKSUM.encode(), _checksum(content).encode(), 1)


def _checksum(content: bytes) -> str:
    """Return the checksum of a file whose checksum field is zero."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _read(path: str | os.PathLike[str]) -> bytes:
    """Read a file, unless its first bytes show that it is no model."""
    with open(path, "rb") as file:
        start = file.read(8)
        if not 2 <= int.from_bytes(start, "little") <= _LARGEST_HEADER:
            raise ModelFormatError("not a model file: it has no safetensors header")
        return start + file.read()


def _header(content: bytes) -> dict[str, Any]:
    """Read the JSON header of safetensors."""
    size = int.from_bytes(content[:8], "little")
    if size > len(content) - 8:
        raise ModelFormatError("not a model file, or one that is cut short")
    try:
        header = strict_json(content[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"not a model file: its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise ModelFormatError("not a model file: its header is not an object")
    return header


def from_bytes(content: bytes, trusted: Sequence[str] | None = None) -> Model:
    """Build the model from the content of a file."""
    metadata = _metadata(_header(content))
    checksum = metadata["checksum"]
    if _checksum(content.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)) != checksum:
        raise ModelFormatError("the file is damaged or cut short: its checksum does not fit")
    try:
        tensors, described = _tensors(content), {name: metadata[name] for name in DESCRIPTION}
        sources = None if OBJECTS not in tensors else _load_sources(tensors.pop(OBJECTS).tobytes(), trusted)
        model = Model(**parts_of(tensors, described, sources), **_extras(metadata))
        model = model.with_alarm(model.own_alarm)  # with valid numbers
        found = digest(described, tensors) if sources is None else model.fingerprint
    except ModelFormatError:
        raise
    except KeyError as error:
        raise ModelFormatError(f"the file does not hold a model: there is no entry {error}") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"the file does not hold a model: {error}") from None
    if found != metadata["fingerprint"]:
        raise ModelFormatError("the file is damaged: its fingerprint does not match the model")
    return model


def _metadata(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description, checked to have exactly the entries of this format."""
    outer = header.get("__metadata__")
    if not isinstance(outer, dict) or list(outer) != [_KEY] or not isinstance(outer[_KEY], str):
        raise ModelFormatError("a safetensors file, but not a model of drhmm")
    try:
        metadata = strict_json(outer[_KEY])
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"the description of the model is not JSON ({error})") from None
    if not isinstance(metadata, dict):
        raise ModelFormatError("the description of the model is not an object")
    version = metadata.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        remedy = ": upgrade drhmm" if type(version) is int and version > FORMAT_VERSION else ""
        raise ModelFormatError(
            f"the file has the format {version!r}, written by drhmm {metadata.get('library_version')}; this is drhmm "
            f"{__version__}, which reads format {FORMAT_VERSION}{remedy}"
        )
    expected = {*_METADATA, *DESCRIPTION}
    if set(metadata) != expected:
        odd = sorted(set(metadata) ^ expected)
        raise ModelFormatError(f"the description of the model has missing or unknown entries: {', '.join(odd)}")
    if not (isinstance(metadata["checksum"], str) and _CHECKSUM.fullmatch(metadata["checksum"])):
        raise ModelFormatError("the file has no checksum")
    return metadata


def _tensors(content: bytes) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError, deserialize

    try:
        entries = deserialize(content)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ModelFormatError(f"the arrays of the file cannot be read: {error}") from None
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, entry in entries:
        if name == OBJECTS and entry["dtype"] == "U8":
            tensors[name] = np.frombuffer(entry["data"], dtype=np.uint8)
            continue
        if entry["dtype"] != "F64":
            raise ModelFormatError(f"the array {name!r} has the dtype {entry['dtype']}, not F64")
        tensors[name] = np.frombuffer(entry["data"], dtype="<f8").astype(np.float64).reshape(entry["shape"])
    return tensors


def _extras(metadata: Mapping[str, Any]) -> dict[str, Any]:
    names, settings, alarm = metadata["feature_names"], metadata["settings"], metadata["alarm"]
    if names is not None and [*map(str, names)] != names:
        raise ValueError("feature_names must be a list of names")
    if not isinstance(settings, dict):
        raise ValueError("settings must be an object")
    if alarm is not None and not all(type(number) in (int, float) for number in alarm):
        raise ValueError("alarm must be a list of numbers")
    return {
        "feature_names": None if names is None else tuple(names),
        "settings": settings,
        "kept_alarm": None if alarm is None else tuple(alarm),
    }


def _skops(purpose: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f'{purpose} needs skops: pip install "drhmm[skops]" ({error})') from None
    return skops.io


def _dump_sources(sources: Mapping[str, Any]) -> bytes:
    """Serialise sources; a ValueError names the class of an unsupported one."""
    names = ", ".join(type(source).__name__ for source in sources.values())
    skops = _skops(f"a model file with evidence from {names}")
    try:
        content: bytes = skops.dumps(dict(sources))
        skops.loads(content, trusted=skops.get_untrusted_types(data=content))  # refuse unreadable content
    except Exception as error:
        raise ValueError(f"evidence from {names} cannot be saved by skops ({error}); use pickle or joblib") from error
    return content


def _load_sources(content: bytes, trusted: Sequence[str] | None) -> dict[str, Any]:
    """Load sources; a ModelFormatError names the types that must be trusted first."""
    skops = _skops("a model file with objects")
    try:
        needed = sorted(skops.get_untrusted_types(data=content))
    except Exception as error:
        raise ModelFormatError(f"the objects in the file cannot be read: {error}") from None
    missing = needed if trusted is None else [name for name in needed if name not in trusted]
    if trusted is None or missing:
        raise ModelFormatError(
            f"the file holds objects, which can run code; if you trust its origin and the types "
            f"{', '.join(missing)}, use drhmm.load(path, trusted={needed})"
        )
    try:
        sources = skops.loads(content, trusted=needed)
    except Exception as error:
        raise ModelFormatError(f"the objects in the file cannot be read: {error}") from None
    if not isinstance(sources, dict) or not all(isinstance(name, str) for name in sources):
        raise ModelFormatError("the objects in the file are not named sources of evidence")
    return sources
