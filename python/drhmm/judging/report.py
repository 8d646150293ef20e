"""One page about how good a model is: figures, tables and pictures, without scripts and without the network."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ..data.labels import UNKNOWN
from ..plotting import calibration, sequence, transitions
from ..plotting.roc import roc_of_classes
from ..version import __version__
from .evaluation import SMALLEST, Evaluation
from .summary import column_names_of, tables_of
from .text_tables import TextTable, share

#: Frames of a picture of a whole sequence, and of one of a stretch.
MOST_FRAMES = 1500
STRETCH = 120

#: Stretches that are drawn, worst first.
N_WORST = 3

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff; margin: 0 auto; max-width: 1080px;
  padding: 1rem; }
h1 { font-size: 1.6rem; margin: .5rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.figures div { border: 1px solid #d5dbe1; border-radius: .5rem; padding: .6rem .8rem; }
.figures dt { color: #55606c; font-size: .85rem; } .figures dd { margin: 0; font-size: 1.4rem; font-weight: 600; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; color: #55606c; padding-bottom: .3rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e6eaee; text-align: right; white-space: nowrap; }
th[scope=row], th:first-child { text-align: left; } .words td { text-align: left; white-space: normal; }
figure { margin: .5rem 0 1rem; } figcaption { color: #55606c; font-size: .9rem; }
img { max-width: 100%; height: auto; } .wide img { min-width: 640px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
footer { color: #55606c; font-size: .85rem; margin: 2rem 0 1rem; overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Picture:
    """A figure, what it shows in words, and whether it is too wide for a phone."""

    figure: Figure
    words: str
    is_wide: bool = False

    def as_html(self) -> str:
        """The picture inside the page."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        content = base64.b64encode(buffer.getvalue()).decode()
        words = html.escape(self.words)
        image = f'<img src="data:image/png;base64,{content}" alt="{words}">'
        frame = f'<div class="scroll wide">{image}</div>' if self.is_wide else image
        return f"<figure>{frame}<figcaption>{words}</figcaption></figure>"


def page(evaluation: Evaluation, title: str) -> str:
    """The page as HTML."""
    figures, *tables = evaluation.tables()
    tiles = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in [*figures.rows, ["time steps", f"{evaluation.n_frames:,}"]]
    )
    worst = worst_stretches(evaluation)
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(figures.title)}.</p>",
        f'<dl class="figures">{tiles}</dl>',
        "<h2>Labels</h2>",
        *(_scrolled(table) for table in tables),
        "<h2>Posteriors under the signal</h2>",
        _under_the_signal(evaluation, *_shown_rows(evaluation)).as_html(),
        "<h2>Detection and calibration</h2>",
        '<div class="pair">',
        *(picture.as_html() for picture in (_roc(evaluation), _calibration(evaluation)) if picture is not None),
        "</div>",
        "<h2>Transitions</h2>",
        _transitions(evaluation).as_html(),
        "<h2>Worst stretches</h2>" if worst else "",
        *(_under_the_signal(evaluation, begin, end, "worst").as_html() for begin, end in worst),
        "<h2>The model</h2>",
        *(_scrolled(table) for table in tables_of(evaluation.model)),
        f"<footer>drhmm {__version__}, model {evaluation.model.fingerprint}</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>\n'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _scrolled(table: TextTable) -> str:
    kind = "scroll" if any(table.columns) else "scroll words"
    opening = f'<div class="{kind}" tabindex="0" role="region" aria-label="{html.escape(table.title)}">'
    return f"{opening}{table.as_html()}</div>"


def _shown_rows(evaluation: Evaluation) -> tuple[int, int, str]:
    """The stretch of a sequence that shows the most changes, as long as a picture can hold."""
    ends = np.cumsum(evaluation.lengths)
    changes = np.concatenate([[0], np.cumsum(np.diff(evaluation.truth) != 0)])
    stretches = [
        (int(begin), int(min(begin + MOST_FRAMES, end)))
        for end, length in zip(ends, evaluation.lengths, strict=True)
        for begin in range(end - length, end, MOST_FRAMES)
    ]
    begin, end = max(stretches, key=lambda rows: changes[rows[1] - 1] - changes[rows[0]])
    return begin, end, "with the most changes"


def worst_stretches(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Rows of the stretches of one sequence whose true labels were given the smallest probabilities, worst first."""
    known = evaluation.truth != UNKNOWN
    surprise = np.zeros(len(known))
    of_truth = evaluation.posteriors[known, evaluation.truth[known]]
    surprise[known] = -np.log(np.maximum(of_truth, SMALLEST))
    found: list[tuple[float, int, int]] = []
    begin = 0
    for length in evaluation.lengths:
        width = min(STRETCH, length)
        own = surprise[begin : begin + length].copy()
        for _ in range(N_WORST):
            sums = np.convolve(own, np.ones(width), mode="valid")
            place = int(sums.argmax())
            if sums[place] <= 0:
                break
            found.append((float(sums[place]), begin + place, begin + place + width))
            own[place : place + width] = 0.0
        begin += length
    has_errors = [one for one in sorted(found, reverse=True) if _errors(evaluation, one[1], one[2]) > 0]
    return [(first, last) for _, first, last in has_errors[:N_WORST]]


def _errors(evaluation: Evaluation, begin: int, end: int) -> int:
    truth = evaluation.truth[begin:end]
    return int(((evaluation.posteriors[begin:end].argmax(axis=1) != truth) & (truth != UNKNOWN)).sum())


def _begin(evaluation: Evaluation, row: int) -> int:
    """The first row of the sequence of a row."""
    begins = np.cumsum([0, *evaluation.lengths])
    return int(begins[np.searchsorted(begins, row, side="right") - 1])


def _where(evaluation: Evaluation, begin: int, end: int) -> str:
    """The place of rows, in words."""
    first = _begin(evaluation, begin)
    number = int(np.searchsorted(np.cumsum(evaluation.lengths), begin, side="right"))
    inside = f"time steps {begin - first:,} to {end - 1 - first:,}"
    name = number if evaluation.sequence_names is None else evaluation.sequence_names[begin]
    return inside if len(evaluation.lengths) == 1 else f"sequence {name}, {inside}"


def _under_the_signal(evaluation: Evaluation, begin: int, end: int, kind: str) -> Picture:
    figure = Figure(figsize=(9, 4.3), layout="constrained")
    framing = evaluation.model.evidence.framing
    standardised = (evaluation.samples[begin:end] - framing.mean) / framing.scale
    truth, n_errors = evaluation.truth[begin:end], _errors(evaluation, begin, end)
    posteriors, dt = evaluation.posteriors[begin:end], evaluation.dt
    axes = sequence(
        standardised,
        posteriors,
        states={"predicted": posteriors.argmax(axis=1), "true": truth},
        names=evaluation.labels,
        columns=column_names_of(evaluation.model),
        dt=None if dt is None else dt[begin:end],
        first=begin - _begin(evaluation, begin),
        figure=figure,
    )
    axes[0].set_ylabel("standardised", fontsize=8)
    known = int((truth != UNKNOWN).sum())
    named = f"A stretch {kind}" if kind != "worst" else "A worst stretch"
    gaps = "" if dt is None or (dt[begin + 1 : end] == 1).all() else " Dotted lines are gaps in time."
    words = f"{named}: {_where(evaluation, begin, end)}. Signal, predicted and true labels, and posteriors; "
    return Picture(figure, f"{words}{n_errors:,} of {known:,} labelled time steps are wrong.{gaps}", is_wide=True)


def _roc(evaluation: Evaluation) -> Picture | None:
    """Each class against all others, where both occur."""
    known = evaluation.truth != UNKNOWN
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    found = roc_of_classes(figure.subplots(), evaluation.truth[known], evaluation.posteriors[known], evaluation.labels)
    if not found:
        return None
    areas = ", ".join(f"{label} {area:.3f}" for label, area in found.items())
    return Picture(figure, f"ROC curves of each class against the others; area under the curve: {areas}.")


def _calibration(evaluation: Evaluation) -> Picture:
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    calibration(evaluation.truth, evaluation.posteriors, ax=figure.subplots())
    return Picture(
        figure,
        "Calibration: how often the likeliest label was right, by the probability that was given to it; mean distance "
        f"from the diagonal {evaluation.calibration_error:.3f}, accuracy {share(evaluation.accuracy)}.",
    )


def _transitions(evaluation: Evaluation) -> Picture:
    model = evaluation.model
    matrix = (model if model.tempering is None else model.tempering).transmat
    size = min(2.2 + 0.7 * len(matrix), 9)
    figure = Figure(figsize=(size + 0.3, size), layout="constrained")
    transitions(matrix, names=evaluation.labels, ax=figure.subplots())
    stays = ", ".join(f"{label} {matrix[state, state]:.3g}" for state, label in enumerate(evaluation.labels[:12]))
    return Picture(figure, f"Transition probabilities of the model; probability of staying: {stays}.")
