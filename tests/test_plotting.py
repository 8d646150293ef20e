from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from drhmm import plotting

SIGNAL = np.sin(np.arange(30.0))[:, None]
POSTERIORS = np.tile([0.75, 0.25], (30, 1))


def test_one_panel_per_estimate_under_signal_and_truth():
    axes = plotting.sequence(SIGNAL, {"a": POSTERIORS, "b": POSTERIORS}, states=np.zeros(30, int))
    assert [axis.get_title(loc="left") for axis in axes] == [
        "",
        "",
        "a, 100% of frames right",
        "b, 100% of frames right",
    ]


def test_without_truth_there_is_no_strip_and_no_accuracy():
    axes = plotting.sequence(SIGNAL, {"a": POSTERIORS})
    assert [axis.get_title(loc="left") for axis in axes] == ["", "a"]


def test_names_are_in_the_legend():
    figure = Figure()
    plotting.sequence(SIGNAL, {"a": POSTERIORS}, names=["calm", "storm"], figure=figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["calm", "storm"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SIGNAL, {}), {}, "posteriors is empty"),
        ((SIGNAL, {"a": POSTERIORS[:5]}), {}, r"posteriors\['a'\] must have shape \(30, 2\), got \(5, 2\)"),
        ((SIGNAL, {"a": POSTERIORS}), {"states": [0]}, r"states must have shape \(30,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plotting.sequence(*arguments, **options)
