"""Model files: ``drhmm info`` and ``drhmm rename``."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import asdict
from typing import Any

import numpy as np

from ..data.columns import COLUMNS
from ..data.sequences import LEARNED_ROWS
from ..evidence.pooled import PooledEvidence
from ..files import model_file as io
from ..learning.training_frames import SCALE_REASON, TYPICAL, UNLABELLED
from ..model import Model
from .output import check_target, say

#: Printed attributes of an alarm.
ALARM = ("false_alarms", "per", "hold_off", "sum_level", "frame_level", "n_normal")


def info(options: argparse.Namespace) -> None:
    """Print the contents of a model file as text or JSON."""
    model = io.load(options.model)
    if options.json:
        say(json.dumps(as_json(model), indent=2))
        return
    say(f"{options.model}: {options.model.stat().st_size:,} bytes, fingerprint {model.fingerprint}")
    say(f"\n{model.summary()}\n\nsettings\n{_settings(model)}")


def as_json(model: Model) -> dict[str, Any]:
    """Return the contents of a model with the arrays of its chain."""
    evidence = model.evidence
    assert isinstance(evidence, PooledEvidence)
    novelty, durations, alarm = model.novelty, model.durations, model.own_alarm
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
        "members": {name: str(member) for name, member in evidence.members.items()},
        "floor": evidence.floor,
        "tunings": {kind: asdict(tuning) | {"scales": dict(tuning.scales)} for kind, tuning in model.tunings.items()},
        "novelty": None if novelty is None else {"rate": novelty.rate, "duration": novelty.duration},
        "alarm": None if alarm is None else {name: getattr(alarm, name) for name in ALARM},
        "durations": {
            "mean": [mean if np.isfinite(mean) else None for mean in durations.mean.tolist()],
            "shape": durations.shape.tolist(),
            "minimum": durations.minimum.tolist(),
        },
        "settings": {name: value for name, value in model.settings.items() if name != LEARNED_ROWS},
    }


def _settings(model: Model) -> str:
    """Format the settings of the estimator as lines."""
    left_out = (SCALE_REASON, UNLABELLED, TYPICAL, COLUMNS, LEARNED_ROWS)
    settings = ", ".join(
        f"{name}={value!r}" for name, value in model.settings.items() if value is not None and name not in left_out
    )
    return textwrap.fill(settings or "not recorded", 100, initial_indent="  ", subsequent_indent="  ")


def rename(options: argparse.Namespace) -> None:
    """Read the model, and write it with other labels."""
    output = options.output or options.model
    check_target(output)
    model = io.load(options.model)
    labels, known = {}, model.labels
    for text in options.labels:
        label = next((one for one in known if text.startswith(f"{one}=")), None)
        if label is None:
            raise ValueError(f"{text!r} is not OLD=NEW with a label of the model, {', '.join(map(str, known))}")
        labels[label] = text.removeprefix(f"{label}=")
    renamed = model.rename(labels)
    io.save(renamed, output)
    say(f"saved {output}: states {', '.join(renamed.labels)}, fingerprint {renamed.fingerprint}")
