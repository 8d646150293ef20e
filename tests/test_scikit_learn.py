"""At home in scikit-learn: its own checks, pipelines, searches, cross-validation, calibration and routing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from drhmm import DensityRatioHMM
from drhmm.ratios import FromClassifier
from problems import blobs

# Fixed settings: what is tested here is the plumbing.
SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}

# Three checks, two reasons: rows are a sequence, and transitions are counted without weights.
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "rows are frames of a sequence: their order matters",
    "check_methods_subset_invariance": "rows are frames of a sequence: a frame is judged with its neighbours",
    "check_sample_weight_equivalence_on_dense_data": "repeating a row makes a longer sequence: transitions are counted "
    "without weights",
}


class TestChecks:
    @pytest.mark.slow
    @pytest.mark.filterwarnings("default")
    def test_all_checks_pass_but_those_that_shuffle_or_weigh_rows(self):
        results = check_estimator(
            DensityRatioHMM(n_basis=30), expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
        )
        # A check may come several times, with other arguments: every one counts.
        statuses = {(result["check_name"], result["status"]) for result in results}
        assert len(results) > 40
        assert {name for name, status in statuses if status == "xfail"} == set(EXPECTED_FAILURES)
        assert {name for name, status in statuses if status not in ("passed", "skipped", "xfail")} == set()

    def test_names_of_columns_are_checked_as_scikit_learn_does(self):
        from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency

        check_dataframe_column_names_consistency("DensityRatioHMM", DensityRatioHMM(n_basis=30))

    def test_labels_are_required_unless_the_number_of_states_is_given(self):
        assert get_tags(DensityRatioHMM()).target_tags.required
        assert not get_tags(DensityRatioHMM(3)).target_tags.required
        assert get_tags(DensityRatioHMM()).input_tags.allow_nan

    def test_a_column_of_labels_is_taken_with_a_warning(self):
        X, y = blobs(0)
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            column = DensityRatioHMM(**SETTINGS).fit(X, y[:, None])
        assert_array_equal(column.theta_, DensityRatioHMM(**SETTINGS).fit(X, y).theta_)


@pytest.fixture(scope="module")
def sequences():
    """Six labelled sequences of 50 frames, with the sequence of each row."""
    X, y = blobs(3, n_frames=300)
    return X, y, np.repeat(np.arange(6), 50)


class TestCopies:
    def test_a_clone_is_not_fitted_and_learns_the_same(self, sequences):
        X, y, groups = sequences
        fitted = DensityRatioHMM(**SETTINGS).fit(X, y, sequence_id=groups)
        again = clone(fitted)
        assert not hasattr(again, "model_")
        assert_array_equal(again.fit(X, y, sequence_id=groups).theta_, fitted.theta_)

    def test_pickle_keeps_the_answers(self, sequences):
        X, y, groups = sequences
        fitted = DensityRatioHMM(**SETTINGS).fit(X, y, sequence_id=groups)
        loaded = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(loaded.predict_proba(X, sequence_id=groups), fitted.predict_proba(X, sequence_id=groups))


class TestPipelines:
    def test_a_scaler_before_it_is_the_same_as_its_own(self, sequences):
        X, y, groups = sequences
        pipeline = make_pipeline(StandardScaler(), DensityRatioHMM(standardize=False, **SETTINGS))
        pipeline.fit(X, y, densityratiohmm__sequence_id=groups)
        own = DensityRatioHMM(**SETTINGS).fit(X, y, sequence_id=groups)
        assert_allclose(pipeline.predict_proba(X), own.predict_proba(X), atol=1e-9)

    def test_metadata_are_routed_through_a_pipeline(self, sequences):
        X, y, groups = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(**SETTINGS).set_fit_request(sequence_id=True).set_predict_request(sequence_id=True)
            pipeline = make_pipeline(StandardScaler(), hmm).fit(X, y, sequence_id=groups)
            routed = pipeline.predict(X, sequence_id=groups)
        plain = DensityRatioHMM(**SETTINGS).fit(X, y, sequence_id=groups)
        assert_array_equal(routed, plain.predict(X, sequence_id=groups))


def count_fits(monkeypatch):
    """What every fit and every score were given beside X and y."""
    calls = {"fit": [], "score": []}
    for name, seen in calls.items():
        original = getattr(DensityRatioHMM, name)

        def spy(self, X, y=None, *, _original=original, _seen=seen, **metadata):
            _seen.append({key: np.array(value) for key, value in metadata.items() if value is not None})
            return _original(self, X, y, **metadata)

        monkeypatch.setattr(DensityRatioHMM, name, spy)
    return calls


class TestSearches:
    def test_a_grid_search_over_whole_sequences(self, sequences, monkeypatch):
        X, y, groups = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(ratio="least-squares", **SETTINGS)
            hmm.set_fit_request(sequence_id=True, sample_weight=True)
            hmm.set_score_request(sequence_id=True, sample_weight=False)
            search = GridSearchCV(hmm, {"sigma": [0.01, 1.0]}, cv=GroupKFold(3), refit=False)
            calls = count_fits(monkeypatch)
            search.fit(X, y, groups=groups, sequence_id=groups, sample_weight=np.full(300, 2.0))
        assert search.best_params_ == {"sigma": 1.0}
        assert len(calls["fit"]) == len(calls["score"]) == 6
        for fit, score in zip(calls["fit"], calls["score"], strict=True):
            assert set(fit) == {"sequence_id", "sample_weight"}
            assert set(score) == {"sequence_id"}
            assert len(np.unique(fit["sequence_id"])) == 4
            assert len(np.unique(score["sequence_id"])) == 2

    def test_cross_validation_scores_are_those_of_a_loop(self, sequences):
        X, y, groups = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(**SETTINGS).set_fit_request(sequence_id=True).set_score_request(sequence_id=True)
            scores = cross_validate(hmm, X, y, cv=GroupKFold(3), params={"groups": groups, "sequence_id": groups})
        expected = [
            DensityRatioHMM(**SETTINGS)
            .fit(X[train], y[train], sequence_id=groups[train])
            .score(X[test], y[test], sequence_id=groups[test])
            for train, test in GroupKFold(3).split(X, y, groups)
        ]
        assert_allclose(scores["test_score"], expected)

    def test_lengths_can_be_routed_where_rows_are_not_split(self, sequences):
        X, y, _ = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(**SETTINGS).set_fit_request(lengths=True)
            routed = make_pipeline(StandardScaler(), hmm).fit(X, y, lengths=[50] * 6)[-1]
        assert_array_equal(routed.transmat_, DensityRatioHMM(**SETTINGS).fit(X, y, lengths=[50] * 6).transmat_)

    def test_lengths_that_a_split_has_made_wrong_are_an_error(self, sequences):
        X, y, groups = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(**SETTINGS).set_fit_request(lengths=True).set_score_request(lengths=False)
            with pytest.raises(ValueError, match="lengths sum to 300, but there are 200 rows"):
                cross_validate(
                    hmm,
                    X,
                    y,
                    cv=GroupKFold(3),
                    params={"groups": groups, "lengths": [50] * 6},
                    error_score="raise",
                )


class TestHeldOut:
    @pytest.mark.slow
    def test_cross_val_predict_by_sequences_is_exact(self, sequences):
        # It passes nothing to predict: held-out rows are one sequence, as they are when one sequence is held out.
        X, y, groups = sequences
        with sklearn.config_context(enable_metadata_routing=True):
            hmm = DensityRatioHMM(**SETTINGS).set_fit_request(sequence_id=True)
            held_out = cross_val_predict(
                hmm,
                X,
                y,
                cv=LeaveOneGroupOut(),
                params={"groups": groups, "sequence_id": groups},
                method="predict_proba",
            )
        for k in range(6):
            others = groups != k
            fitted = DensityRatioHMM(**SETTINGS).fit(X[others], y[others], sequence_id=groups[others])
            assert_allclose(held_out[~others], fitted.predict_proba(X[~others]))

    def test_probabilities_can_be_calibrated_on_held_out_sequences(self, sequences):
        X, y, groups = sequences
        folds = list(LeaveOneGroupOut().split(X, y, groups))
        calibrated = CalibratedClassifierCV(DensityRatioHMM(**SETTINGS), cv=folds, ensemble=False)
        calibrated.fit(X, y, sequence_id=groups)
        probabilities = calibrated.predict_proba(X[:50])
        assert_allclose(probabilities.sum(axis=1), 1)
        assert np.mean(calibrated.predict(X[:50]) == y[:50]) > 0.9

    @pytest.mark.slow
    def test_a_calibrated_classifier_can_be_the_evidence(self, sequences):
        X, y, groups = sequences
        evidence = FromClassifier(CalibratedClassifierCV(LogisticRegression(), cv=3))
        hmm = DensityRatioHMM(ratio=evidence, random_state=0).fit(X, y, sequence_id=groups)
        assert hmm.score(X, y, sequence_id=groups) > 0.9
