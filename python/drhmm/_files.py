"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where what a killed process left behind stays
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file in one step: whoever reads it, and whenever the process is killed, finds the old or the new content.

    The bytes go to a temporary file in the same folder, then to the disk, and then take the name. Where the system
    allows it, the temporary file has no name until it is complete; what a process that is killed between naming and
    renaming leaves behind, the next writer of the same file removes.
    """
    target = Path(os.path.realpath(path))
    _remove_leftovers(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    descriptor, is_named = _create(target.parent, temporary)
    try:
        _lock(descriptor)
        _write_all(descriptor, data)
        os.fsync(descriptor)
        if os.name == "nt":  # which does not rename open files
            os.close(descriptor)
            descriptor = -1
        if not is_named:
            _name(descriptor, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    _sync_folder(target.parent)


def _create(folder: Path, temporary: Path) -> tuple[int, bool]:
    """An open file in the folder, and whether it has a name already."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # not every file system can; a real error comes again below
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), False
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666), True


def _name(descriptor: int, path: Path) -> None:
    """Give a file without a name one."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # With a folder given, Python's link follows the symbolic link that stands for the open file.
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while len(rest) > 0:
        rest = rest[os.write(descriptor, rest) :]


def _lock(descriptor: int) -> None:
    """Show that the writer is alive: the lock goes with the process."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # file systems without locks: leftovers there are never touched either
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of the same target whose writer is gone."""
    if fcntl is None:
        return
    prefix, suffix = f".{target.name}.", ".tmp"
    for entry in os.scandir(target.parent):
        if not (entry.name.startswith(prefix) and entry.name.endswith(suffix)):
            continue
        if len(entry.name) != len(prefix) + 16 + len(suffix):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(entry.path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)
            finally:
                os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
