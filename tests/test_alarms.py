"""Alarms in the user's units."""

from __future__ import annotations

import datetime
import json
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import drhmm
from drhmm import DensityRatioHMM, SnapshotError, plotting
from drhmm.cli import main
from drhmm.cli.live_lines import Observation
from drhmm.cli.live_sequences import LiveSequences
from drhmm.data.times import frames_of
from drhmm.datasets import FAULTS, sensors
from drhmm.evidence.excursions import Excursions
from drhmm.live.alarm_levels import make_alarm
from drhmm.live.alarms import MARGIN, Alarm
from drhmm.reference import novelty as reference

NAMES = ("pressure", "flow", "heat", "load")
NORMAL, _ = sensors(3000, n_sensors=4, faults=(), random_state=0)
FRESH, _ = sensors(20_000, n_sensors=4, faults=(), random_state=1)
FAULTY, TRUTH = sensors(2000, n_sensors=4, faults=("bias",), n_events=4, random_state=2)


@pytest.fixture(scope="module")
def model():
    fitted = DensityRatioHMM(1, novelty=True, n_basis=50, sigma=1.0, rho=0.01, random_state=0).fit(NORMAL)
    return replace(fitted.model_, feature_names=NAMES)


SMALL = {"n_basis": 50, "sigma": 1.0, "rho": 0.01, "random_state": 0}


def gaussian_rows(seed):
    return np.random.RandomState(seed).normal(size=(20_000, 3))


@pytest.fixture(scope="module")
def gaussian():
    return DensityRatioHMM(1, novelty=True, **SMALL).fit(gaussian_rows(0)[:3000]).model_


@pytest.fixture(scope="module")
def windowed():
    fitted = DensityRatioHMM(1, novelty=True, window=3, n_basis=30, sigma=1.0, rho=0.01, random_state=0)
    return fitted.fit(NORMAL[:500]).model_


@pytest.fixture(scope="module")
def contextual():
    y = np.arange(500) // 50 % 2
    fitted = DensityRatioHMM(novelty=True, context=5, n_basis=30, sigma=1.0, rho=0.01, random_state=0)
    return fitted.fit(NORMAL[:500] + y[:, None], y).model_


@pytest.fixture(scope="module")
def alarm(model):
    return model.alarm(1, per=1000, hold_off=30)


def on_frames(episodes, n_frames):
    on = np.zeros(n_frames, dtype=bool)
    for episode in episodes:
        on[episode.begin : episode.end] = True
    return on


class TestLevels:
    @pytest.mark.parametrize("per", [500, 1500])
    def test_false_alarms_are_about_those_asked_for(self, model, per):
        n_found = len(model.alarm(1, per=per, hold_off=30).episodes(FRESH))
        assert n_found < 2.5 * len(FRESH) / per
        assert n_found > len(FRESH) / per / 2.5

    def test_normal_data_that_were_given_say_the_level(self, model):
        normal, _ = sensors(10_000, n_sensors=4, faults=(), random_state=3)
        n_found = len(model.alarm(1, per=1000, hold_off=30, normal=normal).episodes(FRESH))
        assert 8 < n_found < 50

    def test_fewer_false_alarms_mean_higher_levels(self, model):
        often, seldom = model.alarm(1, per=300, hold_off=30), model.alarm(1, per=3000, hold_off=30)
        assert seldom.sum_level > often.sum_level
        assert seldom.frame_level > often.frame_level

    def test_it_warns_where_normal_data_are_short(self, model):
        with pytest.warns(UserWarning, match="the training data have 3000 time steps, fewer than the 10000"):
            model.alarm(1, per=10_000, hold_off=30)

    def test_no_warning_where_they_are_not(self, model):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.alarm(1, per=3000, hold_off=30)

    @pytest.mark.parametrize("per", [20, 50, 200])
    def test_many_false_alarms_are_those_asked_for(self, gaussian, per):
        n_found = len(gaussian.alarm(1, per=per, hold_off=2, normal=gaussian_rows(1)).episodes(gaussian_rows(2)))
        assert 0.8 < n_found * per / 20_000 < 1.25

    def test_training_data_have_more_excursions_than_a_thousand(self):
        model = DensityRatioHMM(1, novelty=True, **SMALL).fit(gaussian_rows(0)).model_
        assert 0.8 < len(model.alarm(1, per=40, hold_off=5).episodes(gaussian_rows(1))) * 40 / 20_000 < 1.25

    @pytest.mark.parametrize("size", [30, 1000])
    @pytest.mark.parametrize("n_spikes", [1, 100])
    def test_outliers_hardly_change_the_number(self, gaussian, size, n_spikes):
        normal = gaussian_rows(1)
        normal[:: 20_000 // n_spikes] += size
        with pytest.warns(UserWarning, match=f"{n_spikes} of 20000 time steps of the normal data .* were left out"):
            alarm = gaussian.alarm(1, per=1000, hold_off=10, normal=normal)
        n_clean = len(gaussian.alarm(1, per=1000, hold_off=10, normal=gaussian_rows(1)).episodes(gaussian_rows(2)))
        assert n_clean / 2 <= len(alarm.episodes(gaussian_rows(2))) <= 1.5 * n_clean

    @pytest.mark.parametrize("size", [30, 1000])
    def test_outliers_in_the_training_data(self, size):
        rows = gaussian_rows(0)
        rows[::200] += size
        clean = DensityRatioHMM(1, novelty=True, **SMALL).fit(gaussian_rows(0)).model_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fit may say so, too
            model = DensityRatioHMM(1, novelty=True, **SMALL).fit(rows).model_
        with pytest.warns(UserWarning, match="time steps of the training data .* were left out"):
            alarm = model.alarm(1, per=1000, hold_off=10)
        n_clean = len(clean.alarm(1, per=1000, hold_off=10).episodes(gaussian_rows(2)))
        assert n_clean / 2 <= len(alarm.episodes(gaussian_rows(2))) <= 1.5 * n_clean

    def test_outliers_in_the_training_data_do_not_hide_what_is_less_strange(self):
        rows, random = gaussian_rows(0), np.random.RandomState(3)
        rows[::200] += 10.0 ** random.uniform(1, 3, (100, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alarm = DensityRatioHMM(1, novelty=True, **SMALL).fit(rows).model_.alarm(1, per=40, hold_off=5)
        assert 0.8 < len(alarm.episodes(gaussian_rows(1))) * 40 / 20_000 < 1.25

    def test_what_cannot_be_promised_is_refused_with_the_smallest_budget(self, gaussian):
        with pytest.raises(ValueError, match=r"1 false alarm\(s\) in 4 time steps cannot be promised") as caught:
            gaussian.alarm(1, per=4, hold_off=3, normal=gaussian_rows(1))
        least = int(re.search(r"at most 1 in (\d+) time steps", str(caught.value))[1])
        n_found = len(gaussian.alarm(1, per=least, hold_off=3, normal=gaussian_rows(1)).episodes(gaussian_rows(2)))
        assert 0.8 < n_found * least / 20_000 < 1.25

    def test_normal_data_that_drift_from_what_the_model_knows(self, gaussian):
        normal = gaussian_rows(1) + 2.0
        with pytest.raises(ValueError, match=r"no levels keep the promise on the normal data .* learn it from"):
            gaussian.alarm(1, per=1000, normal=normal)

    def test_normal_data_that_are_not(self, gaussian):
        normal = gaussian_rows(1)
        normal[::50] += 1000
        with pytest.raises(ValueError, match="too much of the normal data has the highest possible evidence"):
            gaussian.alarm(1, per=1000, hold_off=10, normal=normal)

    def test_normal_data_without_any_excursion(self, model):
        nothing = Excursions.of(np.full(100, -1.0), [100])
        assert make_alarm(model, nothing, 1, 50, 5, None, "x").sum_level == 0


class TestEpisodes:
    def test_a_warning_names_a_sensor_that_is_gone(self, alarm):
        with pytest.warns(UserWarning, match="column 'heat' is missing in 500 of 2000 rows: no alarm can begin there"):
            alarm.episodes(np.where((np.arange(2000) < 500)[:, None] & (np.array(NAMES) == "heat"), np.nan, FAULTY))

    @pytest.mark.parametrize("value", [1e30, 1e155, 1e300])
    def test_the_column_of_an_enormous_value_sticks_out(self, alarm, value):
        rows = FRESH[:200].copy()
        rows[100:, 2] = value
        assert alarm.episodes(rows)[-1].columns[0][0] == "heat"

    def test_biases_are_found(self, alarm):
        on = on_frames(alarm.episodes(FAULTY), len(FAULTY))
        assert on[TRUTH == "bias"].mean() > 0.9
        assert on[TRUTH == "normal"].mean() < 0.1

    def test_they_are_those_of_the_reference(self, model, alarm):
        found = [(episode.begin, episode.end) for episode in alarm.episodes(FAULTY)]
        levels = alarm.sum_level, alarm.frame_level
        assert found == reference.episodes(model.novelty_score(FAULTY), levels, alarm.hold_off, MARGIN)

    def test_the_peak_is_the_frame_of_the_highest_score(self, model, alarm):
        score = model.novelty_score(FAULTY)
        for episode in alarm.episodes(FAULTY):
            assert episode.peak == episode.begin + int(np.nanargmax(score[episode.begin : episode.end]))
            assert_allclose(episode.score, score[episode.peak])

    def test_the_biased_column_sticks_out_by_name(self, alarm):
        samples = FRESH[:400].copy()
        samples[200:300, 1] += 3.0
        (episode,) = [one for one in alarm.episodes(samples) if one.begin <= 250 < one.end]
        assert episode.columns[0][0] == "flow"
        assert 0.85 < sum(share for _, share in episode.columns) <= 1 + 1e-12

    def test_every_sequence_begins_anew(self, alarm):
        alone = alarm.episodes(FAULTY)
        both = alarm.episodes([FAULTY, FAULTY])
        assert [one.sequence for one in both] == [0] * len(alone) + [1] * len(alone)
        assert [one.begin for one in both] == 2 * [one.begin for one in alone]

    def test_missing_frames_are_no_evidence(self, alarm):
        with pytest.warns(UserWarning, match="missing in 100 of 100 rows"):
            assert alarm.episodes(np.full((100, 4), np.nan)) == []

    def test_a_gap_longer_than_the_hold_off_ends_an_alarm(self, model, alarm):
        strange = NORMAL[:10] + np.array([9.0, -9.0, 9.0, -9.0])
        together = alarm.episodes(strange)
        dt = np.ones(10, dtype=np.int64)
        dt[5] = 1000
        apart = alarm.episodes(strange, dt=dt)
        assert (len(together), len(apart)) == (1, 2)


class TestStreams:
    @pytest.mark.parametrize("lag", [0, 3])
    def test_the_same_alarms_as_in_batch(self, model, alarm, lag):
        stream, found = model.stream(lag, alarm=alarm), []
        for x in FAULTY:
            stream.step(x)
            if stream.ended_alarm is not None:
                found.append(stream.ended_alarm)
        if stream.alarm is not None:
            found.append(stream.alarm)
        expected = alarm.episodes(FAULTY)
        assert [(one.begin, one.end, one.peak, one.cause) for one in found] == [
            (one.begin, one.end, one.peak, one.cause) for one in expected
        ]
        for one, other in zip(found, expected, strict=True):
            assert dict(one.columns) == pytest.approx(dict(other.columns))
            assert one.columns

    @pytest.mark.filterwarnings("ignore:column . is missing")
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["plain", "windows", "context"]))
    def test_random_streams_have_the_alarms_of_batch(self, model, windowed, contextual, seed, kind):
        random = np.random.default_rng(seed)
        own = {"plain": model, "windows": windowed, "context": contextual}[kind]
        alarm = own.alarm(1, per=100, hold_off=int(random.integers(0, 20)))
        samples = FRESH[:150].copy()
        for begin in random.integers(0, 140, 4):
            samples[begin : begin + random.integers(1, 20), random.integers(4)] += 10.0 ** random.uniform(0, 4)
        samples[random.random(150) < 0.05, random.integers(4)] = np.nan
        dt = np.where(random.random(150) < 0.05, random.integers(2, 60, 150), 1)
        lag = int(random.integers(0, 3))
        stream, batch, found = own.stream(lag, alarm=alarm), own.stream_batch(1, lag, alarm=alarm), []
        for x, step in zip(samples, dt.tolist(), strict=True):
            stream.step(x, step)
            batch.step(x[None], dt=step)
            found += [] if stream.ended_alarm is None else [stream.ended_alarm]
            assert batch.alarm == [stream.alarm]
            if random.random() < 0.1:
                stream = own.resume(stream.snapshot())
                batch = own.resume_batch(batch.snapshot())
        found += [] if stream.alarm is None else [stream.alarm]
        expected = alarm.episodes(samples, dt=dt)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert replace(one, score=0, columns=()) == replace(other, score=0, columns=())
            assert one.score == pytest.approx(other.score, rel=1e-9)
            assert dict(one.columns) == pytest.approx(dict(other.columns))
        health = alarm.health(samples, dt=dt)
        assert stream.alarm_health == batch.alarm_health[0]
        if health.n_alarms < 8:
            assert stream.alarm_health == health

    def test_a_level_of_single_frames_can_be_reached(self, model):
        with pytest.warns(UserWarning, match="extrapolated"):
            alarm = model.alarm(1, per=1e100, hold_off=30)
        stream = model.stream(alarm=alarm)
        stream.step(NORMAL[0] + 1e6)
        assert stream.alarm.cause == "frame"

    def test_columns_of_windows_survive_a_restart(self, windowed):
        model = windowed
        alarm = model.alarm(1, per=100, hold_off=5)
        samples = NORMAL[:40] + np.where(np.arange(40) >= 20, 9.0, 0.0)[:, None] * [0, 1, 0, 0]
        stream = model.stream(alarm=alarm)
        for x in samples:
            stream = model.resume(stream.snapshot())
            stream.step(x)
        (expected,) = (one for one in alarm.episodes(samples) if one.end == 40)
        assert dict(stream.alarm.columns) == pytest.approx(dict(expected.columns))
        assert expected.columns[0][0] == 1

    def test_the_cause_is_the_level_that_was_exceeded(self, model, alarm):
        (one,) = alarm.follow(np.array([alarm.frame_level + 1]))[1]
        assert one.cause == "frame"
        sums, (one,) = alarm.follow(np.full(100, alarm.frame_level / 2))
        assert one.cause == "sum"
        assert sums[one.begin] > alarm.sum_level

    def test_many_streams(self, model, alarm):
        batch, stream = model.stream_batch(2, alarm=alarm), model.stream(alarm=alarm)
        for t, x in enumerate(FAULTY[:700]):
            batch.step(np.array([x, x]), active=[True, t >= 300])
            stream.step(x)
        first, second = batch.alarm
        assert (first is None) == (stream.alarm is None)
        assert first is None or first.begin == stream.alarm.begin
        assert second is None or second.sequence == 1

    def test_rows_that_are_retired_forget_their_alarm(self, model, alarm):
        batch = model.stream_batch(1, alarm=alarm)
        batch.step(NORMAL[:1] + 50.0)
        assert batch.alarm[0] is not None
        batch.retire([0])
        batch.add(2)
        assert batch.alarm == [None, None]

    def test_a_snapshot_keeps_the_alarm(self, model, alarm):
        begin = int(np.flatnonzero(TRUTH == "bias")[20])
        stream = model.stream(alarm=alarm)
        for x in FAULTY[:begin]:
            stream.step(x)
        resumed, copied = model.resume(stream.snapshot()), pickle.loads(pickle.dumps(stream))
        assert stream.alarm is not None
        for x in FAULTY[begin : begin + 300]:
            for one in (stream, resumed, copied):
                one.step(x)
        assert resumed.alarm == stream.alarm == copied.alarm

    def test_a_snapshot_of_many_streams_keeps_their_alarms(self, model, alarm):
        batch = model.stream_batch(2, alarm=alarm)
        batch.step(np.array([NORMAL[0], NORMAL[0] + 50.0]))
        assert model.resume_batch(batch.snapshot()).alarm == batch.alarm
        assert batch.alarm[1] is not None

    def test_reset_forgets_the_alarm(self, model, alarm):
        stream = model.stream(alarm=alarm)
        stream.step(NORMAL[0] + 50.0)
        assert stream.alarm is not None
        stream.reset()
        assert stream.alarm is None

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("sums", -1.0),
            ("sums", np.nan),
            ("watch_counts", -1),
            ("watch_counts", 2**60),
            ("witness_places", 7),
            ("witness_scores", np.inf),
            ("witnesses", np.nan),
        ],
    )
    def test_a_state_that_no_alarm_can_have(self, model, alarm, name, value):
        stream = model.stream(alarm=alarm)
        stream.step(NORMAL[0] + 50.0)
        state = stream._live.state()
        state[name][0] = value
        with pytest.raises(SnapshotError, match="the state of an alarm is impossible"):
            model.stream_batch(0, alarm=alarm)._restore(state)


def test_printed_numbers_are_rounded(alarm):
    episode = drhmm.live.alarms.Episode(0, 3, 9, 5, 31.922679910736, ((0, 2 / 3), ("b", 1 / 3)), "sum")
    assert repr(episode) == (
        "Episode(sequence=0, begin=3, end=9, peak=5, score=31.92, columns=((0, 0.6667), ('b', 0.3333)), cause='sum')"
    )
    assert re.fullmatch(
        r"Alarm\(sum_level=[\d.]{1,6}, frame_level=[\d.]{1,6}, hold_off=30, false_alarms=1, per=1000, n_normal=\d+\)",
        repr(alarm),
    )


class TestHealth:
    def test_quiet_data_like_those_of_the_levels_are_good(self, alarm):
        health = alarm.health(FRESH)
        assert health.is_good
        assert health.n_steps == len(FRESH)
        assert health.expected == len(FRESH) / 1000

    def test_another_day_says_that_the_levels_are_too_low(self, alarm):
        health = alarm.health(FRESH + 0.5)
        assert not health.is_good
        assert re.match(
            rf"levels too low for these data: {health.n_alarms} alarms in 20000 time steps, 20 were promised",
            str(health),
        )

    def test_one_alarm_that_never_ends_is_too_many(self, alarm):
        assert len(alarm.episodes(FRESH[:2000] + 9.0)) == 1
        assert not alarm.health(FRESH[:2000] + 9.0).is_good

    def test_levels_of_the_new_day_keep_the_promise(self, alarm):
        again = alarm.recalibrate(FRESH[:10_000] + 0.3)
        assert (again.false_alarms, again.per, again.hold_off) == (1, 1000, 30)
        assert again.health(FRESH[10_000:] + 0.3).is_good

    def test_a_stream_forgets_old_alarms(self, model, alarm):
        stream = model.stream(alarm=alarm)
        for x in NORMAL[:500] + 9.0:
            stream.step(x)
        assert str(stream.alarm_health).startswith("levels too low for these data: 8 alarms in ")
        stream.step(NORMAL[0], dt=20_000)
        assert stream.alarm_health.is_good


def test_the_event_of_a_begin_has_the_columns_that_stick_out(model, alarm):
    sequences = LiveSequences(model, {"lag": 0, "step": None}, alarm)
    observation = Observation(NORMAL[0] + np.array([0.0, 0.0, 40.0, 0.0]))
    sequences.step(observation)
    (event,) = sequences.events(observation)
    assert next(iter(event["columns"])) == "heat"
    assert event["cause"] == "frame"
    assert event["score"] > alarm.frame_level


def test_the_event_of_a_sum_has_the_sum_and_the_score_of_its_peak(model, alarm):
    sequences = LiveSequences(model, {"lag": 0, "step": None}, alarm)
    scores = model.novelty_score(FAULTY)
    events, slow = [], Observation(FAULTY[np.flatnonzero((scores > 0.3) & (scores < alarm.frame_level))[0]])
    while not events:
        sequences.step(slow)
        events = sequences.events(slow)
    assert events[0]["cause"] == "sum"
    assert events[0]["alarm_sum"] > alarm.sum_level > events[0]["score"]


class TestFiles:
    def test_a_model_keeps_its_alarm_in_its_file(self, model, alarm, tmp_path):
        model.with_alarm(alarm).save(tmp_path / "model.drhmm")
        loaded = drhmm.load(tmp_path / "model.drhmm")
        assert loaded.own_alarm.numbers() == alarm.numbers()
        assert loaded.own_alarm.episodes(FAULTY) == loaded.alarm(1, per=1000, hold_off=30).episodes(FAULTY)

    def test_streams_of_such_a_model_watch_for_it(self, model, alarm):
        stream = model.with_alarm(alarm).stream()
        stream.step(NORMAL[0] + 50.0)
        assert stream.alarm is not None

    def test_info_tells_of_it(self, model, alarm, tmp_path, capsys):
        model.with_alarm(alarm).save(tmp_path / "model.drhmm")
        assert main(["info", str(tmp_path / "model.drhmm")]) == 0
        assert re.search(
            r"alarm +1 false per 1,000 time steps, calibrated on 3,000 normal ones; levels ", capsys.readouterr().out
        )
        assert main(["info", str(tmp_path / "model.drhmm"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["alarm"]["sum_level"] == alarm.sum_level

    def test_it_can_be_taken_away(self, model, alarm):
        assert model.with_alarm(alarm).with_alarm(None).own_alarm is None

    def test_a_file_without_one(self, model, tmp_path):
        model.save(tmp_path / "model.drhmm")
        assert drhmm.load(tmp_path / "model.drhmm").own_alarm is None


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "frames"),
        [
            ("7d", 10_080),
            ("10min", 10),
            ("1.5h", 90),
            ("30 s", 0.5),
            ("w", 10_080),
            ("500ms", 1 / 120),
            ("7 days", 10_080),
            ("7", 7),
            ("5 frames", 5),
        ],
    )
    def test_text(self, text, frames):
        assert_allclose(frames_of(text, "per", 60.0, low=0), frames)

    @pytest.mark.parametrize("text", ["", "d7", "7 years", "-1d", "1e3s"])
    def test_text_that_is_no_time(self, text):
        with pytest.raises(ValueError, match="per must be a number of time steps or a time"):
            frames_of(text, "per", 60.0, low=0)

    def test_times_are_those_of_the_step(self, model):
        by_time = model.alarm(1, per="12h", hold_off="30min", step=60.0)
        assert by_time.numbers() == model.alarm(1, per=720, hold_off=30).numbers()

    @pytest.mark.parametrize("step", ["1min", "60 s", datetime.timedelta(minutes=1), 60])
    def test_a_step_with_a_unit(self, model, step):
        assert model.alarm(1, per=720, hold_off=30).numbers() == model.alarm(1, "12h", "30min", step=step).numbers()

    def test_the_hold_off_is_ten_minutes_or_the_duration_of_the_unknown(self, model):
        assert model.alarm(1, per=720, step="1min").hold_off == 10
        assert model.alarm(1, per=720).hold_off == model.novelty.duration

    def test_without_a_step(self, model):
        with pytest.raises(ValueError, match=r"per is '7d', a time, and .* give step as well"):
            model.alarm()


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"false_alarms": 0}, "false_alarms must be"),
            ({"per": 0.5}, "per must be"),
            ({"hold_off": -1}, "hold_off must be"),
            ({"step": 0.0}, "step must be"),
            ({"lengths": [5]}, "belong to normal, which is not given"),
            ({"hold_off": 100}, "an alarm must be able to end in less time"),
            ({"normal": np.full((50, 4), np.nan)}, "the normal data have no complete time step"),
        ],
    )
    def test_what_was_asked_for(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            model.alarm(**({"per": 100, "hold_off": 5} | arguments))

    def test_a_model_without_novelty(self):
        plain = DensityRatioHMM(n_basis=20, sigma=1.0, rho=0.01, random_state=0)
        with pytest.raises(ValueError, match="learn it with novelty=True"):
            plain.fit(NORMAL, NORMAL[:, 0] > 0).model_.alarm(1, per=100, hold_off=5)

    def test_the_alarm_of_another_model(self, model, alarm):
        other = (
            DensityRatioHMM(1, novelty=True, n_basis=20, sigma=1.0, rho=0.01, random_state=0).fit(NORMAL[:500]).model_
        )
        with pytest.raises(ValueError, match="the alarm belongs to another model"):
            other.stream(alarm=alarm)

    def test_a_stream_that_watches_for_none(self, model):
        with pytest.raises(ValueError, match="there is no alarm"):
            model.stream().alarm  # noqa: B018

    def test_a_snapshot_with_an_alarm_that_is_none(self, model, alarm, monkeypatch):
        stream = model.stream(alarm=alarm)
        monkeypatch.setattr(Alarm, "numbers", lambda self: (-1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
        with pytest.raises(SnapshotError, match="does not hold an alarm"):
            model.resume(stream.snapshot())


class TestPicture:
    def test_every_episode_is_a_band(self, model, alarm):
        scores = model.novelty_score(FAULTY)
        above, below = plotting.alarms(scores, alarm, truth=TRUTH != "normal")
        n_episodes = len(alarm.episodes(FAULTY))
        assert len(above.patches) == len(below.patches) == n_episodes
        assert_allclose(above.lines[0].get_ydata(), scores)

    def test_a_short_episode_has_a_line_that_can_be_seen(self, alarm):
        scores = np.zeros(100_000)
        scores[500:502] = 10 * alarm.frame_level
        above, _ = plotting.alarms(scores, alarm)
        assert [patch.get_linewidth() for patch in above.patches] == [1.0]

    def test_times_are_along_the_axis(self, model, alarm):
        scores = model.novelty_score(FAULTY)
        times = 60.0 * np.arange(len(scores))
        for axis in plotting.alarms(scores, alarm, truth=TRUTH != "normal", times=times):
            assert_allclose(axis.lines[0].get_xdata(), times)
            assert_allclose(axis.lines[-1].get_xdata(), times[TRUTH != "normal"])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"scores": np.zeros((3, 2))}, r"scores must have the shape \(T,\)"),
            ({"alarm": 1.0}, "alarm must be one of model.alarm, got float"),
            ({"truth": np.zeros(4, dtype=bool)}, "truth must have one bool per time step, 3"),
        ],
    )
    def test_what_cannot_be_drawn(self, alarm, arguments, message):
        with pytest.raises(ValueError, match=message):
            plotting.alarms(**({"scores": np.zeros(3), "alarm": alarm} | arguments))


class TestSensors:
    def test_every_fault_is_there(self):
        assert set(sensors(10_000, random_state=0)[1].tolist()) == {"normal", *FAULTS}

    def test_samples_of_a_plant_belong_together(self):
        first, second = (np.corrcoef(sensors(5000, faults=(), random_state=seed)[0].T) for seed in (0, 1))
        assert np.abs(first - second).max() < 0.3

    def test_a_fault_that_is_none(self):
        with pytest.raises(ValueError, match="faults must be one of"):
            sensors(100, faults=("rust",))
