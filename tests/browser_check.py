"""Look at the page of `drhmm evaluate` in a real browser; run by hand, as Chromium is not everywhere.

    python tests/browser_check.py report.html [--browser chromium] [--shots FOLDER]

At the width of a desktop and of a phone: the page loads without the network, says nothing on the console, every picture is
there and has an alternative text, and nothing but tables and wide pictures scrolls sideways.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = {"desktop": 1300, "phone": 390}

# Writes what it sees into the page, which the browser then prints.
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images].map(i => ({alt: i.alt, width: i.naturalWidth}));
  const page = document.documentElement;
  const note = document.createElement("pre");
  note.id = "found";
  note.textContent = JSON.stringify({images, wanted: page.scrollWidth, given: innerWidth});
  document.body.append(note);
});</script></body>"""


def call(browser, page, width, *more):
    """Output and messages of the browser, without a network."""
    settings = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]
    command = [browser, *settings, *offline, f"--window-size={width},2400", *more, page.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return result.stdout, result.stderr


def problems(browser, page, width):
    """What is wrong at a width, in words."""
    with tempfile.TemporaryDirectory() as folder:
        probed = Path(folder) / "page.html"
        probed.write_text(page.read_text().replace("</body>", PROBE))
        printed, messages = call(browser, probed, width, "--dump-dom")
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)[1].replace("&amp;", "&"))
    wrong = [f"console: {line}" for line in messages.splitlines() if "CONSOLE" in line]
    wrong += [f"a picture without words: {image}" for image in found["images"] if len(image["alt"]) < 20]
    wrong += [f"a picture that is not there: {image}" for image in found["images"] if image["width"] == 0]
    if not found["images"]:
        wrong.append("there are no pictures")
    if found["wanted"] > found["given"]:
        wrong.append(f"the page is {found['wanted']} wide, and the window {found['given']}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--shots", type=Path, help="a folder for pictures of the page")
    options = parser.parse_args()
    page = options.page.resolve()
    failed = False
    for name, width in WIDTHS.items():
        if options.shots is not None:
            call(options.browser, page, width, f"--screenshot={options.shots.resolve() / name}.png")
        wrong = problems(options.browser, page, width)
        print(f"{name}, {width} px: {'; '.join(wrong) if wrong else 'good'}")
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
