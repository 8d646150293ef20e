"""Random inputs into every public function, every binding, model files, snapshots and `drhmm stream`.

    python tests/fuzz/fuzz.py --seconds 60          the short run
    python tests/fuzz/fuzz.py --inputs 1000000      a long one
    python tests/fuzz/fuzz.py --target recursions --seed 0 --first 4711 --inputs 1      one input again

An input is right if the answer is (checked against the reference where that is cheap), or if it is refused by a
documented exception with a message. A crash, a hang, a NaN posterior, a changed input or any other exception is a
finding; the exit status is then 1. Every target runs in a process of its own, so that crashes and hangs are seen; input
number i of a seed is always the same.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

#: Modules with `prepare() -> context` and `run(random, context) -> outcome`.
TARGETS = ("recursions", "models", "learning", "bindings", "model_files", "snapshots", "lines")

#: Share of the time, or of the inputs, of each target; the others have 1.
SHARES = {"recursions": 3.0, "bindings": 2.0}

#: Seconds that one input may take, on a busy machine.
PATIENCE = 60.0

MOST_FINDINGS = 10

#: Bytes of address space of each process.
MOST_MEMORY = 3 * 2**30


def work(options) -> int:
    """In the process of one target: inputs first, first + 1, ... until the time or the number is over."""
    faulthandler.enable()
    # Sizes that no memory has must be a MemoryError of this process, and not the end of others.
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("error", np.exceptions.ComplexWarning)
    module = importlib.import_module(options.target)
    with open(options.place, "r+b") as file:
        place = mmap.mmap(file.fileno(), 16)
    context = module.prepare()
    outcomes, findings, index = Counter(), 0, options.first
    begin = time.monotonic()
    while index - options.first < options.inputs and time.monotonic() - begin < options.seconds:
        place[:8] = index.to_bytes(8, "little")
        try:
            outcomes[module.run(np.random.default_rng([options.seed, index]), context)] += 1
        except KeyboardInterrupt:
            raise
        except BaseException:
            print(json.dumps({"index": index, "what": traceback.format_exc()}), flush=True)
            findings += 1
            if findings == MOST_FINDINGS:
                break
        index += 1
    place[:8] = index.to_bytes(8, "little")
    print(json.dumps({"outcomes": outcomes, "next": index}), flush=True)
    return 0


class Target:
    """A target as its parent sees it: its process, how far it is, what it found."""

    def __init__(self, name, options, seconds, inputs):
        self.name, self.options, self.seconds, self.inputs = name, options, seconds, inputs
        self.outcomes, self.findings, self.next = Counter(), [], options.first

    def run(self, show) -> None:
        deadline = time.monotonic() + self.seconds
        while (left := self.inputs - (self.next - self.options.first)) > 0 and time.monotonic() < deadline:
            self._run_process(left, deadline - time.monotonic(), show)
            if len(self.findings) >= MOST_FINDINGS:
                break

    def _run_process(self, inputs, seconds, show) -> None:
        with tempfile.NamedTemporaryFile() as place, tempfile.TemporaryFile("w+") as output:
            place.write(b"\xff" * 16)
            place.flush()
            numbers = {"seed": self.options.seed, "first": self.next, "inputs": inputs, "seconds": seconds}
            arguments = [f"--{name}={value}" for name, value in numbers.items()]
            process = subprocess.Popen(
                [sys.executable, __file__, f"--target={self.name}", f"--place={place.name}", *arguments],
                stdout=output,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
            )
            reached, since = -1, time.monotonic()
            while True:
                try:
                    errors = process.communicate(timeout=0.5)[1]
                    break
                except subprocess.TimeoutExpired:
                    pass
                with open(place.name, "rb") as file:
                    now = int.from_bytes(file.read(8), "little", signed=True)
                if now != reached:
                    reached, since = now, time.monotonic()
                elif time.monotonic() - since > PATIENCE:
                    process.send_signal(signal.SIGABRT)
                    errors = process.communicate()[1]
                    break
                show(f"{self.name}: {max(now - self.options.first, 0):,} inputs, {len(self.findings)} findings")
            output.seek(0)
            is_over = False
            for line in output:
                entry = json.loads(line)
                if "outcomes" in entry:
                    self.outcomes.update(entry["outcomes"])
                    self.next, is_over = entry["next"], True
                else:
                    self.findings.append((entry["index"], entry["what"]))
            if not is_over:
                with open(place.name, "rb") as file:
                    reached = int.from_bytes(file.read(8), "little", signed=True)
                self.outcomes["before a crash"] += max(reached - self.next, 0)
                self.findings.append((reached, f"ended by {process.returncode}:\n{errors.decode(errors='replace')}"))
                self.next = max(reached, self.next) + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="time of all targets together")
    parser.add_argument("--inputs", type=int, help="inputs of all targets together")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs (default: 0)")
    parser.add_argument("--target", choices=TARGETS, help="this target only")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each target")
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.place is not None:
        return work(options)
    if options.seconds is None and options.inputs is None:
        parser.error("--seconds or --inputs is needed")
    names = TARGETS if options.target is None else (options.target,)
    whole = sum(SHARES.get(name, 1.0) for name in names)
    found = 0
    rows = []
    for name in names:
        share = SHARES.get(name, 1.0) / whole
        seconds = 1e9 if options.seconds is None else options.seconds * share
        inputs = 2**62 if options.inputs is None else max(1, round(options.inputs * share))
        target = Target(name, options, seconds, inputs)
        target.run(lambda words: print(f"\r{words:<60}", end="", file=sys.stderr, flush=True))
        print(file=sys.stderr)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in target.outcomes.most_common())
        rows.append(f"| {name} | {sum(target.outcomes.values()):,} | {counts} | {len(target.findings)} |")
        for index, what in target.findings:
            again = f"python {os.path.relpath(__file__)} --target {name} --seed {options.seed}"
            print(f"FINDING, again with: {again} --first {index} --inputs 1\n{what}", file=sys.stderr)
        found += len(target.findings)
    print("| target | inputs | outcomes | findings |\n|---|---|---|---|", *rows, sep="\n")
    return 1 if found else 0


def corpus(name: str) -> list[bytes]:
    """The kept inputs of a target, by name."""
    return [path.read_bytes() for path in sorted((Path(__file__).parent / "corpus" / name).iterdir())]


if __name__ == "__main__":
    sys.exit(main())
