"""Every example in the docstrings and in the README runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import drhmm

ROOT = Path(__file__).parent.parent
MODULES = [name for _, name, _ in pkgutil.walk_packages(drhmm.__path__, "drhmm.") if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


README_EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("example", README_EXAMPLES, ids=range(len(README_EXAMPLES)))
def test_readme_examples(example):
    names = {}
    exec(example, names)
    assert len(names) > 1


def test_the_first_readme_example_is_short_and_prints_an_accuracy(capsys):
    lines = [line for line in README_EXAMPLES[0].splitlines() if line]
    assert len(lines) <= 10
    exec(README_EXAMPLES[0], {})
    assert re.fullmatch(r"\d+% of frames right\n", capsys.readouterr().out)
