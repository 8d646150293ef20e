"""Results of long experiments: kept as they come, so that a run that was killed goes on where it stopped.

A store is a file with one JSON object per line, ``{"key": {...}, "values": {...}}``. The key holds every setting that
the values depend on, the version of drhmm among them; results of other settings may stand in the same file.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import drhmm
from drhmm.system.progress import progress_bar


def identity(key):
    """One text per key, whatever the order of its entries."""
    return json.dumps(key, sort_keys=True)


class Store:
    """Finished results in a file of JSON lines.

    A line that a killed process left unfinished is cut off when the file is opened; any other line that cannot be
    read is an error that names it.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._values = {}
        if self.path.exists():
            self._read()

    def _read(self):
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.decode().splitlines(), start=1):
            try:
                record = json.loads(line)
                self._values[identity(record["key"])] = record["values"]
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{self.path}, line {number}, is not a result ({error}); remove the line") from None

    @staticmethod
    def _full(key):
        return {"drhmm": drhmm.__version__, **key}

    def __contains__(self, key):
        return identity(self._full(key)) in self._values

    def __getitem__(self, key):
        return self._values[identity(self._full(key))]

    def add(self, key, values):
        """Keep a result: it is in the file when this returns."""
        with self.path.open("a") as file:
            file.write(json.dumps({"key": self._full(key), "values": values}) + "\n")
        self._values[identity(self._full(key))] = values


def complete(store, keys, results, name):
    """Fill a store with what is missing of `keys`, with a progress bar.

    Parameters
    ----------
    store : Store
        Where results are kept.
    keys : list of dict
        All results that are wanted.
    results : callable
        From the missing keys to an iterable of (key, values), in any order.
    name : str
        Name of the progress bar.
    """
    missing = [key for key in keys if key not in store]
    if not missing:
        return
    show, begin, found = progress_bar(name), time.perf_counter(), len(keys) - len(missing)
    show(found, len(keys), "" if found == 0 else f"{found} from {store.path}")
    for done, (key, values) in enumerate(results(missing), start=1):
        store.add(key, values)
        passed = time.perf_counter() - begin
        left = passed / done * (len(missing) - done)
        show(found + done, len(keys), f"{passed / 60:.1f} min, about {left / 60:.1f} min left")


def markdown_table(header, rows):
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
