"""Learning from labelled frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import recursion
from ..chain.durations import Durations, Stays
from ..chain.transitions import ChainRules, count_transitions, tempered
from ..chain.unknown_state import Novelty
from ..data.checks import Array, Integers, checked_log_ratios, read_only
from ..data.labels import UNKNOWN
from ..evidence.pool_members import AheadMember
from ..evidence.pooled import PooledEvidence, least_ratio_of, warn_of_far_classes
from ..evidence.tunings import Tuning
from ..evidence.unknown import LEAST_CORRELATION, SHORTEST_STAY, SPAN, beside, learn_novelty
from ..features.context import Context
from ..features.frames import Framing
from ..model import Model
from ..ratios.learner import Learner, Trained, class_shares
from ..ratios.pool import evidence_of
from ..system.progress import progress_bar
from ..tuning.kernel_search import Selection
from ..tuning.scales import Choice, HeldOutSmoothing
from .context import learn_context_members
from .training_frames import SCALE_REASON, TYPICAL, Places, TrainingFrames, typical_values

#: Transition matrix, start and shapes of durations.
Chain = tuple[Array, Array, Durations | None]


@dataclass(frozen=True)
class Settings:
    """Settings of learning, as in `DensityRatioHMM`; None to learn scales or temper.

    ``context`` maps the mean stay to the features of the past. With ``cautious_shapes``, shapes of durations must be
    clearly better than a plain chain.
    """

    evidence_scale: Array | None
    transition_temper: float | None
    learns_shift: bool
    floor: float
    max_iter: int
    tol: float
    n_init: int
    paper: bool
    n_threads: int
    verbose: bool
    context: Callable[[float], Context] | None = None
    cautious_shapes: bool = False


class Job(NamedTuple):
    """A ratio source, its training frames, the rules of the chain, and settings."""

    learner: Learner
    training: TrainingFrames
    rules: ChainRules
    settings: Settings


@dataclass(frozen=True)
class Learned:
    """Fitted sources, tunings, a chain, and ``targets``, the soft labels used.

    ``choice`` is for smoothing, ``others`` for filtering and single frames; those in ``plain`` use geometric stays.
    ``past`` computes the context of members; members were judged by the frames ``drawn``, or by all.
    """

    trained: list[Trained]
    choice: Choice
    targets: Array
    transmat: Array
    startprob: Array
    stages: Durations | None = None
    n_iter: int = 1
    converged: bool = True
    history: list[float] = field(default_factory=list)
    others: dict[str, Choice] = field(default_factory=dict)
    past: Context | None = None
    plain: set[str] = field(default_factory=set)
    drawn: Places | None = None

    @property
    def selection(self) -> Selection | None:
        """The cross-validation table of kernels, if there was one."""
        found = (getattr(one.source, "selection_", None) for one in self.trained)
        return next((selection for selection in found if selection is not None), None)

    @property
    def tunings(self) -> dict[str, Tuning]:
        """The tunings for filtering and for single frames."""
        names = [one.name for one in self.trained]
        return {
            kind: Tuning(
                dict(zip(names, choice.scales.tolist(), strict=False)),
                choice.temper,
                choice.prior_shift,
                kind not in self.plain,
            )
            for kind, choice in self.others.items()
        }


def learn_labelled(job: Job) -> Learned:
    """Learn ratios and transition frequencies from complete labels.

    Kernel width and regularisation are judged by smoothing held-out evidence, each at its best or given scale and
    temper, or by squared loss if no sequence changes its state. Shapes of durations are kept if the objective of the
    scales is better than for a plain chain, which can be tempered.
    """
    learner, training, rules, settings = job
    counts, starts = count_transitions(training.codes, training.lengths, training.n_states)
    stays, startprob = Stays.of(training.codes, training.lengths), rules.start_probabilities(starts)
    transmat, stages = rules.learn(counts, stays)
    # The requested chain comes first: it is kept if nothing can be judged.
    chains = [(transmat, startprob, stages)]
    if rules.durations.learned and stages is not None:
        transmat, stages = rules.without_shapes.learn(counts, stays)
        chains.append((transmat, startprob, stages))
    targets = training.one_hot()
    smoothing = smoothing_of(training, chains[-1], settings)
    drawn = training.drawn(smoothing.rows)
    task = training.task(targets, drawn)
    rows = training.rows if drawn is None else training.rows[drawn]
    least = least_ratio_of(settings.floor, training.n_states)

    def judge(estimates: Array) -> float:
        return smoothing.best(smoothing.spread(np.log(np.maximum(estimates / task.prior, least)), rows))

    can_judge = smoothing.can_judge
    if can_judge:
        task = replace(task, judge=judge, progress=progress_bar("cross-validation") if settings.verbose else None)
    trained = learner.learn(task, can_judge)
    past = None
    if can_judge and settings.context is not None and settings.evidence_scale is None:
        past = settings.context(training.n_rows / smoothing.n_runs)
        trained = [*trained, *learn_context_members(training.whole, past, task, settings.floor)]

    last: Choice | None = None

    def chosen(kind: str, members: Sequence[Trained], candidates: Sequence[Chain]) -> tuple[Choice, bool]:
        """Return the choice for a kind of answer, and whether it is the first candidate."""
        nonlocal last
        found: Choice | None = None
        for chain in reversed(candidates):
            judging = smoothing_of(training, chain, settings, kind, task.prior)
            choice = choice_of(learner, members, judging, rows, task.prior, found, last)
            if found is None:
                found = last = choice
                continue
            needed = judging.shape_lead if settings.cautious_shapes else 0.0
            if found.objective - choice.objective > needed or not (can_judge or settings.cautious_shapes):
                return choice, True
        assert found is not None
        return found, len(candidates) == 1

    choice, first = chosen("smooth", trained, chains)
    chain = chains[0] if first else chains[-1]
    others, plain = {}, set()
    if can_judge and settings.evidence_scale is None:
        live = [one for one in trained if one.name != AheadMember.NAME]
        others["filter"], with_shapes = chosen("filter", live, chains if first else chains[-1:])
        others["frame"], _ = chosen("frame", live, chains[-1:])
        plain = set() if with_shapes else {"filter"}
    return Learned(trained, choice, targets, *chain, others=others, past=past, plain=plain, drawn=drawn)


def smoothing_of(
    training: TrainingFrames, chain: Chain, settings: Settings, kind: str = "smooth", prior: Array | None = None
) -> HeldOutSmoothing:
    """Return the judge of held-out evidence at the frames that can be judged."""
    transmat, startprob, stages = chain
    return HeldOutSmoothing(
        training.judged_codes(),
        training.lengths,
        transmat,
        startprob,
        settings.evidence_scale,
        settings.transition_temper,
        settings.n_threads,
        settings.learns_shift,
        stages,
        kind,
        prior,
    )


def choice_of(
    learner: Learner,
    trained: Sequence[Trained],
    smoothing: HeldOutSmoothing,
    rows: Places,
    prior: Array,
    near: Choice | None = None,
    after: Choice | None = None,
) -> Choice:
    """Choose scales, temper and prior shift from held-out log ratios at some rows."""
    members = {one.name: None if one.held_out is None else smoothing.spread(one.held_out, rows) for one in trained}
    return smoothing.choose(members, prior, *learner.usual_scales(len(trained)), near, after)


def model_of(
    learned: Learned,
    training: TrainingFrames,
    framing: Framing,
    classes: npt.NDArray[Any],
    feature_names: tuple[str, ...] | None,
    novelty: Novelty | None,
    settings: Mapping[str, Any],
) -> Model:
    """Build the model without evidence for the unknown; ``settings`` are recorded."""
    prior = read_only(class_shares(learned.targets, training.weights))
    transmat, startprob, tempering = tempered(learned.transmat, learned.startprob, learned.choice.temper, prior)
    evidence = evidence_of(learned.trained, framing, prior, learned.choice, learned.past)
    known = training.known
    if isinstance(evidence, PooledEvidence) and evidence.is_kernels_alone and known.any():
        codes = training.codes[training.rows][known]
        frames = training.frames if known.all() else training.frames[known]
        warn_of_far_classes(evidence.reach(frames, codes), classes)
    states = np.full(training.n_rows, UNKNOWN, dtype=np.int64)
    states[training.rows] = learned.targets.argmax(axis=1)
    typical = typical_values(training.samples, states, len(classes))
    return Model(
        classes,
        transmat,
        startprob,
        prior,
        evidence,
        novelty,
        feature_names,
        {**settings, SCALE_REASON: learned.choice.reason, TYPICAL: typical},
        learned.stages,
        tempering,
        other_tunings=learned.tunings,
    )


def with_novelty(
    model: Model, learned: Learned, training: TrainingFrames, random_state: np.random.RandomState, n_threads: int
) -> Model:
    """Return the model with evidence for the unknown, learned from training frames.

    With these scales, the mean filtered probability of the unknown on held-out frames is at most its long-run share
    r d / (1 + r d), with rate r and duration d.
    """
    novelty = model.novelty
    assert novelty is not None
    expected = novelty.rate * novelty.duration
    live = model.tuned("filter")
    known = _held_out_evidence(live, learned, training)

    def mean_novelty(log_evidence: Array) -> float:
        rows = np.flatnonzero(~np.isnan(log_evidence) & ~np.isnan(known).any(axis=1))
        evidence = np.full((len(known), model.n_states + 1), np.nan)
        evidence[rows] = beside(known[rows], log_evidence[rows], model.prior)
        posteriors = recursion.run("filter", live.chain, training.spread(evidence), training.lengths, None, n_threads)
        return float(posteriors[training.rows[rows], -1].mean()) if len(rows) > 0 else 0.0

    def with_means(outliers: Integers) -> Array:
        samples, framing = training.samples.copy(), replace(model.evidence.framing, span=SPAN)
        samples[training.rows[outliers]] = np.nan
        means = framing.frames_with_means(samples, training.lengths)[training.rows]
        means[outliers, -1] = np.nan
        return means

    evidence = learn_novelty(
        training.frames,
        learned.targets,
        training.weights,
        random_state,
        n_threads,
        mean_novelty,
        expected / (1 + expected),
        with_means if _lasts(model, learned.targets, training) else None,
        training.spread,
        training.lengths,
    )
    return replace(model, evidence=model.evidence.with_novelty(evidence))


def _lasts(model: Model, targets: Array, training: TrainingFrames) -> bool:
    """Whether states last and neighbours are alike enough for running means."""
    samples = training.frames[:, -model.n_features :]
    residuals = samples - targets @ (targets.T @ samples / np.maximum(targets.sum(axis=0), 1e-300)[:, None])
    first = np.flatnonzero(np.diff(training.rows) == 1)
    products = (residuals[first] * residuals[first + 1]).sum(axis=0)
    correlation = products / np.maximum((residuals[first] ** 2).sum(axis=0), 1e-300)
    leaving = 1 - float(model.prior @ np.diagonal(model.transmat))
    return leaving * SHORTEST_STAY * SPAN <= 1 and bool(correlation.mean() >= LEAST_CORRELATION)


def _held_out_evidence(model: Model, learned: Learned, training: TrainingFrames) -> Array:
    """Log w_i of the training frames, (N, S), held out if members were; else NaN."""
    logs = np.log(model.prior)
    total: Array = np.full((len(training.frames), model.n_states), np.nan)
    places = slice(None) if learned.drawn is None else learned.drawn
    total[places] = model.evidence.evidence_scale * model.evidence.prior_shift * (logs - logs.mean())
    scales = model.evidence.scales
    for one in learned.trained:
        if (scale := scales.get(one.name, 0.0)) > 0:
            held_out = one.held_out
            if held_out is None:
                assert one.source is not None
                held_out = checked_log_ratios(one.source, training.frames[places], model.n_states)
            total[places] += scale * held_out
    return total
