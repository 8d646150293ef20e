"""Few labels: learn from labelled rows or by EM, whichever predicts hidden labels."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from numpy.random import RandomState
from scipy.special import softmax

from ..data.checks import Array
from ..data.labels import UNKNOWN
from ..features.frames import Framing
from ..model import Model
from .em import clamped, run_em
from .labelled import Job, Learned, learn_labelled, model_of
from .training_frames import TrainingFrames
from .unlabelled import learn_unlabelled

#: The fewest labelled rows for a search of kernel width and regularisation.
FEWEST_SEARCHED = 15

#: Iterations for the transitions between labelled rows without neighbours.
CHAIN_ITERATIONS = 10

#: EM must predict at least this many hidden runs, with at most this mean loss in nats for every state, and be better
#: than the labelled rows alone by this difference. The bound matters most: where EM helps, its loss is small.
FEWEST_RUNS, LARGEST_LOSS, LEAST_LEAD = 5, 0.4, 0.01

#: Lower limit of the posterior of a true state in the loss.
LEAST_POSTERIOR = 0.01


def learn_partly_labelled(
    job: Job, framing: Framing, random_state: RandomState, unlabelled: str
) -> tuple[Learned, TrainingFrames, str]:
    """Return the learned model, its training frames, and the reason for the choice.

    With ``unlabelled="auto"``, half of the runs of labels are hidden in turn, and predicted by EM and by a model of the
    other half alone: -log max(posterior, .01), averaged over the rows of a run, then over runs.
    """
    if unlabelled == "auto":
        state = random_state.get_state()
        use, reason = _verdict(job, framing, random_state)
        random_state.set_state(state)  # the model is that of asking for the verdict
    else:
        use, reason = unlabelled == "use", "as asked"
    words = f"unlabelled rows were {'' if use else 'not '}used: {reason}"
    if use:
        return learn_unlabelled(_for_em(job), random_state), job.training, words
    return *_learn_base(job, framing), words


def _for_em(job: Job) -> Job:
    """The job for EM, which has geometric stays unless other ones are asked for."""
    return job._replace(rules=job.rules.without_shapes) if job.settings.cautious_shapes else job


def _learn_base(job: Job, framing: Framing) -> tuple[Learned, TrainingFrames]:
    """Learn from the labelled rows alone; neighbouring rows form sequences.

    The context sees the rows between them, too. If most labelled rows have no labelled neighbour, there are no context
    and no shapes of durations, and transitions are learned from all rows with the evidence fixed.
    """
    learner, training, rules, settings = job
    alone = training.taken(training.codes != UNKNOWN)
    if len(alone.rows) < FEWEST_SEARCHED:
        learner = copy.deepcopy(learner)
        for source in (learner, *(getattr(learner, "sources", None) or ())):
            for name in ("sigma", "rho"):
                if isinstance(getattr(source, name, None), str):
                    setattr(source, name, "default")
    has_neighbours = 2 * sum(length for length in alone.lengths if length > 1) >= alone.n_rows
    if not has_neighbours:
        rules, settings = _for_em(job).rules, replace(settings, context=None)
    learned = learn_labelled(Job(learner, alone, replace(rules, initial=None), settings))
    if has_neighbours or rules.transmat is not None:
        return learned, alone
    choice = replace(learned.choice, temper=1.0)
    model = _model(replace(learned, choice=choice), alone, framing)
    fixed = model.evidence.log_ratios(training.samples, training.lengths, settings.n_threads)[training.rows]
    found = run_em(
        lambda targets: fixed,
        training,
        replace(rules, initial=rules.first_transitions(np.zeros((rules.n_states, rules.n_states)))),
        clamped(softmax(fixed, axis=1), training.one_hot()),
        max_iter=CHAIN_ITERATIONS,
        tol=0.0,
        n_threads=settings.n_threads,
    )
    transmat, startprob = found.transmat, found.startprob
    learned = replace(learned, transmat=transmat, startprob=startprob, stages=found.stages)
    return replace(learned, choice=choice, others={}), alone


def _verdict(job: Job, framing: Framing, random_state: RandomState) -> tuple[bool, str]:
    """Decide whether EM predicts hidden labels better, and give the reason."""
    training = job.training
    run = _runs(training)
    folds = _folds(run, training)
    if folds is None:
        return False, "a state has too few labels to hide some of them"
    if run.max() + 1 < FEWEST_RUNS:
        return False, f"{run.max() + 1} stretches of labels are too few for a comparison, {FEWEST_RUNS} are needed"
    quiet = replace(job.settings, verbose=False)
    losses = np.zeros((2, run.max() + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold in range(2):
            hidden = np.flatnonzero(folds == fold)
            codes = training.codes.copy()
            codes[hidden] = UNKNOWN
            part = job._replace(training=training.relabelled(codes), settings=quiet)
            try:
                both = (learn_unlabelled(_for_em(part), random_state), part.training), _learn_base(part, framing)
            except ValueError as error:  # the source needs more rows
                return True, f"half of the labels are too few to learn from alone ({error})"
            for way, (learned, own) in enumerate(both):
                model = _model(learned, own, framing)
                posteriors = model.predict_proba(training.samples, lengths=training.lengths, n_threads=quiet.n_threads)
                true = posteriors[hidden, training.codes[hidden]]
                sums = np.bincount(run[hidden], -np.log(np.maximum(true, LEAST_POSTERIOR)), losses.shape[1])
                losses[way] += sums / np.maximum(np.bincount(run[hidden], minlength=losses.shape[1]), 1)
    known = run != UNKNOWN
    states = training.codes[known][np.unique(run[known], return_index=True)[1]]
    return _comparison(losses, states)


def _comparison(losses: Array, states: npt.NDArray[np.int64]) -> tuple[bool, str]:
    """Decide from the losses (2, runs) by EM and by the labelled rows alone."""
    em, alone = losses.mean(axis=1).tolist()
    worst = float((np.bincount(states, losses[0]) / np.bincount(states)).max())
    figures = f"loss {min(em, alone):.2f} against {max(em, alone):.2f}"
    if em > alone - LEAST_LEAD:
        return False, f"hidden labels are predicted better without them, {figures}"
    if worst > LARGEST_LOSS:
        return False, f"hidden labels of a state are predicted badly with them, loss {worst:.2f} above {LARGEST_LOSS:g}"
    return True, f"hidden labels are predicted better with them, {figures}"


def _runs(training: TrainingFrames) -> npt.NDArray[np.int64]:
    """Number the runs of known states, -1 elsewhere; halve the only run of a state."""
    codes, n = training.codes, training.n_rows
    new = np.ones(n, dtype=bool)
    new[1:] = np.diff(codes) != 0
    new[np.cumsum([0, *training.lengths[:-1]])] = True
    for state in range(training.n_states):
        own = np.flatnonzero(codes == state)
        if new[own].sum() == 1 and len(own) > 1:
            new[own[len(own) // 2]] = True
    known = codes != UNKNOWN
    return np.where(known, np.cumsum(new & known) - 1, UNKNOWN)


def _folds(run: npt.NDArray[np.int64], training: TrainingFrames) -> npt.NDArray[np.int64] | None:
    """Return the fold 0, 1 or -1 (unlabelled) of rows; None if a fold lacks a state."""
    folds = np.full(training.n_rows, UNKNOWN)
    weights = np.zeros(training.n_rows)
    weights[training.rows] = training.weights
    for state in range(training.n_states):
        own = np.flatnonzero(training.codes == state)
        folds[own] = np.unique(run[own], return_inverse=True)[1] % 2
        if not all(weights[own[folds[own] == fold]].sum() > 0 for fold in range(2)):
            return None
    return folds


def _model(learned: Learned, own: TrainingFrames, framing: Framing) -> Model:
    """Return the model that was learned from `own`; its classes are codes."""
    return model_of(learned, own, framing, np.arange(own.n_states), None, None, {})
