from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from neonatal.babies import CHANNELS, CONDITIONS, TEMPERATURES
from neonatal.vital_signs import monitor
from numpy.testing import assert_allclose, assert_array_equal

from drhmm.datasets.plant import places, relax, wander


@pytest.fixture(scope="module")
def babies():
    return monitor(15, 7200, activity=6, random_state=3)


def test_the_same_seed_gives_the_same_babies():
    first, second = monitor(2, 1200, random_state=5), monitor(2, 1200, random_state=5)
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one.channels, other.channels)
        assert {k: v.tolist() for k, v in one.intervals.items()} == {k: v.tolist() for k, v in other.intervals.items()}


def test_another_seed_gives_other_babies():
    assert not np.array_equal(
        monitor(1, 1200, random_state=5)[0].channel("HR"), monitor(1, 1200, random_state=6)[0].channel("HR")
    )


def test_ten_of_fifteen_babies_have_blood_pressure(babies):
    assert sum("BS" in baby.labels for baby in babies) == 10
    assert [("BS" in baby.labels) for baby in babies] == [("BD" in baby.labels) for baby in babies]


@pytest.mark.parametrize("label", ["HR", "SO", "TC", "TP", "Incu.Air Temp"])
def test_every_baby_has_the_channel(babies, label):
    assert all(label in baby.labels for baby in babies)


def test_there_are_babies_without_humidity(babies):
    assert 0 < sum("Incu.Air Humidity" not in baby.labels for baby in babies) < 15


def test_every_condition_happens_and_some_babies_lack_some(babies):
    counts = {condition: [len(baby.intervals[condition]) for baby in babies] for condition in CONDITIONS}
    assert all(sum(found) > 0 for found in counts.values())
    assert any(0 in found for found in counts.values())


def test_intervals_lie_in_the_recording_and_have_a_length(babies):
    for baby in babies:
        for rows in baby.intervals.values():
            assert (rows[:, 0] >= 0).all()
            assert (rows[:, 1] <= baby.n_samples).all()
            assert (rows[:, 0] < rows[:, 1]).all()


def test_nothing_happens_in_the_normal_stretch(babies):
    for baby in babies:
        for condition in CONDITIONS:
            if condition != "Normal":
                assert not (baby.holds("Normal") & baby.holds(condition)).any()


def test_babies_differ_in_their_baselines(babies):
    medians = [np.median(baby.channel("HR")[baby.holds("Normal")]) for baby in babies]
    assert np.std(medians) > 4


def test_the_heart_is_slower_in_bradycardia(babies):
    falls = []
    for baby in babies:
        rate, held = baby.channel("HR"), baby.holds("Bradycardia")
        falls.extend(np.median(rate[rate > 0]) - rate[held & (rate > 0)])
    assert np.median(falls) > 20


def test_pressures_meet_in_a_blood_sample(babies):
    for baby in babies:
        if len(baby.intervals["BloodSample"]):
            held = baby.holds("BloodSample") & (baby.channel("BS") > 0) & (baby.channel("BD") > 0)
            assert np.median((baby.channel("BS") - baby.channel("BD"))[held]) < 4


def test_samples_have_the_resolution_of_the_monitor(babies):
    for label in babies[0].labels:
        steps = babies[0].channel(label) / CHANNELS[label]
        assert_allclose(steps, np.round(steps), atol=1e-6)


def test_temperatures_drop_out_at_exactly_twenty_and_the_rest_at_zero(babies):
    recorded = np.concatenate([baby.channel("TC") for baby in babies])
    assert (recorded == 20).any()
    assert (recorded != 0).all()
    assert (np.concatenate([baby.channel("HR") for baby in babies]) == 0).any()
    assert "TC" in TEMPERATURES


def test_arrays_of_a_baby_cannot_be_written_to(babies):
    with pytest.raises(ValueError, match="read-only"):
        babies[0].channels[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        babies[0].intervals["Normal"][0, 0] = 1


def test_a_baby_survives_pickling(babies):
    again = pickle.loads(pickle.dumps(babies[0]))
    assert_array_equal(again.channels, babies[0].channels)


def test_an_unknown_channel_is_named(babies):
    with pytest.raises(KeyError, match="no channel 'EEG'"):
        babies[0].channel("EEG")


def test_too_short_a_recording_is_refused():
    with pytest.raises(ValueError, match="n_samples must be"):
        monitor(1, 100)


def test_relaxing_follows_its_recursion():
    target = np.random.default_rng(0).normal(size=700)
    value, expected = 3.0, []
    for aim in target:
        value += (aim - value) / 12.5
        expected.append(value)
    assert_allclose(relax(target, 3.0, 12.5), expected, rtol=1e-10)


def test_wandering_has_the_deviation_it_should_have():
    assert abs(wander(np.random.RandomState(0), 200_000, 20, 2.0).std() - 2.0) < 0.1


def test_places_keep_their_distance():
    found = places(np.random.RandomState(0), np.full(20, 30.0), 3000, [(1000, 1500)], 10)
    borders = sorted([*found, (1000, 1500)])
    assert all(later[0] - earlier[1] >= 10 for earlier, later in itertools.pairwise(borders))
