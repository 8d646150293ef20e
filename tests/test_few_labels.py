"""Few labels: rows without one are used only where that helps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from drhmm import DensityRatioHMM
from drhmm.chain.transitions import chain_rules
from drhmm.cli import main
from drhmm.datasets import accelerometer, blobs, rings
from drhmm.learning.em_starts import best_starts, starts_from_features
from drhmm.learning.few_labels import _comparison, _folds, _runs
from drhmm.learning.labelled import Job
from drhmm.learning.training_frames import TrainingFrames

pytestmark = [
    pytest.mark.filterwarnings("ignore:fewer than 3 complete frames"),
    pytest.mark.filterwarnings("ignore:y has -1"),
]


def labels_of(y, per_state, seed=0):
    random = np.random.RandomState(seed)
    known = np.concatenate([random.choice(np.flatnonzero(y == state), per_state, False) for state in np.unique(y)])
    return np.where(np.isin(np.arange(len(y)), known), y, -1)


def misleading(n=400, seed=0):
    """Clusters of the first column are plain to see and say nothing; the labels are about the second."""
    random = np.random.RandomState(seed)
    y, cluster = np.repeat(np.arange(n // 20) % 2, 20), np.repeat(random.randint(2, size=n // 5), 5)
    return np.stack([10 * cluster + random.normal(size=n), y + 0.7 * random.normal(size=n)], axis=1), y


def training_frames(codes, n_states, lengths=None, window=1):
    from drhmm.data.sequences import as_sequences
    from drhmm.features.frames import learn_framing

    X = np.random.default_rng(0).normal(size=(len(codes), 2))
    sequences = as_sequences(X, lengths)
    return TrainingFrames(sequences, learn_framing(X, window, True), np.array(codes), n_states, None)


class TestDecision:
    @pytest.mark.slow
    def test_rows_without_labels_are_used_where_they_help(self):
        X, y = rings(600, random_state=0)
        fitted = DensityRatioHMM(n_basis=80, random_state=0).fit(X, labels_of(y, 5))
        assert fitted.score(X, y) > 0.97
        assert fitted.unlabelled_reason_.startswith(
            "unlabelled rows were used: hidden labels are predicted better with them, loss 0."
        )

    def test_rows_without_labels_are_not_used_where_they_mislead(self):
        X, y = misleading()
        labels = np.where(np.arange(400) % 100 < 40, y, -1)
        auto, use = (
            DensityRatioHMM(random_state=0, unlabelled=name, context=None).fit(X, labels) for name in ("auto", "use")
        )
        assert auto.unlabelled_reason_.startswith("unlabelled rows were not used: hidden labels are predicted better")
        assert auto.score(X, y) > use.score(X, y) + 0.05
        assert auto.unlabelled_reason_ in auto.model_.summary()

    @pytest.mark.slow
    @pytest.mark.parametrize("make", [rings, misleading])
    def test_the_decision_gives_the_model_that_asking_for_it_gives(self, make):
        X, y = make(400)
        labels = labels_of(y, 5)
        auto = DensityRatioHMM(random_state=0).fit(X, labels)
        asked = "ignore" if "not used" in auto.unlabelled_reason_ else "use"
        same = DensityRatioHMM(random_state=0, unlabelled=asked).fit(X, labels)
        assert_array_equal(auto.predict_proba(X), same.predict_proba(X))

    @pytest.mark.parametrize(
        ("em", "use", "reason"),
        [
            ([0.1, 0.1, 0.3, 0.3], True, "hidden labels are predicted better with them, loss 0.20 against 1.00"),
            (
                [0.0, 0.0, 0.3, 0.7],
                False,
                "hidden labels of a state are predicted badly with them, loss 0.50 above 0.4",
            ),
            ([1.0, 1.0, 1.0, 1.0], False, "hidden labels are predicted better without them, loss 1.00 against 1.00"),
        ],
    )
    def test_every_state_is_predicted_well(self, em, use, reason):
        assert _comparison(np.array([em, np.ones(4)]), np.array([0, 0, 1, 1])) == (use, reason)

    def test_too_few_stretches_to_compare(self):
        X, y = blobs(300, random_state=0)
        labels = np.full(300, -1)
        for state in range(3):
            labels[np.flatnonzero(y == state)[0]] = state
        fitted = DensityRatioHMM(random_state=0).fit(X, labels)
        assert fitted.unlabelled_reason_ == (
            "unlabelled rows were not used: a state has too few labels to hide some of them"
        )
        assert fitted.history_ == []

    def test_unknown_value(self):
        with pytest.raises(ValueError, match="unlabelled must be one of 'auto', 'use', 'ignore', got 'never'"):
            DensityRatioHMM(unlabelled="never").fit(np.zeros((4, 1)), [0, 0, 1, 1])

    def test_all_labels_or_none_need_no_decision(self):
        X, y = blobs(200, random_state=0)
        for labels in (y, None):
            assert DensityRatioHMM(3, n_basis=20, random_state=0).fit(X, labels).unlabelled_reason_ == ""


class TestLabelledRowsAlone:
    def test_is_the_fit_of_these_rows_with_each_stretch_a_sequence(self):
        X, y = blobs(600, random_state=0)
        labels = np.where(np.arange(600) % 100 < 60, y, -1)
        alone = DensityRatioHMM(random_state=0, standardize=False, context=None, unlabelled="ignore").fit(X, labels)
        kept = labels >= 0
        same = DensityRatioHMM(random_state=0, standardize=False, context=None, durations="geometric").fit(
            X[kept], y[kept], lengths=[60] * 6
        )
        np.testing.assert_allclose(alone.predict_proba(X), same.predict_proba(X), atol=1e-9)

    def test_one_unknown_label_keeps_the_context(self):
        X, y = accelerometer(1500, random_state=0)
        new, truth = accelerometer(1500, random_state=1)
        labels = np.array(y, dtype=object)
        labels[700] = None
        complete, partly = (DensityRatioHMM(random_state=0).fit(X, list(known)) for known in (y, labels))
        assert partly.unlabelled_reason_.startswith("unlabelled rows were not used")
        assert partly.score(new, truth) > complete.score(new, truth) - 0.02

    def test_the_context_sees_the_rows_between_labels(self):
        codes = np.repeat([0, -1, 1, 0, -1, 1], 10)
        whole = training_frames(codes, 2, [30, 30]).taken(codes >= 0).whole
        assert whole.lengths == [30, 30]
        assert_array_equal(whole.rows, np.flatnonzero(codes >= 0))
        assert_array_equal(whole.codes, codes)

    def test_transitions_of_single_labels_come_from_all_rows(self):
        X, y = blobs(600, random_state=0)
        fitted = DensityRatioHMM(random_state=0, unlabelled="ignore").fit(X, labels_of(y, 5))
        assert (np.diagonal(fitted.transmat_) > 0.8).all()

    def test_frames_reach_back_to_rows_without_labels(self):
        training = training_frames([-1, -1, 0, -1, 1, 1, -1, -1], 2, window=2)
        alone = training.taken(training.codes >= 0)
        assert alone.lengths == [1, 2]
        assert_array_equal(alone.frames, training.frames[[1, 3, 4]])
        assert_array_equal(alone.codes, [0, 1, 1])

    def test_weights_and_novelty(self):
        X, y = blobs(400, random_state=0)
        labels = np.where(np.arange(400) % 100 < 50, y, -1)
        settings = {"random_state": 0, "unlabelled": "ignore", "novelty": True}
        one, two = (
            DensityRatioHMM(**settings).fit(X, labels, sample_weight=np.full(400, weight)).predict_proba(X)
            for weight in (1.0, 2.0)
        )
        np.testing.assert_allclose(one, two, atol=1e-6)


class TestRuns:
    def test_runs_end_with_their_state_and_their_sequence(self):
        training = training_frames([0, 0, 1, -1, 1, 1, 0, 0], 2, lengths=[5, 3])
        assert_array_equal(_runs(training), [0, 0, 1, -1, 2, 3, 4, 4])

    def test_the_only_run_of_a_state_is_halved(self):
        training = training_frames([0, 0, 0, 0, -1, 1, 1, -1], 2)
        run = _runs(training)
        assert_array_equal(run, [0, 0, 1, 1, -1, 2, 3, -1])
        assert_array_equal(_folds(run, training), [0, 0, 1, 1, -1, 0, 1, -1])

    def test_a_state_with_a_single_label_cannot_be_hidden(self):
        training = training_frames([0, 0, -1, 1, -1], 2)
        assert _folds(_runs(training), training) is None


def test_the_start_of_the_labels_is_always_followed():
    _, y = rings(200, random_state=0)
    training = training_frames(labels_of(y, 3), 3)
    learner, settings = SimpleNamespace(), SimpleNamespace(n_init=1, paper=False, n_threads=1)
    job = Job(learner, training, chain_rules(1.0, None, None, 3), settings)
    candidates = starts_from_features(job, np.random.RandomState(0))
    worst = candidates[-1]
    learner.updates = lambda task, **_: (
        lambda targets: np.where(np.abs(targets - worst).sum() < 1e-9, -5.0, 0.0) + np.zeros_like(targets)
    )
    seen = best_starts(job, candidates, 2, 1)
    assert len(seen) == 2
    assert any(np.array_equal(start, worst) for start in seen)


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_says_whether_rows_without_labels_were_used(tmp_path, capsys):
    X, y = misleading()
    lines = ["a,b,state"]
    for k, (row, state) in enumerate(zip(X, y, strict=True)):
        lines.append(f"{row[0]},{row[1]},{'xy'[state] if k % 100 < 40 else ''}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    command = [
        "fit",
        str(tmp_path / "data.csv"),
        "--label",
        "state",
        "--holdout",
        "0",
        "--output",
        str(tmp_path / "m.npz"),
    ]
    assert main([*command, "--unlabelled", "auto"]) == 0
    assert "unlabelled rows were not used" in capsys.readouterr().out
