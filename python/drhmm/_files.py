"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where what a killed process left behind stays until the next writer
    fcntl = None  # type: ignore[assignment]

#: Seconds to wait for another writer of the same file.
PATIENCE = 30.0


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file in one step: whoever reads it, and whenever the process is killed, finds the old or the new content.

    The bytes go to a temporary file in the same folder, then to the disk, and then take the name. Where the system
    allows it, the temporary file has no name until it is complete, so that a process that is killed leaves nothing
    behind; the one exception, between naming and renaming, is cleared by whoever writes or loads the file next.
    """
    target = Path(os.path.realpath(path))
    temporary = _temporary(target)
    unnamed = _unnamed(target.parent)
    named = unnamed is None
    descriptor = _patiently(temporary, lambda: _named(temporary)) if unnamed is None else unnamed
    try:
        _lock(descriptor)
        _write_all(descriptor, data)
        os.fsync(descriptor)
        if not named:
            with contextlib.suppress(FileExistsError):
                _name(descriptor, target)
                return
            _patiently(temporary, lambda: _name(descriptor, temporary))
            named = True
        if os.name == "nt":  # which does not rename open files
            os.close(descriptor)
        os.replace(temporary, target)
        named = False
    finally:
        if named:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        if os.name != "nt":
            os.close(descriptor)
        _sync_folder(target.parent)


def clear_leftover(path: str | os.PathLike[str]) -> None:
    """Remove what a killed writer of a file left beside it, if it did; never what a living one is writing."""
    if fcntl is None:
        return
    temporary = _temporary(Path(os.path.realpath(path)))
    with contextlib.suppress(OSError):
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(temporary)):
                os.unlink(temporary)
        finally:
            os.close(descriptor)


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.tmp")


def _unnamed(folder: Path) -> int | None:
    """An open file without a name, None where the system has no such thing."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # not every file system can; a real error comes again with the named one
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    return None


def _named(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)


def _name(descriptor: int, path: Path) -> int:
    """Give a file without a name one."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # With a folder given, Python's link follows the symbolic link that stands for the open file.
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return descriptor


def _patiently(temporary: Path, take_name: Callable[[], int]) -> int:
    """Take the temporary name as soon as no other writer has it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return take_name()
        except FileExistsError:
            if time.monotonic() > deadline:
                raise
            clear_leftover(temporary.with_name(temporary.name[1:-4]))
            time.sleep(0.001)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while len(rest) > 0:
        rest = rest[os.write(descriptor, rest) :]


def _lock(descriptor: int) -> None:
    """Show that the writer is alive: the lock goes with the process."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
