"""Bad and odd input: what is refused, mistakes that are told what to do, and data that `fit` warns of."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import NotFittedError

from drhmm import DensityRatioHMM, ImpossibleDataError, dataframes, select_states
from drhmm.features.frames import learn_framing
from problems import blobs, rare_class, two_islands

X, Y = blobs(0, n_frames=60)


def changed(row, column, value):
    samples = X.copy()
    samples[row, column] = value
    return samples


FIT = {
    "one dimension": ((X[:, 0], Y), {}, r"X must have two dimensions.*\(60,\)"),
    "three dimensions": ((X[None], Y), {}, r"X must have two dimensions.*\(1, 60, 2\)"),
    "no rows": ((X[:0], Y[:0]), {}, "X is empty: 0 sample"),
    "no columns": ((X[:, :0], Y), {}, r"0 feature\(s\)"),
    "text": (([["a", "b"]] * 60, Y), {}, "X must hold numbers"),
    "complex": ((X + 1j, Y), {}, "Complex data not supported"),
    "masked": ((np.ma.masked_less(X, 0), Y), {}, "X is a masked array with masked values"),
    "ragged list": (([X[:30], X[30:, :1]], [Y[:30], Y[30:]]), {}, r"X\[1\] has 1 columns, X\[0\] has 2"),
    "an empty sequence in a list": (([X, X[:0]], [Y, Y[:0]]), {}, r"X\[1\] is empty"),
    "dates": (
        (np.arange(120).reshape(60, 2).astype("datetime64[s]"), Y),
        {},
        "X must hold numbers, got dtype datetime64",
    ),
    "values that overflow": ((changed(3, 0, 1e200), Y), {}, r"X has 1e\+200 at row 3, column 0"),
    "values that underflow": ((1e-200 * X, Y), {}, "X spreads too little in column 0"),
    "infinite": ((changed(7, 1, np.inf), Y), {}, r"infinite value \(inf\) at row 7, column 1"),
    "minus infinite": ((changed(59, 0, -np.inf), Y), {}, r"infinite value \(-inf\) at row 59, column 0"),
    "all NaN in a column": ((np.where([True, False], X, np.nan), Y), {}, "no value in column 1"),
    "fewer labels": ((X, Y[:-1]), {}, r"y must have one label per row: shape \(60,\), got \(59,\)"),
    "labels of a list": (([X], Y), {}, "y must be a list of 1 label arrays"),
    "labels of another length in a list": (([X], [Y[:-1]]), {}, r"y\[0\] must have shape \(60,\)"),
    "one class": ((X, np.zeros(60, int)), {}, "y has one class only .*use novelty=True"),
    "fractions as labels": ((X, Y + 0.5), {}, "Unknown label type"),
    "labels that cannot be sorted": ((X, np.array(["a", 1, 2.5] * 20, dtype=object)), {}, "cannot be sorted"),
    "lengths that do not sum": ((X, Y), {"lengths": [30, 29]}, "lengths sum to 59, but there are 60 rows"),
    "an empty sequence": ((X, Y), {"lengths": [60, 0]}, "sequence 1 has length 0"),
    "negative length": ((X, Y), {"lengths": [70, -10]}, "sequence 1 has length -10"),
    "both": ((X, Y), {"lengths": [60], "sequence_id": [0] * 60}, "lengths or sequence_id, not both"),
    "too few ids": ((X, Y), {"sequence_id": [0] * 5}, "sequence_id must have one value per row"),
    "an id that is NaN": (
        (X, Y),
        {"sequence_id": [0.0] * 7 + [np.nan] * 53},
        "sequence_id has nan at row 7: the sequence is missing",
    ),
    "an id that is None": ((X, Y), {"sequence_id": [1] * 3 + [None] * 57}, "sequence_id has None at row 3"),
    "an id that is NaN among text": ((X, Y), {"sequence_id": ["a"] * 59 + [np.nan]}, "sequence_id has nan at row 59"),
    "an id that is no time": ((X, Y), {"sequence_id": np.full(60, "NaT", "M8[s]")}, "sequence_id has NaT at row 0"),
    "ids of truth and numbers": ((X, Y), {"sequence_id": [True] * 30 + [1] * 30}, "sequence_id has 1 at row 30, but"),
    "ids that are lists": ((X, Y), {"sequence_id": np.array([[1]] * 60 + [None], dtype=object)[:60]}, "told apart"),
    "truth beside numbers": ((X, [*(Y[:59] > 0).tolist(), 2]), {}, "y has 2 at row 59, but True and False elsewhere"),
    "truth in one sequence, numbers in another": (
        ([X, X], [Y > 0, Y]),
        {},
        "y mixes labels of different kinds: bool, int",
    ),
    "two marks of the unknown": (
        (X, [-1, *Y[1:59].tolist(), None]),
        {},
        "y has -1 at row 0 and None at row 59",
    ),
    "two marks among floats": (
        (X, np.r_[-1.0, Y[1:59], np.nan]),
        {},
        "y has -1 at row 0 and nan at row 59: either may stand for an unknown label",
    ),
    "masked labels": ((X, np.ma.masked_equal(Y, 1)), {}, "y is a masked array with masked values"),
    "masked ids": ((X, Y), {"sequence_id": np.ma.masked_equal(Y, 1)}, "sequence_id is a masked array"),
    "masked lengths": ((X, Y), {"lengths": np.ma.masked_equal([30, 30], 30)}, "lengths is a masked array"),
    "masked rows in a list": ((list(np.ma.masked_less(X, 0)), Y), {}, "X is a masked array"),
    "unknown integers beside floats": (
        ([X[:30], X[30:]], [np.where(Y[:30] == 2, -1, Y[:30]), Y[30:].astype(float)]),
        {},
        r"y\[0\] has -1 at row \d+, which is unknown among integers, but together the labels are float64",
    ),
    "a list with lengths": (([X], [Y]), {"lengths": [60]}, "X is a list of sequences"),
    "duplicate points": ((np.ones((60, 2)), Y), {}, "X is constant in every column"),
}


@pytest.mark.parametrize(("arguments", "options", "message"), FIT.values(), ids=FIT.keys())
def test_fit_refuses(arguments, options, message):
    estimator = DensityRatioHMM(n_basis=20)
    with pytest.raises(ValueError, match=message):
        estimator.fit(*arguments, **options)
    assert not hasattr(estimator, "model_")


def test_fewer_frames_than_folds():
    with pytest.raises(ValueError, match="at least 5 frames, one per fold, got 4"):
        DensityRatioHMM(novelty=True).fit(X[:4], [0] * 4)


def test_duplicate_points_without_standardisation():
    with pytest.raises(ValueError, match="only duplicate frames"):
        DensityRatioHMM(standardize=False).fit(np.ones((60, 2)), Y)


def test_some_duplicate_points_are_fine():
    doubled = np.repeat(X, 3, axis=0)
    assert DensityRatioHMM(n_basis=100, random_state=0).fit(doubled, np.repeat(Y, 3)).score(X, Y) > 0.8


def test_a_window_longer_than_every_sequence():
    with pytest.raises(ValueError, match="no complete frame: window=40"):
        DensityRatioHMM(window=40).fit(X, Y, lengths=[30, 30])


def test_an_absurd_window():
    with pytest.raises(ValueError, match="no complete frame: window=9223372036854775808"):
        DensityRatioHMM(window=2**63).fit(X, Y)


def test_labels_before_the_first_window_only():
    y = np.full(60, -1)
    y[:3] = [0, 1, 2]
    with pytest.raises(ValueError, match=r"class .*0.* has no complete frame"):
        DensityRatioHMM(window=4).fit(X, y)


def test_rows_in_messages_are_those_of_the_caller():
    ids, y = np.arange(60) % 2, Y.copy()
    fitted = DensityRatioHMM(n_basis=20, random_state=0).fit(X, Y, sequence_id=ids)
    y[3] = 77
    with pytest.raises(ValueError, match="label 77 at row 3"):
        fitted.score(X, y, sequence_id=ids)


def test_a_class_without_a_complete_frame():
    y = Y.copy()
    y[y == 2] = 1
    y[0] = 2
    with pytest.raises(ValueError, match=r"class .*2.* has no complete frame"):
        DensityRatioHMM(window=3).fit(X, y)


def test_a_state_without_successor_and_without_prior():
    X_two = np.random.default_rng(0).normal(size=(20, 1))
    with pytest.raises(ValueError, match="state 1 is never followed"):
        DensityRatioHMM(transition_prior=0, transmat=None).fit(X_two, [0] * 17 + [1] * 3, lengths=[18, 1, 1])


OUT_OF_RANGE = {
    "n_states": [
        (1, "at least 2, got 1"),
        (2.5, "must be an integer"),
        (4, "n_states is 4, but y has 3 classes"),
    ],
    "ratio": [("magic", "ratio must be one of")],
    "n_basis": [(0, "n_basis must be at least 1"), (10.0, "n_basis must be an integer")],
    "sigma": [
        (-1.0, r"sigma must be in \[1e-100, 1e\+100\], got -1.0"),
        (0, "sigma"),
        ("wide", "sigma"),
        (np.nan, "finite"),
        (10**400, "sigma must be a finite number that float64 can hold, got an integer of 1329 bits"),
    ],
    "rho": [
        (-0.1, r"rho must be in \[1e-100, 1e\+100\], got -0.1"),
        (np.inf, "rho must be a finite number"),
        ("x", "rho"),
    ],
    "floor": [(-0.1, "floor must be in"), (1.0, "floor must be in"), (None, "floor must be a finite number")],
    "evidence_scale": [(0.0, "evidence_scale must be in"), ("big", "evidence_scale must be a finite number")],
    "window": [(0, "window must be at least 1, got 0"), (1.5, "window must be an integer")],
    "transition_prior": [
        (-1.0, "transition_prior must be in"),
        ([[1, 2], [3]], "transition_prior must hold numbers"),
    ],
    "standardize": [("no", "standardize must be True or False, got 'no'")],
    "novelty": [(1, "novelty must be True or False, got 1")],
    "n_threads": [(0, "n_threads must be at least 1"), ("two", "n_threads must be an integer")],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for name, cases in OUT_OF_RANGE.items() for value, message in cases],
)
def test_settings_out_of_range(name, value, message):
    with pytest.raises(ValueError, match=message):
        DensityRatioHMM(**{name: value}).fit(X, Y)


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(n_basis=30, random_state=0).fit(X, Y)


#: Two sequences in one list of ids that one dtype of numpy would make equal.
IDS = {
    "beyond 64 bits": [2**63, 2**63 + 1, -1],
    "beside a fraction": [2**53, 2**53 + 1, 0.5],
    "a number and text": [1, "1", 2],
    "a last character that is nothing": ["a", "a\0", "b"],
    "sets": [frozenset({1}), frozenset({2}), frozenset({3})],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS.keys())
def test_ids_that_differ_in_the_last_digit_are_two_sequences(fitted, ids):
    rows = [30, 29, 1]
    expected = fitted.predict_proba(X, lengths=rows)
    sequence_id = [value for value, count in zip(ids, rows, strict=True) for _ in range(count)]
    np.testing.assert_array_equal(fitted.predict_proba(X, sequence_id=sequence_id), expected)


def test_equal_ids_are_one_sequence_whatever_they_are(fitted):
    apart = [frozenset({row % 2}) for row in range(60)]
    expected = fitted.predict_proba(X, sequence_id=np.arange(60) % 2)
    np.testing.assert_array_equal(fitted.predict_proba(X, sequence_id=apart), expected)


LABELS = {
    "beyond 64 bits": [2**63, 2**63 + 1, 2**63 + 2, None],
    "integers of a table beside nothing": pd.Series([2**53, 2**53 + 1, 2**53 + 2, None], dtype="Int64"),
    "integers beside NaN": [2**53, 2**53 + 1, 2**53 + 2, np.nan],
    "a last character that is nothing": ["a", "a\0", "b", None],
}


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_labels_that_differ_in_the_last_digit_are_different_classes(labels):
    places = [3, *Y[1:].tolist()]
    y = labels[places] if isinstance(labels, pd.Series) else [labels[place] for place in places]
    estimator = DensityRatioHMM(n_basis=20, random_state=0).fit(X, y)
    assert estimator.classes_.tolist() == list(labels)[:3]


def test_minus_one_and_one_are_two_classes_beside_nan():
    y = np.r_[np.nan, np.where(Y == 1, 1.0, -1.0)[1:]]
    assert DensityRatioHMM(n_basis=20, random_state=0).fit(X, y).classes_.tolist() == [-1.0, 1.0]


def test_a_start_that_labels_contradict():
    startprob = np.where(np.arange(3) == Y[0], 0.0, 0.5)
    with pytest.raises(ValueError, match=f"startprob forbids state {Y[0]} as the first, but a sequence in y begins"):
        DensityRatioHMM(startprob=startprob, n_basis=20).fit(X, Y)


def test_the_row_of_a_value_too_large_is_that_of_the_caller():
    with pytest.raises(ValueError, match=r"X has 1e\+200 at row 3, column 0"):
        DensityRatioHMM(n_basis=20).fit(changed(3, 0, 1e200), Y, sequence_id=np.arange(60) % 2)


def test_text_and_missing_labels_in_different_sequences():
    words = np.array(["a", "b", "c"])[Y]
    some = words.astype(object)
    some[::7] = None
    fitted = DensityRatioHMM(n_basis=20, random_state=0).fit([X, X], [words, some])
    assert fitted.classes_.tolist() == ["a", "b", "c"]


STEPS = {
    "a masked gap": (np.ma.masked_equal([1, 2, 1], 2), "dt is a masked array"),
    "ragged": ([[1], [1, 2], 3], "dt must have one integer per row"),
    "too long": ([1, 2**80, 1], f"got {2**80} at row 1"),
    "a fraction": ([1, 1.5, 1], "got 1.0 at row 0|got 1.5 at row 1"),
    "no number": ([1, None, 1], "got None at row 1"),
}


@pytest.mark.parametrize(("dt", "message"), STEPS.values(), ids=STEPS.keys())
def test_gaps_that_are_none(fitted, dt, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba(X[:3], dt=dt)


class TestPredict:
    def test_before_fit(self):
        with pytest.raises(NotFittedError):
            DensityRatioHMM().predict(X)

    def test_another_number_of_columns(self, fitted):
        with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 2 features as input"):
            fitted.predict(np.zeros((5, 3)))

    def test_infinite_value(self, fitted):
        with pytest.raises(ValueError, match="row 7, column 1"):
            fitted.predict(changed(7, 1, np.inf))

    def test_unknown_method(self, fitted):
        with pytest.raises(ValueError, match="method must be one of 'smooth', 'filter', 'frame', got 'best'"):
            fitted.predict_proba(X, method="best")

    def test_probabilities_of_a_path(self, fitted):
        with pytest.raises(ValueError, match="method must be one of"):
            fitted.predict_proba(X, method="viterbi")

    def test_lag_without_smoothing(self, fitted):
        with pytest.raises(ValueError, match="lag=3 goes with method='smooth'"):
            fitted.predict_proba(X, method="filter", lag=3)

    def test_a_label_never_seen(self, fitted):
        with pytest.raises(ValueError, match=r"label .*7.* at row 59, which was never seen in training"):
            fitted.score(X, np.r_[Y[:-1], 7])

    def test_impossible_data(self):
        model = two_islands()
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 1\)"):
            model.predict(np.array([[0.0], [5.0]]))
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 2\)"):
            model.predict(np.array([[0.0], [5.0], [5.0]]), sequence_id=[0, 1, 0])


SAMPLES, STATES = blobs(3, n_frames=200)
TABLE = pd.DataFrame(SAMPLES, columns=["heart", "speed"])
ROWS = TABLE.assign(place=STATES, when=pd.date_range("2026-10-25", periods=200, freq="2s"))
FIXED = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}


@pytest.fixture(scope="module")
def named():
    return DensityRatioHMM(**FIXED).fit(TABLE, STATES)


@pytest.fixture(scope="module")
def remembering():
    return dataframes.fit(DensityRatioHMM(**FIXED), ROWS, label="place", time="when")


class TestData:
    def test_text_in_a_column_is_named(self):
        mixed = TABLE.astype(object)
        mixed.loc[3, "speed"] = "fast"
        with pytest.raises(ValueError, match="column 'speed' holds text, 'fast' at row 3, and samples are numbers"):
            DensityRatioHMM(**FIXED).fit(mixed, STATES)

    def test_text_in_an_array_is_named_by_its_place(self):
        mixed = SAMPLES.astype(object)
        mixed[3, 1] = "fast"
        with pytest.raises(ValueError, match="X must hold numbers, got 'fast' at row 3, column 1"):
            DensityRatioHMM(**FIXED).fit(mixed, STATES)

    def test_a_sparse_matrix_is_told_how_to_become_an_array(self, named):
        with pytest.raises(TypeError, match=r"X is sparse, and sparse data are not supported; use X\.toarray"):
            named.model_.predict(sparse.csr_matrix(SAMPLES))

    @pytest.mark.parametrize("empty", ["", "  "])
    def test_empty_labels_are_unknown_as_on_the_command_line(self, empty):
        labels = np.array(["low", "middle", "high"])[STATES]
        labels[::10] = empty
        estimator = DensityRatioHMM(**FIXED).fit(SAMPLES, labels)
        assert estimator.classes_.tolist() == ["high", "low", "middle"]
        assert "unlabelled rows" in estimator.unlabelled_reason_

    def test_empty_labels_are_a_class_if_nothing_is_unknown(self):
        labels = np.array(["low", "", "high"])[STATES]
        assert DensityRatioHMM(unknown=None, **FIXED).fit(SAMPLES, labels).classes_.tolist() == ["", "high", "low"]


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
    def test_lengths_without_a_name(self, named, name):
        taken = "X, y" if name == "score" else "X"
        more = [STATES] if name == "score" else []
        with pytest.raises(TypeError, match=rf"did you mean {name}\({taken}, lengths=\[100, 100\]\)\?"):
            getattr(named, name)(TABLE, *more, [100, 100])

    def test_lengths_of_fit_without_a_name(self):
        with pytest.raises(TypeError, match=r"did you mean fit\(X, y, lengths=\[100, 100\]\)\?"):
            DensityRatioHMM(**FIXED).fit(SAMPLES, STATES, [100, 100])

    def test_a_model_says_it_too(self, named):
        with pytest.raises(TypeError, match=r"did you mean predict\(X, lengths=\[100, 100\]\)\?"):
            named.model_.predict(TABLE, [100, 100])

    def test_a_method_without_a_name(self, named):
        with pytest.raises(TypeError, match=r"did you mean predict\(X, method='viterbi'\)\?"):
            named.predict(TABLE, "viterbi")

    def test_lengths_in_the_place_of_labels(self, named):
        for call in (DensityRatioHMM(**FIXED).fit, named.score):
            with pytest.raises(ValueError, match=r"got \(2,\): did you mean lengths=\[100, 100\]\?"):
                call(TABLE, [100, 100])

    def test_labels_of_another_kind(self, named):
        with pytest.raises(ValueError, match="never seen in training, where labels were numbers, such as 0"):
            named.score(TABLE, STATES.astype(str))

    def test_one_number_of_states(self):
        with pytest.raises(ValueError, match=r"candidates must be several numbers, such as range\(2, 5\), got 4"):
            select_states(SAMPLES, 4)

    def test_two_columns_with_one_name(self):
        with pytest.raises(ValueError, match="X has two columns with the name 'heart'"):
            select_states(TABLE[["heart", "heart"]], [2, 3])

    def test_data_without_any_evidence(self, named):
        for asked in (named, named.model_):
            for call in (asked.predict, asked.predict_proba):
                with pytest.warns(UserWarning, match="no row has evidence: every row of X has a NaN") as caught:
                    call(TABLE.assign(heart=np.nan))
                assert [one.filename for one in caught] == [__file__]

    def test_an_alarm_of_an_estimator_is_that_of_its_model(self):
        fitted = DensityRatioHMM(novelty=True, **FIXED).fit(SAMPLES, STATES)
        settings = {"false_alarms": 1, "per": 100, "hold_off": 5}
        assert fitted.alarm(**settings).numbers() == fitted.model_.alarm(**settings).numbers()

    def test_score_without_labels_is_a_gain(self, named):
        assert named.score(TABLE) == named.model_.gain(TABLE)


class TestTables:
    def test_the_wrong_case_of_a_label(self):
        with pytest.raises(ValueError, match="label: df has no column 'State', did you mean 'state'"):
            dataframes.fit(DensityRatioHMM(**FIXED), TABLE.assign(state=STATES), label="State")

    def test_a_step_with_a_unit(self):
        table = TABLE.assign(state=STATES, when=pd.date_range("2026-01-01", periods=200, freq="2s"))
        fitted = dataframes.fit(DensityRatioHMM(**FIXED), table, label="state", time="when", step="2s")
        assert fitted.model_.settings["time_step"] == 2

    def test_an_evaluation_without_labels(self, remembering):
        with pytest.raises(ValueError, match=r"df has no column 'place'; .* name another with label=$"):
            dataframes.evaluate(remembering, ROWS.drop(columns="place"))
        with pytest.raises(ValueError, match="an evaluation needs true labels: name their column"):
            dataframes.evaluate(remembering, ROWS, label=False)

    def test_text_instead_of_a_list_of_columns(self, remembering):
        expected = r"features must be a list of columns, got the text 'hs': write features=\['hs'\]"
        with pytest.raises(ValueError, match=expected):
            dataframes.fit(DensityRatioHMM(**FIXED), TABLE.set_axis(["h", "s"], axis=1), features="hs")
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
            dataframes.fit(DensityRatioHMM(**FIXED), ROWS.set_index("when"), label="place", time="when")
        with pytest.raises(ValueError, match=r"df has no column 'when', as it is the index: use df.reset_index"):
            dataframes.predict(remembering, ROWS.set_index("when"))

    def test_a_feature_or_label_that_is_the_index(self, remembering):
        for name, call in (
            ("heart", dataframes.predict),
            ("place", partial(dataframes.suggest_labels, label="place")),
        ):
            with pytest.raises(ValueError, match=rf"df has no column '{name}', as it is the index: use df.reset_index"):
                call(remembering, ROWS.set_index(name))
        with pytest.raises(ValueError, match=r"heart missing.*; the index of X has it: use X.reset_index\(\)$"):
            remembering.predict_proba(ROWS.set_index("heart"))

    def test_a_column_without_a_value(self):
        with pytest.raises(ValueError, match="no value in column 'speed': every entry is NaN"):
            dataframes.fit(DensityRatioHMM(**FIXED), TABLE.assign(speed=np.nan, place=STATES), label="place")

    def test_two_columns_with_one_name(self):
        with pytest.raises(ValueError, match="df has two columns with the name 'heart'"):
            dataframes.fit(DensityRatioHMM(**FIXED, n_states=2), TABLE[["heart", "heart"]])

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
            dataframes.fit(DensityRatioHMM(**FIXED), ROWS.assign(still=1.0), label="place", time="when")
        assert {one.filename for one in [*caught, *more]} == {__file__}


QUICK = {"sigma": 1.0, "rho": 0.003, "evidence_scale": 1.0}


@pytest.fixture(scope="module")
def rare():
    return rare_class()


class TestRareClasses:
    SETTINGS: ClassVar = {**QUICK, "n_basis": 20}

    @pytest.mark.parametrize("seed", range(5))
    def test_have_a_centre(self, rare, seed):
        X, y = rare
        fitted = DensityRatioHMM(**self.SETTINGS, random_state=seed).fit(X, y)
        assert (fitted.predict(X[y == 1]) == 1).all()

    def test_have_a_centre_in_the_first_block(self, rare):
        X, y = rare
        fitted = DensityRatioHMM(**self.SETTINGS, random_state=0).partial_fit(X, y)
        assert (fitted.predict(X[y == 1]) == 1).all()

    def test_without_a_centre_near_them_are_named(self):
        """As many places as frames of the class, and no more than five centres."""
        X, y = blobs(0, n_frames=300, n_states=2, separation=0.0)
        X[y == 1] += 50 * np.arange(1, (y == 1).sum() + 1)[:, None]
        with pytest.warns(UserWarning, match="no kernel centre is near the frames of class 1, which"):
            DensityRatioHMM(ratio="least-squares", **QUICK, n_basis=5, standardize=False, random_state=0).fit(X, y)

    def test_without_a_centre_near_them_are_named_in_a_later_block(self):
        X, y = blobs(0, n_frames=300, n_states=2)
        estimator = DensityRatioHMM(ratio="least-squares", **QUICK, n_basis=30, random_state=0).partial_fit(X, y)
        with pytest.warns(UserWarning, match="no kernel centre is near the frames of class 1, which"):
            estimator.partial_fit(X + 1000 * y[:, None], y)


class TestConstantColumns:
    X, Y = blobs(0)
    NEW = blobs(1)[0]
    SETTINGS: ClassVar = {"n_basis": 30, "random_state": 0}

    @pytest.mark.parametrize("value", [0.0, 4.0, -1e9])
    def test_are_as_if_they_were_not_there_even_if_they_change_later(self, value):
        settings = {"ratio": "least-squares", **self.SETTINGS}
        expected = DensityRatioHMM(**settings).fit(self.X, self.Y).predict_proba(self.NEW)
        with pytest.warns(UserWarning, match="X is constant, or differs by rounding only, in column 1: a column"):
            fitted = DensityRatioHMM(**settings).fit(np.insert(self.X, 1, value, axis=1), self.Y)
        switched = np.insert(self.NEW, 1, np.arange(len(self.NEW)) % 2, axis=1)
        assert_allclose(fitted.predict_proba(switched), expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("value", [0.1, 4.0, -1e9])
    def test_say_nothing_to_a_pool_even_if_they_change_later(self, value):
        X = np.insert(self.X, 1, value, axis=1)
        X[::2, 1] = np.nextafter(value, 1)
        with pytest.warns(UserWarning, match="X is constant, or differs by rounding only, in column 1: a column"):
            fitted = DensityRatioHMM(**self.SETTINGS, evidence_scale=[0.5, 0.5, 0.5]).fit(X, self.Y)
        switched = np.insert(self.NEW, 1, np.arange(len(self.NEW)) % 2, axis=1)
        same = np.insert(self.NEW, 1, value, axis=1)
        assert_allclose(fitted.predict_proba(switched), fitted.predict_proba(same), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_that_differ_by_rounding_are_constant(self, kind):
        X = np.insert(self.X, 1, 0.1, axis=1).astype(kind)
        X[::2, 1] = np.nextafter(kind(0.1), kind(1))
        with pytest.warns(UserWarning, match="X is constant"):
            fitted = DensityRatioHMM(**self.SETTINGS).fit(X, self.Y)
        X[:, 1] += kind(1e-6)
        assert fitted.score(X, self.Y) > 0.8

    def test_have_their_names_in_a_table(self):
        table = pd.DataFrame(self.X, columns=["a", "b"]).assign(dead=1.0, off=0.0)
        with pytest.warns(UserWarning, match="in columns 'dead', 'off': a column"):
            DensityRatioHMM(**self.SETTINGS).fit(table, self.Y)

    def test_are_said_once(self):
        with pytest.warns(UserWarning, match="constant") as caught:
            DensityRatioHMM(**self.SETTINGS, window=2).fit(np.insert(self.X, 1, 1.0, axis=1), self.Y)
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_small_differences_far_from_zero_are_none(self):
        fitted = DensityRatioHMM(**self.SETTINGS).fit(1e9 + 1e-3 * self.X, self.Y)
        assert fitted.score(1e9 + 1e-3 * self.X, self.Y) > 0.8


class TestOutliers:
    """One frame of ten thousand in the only column that tells two states apart."""

    Y = np.repeat(np.random.default_rng(0).integers(2, size=50), 10)
    X = np.random.default_rng(1).normal(size=(500, 2)) + 4 * np.outer(Y, [1, 0])
    X[250, 0] = 10_000

    @pytest.mark.slow
    def test_do_not_rule_learning_without_labels(self):
        with pytest.warns(UserWarning, match="X has values in column 0 so far from all others"):
            states = DensityRatioHMM(2, n_basis=100, random_state=0).fit(self.X).predict(self.X)
        agreement = (states == self.Y).mean()
        assert max(agreement, 1 - agreement) > 0.95

    def test_are_none_in_columns_that_are_mostly_one_value(self):
        """A switch that is on in one frame of two hundred has no other standard deviation than that of all."""
        X = np.where(np.arange(500)[:, None] % 200 == 0, 1.0, [0.0, 0.0]) + [[0.0, 1.0]] * self.X
        framing = learn_framing(X, 1, True, resist_outliers=True)
        np.testing.assert_allclose(framing.scale, X.std(axis=0))


class TestUnknownLabels:
    X, Y = blobs(0)
    SETTINGS: ClassVar = {**QUICK, "n_basis": 30, "random_state": 0, "max_iter": 5, "tol": 0.1}

    @pytest.mark.parametrize("missing", ["NA", "nan"])
    def test_text_that_may_stand_for_them_is_named(self, missing):
        labels = np.where(self.Y == 0, missing, "on")
        with pytest.warns(UserWarning, match=rf"y has the class '{missing}' in {(self.Y == 0).sum()} rows; if it"):
            fitted = DensityRatioHMM(**self.SETTINGS).fit(self.X, labels)
        assert missing in fitted.classes_

    @pytest.mark.parametrize("labels", [[-1, 0, 1], [-2, -1, 0]])
    def test_that_may_be_a_class_are_named(self, labels):
        with pytest.warns(UserWarning, match=r"y has -1 in \d+ rows, which stands for an unknown label; if"):
            fitted = DensityRatioHMM(**self.SETTINGS).fit(self.X, np.array(labels)[self.Y])
        assert fitted.classes_.tolist() == [label for label in labels if label != -1]

    def test_are_a_class_where_none_is_unknown(self):
        y = self.Y - 1
        fitted = DensityRatioHMM(**self.SETTINGS, unknown=None).fit(self.X, y)
        assert fitted.classes_.tolist() == [-1, 0, 1]
        assert fitted.score(self.X, y) == np.mean(fitted.predict(self.X) == y)

    @pytest.mark.parametrize(("labels", "unknown"), [([-1, 0, 1], -1), ([-1.0, 0.0, 1.0], -1), (["?", "a", "b"], "?")])
    def test_may_be_any_label(self, labels, unknown):
        y = np.array(labels)[self.Y]
        fitted = DensityRatioHMM(**self.SETTINGS, unknown=unknown).fit(self.X, y)
        assert fitted.classes_.tolist() == labels[1:]
        assert fitted.score(self.X, y) == np.mean(fitted.predict(self.X)[y != unknown] == y[y != unknown])

    def test_among_other_labels_are_no_surprise(self):
        y = np.where(np.arange(len(self.Y)) % 3 == 0, -1, self.Y)
        assert DensityRatioHMM(**self.SETTINGS).fit(self.X, y).classes_.tolist() == [0, 1, 2]


class TestFewFrames:
    X, Y = blobs(0)

    @pytest.mark.parametrize("count", [1, 2])
    def test_of_a_class_are_named(self, count):
        y = np.where(self.Y == 2, 1, self.Y)
        y[50 : 50 + count] = 2
        with pytest.warns(UserWarning, match=rf"fewer than 3 complete frames have the label 2 \({count}\): too few"):
            DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(self.X, y)

    def test_for_the_states_are_named(self):
        with pytest.warns(UserWarning, match="there are 5 complete frames for 3 states"):
            DensityRatioHMM(3, **QUICK, tol=1.0, random_state=0).fit(self.X[:5])

    def test_of_a_state_that_em_left_tiny_are_named(self):
        X = 0.5 * np.random.default_rng(0).normal(size=(100, 1)) + np.repeat([0, 20, 60], [49, 49, 2])[:, None]
        with pytest.warns(UserWarning, match=r"EM ended with fewer than 3 frames of state \d \(2\)"):
            DensityRatioHMM(3, **QUICK, standardize=False, tol=1.0, random_state=0).fit(X)


class TestMissingSamples:
    X, Y = blobs(0)

    def test_that_windows_multiply_are_counted(self):
        X = self.X.copy()
        X[50:110:10, 0] = np.nan
        expected = "36 of 295 frames were left out of learning: 6 of 300 rows of X have a NaN, .* up to window=6 frames"
        with pytest.warns(UserWarning, match=expected):
            DensityRatioHMM(**QUICK, window=6, n_basis=30, random_state=0).fit(X, self.Y)

    def test_of_single_frames_are_counted(self):
        X = self.X.copy()
        X[::2, 0] = np.nan
        expected = "150 of 300 frames were left out of learning: 150 of 300 rows of X have a NaN$"
        with pytest.warns(UserWarning, match=expected):
            DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(X, self.Y)

    def test_of_a_tenth_of_the_frames_are_no_surprise(self):
        X = self.X.copy()
        X[::10, 0] = np.nan
        DensityRatioHMM(**QUICK, n_basis=30, random_state=0).fit(X, self.Y)

    def test_the_first_windows_of_sequences_are_no_surprise(self):
        DensityRatioHMM(**QUICK, window=6, n_basis=30, random_state=0).fit(self.X, self.Y, lengths=[100, 200])
