"""Pages, docstrings, comments and messages use plain sentences. codespell looks for typing errors."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
PYTHON = sorted([*ROOT.glob("python/drhmm/**/*.py"), *ROOT.glob("examples/*.py")])
CORE = sorted(path for folder in ("include", "src", "bindings") for path in (ROOT / "cpp" / folder).rglob("*.?pp"))

#: The most words between two of . : ; ? and !
LONGEST = 38

#: Words of pages, and what to say instead. The mathematics speaks of frames, which it defines.
INSTEAD = {
    r"per frame|frames? alone|newest frame|missing frames?|frames? right": "time step, or observation",
    r"utili[sz]e": "use",
    r"in order to": "to",
    r"e\.g\.|i\.e\.": "for example, that is",
    r"leverag(?:e|es|ing)\b": "use",
}

#: Sentences that have appeared here, and what to say instead.
ODD = {
    r"(?<!there )(?<!still )\bis none\b(?! of (?:them|the)\b)": "is invalid, or has no ...",
    r"\bthat there (?:is|are) not\b": "unknown, missing",
    r"^Who\b": "If somebody ...",
    r"^What\b[^?]*$": "a noun: 'The state of ...' instead of 'What ... is'",
    r"\b(?:is|are) what\b": "a noun",
}


def prose(page):
    """The text of a page without code, formulas, tables and addresses, paragraph by paragraph."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$|^:::.*?$", "\n\n", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{\w+\}`[^`]*`|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "x", text).replace("*", "")
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*[-:#] )|\n(?=\d+\. )", text)
    return [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.lstrip().startswith(("|", "#"))]


def python_prose(path):
    """Docstrings, messages and comments of a Python file, paragraph by paragraph."""
    text, kept = path.read_text(), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line = token.string.lstrip("#: ")
            below = kept and kept[-1][0] == token.start[0] - 1
            kept.append((token.start[0], f"{kept.pop()[1]} {line}" if below else line))
    strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    strings = [
        re.sub(r"^ *(?:>>>|\.\.\.) .*$", "", string, flags=re.MULTILINE) for string in strings if string is str(string)
    ]
    return [comment for _, comment in kept] + [
        part for string in strings for part in re.split(r"\n\s*\n| : .*\n", string)
    ]


def core_prose(path):
    """Comments and messages of a C++ file, paragraph by paragraph."""
    text = path.read_text()
    comments = re.findall(r"(?:^[ ]*//.*\n)+|//.*", text, flags=re.MULTILINE)
    return [re.sub(r"^\s*//+ ?", "", comment, flags=re.MULTILINE) for comment in comments] + re.findall(
        r'"(.*?)"', text
    )


def sentences(paragraph):
    """The sentences of a paragraph, each with its last character."""
    return re.split(r"(?<=[.:;?!])\s+", " ".join(paragraph.split()).lstrip("#-: "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page):
    for paragraph in prose(page):
        for sentence in sentences(paragraph):
            assert len(re.findall(r"[A-Za-z][\w'-]*", sentence)) <= LONGEST, sentence


@pytest.mark.parametrize("page", [page for page in PAGES if "mathematics" not in page.name], ids=lambda page: page.name)
def test_pages_use_the_words_of_the_glossary(page):
    for paragraph in prose(page):
        for words, instead in INSTEAD.items():
            assert not re.search(rf"\b(?:{words})", paragraph), f"say {instead}: {paragraph}"


@pytest.mark.parametrize(
    ("paths", "read"), [(PAGES, prose), (PYTHON, python_prose), (CORE, core_prose)], ids=["pages", "Python", "C++"]
)
def test_odd_sentences_do_not_come_back(paths, read):
    found = [
        f"{path.relative_to(ROOT)}: {sentence!r}: say {instead}"
        for path in paths
        for paragraph in read(path)
        for sentence in sentences(paragraph)
        for odd, instead in ODD.items()
        if re.search(odd, sentence)
    ]
    assert not found, "\n".join(found)


def test_docstrings_begin_with_a_short_line():
    found = []
    for path in ROOT.glob("python/drhmm/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                if len(first) > 80 or re.match(r"(?:What|Who|Whose|How)\b", first):
                    found.append(f"{path.relative_to(ROOT)}: {first}")
    assert not found, "\n".join(found)
