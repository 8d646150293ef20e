"""Evidence, ROC, calibration, transitions and the paper's map of ratios: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from drhmm import plotting

RANDOM = np.random.default_rng(0)
EVENTS = np.arange(200) % 2
SCORES = EVENTS + RANDOM.normal(size=200)
LOG_RATIOS = RANDOM.normal(size=(40, 3))


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def lines(axes):
    """Lines with a name."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plotting.evidence(LOG_RATIOS, ax=ax),
        lambda ax: plotting.roc(EVENTS, SCORES, ax=ax),
        lambda ax: plotting.calibration([0, 1], [0.2, 0.8], ax=ax),
        lambda ax: plotting.transitions(np.eye(2), ax=ax),
        lambda ax: plotting.ratio_map(ax=ax),
    ],
    ids=["evidence", "roc", "calibration", "transitions", "ratio_map"],
)
class TestEveryPicture:
    def test_is_drawn_into_given_axes(self, draw):
        ax = Figure().subplots()
        assert draw(ax) is ax

    def test_makes_its_own_axes(self, draw, tmp_path):
        path = tmp_path / "picture.png"
        draw(None).figure.savefig(path)
        assert path.stat().st_size > 5000


class TestEvidence:
    def test_a_line_is_the_log_ratio_to_the_mean_of_the_others(self):
        values = lines(plotting.evidence(LOG_RATIOS, names=["a", "b", "c"]))["b"].get_ydata()
        ratios = np.exp(LOG_RATIOS)
        assert_allclose(values, np.log(ratios[:, 1] / ratios[:, [0, 2]].mean(axis=1)))

    def test_a_constant_per_row_changes_nothing(self):
        first, second = (
            lines(plotting.evidence(values))["state 0"].get_ydata()
            for values in (LOG_RATIOS, LOG_RATIOS + np.arange(40.0)[:, None])
        )
        assert_allclose(first, second)

    def test_two_states_need_one_line(self):
        drawn = lines(plotting.evidence(LOG_RATIOS[:, :2], names=["calm", "storm"]))
        assert list(drawn) == ["calm against storm"]
        assert_allclose(drawn["calm against storm"].get_ydata(), LOG_RATIOS[:, 0] - LOG_RATIOS[:, 1])

    def test_an_excluded_state_is_drawn_at_the_limit(self):
        values = LOG_RATIOS.copy()
        values[3, 0] = -np.inf
        assert lines(plotting.evidence(values, limit=5.0))["state 0"].get_ydata()[3] == -5.0

    def test_a_frame_without_evidence_is_at_zero_and_a_missing_one_is_a_gap(self):
        values = LOG_RATIOS.copy()
        values[3], values[4] = -np.inf, np.nan
        drawn = lines(plotting.evidence(values))["state 1"].get_ydata()
        assert drawn[3] == 0
        assert np.isnan(drawn[4])

    def test_true_states_are_a_strip_of_one_patch_per_stretch(self):
        axes = plotting.evidence(LOG_RATIOS, states=np.repeat([0, 2, 1], [10, 10, 20]))
        colors = [patch.get_facecolor() for patch in axes.patches]
        assert len(set(colors)) == 3

    @pytest.mark.parametrize(
        ("values", "options", "message"),
        [
            (LOG_RATIOS[:, :1], {}, "log_ratios must have at least one time step and two states"),
            (LOG_RATIOS, {"states": [0]}, r"states must have shape \(40,\), got \(1,\)"),
            (LOG_RATIOS, {"states": np.full(40, 3)}, "states has 3 at time step 0: states are 0 to 2, -1"),
            (LOG_RATIOS, {"states": np.full(40, 0.5)}, "states has 1 different labels, such as 0.5, for 3 states"),
            (LOG_RATIOS, {"names": ["a"]}, "names must have one entry for each of the 3 states, got 1"),
            (LOG_RATIOS, {"limit": 0}, "limit"),
            (LOG_RATIOS, {"states": np.ma.masked_equal(np.zeros(40, int), 0)}, "states is a masked array"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, values, options, message):
        with pytest.raises(ValueError, match=message):
            plotting.evidence(values, **options)


class TestROC:
    def test_the_legend_has_area_and_equal_error_rate_of_every_curve(self):
        axes = plotting.roc(EVENTS, {"good": SCORES, "blind": np.zeros(200)})
        area, rate = roc_auc_score(EVENTS, SCORES), plotting.equal_error_rate(EVENTS, SCORES)
        assert legend(axes) == [f"good: AUC {area:.3f}, EER {rate:.3f}", "blind: AUC 0.500, EER 0.500"]

    def test_the_dot_is_where_false_alarms_equal_misses(self):
        axes = plotting.roc(EVENTS, SCORES)
        (dot,) = (line for line in axes.get_lines() if line.get_marker() == "o")
        rate = plotting.equal_error_rate(EVENTS, SCORES)
        assert_allclose(dot.get_xydata(), [[rate, 1 - rate]])

    def test_infinite_scores_are_the_surest(self):
        scores = np.where(EVENTS == 1, np.inf, -np.inf)
        assert plotting.equal_error_rate(EVENTS, scores) == 0

    def test_equal_error_rate_lies_between_the_errors_of_neighbouring_thresholds(self):
        rate = plotting.equal_error_rate(EVENTS, SCORES)
        thresholds = np.sort(SCORES)[:, None]
        alarms = thresholds <= SCORES
        false, missed = alarms[:, EVENTS == 0].mean(axis=1), 1 - alarms[:, EVENTS == 1].mean(axis=1)
        closest = int(np.argmin(np.abs(false - missed)))
        assert abs(rate - false[closest]) <= 0.01
        assert abs(rate - missed[closest]) <= 0.01

    def test_reversed_scores_have_the_opposite_rate(self):
        both = plotting.equal_error_rate(EVENTS, SCORES) + plotting.equal_error_rate(EVENTS, -SCORES)
        assert_allclose(both, 1)

    @pytest.mark.parametrize(
        ("y", "scores", "message"),
        [
            ([0, 2], [0.0, 1.0], "y has .*2.* at time step 1: it is 0 or 1"),
            ([0, 1, -1], [0.0, 1.0, 1.0], "at time step 2: it is 0 or 1, .* leave out unknown"),
            ([1, 1], [0.0, 1.0], "y is .*1.* at every time step"),
            ([], [], r"y must have shape \(T,\), got \(0,\)"),
            ([0, 1], [0.0], r"scores must have shape \(2,\), got \(1,\)"),
            ([0, 1], {"a": [0.0, np.nan]}, r"scores\['a'\] is NaN at time step 1"),
            ([0, 1], {}, "scores is empty"),
            (np.ma.masked_equal([0, 1, 0], 1), [0.0, 1.0, 0.5], "y is a masked array with masked values"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, y, scores, message):
        with pytest.raises(ValueError, match=message):
            plotting.roc(y, scores)


class TestCalibration:
    def test_probabilities_that_come_true_have_no_error(self):
        y = np.r_[np.arange(100) < 20, np.arange(100) < 80].astype(int)
        assert_allclose(plotting.calibration_error(y, np.repeat([0.2, 0.8], 100)), 0, atol=1e-12)

    def test_the_error_is_the_gap_weighted_by_frames(self):
        y = np.r_[np.zeros(30, int), np.ones(10, int)]
        probabilities = np.repeat([0.1, 0.6], [30, 10])
        assert_allclose(plotting.calibration_error(y, probabilities), 0.75 * 0.1 + 0.25 * 0.4)

    def test_of_several_states_the_likeliest_counts(self):
        probabilities = np.tile([0.7, 0.2, 0.1], (10, 1))
        assert_allclose(plotting.calibration_error(np.zeros(10, int), probabilities), 0.3)

    def test_certainty_belongs_to_the_last_bin(self):
        assert plotting.calibration_error([1, 1], [1.0, 1.0]) == 0

    def test_dots_are_the_bins_and_the_legend_has_the_error(self):
        axes = plotting.calibration([0, 0, 1, 1], {"mine": [0.1, 0.1, 0.1, 0.9]})
        assert legend(axes) == ["mine: calibration error 0.200"]
        assert_allclose(lines(axes)[legend(axes)[0]].get_xydata(), [[0.1, 1 / 3], [0.9, 1.0]])

    @pytest.mark.parametrize(
        ("y", "probabilities", "options", "message"),
        [
            ([0, 1], [0.5, 1.5], {}, "probabilities has 1.5 at time step 1"),
            ([0, 1], {"a": [0.5, np.nan]}, {}, r"probabilities\['a'\] has nan at time step 1"),
            ([0, 2], [0.5, 0.5], {}, "y has 2 at time step 1: states are 0 to 1"),
            ([0], [0.5, 0.5], {}, r"y must have shape \(2,\)"),
            ([0], np.ones((1, 1)), {}, r"probabilities must have shape \(T,\), or \(T, S\)"),
            ([0, 1], [0.5, 0.5], {"n_bins": 0}, "n_bins"),
            (np.ma.masked_equal([0, 1], 1), [0.5, 0.5], {}, "y is a masked array with masked values"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, y, probabilities, options, message):
        with pytest.raises(ValueError, match=message):
            plotting.calibration(y, probabilities, **options)


class TestTransitions:
    def test_every_transition_has_its_number_and_zero_and_one_are_exact(self):
        axes = plotting.transitions([[0.98, 0.0196, 0.0004], [0, 1, 0], [0.005, 0, 0.995]])
        assert [text.get_text() for text in axes.texts] == [
            "0.98", "0.02", "4e-4", "0", "1", "0", "0.005", "0", "0.995",
        ]  # fmt: skip

    def test_names_are_on_both_axes(self):
        axes = plotting.transitions(np.eye(2), names=["calm", "storm"])
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            assert [label.get_text() for label in labels] == ["calm", "storm"]

    @pytest.mark.parametrize(
        ("transmat", "options", "message"),
        [
            ([[0.5, 0.4], [0, 1]], {}, "transmat"),
            ([[1.0, 0.0]], {}, "transmat"),
            (np.eye(2), {"names": ["a"]}, "names must have one entry for each of the 2 states"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, transmat, options, message):
        with pytest.raises(ValueError, match=message):
            plotting.transitions(transmat, **options)


class TestRatioMap:
    def test_half_is_always_one_and_one_is_the_identity(self):
        drawn = lines(plotting.ratio_map([0.5, 1.0]))
        assert_allclose(drawn["a = 0.5"].get_ydata(), 1)
        assert_allclose(drawn["a = 1"].get_ydata(), drawn["a = 1"].get_xdata())

    def test_a_line_is_one_step_of_the_chain(self):
        line = lines(plotting.ratio_map(0.9))["a = 0.9"]
        before = np.stack([line.get_xdata(), np.ones(len(line.get_xdata()))], axis=1)
        after = before @ np.array([[0.9, 0.1], [0.1, 0.9]])
        assert_allclose(line.get_ydata(), after[:, 0] / after[:, 1])

    def test_both_axes_are_logarithmic(self):
        axes = plotting.ratio_map()
        assert axes.get_xscale() == axes.get_yscale() == "log"

    @pytest.mark.parametrize(
        ("stay", "options", "message"),
        [
            ([0.5, 1.1], {}, "stay has 1.1 at place 1"),
            ([], {}, "stay must be a number or a list"),
            (0.9, {"limits": (1, 0.1)}, "limits must be two rising positive numbers"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, stay, options, message):
        with pytest.raises(ValueError, match=message):
            plotting.ratio_map(stay, **options)
