"""The experiments of benchmarks/accuracy on tiny sizes: they run, go on after a kill, and refuse what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import arena
import arena_sets
import figure1
import numpy as np
import pages
import peers
import pytest
import sets
import toy
from numpy.testing import assert_allclose
from results import Store, complete, markdown_table

pytestmark = pytest.mark.slow

FOLDER = Path(toy.__file__).parent
TOY = ["--runs", "2", "--sizes", "20", "30", "--length", "100", "--jobs", "1"]


KEY = {"n": 1, "seed": 2}


class TestStore:
    def test_a_result_is_there_for_the_next_process(self, tmp_path):
        Store(tmp_path / "a.jsonl").add(KEY, {"accuracy": 0.5})
        again = Store(tmp_path / "a.jsonl")
        assert again[{"seed": 2, "n": 1}] == {"accuracy": 0.5}
        assert {"n": 1, "seed": 3} not in again

    def test_a_result_of_another_version_does_not_count(self, tmp_path, monkeypatch):
        Store(tmp_path / "a.jsonl").add(KEY, {"accuracy": 0.5})
        monkeypatch.setattr("drhmm.__version__", "99.0")
        assert KEY not in Store(tmp_path / "a.jsonl")

    def test_an_unfinished_last_line_is_cut_off_and_the_rest_stays(self, tmp_path):
        path = tmp_path / "a.jsonl"
        Store(path).add(KEY, {"accuracy": 0.5})
        whole = path.read_text()
        path.write_text(whole + '{"key": {"n"')
        store = Store(path)
        assert path.read_text() == whole
        store.add({"n": 2, "seed": 2}, {"accuracy": 0.6})
        assert {"n": 2, "seed": 2} in Store(path)

    def test_a_foreign_line_is_named(self, tmp_path):
        (tmp_path / "a.jsonl").write_text("{}\n")
        with pytest.raises(SystemExit, match=r"a\.jsonl, line 1, is not a result"):
            Store(tmp_path / "a.jsonl")

    def test_only_what_is_missing_is_computed(self, tmp_path, capsys):
        store = Store(tmp_path / "a.jsonl")
        store.add({"n": 0}, 0)
        complete(store, [{"n": n} for n in range(3)], lambda missing: [(key, key["n"]) for key in missing], "work")
        assert [store[{"n": n}] for n in range(3)] == [0, 1, 2]
        assert "work [####################] 3/3" in capsys.readouterr().err


def test_a_table_has_one_line_per_row():
    assert markdown_table(["a", "b"], [[1, 2]]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]


@pytest.fixture(scope="module")
def toy_output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy.main([*TOY, "--output", str(folder)])
    return folder


class TestToy:
    def test_writes_tables_and_pictures(self, toy_output):
        page = (toy_output / "toy.md").read_text()
        verdicts = [line for line in page.splitlines() if line.endswith(("| yes |", "| no |", "| undecided |"))]
        assert len(verdicts) >= 3 * 2 * 2
        assert (toy_output / "toy.png").stat().st_size > 10_000
        assert (toy_output / "toy_sequence.png").stat().st_size > 10_000

    def test_every_run_has_three_systems_with_three_estimates(self, toy_output):
        records = [json.loads(line) for line in (toy_output / "toy.jsonl").read_text().splitlines()]
        assert len(records) == 2 * 2 * 2
        for record in records:
            assert set(record["values"]) == {"density ratio", "KDE", "GMM"}
            assert all(0 <= values[m] <= 1 for values in record["values"].values() for m in toy.ESTIMATES)

    @pytest.mark.exhaustive
    def test_a_killed_run_goes_on_where_it_stopped(self, toy_output, tmp_path):
        command = [sys.executable, str(FOLDER / "toy.py"), *TOY, "--output", str(tmp_path)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        store, patience = tmp_path / "toy.jsonl", time.monotonic() + 120
        while not (store.exists() and store.stat().st_size > 0) and time.monotonic() < patience:
            time.sleep(0.005)
        process.kill()
        process.wait()
        before = store.read_text().splitlines(keepends=True)
        toy.main([*TOY, "--output", str(tmp_path)])
        after = store.read_text().splitlines(keepends=True)
        assert 0 < len(before) < len(after) == 8
        whole = [line for line in before if line.endswith("\n")]
        assert after[: len(whole)] == whole
        expected = Store(toy_output / "toy.jsonl")
        for key in toy.wanted(toy.arguments(TOY)):
            for name in toy.SYSTEMS:
                assert Store(store)[key][name]["smooth"] == expected[key][name]["smooth"]

    def test_the_same_data_serve_all_systems_and_the_test_sequence_all_sizes(self):
        key = {"seed": 5, "run": 1, "noise": 0.25, "n": 20, "length": 50}
        (_, _), (first, _) = toy.data_of(key)
        (_, _), (second, _) = toy.data_of(key | {"n": 30})
        (_, _), (third, _) = toy.data_of(key | {"run": 2})
        assert np.array_equal(first, second)
        assert not np.array_equal(first, third)

    @pytest.mark.parametrize(
        ("intervals", "answer"),
        [([(0.1, 0.2), (0.01, 0.3)], "yes"), ([(0.1, 0.2), (-0.1, 0.3)], "undecided"), ([(0.1, 0.2), (-2, -1)], "no")],
    )
    def test_the_verdict_asks_for_every_rival(self, intervals, answer):
        assert toy.verdict(intervals) == answer

    def test_the_interval_is_that_of_a_paired_t_test(self):
        ours, theirs = np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.5, 0.6])
        gap, (low, high), _ = toy.difference(ours, theirs)
        # t quantile .975 with 2 degrees of freedom: 4.3027
        assert_allclose([gap, low, high], [0.2, 0.2 - 4.3027 * 0.1 / 3**0.5, 0.2 + 4.3027 * 0.1 / 3**0.5], atol=1e-4)

    @pytest.mark.parametrize("wrong", [["--runs", "1"], ["--sizes", "5"], ["--jobs", "0"], ["--length", "2"]])
    def test_a_size_that_makes_no_sense_is_refused_by_name(self, wrong, capsys):
        with pytest.raises(SystemExit):
            toy.main(wrong)
        assert f"{wrong[0]} must" in capsys.readouterr().err


class TestFigure1:
    def test_writes_the_picture(self, tmp_path):
        figure1.main(["--output", str(tmp_path / "new" / "map.png")])
        assert (tmp_path / "new" / "map.png").stat().st_size > 10_000

    def test_a_probability_above_one_is_refused_by_name(self, capsys):
        with pytest.raises(SystemExit):
            figure1.main(["--stay", "2"])
        assert "--stay" in capsys.readouterr().err


def states(n, n_states, random):
    """Stretches of about 15 rows, states in turn."""
    return np.cumsum(random.random(n) < 1 / 15) % n_states


def write(folder, name, lengths, n_columns, n_states, **more):
    random = np.random.default_rng(0)
    y = np.concatenate([states(n, n_states, random) for n in lengths])
    X = random.normal(size=(len(y), n_columns)) + 2.0 * y[:, None]
    names = ["Temperature", "Humidity", "Light", "CO2", "HumidityRatio"][:n_columns]
    arrays = {"X": X, "y": y, "lengths": lengths, "label_names": ["a"] * n_states, "feature_names": names}
    np.savez(folder / f"{name}.npz", **arrays, **more)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Four small files with the arrays of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    write(folder, "apnea_ecg", [120] * 4, 3, 2, released=np.array([1, 0, 1, 0]))
    write(folder, "occupancy", [120] * 3, 5, 2)
    write(folder, "mhealth_athens", [500], 2, 4)
    random = np.random.default_rng(1)
    X, y = random.normal(size=(1400, 3)), np.zeros(1400, dtype=int)
    for begin in (550, 1200):
        X[begin : begin + 60] += 5
        y[begin : begin + 60] = 1
    arrays = {"label_names": ["n", "a"], "feature_names": ["a", "b", "c"]}
    np.savez(folder / "skab.npz", X=X, y=y, lengths=[700, 700], **arrays)
    return folder


@pytest.mark.exhaustive
class TestSets:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("system", peers.ARENA)
    def test_every_peer_gives_probabilities_that_beat_a_guess(self, data, system):
        split = sets.labelled_splits(data)[3]
        model = peers.ARENA[system](split.window, 0)
        model.fit(*split.train)
        posteriors = model.predict_proba(split.test[0], split.test[2])
        assert posteriors.shape == (len(split.test[1]), 4)
        assert_allclose(posteriors.sum(axis=1), 1, atol=1e-6)
        assert np.mean(posteriors.argmax(axis=1) == split.test[1]) > 0.6

    def test_train_and_test_parts_never_share_a_row(self, data):
        for split in sets.labelled_splits(data):
            shared = set(map(tuple, split.train[0])) & set(map(tuple, split.test[0]))
            assert not shared, split.name

    def test_without_a_folder_it_says_where_the_sets_come_from(self):
        with pytest.raises(SystemExit, match="--data FOLDER is needed") as raised:
            arena.main([])
        assert all(source in str(raised.value) for source in sets.SOURCES.values())

    def test_missing_files_are_named(self, tmp_path):
        with pytest.raises(SystemExit, match=r"has no apnea_ecg\.npz, occupancy\.npz, mhealth_athens\.npz, skab\.npz"):
            arena.main(["--data", str(tmp_path)])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"lengths": np.array([5, 5, 5])}, "lengths sum to 15, but X and y are"),
            ({"lengths": np.array([300, 60])}, "3 sequences expected"),
            ({"y": np.zeros(360, dtype=int)}, "has no row of state 1"),
            ({"y": None}, "has no array y"),
        ],
    )
    def test_a_file_of_another_structure_is_named(self, data, tmp_path, change, message):
        for path in data.glob("*.npz"):
            with np.load(path) as archive:
                arrays = dict(archive) | (change if path.stem == "occupancy" else {})
            np.savez(tmp_path / path.name, **{key: value for key, value in arrays.items() if value is not None})
        with pytest.raises(sets.DataError, match=rf"occupancy.*{message}"):
            sets.labelled_splits(tmp_path)

    def test_a_file_that_is_no_archive_is_named(self, data, tmp_path):
        for path in data.glob("*.npz"):
            (tmp_path / path.name).write_bytes(b"nonsense" if path.stem == "apnea_ecg" else path.read_bytes())
        with pytest.raises(sets.DataError, match=r"apnea_ecg\.npz cannot be read"):
            sets.labelled_splits(tmp_path)


def test_windows_repeat_the_first_sample_and_never_cross_sequences():
    frames = peers.windows(np.arange(5.0)[:, None], [3, 2], 2)
    assert_allclose(frames, [[0, 0], [0, 1], [1, 2], [3, 3], [3, 4]])


def test_a_subset_keeps_order_shares_and_rare_classes():
    rows = peers.subset(np.repeat([0, 1], [990, 10]), 100, 0)
    assert (np.diff(rows) > 0).all()
    assert np.sum(rows >= 990) == 10
    assert np.sum(rows < 990) == 99


class TestPages:
    README = "# All\n\n<!-- begin toy -->\nold\n<!-- end toy -->\n\nrest\n"

    def test_a_page_replaces_its_part_without_title_and_one_level_deeper(self, tmp_path):
        (tmp_path / "README.md").write_text(self.README)
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "toy.md").write_text("# Toy\n\nwords\n\n## Table\n\n| a |\n")
        (tmp_path / "run" / "toy.png").write_bytes(b"picture")
        for _ in range(2):
            pages.main(["toy", str(tmp_path / "run"), "--readme", str(tmp_path / "README.md")])
        text = "# All\n\n<!-- begin toy -->\n\nwords\n\n### Table\n\n| a |\n\n<!-- end toy -->\n\nrest\n"
        assert (tmp_path / "README.md").read_text() == text
        assert (tmp_path / "toy.png").read_bytes() == b"picture"

    def test_a_readme_without_the_part_is_refused(self):
        with pytest.raises(SystemExit, match="needs the lines <!-- begin arena --> and <!-- end arena --> once each"):
            pages.insert(self.README, "arena", "# Arena\n")


class TestArena:
    SYSTEMS = ("pool (default)", "LR")

    @pytest.fixture(scope="class")
    @staticmethod
    def tiny():
        X, y = toy.sines_training(12, noise=0.25, random_state=0)
        X_test, y_test = toy.sines(60, noise=0.25, random_state=1)
        lengths = [len(own) for own in y]
        fold = ((np.concatenate(X).reshape(-1, 1), np.concatenate(y), lengths), (X_test, y_test, [30, 30]))
        return [arena_sets.Set(name, "tiny", [fold], window=4) for name in ("one", "two")]

    @pytest.fixture(scope="class")
    @staticmethod
    def store(tiny, tmp_path_factory):
        found = Store(tmp_path_factory.mktemp("arena") / "arena.jsonl")
        arena.run(found, tiny, arena.wanted(tiny, TestArena.SYSTEMS, 0), jobs=1)
        return found

    def test_every_fold_of_every_system_is_kept(self, tiny, store):
        assert all(key in store for key in arena.wanted(tiny, self.SYSTEMS, 0))

    def test_the_page_has_ranks_and_a_row_per_set(self, tiny, store):
        options = arena.arguments(["--systems", *self.SYSTEMS])
        page = "\n".join(arena.report(arena.Results(store, tiny, list(self.SYSTEMS), 0), options))
        assert "Mean ranks" in page
        assert "| one |" in page

    def test_measures_are_sums_of_each_sequence(self):
        posteriors = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        found = arena.measures(posteriors, np.array([0, 0, 0]), [2, 1], 2)
        assert (found["right"], found["frames"]) == ([1, 1], [2, 1])
        assert_allclose(found["loss"], [-np.log(0.9) - np.log(0.2), -np.log(0.6)])

    def test_a_third_of_a_hundred_classes_are_rare(self):
        ((_, y, _), _), *_ = arena_sets.digit_words(clusters=10).folds
        counts = np.bincount(y, minlength=100)
        assert 0.2 < np.mean(counts < 5) < 0.5
