"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # on Windows, leftovers of killed processes stay
    fcntl = None  # type: ignore[assignment]

#: Seconds to wait for another writer of the same file.
PATIENCE = 30.0


def write_atomically(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write a file atomically: readers find the old content or the new one.

    The bytes go to a locked temporary file in the same folder, which is flushed to the disk and renamed. The next
    writer removes the temporary file of a killed one. Devices and pipes are written directly.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        # Name the file instead of the temporary one.
        raise type(error)(error.errno, error.strerror or str(error), str(target)) from None


def _replace(target: Path, data: bytes | memoryview) -> None:
    temporary = _temporary(target)
    descriptor = _opened(temporary)
    try:
        with os.fdopen(descriptor, "wb", closefd=fcntl is None) as file:  # Windows cannot rename open files
            with contextlib.suppress(FileNotFoundError):
                # Keep the permissions, but not a setuid bit.
                os.chmod(temporary, target.stat().st_mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if fcntl is not None:
            os.close(descriptor)  # releases the lock after the rename
    _sync_folder(target.parent)


def reserve(path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[Any]:
    """Reserve `path` for this process as long as the returned file is open.

    If another process holds it, raise BlockingIOError. The lock file is in the folder for temporary files, because
    killed processes leave it behind.
    """
    if fcntl is None:
        return contextlib.nullcontext()
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    file = open(Path(tempfile.gettempdir()) / f"drhmm-{os.getuid()}-{name}.lock", "ab")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file


def _temporary(target: Path) -> Path:
    """Return the temporary name: one per file with locks, otherwise one per writer."""
    name = target.name if len(os.fsencode(target.name)) < 200 else hashlib.sha256(os.fsencode(target.name)).hexdigest()
    own = "" if fcntl is not None else f".{secrets.token_hex(8)}"
    return target.with_name(f".{name}{own}.drhmm-tmp")


def _opened(temporary: Path) -> int:
    """Open and lock a new file; FileExistsError if another writer holds it too long."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
            if fcntl is None:
                return descriptor
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_named(descriptor, temporary):
                return descriptor
            os.close(descriptor)  # another writer removed it as a leftover before the lock
        if time.monotonic() > deadline:
            raise _in_the_way(temporary, f"another writer has held it for more than {PATIENCE:g} s")
        _clear_leftover(temporary)
        time.sleep(0.001)


def _clear_leftover(temporary: Path) -> None:
    """Remove the file of a killed writer; FileExistsError if it is no plain file."""
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
        pass  # a running writer holds it
    finally:
        os.close(descriptor)


def _in_the_way(temporary: Path, reason: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"{temporary} is in the way ({reason})")


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Flush the folder with the new name to the disk, if possible."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
