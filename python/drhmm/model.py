"""What was learned: frozen, shared by any number of threads, numpy and the native core only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import recursion
from ._sequences import Sequences, as_sequences
from ._validation import Array, check_choice, thread_count
from .evidence import KernelEvidence

METHODS = ("smooth", "filter", "frame")
PATH_METHODS = (*METHODS, "viterbi")


@dataclass(frozen=True, eq=False)
class Model:
    """A learned density ratio hidden Markov model: evidence, transitions and class labels.

    Obtained from ``DensityRatioHMM.fit(...).model_``. A model never changes; its arrays are read-only.

    Attributes
    ----------
    classes : ndarray of shape (S,)
        The label of each state.
    transmat : ndarray of shape (S, S)
        ``transmat[i, j]`` = p(x_t = j | x_{t-1} = i).
    startprob : ndarray of shape (S,)
        p(x_1 = i).
    prior : ndarray of shape (S,)
        Share of each state among the training frames.
    evidence : KernelEvidence
        From samples to log ratios.
    """

    classes: npt.NDArray[Any]
    transmat: Array
    startprob: Array
    prior: Array
    evidence: KernelEvidence

    def __post_init__(self) -> None:
        for array in (self.classes, self.transmat, self.startprob, self.prior):
            array.setflags(write=False)

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.evidence.framing.n_columns

    @property
    def window(self) -> int:
        """Samples that make a frame."""
        return self.evidence.framing.window

    def _sequences(self, X: Any, lengths: Any, sequence_id: Any) -> Sequences:
        sequences = as_sequences(X, lengths, sequence_id)
        n_columns = sequences.samples.shape[1]
        if n_columns != self.n_features:
            raise ValueError(
                f"X has {n_columns} features, but the model was learned from {self.n_features} features as input"
            )
        return sequences

    def log_ratios(self, X: Any, *, lengths: Any = None, sequence_id: Any = None, n_threads: int | None = None) -> Any:
        """Evidence: log w_i(y_t) up to a constant per row, shape (T, S); rows of NaN where a frame is missing."""
        sequences = self._sequences(X, lengths, sequence_id)
        evidence = self.evidence.log_ratios(sequences.samples, sequences.lengths, thread_count(n_threads))
        return sequences.restore(evidence.astype(sequences.dtype, copy=False))

    def predict_proba(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        method: str = "smooth",
        lag: int | None = None,
        n_threads: int | None = None,
    ) -> Any:
        """Probability of each state at each frame.

        Parameters
        ----------
        X : array of shape (T, d), or list of such arrays
            Samples; a NaN makes every frame that contains it a missing one.
        lengths : sequence of int, optional
            Lengths of the sequences that X holds one after the other.
        sequence_id : array of shape (T,), optional
            The sequence that each row belongs to; rows of one sequence are in order but need not be adjacent.
        method : {"smooth", "filter", "frame"}
            Given the whole sequence, given the past and the present, or given each frame alone.
        lag : int, optional
            With "smooth": given the past, the present and the next `lag` frames only.
        n_threads : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray of shape (T, S), or list of such arrays
            Columns in the order of `classes`; rows sum to 1.
        """
        check_choice(method, "method", METHODS)
        if lag is not None and method != "smooth":
            raise ValueError(f"lag={lag!r} goes with method='smooth', not {method!r}")
        sequences = self._sequences(X, lengths, sequence_id)
        threads = thread_count(n_threads)
        evidence = self.evidence.log_ratios(sequences.samples, sequences.lengths, threads)
        posteriors = self._posteriors(evidence, sequences.lengths, method, lag, threads)
        return sequences.restore(posteriors.astype(sequences.dtype, copy=False))

    def _posteriors(self, evidence: Array, lengths: list[int], method: str, lag: int | None, threads: int) -> Array:
        chain: dict[str, Any] = {
            "transmat": self.transmat,
            "startprob": self.startprob,
            "lengths": lengths,
            "n_threads": threads,
        }
        if method == "filter":
            return recursion.filter(evidence, **chain)
        if method == "frame":
            # Every frame is a sequence of its own that starts from the training shares; there is no neighbour that
            # could repeat or contradict its evidence, so that the evidence scale does not apply.
            chain.update(startprob=self.prior, lengths=np.ones(len(evidence), dtype=np.int64))
            return recursion.filter(evidence / self.evidence.evidence_scale, **chain)
        if lag is not None:
            return recursion.fixed_lag(evidence, lag=lag, **chain)
        return recursion.smooth(evidence, **chain)

    def predict(
        self,
        X: Any,
        *,
        lengths: Any = None,
        sequence_id: Any = None,
        method: str = "smooth",
        n_threads: int | None = None,
    ) -> Any:
        """Most probable label of each frame, or with ``method="viterbi"`` the most probable path.

        Parameters as in `predict_proba`.

        Returns
        -------
        ndarray of shape (T,), or list of such arrays
            Labels from `classes`.
        """
        check_choice(method, "method", PATH_METHODS)
        sequences = self._sequences(X, lengths, sequence_id)
        threads = thread_count(n_threads)
        evidence = self.evidence.log_ratios(sequences.samples, sequences.lengths, threads)
        if method == "viterbi":
            states = recursion.viterbi(
                evidence, self.transmat, self.startprob, lengths=sequences.lengths, n_threads=threads
            )
        else:
            states = self._posteriors(evidence, sequences.lengths, method, None, threads).argmax(axis=1)
        return sequences.restore(self.classes[states])
