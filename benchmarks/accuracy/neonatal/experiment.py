"""Runs what is missing: every system on every baby, with progress, one unit after the other."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from drhmm.system.progress import progress_bar

from . import fhmm, ratio_systems, slds
from .protocol import CONDITIONS, KNOWN, Patient, training_of
from .scores import scores
from .units import Store, Unit, wanted

#: Seconds that the figure of one baby shows.
STRETCH = 5400


def stretch_of(patients: list[Patient]) -> tuple[int, int]:
    """Number of a baby and a second: the 90 minutes in which the most conditions happen, none of them all the time."""
    best, place = -1.0, (patients[0].number, 0)
    for patient in patients:
        for begin in range(0, max(patient.n_samples - STRETCH, 1), 600):
            shares = [patient.truth[row][begin : begin + STRETCH].mean() for row in CONDITIONS if patient.has(row)]
            happening = [share for share in shares if 0 < share < 0.5]
            value = len(happening) + min(sum(happening), 0.9)
            if value > best:
                best, place = value, (patient.number, begin)
    return place


class Runner:
    """Computes the units that a store lacks."""

    def __init__(self, patients: list[Patient], store: Store, seed: int) -> None:
        self.patients, self.store, self.seed = patients, store, seed
        self.stretch = stretch_of(patients)
        self.missing = [
            (system, condition, patient.number)
            for system, condition, patient in wanted(patients)
            if store.get(system, condition, patient.number) is None
        ]
        self.total, self.done = len(self.missing), 0
        self.bar = progress_bar("neonatal")

    def _left(self, system: str, conditions: tuple[str, ...]) -> dict[int, list[str]]:
        """Conditions of each baby (by its place) that a system has not been scored on."""
        left: dict[int, list[str]] = {}
        for k, patient in enumerate(self.patients):
            own = [row for row in conditions if (system, row, patient.number) in self.missing]
            if own:
                left[k] = own
        return left

    def _keep(self, system: str, patient: Patient, found: dict[str, np.ndarray], seconds: float) -> None:
        for condition, probabilities in found.items():
            result = scores(patient.truth[condition], probabilities)
            number, begin = self.stretch
            shown = probabilities[begin : begin + STRETCH].round(4).tolist() if patient.number == number else None
            self.store.put(
                Unit(
                    system,
                    condition,
                    patient.number,
                    result.auc,
                    result.eer,
                    result.hits,
                    seconds / len(found),
                    shown,
                )
            )
            self.done += 1
            self.bar(self.done, self.total, f"{system}, {condition}, baby {patient.number}: AUC {result.auc:.3f}")

    def run(self) -> None:
        """All systems."""
        if self.total:
            self.bar(0, self.total, "learning")
        self._one_by_one("fhmm", KNOWN, lambda test, training, rows: fhmm.run(test, training))
        self._one_by_one("ratio", tuple(CONDITIONS), self._ratio, together=False)
        self._switching(KNOWN, with_x=False)
        self._switching(("abnormal",), with_x=True)
        self._one_by_one(
            "ratio multi", KNOWN, lambda test, training, rows: ratio_systems.multi_class(test, training, self.seed)
        )

    def _ratio(self, test: Patient, training: list[Patient], rows: list[str]) -> dict[str, np.ndarray]:
        (condition,) = rows
        if condition == "abnormal":
            return {condition: ratio_systems.novelty(test, training, self.seed)[0]}
        return {condition: ratio_systems.two_class(test, training, condition, self.seed)}

    def _one_by_one(
        self,
        system: str,
        conditions: tuple[str, ...],
        compute: Callable[[Patient, list[Patient], list[str]], dict[str, np.ndarray]],
        together: bool = True,
    ) -> None:
        """A system that takes one baby at a time, with all of its conditions together or each alone."""
        for k, rows in self._left(system, conditions).items():
            for part in [rows] if together else [[row] for row in rows]:
                begin = time.perf_counter()
                found = compute(self.patients[k], training_of(self.patients, k), part)
                seconds = time.perf_counter() - begin
                self._keep(system, self.patients[k], {row: found[row] for row in part}, seconds)

    def _switching(self, conditions: tuple[str, ...], with_x: bool) -> None:
        """The switching system, all babies stepped together."""
        left = self._left("slds", conditions)
        if not left:
            return
        begin = time.perf_counter()
        tests = [self.patients[k] for k in left]
        trainings = [training_of(self.patients, k) for k in left]
        name = "with X-factor" if with_x else "known factors"
        longest = max(test.n_samples for test in tests)
        found = slds.run(
            tests,
            trainings,
            with_x,
            lambda t: self.bar(self.done, self.total, f"slds, {name}: {t}/{longest} seconds of {len(tests)} babies"),
        )
        seconds = (time.perf_counter() - begin) / len(left)
        for (k, rows), own in zip(left.items(), found, strict=True):
            self._keep("slds", self.patients[k], {row: own[row] for row in rows}, seconds)
