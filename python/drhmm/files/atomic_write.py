"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # on Windows, leftovers of killed processes stay
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: str | os.PathLike[str], data: bytes | Callable[[Any], object]) -> None:
    """Write bytes, or what a function writes, atomically.

    Readers find the old content or the new one.

    The bytes go to a locked temporary file in the same folder, which is flushed to the disk and renamed. The next
    writer waits for a running one, and removes the temporary file of a killed one. Devices and pipes are written
    directly.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    write = data if callable(data) else lambda file: file.write(data)
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:
                write(file)
        else:
            _replace(target, write)
    except OSError as error:
        # Name the file instead of the temporary one.
        raise type(error)(error.errno, error.strerror or str(error), str(target)) from None


def _replace(target: Path, write: Callable[[Any], object]) -> None:
    temporary = _temporary(target)
    descriptor = _opened(temporary)
    try:
        with os.fdopen(descriptor, "wb", closefd=fcntl is None) as file:  # Windows cannot rename open files
            with contextlib.suppress(FileNotFoundError):
                # Keep the permissions, but not a setuid bit.
                os.chmod(temporary, target.stat().st_mode & 0o777)
            write(file)
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
    """Open and lock a new file."""
    while True:
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            _clear_leftover(temporary)
            continue
        if fcntl is None:
            return descriptor
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_named(descriptor, temporary):
            return descriptor
        os.close(descriptor)  # another writer removed it as a leftover before the lock


def _clear_leftover(temporary: Path) -> None:
    """Wait for a running writer of the file, and remove the file of a killed one."""
    with (
        contextlib.suppress(FileNotFoundError),
        os.fdopen(os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file,
    ):
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_named(file.fileno(), temporary):
            os.unlink(temporary)


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
