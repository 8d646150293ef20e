"""``drhmm rename``: rename the states of a model."""

from __future__ import annotations

import argparse

from ..files import model_file as io
from .output import check_target, say


def run(options: argparse.Namespace) -> None:
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
