"""Learning in blocks: Gram statistics and transition counts that add up."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..chain.durations import Stays
from ..chain.transitions import ChainRules, count_transitions, tempered
from ..data.checks import Array, as_json, read_only
from ..data.labels import Codes
from ..data.sequences import Sequences
from ..evidence.pool_members import ContextMember, KernelMember, Sums, added, context_sums
from ..evidence.pooled import PooledEvidence, warn_of_far_classes
from ..features.frames import complete_rows
from ..model import Model

#: Settings that may change between blocks, as they do not affect the model.
FREE = ("n_threads", "verbose", "max_iter", "tol", "n_init", "em_update")


@dataclass(frozen=True)
class Statistics:
    """Sums over the frames of labelled blocks, for a pool and its chain.

    ``sums`` are those of each member, ``mass`` (S,) the weight of each class, ``counts`` (S, S) the transitions,
    ``starts`` (S,) the first states of sequences, ``stays`` the lengths of stays.
    """

    sums: dict[str, Sums]
    mass: Array
    counts: Array
    starts: Array
    stays: Stays

    @classmethod
    def of(cls, evidence: PooledEvidence, sequences: Sequences, codes: Codes, weights: Array | None) -> Statistics:
        """Return the statistics of one block of whole sequences for given members."""
        samples, lengths = sequences.samples, sequences.unbroken
        frames = evidence.framing.frames(samples, lengths)
        rows = np.flatnonzero(complete_rows(frames))
        frames, targets = np.ascontiguousarray(frames[rows]), np.eye(evidence.n_states)[codes]
        given = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights[rows])
        sums = {
            name: member.sums(frames, targets[rows], given)
            for name, member in evidence.members.items()
            if not isinstance(member, ContextMember)
        }
        member = evidence.context or evidence.ahead
        if evidence.past is not None and member is not None:
            everywhere = np.zeros(len(samples))
            everywhere[rows] = given
            found = context_sums(evidence.past, member, samples, lengths, targets, everywhere)
            sums |= {name: found[name] for name in found if name in evidence.members}
        counts = count_transitions(codes, lengths, evidence.n_states)
        return cls(sums, given @ targets[rows], *counts, Stays.of(codes, lengths))

    @classmethod
    def merged(cls, parts: Iterable[Statistics | None]) -> Statistics | None:
        """Add up the statistics of several blocks; None is an empty one."""
        found = [part for part in parts if part is not None]
        if len(found) < 2:
            return found[0] if found else None
        first, *others = found
        return cls(
            {name: added([first.sums[name], *(other.sums[name] for other in others)]) for name in first.sums},
            sum((other.mass for other in others), start=first.mass),
            sum((other.counts for other in others), start=first.counts),
            sum((other.starts for other in others), start=first.starts),
            Stays.merged([first.stays, *(other.stays for other in others)]),
        )


@dataclass(frozen=True)
class PartialFit:
    """The statistics so far, their model, and the settings of the estimator."""

    model: Model
    rules: ChainRules
    settings: Mapping[str, Any]
    statistics: Statistics | None = None

    @classmethod
    def begin(cls, model: Model, rules: ChainRules, settings: Mapping[str, Any]) -> PartialFit:
        """Start without statistics, with the choices of a model of the first block."""
        if model.stages is None:
            rules = rules.without_shapes
        return cls(model, rules, copy.deepcopy(dict(settings)))

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise ValueError for a setting that differs from the first block."""
        # The source comes before its own settings.
        for name, now in sorted(settings.items(), key=lambda setting: "__" in setting[0]):
            first = self.settings.get(name)
            if name.rpartition("__")[2] not in FREE and _comparable(first) != _comparable(now):
                raise ValueError(
                    f"{name} was {first!r} in the first block and is {now!r} now: partial_fit keeps the settings of "
                    "the first block; fit or a clone starts again"
                )

    def add(self, statistics: Statistics | None) -> PartialFit:
        """Return a copy with one more block."""
        total = Statistics.merged([self.statistics, statistics])
        if statistics is None or total is None or not total.mass.sum() > 0:
            raise ValueError("there is no complete frame with a weight to learn from")
        prior = read_only(total.mass / total.mass.sum())
        evidence = pooled_evidence_of(self.model)
        if evidence.is_kernels_alone and self.statistics is not None:  # the first block chose settings
            mass, moment = statistics.mass, statistics.sums[KernelMember.NAME]["moment"]
            reach = np.where(mass > 0, moment.sum(axis=0) / np.where(mass > 0, mass, 1), np.inf)
            warn_of_far_classes(reach, self.model.classes)
        members: dict[str, Any] = {
            name: member.learned_from(total.sums[name]) for name, member in evidence.members.items()
        }
        counted, stages = self.rules.learn(total.counts, total.stays)
        transmat, startprob, tempering = tempered(
            counted,
            self.rules.start_probabilities(total.starts),
            1.0 if self.model.tempering is None else self.model.tempering.temper,
            prior,
        )
        model = replace(
            self.model,
            transmat=transmat,
            startprob=startprob,
            stages=stages,
            prior=prior,
            evidence=replace(evidence, prior=prior, **members),
            tempering=tempering,
        )
        return replace(self, model=model, statistics=total)


def pooled_evidence_of(model: Model) -> PooledEvidence:
    """Return the evidence of a model with a pool."""
    assert isinstance(model.evidence, PooledEvidence)
    return model.evidence


def _comparable(setting: Any) -> Any:
    """Make a setting comparable; ratio sources and RandomStates become their types.

    The settings of a source are compared by name, and a RandomState changes with every use.
    """
    if hasattr(setting, "__array__"):
        return as_json(np.asarray(setting))
    if isinstance(setting, dict):
        return sorted(as_json(setting), key=repr)
    is_plain = setting is None or isinstance(setting, str | numbers.Number | list | tuple)
    return as_json(setting) if is_plain else type(setting)


def check_additive(ratio: Any, class_weight: Any, caller: str) -> None:
    """Raise ValueError for settings whose statistics do not add up over blocks."""
    if not isinstance(ratio, str) and not getattr(ratio, "adds_up", False):
        raise ValueError(
            f"{caller} needs sources that are learned from sums over frames, such as ratio='pool', got {ratio!r}"
        )
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(f"class_weight='balanced' needs all data at once; give {caller} a dict of weights")
