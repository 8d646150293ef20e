"""Fitted sources in model files by skops; their types must be trusted by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..exceptions import ModelFormatError


def _skops(purpose: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f'{purpose} needs skops: pip install "drhmm[skops]" ({error})') from None
    return skops.io


def dump(sources: Mapping[str, Any]) -> bytes:
    """Serialise sources; a ValueError names the class of an unsupported one."""
    names = ", ".join(type(source).__name__ for source in sources.values())
    skops = _skops(f"a model file with evidence from {names}")
    try:
        content: bytes = skops.dumps(dict(sources))
        skops.loads(content, trusted=skops.get_untrusted_types(data=content))  # refuse unreadable content
    except Exception as error:
        raise ValueError(f"evidence from {names} cannot be saved by skops ({error}); use pickle or joblib") from error
    return content


def load(content: bytes, trusted: Sequence[str] | None) -> dict[str, Any]:
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
