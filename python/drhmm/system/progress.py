"""Progress on one line of standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

#: Called with the steps done, the number of steps, and a comment on the last one.
Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, words: str) -> None:
    """Show nothing."""


def progress_bar(name: str) -> Progress:
    """Return a named progress bar on standard error."""
    shown = 0

    def show(done: int, total: int, words: str) -> None:
        nonlocal shown
        filled = min(20, 20 * done // max(total, 1))
        line = f"{name} [{'#' * filled}{'.' * (20 - filled)}] {done}/{total}  {words}"
        sys.stderr.write("\r" + line.ljust(shown) + ("\n" if done >= total else ""))
        sys.stderr.flush()
        shown = len(line)

    return show
