"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where what a killed process left behind stays
    fcntl = None  # type: ignore[assignment]

#: Seconds to wait for another writer of the same file.
PATIENCE = 30.0


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file in one step: whoever reads it, and whenever the process is killed, finds the old or the new content.

    The bytes go to a temporary file in the same folder, then to the disk, and then take the name. Where the system
    allows it, the temporary file has no name until it is complete, so that a process that is killed leaves nothing
    behind. What is left in the moment between naming and renaming is cleared by the next writer of the file, and by
    no reader. A device or a pipe is written to as it is.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        # The name of the file, and not of the temporary one.
        raise type(error)(error.errno, error.strerror or str(error), str(target)) from None


def _replace(target: Path, data: bytes) -> None:
    temporary = _temporary(target)
    unnamed = _unnamed(target.parent)
    named = unnamed is None
    descriptor = _patiently(temporary, lambda: _named(temporary)) if unnamed is None else unnamed
    try:
        if not named:
            _lock(descriptor)
        with contextlib.suppress(FileNotFoundError):
            # Who may read and write, and nothing else: a setuid bit was given to the old content.
            os.chmod(descriptor if os.name != "nt" else temporary, target.stat().st_mode & 0o777)
        _write_all(descriptor, data)
        os.fsync(descriptor)
        if not named:
            try:
                _name(descriptor, target)
                return
            except FileExistsError:
                _patiently(temporary, lambda: _name(descriptor, temporary))
                named = True
        if os.name == "nt":  # which does not rename open files
            os.close(descriptor)
            descriptor = -1
        os.replace(temporary, target)
        named = False
    finally:
        if descriptor >= 0 and os.name == "nt":
            os.close(descriptor)
        if named:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        if descriptor >= 0 and os.name != "nt":
            os.close(descriptor)
        _sync_folder(target.parent)


def _clear_leftover(temporary: Path) -> None:
    """Remove what a killed writer left under the temporary name; what a living one is writing stays.

    A FileExistsError names anything else: it was not made here, and is not removed.
    """
    try:
        if not stat.S_ISREG(os.lstat(temporary).st_mode):
            raise _in_the_way(temporary, "not a plain file")
        descriptor = os.open(temporary, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return  # another writer was quicker
    except PermissionError as error:
        raise _in_the_way(temporary, str(error.strerror)) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_named(descriptor, temporary):
            os.unlink(temporary)
    except BlockingIOError:
        pass  # a living writer has it
    finally:
        os.close(descriptor)


def _in_the_way(temporary: Path, reason: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"{temporary} is in the way ({reason})")


def _temporary(target: Path) -> Path:
    """One name for all writers of a file; without locks to tell the living from the dead, one for each."""
    name = target.name if len(os.fsencode(target.name)) < 200 else hashlib.sha256(os.fsencode(target.name)).hexdigest()
    own = "" if fcntl is not None else f".{secrets.token_hex(8)}"
    return target.with_name(f".{name}{own}.drhmm-tmp")


def _unnamed(folder: Path) -> int | None:
    """An open file without a name, None where the system has no such thing."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # not every file system can; a real error comes again with the named one
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    return None


def _named(path: Path) -> int:
    """A new file, locked; FileExistsError if it is not this writer's."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    _lock(descriptor)
    if fcntl is not None and not _is_named(descriptor, path):
        # Between creating and locking, another writer took it for a leftover.
        os.close(descriptor)
        raise FileExistsError(path)
    return descriptor


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


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
            if fcntl is None:
                raise
            if time.monotonic() > deadline:
                raise _in_the_way(temporary, f"another writer has it for more than {PATIENCE:g} s") from None
        _clear_leftover(temporary)
        time.sleep(0.001)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while len(rest) > 0:
        rest = rest[os.write(descriptor, rest) :]


def _lock(descriptor: int) -> None:
    """Show that the writer is alive: the lock goes with the process."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too, where a folder can be."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
