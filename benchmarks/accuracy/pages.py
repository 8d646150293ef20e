"""Put the pages and pictures that an experiment wrote into TABLES.md, so that no table is copied by hand.

``python benchmarks/accuracy/pages.py toy FOLDER`` takes FOLDER/toy.md for the part of TABLES.md between the lines
``<!-- begin toy -->`` and ``<!-- end toy -->``, one level of headings deeper, and the pictures FOLDER/*.png.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

README = Path(__file__).parent / "TABLES.md"


def insert(readme, name, page):
    """The text with a page, without its title, in the place of the part with that name."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if readme.count(begin) != 1 or readme.count(end) != 1 or readme.index(begin) > readme.index(end):
        raise SystemExit(f"the page needs the lines {begin.strip()} and {end} once each, in this order")
    body = re.sub(r"\A# .*\n+", "", page)
    deeper = re.sub(r"^(#+ )", r"#\1", body, flags=re.MULTILINE)
    return readme[: readme.index(begin)] + begin + "\n" + deeper.strip() + "\n\n" + readme[readme.index(end) :]


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="toy or arena")
    parser.add_argument("folder", type=Path, help="the --output folder of the experiment")
    parser.add_argument("--readme", type=Path, default=README, help="the page to change")
    options = parser.parse_args(given)
    page = options.folder / f"{options.name}.md"
    if not page.is_file():
        parser.error(f"{page} is not there: run the experiment with --output {options.folder} first")
    options.readme.write_text(insert(options.readme.read_text(), options.name, page.read_text()))
    pictures = sorted(options.folder.glob("*.png"))
    for picture in pictures:
        shutil.copy(picture, options.readme.parent)
    print(f"written: {options.readme} and {len(pictures)} pictures beside it")


if __name__ == "__main__":
    main()
