"""``drhmm info``: what is in a model file."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

import numpy as np

from .. import io
from ..evidence import PooledEvidence
from ..model import Model
from .output import say


def run(options: argparse.Namespace) -> None:
    """Print the content of a model file, for people or as JSON."""
    model = io.load(options.model)
    if options.json:
        say(json.dumps(as_json(model), indent=2))
        return
    say(f"{options.model}: {options.model.stat().st_size:,} bytes, fingerprint {model.fingerprint}")
    for name, text in _lines(model):
        say(f"{name:<20}{text}")


def as_json(model: Model) -> dict[str, Any]:
    """The content of a model, arrays of the chain among it."""
    evidence = model.evidence
    assert isinstance(evidence, PooledEvidence)
    novelty, durations = model.novelty, model.durations
    return {
        "fingerprint": model.fingerprint,
        "classes": model.classes.tolist()
        if model.classes.dtype.kind not in "mM"
        else model.classes.astype(str).tolist(),
        "features": model.n_features,
        "feature_names": model.feature_names,
        "window": model.window,
        "transmat": model.transmat.tolist(),
        "startprob": model.startprob.tolist(),
        "prior": model.prior.tolist(),
        "members": {name: {"scale": member.scale, "is": str(member)} for name, member in evidence.members.items()},
        "floor": evidence.floor,
        "evidence_scale": evidence.evidence_scale,
        "prior_shift": evidence.prior_shift,
        "transition_temper": 1.0 if model.tempering is None else model.tempering.temper,
        "novelty": None if novelty is None else {"rate": novelty.rate, "duration": novelty.duration},
        "durations": {
            "mean": [mean if np.isfinite(mean) else None for mean in durations.mean.tolist()],
            "shape": durations.shape.tolist(),
            "minimum": durations.minimum.tolist(),
        },
        "settings": dict(model.settings),
    }


def _printable(label: Any) -> str:
    """A label as it is, or with its control characters spelt out."""
    text = str(label)
    return text if text.isprintable() else repr(text)


def _lines(model: Model) -> list[tuple[str, str]]:
    content = as_json(model)
    names = content["feature_names"]
    lines = [
        ("features", f"{model.n_features}" + (f" ({', '.join(map(_printable, names))})" if names else "")),
        ("window", f"{model.window} samples" if model.window > 1 else "1 sample"),
        *((f"evidence {name}", f"scale {one['scale']:.3g}: {one['is']}") for name, one in content["members"].items()),
        ("prior shift", f"{content['prior_shift']:.3g} of the class shares, floor {content['floor']:g}"),
        ("chain", f"transition probabilities to the power of {content['transition_temper']:.3g}"),
        ("chosen by", str(model.settings.get("scale_reason", "not recorded"))),
    ]
    if model.novelty is not None:
        lines.append(("novelty", f"rate {model.novelty.rate:g}, duration {model.novelty.duration:g} frames"))
    labels = [_printable(label) for label in content["classes"]]
    width = max(7, *(len(label) for label in labels))
    lines.append(("states", f"{'label':<{width}}  share   start   mean stay   shape   transitions"))
    for state, label in enumerate(labels):
        mean, shape, minimum = (content["durations"][name][state] for name in ("mean", "shape", "minimum"))
        duration = "for ever" if mean is None else f"{mean:.1f}"
        form = f"{shape}" if minimum == 1 else f"{shape}, {minimum}+"
        transitions = " ".join(f"{probability:.3g}" for probability in np.atleast_1d(model.transmat[state]))
        shares = f"{model.prior[state]:.3f}   {model.startprob[state]:.3f}"
        lines.append(("", f"{label:<{width}}  {shares}   {duration:>9}   {form:<5}   {transitions}"))
    settings = ", ".join(
        f"{name}={value!r}" for name, value in model.settings.items() if value is not None and name != "scale_reason"
    )
    wrapped = textwrap.wrap(settings or "not recorded", 100)
    return lines + list(zip(["settings", *[""] * len(wrapped)], wrapped, strict=False))
