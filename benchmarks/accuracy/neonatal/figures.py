"""ROC curves, and one stretch of a baby with what the systems make of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .experiment import STRETCH
from .protocol import CONDITIONS, Patient
from .report import means
from .scores import KEPT
from .units import SYSTEMS, Unit

COLORS = {"fhmm": "#E69F00", "slds": "#0072B2", "ratio": "#D55E00", "ratio multi": "#009E73"}
WORDS = {
    "fhmm": "factorial HMM",
    "slds": "switching LDS",
    "ratio": "density ratio HMM",
    "ratio multi": "the same, multi-class",
}
SHADES = {
    "bradycardia": "#D55E00",
    "incubator open": "#E69F00",
    "blood sample": "#0072B2",
    "temperature probe": "#009E73",
    "abnormal": "#CC79A7",
}
SHOWN = ("HR", "BS", "BD", "SO", "TC", "Incu.Air Humidity")


def roc(path: Path, units: list[Unit], title: str) -> None:
    """Mean curve of every system for every condition, with its equal error rate."""
    figure = Figure(figsize=(15, 3.9), layout="constrained", dpi=110)
    found = means(units)
    for axes, condition in zip(figure.subplots(1, len(CONDITIONS), sharey=True), CONDITIONS, strict=True):
        axes.plot([0, 1], [1, 0], color="#bbbbbb", linewidth=0.8, linestyle=":")
        for name in SYSTEMS:
            curves = [unit.hits for unit in units if unit.system == name and unit.condition == condition]
            if not curves:
                continue
            auc, eer = found[condition, name]
            axes.plot(
                np.r_[0, KEPT],
                np.r_[0, np.mean(curves, axis=0)],
                color=COLORS[name],
                linewidth=2.2 if name == "ratio" else 1.5,
                linestyle="--" if name == "ratio multi" else "-",
                label=f"{WORDS[name]}: {auc:.3f} / {eer:.3f}",
            )
            axes.plot(eer, 1 - eer, "o", color=COLORS[name], markersize=4)
        axes.set_title(condition, fontsize=11)
        axes.set_xlim(-0.01, 1)
        axes.set_ylim(0, 1.01)
        axes.set_xlabel("false alarm rate")
        axes.spines[["top", "right"]].set_visible(False)
        legend = axes.legend(loc="lower right", fontsize=7.5, frameon=False, title="AUC / EER")
        legend.get_title().set_fontsize(7.5)
    figure.axes[0].set_ylabel("hit rate")
    figure.suptitle(f"{title}: filtered, mean over babies; dots are equal error rates", x=0.01, ha="left", fontsize=11)
    figure.savefig(path)


def _true_intervals(axes, patient: Patient, rows: list[str], begin: int) -> None:
    for row in rows:
        for first, last in patient.intervals[row]:
            if last > begin and first < begin + STRETCH:
                axes.axvspan((first - begin) / 60, (last - begin) / 60, color=SHADES[row], alpha=0.22, linewidth=0)


def stretch(path: Path, units: list[Unit], patient: Patient, begin: int, title: str) -> None:
    """Signals with true intervals above, filtered probabilities of the systems below, one panel for each condition."""
    signals = [name for name in SHOWN if name in patient.values]
    rows = [row for row in CONDITIONS if patient.truth[row][begin : begin + STRETCH].any() and patient.has(row)]
    heights = [1.1] * len(signals) + [0.8] * len(rows)
    figure = Figure(figsize=(12, 0.95 * sum(heights) + 1.2), layout="constrained", dpi=110)
    panels = figure.subplots(len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights})
    for axes, name in zip(panels, signals, strict=False):
        values = patient.values[name][begin : begin + STRETCH]
        axes.plot(np.arange(len(values)) / 60, values, color="#333333", linewidth=0.7)
        axes.set_ylabel(name.removeprefix("Incu.Air "), rotation=0, ha="right", va="center")
        _true_intervals(axes, patient, rows, begin)
    for axes, row in zip(panels[len(signals) :], rows, strict=True):
        _true_intervals(axes, patient, [row], begin)
        for name in SYSTEMS:
            for unit in units:
                if (unit.system, unit.condition, unit.baby) == (name, row, patient.number) and unit.stretch:
                    axes.plot(
                        np.arange(len(unit.stretch)) / 60,
                        unit.stretch,
                        color=COLORS[name],
                        linewidth=1.0,
                        linestyle="--" if name == "ratio multi" else "-",
                    )
        axes.set_ylim(-0.03, 1.03)
        axes.set_yticks([0, 1])
        axes.set_ylabel(row, rotation=0, ha="right", va="center", color=SHADES[row])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlim(0, STRETCH / 60)
    panels[-1].set_xlabel("minutes")
    handles = [figure.axes[0].plot([], [], color=COLORS[name], label=WORDS[name])[0] for name in SYSTEMS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(
        f"{title}, baby {patient.number}: conditions shaded in their colours, filtered probabilities below",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    figure.savefig(path)
