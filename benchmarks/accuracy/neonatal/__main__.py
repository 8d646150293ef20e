"""The neonatal experiment: ``python -m benchmarks.accuracy.neonatal`` from the root of the repository."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

from . import figures, report
from .babies import Baby
from .experiment import Runner
from .files import FileFormatError, read, write
from .protocol import ProtocolError, prepare
from .units import Store, settings_hash
from .vital_signs import monitor

#: Seeds that were looked at while settings were chosen; results are reported for others.
DEVELOPMENT_SEEDS = (1, 1000)


def parser() -> argparse.ArgumentParser:
    """Options of the command."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.neonatal",
        description="Detects conditions of babies in intensive care with a factorial HMM, a factorial switching linear "
        "dynamical system and the density ratio HMM; writes RESULTS.md, roc.png and stretch.png. Without --file, "
        "simulated babies are written to and read from a file of the same structure. A run that was stopped goes on "
        "where it was.",
    )
    options.add_argument("--file", type=Path, help="15days.mat of github.com/jqug/neonatal-monitoring")
    options.add_argument("--seed", type=int, default=3, help="seed of the simulated babies and of kernel centres (3)")
    options.add_argument("--hours", type=float, default=24.0, help="hours of each simulated baby (24)")
    options.add_argument("--activity", type=float, default=1.0, help="times the usual number of simulated events (1)")
    options.add_argument("--quick", action="store_true", help="two hours of simulated babies with six times the events")
    options.add_argument(
        "--output", type=Path, default=Path(__file__).parent, help="folder of the results (that of the experiment)"
    )
    options.add_argument("--reading", type=Path, help="Markdown that is added at the end of the results")
    return options


def fingerprint(babies: list[Baby]) -> bytes:
    """Digest of all samples and intervals."""
    digest = hashlib.sha256()
    for baby in babies:
        digest.update(baby.channels.tobytes())
        digest.update(repr((baby.labels, {name: rows.tolist() for name, rows in baby.intervals.items()})).encode())
    return digest.digest()


def load(arguments: argparse.Namespace) -> tuple[list[Baby], str, str]:
    """Babies from the file that was given or from a simulated one, a sentence about them, and their short name."""
    if arguments.file is not None:
        babies = read(arguments.file)
        return babies, f"{len(babies)} babies of {arguments.file.name}.", f"{arguments.file.name}"
    hours, activity = (2.0, 6.0) if arguments.quick else (arguments.hours, arguments.activity)
    simulated = arguments.output / ".cache" / f"simulated-{arguments.seed}-{hours:g}h-{activity:g}.mat"
    simulated.parent.mkdir(parents=True, exist_ok=True)
    write(simulated, monitor(15, round(3600 * hours), activity=activity, random_state=arguments.seed))
    words = f"Simulated: 15 babies of {hours:g} hours from `vital_signs.py`, seed {arguments.seed}"
    words += f", {activity:g} times the usual number of events" if activity != 1 else ""
    chosen = " and ".join(str(seed) for seed in DEVELOPMENT_SEEDS)
    return read(simulated), f"{words}. Settings were chosen on the seeds {chosen}.", "Simulated babies"


def main(given: list[str] | None = None) -> int:
    """Run the experiment; 2 where the file or the options do not allow it."""
    options = parser()
    arguments = options.parse_args(given)
    if not 1 / 3 <= arguments.hours <= 240:
        options.error(f"--hours must be between 1/3 and 240, got {arguments.hours:g}")
    if not 0 < arguments.activity <= 100:
        options.error(f"--activity must be above 0 and at most 100, got {arguments.activity:g}")
    begin = time.perf_counter()
    try:
        babies, words, title = load(arguments)
        patients = prepare(babies)
    except (FileFormatError, ProtocolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    name = settings_hash({"seed": arguments.seed}, fingerprint(babies))
    store = Store(arguments.output / ".cache" / name)
    runner = Runner(patients, store, arguments.seed)
    status = 0
    try:
        runner.run()
    except KeyboardInterrupt:
        print("\nstopped: what follows is what there is; the same command goes on from here", file=sys.stderr)
        status = 130
    units = list(store.all(patients))
    # Units that were there already took their time in an earlier run.
    seconds = max(time.perf_counter() - begin, sum(unit.seconds for unit in units))
    reading = arguments.reading.read_text() if arguments.reading else ""
    command = " ".join(["python -m benchmarks.accuracy.neonatal", *(sys.argv[1:] if given is None else given)])
    description = report.Description(words, command, seconds, reading)
    (arguments.output / "RESULTS.md").write_text(report.markdown(description, units, patients))
    figures.roc(arguments.output / "roc.png", units, title)
    number, second = runner.stretch
    figures.stretch(arguments.output / "stretch.png", units, patients[number - 1], second, title)
    print("\n".join(report.winners(units)))
    return status


if __name__ == "__main__":
    sys.exit(main())
