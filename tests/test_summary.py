"""What a model says of itself: as text, as tables for a notebook, and from the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import drhmm
from drhmm import DensityRatioHMM
from drhmm.cli import main
from drhmm.learning.training_frames import typical_values
from drhmm.ratios import FromClassifier
from problems import blobs

X, Y = blobs(5, n_frames=300)
TABLE = pd.DataFrame(X * [1, 100], columns=["speed", "heart rate"])
LABELS = np.array(["low", "mid<dle", "high"])[Y]
SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "random_state": 0}


class Cells(HTMLParser):
    """The text of the cells of all tables, and whether every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


@pytest.fixture(scope="module")
def model():
    return DensityRatioHMM(**SETTINGS).fit(TABLE, LABELS).model_


def test_states_have_shares_and_mean_stays(model):
    row = next(line for line in model.summary().splitlines() if line.startswith("  high"))
    chain = model if model.tempering is None else model.tempering
    state = model.classes.tolist().index("high")
    assert f"{100 * np.mean(LABELS == 'high'):.1f} %" in row
    assert f"{1 / (1 - chain.transmat[state, state]):.1f}" in row


def test_typical_values_are_quantiles_of_the_samples(model):
    typical = np.array(model.settings["typical_values"])
    for state, label in enumerate(model.classes):
        expected = np.quantile(TABLE[label == LABELS], [0.1, 0.5, 0.9], axis=0).T
        np.testing.assert_allclose(typical[state], expected, rtol=1e-5)
    assert re.search(r"heart rate +-?\d+", model.summary())


def test_a_state_without_samples_has_no_typical_values():
    assert typical_values(np.ones((2, 1)), np.zeros(2, dtype=int), 2)[1] == [[None, None, None]]


def test_what_cross_validation_chose_is_there(model):
    assert "sigma 1" in model.summary()
    assert model.settings["scale_reason"] in model.summary()


def test_a_notebook_shows_the_same_as_tables(model):
    parser = Cells()
    parser.feed(model._repr_html_())
    assert parser.open == []
    for words in ("mid<dle", "heart rate", "share of time steps"):
        assert words in parser.cells


def test_many_states_have_their_likeliest_transitions():
    X, y = np.random.default_rng(0).normal(size=(240, 1)), np.repeat(np.arange(12), 20)
    text = DensityRatioHMM(**SETTINGS).fit(X + y[:, None], y).model_.summary()
    assert "else most often to" in text


def test_a_record_that_is_not_there_or_does_not_fit_is_left_out(model):
    for typical in (None, [[1.0]], "none"):
        other = replace(model, settings=dict(model.settings) | {"typical_values": typical, "columns": "none"})
        assert "typical values" not in other.summary()


def test_evidence_of_any_source_has_a_summary():
    fitted = DensityRatioHMM(ratio=FromClassifier(LogisticRegression()), evidence_scale=1.0).fit(X, Y)
    assert "evidence" in fitted.model_.summary()


def test_info_prints_the_summary(model, tmp_path, capsys):
    model.save(tmp_path / "model.drhmm")
    assert main(["info", str(tmp_path / "model.drhmm")]) == 0
    assert drhmm.load(tmp_path / "model.drhmm").summary() in capsys.readouterr().out


def test_a_stream_shows_its_posterior(model):
    stream = model.stream()
    stream.step(TABLE.iloc[0])
    html = stream._repr_html_()
    assert "1 time step" in html
    assert f"{100 * stream.posterior[0]:.1f} %" in html


def test_a_source_of_the_user_is_told_by_its_name():
    model = DensityRatioHMM(ratio=FromClassifier(LogisticRegression()), random_state=0).fit(X, Y).model_
    (line,) = [line for line in model.summary().splitlines() if line.strip().startswith("evidence ")]
    assert line.endswith(" FromClassifier")
