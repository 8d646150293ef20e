"""Units of work, (system, condition, baby), each kept in a small JSON file so that a run can go on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import drhmm

from .protocol import CONDITIONS, KNOWN, Patient

#: Systems in the order of the tables, with the conditions they are for.
SYSTEMS = {
    "fhmm": ("factorial HMM", KNOWN),
    "slds": ("switching linear dynamical system", tuple(CONDITIONS)),
    "ratio": ("density ratio HMM, two-class and novelty", tuple(CONDITIONS)),
    "ratio multi": ("density ratio HMM, multi-class", KNOWN),
}


@dataclass(frozen=True)
class Unit:
    """Result of one system for one condition of one baby.

    ``seconds`` is the time of learning and filtering, shared evenly among the units that one run of a system serves.
    ``stretch`` are the probabilities of the seconds that the figure shows, for its baby only.
    """

    system: str
    condition: str
    baby: int
    auc: float
    eer: float
    hits: list[float]
    seconds: float
    stretch: list[float] | None = None


def settings_hash(settings: dict[str, Any], data: bytes) -> str:
    """Short name of everything a result depends on: settings, data, the code of the experiment, and drhmm."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(data)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name not in ("__main__.py", "report.py", "figures.py"):
            digest.update(path.read_bytes())
    digest.update(f"{drhmm.__version__} {np.__version__} {platform.machine()}".encode())
    return digest.hexdigest()[:12]


class Store:
    """JSON files of units in a folder that is named after the hash of the settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, system: str, condition: str, baby: int) -> Path:
        return self.folder / f"{system} {condition} {baby:02d}.json".replace(" ", "-")

    def get(self, system: str, condition: str, baby: int) -> Unit | None:
        """The unit, or None where it has not been computed; a file that was cut off counts as none."""
        try:
            return Unit(**json.loads(self._path(system, condition, baby).read_text()))
        except (FileNotFoundError, json.JSONDecodeError, TypeError):
            return None

    def put(self, unit: Unit) -> None:
        """Keep a unit: written aside and renamed, so that it is there as a whole or not at all."""
        path = self._path(unit.system, unit.condition, unit.baby)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(asdict(unit)))
        aside.replace(path)

    def all(self, patients: list[Patient]) -> Iterator[Unit]:
        """Every unit that is there."""
        for system, condition, patient in wanted(patients):
            unit = self.get(system, condition, patient.number)
            if unit is not None:
                yield unit


def wanted(patients: list[Patient]) -> Iterator[tuple[str, str, Patient]]:
    """Every (system, condition, baby) of the experiment: babies that have the condition."""
    for system, (_, conditions) in SYSTEMS.items():
        for condition in conditions:
            for patient in patients:
                if patient.has(condition):
                    yield system, condition, patient
