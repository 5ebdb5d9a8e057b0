"""Readiness never says yes where the plan for a person would be incomplete or late: both ask the same rules."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app import Settings, plan, readiness
from pii_tracer.app.settings import DEFAULT_ESTATE
from pii_tracer.config.estate_file import Request
from pii_tracer.config.subjects import SubjectRef
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.readiness.findings import FindingKind, Level
from pii_tracer.readiness.known_gaps import KNOWN, Knows
from pii_tracer.readiness.readiness_reading import Readiness
from tests.app.planning import test_glue as glue
from tests.app.planning import test_key_columns as several
from tests.app.planning.test_remote import PERSON as OF_GLUE
from tests.e2e import shredded
from tests.gcs.conftest import gcs, running
from tests.gcs.tables import Lake, delta
from tests.gcssupport import Gcs
from tests.hdfs.shop import OTHERS, REFILLS
from tests.hdfs.shop import PERSON as PEER
from tests.readiness.estates import JOBS, NOW, READINESS, Shop, shop
from tests.storeservers import Store, signed
from tests.storeservers import strict_store as store

__all__ = ["gcs", "running", "signed", "store"]

PERSON = "4417700102031"
COUNTED = "INSERT OVERWRITE app.totals SELECT count(user_id) AS n FROM app.users;"


def agree(settings: Settings, person: str = PERSON, kind: str = "user") -> tuple[ErasurePlan, Readiness]:
    """The plan of a person and a reading, of which the reading knows every gap that concerns everybody."""
    (settings.base / "policy.yaml").write_text("version: 1\n")
    request = Request(id="R-1", law="GDPR", received=NOW, subject=SubjectRef(type=kind, key=person))
    made, found = plan(settings, [request], as_of=NOW).plan, readiness(settings, as_of=NOW)
    told = {finding.detail for finding in found.findings if finding.kind is FindingKind.GAP}
    everybodys = {gap.id for gap in made.gaps if KNOWN[gap.kind] is Knows.ASKED}
    assert everybodys - told == set()
    if found.ready:
        assert [gap for gap in made.gaps if KNOWN[gap.kind] is Knows.ASKED] == []
        assert made.totals.finish <= made.totals.deadline
    return made, found


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("WREN", "8800112233445")
    return shop(tmp_path)


def test_every_kind_of_gap_is_classified() -> None:
    """And each that a reading cannot know stands in the documentation."""
    assert KNOWN.keys() == {*GapKind}
    page = (Path(__file__).parents[2] / "docs" / "readiness.md").read_text(encoding="utf-8")
    for knows, what in (
        (Knows.SEARCH, "| only in the search of a plan"),
        (Knows.PERSON, "| only in one person's values"),
    ):
        [row] = [line for line in page.splitlines() if line.startswith(what)]
        assert re.findall(r"`(\w+)`", row.split("|")[2]) == [kind.value for kind in GapKind if KNOWN[kind] is knows]


def test_an_estate_in_order_is_one_for_both(estate: Shop) -> None:
    made, found = agree(estate.settings)
    assert (made.complete, found.ready) == (True, True)
    assert found.provable.on is not None
    assert found.provable.on >= made.totals.finish - timedelta(minutes=30)


def aggregate(estate: Shop, kind: str, more: str = "") -> None:
    estate.table("totals", {"n": [2]})
    if kind == "csv":
        shutil.rmtree(estate.base / "w" / "totals")
        (estate.base / "w" / "totals").mkdir()
        (estate.base / "w" / "totals" / "part.csv").write_text("n\n2\n")
    estate.write({**JOBS, "totals": COUNTED}, READINESS, ("totals",))
    text = estate.settings.estate_file.read_text()
    estate.settings.estate_file.write_text(text.replace("totals, format: delta", f"totals, format: {kind}") + more)


def test_a_table_of_aggregates_that_no_step_rebuilds_stands_against_every_plan(estate: Shop) -> None:
    aggregate(estate, "csv")
    made, found = agree(estate.settings)
    assert {gap.kind for gap in made.gaps} == {GapKind.CANNOT_BE_PROVED}
    [one] = [f for f in found.findings if f.gap == "cannot_be_proved"]
    assert (found.ready, one.level, one.where) == (False, Level.BLOCKING, "app.totals")


def test_the_days_of_tables_without_persons_count(estate: Shop) -> None:
    aggregate(estate, "delta", "retention: {pii_days: 3, derived_days: 40}\n")
    made, found = agree(estate.settings)
    assert made.totals.finish > made.totals.deadline
    [late] = [f for f in found.findings if f.kind is FindingKind.TOO_LATE]
    assert "`retention.derived_days`" in late.text
    assert (late.where, found.ready) == ("app.totals", False)


def test_weekly_windows_count(estate: Shop) -> None:
    """The steps of a plan wait for a window each, one after the other."""
    with estate.settings.estate_file.open("a") as file:
        file.write("windows: {weekly: ['sun 02:00-03:00 UTC']}\nretention: {pii_days: 7}\n")
    made, found = agree(estate.settings)
    assert found.provable.on is not None
    assert abs(found.provable.on - made.totals.finish) < timedelta(hours=2)


def test_a_lake_of_glue_says_what_each_plan_says_of_it(store: Store, tmp_path: Path) -> None:
    """Commits that may be lost, statistics that the catalog does not give, a folder of counts in the bucket."""
    refused = {"GetColumnStatisticsForTable": "InternalServiceException"}
    with glue.lake(store, tmp_path, refused=refused) as (lake, client):
        glue.orders(lake, client)
        folder = lake.bare("shop.totals", "parquet")
        sink = io.BytesIO()
        pq.write_table(pa.table({"n": [2]}), sink)
        lake.put(f"{folder}/1.parquet", sink.getvalue())
        lake.jobs = glue.JOBS + "INSERT OVERWRITE shop.totals SELECT count(uid) AS n FROM shop.people;\n"
        lake.write()
        settings = Settings(tmp_path / DEFAULT_ESTATE, tmp_path / "state")
        settings.key(create=True)
        made, found = agree(settings, str(OF_GLUE))
    wanted = {GapKind.UNGUARDED_COMMITS, GapKind.CATALOG_UNREADABLE, GapKind.CANNOT_BE_PROVED}
    assert {gap.kind for gap in made.gaps} == wanted
    assert {f.gap for f in found.findings if f.level is Level.BLOCKING} == {kind.value for kind in wanted}
    [unread] = [f for f in found.findings if f.gap == GapKind.CATALOG_UNREADABLE.value]
    assert "." not in unread.where, "a list of tables: each new one would make another finding"


def blocking(found: Readiness) -> set[str | None]:
    return {f.gap or f.kind.value for f in found.findings if f.level is Level.BLOCKING}


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    """The invented person has one, too."""
    clean, lost = tmp_path / "clean", tmp_path / "lost"
    clean.mkdir()
    lost.mkdir()
    assert several.planned(clean, orders=several.ORDERS)["gaps"] == []
    assert blocking(readiness(Settings(clean / DEFAULT_ESTATE, clean / "state"))) == set()
    jobs = "INSERT INTO app.logins SELECT user_id, 'x' FROM app.users;\n"
    (gap,) = several.planned(lost, logins=several.LOGINS, jobs=jobs)["gaps"]
    assert gap["kind"] in blocking(readiness(Settings(lost / DEFAULT_ESTATE, lost / "state")))


def test_what_keys_encrypt_is_taken_to_be_unreadable(tmp_path: Path) -> None:
    shredded.estate(tmp_path)
    shredded.build(tmp_path)
    settings = Settings(tmp_path / DEFAULT_ESTATE, tmp_path / "state")
    made, found = agree(settings, shredded.PERSON, "caller")
    assert (made.complete, blocking(found)) == (True, set())
    assert found.provable.decided_by is not None
    assert found.provable.on is not None
    assert abs(found.provable.on - made.totals.finish) < timedelta(minutes=30)


def test_a_store_whose_tables_no_file_is_read_of(gcs: Gcs, tmp_path: Path) -> None:
    """And a hold that refills what is erased: it stands against every plan."""
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "lake/found", [OTHERS[0], PEER])
    code, made = shop.plan(object_stores=shop.stored("lake/found"))
    assert (code, [gap["id"] for gap in made["gaps"]]) == (0, [REFILLS])
    assert shop.cli("readiness", "--format", "json") == ExitCode.INCOMPLETE
    log = (tmp_path / "apart.log").read_text()
    said, _ = json.JSONDecoder().raw_decode(log[log.index('{\n  "estate"') :])
    assert {(f["level"], f["gap"]) for f in said["findings"] if f["level"] in ("blocking", "unknown")} == {
        ("blocking", "hold_refills"),
        ("unknown", "object_place"),  # nobody looked into it
    }


def test_open_lineage_of_a_table_where_persons_are_stands_against_every_plan(estate: Shop) -> None:
    """And is no warning there, as it is where the search of a plan may settle it."""
    unknown = "INSERT INTO app.mails SELECT user_id, q.* FROM app.users, LATERAL json_tuple(email) q;"
    estate.write({**JOBS, "unknown": unknown}, READINESS)
    made, found = agree(estate.settings)
    assert {gap.kind for gap in made.gaps} == {GapKind.LINEAGE}
    assert (found.ready, GapKind.LINEAGE.value in blocking(found)) == (False, True)


def test_a_file_outside_all_tables_that_nobody_can_read_is_told_as_a_warning(estate: Shop) -> None:
    (estate.base / "w" / "notes.bin").write_bytes(bytes(range(256)))
    without = {name: value for name, value in READINESS.items() if name != "canaries"}
    estate.write(JOBS, without)
    made, found = agree(estate.settings)
    assert {gap.kind for gap in made.gaps} == {GapKind.UNKNOWN_FILE}
    [one] = [f for f in found.findings if f.gap == GapKind.UNKNOWN_FILE.value]
    assert one.level is Level.WARNING


LAW = """laws:
  - {{version: 1, name: CLUB, title: S, checked: 2026-11-27, rules: [{{since: 2020-01-01,
     deadline: {{days: {days}, article: a, url: 'https://c.example/s'}},
     notice: {{hours: {hours}, grounds: [request], text: x, article: b, url: 'https://c.example/s'}},
     keep_log: {{days: 1095, article: c, url: 'https://c.example/s'}}}}]}}
"""


@pytest.mark.parametrize(
    ("laws", "days", "hours", "more"),
    [
        (["CLUB"], 10, 300, "retention: {pii_days: 0, derived_days: 0}\n"),
        (["CLUB", "GDPR"], 32, 24 * 28, ""),
    ],
)
def test_each_law_is_answered_by_the_plan_after_its_own_notice(
    estate: Shop, laws: list[str], days: int, hours: int, more: str
) -> None:
    """Where no step waits, and where another law without a notice has the shorter time."""
    estate.write(JOBS, {**READINESS, "laws": laws})
    with estate.settings.estate_file.open("a") as file:
        file.write(LAW.format(days=days, hours=hours) + more)
    subject = SubjectRef(type="user", key=PERSON)
    (estate.base / "policy.yaml").write_text("version: 1\n")
    asked = Request(id="R-1", law="CLUB", received=NOW, noticed=NOW, subject=subject)
    made, found = plan(estate.settings, [asked], as_of=NOW).plan, readiness(estate.settings, as_of=NOW)
    assert made.totals.finish > made.totals.deadline
    assert {one.law: one.met for one in found.provable.laws} == {law: law == "GDPR" for law in laws}
    [late] = [f for f in found.findings if f.kind is FindingKind.TOO_LATE]
    assert "the notice to the person" in late.text
