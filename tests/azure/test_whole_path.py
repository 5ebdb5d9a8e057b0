"""The whole path in Azure Blob Storage: plan, approve, apply, verify. What a plain delete leaves is gone, or dated."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.shop import Shop, until
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, csv, lines, parquet
from tests.leaks import Person, leaks

LATER = datetime(2099, 5, 6, tzinfo=timezone.utc)


def test_the_person_leaves_every_version_and_snapshot_and_nobody_else_does(azure: BlobService, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, versioning=True)
    for kind, write in {"csv": csv, "json": lines, "parquet": parquet}.items():
        shop.put(f"{kind}/a.{kind}", write(PERSON, OTHERS[2]))
        shop.export(kind, f"a.{kind}", write(OTHERS[0], PERSON, OTHERS[1]), metadata={"job": "x"}, tier="Cool")
    shop.snapshot("csv/a.csv")
    shop.put("csv/b.csv", csv(*OTHERS))
    shop.put("csvx/b.csv", csv(PERSON))  # a neighbour, not the estate's
    shop.put("csv/a.csv", shop.read("csv/a.csv"), metadata={"job": "x"}, tags={"of": "shop"}, tier="Cool")
    assert sum(MAIL.encode() in data for data in shop.kept()) >= 4, "versions and a snapshot keep what is written over"
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert any("Cool" in one["reason"] for one in plan["overrides"] if one["kind"] == "objects_early")
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"]) == (0, "complete")
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert result["rows_erased"] == 3
    assert shop.read("csv/a.csv") == csv(*OTHERS[:2])
    assert shop.read("json/a.json") == lines(*OTHERS[:2])
    assert shop.read("csv/b.csv") == csv(*OTHERS)
    assert shop.kept() == []
    now = shop.blob("csv/a.csv").current
    assert now is not None
    assert (now.metadata["job"], now.tags, now.tier) == ("x", {"of": "shop"}, "Cool")
    assert MAIL.encode() in shop.read("csvx/b.csv")
    assert shop.verify() == 0
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []


@pytest.mark.parametrize("versioning", [False, True])
def test_soft_deleted_bytes_are_dated_and_never_called_clean_before(
    versioning: bool, azure: BlobService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop.on(azure, tmp_path, versioning=versioning, soft_delete_days=7)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    code, plan = shop.plan()
    assert code == 0
    wait = next(step for step in plan["steps"] if step["action"] == "object_await_purge")
    assert until(wait["earliest_finish"]) - until(plan["created_at"]) >= timedelta(days=7)
    shop.approve()
    code, result = shop.apply()
    assert (code, result["state"]) == (ExitCode.WAITING, "waiting")
    assert shop.read("csv/a.csv") == csv(OTHERS[0])
    assert [MAIL.encode() in data for data in shop.kept()] == [True], "anybody with the right undeletes it"
    capsys.readouterr()
    assert shop.verify() == ExitCode.PARTIAL
    assert "the store keeps its bytes until 20" in capsys.readouterr().out
    azure.account.days = 8  # eight days later
    assert shop.verify() == 0


@pytest.mark.parametrize("what", ["archived", "blocks", "local"])
def test_what_came_into_a_clean_place_and_nobody_can_read_is_never_attested(
    what: str, azure: BlobService, tmp_path: Path
) -> None:
    """The last look of the run said nothing of it, as of what somebody had waived; `verify` did."""
    shop = Shop.on(azure, tmp_path)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    shop.put("clean/a.csv", csv(*OTHERS))
    beside = shop.base / "tables" / "clean"
    beside.mkdir(parents=True)
    (beside / "a.parquet").write_bytes(parquet(*OTHERS))
    assert shop.plan(object_stores=shop.stored("csv", "clean"))[0] == 0
    assert shop.approve() == 0
    if what == "archived":
        shop.put("clean/b.csv", csv(PERSON), tier="Archive")
    elif what == "blocks":
        shop.blob("clean/a.csv").stage("MDAx", csv(PERSON), azure.account.now())
    else:
        (beside / "b.pdf").write_bytes(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n")
    _, result = shop.apply()
    assert result["attestation"] is None
    assert result["state"] != "complete"
    assert [one for one in result["unverified"] if "clean" in one or "b.pdf" in one], result["unverified"]


def test_what_no_step_may_erase_is_a_gap_that_blocks(azure: BlobService, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, versioning=True)
    shop.export("held", "a.csv", csv(PERSON), legal_hold=True)
    shop.export("locked", "a.csv", csv(PERSON), immutable_until=LATER)
    shop.export("over", "a.csv", csv(PERSON), immutable_until=datetime(2001, 5, 6, tzinfo=timezone.utc))
    shop.export("leased", "a.csv", csv(PERSON))
    shop.blob("leased/a.csv").lease = "somebody"
    shop.export("archived", "a.csv", csv(PERSON), tier="Archive")
    shop.export("append", "a.csv", csv(PERSON), blob_type="AppendBlob")
    shop.export("replica", "a.csv", csv(PERSON), replicated=True)
    shop.export("table", "a.csv", csv(PERSON))
    shop.put("table/_delta_log/0.json", b"{}")
    shop.export("beside", "a.csv", csv(PERSON), metadata={"owner": MAIL})
    shop.export("tagged", "a.csv", csv(PERSON), tags={"owner": MAIL})
    shop.export("deleted", "a.csv", csv(OTHERS[0]))
    shop.put("deleted/b.csv", csv(PERSON, OTHERS[1]))
    shop.drop("deleted/b.csv")
    shop.put("clean/a.csv", csv(*OTHERS))
    prefixes = [*shop.exports, "clean", "empty"]
    gaps = {gap: reason for gap, reason in shop.reasons(object_stores=shop.stored(*prefixes)) if gap != REFILLS}
    place = "abfss-shop-shimaccount.dfs.core.windows.net"
    held = ("append", "held", "leased", "locked", "replica")
    assert sorted(gaps) == sorted(
        [
            *(f"gap-object_held-person-{place}-{name}" for name in held),
            *(f"gap-object_place-person-{place}-{name}" for name in ("beside", "deleted", "table", "tagged")),
            f"gap-object_place-unread-{place}-archived",
        ]
    )
    assert "until 2099-05-06" in gaps[f"gap-object_held-person-{place}-locked"]
    assert "legal hold" in gaps[f"gap-object_held-person-{place}-held"]
    assert MAIL not in shop.plan_file.read_text()


@pytest.mark.parametrize("hierarchical", [False, True])
def test_what_no_listing_shows_is_waited_for_or_a_gap(hierarchical: bool, azure: BlobService, tmp_path: Path) -> None:
    """Blocks that were sent and not committed; a deleted container of the same name; files that a Data Lake keeps."""
    shop = Shop.on(azure, tmp_path, hierarchical=hierarchical, soft_delete_days=7, container_days=7)
    azure.account.gone = [("shop", type(shop.container)(deleted=azure.account.now()))]
    shop.export("blocks", "a.csv", csv(OTHERS[0]))
    shop.blob("blocks/a.csv").blocks["MDAx"] = csv(PERSON)
    shop.export("gone", "a.csv", csv(OTHERS[0]))
    shop.put("gone/b.csv", csv(PERSON))
    shop.drop("gone/b.csv")
    _, plan = shop.plan()
    waits = {
        step["parameters"]["location"].rpartition("/")[2]: [one["version_id"] for one in step["parameters"]["versions"]]
        for step in plan["steps"]
        if step["action"] == "object_await_purge"
    }
    assert waits["blocks"] == ["container=01", "uncommitted blocks"]
    assert len(waits["gone"]) == 2
    assert {copy["strategy"] for copy in plan["copies"] if "abfss" in copy["location"]} == {"let_lapse"}
