"""What fuzzing found, one test each."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import live
from drhmm import DensityRatioHMM, ImpossibleDataError, recursion
from drhmm.live import snapshots
from drhmm.ratios import FromClassifier, FromDensities, LeastSquares, TwoClass
from drhmm.reference import recursion as reference
from problems import blobs, evidence_problem

CHAIN = np.array([[0.9, 0.1], [0.1, 0.9]])


class TestAFirstFrameAgainstTheStart:
    """The likeliest state of the first frame cannot be there: nothing of the others was left in double, but NaN."""

    @pytest.mark.parametrize("difference", [10.0, 720.0, 750.0, 1e6])
    @pytest.mark.parametrize("n_frames", [1, 10, 1000])
    @pytest.mark.parametrize("name", ["filter", "smooth"])
    def test_is_what_the_reference_says(self, name, n_frames, difference):
        evidence = np.random.default_rng(0).normal(size=(n_frames, 2))
        evidence[0] = [-difference, 0.0]
        answer = getattr(recursion, name)(evidence, CHAIN, [1.0, 0.0])
        assert_allclose(answer, getattr(reference, name)(evidence, CHAIN, np.array([1.0, 0.0])), atol=1e-12)

    def test_small_differences_between_the_possible_states_stay(self):
        transmat = np.full((3, 3), 1 / 3)
        answer = recursion.filter([[-700.0, -712.0, 0.0]], transmat, [0.5, 0.5, 0.0])
        assert_allclose(answer[0, 1] / answer[0, 0], np.exp(-12), rtol=1e-12)

    @pytest.mark.parametrize("n_states", [2, 3, 8, 12, 40])
    def test_impossible_data_are_reported(self, n_states):
        evidence = np.zeros((100, n_states))
        evidence[0, 0] = -np.inf
        with pytest.raises(ImpossibleDataError):
            recursion.smooth(evidence, np.full((n_states, n_states), 1 / n_states), np.eye(n_states)[0])

    def test_in_each_of_many_sequences(self):
        evidence = np.random.default_rng(0).normal(size=(1000, 2))
        evidence[::10] = [-800.0, 0.0]
        answer = recursion.smooth(evidence, CHAIN, [1.0, 0.0], lengths=[10] * 100)
        assert_array_equal(answer[::10], np.tile([1.0, 0.0], (100, 1)))


def test_misaligned_gaps_are_those_of_a_copy():
    evidence, transmat, startprob = evidence_problem(0, 20, 3)
    steps = np.random.default_rng(0).integers(1, 5, size=20)
    memory = np.zeros(steps.nbytes + 1, dtype=np.uint8)
    misaligned = memory[1:].view(np.int64)
    misaligned[:] = steps
    assert_array_equal(
        recursion.smooth(evidence, transmat, startprob, dt=misaligned),
        recursion.smooth(evidence, transmat, startprob, dt=steps),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([0.5 + 1j, 0.5]),
        np.array(["0.5", "0.5"]),
        np.array(["0.5", 0.5], dtype=object),
        np.ma.masked_array([0.5, 0.5], mask=[True, False]),
        np.zeros(2, dtype="M8[s]"),
    ],
    ids=["complex", "text", "objects", "masked", "times"],
)
class TestNumbersThatAreNone:
    def test_are_refused_as_start_probabilities(self, wrong):
        with pytest.raises(ValueError, match="startprob"):
            recursion.filter(np.zeros((3, 2)), CHAIN, wrong)

    def test_are_refused_as_weights(self, wrong):
        with pytest.raises(ValueError, match="sample_weight"):
            DensityRatioHMM(n_basis=2).fit(np.arange(4.0).reshape(2, 2), [0, 1], sample_weight=wrong)


SOURCES = {
    "least squares": lambda: LeastSquares(n_basis=5, sigma=1.0, rho=0.01, random_state=0),
    "two classes": lambda: TwoClass(n_basis=5, sigma=1.0, rho=0.01, random_state=0),
    "classifier": lambda: FromClassifier(LogisticRegression()),
    "densities": lambda: FromDensities("gmm"),
}


@pytest.mark.parametrize("source", SOURCES)
class TestSourcesRefuse:
    def learned_from(self, source, **changed):
        X, y = blobs(0, n_frames=40, n_states=2)
        SOURCES[source]().fit(**({"frames": X, "targets": np.eye(2)[y]} | changed))

    def test_targets_for_other_frames(self, source):
        with pytest.raises(ValueError, match="one row per frame"):
            self.learned_from(source, targets=np.eye(2)[[0, 1] * 5])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
    def test_targets_that_are_no_probabilities(self, source, value):
        targets = np.eye(2)[[0, 1] * 20]
        targets[7, 1] = value
        with pytest.raises(ValueError, match=r"targets has .* row 7, column 1|targets has .* at \(7, 1\)"):
            self.learned_from(source, targets=targets)

    @pytest.mark.parametrize("value", [np.nan, 1e200])
    def test_frames_that_are_not_there_or_too_far(self, source, value):
        frames = blobs(0, n_frames=40, n_states=2)[0]
        frames[3, 0] = value
        with pytest.raises(ValueError, match=r"frames has .* at \(3, 0\)"):
            self.learned_from(source, frames=frames)


@pytest.mark.parametrize("source", ["least squares", "two classes"])
def test_a_state_that_weighs_next_to_nothing_is_refused(source):
    X, y = blobs(0, n_frames=40, n_states=2)
    with pytest.raises(ValueError, match=r"targets give state 1 a mass of .*e-322 of 40"):
        SOURCES[source]().fit(X, np.column_stack([np.ones(40), np.where(y == 1, 5e-324, 0.0)]))


@pytest.mark.parametrize("source", ["least squares", "two classes"])
def test_kernels_that_are_too_narrow_for_their_centres_are_refused(source):
    X, y = blobs(0, n_frames=40, n_states=2)
    with pytest.raises(ValueError, match=r"sigma=1e-100 is too small for centres that are .*e\+60 from their mean"):
        SOURCES[source]().set_params(sigma=1e-100, rho=0.01).fit(1e60 * X, np.eye(2)[y])


def test_two_classes_have_no_ratio_where_a_frame_is_missing():
    X, y = blobs(0, n_frames=40, n_states=2)
    X[5, 0], learned = np.nan, SOURCES["two classes"]().fit(X, np.eye(2)[y])
    assert_array_equal(np.isnan(learned.log_ratios(X)).all(axis=1), np.arange(40) == 5)


@pytest.mark.slow
def test_a_line_that_never_ends_is_refused(tmp_path):
    model = tmp_path / "model.drhmm"
    live.model("plain").save(model)
    done = subprocess.run(
        [sys.executable, "-m", "drhmm", "stream", str(model)], input=b"1" * (1 << 25), capture_output=True
    )
    assert done.returncode == 2
    assert done.stderr == b"drhmm stream: <stdin>, line 1: a line of more than 16777216 bytes\n"


def test_a_stream_that_counts_no_further_can_still_be_resumed():
    model = live.model("plain")
    stream = model.stream()
    stream.step([0.0, 0.0])
    lag, state = snapshots.unpack("stream", model, stream.snapshot())
    state["n_frames"][0] = 2**62  # the most frames that a snapshot may have
    forged = model.resume(snapshots.pack("stream", model, lag, state))
    forged.step([0.0, 0.0])
    assert model.resume(forged.snapshot()).snapshot() == forged.snapshot()


@pytest.mark.slow
def test_an_error_in_a_line_is_one_line_whatever_the_names_in_it_are(tmp_path):
    model = tmp_path / "model.drhmm"
    live.model("plain").save(model)
    done = subprocess.run(
        [sys.executable, "-m", "drhmm", "stream", str(model), "--bad-lines=skip", "--columns=a,b"],
        input=b'{"a\\u2028": 1, "b\\n\\u001b[31m": 2}\n',
        capture_output=True,
    )
    assert len(done.stderr.decode().splitlines()) == 1
    assert done.stderr.decode().strip().isprintable()
