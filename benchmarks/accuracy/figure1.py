"""Fig. 1 of the paper: what one step of a two-state chain does to a ratio, for several probabilities of staying."""

from __future__ import annotations

import argparse
from pathlib import Path

from drhmm import plotting


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stay", type=float, nargs="+", help="values of a, the probability of staying, from 0 to 1")
    parser.add_argument("--output", type=Path, default=Path("figure1.png"), help="picture to write (figure1.png)")
    options = parser.parse_args(given)
    try:
        axes = plotting.ratio_map(**({} if options.stay is None else {"stay": options.stay}))
    except ValueError as error:
        parser.error(f"--stay: {error}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    axes.set_title("One step of the chain A = [[a, 1-a], [1-a, a]]", loc="left", fontsize=10)
    axes.figure.savefig(options.output, dpi=150)
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
