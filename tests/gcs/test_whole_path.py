"""The whole path in Cloud Storage: plan, approve, apply, verify. What a plain delete leaves there is gone, or dated."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from executors.stores.object_places import object_rewrite
from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs, Lies
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, as_orc, csv, lines, parquet
from tests.leaks import Person, leaks


def test_the_person_leaves_every_generation_and_nobody_else_does(gcs: Gcs, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    made = {"csv": csv, "json": lines, "orc": as_orc, "parquet": parquet}
    for kind, write in made.items():
        shop.put(f"{kind}/a.{kind}", write(PERSON, OTHERS[2]))
        shop.export(kind, f"a.{kind}", write(OTHERS[0], PERSON, OTHERS[1]))
    shop.put("csv/b.csv", csv(*OTHERS))
    shop.put("csvx/b.csv", csv(PERSON))  # a neighbour, not the estate's
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert sum(one["kind"] == "objects_delete" for one in plan["overrides"]) == 4
    guesses = [hashlib.sha256(rows).hexdigest() for rows in (csv(PERSON, OTHERS[2]), csv(OTHERS[0], PERSON, OTHERS[1]))]
    assert not [guess for guess in guesses if guess in json.dumps(plan)]
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"]) == (0, "complete")
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert result["rows_erased"] == 4
    assert shop.read("csv/a.csv") == csv(*OTHERS[:2])
    assert shop.read("json/a.json") == lines(*OTHERS[:2])
    assert shop.read("csv/b.csv") == csv(*OTHERS)
    assert gcs.states(BUCKET) == ["live"] * 6
    assert MAIL.encode() in shop.read("csvx/b.csv")
    assert shop.verify() == 0
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []


def test_what_the_step_would_refuse_is_a_gap_of_the_plan(gcs: Gcs, tmp_path: Path) -> None:
    """The run stopped there, after the source was erased."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("csv", "a.csv", csv(OTHERS[0], (USER, '"a\nb,c"')))
    (reason,) = [reason for name, reason in shop.reasons() if "unreadable" in name]
    assert "a CSV record of the person continues over several lines" in reason


def test_one_of_others_that_is_too_large_to_be_read_is_a_gap_of_the_plan(
    gcs: Gcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run reads each of them, also those in which the search saw nobody."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    large = csv(*OTHERS, *OTHERS)
    shop.export("csv", "b.csv", large)
    monkeypatch.setattr(object_rewrite, "MAX_OBJECT_BYTES", len(large) - 1)
    (reason,) = [reason for name, reason in shop.reasons() if "unreadable" in name]
    assert f"the object has {len(large)} bytes, more than the limit of a rewrite in memory" in reason


def test_soft_deleted_bytes_are_dated_and_never_called_clean_before(
    gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bucket as Google makes them: no versions, and what is written over or deleted stays for a while."""
    shop = Shop.of(gcs, tmp_path, versioning=False, soft_delete=8)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == 0
    wait = next(step for step in shop.steps() if step["action"] == "object_await_purge")
    assert _after(wait["earliest_finish"], wait["earliest_start"]) >= timedelta(seconds=8)
    shop.approve()
    code, result = shop.apply()
    assert (code, result["state"]) == (ExitCode.WAITING, "waiting")
    assert shop.read("csv/a.csv") == csv(OTHERS[0])
    assert MAIL.encode() in gcs.restore(BUCKET, "csv/a.csv")
    gone_on = gcs.buckets[BUCKET].objects[0]["hardDeleteTime"]
    capsys.readouterr()
    assert shop.verify() == ExitCode.PARTIAL
    assert f"the store keeps its bytes until {gone_on}" in capsys.readouterr().out
    while gcs.states(BUCKET) != ["live"]:
        time.sleep(0.1)
    time.sleep(1)  # the run's clock counts whole seconds
    code, result = shop.apply()
    assert (code, result["state"], result["unverified"]) == (0, "complete", [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)


def test_seven_days_of_soft_delete_are_in_the_plan(gcs: Gcs, tmp_path: Path) -> None:
    """What was deleted before nobody can read: it is waited for, whoever is in it."""
    shop = Shop.of(gcs, tmp_path, versioning=False, soft_delete=604_800)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    shop.export("clean", "a.csv", csv(OTHERS[0]))
    shop.export("clean", "old.csv", csv(PERSON))
    gcs.delete(BUCKET, "clean/old.csv")
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copies = {copy["location"].rpartition("/")[2]: copy for copy in plan["copies"]}
    assert copies["clean"]["strategy"] == "let_lapse"
    for step in shop.steps():
        if step["action"] == "object_await_purge":
            asked = plan["created_at"]
            assert _after(step["earliest_finish"], asked) >= timedelta(days=7)
    assert sum(step["action"] == "object_await_purge" for step in shop.steps()) == 2


def test_what_no_step_may_erase_is_a_gap_that_blocks(gcs: Gcs, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("held", "a.csv", csv(PERSON), temporaryHold=True)
    shop.export("locked", "a.csv", csv(PERSON), retentionExpirationTime="2099-05-06T00:00:00Z")
    shop.export("over", "a.csv", csv(PERSON), retentionExpirationTime="2001-05-06T00:00:00Z")
    shop.export("table", "a.csv", csv(PERSON))
    shop.put("table/_delta_log/0.json", b"{}")
    shop.export("two", "a.csv", csv(PERSON))
    shop.put("two/b.json", lines(PERSON))
    shop.export("named", f"mail={MAIL}/a.csv", csv(PERSON))
    shop.export("beside", "a.csv", csv(PERSON), metadata={"owner": MAIL})
    shop.export("context", "a.csv", csv(PERSON), contexts={"custom": {"owner": {"value": MAIL}}})
    shop.export("deleted", "a.csv", csv(OTHERS[0]))
    shop.put("deleted/b.csv", csv(PERSON, OTHERS[1]))
    gcs.delete(BUCKET, "deleted/b.csv")
    shop.put("strange/a.csv", csv(PERSON))
    shop.put("clean/a.csv", csv(*OTHERS))
    prefixes = [*shop.exports, "strange", "clean", "empty"]
    gaps = {gap: reason for gap, reason in shop.reasons(object_stores=shop.stored(*prefixes)) if gap != REFILLS}
    assert sorted(gaps) == [
        "gap-object_held-person-gs-shop-held",
        "gap-object_held-person-gs-shop-locked",
        *(
            f"gap-object_place-person-gs-shop-{name}"
            for name in ("beside", "context", "deleted", "named", "table", "two")
        ),
        "gap-unexpected_copy-strange",
    ]
    assert "until 2099-05-06" in gaps["gap-object_held-person-gs-shop-locked"]
    assert "temporary hold" in gaps["gap-object_held-person-gs-shop-held"]
    assert MAIL not in shop.plan_file.read_text()


def test_a_place_that_cannot_be_listed_whole_is_a_gap(gcs: Gcs, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    for number in range(5):
        shop.export("csv", f"{number}.csv", csv(OTHERS[0]))
    for lies in (Lies(circle=True), Lies(deaf=True), Lies(refused=True)):
        gcs.lies = lies
        assert [gap for gap in shop.gaps() if "not_found" not in gap] == ["gap-object_place_unread-csv"]


def test_what_came_since_is_drift_before_the_run_and_residue_after_it(gcs: Gcs, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.agreed = True
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    shop.put("csv/b.csv", csv(PERSON))
    gcs.delete(BUCKET, "csv/b.csv")
    assert shop.plan()[0] == 0
    shop.approve()
    shop.put("csv/c.csv", csv(OTHERS[1]))
    assert shop.apply()[0] == ExitCode.DRIFT
    assert MAIL.encode() in shop.read("csv/a.csv")
    assert shop.plan()[0] == 0
    (shop.base / "approver.pem").unlink()
    shop.approve()
    assert shop.apply()[0] == 0
    assert gcs.states(BUCKET) == ["live", "live"]
    shop.put("csv/later.csv", csv(PERSON))
    gcs.delete(BUCKET, "csv/later.csv")
    assert shop.verify() == ExitCode.RESIDUE


def test_aggregates_that_no_step_makes_again_are_a_gap(gcs: Gcs, tmp_path: Path) -> None:
    """No value of the person is in there, and their rows were counted: nothing read in the bytes can tell."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("counts", "a.csv", b"day,users\n2026-10-01,5\n")
    shop.put("counts/b.json", b'{"day": "2026-10-02", "users": 4}\n')
    shop.write()
    event = json.loads((shop.base / "events.ndjson").read_text())
    facets = event["outputs"][0]["facets"]
    counted = {"type": "INDIRECT", "subtype": "GROUP_BY", "masking": False}
    source = {"namespace": "file", "name": str(shop.base / "tables" / "users"), "field": "uid"}
    counting = {"type": "DIRECT", "subtype": "AGGREGATION", "masking": False}
    facets["schema"]["fields"] = [{"name": name, "type": "string"} for name in ("day", "users")]
    facets["columnLineage"]["fields"] = {"users": {"inputFields": [{**source, "transformations": [counted, counting]}]}}
    (shop.base / "counts.ndjson").write_text(json.dumps(event) + "\n")
    gaps = shop.gaps(lineage={"events": ["counts.ndjson"]})
    assert "gap-cannot_be_proved-gs-shop-counts" in gaps


def _after(later: str, earlier: str) -> timedelta:
    return datetime.fromisoformat(later.replace("Z", "+00:00")) - datetime.fromisoformat(earlier.replace("Z", "+00:00"))


def test_a_job_that_names_no_columns_is_read_by_those_of_the_tables(gcs: Gcs, tmp_path: Path) -> None:
    """Of tables on this machine and in S3 they were known. Here each such job was a gap, and so was a hold on a declared
    table: its folder had no name."""
    shop = Shop.of(gcs, tmp_path)
    places = {"shop.users": "tables/users"} | {f"core.{name}": f"gs://{BUCKET}/{name}" for name in ("calls", "bills")}
    for name in ("calls", "bills"):
        shop.put(f"{name}/a.parquet", parquet(OTHERS[0], PERSON))
    jobs = "INSERT INTO core.calls SELECT uid, mail FROM shop.users; INSERT INTO core.bills SELECT * FROM core.calls;"
    (shop.base / "jobs.sql").write_text(jobs)
    tables = [{"name": name, "format": "parquet", "location": place} for name, place in places.items()]
    told = {
        "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
        "object_stores": shop.stored("calls", "bills"),
        "lineage": {"sql": ["jobs.sql"]},
    }
    plan = shop.plan(**told)[1]
    assert [gap["reason"] for gap in plan["gaps"] if gap["waiver"] is None] == []
    assert {"core.calls", "core.bills"} <= {copy["table"] for copy in plan["copies"]}
    held = {**HELD, "id": "calls", "datasets": ["core.calls"]}
    plan = shop.plan(**told, holds=[HELD, held])[1]
    assert [gap["kind"] for gap in plan["gaps"] if gap["kind"] == "hold_unmatched"] == []
    assert {copy["table"]: copy["strategy"] for copy in plan["copies"]} == {
        "shop.users": "exempt",
        "core.calls": "exempt",
        "core.bills": "delete_by_key",
    }
