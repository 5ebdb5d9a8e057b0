"""Tables whose key another system fills, too: what holds their rows elsewhere would lose that system's rows as well."""

from __future__ import annotations

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import GENERATED, IDENTITY, NOT_NULL
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from planners.copies.scan_evidence import Evidence
from tests.planners.copies.test_kafka import COMPACT, JSON_USERS, topic
from tests.planners.smalllake import Lake, archive

CLEAN = Evidence(files=3, files_with_person=0, bytes=0)


def mixed(plan: ErasurePlan) -> list[str]:
    return [gap.id for gap in plan.gaps if gap.kind == GapKind.FOREIGN_KEYS]


def test_a_clone_of_a_mixed_table_whose_rows_are_gone_is_mixed() -> None:
    """Lineage leads to the origin alone."""
    lake = Lake(states={"c": {"clone_of": "/w/a", "format": DELTA}}, loose=("c",), mixed=("a",), seen={"/w/a": CLEAN})
    plan = lake.plan()
    assert "/w/c" in {copy.location for copy in plan.copies}
    assert mixed(plan) == ["gap-foreign_keys-prod.c-uid"]
    assert not plan.applyable


@pytest.mark.parametrize("of", ["prod.a", "/w/a"])
def test_the_archive_of_a_mixed_table_whose_rows_are_gone_is_mixed(of: str) -> None:
    """The archive has the rows that the table had: the other system's number was among them, or may be."""
    lake = Lake(mixed=("a",), seen={"/w/a": CLEAN}, objects=(archive(of=of),))
    assert mixed(lake.plan()) == ["gap-foreign_keys-prod.a-uid"]


def test_so_is_its_topic() -> None:
    lake = Lake(mixed=("a",), seen={"/w/a": CLEAN}, topics=(topic({**JSON_USERS, "of": "prod.a"}, COMPACT),))
    assert mixed(lake.plan()) == ["gap-foreign_keys-prod.a-uid"]


def test_a_mixed_table_whose_rows_are_gone_and_stored_nowhere_loses_nothing() -> None:
    assert mixed(Lake(mixed=("a",), seen={"/w/a": CLEAN}, objects=(archive(of="prod.b"),)).plan()) == []


def test_a_table_of_the_persons_numbers_alone_has_no_gap() -> None:
    assert mixed(Lake(objects=(archive(),)).plan()) == []


@pytest.mark.parametrize(
    ("fixed", "gaps"),
    [(IDENTITY, ["gap-foreign_keys-prod.a-uid"]), (GENERATED, ["gap-foreign_keys-prod.a-uid"]), (NOT_NULL, [])],
)
def test_a_column_that_its_table_fills_is_mixed(fixed: str, gaps: list[str]) -> None:
    """Somebody may leave the column out, also where every job that is known writes it."""
    assert mixed(Lake(states={"a": {"fixed": {"uid": fixed}}}).plan()) == gaps


def test_so_is_what_is_made_of_that_table() -> None:
    plan = Lake(inputs={"b": "a"}, states={"a": {"fixed": {"UID": IDENTITY}}}).plan()
    assert mixed(plan) == ["gap-foreign_keys-prod.a-uid", "gap-foreign_keys-prod.b-uid"]
    assert not plan.applyable


@pytest.mark.parametrize(
    ("default", "is_mixed"),
    [
        ("1234567890", True),
        ("CAST('1234567890' AS BIGINT)", True),
        ("coalesce(NULL, 7)", True),
        ("(", True),
        ("-1", False),
        ("12345678901", False),
        ("NULL", False),
        ("uuid()", False),
        ("'nobody'", False),
    ],
)
def test_a_default_of_the_tables_own_schema_is_compared_with_the_keys(default: str, is_mixed: bool) -> None:
    plan = Lake(states={"a": {"defaults": (("UID", default),)}}).plan()
    assert mixed(plan) == (["gap-foreign_keys-prod.a-uid"] if is_mixed else [])
