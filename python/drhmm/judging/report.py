"""The HTML report: figures, tables and pictures without scripts or network."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..data.columns import remembered_columns
from ..data.labels import UNKNOWN
from ..plotting import calibration, sequence, transitions
from ..plotting.chains import numbered_map, written_share
from ..plotting.curves import roc_of_classes
from ..plotting.style import literal
from ..version import __version__
from .evaluation import SMALLEST, Evaluation
from .summary import Summary, mean_stays
from .text_tables import TextTable, column_names_of, lasting, share

#: Most time steps of a picture, and time steps around an error.
MOST_FRAMES = 1500
AROUND = 60

#: Show mean stays if all probabilities of staying are above this; and the most states of a drawn matrix.
LASTING = 0.9
MOST_DRAWN = 15

#: Number of worst stretches.
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
    """A figure, its description, and a flag for figures too wide for a phone."""

    figure: Figure
    words: str
    is_wide: bool = False

    def as_html(self) -> str:
        """Return the picture as HTML."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        content = base64.b64encode(buffer.getvalue()).decode()
        words = html.escape(self.words)
        image = f'<img src="data:image/png;base64,{content}" alt="{words}">'
        frame = f'<div class="scroll wide">{image}</div>' if self.is_wide else image
        return f"<figure>{frame}<figcaption>{words}</figcaption></figure>"


def page(evaluation: Evaluation, title: str) -> str:
    """Return the page as HTML."""
    figures, *tables = evaluation.tables()
    tiles = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in [*figures.rows, ["time steps", f"{evaluation.n_frames:,}"]]
    )
    is_small = len(evaluation.classes) <= MOST_DRAWN
    worst = worst_stretches(evaluation)
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in _in_words(evaluation)),
        f'<dl class="figures">{tiles}</dl>',
        "<h2>Labels</h2>",
        _confusion(evaluation).as_html() if is_small else "",
        *(_scrolled(table) for table in tables if not (is_small and table.title.startswith("confusion"))),
        "<h2>Posteriors under the signal</h2>",
        _under_the_signal(evaluation, *_shown_rows(evaluation), "The stretch with the most changes").as_html(),
        "<h2>Detection and calibration</h2>",
        '<div class="pair">',
        *(picture.as_html() for picture in (_roc(evaluation), _calibration(evaluation)) if picture is not None),
        "</div>",
        "<h2>Transitions</h2>",
        _transitions(evaluation).as_html(),
        "<h2>Worst stretches</h2>" if worst else "",
        *(_under_the_signal(evaluation, begin, end, "A worst stretch").as_html() for begin, end in worst),
        "<h2>The model</h2>",
        *(_scrolled(table) for table in Summary(evaluation.model).tables()),
        f"<footer>{html.escape(figures.title)}; drhmm {__version__}, model {evaluation.model.fingerprint}</footer>",
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


def _in_words(evaluation: Evaluation) -> list[str]:
    """The most important results in a few sentences."""
    labels, confusion, counts = evaluation.labels, evaluation.confusion, evaluation.confusion.sum(axis=1)
    whole = len(evaluation.lengths)
    rows = f"{evaluation.n_frames:,} time steps" + (f" in {whole:,} sequences" if whole > 1 else "")
    sentences = [
        f"Of {rows}, {share(evaluation.accuracy)} have the right label. Always saying {labels[int(counts.argmax())]} "
        f"would be right in {share(evaluation.baseline)}."
    ]
    wrong = confusion - np.diag(np.diagonal(confusion))
    if wrong.any():
        true, taken = np.unravel_index(int(wrong.argmax()), wrong.shape)
        part = share(wrong[true, taken] / counts[true])
        sentences.append(f"The most frequent mistake: {part} of {labels[true]} is taken for {labels[taken]}.")
    return [*sentences, *([] if evaluation.hint is None else [evaluation.hint.replace("hint: ", "Note: ", 1)])]


def _shown_rows(evaluation: Evaluation) -> tuple[int, int]:
    """Choose the stretch of a sequence with the most changes that fits a picture."""
    changes = np.concatenate([[0], np.cumsum(np.diff(evaluation.truth) != 0)])
    stretches = [
        (begin, min(begin + MOST_FRAMES, int(end)))
        for end, length in zip(np.cumsum(evaluation.lengths), evaluation.lengths, strict=True)
        for begin in range(int(end) - length, int(end), MOST_FRAMES)
    ]
    return max(stretches, key=lambda rows: int(changes[rows[1] - 1] - changes[rows[0]]))


def worst_stretches(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Find rows around the errors with the least probable true labels, worst first.

    Errors close to each other form one stretch.
    """
    truth, wrong = evaluation.truth, _wrong(evaluation)
    if len(wrong) == 0:
        return []
    ends = np.cumsum(evaluation.lengths)
    owners = np.searchsorted(ends, wrong, side="right")
    begins = np.flatnonzero(np.append(True, (np.diff(wrong) > 2 * AROUND) | (np.diff(owners) > 0)))
    surprise = -np.log(np.maximum(evaluation.posteriors[wrong, truth[wrong]], SMALLEST))
    sums, lasts = np.add.reduceat(surprise, begins), np.append(begins[1:], len(wrong)) - 1
    found = []
    for k in np.argsort(-sums, kind="stable")[:N_WORST].tolist():
        end = int(ends[owners[begins[k]]])
        first = max(int(wrong[begins[k]]) - AROUND, end - evaluation.lengths[owners[begins[k]]])
        found.append((first, min(int(wrong[lasts[k]]) + AROUND + 1, end, first + MOST_FRAMES)))
    return found


def _wrong(evaluation: Evaluation) -> npt.NDArray[np.int64]:
    """Rows with a wrong label."""
    known = evaluation.truth != UNKNOWN
    return np.flatnonzero(known & (evaluation.posteriors.argmax(axis=1) != evaluation.truth))


def _under_the_signal(evaluation: Evaluation, begin: int, end: int, kind: str) -> Picture:
    number = int(np.searchsorted(np.cumsum(evaluation.lengths), begin, side="right"))
    first = begin - sum(evaluation.lengths[:number])
    where = f"time steps {first:,} to {first + end - begin - 1:,}"
    if len(evaluation.lengths) > 1:
        name = number if evaluation.sequence_names is None else evaluation.sequence_names[begin]
        where = f"sequence {name}, {where}"
    figure = Figure(figsize=(9, 4.3), layout="constrained")
    framing, model, rows = evaluation.model.evidence.framing, evaluation.model, slice(begin, end)
    times, dt = evaluation.times, evaluation.dt
    has_times = times is not None and times.dtype.kind in "iufM"
    axes = sequence(
        (evaluation.samples[rows] - framing.mean) / framing.scale,
        evaluation.posteriors[rows],
        states={"predicted": evaluation.posteriors[rows].argmax(axis=1), "true": evaluation.truth[rows]},
        names=evaluation.labels,
        columns=column_names_of(model),
        dt=None if dt is None else dt[rows],
        times=times[rows] if has_times else None,  # type: ignore[index]
        first=first,
        figure=figure,
    )
    axes[0].set_ylabel("standardised", fontsize=8)
    if has_times:
        axes[-1].set_xlabel(literal(remembered_columns(model).get("time", "time")))
    known, wrong = int((evaluation.truth[rows] != UNKNOWN).sum()), _wrong(evaluation)
    n_errors = int(((wrong >= begin) & (wrong < end)).sum())
    gaps = "" if dt is None or (dt[begin + 1 : end] == 1).all() else " Dotted lines are gaps in time."
    words = f"{kind}: {where}. Signal, predicted and true labels, and posteriors; "
    return Picture(figure, f"{words}{n_errors:,} of {known:,} labelled time steps are wrong.{gaps}", is_wide=True)


def _confusion(evaluation: Evaluation) -> Picture:
    """Time steps by true and predicted label, as numbers on their shares."""
    figure, axes = _square(len(evaluation.classes))
    counts = evaluation.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    written = [[f"{count:,}" for count in row] for row in counts.tolist()]
    numbered_map(axes, shares, written, evaluation.labels, "predicted", "true")
    return Picture(
        figure,
        "Confusion: time steps by true label (row) and predicted label (column); dark: most of a row",
    )


def _square(n_states: int) -> tuple[Figure, Axes]:
    size = min(2.2 + 0.7 * n_states, 9)
    figure = Figure(figsize=(size + 0.3, size), layout="constrained")
    return figure, figure.subplots()


def _roc(evaluation: Evaluation) -> Picture | None:
    """Draw ROC curves of the classes; None if only one of them occurs."""
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
        "Calibration: how often the likeliest label was right, by its probability; mean distance "
        f"from the diagonal {evaluation.calibration_error:.3f}, accuracy {share(evaluation.accuracy)}.",
    )


def _transitions(evaluation: Evaluation) -> Picture:
    """Describe the chain: transitions, and mean stays with the next states."""
    model = evaluation.model
    matrix = model.counted.transmat
    figure, axes = _square(len(matrix))
    staying, stays = np.diagonal(matrix), [lasting(stay, model) for stay in mean_stays(model)]
    told = ", ".join(f"{label} {stay}" for label, stay in zip(evaluation.labels[:12], stays, strict=False))
    if staying.min() < LASTING or len(matrix) == 1:
        transitions(matrix, names=evaluation.labels, ax=axes)
        return Picture(figure, f"Transition probabilities of the model, per time step; mean stay: {told}.")
    leaving = (matrix - np.diag(staying)) / np.maximum(1 - staying, SMALLEST)[:, None]
    written = [
        [stays[i] if i == j else written_share(float(p)) for j, p in enumerate(row)] for i, row in enumerate(leaving)
    ]
    numbered_map(axes, leaving, written, evaluation.labels, "to", "from")
    return Picture(figure, f"Next states, as shares of the row; on the diagonal, the mean stay: {told}.")
