"""The file of the neonatal experiment: what is written is read, and bad files are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from neonatal.__main__ import main
from neonatal.babies import CONDITIONS
from neonatal.files import ALIASES, FileFormatError, read, write
from neonatal.vital_signs import monitor
from numpy.testing import assert_array_equal
from scipy.io import loadmat, savemat


@pytest.fixture(scope="module")
def babies():
    return monitor(6, 1200, activity=15, random_state=2)


@pytest.fixture
def path(tmp_path, babies):
    write(tmp_path / "15days.mat", babies)
    return tmp_path / "15days.mat"


def changed(path, change):
    """The same file after `change` of its contents."""
    contents = {key: value for key, value in loadmat(path).items() if not key.startswith("__")}
    change(contents)
    savemat(path, contents)
    return path


def first_raw(contents):
    return contents["data"]["raw"][0, 0][0, 0]


def test_what_was_written_is_read(path, babies):
    for before, after in zip(babies, read(path), strict=True):
        assert_array_equal(before.channels, after.channels)
        assert before.labels == after.labels
        assert (before.forename, before.sex, before.gestation) == (after.forename, after.sex, after.gestation)
        for condition in CONDITIONS:
            assert_array_equal(before.intervals[condition], after.intervals[condition])


def test_the_file_counts_from_one_and_includes_both_ends(path, babies):
    stored = loadmat(path)["intervals"]["Normal"][0, 0][0, 0]
    begin, end = babies[0].intervals["Normal"][0]
    assert stored.tolist() == [[begin + 1, end]]


def test_empty_intervals_are_in_the_file_and_come_back_empty(path, babies):
    lacking = [(k, c) for k, baby in enumerate(babies) for c in CONDITIONS if len(baby.intervals[c]) == 0]
    assert lacking
    for k, condition in lacking:
        assert loadmat(path)["intervals"][condition][0, 0][0, k].size == 0
        assert read(path)[k].intervals[condition].shape == (0, 2)


def test_other_names_of_channels_are_in_the_file(path):
    stored = [str(label[0]) for label in loadmat(path)["data"]["raw"][0, 0][0, 1]["labels"][0, 0][0]]
    assert set(stored) & set(ALIASES)
    assert not set(read(path)[1].labels) & set(ALIASES)


def test_preprocessed_channels_are_smoother(path):
    raw = loadmat(path)["data"]["raw"][0, 0][0, 0]["channels"][0, 0]
    smooth = loadmat(path)["data"]["preprocessed"][0, 0][0, 0]["channels"][0, 0]
    assert raw.shape == smooth.shape
    assert np.diff(smooth[:, 0]).std() < np.diff(raw[:, 0]).std()


def test_a_channel_that_every_baby_must_have_is_named_with_its_baby(path, babies):
    def rename(contents):
        labels = contents["data"]["raw"][0, 0][0, 2]["labels"][0, 0]
        labels[0, babies[2].labels.index("TC")] = np.array(["nonsense"])

    with pytest.raises(FileFormatError, match="baby 3: no channel TC; it has HR"):
        read(changed(path, rename))


@pytest.mark.parametrize("name", ["data", "intervals"])
def test_a_missing_variable_is_named(path, name):
    with pytest.raises(FileFormatError, match=f"no variable '{name}'"):
        read(changed(path, lambda contents: contents.pop(name)))


def test_a_missing_condition_is_named(tmp_path, path):
    def drop(contents):
        old = contents["intervals"]
        contents["intervals"] = {name: old[name][0, 0] for name in old.dtype.names if name != "TCP"}

    with pytest.raises(FileFormatError, match="intervals has no field TCP; it has BloodSample"):
        read(changed(path, drop))


def test_a_foreign_structure_is_refused(tmp_path):
    savemat(tmp_path / "other.mat", {"data": np.eye(3), "intervals": np.eye(2)})
    with pytest.raises(FileFormatError, match="data is not a struct"):
        read(tmp_path / "other.mat")


def test_raw_that_is_no_cell_of_structs_is_refused(tmp_path):
    savemat(tmp_path / "other.mat", {"data": {"raw": np.eye(3)}, "intervals": {"Normal": 1}})
    with pytest.raises(FileFormatError, match=r"data\.raw is not a cell of structs"):
        read(tmp_path / "other.mat")


def test_labels_that_do_not_fit_the_columns_are_refused(path):
    def cut(contents):
        entry = contents["data"]["raw"][0, 0][0, 0]
        entry["channels"][0, 0] = entry["channels"][0, 0][:, :3]

    with pytest.raises(FileFormatError, match="baby 1: channels has 3 columns, but there are"):
        read(changed(path, cut))


def test_nan_among_samples_is_refused_with_its_place(path):
    def spoil(contents):
        contents["data"]["raw"][0, 0][0, 0]["channels"][0, 0][4, 0] = np.nan

    with pytest.raises(FileFormatError, match="baby 1: channel HR is nan at sample 5"):
        read(changed(path, spoil))


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[5.0, 2.0]], r"\[5 2\] is not an interval"), ([[1.0, 2.0, 3.0]], "rows of .start stop., got shape")],
)
def test_impossible_intervals_are_refused(path, rows, message):
    def spoil(contents):
        contents["intervals"]["Bradycardia"][0, 0][0, 1] = np.array(rows)

    with pytest.raises(FileFormatError, match=f"baby 2, Bradycardia: .*{message}|{message}"):
        read(changed(path, spoil))


def test_intervals_of_the_wrong_number_of_babies_are_refused(path):
    def cut(contents):
        contents["intervals"]["TCP"][0, 0] = contents["intervals"]["TCP"][0, 0][:, :4]

    with pytest.raises(FileFormatError, match=r"intervals\.TCP has 4 entries, but there are 6 babies"):
        read(changed(path, cut))


def test_a_matlab_7_3_file_gets_advice(tmp_path, capsys):
    (tmp_path / "new.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + b"\x89HDF\r\n\x1a\n")
    assert main(["--file", str(tmp_path / "new.mat"), "--output", str(tmp_path)]) == 2
    assert "'-v7'" in capsys.readouterr().err


@pytest.mark.parametrize("contents", [b"", b"hello", b"x" * 5000])
def test_something_that_is_no_matlab_file_is_refused(tmp_path, contents):
    (tmp_path / "text.mat").write_bytes(contents)
    with pytest.raises(FileFormatError, match="not a Matlab file, or a damaged one"):
        read(tmp_path / "text.mat")


def test_a_file_that_was_cut_off_is_refused(path):
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FileFormatError, match="not a Matlab file, or a damaged one"):
        read(path)


def test_a_file_that_is_not_there_ends_the_command_with_status_2(tmp_path, capsys):
    assert main(["--file", str(tmp_path / "none.mat"), "--output", str(tmp_path)]) == 2
    assert "none.mat: No such file" in capsys.readouterr().err


def test_a_baby_without_a_normal_interval_ends_the_command_with_status_2(path, tmp_path, capsys):
    def spoil(contents):
        contents["intervals"]["Normal"][0, 0][0, 3] = np.zeros((0, 0))

    changed(path, spoil)
    assert main(["--file", str(path), "--output", str(tmp_path)]) == 2
    assert "baby 4" in capsys.readouterr().err


def test_a_condition_that_only_one_fold_has_ends_the_command_with_status_2(path, tmp_path, capsys):
    def spoil(contents):
        cell = contents["intervals"]["Bradycardia"][0, 0]
        for k in range(6):
            cell[0, k] = np.array([[100.0, 120.0]]) if k == 0 else np.zeros((0, 0))

    changed(path, spoil)
    assert main(["--file", str(path), "--output", str(tmp_path)]) == 2
    assert "nothing to learn bradycardia from" in capsys.readouterr().err
