"""Scales, temper and prior shift by what smoothing makes of held-out evidence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from drhmm.reference import objective as reference
from drhmm.tuning.scales import HeldOutSmoothing, _Objective, drawn_parts

CHAIN = (np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([0.5, 0.5]))
PRIOR = np.array([0.5, 0.5])


def evidence(repeats=1, strength=1.0):
    """Honest log ratios of two unit Gaussians, every frame repeated, and the states."""
    random = np.random.default_rng(3)
    states = np.repeat(np.arange(40) % 2, 20)
    values = random.normal(size=len(states)) + states
    log_ratios = np.stack([0.5 - values, np.zeros(len(states))], axis=1) * strength
    return np.repeat(log_ratios, repeats, axis=0), np.repeat(states, repeats)


def smoothing(states, lengths=None, scales=None, temper=None):
    return HeldOutSmoothing(states, lengths or [len(states)], *CHAIN, scales, temper, 1)


def chosen(log_ratios, states, **settings):
    one = np.ones(1)
    return smoothing(states, **settings).choose({"one": log_ratios}, PRIOR, one, one)


def test_repeated_frames_count_less():
    log_ratios, states = evidence(repeats=8)
    choice = chosen(log_ratios, states, temper=1.0)
    assert choice.scales[0] <= 0.3


def test_honest_evidence_is_left_alone():
    assert 0.5 < chosen(*evidence()).scales[0] < 2


def test_too_cautious_evidence_counts_more():
    assert chosen(*evidence(strength=0.25)).scales[0] >= 2.0


def test_a_member_that_only_adds_noise_is_all_but_silent():
    log_ratios, states = evidence()
    noise = np.random.default_rng(0).normal(size=log_ratios.shape)
    usual = np.array([0.5, 0.5])
    choice = smoothing(states).choose({"good": log_ratios, "noise": noise}, PRIOR, usual, usual)
    assert choice.scales[1] < 0.1 * choice.scales[0]


@pytest.mark.parametrize("code", [0, 1])
def test_sequences_without_a_change_say_nothing(code):
    log_ratios, _ = evidence(repeats=8)
    choice = chosen(log_ratios, np.full(len(log_ratios), code))
    assert (choice.scales[0], choice.temper, choice.prior_shift) == (1.0, 1.0, 0.0)
    assert "0 held-out frames have a label" in choice.reason


def test_what_is_given_is_not_learned():
    choice = chosen(*evidence(repeats=8), scales=np.array([0.7]), temper=0.9)
    assert (choice.scales[0], choice.temper, choice.prior_shift, choice.reason) == (0.7, 0.9, 0.0, "given")


def test_a_given_scale_is_shared_as_the_usual_ones_are():
    log_ratios, states = evidence()
    members = {"a": log_ratios, "b": log_ratios, "c": log_ratios}
    judge = smoothing(states, scales=np.array([2.0]), temper=1.0)
    assert_allclose(judge.choose(members, PRIOR, np.ones(3), np.array([0.5, 0.0, 0.5])).scales, [1.0, 0.0, 1.0])


def test_scales_of_another_number_of_members_are_refused():
    log_ratios, states = evidence()
    with pytest.raises(ValueError, match="evidence_scale has 2 entries, but there are 1 members: one"):
        chosen(log_ratios, states, scales=np.array([1.0, 2.0]), temper=1.0)


def test_the_temper_is_learned_where_scales_are_given():
    log_ratios, states = evidence(repeats=1, strength=0.2)
    choice = chosen(log_ratios, states, scales=np.array([1.0]))
    assert choice.scales[0] == 1.0
    assert choice.temper < 1


def test_the_objective_equals_the_reference():
    random = np.random.default_rng(0)
    states = np.repeat(random.integers(3, size=30), 4)
    states[7] = -1
    lengths = [50, 30, 40]
    members = random.normal(size=(3, 120, 3))
    members[:, 11] = np.nan
    transmat, startprob = random.dirichlet(np.ones(3), 3), random.dirichlet(np.ones(3))
    prior, starts = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.1, 0.5])
    judge = HeldOutSmoothing(states, lengths, transmat, startprob, None, None, 1)
    parameters = np.array([-1.0, -2.5, 0.5, 0.7, 0.3])
    value, gradient = _Objective(judge, members, prior, starts, None)(parameters)
    expected = reference.objective(list(members), states, lengths, transmat, startprob, prior, starts, parameters)
    assert_allclose(value, expected[0], rtol=1e-10)
    assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-10)


def test_a_chain_that_falls_apart_is_not_tempered():
    log_ratios, states = evidence(strength=0.2)
    judge = HeldOutSmoothing(states, [len(states)], np.array([[0.9, 0.1], [0.0, 1.0]]), CHAIN[1], None, None, 1)
    assert judge.choose({"one": log_ratios}, PRIOR, np.ones(1), np.ones(1)).temper == 1


def test_runs_are_stretches_of_one_state_in_sequences_that_change():
    states = np.array([0, 0, 1, 1, -1, 1, 0, 1, 1, 1])
    judge = smoothing(states, lengths=[7, 3])
    assert (judge.n_runs, judge.n_judged) == (3, 6)
    assert_array_equal(judge.lengths, [7])


class TestDraw:
    def test_few_rows_are_judged_whole(self):
        assert drawn_parts(np.zeros(600, dtype=np.int64), [(0, 100), (200, 600)]) == [(0, 100), (200, 600)]

    def test_many_rows_are_judged_in_part(self):
        parts = drawn_parts(np.zeros(100_000, dtype=np.int64), [(0, 70_000), (70_000, 100_000)])
        assert 20_000 <= sum(end - begin for begin, end in parts) <= 24_000
        assert max(end - begin for begin, end in parts) <= 2000
        assert parts[-1][0] > 80_000

    def test_a_draw_has_every_class(self):
        codes = np.zeros(100_000, dtype=np.int64)
        codes[51_234] = 1
        parts = drawn_parts(codes, [(0, 100_000)])
        assert any(begin <= 51_234 < end for begin, end in parts)
