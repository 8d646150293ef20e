"""What a command says on standard output; that nobody listens is no reason to stop working."""

from __future__ import annotations

import contextlib
import os
import sys


def say(text: str) -> None:
    """Print a line at once."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        close_quietly()


def close_quietly() -> None:
    """Send what is still to be printed nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
