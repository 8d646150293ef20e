"""The roles of table columns, and messages about their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .times import Step, StepSeconds, as_step

if TYPE_CHECKING:
    from ..model import Model

#: Entry of the settings with the names of the label, sequence and time columns.
COLUMNS = "columns"

#: A column name, False for no column, or None for the column stored in the model.
Role = str | Literal[False] | None


class TableError(ValueError):
    """An error in a table; `on_command_line` words it for the command line."""

    def __init__(
        self, message: str, column: Any = None, row: int | None = None, on_command_line: str | None = None
    ) -> None:
        place = [] if column is None else [f"column {column!r}"]
        place += [] if row is None else [f"row {row}"]
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.column, self.row, self.on_command_line = column, row, on_command_line or message


def remembered_columns(model: Model) -> dict[str, str]:
    """Return the label, sequence and time columns stored in a model, by role."""
    columns = model.settings.get(COLUMNS)
    return {role: name for role, name in columns.items() if name is not None} if isinstance(columns, dict) else {}


def remembered_label(model: Model, names: Sequence[Any]) -> str | None:
    """Return the stored label column if a table has it."""
    label = remembered_columns(model).get("label")
    return label if label in names else None


@dataclass(frozen=True)
class Columns:
    """The columns of a table by role, and the time of one step (None: the default)."""

    features: tuple[str, ...] = ()
    label: str | None = None
    sequence: str | None = None
    time: str | None = None
    step: float | None = None

    @classmethod
    def to_learn_from(
        cls,
        names: Sequence[Any],
        *,
        label: str | None,
        sequence: str | None,
        time: str | None,
        step: Step | None = None,
        features: Sequence[str] | None = None,
        table: str = "df",
        index: Sequence[Any] = (),
    ) -> Columns:
        """Choose columns for learning; all columns without a role are samples by default."""
        roles = {"label": label, "sequence": sequence, "time": time}
        for role, name in roles.items():
            if name is not None:
                _check_there(name, names, table, index, role)
        marks = [name for name in roles.values() if name is not None]
        chosen = [name for name in names if name not in marks] if features is None else as_names(features)
        for name in [*chosen, *marks]:
            if [*chosen, *marks].count(name) > 1:
                what = "is the label, the sequence or the time" if name in marks else "appears twice"
                raise TableError(
                    f"the column {name!r} is named twice among features, label, sequence and time",
                    on_command_line=f"--features: {name!r} {what}",
                )
        if not chosen:
            raise TableError(
                f"{table} has no column left for the samples",
                on_command_line="there is no column left for the features",
            )
        for name in chosen:
            _check_there(name, names, table, index, "features", says_role=False)
        check_text([*chosen, *marks], table)
        return cls(tuple(chosen), label, sequence, time, checked_step(step, time))

    @classmethod
    def to_infer_from(
        cls,
        model: Model,
        names: Sequence[Any],
        *,
        label: str | None = None,
        sequence: Role = None,
        time: Role = None,
        step: Step | None = None,
        features: Sequence[str] | None = None,
        table: str = "df",
        index: Sequence[Any] = (),
        by_place: bool = False,
    ) -> Columns:
        """Choose columns for inference: the given ones, or those stored in the model.

        With `by_place`, names are positions, which need not match the names of training.
        """
        sequence, time = (
            remembered(model, role, name, names, table, index)
            for role, name in (("sequence", sequence), ("time", time))
        )
        marks = [name for name in (label, sequence, time) if name is not None]
        for role, name in (("label", label), ("sequence", sequence), ("time", time)):
            if name is not None:
                _check_there(name, names, table, index, role, says_role=False)
        chosen = features_of(model, names, features, marks, table, index, by_place)
        check_text([*chosen, *marks], table)
        step = remembered_step(model) if step is None and time is not None else step
        return cls(tuple(chosen), label, sequence, time, checked_step(step, time))

    @property
    def marks(self) -> list[str]:
        """The label, sequence and time columns."""
        return [name for name in (self.label, self.sequence, self.time) if name is not None]

    def remembered_by(self, model: Model, step: float | None) -> Model:
        """Return a model that stores these columns and the time of one step."""
        settings = dict(model.settings) | {COLUMNS: {"label": self.label, "sequence": self.sequence, "time": self.time}}
        if step is not None:
            unit = step.unit or None if isinstance(step, StepSeconds) else None
            settings |= {"time_step": float(step), "time_unit": unit}
        return replace(model, settings=settings)


def remembered_step(model: Model) -> float | None:
    """Return the stored time of one step, in seconds if the unit of times is known."""
    step = model.settings.get("time_step")
    return StepSeconds(step) if step is not None and model.settings.get("time_unit") is not None else step


def step_as_text(settings: Mapping[str, Any]) -> str:
    """Describe the stored time of one step and the unit of times."""
    step, unit = settings.get("time_step"), settings.get("time_unit")
    if step is None:
        return "unknown"
    ending = {None: " in an unknown unit", "dates": " s, times are dates"}.get(unit, f" s, times in {unit} since 1970")
    return f"{step:g}{ending}"


def checked_step(step: Step | None, time: str | None) -> float | None:
    """Check the time of one step: positive, and only with a time column."""
    if step is not None and time is None:
        raise TableError(f"step={step!r} goes with time", on_command_line="--step goes with --time")
    return as_step(step)


def remembered(
    model: Model, role: str, name: Role, names: Sequence[Any], table: str = "df", index: Sequence[Any] = ()
) -> str | None:
    """Return the column of a role: the given one, else the stored one, else None."""
    if name is False:
        return None
    if name is not None:
        return name
    known = remembered_columns(model).get(role)
    if known is not None and known not in names:
        otherwise = "" if role == "label" else f", or say {role}=False"
        there = no_column(known, names, index)
        raise TableError(
            f"{table} has {there}. The model was learned with it as the {role} column: name another with "
            f"{role}={otherwise}",
            on_command_line=f"--{role}: there is {there}{remembered_hint(role)}",
        )
    return known


def remembered_hint(role: str) -> str:
    """Return a hint for the command line about a missing column that a model stores."""
    otherwise = "" if role == "label" else f", or --no-{role}"
    return f". The model was learned with it as the {role}: use --{role}{otherwise}"


def _check_there(
    name: Any, names: Sequence[Any], table: str, index: Sequence[Any], role: str, says_role: bool = True
) -> None:
    if name not in names:
        there = no_column(name, names, index)
        said = f"{role}: " if says_role else ""
        raise TableError(f"{said}{table} has {there}", on_command_line=f"--{role}: there is {there}")


def features_of(
    model: Model,
    names: Sequence[Any],
    features: Sequence[str] | None,
    marks: Sequence[str] = (),
    table: str = "df",
    index: Sequence[Any] = (),
    by_place: bool = False,
) -> list[str]:
    """Return the feature columns in the order of training."""
    if features is None and model.feature_names is not None:
        missing = [name for name in model.feature_names if name not in names]
        if missing:
            there = no_column(missing[0], names, index)
            raise TableError(
                f"{table} has {there}. The model was learned from {missing[0]!r}",
                on_command_line=f"there is {there}. The model needs {missing[0]!r}",
            )
        return list(model.feature_names)
    chosen = [name for name in names if name not in marks] if features is None else as_names(features)
    for name in chosen:
        _check_there(name, names, table, index, "features", says_role=False)
    if len(chosen) != model.n_features or len(set(chosen)) != len(chosen):
        listed = ", ".join(map(str, chosen))
        raise TableError(
            f"the columns of samples are {listed}, the model was learned from {model.n_features}; name them in "
            "features, in the order of training",
            on_command_line=f"there are {len(chosen)} features ({listed}), the model was learned from "
            f"{model.n_features}; use --features",
        )
    for name, expected in zip(chosen, model.feature_names or chosen, strict=True):
        if name != expected and name in (model.feature_names or ()) and not by_place:
            problem = f"features has {name!r} where the model was learned from {expected!r}"
            raise TableError(problem, on_command_line=f"--{problem}")
    return chosen


def refuse_equal_names(names: Sequence[Any], argument: str) -> None:
    """Raise ValueError if two columns have the same name."""
    known: set[Any] = set()
    for name in names:
        if name in known:
            raise ValueError(f"{argument} has two columns with the name {name!r}")
        known.add(name)


def as_names(names: Any, argument: str = "features") -> list[Any]:
    """Check that column names are a list, not a string."""
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a list of columns, got the text {names!r}: write {argument}=[{names!r}]")
    return list(names)


def check_text(names: Sequence[Any], argument: str) -> None:
    """Raise ValueError for column names other than strings, which could be positions."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{argument} has columns with names that are not strings: {_shown([repr(name) for name in names])}; "
            "rename the columns to strings, here and in training"
        )


def no_column(name: Any, names: Iterable[Any], index: Sequence[Any] = ()) -> str:
    """Describe a missing column: the closest name and the existing ones."""
    if name in index:
        return f"no column {name!r}, as it is the index: use df.reset_index()"
    there = [str(one) for one in names]
    nearest = [one for one in there if one.lower() == str(name).lower()]
    nearest = nearest or get_close_matches(str(name), there, n=1, cutoff=0.7)
    hint = f", did you mean {nearest[0]!r}?" if nearest else ";"
    listed = ", ".join(one if len(one) <= 60 else one[:57] + "..." for one in there)
    return f"no column {name!r}{hint} there are {listed}"


def values_by_name(sample: Mapping[str, Any], names: Sequence[str] | None) -> list[float]:
    """Order the values of a sample by column; None becomes NaN."""
    if names is None:
        raise ValueError("x is a mapping, but the model was learned without names of columns: give the values in order")
    for name in names:
        if name not in sample:
            raise ValueError(f"x has {no_column(name, sample)}")
        if isinstance(sample[name], str | bytes):
            raise ValueError(f"x has {sample[name]!r} in {name!r}: a sample has numbers, or None where one is missing")
    return [float("nan") if sample[name] is None else sample[name] for name in names]


def names_mismatch(names: tuple[str, ...], expected: tuple[str, ...], index: Sequence[Any] = ()) -> str:
    """Describe how columns differ from those of training, and the way out."""
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    odd = ((missing, "missing"), (extra, "never seen in training"))
    problem = " and ".join(f"{_shown(some)} {what}" for some, what in odd if some) or "another order"
    said = f"the columns of X are {_shown(names)} ({problem})"
    remedy = "; use X[list(model.feature_names)], or the functions of drhmm.dataframes, which find them by name"
    if missing:
        remedy = "; the index of X has it: use X.reset_index()" if missing[0] in index else ""
    return f"{said}; the model was learned from {_shown(expected)}, in this order{remedy}"


def columns_named(which: npt.ArrayLike, names: Sequence[str] | None) -> str:
    """Describe the marked columns by name, or by number without names."""
    columns = np.flatnonzero(which).tolist()
    shown = _shown([column if names is None else repr(names[column]) for column in columns])
    return f"column{'s' if len(columns) > 1 else ''} {shown}"


def _shown(names: Any, most: int = 8) -> str:
    shown = [str(name) for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
