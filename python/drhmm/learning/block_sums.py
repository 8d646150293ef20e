"""Labelled blocks one after the other, or side by side: Gram statistics and transition counts that add up."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..chain.durations import Stays
from ..chain.transitions import ChainRules, count_transitions, tempered
from ..data.checks import Array, Lengths, as_json, read_only
from ..data.labels import Codes
from ..data.sequences import Sequences
from ..evidence.pool_members import AheadMember, ContextMember, KernelMember, Sums, added
from ..evidence.pooled import PooledEvidence, warn_of_far_classes
from ..features.frames import complete_rows
from ..model import Model
from .context import context_sums

#: Settings that may change between blocks: labelled blocks give the same model whatever they are.
FREE = ("n_threads", "verbose", "max_iter", "tol", "n_init", "em_update")


@dataclass(frozen=True)
class Statistics:
    """Everything that a pool and its chain need of labelled blocks: sums over frames.

    ``sums`` are those of each member, ``mass`` (S,) the weight of each class, ``counts`` (S, S) the transitions,
    ``starts`` (S,) the first states of sequences, ``stays`` how long states lasted.
    """

    sums: dict[str, Sums]
    mass: Array
    counts: Array
    starts: Array
    stays: Stays

    @classmethod
    def of(cls, evidence: PooledEvidence, sequences: Sequences, codes: Codes, weights: Array | None) -> Statistics:
        """Of one block of whole sequences, with what `evidence` takes its sums with."""
        frames = evidence.framing.frames(sequences.samples, sequences.unbroken)
        rows = np.flatnonzero(complete_rows(frames))
        given = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights[rows])
        counts = count_transitions(codes, sequences.unbroken, evidence.n_states)
        stays = Stays.of(codes, sequences.unbroken)
        sums = cls._of_frames(evidence, np.ascontiguousarray(frames[rows]), codes[rows], given, *counts, stays)
        if evidence.past is not None:
            targets = np.eye(evidence.n_states)[codes[rows]]
            sums.sums.update(sums_of_context(evidence, sequences.samples, sequences.unbroken, rows, targets, given))
        return sums

    @classmethod
    def nothing(cls, evidence: PooledEvidence) -> Statistics:
        """Of no block."""
        frames, no_codes = np.empty((0, evidence.framing.window * evidence.framing.n_columns)), np.empty(0, np.int64)
        counts = np.zeros((evidence.n_states, evidence.n_states)), np.zeros(evidence.n_states)
        return cls._of_frames(evidence, frames, no_codes, np.empty(0), *counts, Stays.of(no_codes, []))

    @classmethod
    def _of_frames(
        cls,
        evidence: PooledEvidence,
        frames: Array,
        codes: Codes,
        weights: Array,
        counts: Array,
        starts: Array,
        stays: Stays,
    ) -> Statistics:
        targets = np.eye(evidence.n_states)[codes]
        sums = {
            name: member.sums(np.empty((0, len(member.center))), np.empty((0, evidence.n_states)), np.empty(0))
            if isinstance(member, ContextMember)
            else member.sums(frames, targets, weights)
            for name, member in evidence.members.items()
        }
        return cls(sums, weights @ targets, counts, starts, stays)

    @classmethod
    def merged(cls, parts: Iterable[Statistics]) -> Statistics:
        """Of several blocks, one or more; the parts stay as they are."""
        first, *others = parts
        return cls(
            {name: added([first.sums[name], *(other.sums[name] for other in others)]) for name in first.sums},
            sum((other.mass for other in others), start=first.mass),
            sum((other.counts for other in others), start=first.counts),
            sum((other.starts for other in others), start=first.starts),
            Stays.merged([first.stays, *(other.stays for other in others)]),
        )


@dataclass(frozen=True)
class PartialFit:
    """What has been seen so far, and the model that follows from it; ``settings`` are those of the estimator."""

    model: Model
    rules: ChainRules
    settings: Mapping[str, Any]
    statistics: Statistics

    @classmethod
    def begin(cls, model: Model, rules: ChainRules, settings: Mapping[str, Any]) -> PartialFit:
        """Nothing seen yet: what was chosen for a model that was learned from the first block."""
        if model.stages is None:
            rules = rules.without_shapes
        return cls(model, rules, copy.deepcopy(dict(settings)), Statistics.nothing(pooled_evidence_of(model)))

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
        if not total.mass.sum() > 0:
            raise ValueError("there is no complete frame with a weight to learn from")
        prior = read_only(total.mass / total.mass.sum())
        evidence = pooled_evidence_of(self.model)
        if evidence.is_kernels_alone and self.statistics.mass.any():  # the first block has been looked at
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


def sums_of_context(
    evidence: PooledEvidence,
    samples: Array,
    lengths: Lengths,
    rows: npt.NDArray[np.int64],
    targets: Array,
    weights: Array,
) -> dict[str, Sums]:
    """The sums of the members that read the context, from the complete frames at `rows`."""
    assert evidence.past is not None
    assert evidence.context is not None
    everywhere = np.zeros((len(samples), targets.shape[1])), np.zeros(len(samples))
    everywhere[0][rows], everywhere[1][rows] = targets, weights
    found = context_sums(evidence.past, evidence.context, samples, lengths, *everywhere)
    return {name: found[name] for name in (ContextMember.NAME, AheadMember.NAME) if name in evidence.members}


def pooled_evidence_of(model: Model) -> PooledEvidence:
    """The evidence of a model whose members are learned from sums."""
    assert isinstance(model.evidence, PooledEvidence)
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
    if not isinstance(ratio, str) and not getattr(ratio, "adds_up", False):
        raise ValueError(
            f"{caller} needs sources that are learned from sums over frames, such as ratio='pool', got {ratio!r}"
        )
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(f"class_weight='balanced' needs all data at once; give {caller} a dict of weights")
