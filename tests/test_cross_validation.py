"""Cross-validation over sequences: the same as by hand, nothing leaks, and hints where sequences differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm import DensityRatioHMM, cross_validate, dataframes, evaluate
from drhmm.judging.cross_validation import sequence_folds
from problems import blobs

X, Y = blobs(3, n_frames=400, separation=1.5)
LABELS = np.array(["rest", "walk", "run"])[Y]
PEOPLE = np.repeat(["ann", "bob", "cem", "dora"], 100)
SETTINGS = {"n_basis": 20, "sigma": 1.0, "rho": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def estimator():
    return DensityRatioHMM(**SETTINGS)


@pytest.fixture(scope="module")
def found(estimator):
    return cross_validate(estimator, X, LABELS, sequence_id=PEOPLE)


class TestFigures:
    def test_are_those_of_every_sequence_held_out_by_hand(self, found, estimator):
        for name in np.unique(PEOPLE):
            own = name == PEOPLE
            model = DensityRatioHMM(**SETTINGS).fit(X[~own], LABELS[~own], sequence_id=PEOPLE[~own])
            assert_allclose(found.posteriors[own], model.predict_proba(X[own]))
            assert found.sequence_accuracies[name] == evaluate(model, X[own], LABELS[own]).accuracy
        assert not hasattr(estimator, "model_")

    def test_the_accuracy_of_every_method_is_there(self, found, estimator):
        for method, accuracy in found.method_accuracies.items():
            assert cross_validate(estimator, X, LABELS, sequence_id=PEOPLE, method=method).accuracy == accuracy

    def test_the_model_has_learned_from_all_rows(self, found):
        expected = DensityRatioHMM(**SETTINGS).fit(X, LABELS, sequence_id=PEOPLE).model_
        assert found.model.fingerprint == expected.fingerprint

    def test_interleaved_rows_are_put_together(self, found, estimator):
        order = np.argsort(np.tile(np.arange(100), 4), kind="stable")
        mixed = cross_validate(estimator, X[order], LABELS[order], sequence_id=PEOPLE[order])
        assert_allclose(mixed.posteriors, found.posteriors)

    def test_lists_and_lengths_are_the_same(self, found, estimator):
        parts = cross_validate(estimator, np.split(X, 4), np.split(LABELS, 4))
        whole = cross_validate(estimator, X, LABELS, lengths=[100] * 4)
        assert_allclose(parts.posteriors, found.posteriors)
        assert_allclose(whole.posteriors, found.posteriors)
        assert list(whole.sequence_accuracies) == [0, 1, 2, 3]

    def test_a_gap_ends_a_sequence_in_learning_only(self, estimator):
        dt = np.where(np.arange(400) % 100 == 50, 7, 1)
        own = PEOPLE == "bob"
        gaps = cross_validate(estimator, X, LABELS, sequence_id=PEOPLE, dt=dt)
        model = DensityRatioHMM(**SETTINGS).fit(X[~own], LABELS[~own], lengths=[50] * 6)
        assert_allclose(gaps.posteriors[own], model.predict_proba(X[own], dt=dt[own]))

    def test_print_with_sequences_and_methods(self, found):
        text = str(found)
        for words in ("each of 4 sequences held out in turn", "filtered", "without the chain", "dora"):
            assert words in text
        assert found.as_dict()["sequences"]["ann"] == {"n_frames": 100, "accuracy": found.sequence_accuracies["ann"]}

    def test_a_label_of_one_sequence_only_counts_as_wrong(self, estimator):
        labels = np.where((PEOPLE == "ann") & (np.arange(400) < 20), "swim", LABELS)
        with pytest.warns(UserWarning, match="the label swim is in one held-out part only"):
            lost = cross_validate(estimator, X, labels, sequence_id=PEOPLE)
        assert lost.recall[lost.labels.index("swim")] == 0


class TestFolds:
    def test_ten_sequences_are_held_out_one_by_one_and_eleven_in_five_parts(self):
        for number, parts in ((10, 10), (11, 5)):
            folds, _ = sequence_folds([3] * number, None, np.random.RandomState(0))
            assert len(np.unique(folds)) == parts

    def test_a_sequence_is_never_divided(self):
        folds, _ = sequence_folds([3, 4, 5, 6], 2, np.random.RandomState(0))
        assert all(len(np.unique(part)) == 1 for part in np.split(folds, [3, 7, 12]))

    def test_a_single_sequence_is_cut_into_blocks(self, estimator):
        blocks = cross_validate(estimator, X, LABELS, n_folds=4)
        own = slice(100, 200)
        rest = np.r_[0:100, 200:400]
        model = DensityRatioHMM(**SETTINGS).fit(X[rest], LABELS[rest], lengths=[100, 200])
        assert_allclose(blocks.posteriors[own], model.predict_proba(X[own]))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_folds": 1}, "n_folds must be at least 2, got 1"),
            ({"n_folds": 5}, "n_folds is 5, but there are 4 sequences"),
            ({"estimator": "hmm"}, "estimator must be a DensityRatioHMM, got str"),
        ],
    )
    def test_what_cannot_be_is_told(self, estimator, arguments, message):
        given = {"estimator": estimator, "X": X, "y": LABELS, "sequence_id": PEOPLE} | arguments
        with pytest.raises(ValueError, match=message):
            cross_validate(**given)

    def test_a_part_that_nothing_can_be_learned_without_is_told(self, estimator):
        labels = np.where(PEOPLE == "ann", "rest", "walk")
        with (
            pytest.warns(UserWarning, match="the label rest is in one held-out part only"),
            pytest.raises(ValueError, match=r"without the held-out part \d: y has one class only"),
        ):
            cross_validate(estimator, X, labels, sequence_id=PEOPLE)


class TestTables:
    def test_of_columns_are_those_of_arrays(self, found, estimator):
        df = pd.DataFrame({"person": PEOPLE, "a": X[:, 0], "b": X[:, 1], "label": LABELS, "t": np.arange(400)})
        table = dataframes.cross_validate(estimator, df, label="label", sequence="person", time="t")
        assert_allclose(table.posteriors, found.posteriors)
        assert table.sequence_accuracies == found.sequence_accuracies
        assert table.model.settings["columns"] == {"label": "label", "sequence": "person", "time": "t"}


class TestHint:
    def test_smoothing_that_does_harm_says_what_to_try(self, found):
        poor = replace(found, method_accuracies={"smooth": 0.5, "filter": 0.52, "frame": 0.6})
        assert "50.0 % smoothed is below 60.0 % without the chain" in poor.hint
        assert "standardised per sequence" in str(poor).splitlines()[-1]

    @pytest.mark.parametrize("filtered", [0.4, 0.505])
    def test_smoothing_that_does_no_harm_says_nothing(self, found, filtered):
        assert replace(found, method_accuracies={"smooth": 0.5, "filter": filtered, "frame": 0.3}).hint is None

    def test_a_single_sequence_has_no_hint(self, found):
        one = replace(found, sequence_names=None, method_accuracies={"smooth": 0.5, "filter": 0.6, "frame": 0.6})
        assert one.hint is None


def test_a_named_sequence_has_its_accuracy_in_an_evaluation(found):
    ids = PEOPLE[:200]
    one = evaluate(found.model, X[:200], LABELS[:200], sequence_id=ids)
    right = found.model.predict(X[:200], sequence_id=ids) == LABELS[:200]
    assert_array_equal(list(one.sequence_accuracies.values()), [right[:100].mean(), right[100:].mean()])
