"""How good a model is: the figures against scikit-learn, segments counted by hand, and the page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import date2num
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics

from drhmm import DensityRatioHMM, dataframes, evaluate, plotting
from drhmm.data.sequences import Sequences
from drhmm.judging import report
from drhmm.judging.evaluation import evaluation_of
from drhmm.judging.report import worst_stretches
from problems import blobs

X, Y = blobs(3, n_frames=600, separation=1.0)
LABELS = np.array(["rest", "<walk>", "run"])[Y]
SETTINGS = {"n_basis": 30, "sigma": 1.0, "rho": 0.01, "random_state": 0}


def figures_of(model, samples, posteriors, truth, lengths):
    return evaluation_of(model, Sequences(samples, lengths, np.float64), {"smooth": posteriors}, truth, "smooth")


@pytest.fixture(scope="module")
def fitted():
    return DensityRatioHMM(**SETTINGS).fit(X[:300], LABELS[:300])


@pytest.fixture(scope="module")
def evaluation(fitted):
    return evaluate(fitted, X[300:], LABELS[300:], lengths=[100, 200])


class TestFigures:
    def test_are_those_of_scikit_learn(self, fitted, evaluation):
        truth, predicted = LABELS[300:], fitted.predict(X[300:], lengths=[100, 200])
        posteriors = fitted.predict_proba(X[300:], lengths=[100, 200])
        assert evaluation.accuracy == metrics.accuracy_score(truth, predicted)
        assert evaluation.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))
        assert evaluation.log_loss == pytest.approx(metrics.log_loss(truth, posteriors, labels=fitted.classes_))
        assert_array_equal(evaluation.confusion, metrics.confusion_matrix(truth, predicted))
        found = metrics.precision_recall_fscore_support(truth, predicted)
        assert_allclose([evaluation.precision, evaluation.recall, evaluation.f1], found[:3])

    def test_the_baseline_is_always_the_most_frequent_class(self, evaluation):
        classes, counts = np.unique(LABELS[300:], return_counts=True)
        assert evaluation.baseline == counts.max() / 300
        assert f"always {classes[counts.argmax()]}" in str(evaluation)
        assert evaluation.as_dict()["baseline"] == evaluation.baseline

    def test_calibration_is_that_of_the_picture(self, fitted, evaluation):
        posteriors = fitted.predict_proba(X[300:], lengths=[100, 200])
        expected = plotting.calibration_error(LABELS[300:], posteriors, names=fitted.classes_)
        assert evaluation.calibration_error == pytest.approx(expected)

    @pytest.mark.parametrize("method", ["smooth", "filter", "frame"])
    def test_accuracy_is_the_score_of_every_method(self, fitted, method):
        found = evaluate(fitted.model_, X[300:], LABELS[300:], method=method)
        assert found.accuracy == fitted.score(X[300:], LABELS[300:], method=method)

    def test_the_accuracy_of_every_method_is_told(self, fitted, evaluation):
        for method, accuracy in evaluation.method_accuracies.items():
            assert accuracy == fitted.score(X[300:], LABELS[300:], lengths=[100, 200], method=method)
        assert list(evaluation.method_accuracies) == ["smooth", "filter", "frame"]

    def test_the_range_over_sequences_is_told(self, fitted):
        found = evaluate(fitted, X[300:], LABELS[300:], sequence_id=np.repeat(["a", "b"], [100, 200]))
        low, high = sorted(found.sequence_accuracies.values())
        assert ["by sequence", f"{100 * low:.1f} % to {100 * high:.1f} %"] in found.tables()[0].rows

    @pytest.mark.parametrize(("rows", "share"), [(slice(300), 1.0), (slice(300, 600), 0.0), (slice(150, 450), 0.5)])
    def test_rows_that_were_learned_from_are_noticed(self, fitted, rows, share):
        found = evaluate(fitted, X[rows], LABELS[rows])
        assert found.learned_share == pytest.approx(share, abs=0.15)
        assert ("the model learned from about" in str(found)) == (share > 0)

    def test_a_signal_that_rests_is_not_taken_for_rows_of_training(self):
        steps = np.column_stack([np.repeat(Y % 2, 5), np.repeat(Y % 2, 5) + 1.0])
        model = DensityRatioHMM(**SETTINGS, context=None).fit(steps[:900], np.repeat(LABELS, 5)[:900])
        assert evaluate(model, steps[900:], np.repeat(LABELS, 5)[900:]).learned_share == 0

    def test_segments_end_at_changes_and_at_sequences(self, fitted):
        truth = np.array([0, 0, 1, 1, 1, 1, 1, 2])
        posteriors = np.eye(3)[[0, 0, 0, 1, 1, 1, 1, 1]]
        found = figures_of(fitted.model_, X[:8], posteriors, truth, [4, 4])
        assert_array_equal(found.true_segments, [1, 2, 1])
        assert_allclose(found.true_stays, [2, 5 / 2, 1])
        assert_array_equal(found.predicted_segments, [1, 2, 0])
        assert_allclose(found.predicted_stays[:2], [3, 5 / 2])
        assert np.isnan(found.predicted_stays[2])

    def test_unknown_labels_between_equal_ones_belong_to_the_segment(self, fitted):
        truth = np.array([0, -1, 0, -1, 1, -1, -1, 1, -1, 1])
        posteriors = np.eye(3)[[0, 0, 0, 2, 0, 0, 1, 1, 2, 1]]
        found = figures_of(fitted.model_, X[:10], posteriors, truth, [9, 1])
        assert_array_equal(found.true_segments, [1, 2, 0])
        assert_allclose(found.true_stays[:2], [3, 5 / 2])
        assert_array_equal(found.predicted_segments, [1, 2, 0])
        assert_allclose(found.predicted_stays[:2], [6, 3 / 2])
        assert "time steps without a label count only between equal labels" in str(found)

    def test_unknown_labels_are_left_out(self, fitted):
        labels = LABELS[300:].astype(object)
        labels[::3] = None
        found = evaluate(fitted, X[300:], labels)
        assert (found.n_frames, found.n_left_out) == (200, 100)

    def test_rows_of_interleaved_sequences_are_put_in_order(self, fitted):
        ids = np.arange(300) % 2
        found = evaluate(fitted, X[300:], LABELS[300:], sequence_id=ids)
        assert found.accuracy == fitted.score(X[300:], LABELS[300:], sequence_id=ids)

    def test_nothing_to_compare_with_is_refused(self, fitted):
        with pytest.raises(ValueError, match="y has no known label"):
            evaluate(fitted, X[:5], [None] * 5)

    def test_print_as_tables(self, evaluation):
        text = str(evaluation)
        assert f"accuracy           {100 * evaluation.accuracy:.1f} %" in text
        assert "true length" in text
        assert "&lt;walk&gt;" in evaluation._repr_html_()

    def test_fit_json(self, evaluation):
        content = evaluation.as_dict()
        assert content["classes"] == ["<walk>", "rest", "run"]
        assert content["confusion"] == evaluation.confusion.tolist()


class Page(HTMLParser):
    """Pictures, links and headings of a page whose tags are all closed."""

    EMPTY = frozenset({"meta", "link", "img", "br"})

    def __init__(self):
        super().__init__()
        self.open, self.images, self.addresses, self.headings, self.tags = [], [], [], [], set()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        self.addresses += [attributes[name] for name in ("src", "href", "action") if name in attributes]
        if tag == "img":
            self.images.append(attributes)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.mark.slow
class TestPage:
    @pytest.fixture(scope="class")
    @classmethod
    def text(cls, tmp_path_factory):
        fitted = DensityRatioHMM(**SETTINGS).fit(X[:300], LABELS[:300])
        path = tmp_path_factory.mktemp("page") / "report.html"
        evaluate(fitted, X[300:], LABELS[300:], lengths=[100, 200]).save_html(path, title="A & B")
        return path.read_text()

    @pytest.fixture
    def page(self, text):
        page = Page()
        page.feed(text)
        return page

    def test_is_complete(self, page):
        assert page.open == []
        assert page.headings == [
            "A & B",
            "Labels",
            "Posteriors under the signal",
            "Detection and calibration",
            "Transitions",
            "Worst stretches",
            "The model",
        ]

    def test_needs_no_network_and_runs_no_code(self, page, text):
        assert all(address.startswith("data:") for address in page.addresses)
        assert "script" not in page.tags
        assert not re.search(r"url\(|@import", text)

    def test_every_picture_says_what_it_shows(self, page):
        assert len(page.images) >= 5
        assert all(len(image["alt"]) > 30 for image in page.images)

    def test_fits_a_phone(self, text):
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_the_page_names_the_sequence_of_a_stretch(fitted, tmp_path):
    people = np.repeat(["Ann", "Eve"], [100, len(X) - 400])
    evaluate(fitted, X[300:], LABELS[300:], sequence_id=people).save_html(tmp_path / "report.html")
    assert re.search(r"stretch[^.]*: sequence (Ann|Eve), time steps", (tmp_path / "report.html").read_text())


def test_worst_stretches_hold_the_worst_frames(fitted):
    truth = np.zeros(1000, dtype=np.int64)
    posteriors = np.tile([0.9, 0.05, 0.05], (1000, 1))
    posteriors[640:650] = [0.01, 0.98, 0.01]
    posteriors[100] = [0.3, 0.6, 0.1]
    samples = np.random.default_rng(0).normal(size=(1000, 2))
    found = worst_stretches(figures_of(fitted.model_, samples, posteriors, truth, [400, 600]))
    assert found == [(580, 710), (40, 161)]


def test_errors_that_would_be_in_one_picture_are_one_stretch(fitted):
    truth, posteriors = np.zeros(1000, dtype=np.int64), np.tile([0.9, 0.05, 0.05], (1000, 1))
    posteriors[[10, 100, 180, 405, 600, 800, 999]] = [0.05, 0.9, 0.05]
    found = worst_stretches(figures_of(fitted.model_, np.zeros((1000, 2)), posteriors, truth, [400, 600]))
    assert found == [(0, 241), (400, 466), (540, 661)]


@pytest.fixture(scope="module")
def lasting_page(tmp_path_factory):
    """The page of a model whose states last, on rows with dates."""
    y = np.tile(np.repeat([0, 1, 2], 50), 6)
    noise = np.random.default_rng(0).normal(size=(900, 2))
    table = pd.DataFrame(y[:, None] + noise, columns=["a", "b"]).assign(
        when=pd.date_range("2026-01-01", periods=900, freq="min"), y=y
    )
    estimator = dataframes.fit(DensityRatioHMM(**SETTINGS, context=None), table[:600], label="y", time="when")
    path = tmp_path_factory.mktemp("lasting") / "report.html"
    dataframes.evaluate(estimator, table[600:]).save_html(path)
    return path.read_text()


@pytest.mark.parametrize(
    "words",
    [
        "of 300 time steps, [0-9.]+ % have the right label. Always saying [012] would be right in",
        "Confusion: time steps by true label",
        "on the diagonal, the mean stay: 0 [0-9.]+ (min|h), 1",
    ],
)
def test_the_page_says_what_matters_in_words(lasting_page, words):
    assert re.search(words, lasting_page, re.IGNORECASE)


def test_the_time_axis_of_the_page_has_times(fitted):
    times = np.datetime64("2026-01-01T00:00", "ns") + np.arange(300) * np.timedelta64(60, "s")
    found = replace(evaluate(fitted, X[300:], LABELS[300:]), times=times)
    axes = report._under_the_signal(found, 0, 300, "A stretch").figure.axes
    assert axes[-1].get_xlim()[0] == pytest.approx(date2num(times[0]), abs=1e-3)
