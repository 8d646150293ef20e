"""The switching filter against an exact Kalman filter, and against all switch histories."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from neonatal.factors import joint_transitions, one_at_a_time, settings_of
from neonatal.protocol import Patient
from neonatal.slds import FACTORS, X_FACTOR, Learned, build, owner, together
from neonatal.slds_filter import System, filtered, start_state, step
from neonatal.slds_learning import CHANNELS, Dynamics, Normal, _trimmed_regression, assemble, normal_dynamics
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

pytestmark = pytest.mark.slow

HEART = Normal(0.7, 0.1, 1.0, 0.5, 150.0, 0.05, 4.0, 9.0)
OTHER = Normal(0.5, -0.2, 2.0, 0.3, 90.0, 0.02, 3.0, 1.0)


def matrices(system, c, j, p):
    """A, offset without input, Q of one channel for one pair of settings of the first baby, as matrices."""
    place = (c, 0, j, p)
    keep = 1 - system.baseline_return[c, 0]
    first, second, level = system.first[place], system.second[place], system.to_baseline[place]
    A = np.array([[first, second, level], [1, 0, 0], [0, 0, keep]])
    offset = np.array([system.drift[place], 0, system.baseline_return[c, 0] * system.baseline_mean[c, 0]])
    Q = np.diag([system.noise[place], 0, system.baseline_noise[c, 0]])
    if system.restart[place]:
        A[1], offset[1], Q[1, :2], Q[0, 1] = A[0], offset[0], Q[0, 0], Q[0, 0]
    return A, offset, Q


def kalman(system, c, pairs, observations, inputs):
    """Log likelihood of each second of one channel along a known switch history, by a textbook Kalman filter."""
    state = start_state(system)[:, c, 0, 0]
    mean, covariance = state[:3], state[[3, 4, 5, 4, 6, 7, 5, 7, 8]].reshape(3, 3)
    H = np.array([[1.0, 0, 0]])
    logs = []
    for t, (j, p) in enumerate(pairs):
        A, offset, Q = matrices(system, c, j, p)
        pushed = system.to_input[c, 0, j, p] * inputs[t, c, 0]
        offset = offset + np.array([pushed, pushed if system.restart[c, 0, j, p] else 0, 0])
        mean, covariance = A @ mean + offset, A @ covariance @ A.T + Q
        y = observations[t, c, 0]
        if np.isnan(y):
            logs.append(0.0)
            continue
        S = H @ covariance @ H.T + system.observation_noise[c, 0, j]
        logs.append(multivariate_normal(H @ mean, S).logpdf(y))
        K = covariance @ H.T / S
        mean, covariance = mean + K[:, 0] * (y - mean[0]), covariance - K @ H @ covariance
    return np.array(logs), mean, covariance


def switching_system():
    """Two channels, three settings, every step possible, with an input and a restart."""
    random = np.random.default_rng(4)
    n = 3
    predecessors = np.tile(np.arange(n), (n, 1))
    A = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])
    system = assemble([[HEART, OTHER]] * n, predecessors, A.T[None])
    system.first[:, 0, 1] = 0.9
    system.to_baseline[:, 0, 1] = 0.0
    system.drift[:, 0, 1] = [[3.0], [5.0]]
    system.to_input[0, 0, 2] = 0.05
    system.noise[:, 0, 2] = 9.0
    system.drift[0, 0, 2, 0], system.restart[0, 0, 2, 0] = -20.0, True
    observations = np.array([150.0, 90])[None, :, None] + random.normal(scale=4, size=(6, 2, 1))
    observations[1, 0, 0] = np.nan
    observations[3] = np.nan
    return system, A, observations, random.normal(scale=10, size=(6, 2, 1))


def by_all_histories(system, A, observations, inputs):
    """Exact p(setting at the last second | all): a mixture with one Gaussian for each history."""
    n, T = len(A), len(observations)
    weight = np.zeros(n)
    for history in itertools.product(range(n), repeat=T + 1):
        pairs = list(zip(history[1:], history[:-1], strict=True))
        p = system.start[0, history[0]] * np.prod([A[i, j] for j, i in pairs])
        logs = sum(kalman(system, c, pairs, observations, inputs)[0].sum() for c in range(2))
        weight[history[-1]] += p * np.exp(logs)
    return weight / weight.sum()


def test_one_setting_is_an_exact_kalman_filter():
    system = assemble([[HEART, OTHER]], np.zeros((1, 1), dtype=int), np.ones((1, 1, 1)))
    observations = np.array([150.0, 90])[None, :, None] + np.random.default_rng(0).normal(scale=3, size=(50, 2, 1))
    observations[10:13, 0] = np.nan
    state, posterior = start_state(system), system.start
    for t in range(50):
        state, posterior = step(
            system, state, posterior, np.zeros((1, 1, 1)), observations[t], np.zeros((2, 1)), -np.inf
        )
    for c in range(2):
        _, mean, covariance = kalman(system, c, [(0, 0)] * 50, observations, np.zeros((50, 2, 1)))
        assert_allclose(state[:3, c, 0, 0], mean, rtol=1e-10)
        assert_allclose(state[3:, c, 0, 0], covariance[np.triu_indices(3)], rtol=1e-8, atol=1e-10)


def test_settings_that_never_switch_are_compared_by_their_likelihoods():
    models = [[HEART], [replace(HEART, first=0.2, noise=4.0)], [replace(HEART, observation_noise=5.0)]]
    system = assemble(models, np.arange(3)[:, None], np.ones((1, 3, 1)))
    observations = 150 + np.random.default_rng(1).normal(scale=2, size=(30, 1, 1))
    inputs = np.zeros((30, 1, 1))
    logs = []
    for j, model in enumerate(models):
        single = assemble([model], np.zeros((1, 1), dtype=int), np.ones((1, 1, 1)))
        single = replace(single, observation_noise=system.observation_noise[:, :, [j]])
        logs.append(kalman(single, 0, [(0, 0)] * 30, observations, inputs)[0].sum())
    expected = np.exp(np.array(logs) - max(logs))
    assert_allclose(filtered(system, observations, inputs)[-1, 0], expected / expected.sum(), atol=1e-6)


@pytest.mark.parametrize("n_seconds", [1, 2])
def test_the_first_two_seconds_equal_the_mixture_of_all_histories(n_seconds):
    system, A, observations, inputs = switching_system()
    exact = by_all_histories(system, A, observations[:n_seconds], inputs[:n_seconds])
    assert_allclose(filtered(system, observations[:n_seconds], inputs[:n_seconds])[-1, 0], exact, atol=1e-6)


@pytest.mark.exhaustive
def test_six_seconds_stay_close_to_the_mixture_of_all_histories():
    system, A, observations, inputs = switching_system()
    exact = by_all_histories(system, A, observations, inputs)
    assert_allclose(filtered(system, observations, inputs)[-1, 0], exact, atol=0.03)


def test_a_second_without_observations_is_prediction_only():
    system, A, observations, inputs = switching_system()
    posterior = filtered(system, observations, inputs)[:, 0]
    assert_allclose(posterior[3], posterior[2] @ A, atol=1e-6)


def test_babies_that_are_stepped_together_get_what_each_gets_alone():
    system, _, observations, inputs = switching_system()
    other = replace(system, noise=2 * system.noise, start=np.array([[0.2, 0.3, 0.5]]))
    both = filtered(together([system, other]), np.dstack([observations] * 2), np.dstack([inputs] * 2))
    assert_allclose(both[:, 0], filtered(system, observations, inputs)[:, 0], atol=1e-6)
    assert_allclose(both[:, 1], filtered(other, observations, inputs)[:, 0], atol=1e-6)


def test_a_wild_sample_says_no_more_than_the_floor():
    system, A, observations, inputs = switching_system()
    observations[2] = 1e6
    before, after = filtered(system, observations, inputs, log_floor=-18.0)[1:3, 0]
    assert_allclose(after, before @ A, atol=1e-6)


def learned(with_x=True):
    factors = ((X_FACTOR,) if with_x else ()) + FACTORS
    dynamics = {
        ("bradycardia", "HR"): Dynamics("baseline", 0.9, 0.0, -5.0, 4.0),
        ("incubator open", "HR"): Dynamics("baseline", 0.8, 0.0, 1.0, 6.0),
        ("blood sample", "BS"): Dynamics("baseline", 1.0, 0.0, 0.2, 0.5, (3.0, 10.0), (0.0, 4.0)),
    }
    return Learned(factors, dynamics, [np.array([[0.99, 0.01], [0.1, 0.9]])] * len(factors))


def test_the_later_factor_has_the_channel_and_the_unknown_gives_way():
    model = learned()
    on = dict.fromkeys(model.factors, False)
    assert owner(model, np.array(list((on | {X_FACTOR: True}).values())), "HR") == X_FACTOR
    assert (
        owner(model, np.array(list((on | {X_FACTOR: True, "incubator open": True}).values())), "HR") == "incubator open"
    )
    assert owner(model, np.array([True] * 5), "HR") == "bradycardia"
    assert owner(model, np.array([True] * 5), "Incu.Air Humidity") is None


def test_the_unknown_is_normal_dynamics_with_more_noise():
    system = build({"HR": HEART}, learned())
    settings = settings_of(5)
    alone = int(np.flatnonzero((settings == [True, False, False, False, False]).all(axis=1))[0])
    heart = CHANNELS.index("HR")
    assert_allclose(system.noise[heart, 0, alone], 1.2 * HEART.noise)
    assert_allclose(system.first[heart, 0, alone], HEART.first)


def test_a_blood_sample_restarts_the_pressure_when_it_begins_and_ends():
    system = build({"BS": OTHER}, learned(with_x=False))
    pressure, sample = CHANNELS.index("BS"), int(np.flatnonzero(settings_of(4)[:, FACTORS.index("blood sample")])[0])
    entering = system.predecessors[sample] == 0
    leaving = system.predecessors[0] == sample
    assert (
        system.restart[pressure, 0, sample].tolist() == (~settings_of(4)[system.predecessors[sample]][:, -1]).tolist()
    )
    assert_allclose(system.drift[pressure, 0, sample][entering], 3.0)
    assert_allclose(system.noise[pressure, 0, 0][leaving], 4.0)


def test_transitions_into_all_settings_sum_to_one_from_each():
    system = build({"HR": HEART}, learned())
    out = np.zeros((32, 32))
    for j in range(32):
        out[system.predecessors[j], j] += system.transitions[0, j]
    assert_allclose(out.sum(axis=1), 1)
    assert_allclose(out, one_at_a_time(joint_transitions(learned().chains), settings_of(5)))


def test_normal_dynamics_are_recovered_from_a_long_stretch():
    random = np.random.default_rng(2)
    x = np.zeros(6000)
    for t in range(2, 6000):
        x[t] = 0.6 * x[t - 1] + 0.2 * x[t - 2] + random.normal()
    values = {"HR": 150 + x + random.normal(scale=0.5, size=6000)}
    values["HR"][100:110] = np.nan
    patient = Patient(1, values, {}, {}, np.ones(6000, dtype=bool), {"HR": 150.0}, {"HR": 1.0})
    found = normal_dynamics(patient)["HR"]
    assert found.mean == pytest.approx(150, abs=0.5)
    assert found.first + found.second == pytest.approx(0.8, abs=0.1)
    assert found.noise + found.observation_noise == pytest.approx(1.25, abs=0.35)


def test_every_field_of_a_system_is_joined():
    system, *_ = switching_system()
    assert isinstance(together([system, system]), System)
    assert together([system, system]).first.shape == (2, 2, 3, 3)


def test_jumps_are_no_part_of_the_dynamics_of_a_factor():
    random = np.random.default_rng(3)
    before = random.normal(size=(1000, 2))
    frames = np.column_stack([before @ [0.6, 0.2] + 1.0 + 0.1 * random.normal(size=1000), before])
    frames[::50, 0] += 40
    assert_allclose(_trimmed_regression(frames, 1e-6), [0.6, 0.2, 1.0, 0.01], atol=0.02)
