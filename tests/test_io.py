"""Model files: nothing is lost on the way, and nothing that is not a model gets through."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors
from sklearn.naive_bayes import GaussianNB

import drhmm
import live
from drhmm import DensityRatioHMM, ModelFormatError
from drhmm.chain.transitions import Tempering
from drhmm.files.model_file import from_bytes, to_bytes
from drhmm.ratios import FromClassifier, LeastSquares
from problems import blobs

FILED = [kind for kind in live.KINDS if kind != "classifier"]


def parts_of(content):
    """Arrays and description of a file."""
    size = int.from_bytes(content[:8], "little")
    return read_tensors(content), json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["drhmm"])


def file_of(tensors, metadata, **more):
    """A file with any arrays and description, and the checksum that it should have."""
    metadata = {**metadata, "checksum": "sha256:" + 64 * "0"}
    content = write_tensors(tensors, {"drhmm": json.dumps(metadata), **more})
    return content.replace(metadata["checksum"].encode(), b"sha256:" + hashlib.sha256(content).hexdigest().encode(), 1)


def leftover_of(path):
    """What a writer of a file leaves if it is killed in the wrong moment."""
    return path.with_name(f".{path.name}.drhmm-tmp")


@pytest.fixture(scope="module")
def content():
    return to_bytes(live.model("novelty"))


class TestRoundTrip:
    @pytest.mark.parametrize("kind", FILED)
    def test_every_answer_is_the_same_to_the_last_bit(self, kind, tmp_path):
        model, X = live.model(kind), live.samples(0, 200, missing=0.1)
        model.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert_array_equal(loaded.log_ratios(X), model.log_ratios(X))
        assert_array_equal(loaded.predict_proba(X, method="frame"), model.predict_proba(X, method="frame"))
        assert loaded.transmat.tobytes() == model.transmat.tobytes()

    @pytest.mark.parametrize("kind", FILED)
    def test_the_fingerprint_is_the_same(self, kind, tmp_path):
        live.model(kind).save(tmp_path / "model.drhmm")
        assert drhmm.load(tmp_path / "model.drhmm").fingerprint == live.model(kind).fingerprint

    def test_the_same_model_is_the_same_file(self):
        assert to_bytes(live.model("novelty")) == to_bytes(pickle.loads(pickle.dumps(live.model("novelty"))))

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([3, 1, -7]),
            np.array([3, 1, 2], dtype=np.uint8),
            np.array([0.0, 1e300, -2.0]),
            np.array([0.1, 0.2, 1 / 3], dtype=np.float32),
            np.array(["walk", "lie down", 'sit \u2603 "quoted" \\']),
            np.array(["a", 1, 2.5], dtype=object),
            np.array(["2026-01-01", "2026-01-02", "1969-12-31"], dtype="datetime64[D]"),
            np.array([1, 2, 3], dtype="timedelta64[s]"),
        ],
        ids=lambda labels: labels.dtype.str,
    )
    def test_labels_of_every_kind(self, labels):
        loaded = from_bytes(to_bytes(replace(live.model("plain"), classes=labels)))
        assert_array_equal(loaded.classes, labels)
        assert loaded.classes.dtype == labels.dtype

    @pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, np.str_])
    def test_numpy_scalars_among_objects(self, kind):
        labels = np.array([kind(3), kind(1), kind(2)], dtype=object)
        model = replace(live.model("plain"), classes=labels)
        loaded = from_bytes(to_bytes(model))
        assert_array_equal(loaded.classes, labels)
        assert loaded.fingerprint == model.fingerprint

    def test_two_truth_values_are_labels(self):
        X, y = blobs(0, n_states=2)
        model = DensityRatioHMM(n_basis=10, random_state=0).fit(X, y == 1).model_
        assert from_bytes(to_bytes(model)).classes.tolist() == [False, True]

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([b"a", b"b", b"c"]),
            np.array([(1,), (2,), None], dtype=object),
            np.arange(3, dtype=np.longdouble),
            np.array([np.timedelta64(k, "ns") for k in range(3)], dtype=object),
        ],
        ids=["bytes", "objects", "long double", "durations among objects"],
    )
    def test_labels_that_json_has_no_word_for_are_refused(self, labels):
        classes = np.empty(3, dtype=labels.dtype)
        classes[:] = list(labels)
        with pytest.raises(ValueError, match="cannot be saved as JSON"):
            to_bytes(replace(live.model("plain"), classes=classes))

    def test_settings_are_kept_for_the_record(self):
        X, y = blobs(0)
        transition_prior = np.full((3, 3), 2.0)
        transition_prior[0, 2] = -np.inf
        y[y == 2] = 1
        y[-20:] = 2
        y[-30:-20] = 1
        settings = {
            "transition_prior": transition_prior,
            "class_weight": {0: 1.0, 1: 2.0, 2: np.float32(0.5)},
            "ratio": LeastSquares(n_basis=20),
            "random_state": np.int64(3),
        }
        loaded = from_bytes(to_bytes(DensityRatioHMM(**settings).fit(X, y).model_))
        assert set(loaded.settings) == {
            *DensityRatioHMM().get_params(),
            "scale_reason",
            "typical_values",
            "learned_rows",
        }
        assert loaded.settings["transition_prior"] == [[2.0, 2.0, "-inf"], [2.0] * 3, [2.0] * 3]
        assert loaded.settings["class_weight"] == [[0, 1.0], [1, 2.0], [2, 0.5]]
        assert loaded.settings["random_state"] == 3
        assert loaded.settings["ratio"] == "LeastSquares(n_basis=20)"

    def test_feature_names_are_kept_and_checked(self, tmp_path):
        class Table(np.ndarray):
            columns = ("heart rate", "SpO2")

        X, y = blobs(0)
        estimator = DensityRatioHMM(n_basis=10, random_state=0).fit(X.view(Table), y)
        assert estimator.feature_names_in_.tolist() == ["heart rate", "SpO2"]
        estimator.save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert loaded.feature_names == ("heart rate", "SpO2")
        Table.columns = ("SpO2", "heart rate")
        with pytest.raises(ValueError, match="learned from heart rate, SpO2, in this order"):
            loaded.predict(X.view(Table))

    @pytest.mark.parametrize("kind", live.KINDS)
    def test_pickle_and_joblib(self, kind, tmp_path):
        model, X = live.model(kind), live.samples(1, 50, spread=1.0)
        joblib.dump(model, tmp_path / "model")
        for loaded in (joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            assert_array_equal(loaded.log_ratios(X), model.log_ratios(X))
            assert loaded.fingerprint == model.fingerprint
            assert loaded.settings == model.settings


def test_a_process_that_loads_and_predicts_never_imports_scikit_learn(tmp_path):
    live.model("novelty").save(tmp_path / "model.drhmm")
    code = (
        "import sys, numpy as np, drhmm\n"
        "model = drhmm.load('model.drhmm')\n"
        "X = np.zeros((5, 2))\n"
        "model.predict(X, method='viterbi'), model.predict_proba(X, lag=2), model.novelty_proba(X)\n"
        "model.resume(model.stream().snapshot()).step(X[0]); model.save('again.drhmm')\n"
        "print([name for name in ('sklearn', 'scipy', 'matplotlib', 'pandas') if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
    assert (tmp_path / "again.drhmm").read_bytes() == (tmp_path / "model.drhmm").read_bytes()


@pytest.mark.slow
class TestDamage:
    """20,000 files that differ from a model file: every one is refused by name."""

    def test_any_changed_byte(self, content):
        random = np.random.default_rng(0)
        places = np.concatenate([np.arange(min(len(content), 6000)), random.integers(len(content), size=10_000)])
        for place in places:
            changed = bytearray(content)
            changed[place] ^= int(random.integers(1, 256))
            with pytest.raises(ModelFormatError):
                from_bytes(bytes(changed))

    def test_any_flipped_bit_of_the_checksum(self, content):
        begin = content.index(b"sha256:")
        for place in range(begin, begin + 71):
            for bit in range(8):
                changed = bytearray(content)
                changed[place] ^= 1 << bit
                with pytest.raises(ModelFormatError):
                    from_bytes(bytes(changed))

    def test_cut_short_anywhere(self, content):
        for size in range(0, len(content), max(1, len(content) // 4000)):
            with pytest.raises(ModelFormatError):
                from_bytes(content[:size])

    def test_bytes_inserted_deleted_or_swapped(self, content):
        random = np.random.default_rng(1)
        for _ in range(4000):
            a, b = sorted(random.integers(len(content), size=2).tolist())
            kind = random.integers(3)
            if kind == 0:
                changed = content[:a] + random.bytes(int(random.integers(1, 9))) + content[a:]
            elif kind == 1:
                changed = content[:a] + content[b + 1 :]
            else:
                changed = content[:a] + content[b:] + content[a:b]
            if changed != content:
                with pytest.raises(ModelFormatError):
                    from_bytes(changed)

    def test_the_file_itself_cut_or_too_long(self, content, tmp_path):
        path = tmp_path / "model.drhmm"
        for changed in (b"", content[:4], content[:100], content[:-1], content + b"\0", content + content):
            path.write_bytes(changed)
            with pytest.raises(ModelFormatError, match=r"model\.drhmm: "):
                drhmm.load(path)

    def test_endless_files_are_not_read_to_the_end(self):
        with pytest.raises(ModelFormatError, match="/dev/zero: not a model file"):
            drhmm.load("/dev/zero")

    @pytest.mark.parametrize(
        "other",
        [b"\x80\x04N.", b"PK\x03\x04" + bytes(100), b"{}", write_tensors({"x": np.zeros(3)}), bytes(1000)],
        ids=["pickle", "zip", "json", "safetensors", "zeros"],
    )
    def test_other_files(self, other):
        with pytest.raises(ModelFormatError, match="not a model"):
            from_bytes(other)

    def test_a_missing_file_is_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            drhmm.load(tmp_path / "nothing")


def changed_tensors(name, change):
    def apply(tensors, metadata):
        tensors[name] = change(tensors[name].copy())

    return apply


def changed_value(*path, value):
    def apply(tensors, metadata):
        entry = metadata
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value

    return apply


def with_entry(index, value):
    def change(values):
        values.flat[index] = value
        return values

    return change


def stages(sizes, stay, skip):
    return {"sizes": sizes, "stay": stay, "skip": skip}


WRONG = {
    "extra array": lambda tensors, metadata: tensors.update(extra=np.zeros(2)),
    "missing array": lambda tensors, metadata: tensors.pop("kernel.theta"),
    "extra entry": lambda tensors, metadata: metadata.update(surprise=1),
    "missing entry": lambda tensors, metadata: metadata.pop("settings"),
    "float32": changed_tensors("kernel.theta", lambda values: values.astype(np.float32)),
    "integers": changed_tensors("kernel.centers", lambda values: values.astype(np.int64)),
    "NaN": changed_tensors("kernel.theta", with_entry(3, np.nan)),
    "infinity": changed_tensors("kernel.centers", with_entry(0, np.inf)),
    "giant value": changed_tensors("mean", with_entry(0, 1e200)),
    "one row less": changed_tensors("kernel.theta", lambda values: values[:-1]),
    "flat": changed_tensors("kernel.theta", np.ravel),
    "transposed": changed_tensors("kernel.centers", lambda values: np.ascontiguousarray(values.T)),
    "scalar": changed_tensors("startprob", lambda values: np.array(values[0])),
    "empty": changed_tensors("mean", lambda values: values[:0]),
    "zero scale": changed_tensors("scale", with_entry(0, 0.0)),
    "negative scale": changed_tensors("scale", with_entry(1, -1.0)),
    "negative prior": changed_tensors("prior", lambda values: values * [-1, 1, 1]),
    "rows that do not sum to 1": changed_tensors("transmat", lambda values: values * 1.1),
    "negative probability": changed_tensors(
        "transmat", lambda values: values + np.diag([-1.0, 0, 0]) + np.eye(3)[[1, 0, 0]] * [[1], [0], [0]]
    ),
    "start that does not sum to 1": changed_tensors("startprob", lambda values: values / 2),
    "sigma 0": changed_value("evidence", "members", "kernel", "sigma", value=0.0),
    "sigma a word": changed_value("evidence", "members", "kernel", "sigma", value="1.0"),
    "sigma true": changed_value("evidence", "members", "kernel", "sigma", value=True),
    "floor below 0": changed_value("evidence", "floor", value=-0.1),
    "floor 0 with novelty": changed_value("evidence", "floor", value=0),
    "evidence scale 0": changed_value("evidence", "members", "kernel", "scale", value=0),
    "least ratio below 0": changed_value("evidence", "least_ratio", value=-0.1),
    "prior shift a word": changed_value("evidence", "prior_shift", value="0"),
    "no members": changed_value("evidence", "members", value={}),
    "a member of another kind": changed_value("evidence", "members", "os.system", value={"scale": 1.0}),
    "a member without its arrays": changed_value("evidence", "members", "gaussian", value={"scale": 1.0}),
    "members a list": changed_value("evidence", "members", value=["kernel"]),
    "temper above 1": changed_value("temper", value=1.5),
    "temper without its arrays": changed_value("temper", value=0.5),
    "window 0": changed_value("evidence", "window", value=0),
    "window too long": changed_value("evidence", "window", value=3),
    "giant window": changed_value("evidence", "window", value=10**30),
    "window a fraction": changed_value("evidence", "window", value=2.0),
    "other evidence": changed_value("evidence", "kind", value="os.system"),
    "evidence a list": changed_value("evidence", value=[]),
    "novelty rate 1": changed_value("novelty", "rate", value=1),
    "novelty for ever": changed_value("novelty", "duration", value=1e300),
    "novelty a number": changed_value("novelty", value=5),
    "too few classes": changed_value("classes", "values", value=[0, 1]),
    "equal classes": changed_value("classes", "values", value=[0, 1, 1]),
    "classes of another kind": changed_value("classes", "values", value=["a", "b", "c"]),
    "classes that do not fit": changed_value("classes", value={"dtype": "|i1", "values": [0, 1, 1000]}),
    "classes cut off": changed_value("classes", value={"dtype": "<U1", "values": ["a", "b", "long"]}),
    "classes without a kind": changed_value("classes", value={"dtype": "nonsense", "values": [0, 1, 2]}),
    "structured classes": changed_value("classes", value={"dtype": "i4,i4", "values": [0, 1, 2]}),
    "giant dtype": changed_value("classes", value={"dtype": "<U2000000000", "values": ["a", "b", "c"]}),
    "a dtype that is no dtype": changed_value("classes", value={"dtype": "f8,(", "values": [0, 1, 2]}),
    "long double": changed_value("classes", value={"dtype": "f16", "values": [1, 2, 3]}),
    "text with room": changed_value("classes", value={"dtype": "<U1000000", "values": ["a", "b", "c"]}),
    "a name twice": changed_value("feature_names", value=["a", "a"]),
    "objects": changed_value("classes", value={"dtype": "O", "values": [0, 1, 2]}),
    "classes a number": changed_value("classes", value=3),
    "names of other columns": changed_value("feature_names", value=["a", "b", "c"]),
    "names a word": changed_value("feature_names", value="ab"),
    "names numbers": changed_value("feature_names", value=[1, 2]),
    "settings a list": changed_value("settings", value=[]),
    "format 0": changed_value("format_version", value=0),
    "format true": changed_value("format_version", value=True),
    "format a word": changed_value("format_version", value="1"),
    "format 1": changed_value("format_version", value=1),
    "no stages": lambda tensors, metadata: metadata.pop("stages"),
    "stages a list": changed_value("stages", value=[1, 1, 1]),
    "stages of too few states": changed_value("stages", value=stages([1, 2], [0.5, 0.5, 0.5], [0, 0])),
    "no stage": changed_value("stages", value=stages([0, 1, 1], [0.5, 0.5], [0, 0, 0])),
    "too many stages": changed_value("stages", value=stages([1, 1, 10**12], [0.5, 0.5, 0.5], [0, 0, 0])),
    "a stage that never ends": changed_value("stages", value=stages([1, 1, 2], [0.5, 0.5, 1, 0.5], [0, 0, 0])),
    "a state that is never left": changed_value("stages", value=stages([1, 1, 1], [0.5, 0.5, 1], [0, 0, 0])),
    "stay above 1": changed_value("stages", value=stages([1, 1, 1], [0.5, 0.5, 1.5], [0, 0, 0])),
    "skip a word": changed_value("stages", value=stages([1, 1, 1], [0.5, 0.5, 0.5], [0, 0, "0"])),
    "sizes fractions": changed_value("stages", value=stages([1, 1, 1.0], [0.5, 0.5, 0.5], [0, 0, 0])),
    "fingerprint of another model": changed_value("fingerprint", value=32 * "0"),
    "another sigma, the old fingerprint": changed_value("evidence", "members", "kernel", "sigma", value=0.5),
}


class TestForgery:
    """Files with the right checksum and the wrong content: no field is trusted."""

    @pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
    def test_is_refused(self, content, change):
        tensors, metadata = parts_of(content)
        change(tensors, metadata)
        with pytest.raises(ModelFormatError):
            from_bytes(file_of(tensors, metadata))

    def test_unchanged_parts_are_accepted(self, content):
        assert from_bytes(file_of(*parts_of(content))).fingerprint == live.model("novelty").fingerprint

    def test_more_metadata_is_refused(self, content):
        with pytest.raises(ModelFormatError, match="not a model"):
            from_bytes(file_of(*parts_of(content), surprise="yes"))

    @pytest.mark.parametrize(
        "shape", ["[-1, 3]", "[30, -3]", "[99999999999999999999, 3]", "[4611686018427387904, 4]", "[1e3, 3]", '["a"]']
    )
    def test_giant_and_negative_shapes_are_refused(self, content, shape):
        size = int.from_bytes(content[:8], "little")
        header = content[8 : 8 + size].replace(b'"shape":[30,3]', f'"shape":{shape}'.encode())
        header = header.replace(content[content.index(b"sha256:") :][:71], b"sha256:" + 64 * b"0")
        changed = len(header).to_bytes(8, "little") + header + content[8 + size :]
        checksum = b"sha256:" + hashlib.sha256(changed).hexdigest().encode()
        with pytest.raises(ModelFormatError, match=r"arrays|damaged"):
            from_bytes(changed.replace(b"sha256:" + 64 * b"0", checksum, 1))

    @pytest.mark.parametrize(
        "text", ["[" * 100_000, '{"a": 1, "a": 2}', '{"x": NaN}', "\ud800", "3", "null", '"' + 9999 * "9", 5000 * "9"]
    )
    def test_strange_json_is_refused(self, text):
        encoded = json.dumps({"__metadata__": {"drhmm": text}}).encode()
        with pytest.raises(ModelFormatError):
            from_bytes(len(encoded).to_bytes(8, "little") + encoded)

    def test_a_checksum_that_is_no_text_is_refused(self, content):
        _, metadata = parts_of(content)
        for checksum in ("sha256:" + 64 * "\ud800", "sha256:" + 64 * "g", 5, None):
            text = json.dumps({**metadata, "checksum": checksum})
            header = json.dumps({"__metadata__": {"drhmm": text}}).encode()
            with pytest.raises(ModelFormatError, match="no checksum"):
                from_bytes(len(header).to_bytes(8, "little") + header)

    def test_a_small_file_takes_little_memory(self, tmp_path):
        header = json.dumps({"x": {"dtype": "F64", "shape": [2**37], "data_offsets": [0, 2**40]}}).encode()
        (tmp_path / "model.drhmm").write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(ModelFormatError, match="not a model"):
            drhmm.load(tmp_path / "model.drhmm")

    def test_strange_headers_are_refused(self):
        for text in ("[" * 100_000, '{"a": 1, "a": 2}', "[]", '{"a": 5}', '{"__metadata__": 3}'):
            with pytest.raises(ModelFormatError):
                from_bytes(len(text).to_bytes(8, "little") + text.encode())

    def test_a_newer_format_says_what_to_do(self, content):
        tensors, metadata = parts_of(content)
        metadata |= {"format_version": 99, "library_version": "7.0", "something": "new"}
        with pytest.raises(ModelFormatError, match=r"format 99, written by drhmm 7\.0; .* upgrade drhmm"):
            from_bytes(file_of(tensors, metadata))

    def test_an_older_format_is_named(self, content):
        tensors, metadata = parts_of(content)
        with pytest.raises(ModelFormatError, match=r"has the format 2, written by drhmm .*, which reads format"):
            from_bytes(file_of(tensors, metadata | {"format_version": 2}))


def of_many_classes(classes):
    """A model of kernels with these classes."""
    model, shares = live.model("plain"), np.full(len(classes), 1 / len(classes))
    kernel = replace(model.evidence.kernel, theta=np.zeros((len(model.evidence.kernel.theta), len(classes))))
    others = dict.fromkeys(("additive", "gaussian", "context", "ahead", "past"))
    evidence = replace(model.evidence, prior=shares, kernel=kernel, **others)
    chain = {"transmat": np.eye(len(classes)), "startprob": shares, "prior": shares, "tempering": None}
    chain["other_tunings"] = {}
    return replace(model, classes=classes, evidence=evidence, **chain)


def labelled(n_labels, longest):
    """The content of a file of a model with text labels, one of them long."""
    tensors, metadata = parts_of(to_bytes(of_many_classes(np.arange(n_labels))))
    labels = [str(k) for k in range(n_labels - 1)] + ["x" * longest]
    return file_of(tensors, {**metadata, "classes": {"dtype": f"<U{longest}", "values": labels}})


def test_a_forged_file_takes_memory_in_proportion_to_its_size():
    """numpy gives every label the room of the longest one: 2 GB here, before the fingerprint is compared."""
    content = labelled(335, 900_000)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError, match="the longest of 335 class labels has 900000 characters"):
            from_bytes(content)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(content)
    finally:
        tracemalloc.stop()


def test_labels_that_are_mostly_room_are_not_saved():
    model = replace(live.model("plain"), classes=np.array(["a", "b", "x" * 10**6]))
    assert from_bytes(to_bytes(model)).classes.tolist() == model.classes.tolist()
    many = of_many_classes(np.array([str(k) for k in range(29)] + ["x" * 10**5]))
    with pytest.raises(ValueError, match="the longest of 30 class labels has 100000 characters, all of them 100048"):
        to_bytes(many)


class TestStoredFile:
    """A file that an earlier build wrote, with calibrated evidence for the unknown and an alarm."""

    PATH = Path(__file__).parent / "data" / "format_5.drhmm"

    def test_answers_as_it_did(self):
        expected = np.load(self.PATH.with_suffix(".npz"))
        model = drhmm.load(self.PATH)
        np.testing.assert_allclose(model.novelty_proba(expected["X"]), expected["novelty"], atol=1e-12)

    def test_its_alarm_sounds_as_it_did(self):
        expected = np.load(self.PATH.with_suffix(".npz"))
        episodes = drhmm.load(self.PATH).own_alarm.episodes(expected["X"])
        assert [[one.begin, one.end] for one in episodes] == expected["episodes"].tolist()


class TestWriting:
    @pytest.mark.slow
    def test_the_old_file_stays_when_the_disk_is_full(self, tmp_path):
        path = tmp_path / "model.drhmm"
        live.model("plain").save(path)
        before = path.read_bytes()
        code = (
            "import resource, signal, sys, drhmm\n"
            "model = drhmm.load(sys.argv[1])\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try:\n    model.save(sys.argv[1])\n"
            "except OSError as error:\n    print(error.strerror)\n"
        )
        result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert result.stdout == "File too large\n"
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            live.model("plain").save(tmp_path / "nowhere" / "model.drhmm")

    def test_a_symbolic_link_stays_one(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "model.drhmm")
        live.model("plain").save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert drhmm.load(tmp_path / "model.drhmm").fingerprint == live.model("plain").fingerprint

    @pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o6755, 0o755)], ids=["plain", "setuid"])
    def test_a_file_keeps_its_permissions_to_read_and_write(self, tmp_path, before, after):
        path = tmp_path / "model.drhmm"
        live.model("plain").save(path)
        path.chmod(before)
        live.model("window").save(path)
        assert path.stat().st_mode & 0o7777 == after

    def test_long_names_and_bytes(self, tmp_path):
        path = tmp_path / ("x" * 250)
        for kind in ("plain", "window"):
            live.model(kind).save(os.fsencode(path))
        assert drhmm.load(os.fsencode(path)).fingerprint == live.model("window").fingerprint

    def test_the_file_has_the_permissions_of_any_new_file(self, tmp_path):
        (tmp_path / "other").write_bytes(b"")
        live.model("plain").save(tmp_path / "model.drhmm")
        assert (tmp_path / "model.drhmm").stat().st_mode == (tmp_path / "other").stat().st_mode

    def test_what_a_killed_writer_left_is_cleared_by_the_next_one(self, tmp_path):
        pytest.importorskip("fcntl")
        path, another = tmp_path / "model.drhmm", leftover_of(tmp_path / "another.drhmm")
        live.model("plain").save(path)
        leftover_of(path).write_bytes(b"half")
        another.write_bytes(b"half")
        live.model("window").save(path)
        assert sorted(tmp_path.iterdir()) == [another, path]

    @pytest.mark.parametrize("name", [".model.drhmm.tmp", ".model.drhmm.drhmm-tmp"])
    def test_reading_deletes_nothing(self, tmp_path, name):
        (tmp_path / name).write_bytes(b"mine")
        with pytest.raises(FileNotFoundError):
            drhmm.load(tmp_path / "model.drhmm")
        assert (tmp_path / name).read_bytes() == b"mine"

    def test_writing_leaves_files_of_the_user_alone(self, tmp_path):
        (tmp_path / ".model.drhmm.tmp").write_bytes(b"mine")
        for kind in ("plain", "window"):
            live.model(kind).save(tmp_path / "model.drhmm")
        assert (tmp_path / ".model.drhmm.tmp").read_bytes() == b"mine"

    def test_a_writer_waits_for_another_one_of_the_same_file(self, tmp_path):
        fcntl = pytest.importorskip("fcntl")
        path, other = tmp_path / "model.drhmm", leftover_of(tmp_path / "model.drhmm")
        live.model("plain").save(path)
        other.write_bytes(b"half")
        with ThreadPoolExecutor(1) as threads:
            with open(other, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                waiting = threads.submit(live.model("window").save, path)
                assert drhmm.load(path).fingerprint == live.model("plain").fingerprint
                other.rename(path)
            waiting.result()
        assert drhmm.load(path).fingerprint == live.model("window").fingerprint
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.slow
    def test_many_writers_and_readers_of_one_file(self, tmp_path):
        path, models = tmp_path / "model.drhmm", [live.model(kind) for kind in FILED]
        with ThreadPoolExecutor(8) as threads:
            models[0].save(path)
            readers = [threads.submit(lambda: [drhmm.load(path).fingerprint for _ in range(100)]) for _ in range(2)]
            list(threads.map(lambda k: models[k % len(models)].save(path), range(200)))
            seen = {fingerprint for reader in readers for fingerprint in reader.result()}
        assert seen <= {model.fingerprint for model in models}
        assert list(tmp_path.iterdir()) == [path]


def with_kernel(model, **changes):
    """The model with other kernels."""
    return replace(model, evidence=replace(model.evidence, kernel=replace(model.evidence.kernel, **changes)))


class TestFingerprint:
    @pytest.mark.parametrize(
        "change",
        [
            lambda m: replace(m, transmat=np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])),
            lambda m: replace(m, startprob=np.array([1.0, 0, 0])),
            lambda m: replace(m, prior=np.array([0.2, 0.3, 0.5])),
            lambda m: replace(m, classes=np.array(["0", "1", "2"])),
            lambda m: replace(m, novelty=None),
            lambda m: replace(m, evidence=replace(m.evidence, floor=0.03)),
            lambda m: with_kernel(m, sigma=m.evidence.kernel.sigma * (1 + 1e-15)),
            lambda m: with_kernel(m, theta=m.evidence.kernel.theta + 1e-9),
            lambda m: replace(m, evidence=replace(m.evidence, prior_shift=0.1)),
            lambda m: replace(m, tempering=Tempering(0.5, m.transmat, m.startprob, np.zeros(3))),
        ],
    )
    def test_changes_with_everything_that_inference_depends_on(self, change):
        assert change(live.model("novelty")).fingerprint != live.model("novelty").fingerprint

    def test_names_and_settings_do_not_matter(self):
        model = live.model("novelty")
        assert replace(model, settings={}, feature_names=("a", "b")).fingerprint == model.fingerprint


@pytest.mark.exhaustive
@pytest.mark.parametrize(("work", "kind"), [("save", "novelty"), ("stream", "window")])
def test_a_hundred_kills_leave_a_whole_file_and_nothing_else(tmp_path, work, kind):
    (tmp_path / "folder").mkdir()
    live.model(kind).save(tmp_path / "model.drhmm")
    command = [sys.executable, str(Path(live.__file__).with_name("kills.py")), work]
    arguments = [str(tmp_path / "model.drhmm"), str(tmp_path / "folder"), "100"]
    result = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "100 kills\n"), result.stderr


def test_a_model_unpickled_from_buffers_that_begin_anywhere():
    """As Dask sends it: the arrays are views of one message."""
    model = live.model("plain")
    buffers = []
    content = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(bytes(1) + bytes(buffer.raw()))[1:] for buffer in buffers]
    X = live.samples(0, 50)
    assert buffers
    np.testing.assert_array_equal(pickle.loads(content, buffers=moved).predict_proba(X), model.predict_proba(X))


def test_statistics_unpickled_from_buffers_that_begin_anywhere():
    statistics = drhmm._core.GramStatistics(3, 2)
    statistics.add(np.ones((4, 1)), np.ones((4, 2)), np.ones(4), np.zeros((3, 1)), 1.0)
    buffers = []
    content = pickle.dumps(statistics, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(bytes(1) + bytes(buffer.raw()))[1:] for buffer in buffers]
    assert buffers
    assert_array_equal(pickle.loads(content, buffers=moved).gram, statistics.gram)


class TestObjects:
    """Evidence from classifiers in a file: objects, whose types must be trusted by name."""

    NEEDED = ("drhmm.ratios.from_classifier.FromClassifier",)

    @pytest.fixture(scope="class")
    @classmethod
    def saved(cls, tmp_path_factory):
        X, y = blobs(3)
        model = DensityRatioHMM(ratio=FromClassifier(GaussianNB()), novelty=True, random_state=0).fit(X, y).model_
        path = tmp_path_factory.mktemp("objects") / "model.drhmm"
        model.save(path)
        return X, model, path

    def test_answer_as_before_where_they_are_trusted(self, saved):
        X, model, path = saved
        loaded = drhmm.load(path, trusted=self.NEEDED)
        assert loaded.fingerprint == model.fingerprint
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert_array_equal(loaded.novelty_proba(X), model.novelty_proba(X))

    @pytest.mark.parametrize("trusted", [None, [], ["sklearn.naive_bayes.GaussianNB"]])
    def test_are_not_made_where_they_are_not(self, saved, trusted):
        with pytest.raises(
            ModelFormatError,
            match=r"model.drhmm: the file holds objects.*types drhmm\.ratios\.\S+FromClassifier, use drhmm",
        ):
            drhmm.load(saved[2], trusted=trusted)

    def test_need_skops_which_the_message_names_with_the_class(self, saved, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "skops.io", None)
        with pytest.raises(ImportError, match=r"from FromClassifier needs skops: pip install \"drhmm\[skops\]\""):
            saved[1].save(tmp_path / "model.drhmm")

    def test_of_a_class_that_skops_cannot_write_are_named(self, tmp_path):
        X, y = blobs(3)
        model = DensityRatioHMM(ratio=FromClassifier(Unwritable()), random_state=0).fit(X, y).model_
        with pytest.raises(ValueError, match="evidence from FromClassifier cannot be saved by skops"):
            model.save(tmp_path / "model.drhmm")

    def test_in_a_damaged_file_are_not_read(self, saved, tmp_path):
        content = saved[2].read_bytes()
        (tmp_path / "damaged.drhmm").write_bytes(content[:-40] + bytes(40))
        with pytest.raises(ModelFormatError):
            drhmm.load(tmp_path / "damaged.drhmm", trusted=self.NEEDED)


class Unwritable(GaussianNB):
    """A classifier with something that only this process has."""

    def fit(self, X, y, sample_weight=None):
        self.lock_ = threading.Lock()
        return super().fit(X, y, sample_weight)
