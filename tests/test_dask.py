"""Dask: the model of all partitions is the one of memory, however rows are spread, and whatever happens to workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

import drhmm.dask
from drhmm import DensityRatioHMM, dataframes, reference
from drhmm.ratios import FromDensities
from problems import blobs, rare_class

FEATURES = ["x", "y"]
ROLES = {"features": FEATURES, "label": "label", "sequence": "person"}
SETTINGS = {"n_basis": 40, "window": 2, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
N_PEOPLE, N_ROWS = 12, 60


def recordings():
    """Labelled sequences one after the other, with missing samples and gaps in time."""
    parts = []
    for person in range(N_PEOPLE):
        X, y = blobs(1, n_frames=N_ROWS + person)  # the same three clouds for everyone
        X = X + np.random.default_rng(person).normal(size=X.shape)
        X[person, 0] = np.nan
        seconds = 2.0 * np.arange(len(X))
        seconds[30:] += 2.0 * person
        label = np.array(["low", "middle", "high"])[y]
        parts.append(pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "second": seconds, "person": person, "label": label}))
    return pd.concat(parts, ignore_index=True)


DF = recordings()


@pytest.fixture(autouse=True)
def one_thread():
    """Everything in this thread, unless a test has a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


def in_memory(df=DF, **settings):
    return DensityRatioHMM(**SETTINGS, **settings).fit(df[FEATURES], df["label"], sequence_id=df["person"])


def whole_partitions(df=DF, n_partitions=5):
    """Partitions that end where sequences end."""
    parts = [df[df["person"] % n_partitions == k] for k in range(n_partitions)]
    return dd.from_map(lambda part: part, parts, meta=df.iloc[:0])


def split_partitions():
    """Two partitions, with rows of person 1 in both."""
    return dd.from_map(lambda part: part, [DF.iloc[:100], DF.iloc[100:]], meta=DF.iloc[:0])


SPLIT = "whole=True, but the sequence 1 of column 'person' is in two partitions, 0 and 1"


def assert_same(found, expected, atol=1e-9):
    assert_array_equal(found.classes_, expected.classes_)
    assert_allclose(found.transmat_, expected.transmat_, rtol=0, atol=atol)
    assert_allclose(found.startprob_, expected.startprob_, rtol=0, atol=atol)
    X, ids = DF[FEATURES], DF["person"]
    assert_allclose(found.log_ratios(X, sequence_id=ids), expected.log_ratios(X, sequence_id=ids), rtol=0, atol=atol)
    assert_allclose(
        found.predict_proba(X, sequence_id=ids), expected.predict_proba(X, sequence_id=ids), rtol=0, atol=atol
    )


class TestFit:
    @pytest.mark.parametrize("n_partitions", [1, 4, 11])
    def test_sequences_across_partitions(self, n_partitions):
        ddf = dd.from_pandas(DF, npartitions=n_partitions)
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), ddf, **ROLES)
        assert_same(found, in_memory())

    @pytest.mark.slow
    def test_everything_that_cross_validation_chooses(self):
        searched = SETTINGS | {"sigma": "cv", "rho": "cv", "evidence_scale": "cv"}
        found = drhmm.dask.fit(DensityRatioHMM(**searched), dd.from_pandas(DF, npartitions=3), **ROLES)
        expected = DensityRatioHMM(**searched).fit(DF[FEATURES], DF["label"], sequence_id=DF["person"])
        assert (found.sigma_, found.rho_, found.evidence_scale_) == (
            expected.sigma_,
            expected.rho_,
            expected.evidence_scale_,
        )
        assert_same(found, expected)

    def test_whole_sequences_in_partitions(self):
        ordered = DF.iloc[np.argsort(DF["person"] % 5, kind="stable")]
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), whole_partitions(), **ROLES)
        assert_same(found, in_memory(ordered))

    def test_an_interleaved_frame(self):
        mixed = DF.iloc[np.argsort(DF["second"].to_numpy(), kind="stable")]
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), dd.from_pandas(mixed, npartitions=4, sort=False), **ROLES)
        assert_same(found, in_memory(mixed))

    @pytest.mark.slow
    def test_rows_in_any_order_of_time(self):
        shuffled = DF.sample(frac=1, random_state=0)
        ddf = dd.from_pandas(shuffled, npartitions=4, sort=False)
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), ddf, time="second", **ROLES)
        first = shuffled["person"].drop_duplicates().tolist()
        df = pd.concat([DF[DF["person"] == person] for person in first])
        # A gap in time ends a sequence.
        stretch = df["person"].astype(str) + np.where(df["second"] % 1000 >= 60 + 2 * df["person"], "b", "a")
        stretch = stretch.where(df["person"] > 0, "0a")
        expected = DensityRatioHMM(**SETTINGS).fit(df[FEATURES], df["label"], sequence_id=stretch)
        assert_same(found, expected)
        assert found.model_.settings["time_step"] == 2.0

    @pytest.mark.slow
    def test_more_rows_than_the_sample_are_the_sums_of_the_reference(self):
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), dd.from_pandas(DF, npartitions=4), sample_size=300, **ROLES)
        evidence = found.model_.evidence
        assert 0 < len(found.centers_) <= 40
        lengths = DF.groupby("person").size().to_numpy()
        samples = (DF[FEATURES].to_numpy() - evidence.framing.mean) / evidence.framing.scale
        frames = reference.features.windows(samples, lengths, 2)
        rows = ~np.isnan(frames).any(axis=1)
        targets = (DF["label"].to_numpy()[:, None] == found.classes_).astype(float)[rows]
        phi = reference.features.squared_exponential(frames[rows], found.centers_, found.sigma_)
        gram, moment, mass = reference.ratios.gram_statistics(phi, targets, np.ones(len(phi)))
        theta = reference.ratios.solve_theta(gram, moment, found.rho_ * len(phi))
        assert_allclose(phi @ found.theta_, phi @ theta, rtol=0, atol=1e-9)
        assert_allclose(found.model_.prior, mass / mass.sum(), rtol=0, atol=1e-12)
        assert_allclose(found.transmat_, in_memory().transmat_, rtol=0, atol=1e-12)
        assert_allclose(found.startprob_, in_memory().startprob_, rtol=0, atol=1e-12)

    @pytest.mark.slow
    def test_the_sample_is_seeded(self):
        ddf = dd.from_pandas(DF, npartitions=4)
        centers = [
            drhmm.dask.fit(
                DensityRatioHMM(**{**SETTINGS, "random_state": seed}), ddf, sample_size=200, **ROLES
            ).centers_
            for seed in (1, 1, 2)
        ]
        assert_array_equal(centers[0], centers[1])
        assert not np.array_equal(centers[0], centers[2])

    @pytest.mark.slow
    def test_a_rare_class_is_in_the_sample(self):
        rare = DF.assign(label=np.where((DF["person"] == 7) & (DF.index % 2 == 0), "rare", DF["label"]))
        for seed in range(5):
            found = drhmm.dask.fit(
                DensityRatioHMM(**{**SETTINGS, "random_state": seed}),
                dd.from_pandas(rare, npartitions=4),
                sample_size=150,
                **ROLES,
            )
            assert found.classes_.tolist() == ["high", "low", "middle", "rare"]

    def test_a_rare_class_has_a_centre(self):
        X, y = rare_class()
        rare = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "label": y, "person": np.arange(len(y)) // 2000})
        found = drhmm.dask.fit(
            DensityRatioHMM(**{**SETTINGS, "n_basis": 20, "window": 1}), dd.from_pandas(rare, npartitions=2), **ROLES
        )
        assert (found.predict(rare.loc[y == 1, FEATURES]) == 1).all()

    def test_partial_fit_can_go_on(self):
        half, rest = DF[DF["person"] < 6], DF[DF["person"] >= 6]
        found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), dd.from_pandas(half, npartitions=3), **ROLES)
        found.partial_fit(rest[FEATURES], rest["label"], sequence_id=rest["person"])
        expected = DensityRatioHMM(**SETTINGS)
        for part in (half, rest):
            expected.partial_fit(part[FEATURES], part["label"], sequence_id=part["person"])
        assert_same(found, expected)

    def test_class_weights(self):
        weights = {"low": 1.0, "middle": 3.0, "high": 0.5}
        found = drhmm.dask.fit(
            DensityRatioHMM(class_weight=weights, **SETTINGS), dd.from_pandas(DF, npartitions=3), **ROLES
        )
        assert_same(found, in_memory(class_weight=weights))

    @pytest.mark.slow
    def test_an_empty_partition_adds_nothing(self):
        ddf = dd.from_pandas(DF, npartitions=4)
        ddf = dd.concat([ddf[ddf["person"] < 0], ddf])
        assert_same(drhmm.dask.fit(DensityRatioHMM(**SETTINGS), ddf, **ROLES), in_memory())

    @pytest.mark.slow
    def test_progress_is_shown(self, capsys):
        drhmm.dask.fit(DensityRatioHMM(**SETTINGS, verbose=True), whole_partitions(), **ROLES)
        told = capsys.readouterr().err
        for what in ("labels", "a sample", "all rows"):
            assert f"drhmm.dask.fit reads {what}\n" in told
        assert told.count("100% Completed") >= 3

    def test_workers_need_no_scikit_learn(self):
        code = "import sys, drhmm.clusters.partitions; sys.exit('sklearn' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_one_partition_is_in_memory_at_a_time(self):
        alive, most = weakref.WeakSet(), []

        class Held:
            """Lives as long as a frame that was made from its partition."""

            def __deepcopy__(self, memo):
                return self

        def load(person):
            frame, held = DF[DF["person"] == person].copy(), Held()
            frame.attrs["held"] = held
            alive.add(held)
            most.append(len(alive))
            return frame

        ddf = dd.from_map(load, range(N_PEOPLE), meta=DF.iloc[:0])
        drhmm.dask.fit(DensityRatioHMM(**SETTINGS), ddf, sample_size=100, **ROLES)
        assert len(most) > 2 * N_PEOPLE
        assert max(most) == 1

    @pytest.mark.parametrize(
        ("settings", "change", "arguments", "message"),
        [
            ({"ratio": FromDensities("gmm")}, {}, {}, "drhmm.dask.fit needs sources that are learned from sums"),
            ({"class_weight": "balanced"}, {}, {}, "class_weight='balanced' needs all data at once"),
            ({"window": 0}, {}, {}, "window must be at least 1"),
            ({}, {}, {"label": "state"}, "ddf has no column 'state'; there are x, y, second, person, label"),
            ({}, {"second": np.nan}, {"time": "second"}, "column 'second', row 20: the time is missing"),
            ({}, {}, {"features": ["x", "label"]}, "the column 'label' is named twice"),
            ({}, {}, {"step": 2.0}, "step=2.0 goes with time"),
            ({}, {}, {"time": "second", "step": 0.0}, r"step must be in \(0, inf\), got 0.0"),
            ({}, {}, {"sample_size": 0}, "sample_size must be at least 1"),
            ({}, {"label": None}, {}, "column 'label' has rows without a label"),
            ({}, {"person": np.nan}, {}, "column 'person' is empty in 10 rows"),
        ],
    )
    def test_mistakes_are_named(self, settings, change, arguments, message):
        df = DF.copy()
        for name, value in change.items():
            df.loc[20:29, name] = value
        with pytest.raises(ValueError, match=message):
            drhmm.dask.fit(
                DensityRatioHMM(**{**SETTINGS, **settings}),
                dd.from_pandas(df, npartitions=1),
                **{**ROLES, **arguments},
            )

    def test_whole_sequences_that_are_split(self):
        with pytest.raises(ValueError, match=SPLIT):
            drhmm.dask.fit(DensityRatioHMM(**SETTINGS), split_partitions(), whole=True, **ROLES)

    def test_a_frame_of_another_kind(self):
        with pytest.raises(TypeError, match=r"ddf must be a dask.dataframe.DataFrame, got DataFrame; .*from_pandas"):
            drhmm.dask.fit(DensityRatioHMM(**SETTINGS), DF, **ROLES)


@pytest.fixture(scope="module")
def model():
    with dask.config.set(scheduler="synchronous"):
        estimator = DensityRatioHMM(novelty=True, **SETTINGS)
        return drhmm.dask.fit(estimator, dd.from_pandas(DF, npartitions=2), time="second", **ROLES).model_


class TestPredict:
    @pytest.mark.parametrize("n_partitions", [1, 4, 11])
    @pytest.mark.parametrize("time", [None, "second"])
    def test_sequences_across_partitions(self, model, n_partitions, time):
        ddf = dd.from_pandas(DF, npartitions=n_partitions)
        found = drhmm.dask.predict(model, ddf, sequence="person", time=time).compute().sort_index()
        expected = dataframes.predict(model, DF, sequence="person", time=time)
        assert list(found.columns) == list(expected.columns)
        assert_array_equal(found["state"], expected["state"])
        assert_allclose(found[["probability", "novelty"]], expected[["probability", "novelty"]], rtol=0, atol=1e-12)
        assert_array_equal(found[["x", "person"]], DF[["x", "person"]])

    def test_rows_stay_where_they_are_if_sequences_are_whole(self, model):
        ddf = whole_partitions()
        found = drhmm.dask.predict(model, ddf, sequence="person", time="second", whole=True)
        assert found.compute().index.equals(ddf.compute().index)

    def test_rows_in_any_order_of_time(self, model):
        shuffled = DF.sample(frac=1, random_state=1)
        ddf = dd.from_pandas(shuffled, npartitions=3, sort=False)
        found = drhmm.dask.predict(model, ddf, sequence="person", time="second").compute().sort_index()
        assert_array_equal(found["state"], dataframes.predict(model, DF, sequence="person", time="second")["state"])

    def test_whole_sequences_that_are_split(self, model):
        predicted = drhmm.dask.predict(model, split_partitions(), sequence="person", whole=True)
        with pytest.raises(ValueError, match=SPLIT):
            predicted.compute()

    def test_whole_sequences_are_read_once_and_not_before_the_result_is_asked_for(self, model):
        read = []

        def load(person):
            read.append(person)
            return DF[DF["person"] == person]

        ddf = dd.from_map(load, range(N_PEOPLE), meta=DF.iloc[:0])
        predicted = drhmm.dask.predict(model, ddf, sequence="person", whole=True)
        assert read == []
        predicted.compute()
        assert sorted(read) == list(range(N_PEOPLE))

    def test_whole_sequences_keep_the_divisions_of_the_frame(self, model):
        ddf = dd.from_pandas(DF, npartitions=2)
        assert drhmm.dask.predict(model, ddf, sequence="person", whole=True).divisions == ddf.divisions

    def test_what_is_promised_is_what_comes(self, model):
        promised = drhmm.dask.predict(
            model, dd.from_pandas(DF, npartitions=2), sequence="person", probabilities=True, lag=2
        )
        found = promised.compute()
        assert promised.dtypes.to_dict() == found.dtypes.to_dict()
        assert {"p(low)", "p(middle)", "p(high)"} < set(found.columns)

    def test_a_step_that_nobody_knows(self):
        with pytest.raises(ValueError, match="does not know the time of one step: give step"):
            drhmm.dask.predict(in_memory(), dd.from_pandas(DF, npartitions=2), sequence="person", time="second")

    @pytest.mark.parametrize(
        ("change", "arguments", "message"),
        [
            ({}, {"step": 3.0, "time": False}, r"step=3.0 goes with time"),
            ({}, {"time": "second", "step": -1.0}, r"step must be in \(0, inf\), got -1.0"),
            ({"state": 1}, {}, "ddf already has a column 'state'"),
            ({"novelty": 1}, {}, "ddf already has a column 'novelty'"),
            ({"p(low)": 1}, {"probabilities": True}, r"ddf already has a column 'p\(low\)'"),
            ({7: 1}, {"features": ["x", 7]}, "ddf has columns with names that are not strings: 'x', 7"),
        ],
    )
    def test_mistakes_are_named_at_the_call(self, model, change, arguments, message):
        df = DF.copy()
        for name, value in change.items():
            df[name] = value
        with pytest.raises(ValueError, match=message):
            drhmm.dask.predict(model, dd.from_pandas(df, npartitions=2), sequence="person", **arguments)

    def test_a_frame_of_another_kind(self, model):
        with pytest.raises(TypeError, match=r"ddf must be a dask.dataframe.DataFrame, got ndarray"):
            drhmm.dask.predict(model, DF.to_numpy(), sequence="person")

    def test_a_missing_column(self, model):
        with pytest.raises(ValueError, match=r"no column 'y'; there are .* The model was learned from 'y'"):
            drhmm.dask.predict(model, dd.from_pandas(DF.drop(columns="y"), npartitions=2), sequence="person")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of one thread each, gone after the tests."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        workers = list(client.run(os.getpid).values())
        yield client
        workers += client.run(os.getpid).values()
    _, left = psutil.wait_procs([psutil.Process(pid) for pid in set(workers) if psutil.pid_exists(pid)], timeout=60)
    assert left == []


class Reader:
    """Reads partitions, and kills the process that reads one of them for a certain time."""

    def __init__(self, folder, partition, reading):
        self.folder, self.partition, self.reading = folder, partition, reading

    def __call__(self, k):
        if k == self.partition:
            with open(self.folder / "readings", "a") as file:
                file.write(f"{os.getpid()}\n")
            if len(self.pids()) == self.reading:
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return DF[DF["person"] % 6 == k]

    def pids(self):
        return (self.folder / "readings").read_text().split()


class TestCluster:
    @pytest.mark.slow
    def test_two_processes_give_the_model_of_memory(self, cluster):
        with cluster.as_current(), dask.config.set(scheduler=None):
            found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), dd.from_pandas(DF, npartitions=6), **ROLES)
        assert_same(found, in_memory())

    @pytest.mark.exhaustive
    # Every partition is read for its labels, for the sample and for its statistics.
    @pytest.mark.parametrize("reading", [1, 3])
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_a_killed_worker_costs_time_only(self, cluster, tmp_path, reading):
        reader = Reader(tmp_path, 3, reading)
        with cluster.as_current(), dask.config.set(scheduler=None):
            ddf = dd.from_map(reader, range(6), meta=DF.iloc[:0])
            found = drhmm.dask.fit(DensityRatioHMM(**SETTINGS), ddf, **ROLES)
        assert len(reader.pids()) > reading
        assert_same(found, in_memory(DF.iloc[np.argsort(DF["person"] % 6, kind="stable")]))

    @pytest.mark.exhaustive
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_prediction_survives_a_killed_worker(self, cluster, model, tmp_path):
        reader = Reader(tmp_path, 2, 2)
        with cluster.as_current(), dask.config.set(scheduler=None):
            ddf = dd.from_map(reader, range(6), meta=DF.iloc[:0])
            found = drhmm.dask.predict(model, ddf, sequence="person", time="second").compute().sort_index()
        assert len(reader.pids()) > 2
        assert_array_equal(found["state"], dataframes.predict(model, DF, sequence="person", time="second")["state"])
