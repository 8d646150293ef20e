"""Labelled blocks one after the other: Gram statistics and transition counts that accumulate."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from . import _core
from ._labels import Codes
from ._sequences import Sequences
from ._validation import Array, read_only
from .evidence import KernelEvidence
from .model import Model
from .training import TrainingFrames
from .transitions import ChainRules, count_transitions


@dataclass(frozen=True)
class PartialFit:
    """What has been seen so far, and the model that follows from it."""

    model: Model
    rho: float
    rules: ChainRules
    statistics: _core.GramStatistics
    counts: Array
    starts: Array

    @classmethod
    def begin(cls, model: Model, rho: float, rules: ChainRules) -> PartialFit:
        """Nothing seen yet: the settings of a model that was learned from the first block."""
        n_states = model.n_states
        statistics = _core.GramStatistics(len(_kernel(model).centers), n_states)
        return cls(model, rho, rules, statistics, np.zeros((n_states, n_states)), np.zeros(n_states))

    def add(self, sequences: Sequences, codes: Codes, weights: Array | None) -> PartialFit:
        """What was seen so far and one more block; the old one stays as it is."""
        evidence = _kernel(self.model)
        training = TrainingFrames(sequences, evidence.framing, codes, self.model.n_states, weights)
        statistics = copy.deepcopy(self.statistics)
        statistics.add(training.frames, training.one_hot(), training.weights, evidence.centers, evidence.sigma)
        counts, starts = count_transitions(codes, sequences.lengths, self.model.n_states)
        counts, starts = self.counts + counts, self.starts + starts
        mass = statistics.mass
        theta = _core.RegularizedGram(statistics.gram, self.rho * mass.sum()).solve(statistics.moment)
        prior = read_only(mass / mass.sum())
        model = replace(
            self.model,
            transmat=read_only(self.rules.transition_probabilities(counts)),
            startprob=read_only(self.rules.start_probabilities(starts)),
            prior=prior,
            evidence=replace(evidence, theta=read_only(theta), prior=prior),
        )
        return PartialFit(model, self.rho, self.rules, statistics, counts, starts)


def _kernel(model: Model) -> KernelEvidence:
    assert isinstance(model.evidence, KernelEvidence)
    return model.evidence
