"""`verify` looks at what is no copy, too; what it cannot read there is told, and its exit code says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.app.planning.test_remote import OTHERS, PEOPLE, Shop
from tests.storeservers import Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

HELD = """writers: [{job: nightly, stopped: true}]
holds:
  - {id: tax, kind: retention_duty, basis: Tax Act, citation: s. 12, approver: Dr. Sen, datasets: [shop.people],
     from: 2026-01-01T00:00:00Z, until: 2031-01-01T00:00:00Z}
"""


_numbers = iter(range(1000))


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    """The only copy is held, so that nothing is read by Spark; two tables are without the person."""
    shop = Shop(tmp_path, store, f"elsewhere-{next(_numbers)}", more=HELD)
    shop.delta("shop.tickets", OTHERS)
    (tmp_path / "w" / "notes").mkdir()
    pq.write_table(OTHERS, tmp_path / "w" / "notes" / "1.parquet")
    return shop


def verified(shop: Shop, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = called(shop.base, "verify", str(shop.base / "p.plan.json"), "--format", "json")
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("where", ["here", "s3"])
def test_what_cannot_be_read_in_what_is_no_copy_is_not_clean(
    shop: Shop, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = shop.plan()
    assert plan["complete"], plan["gaps"]
    code, clean = verified(shop, capsys)
    assert (code, clean["state"], clean["unverified"]) == (ExitCode.DONE, "complete", [])
    if where == "here":
        (shop.base / "w" / "notes" / "2.parquet").write_bytes(b"PAR1 cut off")
    else:
        shop.put("delta/tickets/old.parquet", b"x", StorageClass="GLACIER")
    code, found = verified(shop, capsys)
    assert (code, found["state"], found["residue"]) == (ExitCode.PARTIAL, "partial", [])
    [told] = found["unverified"]
    assert told.startswith("(no copy) ")
    assert ("/w/notes: 2.parquet: " if where == "here" else " shop.tickets: old.parquet?") in told
    assert called(shop.base, "verify", str(shop.base / "p.plan.json")) == ExitCode.PARTIAL
    shown = capsys.readouterr().out
    assert "unverified: (no copy) " in shown
    assert "unverified 1" in shown
    name = "w/notes/3.parquet" if where == "here" else "delta/tickets/new.parquet"
    pq.write_table(PEOPLE, shop.base / "people.parquet")
    data = (shop.base / "people.parquet").read_bytes()
    (shop.base / name).write_bytes(data) if where == "here" else shop.put(name, data)
    assert verified(shop, capsys)[0] == ExitCode.RESIDUE


def test_what_discovery_can_no_longer_tell_is_not_clean(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A link that leads out of the roots since planning: what lies there is seen by nobody."""
    shop.plan()
    assert verified(shop, capsys)[0] == ExitCode.DONE
    beyond = shop.base / "beyond"
    beyond.mkdir()
    pq.write_table(PEOPLE, beyond / "1.parquet")
    (shop.base / "w" / "more").symlink_to(beyond)
    code, found = verified(shop, capsys)
    assert (code, found["state"]) == (ExitCode.PARTIAL, "partial")
    [told] = found["unverified"]
    assert told.startswith("(new) ")
    assert "outside_link: " in told


def test_an_old_version_that_came_after_planning_is_found(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A writer put another object over the archive's only version: the plan has no copy that stands for old versions."""
    bucket = f"elsewhere-{next(_numbers)}"
    archive = f"archives: [{{name: a, of: shop.people, bucket: {bucket}, prefix: a/, format: parquet}}]\n"
    shop = Shop(tmp_path, store, bucket, more=HELD + archive)
    for name, rows in (("people", PEOPLE), ("others", OTHERS)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    people, others = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("people", "others"))
    first = shop.put("a/1.parquet", people)
    plan = shop.plan()
    assert [c["kind"] for c in plan["copies"] if c["location"].startswith("s3://")] == ["ARCHIVE"]
    shop.put("a/1.parquet", others)
    code, found = verified(shop, capsys)
    assert (code, found["state"]) == (ExitCode.RESIDUE, "partial")
    assert {item["file"] for item in found["residue"]} == {f"a/1.parquet?versionId={first['VersionId']}"}
    shop.store.client().delete_object(Bucket=bucket, Key="a/1.parquet", VersionId=first["VersionId"])
    assert verified(shop, capsys)[0] == ExitCode.DONE


def test_a_file_of_no_table_that_came_after_planning_is_looked_at(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """An export that somebody dropped beside the tables; at planning there was a harmless file of that name."""
    note = shop.base / "w" / "export.txt"
    note.write_text("nothing")
    shop.plan()
    assert verified(shop, capsys)[0] == ExitCode.DONE
    mail = str(PEOPLE.column("mail")[0])
    note.write_text(f"call {mail}")
    code, found = verified(shop, capsys)
    assert (code, found["state"]) == (ExitCode.RESIDUE, "partial")
    assert {item["file"] for item in found["residue"]} == {"export.txt"}
    note.unlink()
    (shop.base / "w" / "second.txt").write_text(f"call {mail}")
    assert verified(shop, capsys)[0] == ExitCode.RESIDUE


@pytest.mark.parametrize("name", [".old/1.parquet", "_backup.bin"])
def test_a_hidden_place_that_came_after_planning_is_not_clean(
    shop: Shop, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.plan()
    place = shop.base / "w" / name
    place.parent.mkdir(exist_ok=True)
    pq.write_table(PEOPLE, place)
    code, found = verified(shop, capsys)
    assert (code, found["state"]) == (ExitCode.PARTIAL, "partial")
    [told] = found["unverified"]
    assert "hidden_data: " in told
