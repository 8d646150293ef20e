"""Conversion between a model and named arrays with a JSON description."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..chain.durations import Durations
from ..chain.transitions import Tempering
from ..chain.unknown_state import Novelty
from ..data.checks import LARGEST, Array, as_startprob, as_transmat, check_bool, check_integer, check_number, shown
from ..evidence.excursions import Excursions
from ..evidence.from_sources import Evidence, SourceEvidence
from ..evidence.pool_members import KINDS, N_EDGES, AheadMember, ContextMember, Member
from ..evidence.pooled import PooledEvidence
from ..evidence.score_pvalues import LARGEST_SHAPE, N_KNOTS, ScoreTable
from ..evidence.tunings import Tuning
from ..evidence.unknown import Densities, FrameEvidence, NoveltyEvidence
from ..features.context import LONGEST_WINDOW, N_KERNELS, Context
from ..features.frames import Framing

if TYPE_CHECKING:
    from ..model import Model

#: Axes of the arrays of all models: d columns of a sample, D of a frame, S states.
TENSORS = {"mean": "d", "scale": "d", "transmat": "S S", "startprob": "S", "prior": "S", "evidence_prior": "S"}

#: Axes of the arrays of a tempered chain.
TEMPERED = {"untempered.transmat": "S S", "untempered.startprob": "S", "untempered.end_weights": "S"}

#: Axes of the arrays of evidence for the unknown; each excursion has a place of three numbers.
EXCURSIONS = {"values": "values", "places": "places 3"}
NOVELTY = Densities.AXES | {"knots": "2 knots", "pvalues": "2 knots"}

#: The same for frames with running means, of E numbers each.
TREND = {name: letters.replace("D", "E").replace("C", "C2") for name, letters in NOVELTY.items()}

#: The last part of the names of arrays with positive values.
POSITIVE = ("scale", "prior", "shares", "spread")

#: Pairs of numbers of this evidence, one number per score.
NOVELTY_PAIRS = ("shapes", "spreads", "scales")

#: Arrays of the two tables, and numbers of the excursions.
TABLES = ("knots", "pvalues")
COUNTS = ("least", "n_frames", "n_outliers")

#: Bounds of numbers in a description; other numbers are positive and at most LARGEST.
BOUNDS = {
    "temper": (0.0, 1.0),
    "floor": (0.0, 1.0),
    "least_ratio": (0.0, LARGEST),
    "prior_shift": (-LARGEST, LARGEST),
    "rho": (0.0, LARGEST),
    "joint": (0.0, 1.0),
    "least": (0.0, LARGEST),
    "shapes": (0.0, LARGEST_SHAPE),
    "scales": (0.0, 1.0),
}

#: Allowed dtypes of class labels: mixed, bool, integer, float, text, date and duration.
_DTYPE = re.compile(r"object|\|b1|\|[iu]1|<[iu][248]|<f[248]|<U\d+|<[mM]8(\[\d*[A-Za-z]+\])?")

DESCRIPTION = ("classes", "evidence", "novelty", "temper", "stages", "tunings")

#: The fields of `Durations`.
STAGES = ("sizes", "stay", "skip")

#: Most characters of text labels padded to equal length: this number, or this factor times the actual characters. One
#: long label among many short ones would take much more memory than the file.
MOST_CHARACTERS = 2**20
MOST_PADDING = 4


def tensors_of(model: Model) -> dict[str, Array]:
    """Return the arrays of a model; those of evidence only for native pools."""
    framing = model.evidence.framing
    tensors = {"mean": framing.mean, "scale": framing.scale, "prior": model.prior}
    tensors |= {"transmat": model.transmat, "startprob": model.startprob}
    tensors["evidence_prior"] = model.evidence.prior
    if isinstance(model.evidence, PooledEvidence):
        for name, member in model.evidence.members.items():
            tensors |= {f"{name}.{array}": getattr(member, array) for array in member.AXES}
        if model.evidence.past is not None:
            tensors |= {f"past.{array}": getattr(model.evidence.past, array) for array in Context.AXES}
    if model.tempering is not None:
        tensors |= {name: getattr(model.tempering, name.partition(".")[2]) for name in TEMPERED}
    if model.evidence.novelty is not None:
        for group, part in _parts_of_novelty(model.evidence.novelty).items():
            tensors |= {f"{group}.{name}": getattr(part.densities, name) for name in Densities.AXES}
            tensors |= {f"{group}.{name}": np.array([getattr(own, name) for own in part.tables]) for name in TABLES}
        for name in EXCURSIONS:
            tensors[f"excursions.{name}"] = getattr(model.evidence.novelty.excursions, name)
    return tensors


def _parts_of_novelty(evidence: NoveltyEvidence) -> dict[str, FrameEvidence]:
    """Return the evidence of frames alone and, if there is one, with running means."""
    return {"novelty": evidence.now} | ({} if evidence.trend is None else {"trend": evidence.trend})


def _describe_novelty(evidence: NoveltyEvidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    described: dict[str, Any] = {
        group: {
            "width": part.densities.width,
            "shapes": [table.shape for table in part.tables],
            "spreads": [table.spread for table in part.tables],
            "scales": list(part.scales),
            "joint": part.joint,
        }
        for group, part in _parts_of_novelty(evidence).items()
    }
    described["excursions"] = {name: getattr(evidence.excursions, name) for name in COUNTS}
    return described


def description_of(model: Model, classes: Any = None) -> dict[str, Any]:
    """Return the other parts of a model as JSON values, without rounding."""
    evidence = model.evidence
    described: dict[str, Any] = {"window": model.window, "prior_shift": evidence.prior_shift}
    if isinstance(evidence, PooledEvidence):
        members = {
            name: {number: getattr(member, number) for number in ("scale", *member.NUMBERS)}
            for name, member in evidence.members.items()
        }
        past = evidence.past
        described |= {"kind": "pool", "floor": evidence.floor, "least_ratio": evidence.least_ratio, "members": members}
        described["past"] = None if past is None else {"windows": list(past.windows), "kinds": past.kinds}
    else:
        sources = [type(source) for source in getattr(evidence, "sources", {"": evidence}).values()]
        described |= {
            "kind": [f"{kind.__module__}.{kind.__qualname__}" for kind in sources],
            "members": evidence.scales,
        }
    novelty, stages = model.novelty, model.stages
    return {
        "classes": encode_classes(model.classes) if classes is None else classes,
        "evidence": described,
        "novelty": None
        if novelty is None
        else {"rate": novelty.rate, "duration": novelty.duration, "evidence": _describe_novelty(evidence.novelty)},
        "temper": 1.0 if model.tempering is None else model.tempering.temper,
        "stages": None if stages is None else {name: getattr(stages, name).tolist() for name in STAGES},
        "tunings": {
            kind: asdict(tuning) | {"scales": dict(tuning.scales)} for kind, tuning in model.other_tunings.items()
        },
    }


def fingerprint_of(model: Model) -> str:
    """Hash everything that inference depends on to 32 hexadecimal digits.

    Evidence other than a native pool has no stable form: its types and its answers to a few frames are hashed.
    """
    try:
        classes = encode_classes(model.classes)
    except ValueError:
        classes = {"dtype": model.classes.dtype.str, "values": repr(model.classes.tolist())}
    probed = "" if isinstance(model.evidence, PooledEvidence) else _probed(model)
    return digest(description_of(model, classes), tensors_of(model), probed)


def digest(description: Mapping[str, Any], tensors: Mapping[str, Array], probed: str = "") -> str:
    """Hash a description and arrays to 32 hexadecimal digits."""
    state = hashlib.sha256(json.dumps(description, sort_keys=True).encode() + probed.encode())
    for name, values in sorted(tensors.items()):
        state.update(f"{name}{values.shape}".encode())
        state.update(values.astype("<f8").tobytes())
    return state.hexdigest()[:32]


def _probed(model: Model) -> str:
    """Return log ratios at fixed frames, with six digits that all machines share."""
    evaluate = model.evidence.streamed(False)
    assert callable(evaluate)
    frames = np.random.RandomState(0).normal(size=(8, model.window * model.n_features))
    log_ratios = evaluate(frames)
    with np.errstate(invalid="ignore"):
        return repr((log_ratios - log_ratios.max(axis=1, keepdims=True)).round(6).tolist())


def encode_classes(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Return labels and their dtype as JSON values."""
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
    """Raise ValueError if padding would take most of the memory of text labels."""
    lengths = [len(label) for label in labels]
    if len(labels) * max(lengths) > max(MOST_CHARACTERS, MOST_PADDING * sum(lengths)):
        raise ValueError(
            f"the longest of {len(labels)} class labels has {max(lengths)} characters, all of them {sum(lengths)}: "
            "such labels cannot be kept in a file; use shorter ones"
        )


def _plain(label: Any) -> Any:
    """Convert a numpy scalar among objects to a JSON value; times have no equivalent."""
    return label.item() if isinstance(label, np.generic) and label.dtype.kind in "biufU" else label


def decode_classes(described: Any, n_states: int) -> npt.NDArray[Any]:
    """Decode labels from `encode_classes`."""
    name, values = described["dtype"], described["values"]
    wrong = ValueError(f"classes {shown(values)} are not {n_states} different labels of dtype {shown(name)}")
    if not isinstance(name, str) or not _DTYPE.fullmatch(name) or not isinstance(values, list):
        raise wrong
    if name.startswith("<U"):  # limit the memory before it is taken
        if name != f"<U{max([1, *map(len, values)])}":
            raise wrong
        _check_padding(values)
    dtype = np.dtype(name)
    if dtype.kind == "O":
        classes = np.empty(len(values), dtype=dtype)
        classes[:] = values
    else:
        classes = np.array(values).astype(np.int64 if dtype.kind in "mM" else dtype)
        classes = classes.view(dtype) if dtype.kind in "mM" else classes
    if json.dumps(encode_classes(classes)) != json.dumps(described) or len(set(values)) != n_states:
        raise wrong
    return classes.astype(dtype.newbyteorder("="), copy=False)


def _number(described: Mapping[str, Any], name: str) -> float:
    low, high = BOUNDS.get(name, (1 / LARGEST, LARGEST))
    return check_number(described[name], name, low=low, high=high)


def check_tensors(tensors: Mapping[str, Array], axes: Mapping[str, str], window: int) -> None:
    """Check names, shapes and values of the arrays of a model."""
    if set(tensors) != set(axes):
        raise ValueError(f"the arrays must be {', '.join(sorted(axes))}, found {', '.join(sorted(tensors))}")
    n_columns, n_states = tensors["mean"].size, tensors["startprob"].size
    sizes = {"d": n_columns, "D": window * n_columns, "10D": (N_EDGES + 1) * window * n_columns, "S": n_states}
    sizes |= {"E": (window + 1) * n_columns, "SE": n_states * (window + 1) * n_columns}
    sizes |= {"SD": n_states * window * n_columns, "K": N_KERNELS, "knots": N_KNOTS, "9": N_EDGES, "2": 2, "4": 4}
    for name, letters in axes.items():  # the first array with an axis defines its size
        for letter, size in zip(letters.split(), tensors[name].shape, strict=False):
            sizes.setdefault(letter, size)
    if min(size for letter, size in sizes.items() if letter not in ("values", "places")) < 1:
        raise ValueError("an array is empty")
    for name, letters in axes.items():
        shape = tuple(sizes.get(letter) for letter in letters.split())
        values = tensors[name]
        if values.dtype != np.float64 or values.shape != shape:
            raise ValueError(f"{name} must be float64 of shape {shape}, found {values.dtype} of shape {values.shape}")
        if not np.isfinite(values).all() or (np.abs(values) > LARGEST).any():
            raise ValueError(f"{name} has a value that is not finite or above {LARGEST:g}")
        if name.endswith(POSITIVE) and not (values > 0).all():
            raise ValueError(f"{name} must be positive")
    for name in ("prior", "evidence_prior"):
        as_startprob(tensors[name], sizes["S"], name)
    for before in ("", "untempered.") if "untempered.transmat" in axes else ("",):
        as_transmat(tensors[f"{before}transmat"], sizes["S"])
        as_startprob(tensors[f"{before}startprob"], sizes["S"])


def parts_of(
    tensors: Mapping[str, Array], description: Mapping[str, Any], sources: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of a `Model`; a ValueError describes invalid ones.

    The evidence is a pool, or that of `sources`. Missing entries or wrong types raise other errors at their first use.
    """
    evidence, novelty, temper = description["evidence"], description["novelty"], _number(description, "temper")
    described = evidence["members"]
    if sources is not None and list(described) != list(sources):
        raise ValueError(f"the description has sources {', '.join(described)}, the file {', '.join(sources)}")
    if sources is None and (evidence["kind"] != "pool" or not described or not set(described) <= set(KINDS)):
        raise ValueError(f"evidence must be a pool of some of {', '.join(KINDS)}, found {shown(evidence)}")
    axes = dict(TENSORS) if temper == 1 else TENSORS | TEMPERED
    groups = [(name, KINDS[name].AXES) for name in described if sources is None]
    if novelty is not None and novelty["evidence"] is not None:
        groups += [("novelty", NOVELTY), ("excursions", EXCURSIONS)]
        groups += [("trend", TREND)] if "trend" in novelty["evidence"] else []
    groups += [("past", Context.AXES)] if evidence.get("past") is not None else []
    axes |= {f"{name}.{array}": letters for name, own in groups for array, letters in own.items()}
    window = check_integer(evidence["window"], "window", low=1)
    check_tensors(tensors, axes, window)
    unknown = None if novelty is None else _decode_novelty(novelty["evidence"], tensors)
    framing = Framing(tensors["mean"], tensors["scale"], window, 0 if unknown is None else unknown.span)
    prior, shift = tensors["evidence_prior"], _number(evidence, "prior_shift")
    found: Evidence
    if sources is not None:
        exponents = [_number(described, name) for name in described]
        found = SourceEvidence(framing, prior, dict(sources), exponents, shift, unknown)
    else:
        members = {name: _member(name, described[name], tensors) for name in described}
        found = PooledEvidence(
            framing,
            prior,
            check_number(evidence["floor"], "floor", low=0, high=1, low_open=novelty is not None),
            _number(evidence, "least_ratio"),
            **members,  # type: ignore[arg-type]
            prior_shift=shift,
            novelty=unknown,
            past=_decode_past(evidence["past"], described, tensors),
        )
    stages, tunings = description["stages"], description["tunings"]
    if not tunings.keys() <= {"filter", "frame"}:
        raise ValueError(f"tunings must be some of filter, frame, found {shown(tunings)}")
    return {
        "classes": decode_classes(description["classes"], len(tensors["startprob"])),
        **{name: tensors[name] for name in ("transmat", "startprob", "prior")},
        "evidence": found,
        "novelty": None if novelty is None else Novelty(novelty["rate"], novelty["duration"]),
        "stages": None if stages is None else Durations(*(stages[name] for name in STAGES)),
        "tempering": None if temper == 1 else Tempering(temper, *(tensors[name] for name in TEMPERED)),
        "other_tunings": {kind: _decode_tuning(tunings[kind], set(described)) for kind in tunings},
    }


def _decode_past(described: Any, members: Mapping[str, Any], tensors: Mapping[str, Array]) -> Context | None:
    """Decode the context of the members `context` and `ahead`."""
    readers = {ContextMember.NAME, AheadMember.NAME} & set(members)
    if (described is None) != (ContextMember.NAME not in readers) or (described is None and readers):
        raise ValueError(f"features of the past go with the member context, found the members {', '.join(members)}")
    if described is None:
        return None
    windows = tuple(check_integer(window, "windows", low=1, high=LONGEST_WINDOW) for window in described["windows"])
    arrays = {array: tensors[f"past.{array}"] for array in Context.AXES}
    if not windows or list(windows) != sorted(windows):
        raise ValueError(f"windows of the past must be in ascending order, found {shown(windows)}")
    past = Context(**arrays, windows=windows, kinds=check_integer(described["kinds"], "kinds", low=1, high=3))
    if len(tensors["context.center"]) != past.size:
        raise ValueError(f"the past has {past.size} features, but context reads {len(tensors['context.center'])}")
    return past


def _decode_tuning(described: Any, members: set[str]) -> Tuning:
    """Decode the tuning for filtering or for single frames."""
    scales = {name: _number(described["scales"], name) for name in described["scales"]}
    if not scales or not scales.keys() <= members:
        raise ValueError(f"a tuning has the scales of {', '.join(scales)}, and the members are {', '.join(members)}")
    check_bool(described["shapes"], "shapes of a tuning")
    temper = check_number(described["temper"], "temper", low=0, high=1, low_open=True)
    return Tuning(scales, temper, _number(described, "prior_shift"), described["shapes"])


def _decode_novelty(described: Any, tensors: Mapping[str, Array]) -> NoveltyEvidence | None:
    """Decode the evidence for the unknown."""
    if described is None:
        return None
    values, places = (tensors[f"excursions.{name}"] for name in EXCURSIONS)
    sizes = places[:, 2]
    if (places != np.floor(places)).any() or (places < 0).any() or (sizes < 1).any():
        raise ValueError("the evidence for the unknown has invalid places of excursions")
    if sizes.sum() != len(values):
        raise ValueError(f"excursions of {sizes.sum():g} frames have {len(values)} values")
    least, *counts = (described["excursions"][name] for name in COUNTS)
    counts = [check_integer(count, name, low=0) for count, name in zip(counts, COUNTS[1:], strict=True)]
    return NoveltyEvidence(
        _decode_frame_evidence("novelty", described["novelty"], tensors),
        _decode_frame_evidence("trend", described["trend"], tensors) if "trend" in described else None,
        Excursions(values, places, _number({"least": least}, "least"), *counts),
    )


def _decode_frame_evidence(group: str, described: Any, tensors: Mapping[str, Array]) -> FrameEvidence:
    arrays = {name: tensors[f"{group}.{name}"] for name in NOVELTY}
    pairs = {name: [_number({name: described[name][k]}, name) for k in (0, 1)] for name in NOVELTY_PAIRS}
    if not (arrays["weights"] >= 0).all() or not arrays["weights"].any():
        raise ValueError("weights of the evidence for the unknown must be positive")
    knots, pvalues = arrays["knots"], arrays["pvalues"]
    if (np.diff(knots) < 0).any() or (np.diff(pvalues) > 0).any() or pvalues.max() > 1 or not pvalues.min() > 0:
        raise ValueError("knots must not decrease, and their p-values are between 0 and 1 and must not increase")
    first, second = map(ScoreTable, knots, pvalues, pairs["shapes"], pairs["spreads"])
    return FrameEvidence(
        Densities(**{name: arrays[name] for name in Densities.AXES}, width=_number(described, "width")),
        (first, second),
        (pairs["scales"][0], pairs["scales"][1]),
        _number(described, "joint"),
    )


def _member(name: str, described: Any, tensors: Mapping[str, Array]) -> Member:
    kind = KINDS[name]
    numbers = {number: _number(described, number) for number in ("scale", *kind.NUMBERS)}
    return kind(**{array: tensors[f"{name}.{array}"] for array in kind.AXES}, **numbers)  # type: ignore[arg-type]
