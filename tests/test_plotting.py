from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from drhmm import DensityRatioHMM, plotting
from drhmm.chain.durations import Durations, stages_of
from problems import blobs

SIGNAL = np.sin(np.arange(30.0))[:, None]
POSTERIORS = np.tile([0.75, 0.25], (30, 1))


def test_one_panel_per_estimate_under_signal_and_truth():
    axes = plotting.sequence(SIGNAL, {"a": POSTERIORS, "b": POSTERIORS}, states=np.zeros(30, int))
    assert [axis.get_title(loc="left") for axis in axes] == [
        "",
        "",
        "a, 100.0% of time steps right",
        "b, 100.0% of time steps right",
    ]


def test_without_truth_there_is_no_strip_and_no_accuracy():
    axes = plotting.sequence(SIGNAL, {"a": POSTERIORS})
    assert [axis.get_title(loc="left") for axis in axes] == ["", "a"]


def test_states_that_are_not_the_truth_have_a_name_and_no_accuracy():
    axes = plotting.sequence(SIGNAL, {"a": POSTERIORS}, states=np.zeros(30, int), name="yesterday")
    assert axes[1].get_ylabel() == "yesterday"
    assert axes[2].get_title(loc="left") == "a"


def test_columns_have_greys_and_a_legend():
    axes = plotting.sequence(np.hstack([SIGNAL] * 4), POSTERIORS, columns=["a", "b", "c", "d"])
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b", "c", "d"]
    looks = {(line.get_color(), line.get_linestyle()) for line in axes[0].lines}
    assert len(looks) == 4
    assert not {ink for ink, _ in looks} & set(plotting.COLORS)


def test_frames_are_counted_from_the_first_and_gaps_are_lines():
    dt = np.where(np.arange(30) == 12, 5, 1)
    states = {"predicted": np.zeros(30, int), "true": np.ones(30, int)}
    axes = plotting.sequence(SIGNAL, POSTERIORS, states=states, dt=dt, first=700)
    assert axes[-1].get_xlim() == (699.5, 729.5)
    assert [axis.get_ylabel() for axis in axes[1:3]] == ["predicted", "true"]
    parts = [line.get_xdata().tolist() for line in axes[0].lines[:2]]
    assert parts == [list(range(700, 712)), list(range(712, 730))]
    assert all(axis.lines[-1].get_xdata()[0] == 711.5 for axis in axes)


def test_names_are_in_the_legend():
    figure = Figure()
    plotting.sequence(SIGNAL, {"a": POSTERIORS}, names=["calm", "storm"], figure=figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["calm", "storm"]


class TestDurations:
    LEARNED = stages_of(np.array([[0.9, 0.1], [0.05, 0.95]]), np.array([4, 1]), np.array([1, 6]))

    def test_one_panel_per_state_with_mean_shape_and_minimum(self):
        axes = plotting.durations(self.LEARNED, names=["calm", "storm"])
        titles = [axis.get_title(loc="left") for axis in axes]
        assert titles == ["calm: mean 10.0, shape 4", "storm: mean 20.0, shape 1, at least 6"]

    def test_whole_stays_are_counted(self):
        axes = plotting.durations(self.LEARNED, np.repeat([0, 1, 0, 1, 0], 12))
        texts = [[text.get_text() for text in axis.get_legend().get_texts()] for axis in axes]
        assert texts == [["1 seen", "learned"], ["2 seen", "learned"]]

    def test_unknown_labels_between_equal_ones_belong_to_the_stay(self):
        axes = plotting.durations(np.full((2, 2), 0.5), [1, 0, -1, 0, 0, 1, 0, -1, 1, 0])
        assert axes[0].patches[0].get_data().values.argmax() == 3
        assert axes[0].get_legend_handles_labels()[1][0] == "1 seen"

    def test_the_line_has_the_learned_probabilities(self):
        axes = plotting.durations(self.LEARNED, np.repeat([0, 1, 0], [3, 4, 3]))
        line = axes[0].lines[0]
        assert line.get_ydata().sum() == pytest.approx(self.LEARNED.probabilities(51)[0].sum())

    def test_a_state_that_is_never_left_says_so(self):
        axes = plotting.durations(Durations.geometric(np.array([[0.9, 0.1], [0.0, 1.0]])))
        assert axes[1].get_title(loc="left") == "state 1: never left"

    def test_something_else_is_refused(self):
        with pytest.raises(ValueError, match="durations must have two dimensions"):
            plotting.durations(np.ones(3))


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


DATES = np.datetime64("2026-03-02T08:00") + np.arange(30).astype("m8[m]")


@pytest.mark.parametrize("times", [DATES, DATES.tolist(), np.arange(30) * 0.5], ids=["dates", "datetimes", "numbers"])
def test_times_are_along_the_axis(times):
    axes = plotting.sequence(SIGNAL, POSTERIORS, states=np.zeros(30, int), times=times)
    expected = times if isinstance(times, np.ndarray) and times.dtype.kind == "f" else date2num(times)
    np.testing.assert_allclose(axes[0].lines[0].get_xdata(), expected)
    low, high = axes[-1].get_xlim()
    assert low < expected[0] < expected[-1] < high
    assert axes[-1].get_xlabel() == "time"
    assert plotting.evidence(np.log(POSTERIORS), times=times).get_xlim() == (low, high)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (np.arange(29), "times must have one value per time step, 30"),
        (np.r_[0:29, 5], "times must increase, got 5 after 28 at time step 29"),
        (DATES.astype(str), "times must be numbers or dates, got the text"),
    ],
)
def test_times_that_cannot_be_drawn_are_named(times, message):
    with pytest.raises(ValueError, match=message):
        plotting.sequence(SIGNAL, POSTERIORS, times=times)


def test_a_single_column_of_a_table_has_its_name_at_the_axis():
    table = pd.DataFrame({"heart rate": SIGNAL[:, 0]})
    assert plotting.sequence(table, POSTERIORS)[0].get_ylabel() == "heart rate"


class TestOfAFittedModel:
    X, Y = blobs(3, n_frames=200)

    @pytest.fixture
    def fitted(self):
        settings = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
        return DensityRatioHMM(**settings).fit(self.X, self.Y)

    def test_posteriors_as_an_array(self, fitted):
        axes = plotting.sequence(self.X, fitted.predict_proba(self.X))
        assert len(axes) == 2

    def test_labels_of_any_kind_and_unknown_ones(self, fitted):
        posteriors = fitted.predict_proba(self.X)
        labels = np.array(["low", "middle", "high"], dtype=object)[self.Y]
        labels[:50] = None
        axes = plotting.sequence(self.X, posteriors, states=labels, names=["low", "middle", "high"])
        indices = np.where(np.arange(200) < 50, -1, self.Y)
        same = plotting.sequence(self.X, posteriors, states=indices, names=["low", "middle", "high"])
        assert axes[-1].get_title(loc="left") == same[-1].get_title(loc="left")
        assert len(axes[1].patches) == len(same[1].patches)

    def test_labels_that_are_not_names_are_refused(self, fitted):
        with pytest.raises(ValueError, match=r"states has 1 different labels, such as 'x', for 3 states: give names="):
            plotting.sequence(self.X, fitted.predict_proba(self.X), states=["x"] * 200)

    def test_a_figure_is_that_of_pyplot(self, fitted, tmp_path):
        from matplotlib import pyplot

        axes = plotting.transitions(fitted.transmat_)
        assert pyplot.gcf() is axes.figure
        pyplot.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000

    def test_stays_of_a_transition_matrix(self, fitted):
        assert len(plotting.durations(fitted.transmat_, self.Y)) == 3
