"""Which tests `make check` runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import grimp
import pytest

from tests.affected import ALWAYS, ROOMS, changed_files, near


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    imports = grimp.ImportGraph()
    for importer, imported in (
        ("tests.scan.test_direct", "pii_tracer.scan.forms"),
        ("tests.scan.support", "pii_tracer.scan.forms"),
        ("tests.run.test_by_helper", "tests.scan.support"),
        ("pii_tracer.app.use_case", "pii_tracer.scan.forms"),
        ("tests.app.test_far", "pii_tracer.app.use_case"),
    ):
        imports.add_import(importer=importer, imported=imported)
    return imports


def test_tests_that_import_a_module_themselves_or_by_a_helper_are_near(graph: grimp.ImportGraph) -> None:
    expected = ["tests/run/test_by_helper.py", "tests/scan/test_direct.py", ALWAYS]
    assert near(["pii_tracer/scan/forms.py"], graph) == expected


def test_a_changed_test_is_near(graph: grimp.ImportGraph) -> None:
    assert near(["tests/app/test_far.py"], graph) == ["tests/app/test_far.py", ALWAYS]


def test_a_changed_document_runs_the_checks_of_the_house(graph: grimp.ImportGraph) -> None:
    assert near(["docs/architecture.md", "pii_tracer/schemas/plan.schema.json"], graph) == [ALWAYS]


def test_the_house_has_every_room_that_is_asked() -> None:
    assert "tests.kits.test_affected" in grimp.build_graph(*ROOMS, cache_dir=None).modules


def test_new_changed_and_deleted_files(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=tmp_path, check=True)

    git("init", "-q")
    for name in ("kept", "changed", "gone"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "changed").write_text("2")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").write_text("1")
    assert changed_files("HEAD", tmp_path) == ["changed", "new"]
