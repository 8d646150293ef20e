"""Many live sequences for a chosen time: gaps, missing frames, snapshots, restarts, threads; nothing may deviate.

    python benchmarks/reliability/soak.py --minutes 30

Every sequence is compared with batch inference when it ends. Progress is shown on standard error, the report goes to
standard output (and to --output). The exit status is 1 if a posterior deviates by more than 1e-12 (by more than 1e-10
for a model without a floor), if nothing was compared, if a possible frame is refused or an impossible one taken, if
memory grows, if a thread does not stop, or if anything raises. Memory is judged in runs of five minutes and more.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import platform
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import numpy as np
from episodes import learn, load, many_streams, one_stream
from measures import (
    LARGEST_DEVIATION,
    LARGEST_GROWTH,
    LARGEST_WITHOUT_FLOOR,
    SECONDS_TO_JUDGE_GROWTH,
    Measures,
    growth,
    resident,
    total,
)

import drhmm
from drhmm.system.progress import progress_bar

#: Sequences after which the other process ends and a new one takes its place.
TASKS_PER_PROCESS = 50

#: Seconds in which a thread must have ended its sequence once the time is over, on a busy machine.
SECONDS_TO_END = 60.0


class Worker(threading.Thread):
    """A thread with streams of its own, until it is told to stop or something goes wrong."""

    def __init__(self, folder, seed, pool, stop):
        super().__init__(daemon=True)  # one that hangs does not keep the report back
        self.folder, self.random, self.pool, self.stop = folder, np.random.default_rng(seed), pool, stop
        self.measures, self.failure = Measures(), None

    def run(self):
        try:
            while not self.stop.is_set():
                if self.random.random() < 0.7:
                    one_stream(self.folder, self.random, self.measures, self.pool)
                else:
                    many_streams(self.folder, self.random, self.measures)
        except BaseException:
            self.failure = f"a thread stopped with an exception:\n{traceback.format_exc()}"
            self.stop.set()

    def end(self, deadline):
        """Wait for the thread; where it still runs at the deadline, that is its failure."""
        self.join(max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            frame = sys._current_frames().get(self.ident)
            self.failure = "a thread did not stop:\n" + "".join(traceback.format_stack(frame))


def soak(folder, seconds, n_threads, seed, interval):
    """Run the threads; what they saw, and the memory of this process at regular times."""
    stop, times, memory = threading.Event(), [], []
    show = progress_bar("soak")
    # Where even this thread hangs, the process ends with a status.
    faulthandler.dump_traceback_later(seconds + 2 * SECONDS_TO_END, exit=True)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=TASKS_PER_PROCESS) as pool:
        seeds = np.random.SeedSequence(seed).spawn(n_threads)
        workers = [Worker(folder, part, pool, stop) for part in seeds]
        begin = time.monotonic()
        for worker in workers:
            worker.start()
        try:
            while (passed := time.monotonic() - begin) < seconds and not stop.wait(min(interval, seconds - passed)):
                times.append(time.monotonic() - begin)
                memory.append(resident())
                sums = total([worker.measures for worker in workers])
                words = f"s, {sums.frames:,} frames, {memory[-1]:.1f} MB, deviation {sums.worst_deviation:.1e}   "
                show(min(int(times[-1]), int(seconds) - 1), int(seconds), words)
        finally:
            stop.set()
            deadline = time.monotonic() + SECONDS_TO_END
            for worker in workers:
                worker.end(deadline)
    faulthandler.cancel_dump_traceback_later()
    sys.stderr.write("\n")
    return [worker.measures for worker in workers], [w.failure for w in workers if w.failure], times, memory


def is_long_enough(times):
    """Whether the growth of memory can be judged."""
    return bool(times) and times[-1] >= SECONDS_TO_JUDGE_GROWTH


def faults(sums, failures, times, memory):
    """Everything that must not be."""
    found = list(failures)
    if sums.compared == 0:
        found.append("no posterior was compared with batch inference")
    if not sums.worst_deviation <= LARGEST_DEVIATION:
        found.append(f"a posterior deviates from batch inference by {sums.worst_deviation:.3g}")
    if not sums.worst_without_floor <= LARGEST_WITHOUT_FLOOR:
        found.append(f"a posterior of the model without a floor deviates by {sums.worst_without_floor:.3g}")
    if is_long_enough(times) and growth(memory) > LARGEST_GROWTH:
        found.append(f"memory grew by {growth(memory):.1f} MB from the second to the last quarter of the time")
    return found


def report(options, sums, times, memory, found):
    """The figures as Markdown."""
    places = sorted({int(k) for k in np.linspace(0, len(memory) - 1, 10)}) if memory else []
    judged = "" if is_long_enough(times) else f", not judged in less than {SECONDS_TO_JUDGE_GROWTH:g} s"
    latencies = [("one stream", sums.latency), ("a batch of streams", sums.batch_latency)]
    return "\n".join(
        [
            "# Soak",
            "",
            f"`python benchmarks/reliability/soak.py --minutes {options.minutes:g} --threads {options.threads} "
            f"--seed {options.seed}`; {platform.machine()}, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, numpy {np.__version__}, drhmm {drhmm.__version__}.",
            "",
            "| | |",
            "|---|---|",
            f"| time | {times[-1] / 60 if times else 0:.1f} minutes on {options.threads} threads |",
            f"| frames | {sums.frames:,} |",
            f"| sequences, each compared with batch inference when it ended | {sums.sequences:,} |",
            f"| posteriors compared | {sums.compared:,} |",
            f"| largest deviation of a posterior from batch inference | {sums.worst_deviation:.2g} |",
            f"| the same in the model without a floor | {sums.worst_without_floor:.2g} |",
            f"| snapshots resumed in this process | {sums.restarts:,} |",
            f"| snapshots that went on in another process and came back | {sums.elsewhere:,} |",
            f"| frames refused, all of them impossible, the stream unchanged | {sums.refused:,} |",
            f"| growth of memory, last quarter against second, medians | {growth(memory):+.2f} MB{judged} |",
            f"| faults | {len(found)} |",
            "",
            "| one step, microseconds, as seen from its thread | median | 99 % | 99.99 % | worst |",
            "|---|---|---|---|---|",
            *[
                f"| {name} | {seen.percentile(50):.1f} | {seen.percentile(99):.0f} | {seen.percentile(99.99):.0f} | "
                f"{seen.longest / 1000:.0f} |"
                for name, seen in latencies
            ],
            "",
            "| after, minutes | resident memory, MB |",
            "|---|---|",
            *[f"| {times[k] / 60:.1f} | {memory[k]:.1f} |" for k in places],
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    parser.add_argument("--threads", type=int, default=4, help="threads with streams of their own (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything that is random (default: 0)")
    parser.add_argument("--output", type=Path, help="a file for the report, besides standard output")
    options = parser.parse_args()
    if not options.minutes > 0 or options.threads < 1:
        parser.error("--minutes must be positive and --threads at least 1")
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        learn(folder)
        measures, failures, times, memory = soak(
            folder, seconds, options.threads, options.seed, interval=max(0.1, min(10.0, seconds / 40))
        )
        load.cache_clear()
    sums = total(measures)
    found = faults(sums, failures, times, memory)
    text = report(options, sums, times, memory, found)
    print(text)
    if options.output is not None:
        options.output.write_text(text)
    for fault in found:
        print(f"FAULT: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
