"""The tempered chain and the objective of the tunings in numpy.

P = A^tau elementwise and pi^tau are the weights of transitions and of first states. Smoothing with them equals
smoothing with the proper chain of `tempered`, if its end weights are added to the evidence of the last frame of each
sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .features import Array
from .pool import pooled, prior_shift
from .recursion import prepare

Codes = npt.NDArray[np.int64]

#: Weight of the squared steps of log2 kappa away from c, of those of tau from 1 and of beta from 0.
SCALE_PULL, TEMPER_PULL, SHIFT_PULL = 0.002, 0.5, 0.5


def power(values: Array, temper: float) -> Array:
    """values^temper; zeros stay zeros."""
    return np.where(values > 0, values**temper, 0.0)


def tempered(transmat: Array, startprob: Array, temper: float) -> tuple[Array, Array, Array]:
    """A' (S, S), pi' (S,) and the end weights -log r (S,), whose largest is 0.

    P = A^tau has the Perron value lambda and the right vector r: A'_ij = P_ij r_j / (lambda r_i), pi'_i proportional
    to pi_i^tau r_i.
    """
    weights = power(transmat, temper)
    values, vectors = np.linalg.eig(weights)
    r = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    chain = weights * r / r[:, None]
    start = power(startprob, temper) * r
    return chain / chain.sum(axis=1, keepdims=True), start / start.sum(), np.log(r.min()) - np.log(r)


def smoothed(evidence: Array, transitions: Array, start: Array) -> tuple[Array, Array, Array, Array]:
    """Posteriors (T, S), both messages, exp(evidence); weights need not sum to 1."""
    rows = prepare(evidence)
    weights = np.exp(rows - rows.max(axis=1, keepdims=True))
    a, b = np.empty_like(weights), np.ones_like(weights)
    for t in range(len(weights)):
        a[t] = (start if t == 0 else a[t - 1] @ transitions) * weights[t]
        a[t] /= a[t].sum()
    for t in range(len(weights) - 2, -1, -1):
        b[t] = transitions @ (weights[t + 1] * b[t + 1])
        b[t] /= b[t].sum()
    posteriors = a * b
    return posteriors / posteriors.sum(axis=1, keepdims=True), a, b, weights


def loss_and_gradient(
    evidence: Array, codes: Codes, transitions: Array, start: Array
) -> tuple[float, Array, Array, Array]:
    """-sum_t log gamma_t(x_t) over frames of known state, and its derivatives.

    Derivatives by the logarithms of evidence (T, S), of transitions (S, S) and of start (S,). Normalisers count as
    constants, because gamma does not depend on the scale of a message. With u = dL / d log a_t, which
    includes the direct term gamma_t - 1[i = x_t], the backward pass of the forward message is
    u_{t-1}(i) += sum_j u_t(j) a_{t-1}(i) P_ij / sum_k a_{t-1}(k) P_kj; the backward message is its mirror image.
    """
    posteriors, a, b, weights = smoothed(evidence, transitions, start)
    known = codes >= 0
    own = np.where(known[:, None], posteriors, 0.0)
    own[known, codes[known]] -= 1.0
    loss = -float(np.log(posteriors[known, codes[known]]).sum())
    by_evidence, by_transitions = np.zeros_like(posteriors), np.zeros_like(transitions)
    u = np.zeros(len(start))
    for t in range(len(weights) - 1, -1, -1):
        u = u + own[t]
        by_evidence[t] += u
        if t > 0:
            joint = a[t - 1][:, None] * transitions
            total = joint.sum(axis=0)
            share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0) * u
            by_transitions += share
            u = share.sum(axis=1)
    by_start = u
    v = np.zeros(len(start))
    for t in range(len(weights) - 1):
        v = v + own[t]
        joint = transitions * (weights[t + 1] * b[t + 1])
        total = joint.sum(axis=1, keepdims=True)
        share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0) * v[:, None]
        by_transitions += share
        v = share.sum(axis=0)
        by_evidence[t + 1] += v
    by_evidence[np.isnan(evidence).all(axis=1)] = 0.0
    return loss, by_evidence, by_transitions, by_start


def objective(
    members: Sequence[Array],
    codes: Codes,
    lengths: Sequence[int],
    transmat: Array,
    startprob: Array,
    prior: Array,
    defaults: Sequence[float],
    parameters: Array,
) -> tuple[float, Array]:
    """(runs / frames) sum_t -log gamma_t(x_t) + pulls, and its gradient.

    The parameters are log2 kappa_m, tau and beta.
    """
    log_scales, temper, beta = parameters[:-2], float(parameters[-2]), float(parameters[-1])
    scales = 2.0**log_scales
    transitions, start = power(transmat, temper), power(startprob, temper)
    log_a = np.log(np.where(transmat > 0, transmat, 1.0))
    log_pi = np.log(np.where(startprob > 0, startprob, 1.0))
    shift = prior_shift(prior)
    evidence = pooled(members, scales.tolist(), beta, prior)
    loss, n_runs, gradient = 0.0, 0, np.zeros(len(parameters))
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        rows = slice(end - length, end)
        part, by_evidence, by_transitions, by_start = loss_and_gradient(evidence[rows], codes[rows], transitions, start)
        states = codes[rows][codes[rows] >= 0]
        n_runs += 1 + int((states[1:] != states[:-1]).sum()) if len(states) > 0 else 0
        loss += part
        present = ~np.isnan(members[0][rows, 0])
        for m, member in enumerate(members):
            gradient[m] += (by_evidence[present] * (member[rows][present] + beta * shift)).sum() * scales[m] * np.log(2)
        gradient[-2] += (by_transitions * log_a).sum() + (by_start * log_pi).sum()
        gradient[-1] += scales.sum() * (by_evidence[present] @ shift).sum()
    factor = n_runs / int((codes >= 0).sum())
    steps = log_scales - np.log2(defaults)
    pulls = SCALE_PULL * (steps**2).sum() + TEMPER_PULL * (temper - 1) ** 2 + SHIFT_PULL * beta**2
    by_pulls = np.concatenate([2 * SCALE_PULL * steps, [2 * TEMPER_PULL * (temper - 1), 2 * SHIFT_PULL * beta]])
    return factor * loss + float(pulls), factor * gradient + by_pulls
