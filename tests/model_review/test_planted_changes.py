"""Twenty changes of one dbt project, each alone: ten that hurt, with their line, and ten that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.model_review.changes import HARMFUL, HARMLESS, Planted
from tests.model_review.dbt_project import ESTATE, write_project
from tests.model_review.repositories import Repo, brief


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo(tmp_path_factory.mktemp("shop"))
    write_project(repo.root, 16)
    return repo.commit()


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("estate") / "pii-tracer.yaml"
    file.write_text(ESTATE.replace("retention:\n  pii_days: 7\n", ""))
    return file


def test_there_are_as_many_as_promised() -> None:
    assert (len(HARMFUL), len(HARMLESS)) == (10, 10)


@pytest.mark.parametrize("planted", HARMFUL, ids=lambda p: p.name)
def test_a_change_that_hurts_is_found_at_its_line(shop: Repo, estate: Path, planted: Planted) -> None:
    shop.clean()
    planted.edit(shop.root)
    wanted = [(planted.severity, planted.kind, *(planted.where or ()))]
    found = shop.review(estate_file=estate)
    assert brief(found) == wanted
    assert found.exit_code is (ExitCode.POLICY_DENIED if planted.severity == "error" else ExitCode.DONE)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "change")
    try:
        guessed = shop.review("HEAD~1", "HEAD")
        assert brief(guessed) == wanted, "a commit is read as the working tree is, and names tell whom to follow"
    finally:
        shop.git("reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize("planted", HARMLESS, ids=lambda p: p.name)
def test_a_harmless_change_is_not_found(shop: Repo, estate: Path, planted: Planted) -> None:
    shop.clean()
    planted.edit(shop.root)
    found = shop.review(estate_file=estate)
    assert brief(found) == []
    assert found.exit_code is ExitCode.DONE
    assert [s.name for s in found.subjects] == ["customer"]
