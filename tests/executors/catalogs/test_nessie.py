"""What may be removed from the folder of a table under Nessie: asked of a real server, with tables that PyIceberg writes.

The whole path, on Spark, is in `tests/e2e/stores/test_nessie.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from executors.catalogs.nessie import executor as nessie_executor
from executors.catalogs.nessie import live_references as nessie_refs
from executors.catalogs.nessie.executor import NessieExecutor
from executors.catalogs.nessie.live_references import (
    client_of,
    drop_work,
    heads,
    refuse_careless,
    unreached,
    work_branch,
)
from executors.context import ExecutionContext
from executors.formats.iceberg.catalog_settings import catalog_conf
from executors.sweep.store_folder_sweep import Listed
from pii_tracer.lake.catalogs.nessie.client import NessieConflict, RefType
from pii_tracer.lake.inventory import NESSIE_WORK_BRANCH
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Step
from pii_tracer.review.sealed_person_values import KeyRing
from tests.nessiesupport import ROWS, Lake, lake, put, running
from tests.reports.example import example_plan

__all__ = ["lake", "running"]

MAIN, DEV, TAG = "nessie-branch main", "nessie-branch dev", "nessie-tag q1"


def context(lake: Lake) -> ExecutionContext:
    return ExecutionContext(lake.estate(), lake.base, KeyRing(()), lambda: datetime.now(timezone.utc))


def step(lake: Lake, *references: str) -> Step:
    place = str(lake.base / "warehouse" / "db" / "people")
    parameters: dict[str, Any] = {"table": "nes.db.people", "location": place, "references": list(references)}
    return example_plan().steps[0].model_copy(update={"parameters": parameters})


def data_files(table: Table) -> set[str]:
    return {str(path) for path in table.inspect.files().column("file_path").to_pylist()}


def paths(files: Sequence[Listed]) -> set[str]:
    return {file.path for file in files}


def rewritten(lake: Lake, table: Table) -> tuple[set[str], set[str]]:
    """Main without the person 1, all older snapshots forgotten: data files before and after."""
    before = data_files(table)
    table.overwrite(ROWS.filter(pa.compute.greater(ROWS["uid"], 1)))
    current = table.current_snapshot()
    assert current is not None
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id != current.snapshot_id:
            table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    lake.publish(table)
    return before, data_files(table)


def test_what_a_tag_or_branch_still_reads_stays(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("q1", "TAG")
    before, after = rewritten(lake, table)
    found = paths(unreached(context(lake), step(lake, MAIN, TAG)))
    assert before
    assert not found & (before | after)


def test_what_only_old_commits_name_goes(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    old = table.metadata_location
    before, after = rewritten(lake, table)
    found = paths(unreached(context(lake), step(lake, MAIN)))
    assert before | {old} <= found
    assert not found & (after | {table.metadata_location})
    for path in found:
        Path(path).unlink()
    assert lake.state().rows == 2
    assert unreached(context(lake), step(lake, MAIN)) == []


def test_a_reference_that_the_plan_does_not_know_stops_the_step(lake: Lake) -> None:
    lake.publish(lake.table())
    lake.server.make("late", "BRANCH")
    with pytest.raises(RunError, match="not known to the plan, first nessie-branch late"):
        unreached(context(lake), step(lake, MAIN))


def test_a_branch_without_the_table_is_no_matter(lake: Lake) -> None:
    lake.server.make("empty", "BRANCH")
    lake.publish(lake.table())
    assert [head.title for head in heads(context(lake), step(lake, MAIN))] == [MAIN]


def test_a_branch_made_between_the_two_looks_is_seen(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.publish(lake.table())
    real = nessie_refs._reached

    def late(*args: Any) -> frozenset[str]:
        lake.server.make("late", "BRANCH")
        return real(*args)

    monkeypatch.setattr(nessie_refs, "_reached", late)
    with pytest.raises(RunError, match="nessie-branch late"):
        unreached(context(lake), step(lake, MAIN))


def test_a_commit_between_the_two_looks_is_reckoned_with(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.table()
    lake.publish(table)
    first = table.metadata_location
    table.append(ROWS)
    second = table.metadata_location
    real = nessie_refs._reached

    def late(*args: Any) -> frozenset[str]:
        kept = real(*args)
        if lake.state().metadata == first:
            lake.publish(table)
        return kept

    monkeypatch.setattr(nessie_refs, "_reached", late)
    found = paths(unreached(context(lake), step(lake, MAIN)))
    assert first in found
    assert not {second, *data_files(table)} & set(found)


def test_nothing_goes_where_a_reference_misses_a_file(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    Path(next(iter(data_files(table)))).unlink()
    with pytest.raises(RunError, match="cannot be found, first"):
        unreached(context(lake), step(lake, MAIN))


def test_nothing_goes_where_a_metadata_file_cannot_be_read(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("q1", "TAG")
    Path(table.metadata_location).write_text("{")
    with pytest.raises(EstateError):
        unreached(context(lake), step(lake, MAIN, TAG))


def test_nothing_goes_where_no_reference_has_the_table(lake: Lake) -> None:
    lake.publish(lake.table())
    lake.server.commit("main", {"type": "DELETE", "key": {"elements": ["db", "people"]}})
    with pytest.raises(RunError, match="nessie-branch main does not contain the table any more"):
        unreached(context(lake), step(lake, MAIN))
    with pytest.raises(RunError, match="no branch or tag contains the table"):
        unreached(context(lake), step(lake, DEV))


def test_a_planned_reference_that_was_deleted_is_no_matter(lake: Lake) -> None:
    lake.publish(lake.table())
    assert [head.title for head in heads(context(lake), step(lake, MAIN, DEV, TAG))] == [MAIN]


def test_metadata_beyond_the_folder_counts_too(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    elsewhere = lake.base / "warehouse" / "elsewhere.metadata.json"
    elsewhere.write_bytes(Path(table.metadata_location).read_bytes())
    lake.server.make("dev", "BRANCH")
    before, after = rewritten(lake, table)
    content = lake.server.content("dev", "db", "people")
    assert content is not None
    lake.server.commit("dev", put({**content, "metadataLocation": str(elsewhere)}, "db", "people"))
    found = paths(unreached(context(lake), step(lake, MAIN, DEV)))
    assert before
    assert not found & (before | after)


def test_a_warehouse_behind_a_link_keeps_its_live_files(lake: Lake, tmp_path: Path) -> None:
    (lake.base / "real").mkdir()
    (lake.base / "warehouse" / "linked").symlink_to(lake.base / "real")
    place = lake.base / "warehouse" / "linked" / "people"
    table = lake.writer.create_table("db.behind", ROWS.schema, location=str(place))
    table.append(ROWS)
    lake.publish(table, "main", "db", "people")
    parameters = {"table": "nes.db.people", "location": str(place.resolve()), "references": [MAIN]}
    asked = step(lake).model_copy(update={"parameters": parameters})
    assert not {Path(p).resolve() for p in data_files(table)} & {
        Path(p) for p in paths(unreached(context(lake), asked))
    }


def test_commits_that_would_delete_what_other_references_name_are_refused(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    asked, place = step(lake, MAIN), str(lake.base / "warehouse" / "db" / "people")
    refuse_careless(place, heads(context(lake), asked))
    table.transaction().set_properties({"write.metadata.delete-after-commit.enabled": "true"}).commit_transaction()
    lake.publish(table)
    with pytest.raises(RunError, match="each commit deletes"):
        refuse_careless(place, heads(context(lake), asked))


# --- the work branch, through which tags are erased ---


def test_a_tag_is_moved_to_what_was_committed_on_the_work_branch(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("q1", "TAG")
    client = client_of(context(lake), step(lake))
    (tag,) = (r for r in client.references() if r.name == "q1")
    with work_branch(client, tag):
        table.append(ROWS)
        lake.publish(table, NESSIE_WORK_BRANCH)
    moved = {r.name: r for r in client.references()}
    assert (sorted(moved), moved["q1"].type) == (["main", "q1"], RefType.TAG)
    (content,) = client.contents(moved["q1"])
    assert content.metadata == table.metadata_location


def test_a_tag_that_somebody_moved_meanwhile_stays_where_it_is(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("q1", "TAG")
    table.append(ROWS)
    lake.publish(table)
    theirs = lake.server.at("main")
    client = client_of(context(lake), step(lake))
    (tag,) = (r for r in client.references() if r.name == "q1")

    def beaten() -> None:
        with work_branch(client, tag):
            lake.server.ask("PUT", f"/trees/q1@{tag.hash}?type=TAG", theirs)
            lake.publish(table, NESSIE_WORK_BRANCH)

    with pytest.raises(NessieConflict):
        beaten()
    assert lake.server.at("q1")["hash"] == theirs["hash"]
    assert {r.name for r in client.references()} == {"main", "q1"}


def test_a_work_branch_that_a_crash_left_is_a_gap_at_planning_and_is_made_anew(lake: Lake) -> None:
    lake.publish(lake.table())
    lake.server.make(NESSIE_WORK_BRANCH, "BRANCH")
    found = lake.discover()
    assert [gap.kind for gap in found.gaps] == ["work_branch_left"]
    assert found.tables[0].refs == ()
    drop_work(client_of(context(lake), step(lake)))
    assert lake.discover().gaps == ()


def test_a_step_that_finds_nothing_left_to_do_deletes_the_work_branch_of_the_one_that_died(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(lake.table())
    lake.server.make("q1", "TAG")
    executor = NessieExecutor(context(lake))
    monkeypatch.setattr(executor, "_left", lambda step, copy: [])  # what it would ask Spark
    asked = step(lake, MAIN, TAG)
    rewrite = asked.model_copy(update={"parameters": {**asked.parameters, "ref": "q1", "kind": "nessie-tag"}})
    for act, words in ((executor._rewrite_ref, rewrite), (executor._expire, asked)):
        lake.server.make(NESSIE_WORK_BRANCH, "BRANCH")
        if act == executor._rewrite_ref:
            assert executor._ref_rows_left(words, None) == ["the work branch of the run still exists"]
        monkeypatch.setattr(nessie_executor, "forget_snapshots", lambda *args: 0)
        act(words, None)
        assert {r["name"] for r in lake.server.ask("GET", "/trees")["references"]} == {"main", "q1"}
    assert executor._ref_rows_left(rewrite, None) == []


def test_the_session_is_told_of_the_catalog_and_prints_no_token(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_NES_TOKEN", "s3same")
    conf = catalog_conf(lake.estate(ref="dev"), lake.base)
    prefix = "spark.sql.catalog.nes"
    assert {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)} == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "nessie",
        ".uri": lake.server.uri,
        ".ref": "dev",
        ".warehouse": str(lake.base / "warehouse"),
        ".authentication.type": "BEARER",
        ".authentication.token": "s3same",
        ".cache-enabled": "false",
    }
    hidden = [key for key in conf if re.search(conf["spark.redaction.regex"], key)]
    assert hidden == [f"{prefix}.authentication.token"]
