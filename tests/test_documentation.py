"""Every example in the docstrings, in the README and in the guides runs; the gallery runs when it is built."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import dask
import numpy as np
import pandas as pd
import pytest

import drhmm
from drhmm.cli import main
from drhmm.datasets import blobs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
# Left out are the program itself and the native variants, one of which this processor may not be able to load.
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(drhmm.__path__, "drhmm.")
    if not name.endswith("__main__") and not name.startswith("drhmm._core_")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_settings_are_documented_in_the_order_of_the_signature():
    document = inspect.getdoc(drhmm.DensityRatioHMM)
    sections = document[document.index("Parameters\n---") : document.index("Attributes\n---")]
    lines = re.findall(r"^([a-z_, ]+) : ", sections, flags=re.MULTILINE)
    named = [name for line in lines for name in line.split(", ")]
    assert named == list(inspect.signature(drhmm.DensityRatioHMM).parameters)


def test_at_most_ten_settings_stand_before_the_groups():
    document = inspect.getdoc(drhmm.DensityRatioHMM)
    first = document[document.index("Parameters\n---") : document.index("Other Parameters\n---")]
    assert 0 < len(re.findall(r"^[a-z_]+ : ", first, flags=re.MULTILINE)) <= 10


def public_objects():
    """What the page of the interface lists, by name: functions, classes, and methods that are not hidden there."""
    template = (ROOT / "docs" / "_templates" / "autosummary" / "class.rst").read_text()
    hidden = set(re.search(r":exclude-members: (.*)", template).group(1).split(", "))
    for name in re.findall(r"^   ([a-zA-Z_.]+)$", (ROOT / "docs" / "api.rst").read_text(), flags=re.MULTILINE):
        module, _, own = f"drhmm.{name}".rpartition(".")
        if module == "drhmm.reference":  # modules that are read, not called
            continue
        listed = getattr(importlib.import_module(module), own)
        text = inspect.getdoc(listed) + inspect.getdoc(importlib.import_module(module))
        yield name, text
        if inspect.isclass(listed) and not issubclass(listed, Exception):
            for method, function in inspect.getmembers(
                listed, lambda member: inspect.isfunction(member) or inspect.ismethod(member)
            ):
                if not method.startswith("_") and method not in hidden:
                    own = inspect.getdoc(function)
                    twin = inspect.getdoc(drhmm.Model) if "see `Model." in own else ""
                    yield f"{name}.{method}", own + text + twin


@pytest.mark.parametrize(("name", "text"), [pytest.param(*pair, id=pair[0]) for pair in public_objects()])
def test_every_public_function_has_an_example(name, text):
    """Its own, that of its module, or that of the class of a method, of a model for its twin in the estimator."""
    called = [line for line in text.splitlines() if line.lstrip().startswith((">>>", "..."))]
    own = name.rpartition(".")[2]
    assert any(own[0].isupper() or own in line for line in called)


def examples_of(page):
    """The Python of a page, block by block."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def run(page):
    """The names after all examples of a page."""
    names = {}
    for example in examples_of(page):
        exec(example, names)
    return names


README_EXAMPLES = examples_of("README.md")


@pytest.mark.parametrize("example", README_EXAMPLES, ids=range(len(README_EXAMPLES)))
def test_readme_examples(example, tmp_path, monkeypatch):
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert len(names) > 1


class FakeConsumer:
    """As much of a Kafka consumer as the guide uses: samples of two keys, a time-out and an error among them."""

    committed = 0

    def __init__(self, settings):
        assert settings["enable.auto.commit"] is False
        self.n_polls = 0

    def subscribe(self, topics):
        self.topics = topics

    def poll(self, timeout):
        self.n_polls += 1
        if self.n_polls % 10 == 0:
            return None
        value = json.dumps([self.n_polls % 7 / 7, 0.5]).encode()
        return SimpleNamespace(
            key=lambda: b"bed 1" if self.n_polls % 2 else b"bed 2",
            value=lambda: value,
            error=lambda: "lost" if self.n_polls % 11 == 0 else None,
        )

    def commit(self, asynchronous):
        assert not asynchronous
        assert self.n_polls > 0
        FakeConsumer.committed += 1


def test_the_production_guide_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "confluent_kafka", SimpleNamespace(Consumer=FakeConsumer))
    names = run("docs/production.md")
    assert names["rows"].tolist() == [17, 18, 1000]
    assert FakeConsumer.committed == 10
    names["store"].close()
    # A restart: the same code goes on from what was stored.
    before = {key: stream.n_frames for key, stream in names["streams"].items()}
    exec(examples_of("docs/production.md")[-1], names)
    names["store"].close()
    assert {key: stream.n_frames for key, stream in names["streams"].items()} == {
        key: 2 * count for key, count in before.items()
    }
    assert "bed 1" in capsys.readouterr().out


def test_the_page_on_alarms_runs_and_finds_the_faults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run("docs/alarms.md")
    assert "true: bias" in capsys.readouterr().out
    assert (tmp_path / "alarms.png").exists()


def test_the_oldest_versions_in_the_guide_are_those_of_the_package():
    guide, package = (ROOT / "docs" / "ecosystem.md").read_text(), (ROOT / "pyproject.toml").read_text()
    floors = {
        name: re.search(rf'"{name}>=([\d.]+)"', package).group(1) for name in ("numpy", "scikit-learn", "safetensors")
    }
    for name, floor in floors.items():
        assert f"| {name} | {floor} |" in guide
    several = [
        re.search(rf'"{name}>=([\d.]+)"', package).group(1) for name in ("pandas", "polars", "pyarrow", "narwhals")
    ]
    assert f"(optional) | {', '.join(several)} |" in guide
    assert f"(optional) | {re.search(r'distributed>=([0-9.]+)', package).group(1)} |" in guide


class FakeGroups:
    """As much of grouped rows as the guide uses of Spark and of Ray: one call for every group, in any order."""

    def __init__(self, rows, name):
        self.groups = [rows[rows[name] == value].sample(frac=1, random_state=0) for value in rows[name].unique()[::-1]]

    def applyInPandas(self, function, schema):  # noqa: N802
        names = [part.split()[0] for part in schema.replace("`heart rate`", "heart_rate").split(", ")]
        results = [function(group) for group in self.groups]
        assert [list(result.columns.str.replace(" ", "_")) for result in results] == [names] * len(results)
        return SimpleNamespace(toPandas=lambda: pd.concat(results))

    def map_groups(self, function, batch_format):
        assert batch_format == "pandas"
        results = [function(group) for group in self.groups]
        return SimpleNamespace(to_pandas=lambda: pd.concat(results))


def test_the_page_on_tables_and_clusters_gives_the_same_states_everywhere(monkeypatch, capsys):
    frame = lambda rows: SimpleNamespace(groupBy=lambda name: FakeGroups(rows, name))  # noqa: E731
    session = SimpleNamespace(builder=SimpleNamespace(getOrCreate=lambda: SimpleNamespace(createDataFrame=frame)))
    grouped = SimpleNamespace(from_pandas=lambda rows: SimpleNamespace(groupby=lambda name: FakeGroups(rows, name)))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(SparkSession=session))
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(data=grouped))
    with dask.config.set(scheduler="synchronous"):
        names = run("docs/ecosystem.md")
        expected = names["predicted_by_dask"].compute().sort_index()
    assert names["search"].best_score_ > 0.9
    assert np.mean(names["held_out"].argmax(axis=1) == names["y"]) > 0.9
    assert np.mean(names["calibrated"].predict(names["X"][:200]) == names["y"][:200]) > 0.9
    for found in (names["spark_states"], names["ray_states"]):
        pd.testing.assert_frame_equal(found.sort_index(), expected, check_dtype=False)
    assert "novelty" in capsys.readouterr().out


def test_the_page_on_settings_runs_and_shows_what_it_says(capsys):
    names = run("docs/choosing.md")
    tried = names["table"]
    assert names["model"].classes_.tolist() == [0, 1, 2]
    assert tried.verdict.shape == (len(tried.sigmas), len(tried.rhos))
    accuracies = [names[one].score(names["X_new"], names["y_new"]) for one in ("plain", "regular")]
    assert 0.7 < accuracies[0] < accuracies[1]
    new = names["new_signal"], names["new_activity"]
    for method in ("smooth", "filter", "frame"):
        assert names["with_context"].score(*new, method=method) > names["without"].score(*new, method=method)
    assert (names["counted"].transmat_.diagonal() > 0.99).all()
    assert names["changes"]["eager"] > names["changes"]["careful"]
    assert names["learned_in_blocks"] > 0.9
    assert "0 2 2\n" in capsys.readouterr().out


def test_the_page_on_what_comes_after_fit_runs_and_shows_what_it_says(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run("docs/after_fit.md")
    assert names["evaluation"].accuracy > 0.9
    assert names["numbers"].n_states == 3
    assert (tmp_path / "report.html").exists()
    assert "changes expected" in capsys.readouterr().out


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """The data of the documentation, in a folder of its own that is the current one."""
    for path in (ROOT / "docs" / "data").glob("*.csv"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)


def test_the_page_on_getting_started_runs_and_shows_what_it_says(data_folder):
    page = (ROOT / "docs" / "getting_started.md").read_text()
    names = run("docs/getting_started.md")
    test = names["test"]
    X, lit, y = test[names["sensors"]], test[names["lit"]], test["state"]
    columns = ((names["model"], X, y), (names["easier"], lit, y))
    columns += ((names["moving"], names["new_signal"], names["new_activity"]),)
    for method in ("smooth", "filter", "frame"):
        row = re.search(rf'"{method}"` \|.*\| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|', page)
        for said, (model, rows, truth) in zip(row.groups(), columns, strict=True):
            assert model.score(rows, truth, method=method) == pytest.approx(float(said) / 100, abs=0.01)
    assert names["few"].score(lit, y) > 0.95
    first, *others = names["alarm"].episodes(names["broken"])
    assert (first.begin, first.columns[0][0]) == (600, "temperature")
    assert {episode.columns[0][0] for episode in others} == {"co2", "light"}


def test_the_commands_of_the_page_on_getting_started_run(data_folder, capsys):
    commands = re.findall(
        r"^drhmm ((?:fit|predict|info) .*)$", (ROOT / "docs" / "getting_started.md").read_text(), re.MULTILINE
    )
    assert [main(shlex.split(command)) for command in commands] == [0, 0, 0]
    assert len(pd.read_csv("states.csv")) == 2665


def test_hmmlearn_and_its_emissions_on_our_recursions_agree():
    names = run("docs/comparison.md")
    np.testing.assert_allclose(names["posteriors"], names["theirs"].predict_proba(names["X"]), atol=1e-9)


def test_the_ratio_source_of_the_guide_for_contributors_is_one():
    X, y = blobs(300, random_state=0)
    model = drhmm.DensityRatioHMM(ratio=run("CONTRIBUTING.md")["NearestMean"](), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_the_front_page_has_the_example_of_the_readme():
    assert examples_of("docs/index.md") == README_EXAMPLES[:1]


PUBLIC_MODULES = ("ratios", "recursion", "datasets", "plotting", "dataframes", "dask")


def test_the_interface_page_lists_every_public_function_and_class():
    listed = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.rst").read_text(), flags=re.MULTILINE))
    modules = {name for name in drhmm.__all__ if isinstance(getattr(drhmm, name), ModuleType)}
    assert modules == {*PUBLIC_MODULES, "reference"}
    expected = set(drhmm.__all__) - modules - {"__version__"}
    for module in PUBLIC_MODULES:
        public = getattr(drhmm, module)
        expected.update(f"{module}.{name}" for name in public.__all__ if callable(getattr(public, name)))
    expected.update(f"reference.{name}" for name in drhmm.reference.__all__)
    assert listed == expected


def test_every_page_of_the_documentation_is_reached_from_the_front_page():
    toctree = re.search(
        r"```{toctree}\n:hidden:\n\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), flags=re.DOTALL
    )
    pages = {path.stem for suffix in ("md", "rst") for path in (ROOT / "docs").glob(f"*.{suffix}")}
    assert {"gallery/index", *pages} - {"index", "sg_execution_times"} == set(re.findall(r"<(.*)>", toctree.group(1)))


def test_the_first_readme_example_is_short_and_prints_the_accuracies_of_the_readme(capsys):
    assert len([line for line in README_EXAMPLES[0].splitlines() if line]) <= 10
    exec(README_EXAMPLES[0], {})
    printed = re.findall(r"^\w+: (\d+)% right$", capsys.readouterr().out, flags=re.MULTILINE)
    said = re.search(r"prints (\d+) % .* (\d+) % .* (\d+) %", (ROOT / "README.md").read_text(), re.DOTALL).groups()
    np.testing.assert_allclose(np.array(printed, float), np.array(said, float), atol=1)


def test_a_guide_shows_what_its_examples_print_and_draw(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from run_examples import with_outputs

    drawn = "from matplotlib import pyplot\npyplot.figure()\n"
    page = f"Text.\n\n```python\nx = 6\n```\n\n```python\nprint(7 * x)\n{drawn}```\nEnd.\n"
    text = with_outputs("page", page, tmp_path)
    assert "pyplot.figure()\n```\n\n```text\n42\n```\n" in text
    assert text.endswith(f"]({tmp_path.name}/page_1.png)\nEnd.\n")
    assert (tmp_path / "page_1.png").exists()
