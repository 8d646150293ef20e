"""The scikit-learn estimator: learning, and batch inference through the model it learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ._labels import as_labels, encode, learn_classes
from ._sequences import Sequences, as_sequences
from ._validation import Array, check_choice, check_integer, check_number, thread_count
from .evidence import read_only
from .evidence_scale import choose_evidence_scale
from .features import Framing, complete_rows, learn_framing
from .model import Model
from .ratios import LeastSquares
from .selection import contiguous_folds
from .transitions import count_transitions, start_probabilities, transition_probabilities


class DensityRatioHMM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Density ratio hidden Markov model.

    Evidence for the states is learned as density ratios by kernel least squares; forward-backward runs on ratios.

    Parameters
    ----------
    n_states : int, optional
        Number of states; the number of classes in y by default.
    ratio : {"least-squares"}
        Where evidence comes from.
    n_basis : int
        Number of kernel centres, drawn from the training frames.
    sigma : float or {"cv", "default"}
        Kernel width, in units of standardised frames: a number, cross-validated, or 0.7 times the median distance.
    rho : float or {"cv", "default"}
        Regularisation over the number of training frames: a number, cross-validated, or 0.01.
    floor : float
        Smallest posterior estimate of a frame, for balanced states; 0 lets one frame exclude a state.
    evidence_scale : float or "cv"
        Exponent of the ratios. Below 1 where neighbouring frames repeat each other (overlapping windows), above 1
        where regularisation made the estimates too cautious; "cv" chooses it by held-out smoothing.
    standardize : bool
        Whether columns are brought to mean 0 and standard deviation 1.
    window : int
        Samples that make a frame: frame t is samples t-window+1..t of its own sequence. The first window-1 frames
        of a sequence have no evidence of their own.
    transition_prior : float
        Pseudo-count added to every entry of the transition counts.
    random_state : int, RandomState or None
        Seed of the choice of kernel centres.
    n_threads : int, optional
        Threads; all cores, or DRHMM_NUM_THREADS, by default.

    Attributes
    ----------
    classes_ : ndarray of shape (S,)
        Labels of the states.
    transmat_, startprob_ : ndarray
        Transition and start probabilities.
    centers_, theta_ : ndarray
        Kernel centres and coefficients.
    sigma_, rho_, evidence_scale_ : float
        Settings that were used.
    selection_ : Selection or None
        The cross-validation table of sigma and rho.
    model_ : Model
        All of it, frozen, for inference.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from drhmm import DensityRatioHMM
    >>> from drhmm.datasets import sines, sines_training
    >>> X, y = sines_training(100, random_state=0)
    >>> model = DensityRatioHMM(window=4, random_state=0).fit(X, y)
    >>> X_test, y_test = sines(500, random_state=1)
    >>> bool(model.score(X_test, y_test) > 0.8)
    True
    """

    def __init__(
        self,
        n_states: int | None = None,
        *,
        ratio: str = "least-squares",
        n_basis: int = 500,
        sigma: float | str = "cv",
        rho: float | str = "cv",
        floor: float = 0.01,
        evidence_scale: float | str = "cv",
        standardize: bool = True,
        window: int = 1,
        transition_prior: float = 1.0,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_states = n_states
        self.ratio = ratio
        self.n_basis = n_basis
        self.sigma = sigma
        self.rho = rho
        self.floor = floor
        self.evidence_scale = evidence_scale
        self.standardize = standardize
        self.window = window
        self.transition_prior = transition_prior
        self.random_state = random_state
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        if self.n_states is not None:
            check_integer(self.n_states, "n_states", low=2)
        check_choice(self.ratio, "ratio", ("least-squares",))
        if self.evidence_scale != "cv":
            check_number(self.evidence_scale, "evidence_scale", low=0, low_open=True)
        check_integer(self.window, "window", low=1)
        check_number(self.transition_prior, "transition_prior", low=0)
        thread_count(self.n_threads)

    def _source(self) -> LeastSquares:
        source = LeastSquares(
            n_basis=self.n_basis,
            sigma=self.sigma,
            rho=self.rho,
            floor=self.floor,
            random_state=self.random_state,
            n_threads=self.n_threads,
        )
        source.check_parameters()
        return source

    def fit(self, X: Any, y: Any, *, lengths: Any = None, sequence_id: Any = None) -> DensityRatioHMM:
        """Learn from labelled sequences.

        Parameters
        ----------
        X : array of shape (T, d), or list of such arrays
            Samples; a NaN makes every frame that contains it a missing one.
        y : array of shape (T,), or list of such arrays
            Labels of any dtype.
        lengths : sequence of int, optional
            Lengths of the sequences that X holds one after the other.
        sequence_id : array of shape (T,), optional
            The sequence that each row belongs to.

        Returns
        -------
        DensityRatioHMM
            The fitted estimator. If anything raises, it stays as it was.
        """
        self._check_parameters()
        source = self._source()
        threads = thread_count(self.n_threads)
        sequences = as_sequences(X, lengths, sequence_id)
        classes, codes = learn_classes(as_labels(y, sequences))
        if self.n_states is not None and self.n_states != len(classes):
            raise ValueError(f"n_states is {self.n_states}, but y has {len(classes)} classes: {classes.tolist()}")
        counts, starts = count_transitions(codes, sequences.lengths, len(classes))
        transmat = transition_probabilities(counts, self.transition_prior)
        startprob = start_probabilities(starts)
        framing = learn_framing(sequences.samples, self.window, self.standardize)
        training = _TrainingFrames(sequences, framing, codes, classes)
        source.fit(training.frames, training.targets, folds=training.folds)
        evidence_scale = self._learn_evidence_scale(source, training, codes, sequences, transmat, startprob, threads)

        self.classes_ = classes
        self.transmat_, self.startprob_ = read_only(transmat), read_only(startprob)
        self.centers_, self.theta_ = source.centers_, source.theta_
        self.sigma_, self.rho_, self.selection_ = source.sigma_, source.rho_, source.selection_
        self.evidence_scale_ = evidence_scale
        self.n_features_in_ = sequences.samples.shape[1]
        self.model_ = Model(
            classes.copy(),
            self.transmat_,
            self.startprob_,
            source.prior_,
            source.evidence(framing, evidence_scale),
        )
        return self

    def _learn_evidence_scale(
        self,
        source: LeastSquares,
        training: _TrainingFrames,
        codes: npt.NDArray[np.int64],
        sequences: Sequences,
        transmat: Array,
        startprob: Array,
        threads: int,
    ) -> float:
        if self.evidence_scale != "cv":
            return float(self.evidence_scale)
        log_ratios = np.full((len(codes), len(transmat)), np.nan)
        log_ratios[training.rows] = source.out_of_fold_log_ratios(training.frames, training.targets, training.folds)
        return choose_evidence_scale(log_ratios, codes, sequences.lengths, transmat, startprob, threads)

    def _fitted_model(self) -> Model:
        check_is_fitted(self, "model_")
        model: Model = self.model_
        return model

    def predict(self, X: Any, *, lengths: Any = None, sequence_id: Any = None, method: str = "smooth") -> Any:
        """Most probable label of each frame; see `Model.predict`."""
        return self._fitted_model().predict(
            X, lengths=lengths, sequence_id=sequence_id, method=method, n_threads=self.n_threads
        )

    def predict_proba(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        method: str = "smooth",
        lag: int | None = None,
    ) -> Any:
        """Probability of each state at each frame; see `Model.predict_proba`."""
        return self._fitted_model().predict_proba(
            X, lengths=lengths, sequence_id=sequence_id, method=method, lag=lag, n_threads=self.n_threads
        )

    def log_ratios(self, X: Any, *, lengths: Any = None, sequence_id: Any = None) -> Any:
        """Evidence of each frame; see `Model.log_ratios`."""
        return self._fitted_model().log_ratios(X, lengths=lengths, sequence_id=sequence_id, n_threads=self.n_threads)

    def score(self, X: Any, y: Any, *, lengths: Any = None, sequence_id: Any = None, method: str = "smooth") -> float:
        """Share of frames whose label `predict` gets right."""
        predicted = self.predict(X, lengths=lengths, sequence_id=sequence_id, method=method)
        sequences = as_sequences(X, lengths, sequence_id)
        truth = encode(as_labels(y, sequences), self.classes_)
        guess = encode(as_labels(predicted, sequences), self.classes_)
        return float(np.mean(truth == guess))


class _TrainingFrames:
    """The complete frames of labelled sequences, with their targets, folds and rows."""

    def __init__(
        self, sequences: Sequences, framing: Framing, codes: npt.NDArray[np.int64], classes: npt.NDArray[Any]
    ) -> None:
        frames = framing.frames(sequences.samples, sequences.lengths)
        self.rows = np.flatnonzero(complete_rows(frames))
        if len(self.rows) == 0:
            raise ValueError(
                f"X has no complete frame: window={framing.window} needs that many samples in a row without NaN, "
                f"and the sequences have lengths {sequences.lengths[:10]}"
            )
        self.frames = np.ascontiguousarray(frames[self.rows])
        self.targets = np.eye(len(classes))[codes[self.rows]]
        self.folds = contiguous_folds(sequences.lengths)[self.rows]
        for code, count in enumerate(self.targets.sum(axis=0)):
            if count == 0:
                raise ValueError(
                    f"the class {classes[code]!r} has no complete frame: all of its frames lack samples in their window"
                )
