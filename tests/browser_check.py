"""Look at the page of `drhmm evaluate` in a real browser; run by hand, as Chromium is not everywhere.

    python tests/browser_check.py report.html [--browser chromium] [--shots FOLDER]

At the width of a desktop and of a phone: the page loads without the network, says nothing on the console, every
picture is there and has an alternative text, and nothing but tables and wide pictures scrolls sideways.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = {"desktop": 1300, "phone": 390}

# A window of Chromium is at least 500 wide: the page stands in a frame of the width of a phone. What the frame shows is
# written into the page around it, which the browser prints.
FRAME = """<!DOCTYPE html><link rel="icon" href="data:,"><body style="margin:0">
<iframe id="page" srcdoc="{page}" style="border:0; width:{width}px; height:{height}px"></iframe>
<script>addEventListener("load", () => {{
  const page = document.getElementById("page").contentDocument;
  const images = [...page.images].map(i => ({{alt: i.alt, width: i.naturalWidth}}));
  const note = document.createElement("pre");
  note.id = "found";
  note.textContent = JSON.stringify({{images, wanted: page.documentElement.scrollWidth}});
  document.body.append(note);
}});</script></body>"""

HEIGHT = 4200


def call(browser, page, width, *more):
    """Output and messages of the browser for the page in a frame, without a network."""
    settings = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder:
        framed = Path(folder) / "framed.html"
        framed.write_text(FRAME.format(page=html.escape(page.read_text()), width=width, height=HEIGHT))
        command = [browser, *settings, *offline, f"--window-size={width},{HEIGHT}", *more, framed.as_uri()]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return result.stdout, result.stderr


def problems(browser, page, width):
    """What is wrong at a width, in words."""
    printed, messages = call(browser, page, width, "--dump-dom")
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)[1]))
    wrong = [f"console: {line}" for line in messages.splitlines() if "CONSOLE" in line]
    wrong += [f"a picture without words: {image}" for image in found["images"] if len(image["alt"]) < 20]
    wrong += [f"a picture that is not there: {image}" for image in found["images"] if image["width"] == 0]
    if not found["images"]:
        wrong.append("there are no pictures")
    if found["wanted"] > width:
        wrong.append(f"the page is {found['wanted']} wide")
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
