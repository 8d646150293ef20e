"""Pages keep to short sentences and to the words of the glossary. codespell looks for typing errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

#: The most words between two of . : ; ? and !
LONGEST = 38

#: What a page does not say, and what it says instead. The mathematics speaks of frames, which it defines.
INSTEAD = {
    r"per frame|frames? alone|newest frame|missing frames?|frames? right": "time step, or observation",
    r"utili[sz]e": "use",
    r"in order to": "to",
    r"e\.g\.|i\.e\.": "for example, that is",
    r"leverag(?:e|es|ing)\b": "use",
}


def prose(page):
    """The text of a page without code, formulas, tables and addresses, paragraph by paragraph."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$|^:::.*?$", "\n\n", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{\w+\}`[^`]*`|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "x", text)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*[-*:#] )|\n(?=\d+\. )", text)
    return [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.lstrip().startswith("|")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page):
    for paragraph in prose(page):
        for sentence in re.split(r"(?<=[.:;?!])\s+", paragraph):
            assert len(re.findall(r"[A-Za-z][\w'-]*", sentence)) <= LONGEST, sentence


@pytest.mark.parametrize("page", [page for page in PAGES if "mathematics" not in page.name], ids=lambda page: page.name)
def test_pages_use_the_words_of_the_glossary(page):
    for paragraph in prose(page):
        for words, instead in INSTEAD.items():
            assert not re.search(rf"\b(?:{words})", paragraph), f"say {instead}: {paragraph}"
