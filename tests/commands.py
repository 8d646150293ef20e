"""Commands in processes that are forked from one which has imported the package: ten times cheaper than new ones."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DRHMM = [sys.executable, "-m", "drhmm"]

SERVER = """
import json, os, sys
import drhmm.cli, drhmm.cli.answers, drhmm.cli.stream, pyarrow.parquet

for request in sys.stdin:
    arguments, files = json.loads(request)
    child = os.fork()
    if child == 0:
        for number, (name, flags) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
            os.dup2(os.open(name, flags), number)
        try:
            status = drhmm.cli.main(arguments)
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _server():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SERVER], text=True, **pipes)
    atexit.register(process.wait)
    atexit.register(process.kill)  # first, as the last one registered
    return process


def piped(arguments, text):
    """Run a command with text, or bytes, on standard input."""
    arguments, content = [*map(str, arguments)], text if isinstance(text, bytes) else text.encode()
    if not hasattr(os, "fork"):
        done = subprocess.run([*DRHMM, *arguments], input=content, capture_output=True)
        return subprocess.CompletedProcess(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        for file in files:
            file.write_bytes(content if file.name == "in" else b"")
        print(json.dumps([arguments, [*map(str, files)]]), file=_server().stdin, flush=True)
        status = int(_server().stdout.readline())
        return subprocess.CompletedProcess(arguments, status, files[1].read_text("utf-8"), files[2].read_text("utf-8"))
