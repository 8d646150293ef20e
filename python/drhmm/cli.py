"""The command ``drhmm``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .version import __version__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="drhmm", description="Density ratio hidden Markov models on the command line."
    )
    parser.add_argument("--version", action="version", version=f"drhmm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="train and test on noisy switching sines, and draw the result",
        description="Learn three regimes of noisy sines from labelled windows, then follow a signal that switches "
        "between them: the example of the paper's second figure.",
        epilog="example: drhmm demo --noise 0.25 --output sines.png",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--output", type=Path, default=Path("drhmm-demo.png"), help="the picture to write")
    demo.add_argument("--noise", type=float, default=0.25, help="standard deviation of the noise")
    demo.add_argument("--train", type=int, default=200, help="training windows of each regime")
    demo.add_argument("--frames", type=int, default=1000, help="length of the test sequence")
    demo.add_argument("--seed", type=int, default=0, help="seed of everything random")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; errors are one line on standard error and exit status 2."""
    options = _parser().parse_args(arguments)
    from . import demo

    try:
        demo.run(options.output, options.noise, options.train, options.frames, options.seed)
    except (ValueError, OSError, ImportError) as error:
        print(f"drhmm {options.command}: {error}", file=sys.stderr)
        return 2
    return 0
