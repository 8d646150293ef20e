"""Snapshots: small, bound to their model, and refused by name when anything is wrong with them."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import live
from drhmm import DensityRatioHMM, SnapshotError
from drhmm.ratios import FromClassifier
from problems import blobs


@pytest.fixture(scope="module")
def snapshot():
    stream = live.model("novelty").stream(2)
    for x in live.samples(0, 20, missing=0.1):
        stream.step(x)
    return stream.snapshot()


def signed(content):
    """Bytes with the checksum that they should have."""
    return content[:-16] + hashlib.sha256(content[:-16]).digest()[:16]


def test_is_small():
    model = live.model("window")  # three states, windows of four samples of two columns
    stream = model.stream()
    for x in live.samples(1, 1000):
        stream.step(x)
    assert len(stream.snapshot()) < 256


def test_does_not_grow_with_the_frames():
    stream = live.model("novelty").stream(3)
    sizes = set()
    for x in live.samples(2, 100):
        stream.step(x)
        sizes.add(len(stream.snapshot()))
    assert len(sizes) == 1


def test_any_changed_byte_is_refused(snapshot):
    model, random = live.model("novelty"), np.random.default_rng(0)
    for place in range(len(snapshot)):
        changed = bytearray(snapshot)
        changed[place] ^= int(random.integers(1, 256))
        with pytest.raises(SnapshotError):
            model.resume(bytes(changed))


def test_cut_short_or_too_long_is_refused(snapshot):
    model = live.model("novelty")
    for changed in [snapshot[:size] for size in range(len(snapshot))] + [snapshot + b"\0"]:
        with pytest.raises(SnapshotError):
            model.resume(changed)


@pytest.mark.slow
def test_changed_bytes_with_the_right_checksum_never_crash(snapshot):
    """They resume and step, or are refused; whatever comes out is a distribution."""
    model, random = live.model("novelty"), np.random.default_rng(1)
    refused = 0
    for _ in range(5000):
        changed = bytearray(snapshot)
        for _ in range(int(random.integers(1, 4))):
            changed[int(random.integers(8, len(changed) - 16))] = int(random.integers(256))
        try:
            stream = model.resume(signed(bytes(changed)))
        except SnapshotError:
            refused += 1
            continue
        try:
            posterior = stream.step([0.0, 0.0])
            stream.pending()
        except ValueError:  # evidence that contradicts the messages
            continue
        assert posterior is None or posterior.sum() == pytest.approx(1)
        assert repr(stream)
        assert np.isfinite(stream.pending()).all()
    assert refused > 500


def test_of_another_model_is_refused(snapshot):
    with pytest.raises(SnapshotError, match="belongs to another model: fingerprint"):
        live.model("window").resume(snapshot)


def test_of_the_same_model_with_another_number_is_refused(snapshot):
    model = live.model("novelty")
    other = replace(model, evidence=replace(model.evidence, floor=0.021))
    with pytest.raises(SnapshotError, match="belongs to another model"):
        other.resume(snapshot)


def test_of_another_kind_is_refused(snapshot):
    model = live.model("novelty")
    with pytest.raises(SnapshotError, match="of one stream, not of a batch of streams"):
        model.resume_batch(snapshot)
    with pytest.raises(SnapshotError, match="of a batch of streams, not of one stream"):
        model.resume(model.stream_batch(1).snapshot())


def test_of_a_newer_format_is_refused(snapshot):
    newer = bytearray(snapshot)
    newer[8:10] = (8).to_bytes(2, "little")
    with pytest.raises(SnapshotError, match="has the format 8, this version of drhmm reads 7"):
        live.model("novelty").resume(signed(bytes(newer)))


@pytest.mark.parametrize("data", [b"", b"drhmm", bytes(200), b"x" * 1000])
def test_other_bytes_are_refused(data):
    with pytest.raises(SnapshotError, match="not a snapshot"):
        live.model("plain").resume(data)


@pytest.mark.parametrize("data", [None, "text", 5])
def test_what_is_not_bytes_is_a_type_error(data):
    with pytest.raises(TypeError, match="a snapshot is bytes, got"):
        live.model("plain").resume(data)


@pytest.mark.parametrize(
    ("rows", "retired", "message"), [(0, [], "one live"), (2, [], "one live"), (1, [0], "one live")]
)
def test_a_stream_is_one_live_row(rows, retired, message):
    model = live.model("plain")
    batch = model.stream_batch(rows)
    batch.retire(retired)
    forged = bytearray(batch.snapshot())
    forged[10] = 0
    with pytest.raises(SnapshotError, match=message):
        model.resume(signed(bytes(forged)))


def test_of_another_classifier_is_refused():
    X, y = blobs(3, n_frames=400)
    models = [
        DensityRatioHMM(ratio=FromClassifier(LogisticRegression(C=C)), evidence_scale=1.0).fit(X, y).model_
        for C in (1.0, 1e-4)
    ]
    with pytest.raises(SnapshotError, match="belongs to another model"):
        models[1].resume(models[0].stream().snapshot())


def test_labels_without_json_have_snapshots():
    model = replace(live.model("plain"), classes=np.array([b"a", b"b", b"c"]))
    assert model.resume(model.stream().snapshot()).n_frames == 0


def test_a_window_with_nan_is_refused():
    model = live.model("window")
    stream = model.stream()
    stream.step(np.full(model.n_features, 3.0))
    standardized = (3.0 - model.evidence.framing.mean) * (1 / model.evidence.framing.scale)  # as the core does
    kept = stream.snapshot()
    place = kept.index(standardized[:1].tobytes())
    forged = kept[:place] + struct.pack("<d", np.nan) + kept[place + 8 :]
    with pytest.raises(SnapshotError, match="a sample of the window is NaN"):
        model.resume(signed(forged))


def test_a_giant_number_of_rows_is_refused(snapshot):
    model = live.model("novelty")
    changed = bytearray(model.stream_batch(2).snapshot())
    changed[12:20] = (2**60).to_bytes(8, "little")
    with pytest.raises(SnapshotError, match="its size does not fit"):
        model.resume_batch(signed(bytes(changed)))


def test_frames_that_exclude_states_by_any_number_can_be_resumed():
    """A chain in which every transition is possible takes log ratios however far apart they are."""
    model = live.model("plain")
    loud = replace(model, evidence=replace(model.evidence, kernel=replace(model.evidence.kernel, scale=1e13)))
    stream, X = loud.stream(lag=2), live.samples(0, 20)
    for x in X[:10]:
        stream.step(x)
    resumed = loud.resume(stream.snapshot())
    for x in X[10:]:
        np.testing.assert_array_equal(resumed.step(x), stream.step(x))
