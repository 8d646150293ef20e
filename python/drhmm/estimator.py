"""The scikit-learn estimator: settings and learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from ._estimator_answers import FittedAnswers
from .chain.durations import DurationRules, check_minimum, minimum_stays
from .chain.transitions import ChainRules, chain_rules
from .chain.unknown_state import LONGEST_DURATION, SMALLEST_RATE, Novelty
from .data.checks import (
    as_json,
    check_bool,
    check_choice,
    check_integer,
    check_number,
    check_number_or_auto,
    thread_count,
)
from .data.labels import UNKNOWN, Codes, as_labels, encode, read_labels, warn_of_shuffled_rows
from .data.sequences import LEARNED_ROWS, Data, Rows, Sequences, as_sequences, feature_names_of
from .evidence.pooled import PooledEvidence
from .features.context import LONGEST_WINDOW
from .features.frames import learn_framing, random_state_of
from .learning.block_sums import PartialFit, Statistics, check_additive, pooled_evidence_of
from .learning.context import context_maker
from .learning.few_labels import learn_partly_labelled
from .learning.labelled import Job, Learned, Settings, learn_labelled, model_of, with_novelty
from .learning.training_frames import SCALE_REASON, UNLABELLED, TrainingFrames, class_weights, row_weights
from .learning.unlabelled import learn_unlabelled
from .model import Model
from .ratios.learner import Learner, as_learner
from .ratios.least_squares import LeastSquares
from .ratios.pool import source_of
from .system.calls import by_name, with_own_threads
from .tuning.kernel_search import Selection
from .tuning.scales import given_scales, given_temper


class DensityRatioHMM(FittedAnswers, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Density ratio hidden Markov model.

    The model learns the evidence for each state as density ratios and runs forward-backward on them. By default the
    evidence is a pool of kernel least squares, additive least squares, class Gaussians and least squares on the past of
    each time step. For each kind of answer, cross-validation chooses the weights of these members and of the chain that
    label held-out sequences best. Sequences may be labelled, partly labelled or unlabelled.

    Most users need only the first ten parameters; the others are in groups under *Other Parameters*.

    Parameters
    ----------
    n_states : int, optional
        Number of states. Needed without labels; with labels it is the number of classes in y.
    window : int
        Samples per frame: frame t is samples t-window+1..t of its own sequence. The first window-1 time steps of a
        sequence have no evidence of their own.
    ratio : {"pool", "least-squares", "gaussian"} or a ratio source
        Source of the evidence: the pool of kernels, additive ratios and Gaussians (`drhmm.ratios.Pool`), kernel
        least squares alone, as in the paper, one Gaussian per state, or an object with the methods ``fit`` and
        ``log_ratios``, such as those in `drhmm.ratios`. Without labels, the pool uses kernels, or Gaussians if these
        predict held-out time steps clearly better.
    class_weight : dict or "balanced", optional
        Weight of each class, as in scikit-learn. It multiplies the weights of time steps of the class in ratios, and
        the counts of transitions into it. A class with more weight is predicted more often.
    context : int, "auto" or None
        Features of the past of a time step: means, spreads and changes of its columns over windows, and convolutions,
        as a further member of the pool. "auto": windows of 5, 17 and 65 samples up to twice the mean stay,
        where labels have labelled neighbours. An integer: the longest window, in time steps. None: no such features.
    durations : {"auto", "geometric", "negative-binomial"}
        Distribution of the stays in each state. Stays of a plain chain are geometric: the shortest are the most
        frequent. "negative-binomial" learns the shape of each distribution, and keeps the shapes only if they label
        held-out sequences better than geometric stays; "auto" only if they are clearly better, and never for EM.
    min_duration : int, dict or array of shape (S,), optional
        The shortest stay, in time steps: for all classes, by label, or for each. The first and the last stay of a
        sequence may be cut. Shorter stays in a fully labelled y, and mean stays below the minimum, are raised to it.
    novelty : bool
        Whether the model has a state for the unknown; see `novelty_proba`.
    unknown : label or None
        The label that means unknown, as NaN and None always do. "auto" means -1 among integers and empty text
        otherwise. (If -1 and 1 are the only labels, they are two classes, unless novelty=True makes one class enough.)
        None means that there is no such label.
    random_state : int, RandomState or None
        Seed of the kernel centres and of the starts of EM.

    Other Parameters
    ----------------
    Kernels and evidence
        How evidence is estimated, and how much it counts.
    n_basis : int, "auto" or None
        Number of kernel centres, drawn from the training frames. "auto": 25 per state, at least 150 and at most
        500. None: every frame, as in the paper.
    sigma : float or {"cv", "default"}
        Kernel width, in units of standardised frames: a number, cross-validated, or the median distance of centres.
    rho : float or {"cv", "default"}
        Regularisation over the number of training frames: a number, cross-validated, or 0.003.
    floor : float
        The smallest posterior estimate that a state can get from one frame, for balanced states. With 0, one frame can
        exclude a state.
    evidence_scale : float, sequence of float, or "cv"
        Exponent of the ratios: below 1 where neighbouring frames repeat each other, above 1 where regularisation
        made the estimates too cautious. "cv" learns one for each member of the pool by held-out smoothing, and how much
        the class shares count. Without enough labels, kernels and Gaussians have 1/2 each, and kernels alone have 1. A
        number is shared among the members in these proportions; a sequence has one for each.
    standardize : bool
        Whether to standardise columns to mean 0 and standard deviation 1.
    Chain
        How states follow each other.
    transition_prior : float or array of shape (S, S)
        Pseudo-count of every transition, or of each: large on the diagonal for sticky states, -inf where a transition
        is forbidden.
    transmat, startprob : array, optional
        Given transition and start probabilities; by default they are learned.
    transition_temper : float in (0, 1], or "cv"
        Exponent of the transition and start probabilities. A value below 1 keeps short events that small evidence
        scales would smooth away. "cv" learns it with the scales; it is 1 with too few labels or with `class_weight`. A
        chain with `min_duration`, or with learned shapes of ``durations``, is not tempered: the setting must be 1 or
        "cv", which then means 1.
    Unlabelled data
        How EM learns where labels are missing.
    n_init : int
        Starts of EM that run to the end. The result with the largest gain is kept: the mean log likelihood of a time
        step, less that of independent time steps.
    max_iter, tol : int, float
        EM ends after `max_iter` iterations, or when the posteriors of a time step change by less than `tol` on average.
    transmat_init : array of shape (S, S), optional
        Transition probabilities that EM begins with; the states are numbered to suit them. To begin with labels, give a
        partly labelled y.
    em_update : {"soft", "paper"}
        Least squares on soft labels with one factorisation for all iterations, or the rule printed in the paper.
    unlabelled : {"auto", "use", "ignore"}
        Whether a fit with some labels learns from the other rows, too. "auto" hides labels and uses the other rows only
        if EM then predicts the hidden labels well, and better than the labelled rows alone do.
    Novelty
        The state for the unknown; these need ``novelty=True``.
    novelty_rate : float
        Probability that something unknown begins at a time step.
    novelty_duration : float
        Mean number of time steps that it lasts.
    novelty_evidence : {"calibrated", "paper"}
        Evidence for the unknown. "calibrated" measures how far a frame is from class Gaussians and from a kernel
        density, as p-values among held-out training frames. On these, the mean of p(unknown) is at most the share that
        rate and duration imply. It works with all ratios, and `Model.alarm` needs it. "paper" is 1 minus the estimates
        of kernel least squares, with kernels as the only ratio.
    Computing
        Threads and progress.
    n_threads : int, optional
        Threads; all cores, or DRHMM_NUM_THREADS, by default.
    verbose : bool
        Whether cross-validation and EM show their progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (S,)
        Labels of the states; 0..S-1 without labels.
    transmat_, startprob_ : ndarray
        Transition and start probabilities as counted or given. Inference uses the tempered ``model_.transmat``.
    member_scales_, evidence_scale_ : dict, float
        The exponent of each member of the pool by name, without members of scale 0, and their sum.
    transition_temper_, prior_shift_ : float
        The exponent of the chain, and the weight of the class shares relative to the ratios, in units of
        `evidence_scale_`.
    scale_reason_ : str
        The data that scales, temper and shift were learned from, in words.
    centers_, theta_, sigma_, rho_ : ndarray, ndarray, float, float
        Kernel centres, coefficients, width and regularisation, if kernels take part.
    unlabelled_reason_ : str
        Whether rows without a label were used, and why, in words; empty if all labels were known, or all unknown.
    selection_ : Selection or None
        The cross-validation table of sigma and rho.
    n_iter_, converged_, history_ : int, bool, list of float
        Iterations of EM, whether it converged, and its gain after each; 1, True, [] where every label was known.
    model_ : Model
        The frozen model, for inference.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Columns of X, and their names if X was a table with names.

    Examples
    --------
    >>> import numpy as np
    >>> import drhmm
    >>> X, y = drhmm.datasets.blobs(400, random_state=0)
    >>> new, truth = drhmm.datasets.blobs(300, random_state=1)
    >>> model = drhmm.DensityRatioHMM(novelty=True, random_state=0).fit(X, y)
    >>> bool(model.score(new, truth) > 0.8)  # accuracy
    True
    >>> few = np.where(np.arange(400) % 10 == 0, y, -1)  # every tenth label is known
    >>> bool(drhmm.DensityRatioHMM(random_state=0).fit(X, few).score(new) > 0)  # gain
    True
    >>> blocks = drhmm.DensityRatioHMM(n_basis=50, random_state=0)
    >>> for rows in (slice(0, 200), slice(200, 400)):
    ...     blocks = blocks.partial_fit(X[rows], y[rows])
    >>> labels = model.predict(new, lengths=[100, 200])  # of two sequences; for more, see `Model`
    """

    @by_name
    def __init__(
        self,
        n_states: int | None = None,
        *,
        window: int = 1,
        ratio: Any = "pool",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        context: int | Literal["auto"] | None = "auto",
        durations: Literal["auto", "geometric", "negative-binomial"] = "auto",
        min_duration: int | Mapping[Any, int] | npt.ArrayLike | None = None,
        novelty: bool = False,
        unknown: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_basis: int | Literal["auto"] | None = "auto",
        sigma: float | Literal["cv", "default"] = "cv",
        rho: float | Literal["cv", "default"] = "cv",
        floor: float = 0.02,
        evidence_scale: float | npt.ArrayLike | Literal["cv"] = "cv",
        standardize: bool = True,
        transition_prior: npt.ArrayLike = 1.0,
        transmat: npt.ArrayLike | None = None,
        startprob: npt.ArrayLike | None = None,
        transition_temper: float | Literal["cv"] = "cv",
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-4,
        transmat_init: npt.ArrayLike | None = None,
        em_update: Literal["soft", "paper"] = "soft",
        unlabelled: Literal["auto", "use", "ignore"] = "auto",
        novelty_rate: float = 1e-3,
        novelty_duration: float = 50.0,
        novelty_evidence: str = "calibrated",
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_states, self.window, self.ratio, self.class_weight = n_states, window, ratio, class_weight
        self.context, self.durations, self.min_duration = context, durations, min_duration
        self.novelty, self.unknown, self.random_state = novelty, unknown, random_state
        self.n_basis, self.sigma, self.rho, self.floor = n_basis, sigma, rho, floor
        self.evidence_scale, self.standardize = evidence_scale, standardize
        self.transition_prior, self.transmat, self.startprob = transition_prior, transmat, startprob
        self.transition_temper = transition_temper
        self.n_init, self.max_iter, self.tol, self.transmat_init = n_init, max_iter, tol, transmat_init
        self.em_update, self.unlabelled = em_update, unlabelled
        self.novelty_rate, self.novelty_duration = novelty_rate, novelty_duration
        self.novelty_evidence, self.n_threads, self.verbose = novelty_evidence, n_threads, verbose

    def __sklearn_tags__(self) -> Any:
        """Tags: X may contain NaN (missing samples); y is optional with `n_states`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = self.n_states is None
        return tags

    def _check_parameters(self) -> None:
        check_bool(self.standardize, "standardize")
        check_bool(self.novelty, "novelty")
        least = 1 if self.novelty else 2
        if self.n_states is not None and check_integer(self.n_states, "n_states", low=1) < least:
            raise ValueError("n_states must be at least 2, got 1: a single state needs novelty=True")
        given_scales(self.evidence_scale)
        given_temper(self.transition_temper)
        for name in ("window", "max_iter", "n_init"):
            check_integer(getattr(self, name), name, low=1)
        check_number(self.novelty_rate, "novelty_rate", low=SMALLEST_RATE, high=1, high_open=True)
        check_number(self.novelty_duration, "novelty_duration", low=1, high=LONGEST_DURATION)
        check_choice(self.novelty_evidence, "novelty_evidence", ("calibrated", "paper"))
        check_number(self.tol, "tol", low=0)
        check_choice(self.em_update, "em_update", ("soft", "paper"))
        check_choice(self.unlabelled, "unlabelled", ("auto", "use", "ignore"))
        check_choice(self.durations, "durations", ("auto", "geometric", "negative-binomial"))
        check_number_or_auto(self.context, "context", low=2, high=LONGEST_WINDOW, of="time steps")
        thread_count(self.n_threads)

    def _learner(self, random_state: np.random.RandomState) -> Learner:
        """Return the unfitted ratio source."""
        paper = self.novelty and self.novelty_evidence == "paper"
        own = {name: getattr(self, name) for name in ("n_basis", "sigma", "rho", "floor", "n_threads")}
        source = source_of(self.ratio, random_state, paper, **own)
        if paper and not isinstance(source, LeastSquares):
            raise ValueError(
                f"novelty_evidence='paper' needs ratio='pool', 'least-squares' or LeastSquares, got {self.ratio!r}"
            )
        if self.novelty and getattr(source, "floor", 1) == 0:
            raise ValueError("novelty=True needs a positive floor: without it no known state may be possible")
        return as_learner(source)

    def _rules(self, classes: npt.NDArray[Any], codes: Codes | None = None) -> ChainRules:
        """Return the rules of the chain; balanced weights need the `codes` of labels."""
        weights = None
        if self.class_weight is not None:
            known = np.arange(len(classes)) if codes is None else codes[codes != UNKNOWN]
            weights = class_weights(self.class_weight, classes, known)
        auto = self.durations == "auto" and (codes is None or (codes != UNKNOWN).any()) and self.min_duration is None
        auto = auto and self.transition_temper == "cv" and self.transmat is None and self.class_weight is None
        learned = self.durations == "negative-binomial" or auto
        stays = DurationRules(learned, minimum_stays(self.min_duration, classes))
        return chain_rules(
            self.transition_prior, self.transmat, self.startprob, len(classes), weights, stays, self.transmat_init
        )

    def _classes_and_codes(self, y: npt.ArrayLike | None, sequences: Sequences) -> tuple[npt.NDArray[Any], Codes]:
        classes, codes = read_labels(y, sequences, self.n_states, self.novelty, self.unknown)
        if self.class_weight is not None and (codes == UNKNOWN).all():
            raise ValueError("class_weight needs labels, and no time step is labelled")
        return classes, codes

    @with_own_threads
    def fit(
        self, X: Data, y: Rows = None, *, lengths: Rows = None, sequence_id: Rows = None, sample_weight: Rows = None
    ) -> DensityRatioHMM:
        """Learn from sequences.

        X, lengths and sequence_id are as in `Model.predict_proba`. End a sequence at each gap in time: `fit` has no
        `dt` and counts neighbouring rows as one step of the chain. If fit raises an error, the estimator does not
        change.

        Parameters
        ----------
        y : array of shape (T,), or list of such arrays, optional
            Labels of any dtype. An unknown label is -1 among integers, NaN among floats, None or NaN among objects,
            empty text, or `unknown`. Without y, or with some labels unknown, EM finds the rest.
        sample_weight : array of shape (T,), or list of such arrays, optional
            Weight of each time step when ratios are learned; transitions are counted without weights.
        """
        self._check_parameters()
        random_state, threads = random_state_of(self.random_state), thread_count(self.n_threads)
        learner = self._learner(random_state)
        sequences, feature_names = as_sequences(X, lengths, sequence_id), feature_names_of(X)
        classes, codes = self._classes_and_codes(y, sequences)
        warn_of_shuffled_rows(sequences, codes, len(classes))
        rules = self._rules(classes, codes)
        if self.window > max(sequences.lengths):
            raise ValueError(
                f"X has no complete frame: window={self.window}, but the longest sequence has "
                f"{max(sequences.lengths)} samples"
            )
        framing = learn_framing(
            sequences.samples,
            self.window,
            self.standardize,
            sequences.row,
            names=feature_names,
            precision=float(np.finfo(sequences.dtype).eps),
            resist_outliers=not (codes != UNKNOWN).any(),
        )
        if len(classes) == 1:  # EM has nothing to learn
            codes = np.zeros_like(codes)
        weights = row_weights(self.class_weight, sample_weight, sequences, codes, classes)
        training = TrainingFrames(sequences, framing, codes, len(classes), weights)
        if len(classes) > len(training.rows):
            raise ValueError(f"n_states is {len(classes)}, but there are only {len(training.rows)} complete frames")
        if (codes != UNKNOWN).any():
            training.check_classes(classes)
        else:
            training.warn_of_few_frames()
        # Class weights correct the shares of labels: held-out labels must not undo them.
        temper = given_temper(self.transition_temper, rules.durations.are_geometric)
        settings = Settings(
            given_scales(self.evidence_scale),
            1.0 if temper is None and self.class_weight is not None else temper,
            self.class_weight is None,
            float(getattr(learner, "floor", self.floor)),
            self.max_iter,
            self.tol,
            self.n_init,
            self.em_update == "paper",
            threads,
            self.verbose,
            context_maker(self.context, learner, framing, sequences, random_state),
            self.durations == "auto",
        )
        job, reason = Job(learner, training, rules, settings), ""
        if training.labelled:
            if rules.initial is not None:
                raise ValueError("transmat_init is where EM begins, and every time step has a label: use transmat")
            learned = learn_labelled(job)
        else:
            check_minimum(codes, sequences.lengths, rules.durations.minimum, classes)
            if training.known.any():
                learned, training, reason = learn_partly_labelled(job, framing, random_state, self.unlabelled)
            else:
                learned = learn_unlabelled(job, random_state)
        recorded = {name: as_json(value) for name, value in self.get_params(deep=False).items()}
        novelty = Novelty(float(self.novelty_rate), float(self.novelty_duration)) if self.novelty else None
        recorded |= {LEARNED_ROWS: sequences.sketch()}
        recorded |= {UNLABELLED: reason} if reason else {}
        model = model_of(learned, training, framing, classes, feature_names, novelty, recorded)
        if self.novelty and self.novelty_evidence == "calibrated":
            model = with_novelty(model, learned, training, random_state, threads)
        self._adopt(model, learned, learned.selection)
        return self

    def partial_fit(
        self,
        X: Data,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        *,
        lengths: Rows = None,
        sequence_id: Rows = None,
        sample_weight: Rows = None,
    ) -> DensityRatioHMM:
        """Learn from one more labelled block of whole sequences.

        The first block (after construction or `fit`) chooses standardisation, kernel centres, sigma, rho, deciles,
        scales, temper and the evidence for the unknown, as `fit` does, and must hold every class. From then on sums
        over time steps and transition counts accumulate: the model is the same as from all blocks together with those
        settings. A later block with other settings raises an error, except for settings of threads, progress and EM;
        `fit`, or a clone, starts again.

        Arguments as in `fit`; every label must be known. With `classes`, the first block must have all of these.
        """
        check_additive(self.ratio, self.class_weight, "partial_fit")
        partial: PartialFit | None = getattr(self, "_partial", None)
        selection = getattr(self, "selection_", None)
        if partial is None:
            first = clone(self)
            if first._classes_and_codes(y, as_sequences(X, lengths, sequence_id))[1].min() == UNKNOWN:
                raise ValueError("partial_fit learns from labelled blocks: every label must be known")
            first.fit(X, y, lengths=lengths, sequence_id=sequence_id, sample_weight=sample_weight)
            partial = PartialFit.begin(first.model_, self._rules(first.classes_), self.get_params())
            selection = getattr(first, "selection_", None)
        else:
            partial.check_settings(self.get_params())
            self._model_for(X)
        if classes is not None and not np.array_equal(np.unique(classes), partial.model.classes):
            given, known = np.unique(classes).tolist(), partial.model.classes.tolist()
            raise ValueError(f"classes are {given}, but the first block had the classes {known}; it must have all")
        self._check_parameters()
        sequences = partial.model.read(X, lengths, sequence_id)
        codes = encode(as_labels(y, sequences), partial.model.classes, sequences)
        weights = row_weights(self.class_weight, sample_weight, sequences, codes, partial.model.classes)
        partial = partial.add(Statistics.of(pooled_evidence_of(partial.model), sequences, codes, weights))
        self._adopt_partial(partial, selection)
        return self

    def _adopt(self, model: Model, learned: Learned | None, selection: Selection | None) -> None:
        """Replace all fitted attributes of an earlier fit, after everything that can fail."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._partial: PartialFit | None = None
        self.model_ = model
        self.classes_ = model.classes.copy()
        self.transmat_, self.startprob_ = model.counted.transmat, model.counted.startprob
        self.transition_temper_ = model.tunings["smooth"].temper
        self.evidence_scale_, self.member_scales_ = model.evidence.evidence_scale, model.evidence.scales
        self.prior_shift_ = model.evidence.prior_shift
        self.scale_reason_ = str(model.settings[SCALE_REASON])
        self.unlabelled_reason_ = str(model.settings.get(UNLABELLED, ""))
        self.n_features_in_ = model.n_features
        if model.feature_names is not None:
            self.feature_names_in_ = np.array(model.feature_names, dtype=object)
        em = (1, True, []) if learned is None else (learned.n_iter, learned.converged, list(learned.history))
        self.n_iter_, self.converged_, self.history_ = em
        if isinstance(model.evidence, PooledEvidence) and model.evidence.kernel is not None:
            kernel = model.evidence.kernel
            self.centers_, self.theta_, self.sigma_, self.rho_ = kernel.centers, kernel.theta, kernel.sigma, kernel.rho
            self.selection_ = selection

    def _adopt_partial(self, partial: PartialFit, selection: Selection | None) -> None:
        self._adopt(partial.model, None, selection)
        self._partial = partial
