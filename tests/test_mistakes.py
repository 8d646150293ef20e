"""Mistakes that new users made, each with an answer that says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from drhmm import DensityRatioHMM, dataframes, plotting, select_states
from problems import blobs

X, Y = blobs(3, n_frames=200)
TABLE = pd.DataFrame(X, columns=["heart", "speed"])
SETTINGS = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(**SETTINGS).fit(TABLE, Y)


ROWS = TABLE.assign(place=Y, when=pd.date_range("2026-10-25", periods=200, freq="2s"))


@pytest.fixture(scope="module")
def remembering():
    return dataframes.fit(DensityRatioHMM(**SETTINGS), ROWS, label="place", time="when")


class Tensor:
    """As much of a tensor of torch as matters: it refuses to become an array while it keeps gradients."""

    shape, ndim = (3, 2), 2

    def detach(self):
        return self

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class TestData:
    def test_text_in_a_column_is_named(self):
        mixed = TABLE.astype(object)
        mixed.loc[3, "speed"] = "fast"
        with pytest.raises(ValueError, match="column 'speed' holds text, 'fast' at row 3, and samples are numbers"):
            DensityRatioHMM(**SETTINGS).fit(mixed, Y)

    def test_text_in_an_array_is_named_by_its_place(self):
        mixed = X.astype(object)
        mixed[3, 1] = "fast"
        with pytest.raises(ValueError, match="X must hold numbers, got 'fast' at row 3, column 1"):
            DensityRatioHMM(**SETTINGS).fit(mixed, Y)

    def test_a_constant_column_is_named(self):
        with pytest.warns(UserWarning, match="constant, or differs by rounding only, in column 'still'"):
            DensityRatioHMM(**SETTINGS).fit(TABLE.assign(still=1.0), Y)

    def test_one_class_is_told_of_novelty(self):
        with pytest.raises(ValueError, match=r"y has one class only .*use novelty=True"):
            DensityRatioHMM(**SETTINGS).fit(X, np.zeros(200, dtype=int))

    def test_a_tensor_is_told_how_to_become_an_array(self, fitted):
        with pytest.raises(TypeError, match=r"X is a tensor that numpy cannot read: use X\.detach\(\)\.cpu\(\)\.numpy"):
            fitted.model_.predict(Tensor())

    def test_a_sparse_matrix_is_told_how_to_become_an_array(self, fitted):
        with pytest.raises(TypeError, match=r"X is sparse, and sparse data are not supported; use X\.toarray"):
            fitted.model_.predict(sparse.csr_matrix(X))

    @pytest.mark.parametrize("empty", ["", "  "])
    def test_empty_labels_are_unknown_as_on_the_command_line(self, empty):
        labels = np.array(["low", "middle", "high"])[Y]
        labels[::10] = empty
        estimator = DensityRatioHMM(**SETTINGS).fit(X, labels)
        assert estimator.classes_.tolist() == ["high", "low", "middle"]
        assert len(estimator.history_) > 0

    def test_empty_labels_are_a_class_if_nothing_is_unknown(self):
        labels = np.array(["low", "", "high"])[Y]
        assert DensityRatioHMM(unknown=None, **SETTINGS).fit(X, labels).classes_.tolist() == ["", "high", "low"]


class TestCalls:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_components": 3}, "DensityRatioHMM has no setting 'n_components': did you mean n_states?"),
            ({"windw": 3}, "no setting 'windw': did you mean window?"),
            ({"zzz": 3}, "no setting 'zzz'; there are"),
        ],
    )
    def test_a_setting_that_there_is_not(self, settings, message):
        with pytest.raises(TypeError, match=message):
            DensityRatioHMM(**settings)

    @pytest.mark.parametrize("name", ["predict", "predict_proba", "log_ratios", "score"])
    def test_lengths_without_a_name(self, fitted, name):
        taken = "X, y" if name == "score" else "X"
        more = [Y] if name == "score" else []
        with pytest.raises(TypeError, match=rf"did you mean {name}\({taken}, lengths=\[100, 100\]\)\?"):
            getattr(fitted, name)(TABLE, *more, [100, 100])

    def test_lengths_of_fit_without_a_name(self):
        with pytest.raises(TypeError, match=r"did you mean fit\(X, y, lengths=\[100, 100\]\)\?"):
            DensityRatioHMM(**SETTINGS).fit(X, Y, [100, 100])

    def test_a_model_says_it_too(self, fitted):
        with pytest.raises(TypeError, match=r"did you mean predict\(X, lengths=\[100, 100\]\)\?"):
            fitted.model_.predict(TABLE, [100, 100])

    def test_a_method_without_a_name(self, fitted):
        with pytest.raises(TypeError, match=r"did you mean predict\(X, method='viterbi'\)\?"):
            fitted.predict(TABLE, "viterbi")

    def test_lengths_in_the_place_of_labels(self, fitted):
        for call in (DensityRatioHMM(**SETTINGS).fit, fitted.score):
            with pytest.raises(ValueError, match=r"got \(2,\): did you mean lengths=\[100, 100\]\?"):
                call(TABLE, [100, 100])

    def test_labels_of_another_kind(self, fitted):
        with pytest.raises(ValueError, match="never seen in training, where labels were numbers, such as 0"):
            fitted.score(TABLE, Y.astype(str))

    def test_one_number_of_states(self):
        with pytest.raises(ValueError, match=r"candidates must be several numbers, such as range\(2, 5\), got 4"):
            select_states(X, 4)

    def test_two_columns_with_one_name(self):
        with pytest.raises(ValueError, match="X has two columns with the name 'heart'"):
            select_states(TABLE[["heart", "heart"]], [2, 3])

    def test_data_without_any_evidence(self, fitted):
        for asked in (fitted, fitted.model_):
            for call in (asked.predict, asked.predict_proba):
                with pytest.warns(UserWarning, match="no row has evidence: every row of X has a NaN") as caught:
                    call(TABLE.assign(heart=np.nan))
                assert [one.filename for one in caught] == [__file__]

    def test_an_alarm_of_an_estimator_is_that_of_its_model(self):
        fitted = DensityRatioHMM(novelty=True, **SETTINGS).fit(X, Y)
        settings = {"false_alarms": 1, "per": 100, "hold_off": 5}
        assert fitted.alarm(**settings).numbers() == fitted.model_.alarm(**settings).numbers()

    def test_score_without_labels_is_a_gain(self, fitted):
        assert fitted.score(TABLE) == fitted.model_.gain(TABLE)


class TestStep:
    def test_takes_a_mapping_in_any_order(self, fitted):
        one, other = fitted.stream(), fitted.stream()
        np.testing.assert_array_equal(one.step({"speed": X[0, 1], "more": "text", "heart": X[0, 0]}), other.step(X[0]))

    def test_none_in_a_mapping_is_a_missing_value(self, fitted):
        one, other = fitted.stream(), fitted.stream()
        np.testing.assert_array_equal(one.step({"speed": None, "heart": 1.0}), other.step(None))

    def test_a_name_that_is_not_there(self, fitted):
        stream = fitted.stream()
        with pytest.raises(ValueError, match="x has no column 'speed', did you mean 'Speed'"):
            stream.step({"Speed": 1.0, "heart": 1.0})
        assert stream.n_frames == 0

    def test_text_in_a_mapping(self, fitted):
        with pytest.raises(ValueError, match="x has 'high' in 'speed': a sample has numbers, or None"):
            fitted.stream().step({"heart": 1.0, "speed": "high"})

    def test_a_model_without_names(self):
        stream = DensityRatioHMM(**SETTINGS).fit(X, Y).stream()
        with pytest.raises(ValueError, match="x is a mapping, but the model was learned without names"):
            stream.step({"heart": 1.0, "speed": 1.0})


class TestTables:
    def test_the_wrong_case_of_a_label(self):
        with pytest.raises(ValueError, match="label: df has no column 'State', did you mean 'state'"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), TABLE.assign(state=Y), label="State")

    def test_a_step_with_a_unit(self):
        table = TABLE.assign(state=Y, when=pd.date_range("2026-01-01", periods=200, freq="2s"))
        fitted = dataframes.fit(DensityRatioHMM(**SETTINGS), table, label="state", time="when", step="2s")
        assert fitted.model_.settings["time_step"] == 2

    def test_an_evaluation_without_labels(self, remembering):
        with pytest.raises(ValueError, match=r"df has no column 'place'; .* name another with label=$"):
            dataframes.evaluate(remembering, ROWS.drop(columns="place"))
        with pytest.raises(ValueError, match="an evaluation compares with true labels, name their column"):
            dataframes.evaluate(remembering, ROWS, label=False)

    def test_text_instead_of_a_list_of_columns(self, remembering):
        expected = r"features must be a list of columns, got the text 'hs': write features=\['hs'\]"
        with pytest.raises(ValueError, match=expected):
            dataframes.fit(DensityRatioHMM(**SETTINGS), TABLE.set_axis(["h", "s"], axis=1), features="hs")
        with pytest.raises(ValueError, match=expected):
            dataframes.predict(remembering, ROWS, features="hs")

    def test_two_rows_at_the_same_time(self, remembering):
        times = ROWS.when.where(ROWS.index != 4, ROWS.when[3])
        with pytest.raises(ValueError, match=r"row 4: time does not increase: .* have the same time: leave one out"):
            dataframes.predict(remembering, ROWS.assign(when=times))

    @pytest.mark.parametrize(("minutes", "is_told"), [(60, True), (120, False)])
    def test_clocks_that_go_back(self, remembering, minutes, is_told):
        times = ROWS.when - pd.to_timedelta(np.where(ROWS.index >= 100, minutes, 0), unit="min")
        with pytest.raises(ValueError, match="row 100: time does not increase") as caught:
            dataframes.predict(remembering, ROWS.assign(when=times))
        assert ("daylight saving time" in str(caught.value)) == is_told

    def test_a_column_that_is_the_index(self, remembering):
        with pytest.raises(ValueError, match=r"time: df has no column 'when', as it is the index: use df.reset_index"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), ROWS.set_index("when"), label="place", time="when")
        with pytest.raises(ValueError, match=r"df has no column 'when', as it is the index: use df.reset_index"):
            dataframes.predict(remembering, ROWS.set_index("when"))

    def test_a_column_without_a_value(self):
        with pytest.raises(ValueError, match="no value in column 'speed': every entry is NaN"):
            dataframes.fit(DensityRatioHMM(**SETTINGS), TABLE.assign(speed=np.nan, place=Y), label="place")

    def test_two_columns_with_one_name(self):
        with pytest.raises(ValueError, match="df has two columns with the name 'heart'"):
            dataframes.fit(DensityRatioHMM(**SETTINGS, n_states=2), TABLE[["heart", "heart"]])

    def test_a_file_name_instead_of_a_model(self):
        with pytest.raises(TypeError, match=r"load it first, with drhmm.load\('m.drhmm'\)"):
            dataframes.predict("m.drhmm", TABLE)

    def test_a_class_instead_of_an_estimator(self):
        with pytest.raises(TypeError, match=r"give an object of it, DensityRatioHMM\(\)"):
            dataframes.fit(DensityRatioHMM, TABLE)

    @pytest.mark.parametrize("name", ["explain", "rank_columns"])
    def test_further_columns(self, remembering, name):
        arguments = [5] if name == "explain" else []
        with pytest.raises(ValueError, match=r"use X\[list\(model\.feature_names\)\], or .* drhmm\.dataframes"):
            getattr(remembering.model_, name)(ROWS, *arguments)

    def test_warnings_point_at_the_line_of_the_user(self, remembering):
        with pytest.warns(UserWarning, match="a step of 6 s does not suit") as caught:
            dataframes.predict(remembering, ROWS, step="6s")
        with pytest.warns(UserWarning, match="constant") as more:
            dataframes.fit(DensityRatioHMM(**SETTINGS), ROWS.assign(still=1.0), label="place", time="when")
        assert {one.filename for one in [*caught, *more]} == {__file__}


class TestPictures:
    def test_posteriors_as_an_array(self, fitted):
        axes = plotting.sequence(X, fitted.predict_proba(TABLE))
        assert len(axes) == 2

    def test_labels_of_any_kind_and_unknown_ones(self, fitted):
        posteriors = fitted.predict_proba(TABLE)
        labels = np.array(["low", "middle", "high"], dtype=object)[Y]
        labels[:50] = None
        axes = plotting.sequence(X, posteriors, states=labels, names=["low", "middle", "high"])
        indices = np.where(np.arange(200) < 50, -1, Y)
        same = plotting.sequence(X, posteriors, states=indices, names=["low", "middle", "high"])
        assert axes[-1].get_title(loc="left") == same[-1].get_title(loc="left")
        assert len(axes[1].patches) == len(same[1].patches)

    def test_labels_that_are_not_names_are_refused(self, fitted):
        with pytest.raises(ValueError, match=r"states has 1 different labels, such as 'x', for 3 states: give names="):
            plotting.sequence(X, fitted.predict_proba(TABLE), states=["x"] * 200)

    def test_a_figure_is_that_of_pyplot(self, fitted, tmp_path):
        from matplotlib import pyplot

        axes = plotting.transitions(fitted.transmat_)
        assert pyplot.gcf() is axes.figure
        pyplot.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000

    def test_stays_of_a_transition_matrix(self, fitted):
        assert len(plotting.durations(fitted.transmat_, Y)) == 3
