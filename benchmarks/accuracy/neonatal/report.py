"""The results as Markdown: means beside the paper's, every baby, times, and who wins where."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

import drhmm

from .protocol import CONDITIONS, PAPER, Patient
from .units import SYSTEMS, Unit


@dataclass(frozen=True)
class Description:
    """What was run: the data in words, the command, and the seconds it took here in this run."""

    data: str
    command: str
    seconds: float
    reading: str = ""


def means(units: list[Unit]) -> dict[tuple[str, str], tuple[float, float]]:
    """Mean AUC and EER over babies, by condition and system."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for unit in units:
        groups[unit.condition, unit.system].append((unit.auc, unit.eer))
    found = {key: np.mean(values, axis=0) for key, values in groups.items()}
    return {key: (float(auc), float(eer)) for key, (auc, eer) in found.items()}


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _cell(pair: tuple[float, float] | None) -> str:
    return "-" if pair is None else f"{_short(pair[0])} / {_short(pair[1])}"


def _paper(pair: tuple[float, float] | None) -> str:
    return "-" if pair is None else " / ".join(f"{value:.2f}".removeprefix("0") for value in pair)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _main_table(units: list[Unit], patients: list[Patient]) -> list[str]:
    found = means(units)
    short = {"fhmm": "FHMM", "slds": "SLDS", "ratio": "density ratio", "ratio multi": "density ratio, multi-class"}
    head = [
        "AUC / EER",
        "babies",
        *(short[name] for name in SYSTEMS),
        *(f"paper: {short[n]}" for n in list(SYSTEMS)[:3]),
    ]
    lines = [_row(head), "|---" * len(head) + "|"]
    for condition in CONDITIONS:
        count = sum(patient.has(condition) for patient in patients)
        own = [_cell(found.get((condition, name))) for name in SYSTEMS]
        paper = [_paper(PAPER[condition].get(name)) for name in list(SYSTEMS)[:3]]
        lines.append(_row([condition, str(count), *own, *paper]))
    return lines


def _baby_tables(units: list[Unit]) -> list[str]:
    lines = []
    by_place = {(unit.condition, unit.system, unit.baby): unit for unit in units}
    for condition in CONDITIONS:
        babies = sorted({unit.baby for unit in units if unit.condition == condition})
        if not babies:
            continue
        head = [condition, *(str(baby) for baby in babies)]
        lines += ["", _row(head), "|---" * len(head) + "|"]
        for name, (_, conditions) in SYSTEMS.items():
            if condition in conditions:
                found = [by_place.get((condition, name, baby)) for baby in babies]
                lines.append(_row([name, *(_cell((u.auc, u.eer)) if u else "-" for u in found)]))
    return lines


def _times(units: list[Unit]) -> list[str]:
    seconds: dict[str, float] = defaultdict(float)
    for unit in units:
        seconds[unit.system] += unit.seconds
    rows = [_row([SYSTEMS[name][0], f"{seconds[name]:.0f} s"]) for name in SYSTEMS]
    return [_row(["learning and filtering, all babies", "time"]), "|---|---|", *rows]


def winners(units: list[Unit]) -> list[str]:
    """One line per condition: the density ratio HMM against the better of the two factorial models."""
    found = means(units)
    lines, ahead, judged = [], 0, 0
    for condition in CONDITIONS:
        own = found.get((condition, "ratio"))
        rivals = {name: found[condition, name][0] for name in ("fhmm", "slds") if (condition, name) in found}
        if own is None or not rivals:
            continue
        best = max(rivals, key=lambda name: rivals[name])
        judged += 1
        ahead += own[0] >= rivals[best]
        word = "ahead of or level with" if own[0] >= rivals[best] else "behind"
        lines.append(f"- {condition}: {_short(own[0])}, {word} the better rival ({best} {_short(rivals[best])})")
    return [
        f"Mean AUC of the density ratio HMM against both factorial models: first in {ahead} of {judged} rows.",
        "",
        *lines,
    ]


def markdown(description: Description, units: list[Unit], patients: list[Patient]) -> str:
    """The whole page."""
    systems = [f"- {name}: {words}" for name, (words, _) in SYSTEMS.items()]
    lines = [
        "# Neonatal intensive care",
        "",
        f"{description.data} Filtering only: every probability comes from the past and the present.",
        "",
        f"Made by `{description.command}` with drhmm {drhmm.__version__} in {description.seconds / 60:.0f} minutes.",
        "",
        "Systems:",
        "",
        *systems,
        "",
        "Each learns conditions from the babies of the other two folds and the normal state from the test baby's own",
        "Normal interval. AUC and EER are over every second of a baby, means over the babies that have the condition.",
        "The paper's figures are for the real recordings.",
        "",
        *_main_table(units, patients),
        "",
        *winners(units),
        "",
        "![ROC curves of all systems, one panel for each condition](roc.png)",
        "",
        "![One baby: signals, true intervals and filtered probabilities](stretch.png)",
        "",
        "## Every baby",
        "",
        "AUC / EER.",
        *_baby_tables(units),
        "",
        "## Time",
        "",
        *_times(units),
        "",
    ]
    if description.reading:
        lines += ["## Reading", "", description.reading.strip(), ""]
    return "\n".join(lines)
