"""The protocol, the features, and the command of the neonatal experiment."""

from __future__ import annotations

import json

import numpy as np
import pytest
from neonatal import experiment, fhmm, ratio_systems, slds
from neonatal.__main__ import main
from neonatal.features import Recipe, features, running_median, trailing_deviation, trailing_mean
from neonatal.protocol import CONDITIONS, KNOWN, folds, prepare, switching, training_of, without_dropouts
from neonatal.scores import scores
from neonatal.units import SYSTEMS, Store, Unit, settings_hash
from neonatal.vital_signs import monitor
from numpy.testing import assert_allclose, assert_array_equal

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patients():
    return prepare(monitor(15, 2400, activity=15, random_state=2))


def test_dropouts_become_nan():
    assert np.isnan(without_dropouts("HR", np.array([0.0, 20.0]))).tolist() == [True, False]
    assert np.isnan(without_dropouts("TC", np.array([0.0, 20.0, 20.1]))).tolist() == [True, True, False]


def test_folds_of_fifteen_are_babies_1_to_5_6_to_10_and_11_to_15():
    assert folds(15) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14]]


def test_a_baby_is_never_trained_on_its_own_fold(patients):
    assert [patient.number for patient in training_of(patients, 7)] == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]


def test_switching_comes_from_the_number_and_length_of_intervals(patients):
    begin, end = switching(patients, "bradycardia")
    on = sum(patient.truth["bradycardia"].sum() for patient in patients)
    n_intervals = sum(len(patient.intervals["bradycardia"]) for patient in patients)
    assert end == pytest.approx(n_intervals / on, rel=0.05)
    assert begin == pytest.approx(n_intervals / (15 * 2400 - on), rel=0.05)


def test_a_condition_is_not_asked_of_a_baby_without_its_channels(patients):
    without = [patient for patient in patients if "BS" not in patient.values]
    assert without
    assert not any(patient.has("blood sample") for patient in without)


def test_trailing_mean_and_deviation_skip_what_is_missing():
    values = np.array([1.0, np.nan, 3.0, 8.0, np.nan, np.nan])
    assert_allclose(trailing_mean(values, 2), [1, 1, 3, 5.5, 8, np.nan])
    assert_allclose(trailing_deviation(values, 3), [0, 0, 1, 2.5, 2.5, 0], atol=1e-12)


def test_the_running_median_begins_at_its_start_and_follows_the_past_only():
    values = np.concatenate([np.full(200, 5.0), np.full(400, 9.0)])
    median = running_median(values, 100, 7.0)
    assert median[0] == 7.0
    assert median[199] == 5.0
    assert median[220] == 5.0
    assert median[-1] == 9.0


def test_the_running_median_keeps_its_last_value_through_a_gap():
    values = np.concatenate([np.full(100, 5.0), np.full(300, np.nan)])
    assert running_median(values, 60, 7.0)[-1] == 5.0


@pytest.mark.parametrize("condition", CONDITIONS)
def test_frames_do_not_depend_on_the_future(patients, condition):
    patient = next(p for p in patients if p.channels(condition))
    recipe, channels = ratio_systems.RECIPES[condition], patient.channels(condition)
    whole = features(patient, channels, recipe)
    cut = {name: np.where(np.arange(2400) < 1300, values, 77.0) for name, values in patient.values.items()}
    changed = type(patient)(**{**vars(patient), "values": cut})
    assert_array_equal(features(changed, channels, recipe)[:1300], whole[:1300])


def test_a_difference_of_channels_is_a_column(patients):
    patient = next(p for p in patients if "BS" in p.values)
    recipe = Recipe(1, 10, 10, differences=(("BS", "BD"),), only={"BS": (), "BD": (), "BS-BD": ("value",)})
    assert_allclose(features(patient, ("BS", "BD"), recipe)[:, 0], patient.values["BS"] - patient.values["BD"])


def test_thinning_keeps_the_order_and_drops_missing_frames():
    frames = np.arange(100.0)[:, None].copy()
    frames[3] = np.nan
    kept = ratio_systems.thinned(frames, 10)[:, 0]
    assert len(kept) == 10
    assert (np.diff(kept) > 0).all()


def probabilities_from_truth(patient, rows):
    return {row: np.clip(patient.truth[row] + np.sin(np.arange(patient.n_samples)), 0, 1) for row in rows}


@pytest.fixture
def quick_systems(monkeypatch):
    """Systems that answer at once, and how often each was asked."""
    asked = dict.fromkeys(SYSTEMS, 0)

    def counted(name, answer):
        def run(*arguments, **settings):
            asked[name] += 1
            return answer(*arguments)

        return run

    monkeypatch.setattr(fhmm, "run", counted("fhmm", lambda test, _: probabilities_from_truth(test, KNOWN)))
    monkeypatch.setattr(
        ratio_systems,
        "two_class",
        counted("ratio", lambda test, _, row, __: probabilities_from_truth(test, [row])[row]),
    )
    monkeypatch.setattr(
        ratio_systems,
        "novelty",
        counted("ratio", lambda test, *_: (probabilities_from_truth(test, ["abnormal"])["abnormal"], None)),
    )
    monkeypatch.setattr(
        ratio_systems, "multi_class", counted("ratio multi", lambda test, *_: probabilities_from_truth(test, KNOWN))
    )
    monkeypatch.setattr(
        slds, "run", counted("slds", lambda tests, *_: [probabilities_from_truth(test, CONDITIONS) for test in tests])
    )
    return asked


@pytest.mark.exhaustive
def test_the_command_writes_a_table_and_pictures(tmp_path, quick_systems, capsys):
    assert main(["--hours", "0.4", "--activity", "20", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| bradycardia |" in page
    assert "Simulated: 15 babies of 0.4 hours" in page
    assert ".92 / .13" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"roc.png", "stretch.png"}
    assert "first in 5 of 5 rows" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_a_second_run_computes_nothing_and_a_lost_unit_alone(tmp_path, quick_systems, capsys):
    arguments = ["--hours", "0.4", "--activity", "20", "--output", str(tmp_path)]
    main(arguments)
    first = dict(quick_systems)
    main(arguments)
    assert quick_systems == first
    next(iter(tmp_path.glob(".cache/*/fhmm-bradycardia-*.json"))).unlink()
    main(arguments)
    assert quick_systems == first | {"fhmm": first["fhmm"] + 1}


@pytest.mark.exhaustive
def test_another_seed_does_not_reuse_results(tmp_path, quick_systems, capsys):
    main(["--hours", "0.4", "--activity", "20", "--output", str(tmp_path)])
    first = quick_systems["fhmm"]
    main(["--hours", "0.4", "--activity", "20", "--seed", "9", "--output", str(tmp_path)])
    assert quick_systems["fhmm"] == first + 15


def test_the_hash_depends_on_settings_and_data():
    hashes = {settings_hash({"a": 1}, b"x"), settings_hash({"a": 2}, b"x"), settings_hash({"a": 1}, b"y")}
    assert len(hashes) == 3


def test_a_unit_that_was_cut_off_counts_as_missing(tmp_path):
    store = Store(tmp_path)
    store.put(Unit("fhmm", "bradycardia", 1, 0.9, 0.1, [0.5], 1.0))
    (path,) = tmp_path.glob("*.json")
    assert store.get("fhmm", "bradycardia", 1).auc == 0.9
    path.write_text(json.dumps(json.loads(path.read_text()))[:20])
    assert store.get("fhmm", "bradycardia", 1) is None


def test_the_stretch_of_the_figure_has_several_conditions(patients):
    number, begin = experiment.stretch_of(patients)
    patient = patients[number - 1]
    assert sum(patient.truth[row][begin : begin + experiment.STRETCH].any() for row in CONDITIONS) >= 2


@pytest.mark.parametrize("option", [["--hours", "0.1"], ["--activity", "0"]])
def test_impossible_options_end_with_status_2(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(option)
    assert "must be" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_every_system_finds_bradycardia_in_short_recordings(patients):
    k = next(k for k, patient in enumerate(patients) if patient.has("bradycardia"))
    test, training = patients[k], training_of(patients, k)
    for found in (
        ratio_systems.two_class(test, training, "bradycardia"),
        ratio_systems.multi_class(test, training)["bradycardia"],
        fhmm.run(test, training)["bradycardia"],
        slds.run([test], [training], False)[0]["bradycardia"],
    ):
        assert scores(test.truth["bradycardia"], found).auc > 0.8


@pytest.mark.exhaustive
def test_the_unknown_is_found_in_short_recordings(patients):
    found = {"ratio": [], "slds": []}
    for k in (0, 7, 14):
        test, training = patients[k], training_of(patients, k)
        for name, probability in (
            ("ratio", ratio_systems.novelty(test, training)[0]),
            ("slds", slds.run([test], [training], True)[0]["abnormal"]),
        ):
            found[name].append(scores(test.truth["abnormal"], probability).auc)
    assert min(np.mean(values) for values in found.values()) > 0.5
