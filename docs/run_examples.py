"""Runs the Python blocks of a guide from top to bottom, and puts what they print and draw below them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path

import matplotlib

BLOCK = re.compile(r"^```python\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)

#: Guides whose blocks need nothing but drhmm with its extras, and the data of the documentation.
GUIDES = ("after_fit", "alarms", "choosing", "getting_started")


def with_outputs(name, text, pictures):
    """The text of a page in which each block of Python is followed by its output; pictures go to a folder."""
    from matplotlib import pyplot

    names, before, n_pictures = {}, Path.cwd(), 0
    with tempfile.TemporaryDirectory() as folder:
        for table in (pictures.parent / "data").glob("*.csv"):
            shutil.copy(table, folder)
        os.chdir(folder)
        try:

            def followed(found):
                nonlocal n_pictures
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(found[1], names)
                lines = printed.getvalue().rstrip()
                parts = [found[0], f"```text\n{lines}\n```\n" if lines else ""]
                for number in pyplot.get_fignums():
                    n_pictures += 1
                    pyplot.figure(number).savefig(pictures / f"{name}_{n_pictures}.png")
                    parts.append(f"![The picture that this example draws]({pictures.name}/{name}_{n_pictures}.png)\n")
                pyplot.close("all")
                return "\n".join(part for part in parts if part)

            return BLOCK.sub(followed, text)
        finally:
            os.chdir(before)


def on_source_read(app, name, source):
    """Replace the source of a guide by the one with outputs."""
    if name in GUIDES:
        matplotlib.use("Agg")
        pictures = Path(app.srcdir) / "outputs"
        pictures.mkdir(exist_ok=True)
        source[0] = with_outputs(name, source[0], pictures)


def setup(app):
    """Connect to the reading of pages."""
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": False}
