"""The summary of a model: states, typical values, transitions and tunings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.checks import Array
from ..data.columns import remembered_columns, step_as_text
from ..evidence.pooled import PooledEvidence
from ..learning.training_frames import QUANTILES, SCALE_REASON, TYPICAL, UNLABELLED
from .text_tables import Shown, TextTable, column_names_of, labels_of, lasting, printable, share, short

if TYPE_CHECKING:
    from ..live.streams import Stream
    from ..model import Model

#: The most columns of typical values.
MOST_COLUMNS = 40

#: The most states for showing all transitions, and the number of likeliest ones shown otherwise.
MOST_SHOWN = 10
LIKELIEST = 3


@dataclass(frozen=True)
class Summary(Shown):
    """The summary of a model."""

    model: Model

    def tables(self) -> list[TextTable]:
        """All tables of the summary."""
        tables, typical = [_states(self.model)], np.array(self.model.settings.get(TYPICAL), dtype=object)
        if typical.shape == (self.model.n_states, self.model.n_features, len(QUANTILES)):
            tables.append(_typical(self.model, typical))
        return [*tables, _transitions(self.model), _learned(self.model), _tunings(self.model)]


def mean_stays(model: Model) -> Array:
    """Mean stay of each state in time steps."""
    with np.errstate(divide="ignore"):
        return model.durations.mean if model.stages is not None else 1 / (1 - np.diagonal(model.counted.transmat))


def _states(model: Model) -> TextTable:
    chain, stays = model.counted, mean_stays(model)
    rows = []
    for state, label in enumerate(labels_of(model)):
        shape, minimum = model.durations.shape[state], model.durations.minimum[state]
        form = f"{shape}" if minimum == 1 else f"{shape}, {minimum}+"
        rows.append(
            [label, share(model.prior[state]), share(chain.startprob[state]), lasting(stays[state], model), form]
        )
    return TextTable("states", ["label", "share of time steps", "start", "mean stay", "shape"], rows)


def _typical(model: Model, typical: Any) -> TextTable:
    rows = []
    for place, name in enumerate(column_names_of(model)[:MOST_COLUMNS]):
        cells = []
        for state in range(model.n_states):
            low, middle, high = typical[state][place]
            cells.append("" if middle is None else f"{short(middle)} ({short(low)} to {short(high)})")
        rows.append([name, *cells])
    title = "typical values: the median, and 10 % to 90 % of time steps"
    if model.n_features > MOST_COLUMNS:
        title += f"; {MOST_COLUMNS} of {model.n_features} columns"
    return TextTable(title, ["column", *labels_of(model)], rows)


def _transitions(model: Model) -> TextTable:
    labels = labels_of(model)
    transmat = model.counted.transmat
    if model.n_states <= MOST_SHOWN:
        rows = [[label, *map(short, transmat[state])] for state, label in enumerate(labels)]
        return TextTable("transitions: from a row to a column, per step", ["from", *labels], rows)
    rows = []
    for state, label in enumerate(labels):
        others = np.argsort(-transmat[state], kind="stable")
        likeliest = [labels[other] for other in others if other != state][:LIKELIEST]
        rows.append([label, short(transmat[state, state]), ", ".join(likeliest)])
    return TextTable("transitions, per step", ["from", "stays", "else most often to"], rows)


def _learned(model: Model) -> TextTable:
    evidence, names = model.evidence, column_names_of(model)
    shown = ", ".join(names) if model.feature_names and len(names) <= 12 else ""
    rows = [
        ["columns", f"{model.n_features}" + (f" ({shown})" if shown else "")],
        ["window", f"{model.window} samples" if model.window > 1 else "1 sample"],
    ]
    rows += [[f"{role} column", printable(name)] for role, name in remembered_columns(model).items()]
    if "time_step" in model.settings:
        rows.append(["time step", step_as_text(model.settings)])
    if isinstance(evidence, PooledEvidence):
        for name, member in evidence.members.items():
            rows.append([f"evidence {name}", str(member)])
        rows.append(["floor", f"{evidence.floor:g}"])
    else:
        rows.append(["evidence", str(evidence)])
    rows.append(["chosen by", str(model.settings.get(SCALE_REASON, "not recorded"))])
    if UNLABELLED in model.settings:
        rows.append(["rows", str(model.settings[UNLABELLED])])
    if model.novelty is not None:
        rows.append(["novelty", f"rate {model.novelty.rate:g}, duration {model.novelty.duration:g} time steps"])
    alarm = model.own_alarm
    if alarm is not None:
        levels = f"levels {alarm.sum_level:.3g} (sum) and {alarm.frame_level:.3g} (one time step) nats"
        asked = f"{alarm.false_alarms:g} false per {alarm.per:,g} time steps"
        normal = f"calibrated on {alarm.n_normal:,} normal ones"
        rows.append(["alarm", f"{asked}, {normal}; {levels}; ends after {alarm.hold_off:,} time steps"])
    return TextTable("columns and evidence", ["", ""], rows)


def _tunings(model: Model) -> TextTable:
    """The weights of members, chain and class shares for each kind of answer."""
    tunings = model.tunings
    members = list(tunings["smooth"].scales)
    rows = [[name, *(short(tuning.scales.get(name, 0.0)) for tuning in tunings.values())] for name in members]
    rows.append(["temper of the chain", *(short(tuning.temper) for tuning in tunings.values())])
    rows.append(["prior shift", *(short(tuning.prior_shift) for tuning in tunings.values())])
    return TextTable("weights by kind of answer", ["", *tunings], rows)


def stream_as_html(stream: Stream) -> str:
    """Format a stream for a notebook: its progress and its newest posterior."""
    count = "1 time step" if stream.n_frames == 1 else f"{stream.n_frames:,} time steps"
    rows = [[label, share(p)] for label, p in zip(labels_of(stream.model), stream.posterior, strict=True)]
    if stream.model.novelty is not None:
        rows.append(["the unknown", share(stream.novelty)])
    title = f"a stream after {count}, lag {stream.lag}: posterior of the newest"
    return f"<div>{TextTable(title, ['label', 'probability'], rows).as_html()}</div>"
