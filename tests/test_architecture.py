"""How the product is built, read from its source alone: sizes, circles, and which module may name what.

The layers themselves are contracts of import-linter (pyproject.toml). What stands below as an exception or a ceiling
is what there was when the rule was made: numbers may fall, and nothing may be added.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import BEGUN_FIRST

ROOT = Path(__file__).parents[1]
AIRFLOW = "extras/airflow/pii_tracer_airflow"
PRODUCT = ("pii_tracer", "planners", "executors", "reports", "sample_lineage", AIRFLOW)
MOST_MODULES = 20
"""In one folder, `__init__.py` aside."""
MOST_LINES = 400

CLIENTS = ("boto3", "botocore", "confluent_kafka")
CLIENT_FOLDERS = frozenset(
    {"stores", "catalogs", "streams", "keys", "s3", "glue", "glacier", "kms", "kafka", "sample_lineage"}
)
NAMED = {
    "hudi": (r"hudi", 0),
    "iceberg": (r"iceberg", 10),
    "delta": (r"(?<!time)delta(?!s\b)", 6),
    "s3": (r"s3://", 11),
}
"""Folder of an adapter to what only modules below such a folder should name, and how many others do in their code.
Hive calls folders of its transactional tables so, too, in two modules."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product by its path, parsed."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for root in PRODUCT
        for path in sorted((ROOT / root).rglob("*.py"))
    }


def folders(path: str) -> set[str]:
    return set(path.split("/")[:-1])


def packages(tree: ast.Module) -> set[str]:
    """The top-level packages that a module imports anywhere."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_folders_are_small() -> None:
    counted: dict[str, int] = {}
    for path in modules():
        if not path.endswith("/__init__.py"):
            folder = path.rpartition("/")[0]
            counted[folder] = counted.get(folder, 0) + 1
    assert {folder: count for folder, count in counted.items() if count > MOST_MODULES} == {}


def test_modules_are_short() -> None:
    lines = {path: (ROOT / path).read_text(encoding="utf-8").count("\n") for path in modules()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_only_the_command_line_knows_click() -> None:
    assert [p for p, tree in modules().items() if "click" in packages(tree) and "cli" not in folders(p)] == []


def test_clients_of_services_are_in_adapters() -> None:
    assert [
        p for p, tree in modules().items() if packages(tree) & set(CLIENTS) and not folders(p) & CLIENT_FOLDERS
    ] == []


@pytest.mark.parametrize("folder", NAMED)
def test_what_only_an_adapter_should_name(folder: str) -> None:
    pattern, most = NAMED[folder]
    naming = re.compile(pattern, re.IGNORECASE)
    found = [
        path
        for path in modules()
        if not path.startswith("sample_lineage/") and folder not in folders(path) and names(path, naming)
    ]
    assert len(found) <= most, found


def names(path: str, naming: re.Pattern[str]) -> bool:
    """Whether the code of a module names it: code is written anew, which takes long, only where the text names it."""
    return bool(naming.search((ROOT / path).read_text(encoding="utf-8")) and naming.search(code(path)))


@cache
def code(path: str) -> str:
    """The module without comments, docstrings and the texts below constants."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))  # of its own: it is changed
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_the_airflow_package_stands_on_the_public_interface() -> None:
    """What else is importable may change with any release (docs/python-api.md)."""
    allowed = {"pii_tracer.app", "pii_tracer.model", "pii_tracer.model.errors", "pii_tracer.common.unexpected_errors"}
    found = {
        node.module
        for path, tree in modules().items()
        if path.startswith(AIRFLOW)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PRODUCT[:-1])
    }
    ours = {name for name in found if not name.startswith("pii_tracer_airflow")}
    assert "pii_tracer.app" in ours
    assert ours <= allowed


def test_a_dag_file_loads_nothing_of_the_product() -> None:
    at_the_top = {
        name
        for path, tree in modules().items()
        if path.startswith(AIRFLOW)
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in packages(ast.Module([node], []))
    }
    assert "airflow" in at_the_top
    assert not at_the_top & {*PRODUCT, "pyspark", "pyarrow"}


def test_no_module_imports_itself_around_a_circle() -> None:
    """Imports at the top of modules; those for types and those inside functions run later or never."""
    names = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in modules()}
    assert circles({name: set(imported(modules()[path], names)) for name, path in names.items()}) == []


def test_circles_are_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def circles(needs: dict[str, set[str]]) -> list[str]:
    """Modules on circles of imports, and between such."""
    left = {name: needed - {name} for name, needed in needs.items()}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    # what is on no circle and only leads to one is taken away from the other end
    while first := left.keys() - {need for needed in left.values() for need in needed}:
        left = {name: needed for name, needed in left.items() if name not in first}
    return sorted(left)


def imported(tree: ast.Module, names: dict[str, str]) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in names or node.module in names:
                    yield below if below in names else node.module


def test_every_file_that_is_begun_first_is_there() -> None:
    assert [name for name in BEGUN_FIRST if not (ROOT / name).exists()] == []
