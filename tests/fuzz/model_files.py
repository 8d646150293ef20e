"""Target: model files with changed bytes, changed JSON and changed arrays, the latter two with a fitting checksum."""

from __future__ import annotations

import json
import struct

import numpy as np
from mutations import mutated

from drhmm import ModelFormatError
from drhmm.files import model_file
from fuzz import corpus

VALUES = (None, True, 0, -1, 1.5, 1e308, 2**63, "", "text", [], {}, [[]], "\ud800", 10**30, [1, 2, 3], {"a": 1})


def prepare():
    return corpus("model_files")


def split(content):
    """Header and data of safetensors."""
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def joined(header, data):
    """A file whose checksum fits, if there is a place for one."""
    text = json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + data
    try:
        checksum = json.loads(header["__metadata__"]["drhmm"])["checksum"].encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return content
    if len(checksum) != len(model_file._NO_CHECKSUM):
        return content
    blank = content.replace(checksum, model_file._NO_CHECKSUM.encode(), 1)
    return content.replace(checksum, model_file._checksum(blank).encode(), 1)


def change_json(random, entry):
    """Change one thing somewhere in nested JSON, in place."""
    while isinstance(entry, dict | list) and len(entry) > 0:
        key = list(entry)[random.integers(len(entry))] if isinstance(entry, dict) else int(random.integers(len(entry)))
        if not isinstance(entry[key], dict | list) or random.random() < 0.3:
            if random.random() < 0.2:
                del entry[key]
            else:
                entry[key] = VALUES[random.integers(len(VALUES))]
            return
        entry = entry[key]


def changed(random, content, files):
    """A file made from another one."""
    chance = random.random()
    if chance < 0.3:
        content = mutated(random, content, files)
    else:
        header, data = split(content)
        if chance < 0.6:
            metadata = json.loads(header["__metadata__"]["drhmm"])
            change_json(random, metadata)
            header["__metadata__"]["drhmm"] = json.dumps(metadata)
        elif chance < 0.8:
            change_json(random, header)
        else:
            values = np.frombuffer(data, dtype="<f8").copy()
            place = random.integers(len(values))
            values[place] = random.choice([np.nan, np.inf, -1.0, 0.0, 1e300, 5e-324, values[place] * (1 + 1e-9)])
            data = values.tobytes()
        content = joined(header, data)
    return content


def run(random, files):
    content = files[random.integers(len(files))]
    if random.random() < 0.02:
        assert judged(random, content) == "loaded", "a whole file was refused"
        return "loaded"
    return judged(random, changed(random, content, files))


def judged(random, content):
    """What became of a file."""
    try:
        model = model_file.from_bytes(content)
    except ModelFormatError as error:
        assert len(str(error)) > 10, repr(error)
        return "refused"
    posteriors = model.predict_proba(random.normal(size=(20, model.n_features)))
    assert np.isfinite(posteriors).all() and np.abs(posteriors.sum(axis=1) - 1).max() < 1e-9
    assert model_file.from_bytes(model_file.to_bytes(model)).fingerprint == model.fingerprint
    return "loaded"
