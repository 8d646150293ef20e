"""Bad input to the estimator: one clear exception each, and nothing changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from drhmm import DensityRatioHMM, ImpossibleDataError
from problems import blobs, two_islands

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
    "one class": ((X, np.zeros(60, int)), {}, "one class only"),
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
        "sequence_id has nan at row 7: there is no",
    ),
    "an id that is None": ((X, Y), {"sequence_id": [1] * 3 + [None] * 57}, "sequence_id has None at row 3"),
    "an id that is NaN among text": ((X, Y), {"sequence_id": ["a"] * 59 + [np.nan]}, "sequence_id has nan at row 59"),
    "an id that is no time": ((X, Y), {"sequence_id": np.full(60, "NaT", "M8[s]")}, "sequence_id has NaT at row 0"),
    "ids of truth and numbers": ((X, Y), {"sequence_id": [True] * 30 + [1] * 30}, "sequence_id has 1 at row 30 beside"),
    "ids that are lists": ((X, Y), {"sequence_id": np.array([[1]] * 60 + [None], dtype=object)[:60]}, "told apart"),
    "truth beside numbers": ((X, [*(Y[:59] > 0).tolist(), 2]), {}, "y has 2 at row 59 beside True and False"),
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


SETTINGS = {
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
    [(name, value, message) for name, cases in SETTINGS.items() for value, message in cases],
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

    def test_a_label_of_another_kind(self, fitted):
        with pytest.raises(ValueError, match="never seen in training"):
            fitted.score(X, np.array(["a"] * 60))

    def test_impossible_data(self):
        model = two_islands()
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 1\)"):
            model.predict(np.array([[0.0], [5.0]]))
        with pytest.raises(ImpossibleDataError, match=r"time step 1 of sequence 0 \(row 2\)"):
            model.predict(np.array([[0.0], [5.0], [5.0]]), sequence_id=[0, 1, 0])
