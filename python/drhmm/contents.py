"""A model as named arrays and a JSON description, and back: what is in a file, and what a fingerprint stands for."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._validation import LARGEST, Array, as_startprob, as_transmat, check_integer, check_number, shown
from .durations import Durations
from .evidence import KernelEvidence
from .features import Framing
from .novelty import Novelty

if TYPE_CHECKING:
    from .model import Model

#: Arrays of a model with kernel evidence, and the letters of their axes.
TENSORS = {
    "centers": "BD",
    "theta": "BS",
    "evidence_prior": "S",
    "mean": "d",
    "scale": "d",
    "transmat": "SS",
    "startprob": "S",
    "prior": "S",
}

#: Kinds of class labels: truth values, integers, floats, text, dates and durations, or several of them.
_DTYPE = re.compile(r"object|\|b1|\|[iu]1|<[iu][248]|<f[248]|<U\d+|<[mM]8(\[\d*[A-Za-z]+\])?")

DESCRIPTION = ("classes", "evidence", "novelty")

#: How long states last, as `Durations` has it.
STAGES = ("sizes", "stay", "skip")

#: Characters of all text labels with room for the longest in each, as numpy keeps them: so many, or this many times
#: those that there are. A file with one long label among many short ones would take memory out of proportion.
MOST_CHARACTERS = 2**20
MOST_PADDING = 4


def tensors_of(model: Model) -> dict[str, Array]:
    """The arrays of a model; those of its evidence only where it is made of kernels."""
    framing = model.evidence.framing
    tensors = {
        "mean": framing.mean,
        "scale": framing.scale,
        "transmat": model.transmat,
        "startprob": model.startprob,
        "prior": model.prior,
    }
    if isinstance(model.evidence, KernelEvidence):
        evidence = model.evidence
        tensors |= {"centers": evidence.centers, "theta": evidence.theta, "evidence_prior": evidence.prior}
    return tensors


def description_of(model: Model, classes: Any = None) -> dict[str, Any]:
    """Everything else that inference depends on, as JSON; every number keeps its last digit."""
    evidence = model.evidence
    described: dict[str, Any] = {"window": model.window, "evidence_scale": evidence.evidence_scale}
    if isinstance(evidence, KernelEvidence):
        described |= {"kind": "kernel", "sigma": evidence.sigma, "floor": evidence.floor}
    else:
        source = type(getattr(evidence, "source", evidence))
        described |= {"kind": f"{source.__module__}.{source.__qualname__}"}
    novelty, stages = model.novelty, model.stages
    description = {
        "classes": encode_classes(model.classes) if classes is None else classes,
        "evidence": described,
        "novelty": None if novelty is None else {"rate": novelty.rate, "duration": novelty.duration},
    }
    # Only where there are any: models of format 1 keep their fingerprint.
    if stages is not None:
        description["stages"] = {name: getattr(stages, name).tolist() for name in STAGES}
    return description


def fingerprint_of(model: Model) -> str:
    """32 hexadecimal digits that stand for everything that inference depends on.

    Evidence that is not made of kernels has no stable form: for it stand its type, and its answers to a few frames.
    """
    try:
        classes = encode_classes(model.classes)
    except ValueError:
        classes = {"dtype": model.classes.dtype.str, "values": repr(model.classes.tolist())}
    digest = hashlib.sha256(json.dumps(description_of(model, classes), sort_keys=True).encode())
    if not isinstance(model.evidence, KernelEvidence):
        digest.update(_probed(model).encode())
    for name, values in sorted(tensors_of(model).items()):
        digest.update(f"{name}{values.shape}".encode())
        digest.update(values.astype("<f8").tobytes())
    return digest.hexdigest()[:32]


def _probed(model: Model) -> str:
    """Log ratios at fixed frames, to six digits: machines may differ in the last ones."""
    evaluate = model.evidence.streamed()
    assert callable(evaluate)
    frames = np.random.RandomState(0).normal(size=(8, model.window * model.n_features))
    log_ratios = evaluate(frames)
    with np.errstate(invalid="ignore"):
        return repr((log_ratios - log_ratios.max(axis=1, keepdims=True)).round(6).tolist())


def encode_classes(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Labels and their dtype."""
    kind = classes.dtype.kind
    if kind in "mM":
        return {"dtype": classes.dtype.str, "values": classes.astype(np.int64).tolist()}
    values = [_plain(label) for label in classes.tolist()]
    if kind in "biufUO" and all(type(label) in (str, int, float, bool) for label in values):
        if kind == "U":
            _check_padding(values)
            return {"dtype": f"<U{max(1, *(len(label) for label in values))}", "values": values}
        return {"dtype": "object" if kind == "O" else classes.dtype.newbyteorder("<").str, "values": values}
    raise ValueError(f"class labels of dtype {classes.dtype} cannot be saved as JSON: {values[:3]!r}")


def _check_padding(labels: list[str]) -> None:
    """Raise a ValueError for text labels that are mostly room for the longest of them."""
    lengths = [len(label) for label in labels]
    if len(labels) * max(lengths) > max(MOST_CHARACTERS, MOST_PADDING * sum(lengths)):
        raise ValueError(
            f"the longest of {len(labels)} class labels has {max(lengths)} characters, all of them {sum(lengths)}: "
            "such labels cannot be kept in a file; use shorter ones"
        )


def _plain(label: Any) -> Any:
    """A numpy scalar among objects as what JSON has a word for; times have none."""
    return label.item() if isinstance(label, np.generic) and label.dtype.kind in "biufU" else label


def decode_classes(described: Any, n_states: int) -> npt.NDArray[Any]:
    """Labels as `encode_classes` described them."""
    _check_keys(described, ("dtype", "values"), "classes")
    name, values = described["dtype"], described["values"]
    if not isinstance(name, str) or not isinstance(values, list) or len(values) != n_states:
        raise ValueError(f"classes must be {n_states} labels and their dtype")
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"classes have the dtype {name!r}")
    longest = max([1, *(len(value) for value in values if isinstance(value, str))])
    if name.startswith("<U") and name != f"<U{longest}":
        raise ValueError(f"classes have the dtype {name!r}, and the longest label has {longest} characters")
    if name.startswith("<U"):
        _check_padding([value for value in values if isinstance(value, str)] or [""])
    dtype = np.dtype(name)
    allowed = {"b": (bool,), "f": (int, float), "U": (str,), "O": (str, int, float, bool)}.get(dtype.kind, (int,))
    if not all(type(value) in allowed for value in values):
        raise ValueError(f"classes of dtype {name!r} have the values {shown(values)}")
    if dtype.kind in "iu" and not all(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max for value in values):
        raise ValueError(f"classes {shown(values)} are not {n_states} different labels of dtype {name!r}")
    if dtype.kind in "mM":
        classes = np.array(values, dtype=np.int64).view(dtype)
    else:
        classes = np.empty(n_states, dtype=dtype)
        classes[:] = values
    if encode_classes(classes)["values"] != values or len(set(values)) != n_states:
        raise ValueError(f"classes {shown(values)} are not {n_states} different labels of dtype {name!r}")
    return classes.astype(dtype.newbyteorder("="), copy=False)


def _check_keys(described: Any, names: tuple[str, ...], what: str) -> None:
    if not isinstance(described, dict) or set(described) != set(names):
        found = sorted(described) if isinstance(described, dict) else described
        raise ValueError(f"{what} must have the entries {', '.join(sorted(names))}, found {shown(found)}")


def check_tensors(tensors: Mapping[str, Array], window: int) -> None:
    """Names, shapes and values of the arrays of a model."""
    if set(tensors) != set(TENSORS):
        raise ValueError(f"the arrays must be {', '.join(sorted(TENSORS))}, found {', '.join(sorted(tensors))}")
    sizes = {"d": tensors["mean"].size, "S": tensors["startprob"].size, "B": len(np.atleast_1d(tensors["theta"]))}
    sizes["D"] = window * sizes["d"]
    if min(sizes.values()) < 1:
        raise ValueError("an array is empty")
    for name, letters in TENSORS.items():
        shape = tuple(sizes[letter] for letter in letters)
        values = tensors[name]
        if values.dtype != np.float64 or values.shape != shape:
            raise ValueError(f"{name} must be float64 of shape {shape}, found {values.dtype} of shape {values.shape}")
        if not np.isfinite(values).all() or (np.abs(values) > LARGEST).any():
            raise ValueError(f"{name} has a value that is not finite or above {LARGEST:g}")
    if not (tensors["scale"] > 0).all():
        raise ValueError("scale must be positive")
    for name in ("prior", "evidence_prior"):
        if not (tensors[name] > 0).all() or not math.isclose(tensors[name].sum(), 1, abs_tol=1e-8):
            raise ValueError(f"{name} must be positive and sum to 1")
    as_transmat(tensors["transmat"], sizes["S"])
    as_startprob(tensors["startprob"], sizes["S"])


def parts_of(tensors: Mapping[str, Array], description: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `Model` from arrays and description; a ValueError says what is wrong with them."""
    evidence = description["evidence"]
    _check_keys(evidence, ("kind", "window", "sigma", "floor", "evidence_scale"), "evidence")
    if evidence["kind"] != "kernel":
        raise ValueError(f"evidence of the kind {evidence['kind']!r} cannot be read from a file")
    window = check_integer(evidence["window"], "window", low=1)
    check_tensors(tensors, window)
    novelty = description["novelty"]
    if novelty is not None:
        _check_keys(novelty, ("rate", "duration"), "novelty")
        novelty = Novelty(novelty["rate"], novelty["duration"])
    floor = check_number(evidence["floor"], "floor", low=0, high=1, low_open=novelty is not None)
    return {
        "classes": decode_classes(description["classes"], len(tensors["startprob"])),
        "transmat": tensors["transmat"],
        "startprob": tensors["startprob"],
        "prior": tensors["prior"],
        "evidence": KernelEvidence(
            Framing(tensors["mean"], tensors["scale"], window),
            tensors["centers"],
            check_number(evidence["sigma"], "sigma", low=1 / LARGEST, high=LARGEST),
            tensors["theta"],
            tensors["evidence_prior"],
            floor,
            check_number(evidence["evidence_scale"], "evidence_scale", low=1 / LARGEST, high=LARGEST),
        ),
        "novelty": novelty,
        "stages": decode_stages(description.get("stages")),
    }


def decode_stages(described: Any) -> Durations | None:
    """Durations as they were described."""
    if described is None:
        return None
    _check_keys(described, STAGES, "stages")
    for name, kinds in zip(STAGES, ((int,), (int, float), (int, float)), strict=True):
        values = described[name]
        if not (isinstance(values, list) and all(type(value) in kinds for value in values)):
            raise ValueError(f"{name} of stages must be a list of numbers")
    return Durations(*(described[name] for name in STAGES))


def as_json(value: Any) -> Any:
    """A setting as JSON: what JSON has no word for becomes a list of pairs, a name or a description in words."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return as_json(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return [[as_json(key), as_json(item)] for key, item in value.items()]
    return repr(value)
