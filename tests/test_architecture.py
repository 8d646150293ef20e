"""The direction of the flow, the weight of an import, and the stub of the core."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import drhmm
from drhmm import _core

ROOT = Path(__file__).parent.parent
HEADERS = ROOT / "cpp" / "include" / "drhmm"
PACKAGE = Path(drhmm.__file__).parent

# Each folder of headers may include itself and these.
FOLDERS = {
    "system": set(),
    "features": {"system"},
    "ratio": {"system", "features"},
    "chain": {"system"},
    "recursion": {"system", "chain"},
    "paths": {"system", "chain", "recursion"},
    "learning": {"system"},
    "stream": {"system", "features", "ratio", "chain", "recursion"},
}


def test_every_header_has_a_folder():
    assert {path.name for path in HEADERS.iterdir()} == {*FOLDERS, "types.hpp"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_headers_only_include_earlier_folders(folder):
    headers = sorted((HEADERS / folder).glob("*.hpp"))
    included = {(path.name, name) for path in headers for name in re.findall(r'"drhmm/(\w+)/', path.read_text())}
    assert headers
    assert not {pair for pair in included if pair[1] not in FOLDERS[folder] | {folder}}


def test_the_core_includes_eigen_and_the_standard_library_only():
    outside = set()
    for path in [*HEADERS.rglob("*.hpp"), *(ROOT / "cpp" / "src").glob("*.cpp")]:
        outside.update(re.findall(r"#include <([^>]+)>", path.read_text()))
    assert outside
    assert not {name for name in outside if "/" in name and not name.startswith("Eigen/")}
    assert not {name for name in outside if "ython" in name or "pybind" in name}


def test_the_reference_never_imports_the_native_core():
    for path in (PACKAGE / "reference").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported = [node.module or "", *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            else:
                continue
            assert "_core" not in " ".join(imported), path


# Each room of the package may import itself and the rooms before it; recursion.py is the public face of the chain.
ROOMS = [
    ["exceptions", "_processor", "_core"],
    ["data"],
    ["version", "system"],
    ["features"],
    ["reference"],
    ["chain", "recursion"],
    ["evidence"],
    ["tuning"],
    ["ratios"],
    ["model", "_inference"],
    ["files"],
    ["live"],
    ["learning"],
    ["estimator", "_estimator_answers"],
    ["datasets", "plotting"],
    ["judging"],
    ["tables"],
    ["dataframes"],
    ["clusters"],
    ["dask"],
    ["cli", "__main__"],
]

# Lazy imports against that direction: methods of a model and of a stream that are one-line doors to later rooms.
DOORS = {
    ("model", "live.alarms"),
    ("model", "live.alarm_levels"),
    ("model", "live.streams"),
    ("model", "files.serialization"),
    ("model", "files.model_file"),
    ("model", "judging.explanation"),
    ("model", "judging.suggestions"),
    ("model", "judging.summary"),
    ("live.streams", "judging.summary"),
}

# The one lazy import within a room that would close a cycle: an evaluation writes its page.
INNER_DOORS = {("judging.evaluation", "judging.report")}


def modules():
    """Dotted name, package and path of every module but the package itself."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        package = parts[:-1]
        if parts[-1] == "__init__":
            parts = package
        if parts:
            yield ".".join(parts), package, path


def imports_of(package, path):
    """Modules of the package that a module imports, each with the imported name; typing-only imports do not count."""
    known = {name for name, _, _ in modules()} | {"_processor"}
    waiting = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                full = ".".join([*base, alias.name])
                yield (full if full in known else ".".join(base)), alias.name
        waiting.extend(ast.iter_child_nodes(node))


def room_number(module):
    return next(number for number, room in enumerate(ROOMS) if module.split(".")[0] in room)


def test_rooms_only_import_earlier_rooms():
    against = set()
    for name, package, path in modules():
        for target, _ in imports_of(package, path):
            if target and room_number(target) > room_number(name):
                against.add((name, target))
    assert against == DOORS


def test_no_import_cycle():
    graph = {name: {target for target, _ in imports_of(package, path)} for name, package, path in modules()}
    for door, room in DOORS | INNER_DOORS:
        graph[door].discard(room)
    done = set()
    while ready := {name for name in graph if name not in done and graph[name] & set(graph) - {name} <= done}:
        done |= ready
    assert not set(graph) - done


def test_rooms_keep_their_private_names():
    shared = {"_core", "_processor", "__version__", "_inference", "_estimator_answers"}
    leaks = {
        (name, target, imported)
        for name, package, path in modules()
        for target, imported in imports_of(package, path)
        if imported.startswith("_") and imported not in shared and target.split(".")[0] != name.split(".")[0]
    }
    assert not leaks


def test_at_most_twelve_files_stand_at_the_front():
    assert len(list(PACKAGE.glob("*.py"))) <= 12


def test_import_brings_numpy_and_the_core_only():
    code = (
        "import sys, drhmm; heavy = ('sklearn', 'scipy', 'matplotlib', 'dask', 'pandas', 'narwhals'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in drhmm.__all__:
        assert getattr(drhmm, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        drhmm.nonsense  # noqa: B018


def test_the_version_is_that_of_the_package():
    assert f'version = "{drhmm.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {drhmm.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_versions_are_shown(capsys):
    drhmm.show_versions()
    printed = capsys.readouterr().out
    for word in ("drhmm", "numpy", "scikit-learn", "threads"):
        assert word in printed


def public_names(body):
    """Functions with their argument names, classes with their members, and constants of a stub."""
    names = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            names[node.name] = [argument.arg for argument in node.args.args if argument.arg != "self"]
        elif isinstance(node, ast.ClassDef):
            names[node.name] = public_names(node.body)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = None
    return names


def signature_names(function):
    """Argument names in the first line of a pybind11 docstring."""
    arguments = re.search(r"\((.*)\) ->", function.__doc__.splitlines()[0]).group(1)
    return [name for name in re.findall(r"(\w+): ", arguments) if name != "self"]


def test_the_stub_agrees_with_the_native_module():
    stub = public_names(ast.parse((PACKAGE / "_core.pyi").read_text()).body)
    assert set(stub) == {name for name in vars(_core) if not name.startswith("_")}
    for name, entry in stub.items():
        if isinstance(entry, list):
            assert signature_names(getattr(_core, name)) == entry, name
        elif isinstance(entry, dict):
            assert set(entry) == {member for member in vars(getattr(_core, name)) if not member.startswith("_")}


def test_the_map_for_contributors_names_what_is_there():
    """Paths in CONTRIBUTING.md start at the root, in the package, in its ratios or in the tests."""
    named = re.findall(r"`([\w./]+(?:/|\.py|\.hpp|\.cpp|\.md))`", (ROOT / "CONTRIBUTING.md").read_text())
    starts = [ROOT, ROOT / "python" / "drhmm", ROOT / "python" / "drhmm" / "ratios", ROOT / "tests"]
    assert len(named) > 40
    assert not [path for path in named if not any((start / path).exists() for start in starts)]
