"""Every row of the fault table has a check that was seen to fail: here, each time, against a bug put in on purpose."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.e2e.test_meanwhile import small
from tests.executors.keys.test_kms import kms
from tests.executors.keys.test_shred import shredding
from tests.executors.test_killed_everywhere import disk
from tests.faults.seeded import ROWS, SEEDED, Seeded
from tests.kafkasupport import broker
from tests.proof.cloudtrail.test_trail_binding import evidence
from tests.run.test_store_lease import other, place
from tests.run.test_throttling import weather
from tests.s3support import standin, world
from tests.sparksession import spark, spark_estate

__all__ = [
    "broker",
    "disk",
    "evidence",
    "kms",
    "other",
    "place",
    "shredding",
    "small",
    "spark",
    "spark_estate",
    "standin",
    "weather",
    "world",
]

DOCS = Path(__file__).parents[2] / "docs" / "runs.md"


@pytest.mark.parametrize("seeded", [pytest.param(s, id=f"{s.row}: {s.bug}", marks=s.marks) for s in SEEDED])
def test_the_check_notices_the_bug(
    seeded: Seeded, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in inspect.signature(seeded.check).parameters if name not in seeded.given]
    fixtures = {name: request.getfixturevalue(name) for name in names}
    seeded.plant(monkeypatch)
    with pytest.raises(seeded.fails):
        seeded.check(**seeded.given, **fixtures)


def test_no_row_is_left_out() -> None:
    assert {seeded.row for seeded in SEEDED} == set(ROWS)


def test_the_documentation_names_every_bug_and_its_check() -> None:
    told = DOCS.read_text()
    for seeded in SEEDED:
        file = Path(inspect.getsourcefile(seeded.check) or "").relative_to(DOCS.parents[1]).as_posix()
        name = seeded.check.__name__
        assert f"| {seeded.row} | {seeded.bug} | `{file}::{name}` |" in told
