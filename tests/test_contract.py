"""The public interface as it is recorded, and the comparison of answers before and after a change."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import pytest

import contract
import public_names

RECORDED = Path(__file__).parent / "data" / "public_names.txt"


def test_public_names_and_signatures_are_those_recorded():
    recorded, found = RECORDED.read_text().splitlines(), public_names.public_names()
    changes = "\n".join(difflib.unified_diff(recorded, found, "recorded", "found", lineterm="", n=0))
    assert not changes, f"{changes}\nif this is meant: {public_names.__doc__.splitlines()[2]}"


@pytest.fixture(scope="module")
def answers():
    return contract.answers(*next(contract.problems()))


def test_a_model_answers_the_same_again(answers):
    assert not list(contract.differences(answers, contract.answers(*next(contract.problems()))))


@pytest.mark.parametrize(("nudge", "is_noticed"), [(1e-10, True), (1e-14, False)])
def test_a_posterior_that_moves_is_noticed(answers, nudge, is_noticed):
    moved = answers | {"labelled.smooth": answers["labelled.smooth"] + nudge}
    assert bool(list(contract.differences(answers, moved))) == is_noticed


@pytest.mark.parametrize(
    ("line", "is_noticed"),
    [("state s0, 0.25 in 3.1 s", False), ("state s1, 0.25 in 2.0 s", True), ("state s0, 0.26 in 2.0 s", True)],
)
def test_output_that_changes_is_noticed_unless_it_is_a_time(line, is_noticed):
    before, after = ({"drhmm": np.array(text)} for text in ("state s0, 0.25 in 2.0 s", line))
    assert bool(list(contract.differences(before, after))) == is_noticed
