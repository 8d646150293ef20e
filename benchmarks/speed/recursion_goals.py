"""Recursions on given evidence, beside hmmlearn, deeptime and dynamax."""

from __future__ import annotations

import numpy as np
from cases import evidence
from table import REST, Row, has, measured

from drhmm import recursion
from drhmm.recursion import native_chain


def smoothing_peers(problem):
    """Smoothing on probabilities that are there already: the peers' own form of evidence."""
    log_ratios, transmat, startprob = problem
    weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
    peers = {}
    if has("hmmlearn"):
        from hmmlearn import _hmmc

        def hmmlearn():
            _, forward, scales = _hmmc.forward_scaling(startprob, transmat, weights)
            posteriors = forward * _hmmc.backward_scaling(startprob, transmat, weights, scales)
            posteriors /= posteriors.sum(axis=1, keepdims=True)
            return posteriors

        peers["hmmlearn"] = hmmlearn
    if has("deeptime"):
        from deeptime.markov.hmm._hmm_bindings import util

        def deeptime():
            alpha, beta, gamma = (np.empty_like(weights) for _ in range(3))
            util.forward(transmat, weights, startprob, alpha)
            util.backward(transmat, weights, beta)
            util.state_probabilities(alpha, beta, gamma)
            return gamma

        peers["deeptime"] = deeptime
    return peers


def filtering_peers(problem):
    """Filtering by peers, from log evidence."""
    log_ratios, transmat, startprob = problem
    peers = {}
    if has("hmmlearn"):
        from hmmlearn import _hmmc

        peers["hmmlearn"] = lambda: _hmmc.forward_scaling(startprob, transmat, np.exp(log_ratios))[1]
    if has("deeptime"):
        from deeptime.markov.hmm._hmm_bindings import util

        def deeptime():
            alpha = np.empty_like(log_ratios)
            util.forward(transmat, np.exp(log_ratios), startprob, alpha)
            return alpha

        peers["deeptime"] = deeptime
    return peers


def recursion_rows(scale, repeats):
    rows = []
    for n_states, goal in ((2, 10), (3, 7), (16, 8), (32, 8), (64, 8)):
        n_frames = max(200, 100_000 // scale)
        problem = evidence(n_frames, n_states)
        row = Row(f"smoothing, S={n_states}", "ns/frame", n_frames * 1e-9, goals={"fastest": goal})
        peers = smoothing_peers(problem)
        few = repeats if n_states < 10 else max(2, repeats // 3)
        rows.append(measured(row, lambda p=problem: recursion.smooth(*p, n_threads=1), peers, few))
    if has("hmmlearn"):
        from hmmlearn import _hmmc

        for n_states, n_frames, goal in ((3, 100_000 // scale, 5), *((n, 1000, 1) for n in (2, 3, 4, 5, 6, 8, 16))):
            problem = evidence(max(200, n_frames), n_states)
            job = f"filtering, S={n_states}, T={len(problem[0]):,}"
            row = Row(job, "ns/frame", len(problem[0]) * 1e-9, goals=dict.fromkeys(filtering_peers(problem), goal))
            ours = lambda p=problem: recursion.filter(*p, n_threads=1)  # noqa: E731
            rows.append(measured(row, ours, filtering_peers(problem), repeats))
        for n_states, goal in ((3, 2), (5, 1.5), (6, 1.5), (7, 1.5), (8, 1.5)):
            problem = evidence(max(200, 100_000 // scale), n_states)
            row = Row(f"best path, S={n_states}", "ns/frame", len(problem[0]) * 1e-9, goals={"hmmlearn": goal})
            peers = {"hmmlearn": lambda p=problem: _hmmc.viterbi(p[2], p[1], p[0])[1]}
            rows.append(measured(row, lambda p=problem: recursion.viterbi(*p, n_threads=1), peers, repeats))
    rows.append(many_sequences(scale, repeats))
    return rows + other_chains(scale, repeats)


def other_chains(scale, repeats):
    """Chains that are not dense, gaps, the E step and durations, beside hmmlearn where it can do the same."""
    rows, n_frames, few = [], max(200, 100_000 // scale), max(2, repeats // 3)
    for n_states, goal in ((3, 8), (8, 6), (16, 4)):
        log_ratios, transmat, startprob = evidence(n_frames, n_states)
        transmat[0, -1] = 0
        problem = log_ratios, transmat / transmat.sum(axis=1, keepdims=True), startprob
        row = Row(
            f"smoothing, one forbidden transition, S={n_states}", "ns/frame", n_frames * 1e-9, goals={"hmmlearn": goal}
        )
        peers = smoothing_peers(problem)
        rows.append(measured(row, lambda p=problem: recursion.smooth(*p, n_threads=1), peers, few))
    n_steps = max(200, 3000 // scale)
    log_ratios, _, _ = evidence(n_steps, 8)
    left_right = 0.9 * np.eye(8) + 0.1 * np.eye(8, k=1)
    left_right[-1, -1] = 1
    problem = log_ratios, left_right, np.eye(8)[0]
    row = Row(f"smoothing, left-right, S=8, T={n_steps}", "ns/frame", n_steps * 1e-9, goals={"hmmlearn": None})
    rows.append(measured(row, lambda: recursion.smooth(*problem, n_threads=1), smoothing_peers(problem), few))
    for n_states in (3, 8, 16):
        problem = evidence(n_frames, n_states)
        alone = {"smoothing alone": lambda p=problem: recursion.smooth(*p, n_threads=1)}
        goals = {"smoothing alone": None}
        row = Row(f"posteriors and transition counts, S={n_states}", "ns/frame", n_frames * 1e-9, goals=goals)
        ours = lambda p=problem: recursion.expect(native_chain(*p[1:]), p[0], [len(p[0])], 1)[0]  # noqa: E731
        rows.append(measured(row, ours, alone, few))
        dt = np.random.default_rng(1).integers(1, 8, size=n_frames)
        row = Row(f"smoothing, a gap at every frame, S={n_states}", "ns/frame", n_frames * 1e-9, goals=goals)
        ours = lambda p=problem, dt=dt: recursion.smooth(*p, dt=dt, n_threads=1)  # noqa: E731
        rows.append(measured(row, ours, alone, few, same=False))
    return rows + [durations(n_states, n_stages, scale, few) for n_states, n_stages in ((3, 4), (12, 8), (12, 16))]


def durations(n_states, n_stages, scale, repeats):
    """Smoothing with stages, beside hmmlearn on the expanded chain."""
    from drhmm.chain.durations import stages_of
    from drhmm.reference import durations as dense

    n_frames = max(200, 3000 // scale)
    log_ratios, transmat, startprob = evidence(n_frames, n_states)
    transmat = 0.2 * transmat + 0.8 * np.eye(n_states)
    stages = stages_of(transmat, np.full(n_states, n_stages), np.ones(n_states, dtype=np.int64))
    chain = native_chain(transmat, startprob, stages)
    expanded = dense.expand(transmat, startprob, stages.sizes, stages.stay, stages.skip)
    peers = {
        name: lambda peer=peer: dense.collapse(peer(), stages.sizes)
        for name, peer in smoothing_peers((np.repeat(log_ratios, stages.sizes, axis=1), *expanded)).items()
        if name == "hmmlearn"
    }
    row = Row(f"smoothing, {n_states} states of {n_stages} stages", "ns/frame", n_frames * 1e-9, goals={"hmmlearn": 30})
    return measured(row, lambda: recursion.run("smooth", chain, log_ratios, [n_frames], None, 1), peers, repeats)


def many_sequences(scale, repeats):
    """The public call on many short sequences, on all cores."""
    n_sequences, length = 10_000 // scale, 100
    log_ratios, transmat, startprob = evidence(n_sequences * length, 3)
    lengths = [length] * n_sequences
    row = Row(f"{n_sequences:,} x 100 frames, S=3, all cores", "ms", 1e-3, goals={"dynamax": 12, "hmmlearn": 50})
    peers = {}
    if has("hmmlearn"):
        from hmmlearn.base import BaseHMM

        class GivenEvidence(BaseHMM):
            def _compute_log_likelihood(self, X):
                return X

        model = GivenEvidence(n_components=3, implementation="log")
        model.transmat_, model.startprob_ = transmat, startprob
        model._check = lambda: None
        peers["hmmlearn"] = lambda: model.score_samples(log_ratios, lengths)[1]
    if has("dynamax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        from dynamax.hidden_markov_model import hmm_smoother

        blocks = jax.numpy.asarray(log_ratios.reshape(n_sequences, length, 3))
        smoother = jax.jit(jax.vmap(lambda block: hmm_smoother(startprob, transmat, block).smoothed_probs))
        peers["dynamax"] = lambda: np.asarray(smoother(blocks)).reshape(-1, 3)
    ours = lambda: recursion.smooth(log_ratios, transmat, startprob, lengths=lengths)  # noqa: E731
    return measured(row, ours, peers, max(3, repeats // 2), rest=REST)
