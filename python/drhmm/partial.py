"""Labelled blocks one after the other, or side by side: Gram statistics and transition counts that add up."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _core
from ._labels import Codes
from ._sequences import Sequences
from ._validation import Array, read_only
from .contents import as_json
from .evidence import KernelEvidence, warn_of_far_classes
from .features import complete_rows
from .model import Model
from .ratios.least_squares import LeastSquares
from .stays import Stays
from .transitions import ChainRules, count_transitions

#: Settings that may change between blocks: labelled blocks give the same model whatever they are.
FREE = ("n_threads", "verbose", "max_iter", "tol", "n_init", "em_update")


@dataclass(frozen=True)
class Statistics:
    """Everything that least squares and the chain need of labelled blocks: sums over frames.

    ``gram`` holds Phi^T W Phi, Phi^T W M and the class masses, ``counts`` (S, S) the transitions and ``starts`` (S,)
    the first states of sequences, ``stays`` how long states lasted.
    """

    gram: _core.GramStatistics
    counts: Array
    starts: Array
    stays: Stays

    @classmethod
    def nothing(cls, n_centers: int, n_states: int) -> Statistics:
        """Of no block."""
        chain = np.zeros((n_states, n_states)), np.zeros(n_states), Stays.of(np.zeros(0, dtype=np.int64), [])
        return cls(_core.GramStatistics(n_centers, n_states), *chain)

    @classmethod
    def of(cls, evidence: KernelEvidence, sequences: Sequences, codes: Codes, weights: Array | None) -> Statistics:
        """Of one block of whole sequences, with the centres, the width and the standardisation of `evidence`."""
        frames = evidence.framing.frames(sequences.samples, sequences.unbroken)
        rows = np.flatnonzero(complete_rows(frames))
        targets = np.eye(evidence.n_states)[codes[rows]]
        gram = _core.GramStatistics(len(evidence.centers), evidence.n_states)
        gram.add(
            np.ascontiguousarray(frames[rows]),
            targets,
            np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights[rows]),
            evidence.centers,
            evidence.sigma,
        )
        stays = Stays.of(codes, sequences.unbroken)
        return cls(gram, *count_transitions(codes, sequences.unbroken, evidence.n_states), stays)

    @classmethod
    def merged(cls, parts: Iterable[Statistics]) -> Statistics:
        """Of several blocks, one or more; the parts stay as they are."""
        each = list(parts)
        total = cls.nothing(len(each[0].gram.moment), len(each[0].starts))
        for part in each:
            total.gram.merge(part.gram)
            total = replace(total, counts=total.counts + part.counts, starts=total.starts + part.starts)
        return replace(total, stays=Stays.merged(part.stays for part in each))


@dataclass(frozen=True)
class PartialFit:
    """What has been seen so far, and the model that follows from it; ``settings`` are those of the estimator."""

    model: Model
    rho: float
    rules: ChainRules
    settings: Mapping[str, Any]
    statistics: Statistics

    @classmethod
    def begin(cls, model: Model, rho: float, rules: ChainRules, settings: Mapping[str, Any]) -> PartialFit:
        """Nothing seen yet: what was chosen for a model that was learned from the first block."""
        nothing = Statistics.nothing(len(kernel_evidence(model).centers), model.n_states)
        return cls(model, rho, rules, copy.deepcopy(dict(settings)), nothing)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise a ValueError for a setting that is not the one of the first block."""
        # A source before its own settings, which another one does not have.
        for name, now in sorted(settings.items(), key=lambda setting: "__" in setting[0]):
            first = self.settings.get(name)
            if name.rpartition("__")[2] not in FREE and _comparable(first) != _comparable(now):
                raise ValueError(
                    f"{name} was {first!r} in the first block and is {now!r} now: partial_fit goes on with the "
                    "settings of the first block; fit or a clone begins anew"
                )

    def add(self, statistics: Statistics) -> PartialFit:
        """What was seen so far and one more block; the old one stays as it is."""
        total = Statistics.merged([self.statistics, statistics])
        mass = total.gram.mass
        if not mass.sum() > 0:
            raise ValueError("there is no complete frame with a weight to learn from")
        added = statistics.gram
        if self.statistics.gram.mass.any():  # the first block has been looked at
            reach = np.where(added.mass > 0, added.moment.sum(axis=0) / np.where(added.mass > 0, added.mass, 1), np.inf)
            warn_of_far_classes(reach, self.model.classes, stacklevel=3)
        theta = _core.RegularizedGram(total.gram.gram, self.rho * mass.sum()).solve(total.gram.moment)
        prior = read_only(mass / mass.sum())
        transmat, stages = self.rules.learn(total.counts, total.stays)
        model = replace(
            self.model,
            transmat=read_only(transmat),
            stages=stages,
            startprob=read_only(self.rules.start_probabilities(total.starts)),
            prior=prior,
            evidence=replace(kernel_evidence(self.model), theta=read_only(theta), prior=prior),
        )
        return replace(self, model=model, statistics=total)


def kernel_evidence(model: Model) -> KernelEvidence:
    """The evidence of a model that was learned by least squares."""
    assert isinstance(model.evidence, KernelEvidence)
    return model.evidence


def _comparable(setting: Any) -> Any:
    """A setting as something that == compares; of a ratio source, whose settings have names of their own, the type.

    A RandomState is its type, too: it changes with every use.
    """
    if hasattr(setting, "__array__"):
        return as_json(np.asarray(setting))
    if isinstance(setting, dict):
        return sorted(as_json(setting), key=repr)
    is_plain = setting is None or isinstance(setting, str | numbers.Number | list | tuple)
    return as_json(setting) if is_plain else type(setting)


def check_additive(ratio: Any, class_weight: Any, caller: str) -> None:
    """Raise a ValueError for settings with which statistics of blocks do not add up."""
    if not isinstance(ratio, str | LeastSquares):
        raise ValueError(f"{caller} needs ratio='least-squares' or LeastSquares, got {ratio!r}")
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(f"class_weight='balanced' needs all data at once; give {caller} a dict of weights")
