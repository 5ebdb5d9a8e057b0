"""Which states of a table under Nessie are looked at: asked of a real server, none of them loaded.

That they load is shown on Spark in `tests/e2e/stores/test_nessie.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Strategy,
)
from pii_tracer.model.plan import Copy
from pii_tracer.verify.catalogs.nessie.readable_references import nessie_states
from tests.nessiesupport import ROWS, Lake, lake, running

__all__ = ["lake", "running"]


class Settings:
    """A session as far as naming states needs one: its settings."""

    def __init__(self, lake: Lake) -> None:
        prefix = "spark.sql.catalog.nes"
        self._known = {f"{prefix}.uri": lake.server.uri, f"{prefix}.warehouse": str(lake.base / "warehouse")}
        self.conf = self

    def get(self, name: str, *default: str) -> str:
        return self._known.get(name, *default) if default else self._known[name]


def names(lake: Lake, table: str = "nes.db.people", **facts: str) -> dict[str, bool]:
    """States of a copy, and whether each must stay as it is for other people."""
    location = str(lake.base / "warehouse" / "db" / "people")
    copy = Copy(
        id="c-people",
        kind=CopyKind.SOURCE,
        dataset=DatasetId(namespace="file", name=location),
        table=table,
        location=location,
        format=ICEBERG,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="",
        facts={"nessie": "nes", **facts},
    )
    spark: Any = Settings(lake)
    return {name: kept for name, _, kept in nessie_states(spark, copy)}


def test_every_reference_and_every_commit_that_can_be_read_is_a_state(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    old, commit = table.metadata_location, lake.server.at("main")["hash"]
    lake.server.make("dev", "BRANCH")
    table.append(ROWS)
    lake.publish(table)
    lake.server.make("q1", "TAG")
    assert names(lake) == {"current": True, "nessie-branch dev": True, "nessie-tag q1": True}
    table.append(ROWS)
    lake.publish(table, "dev")
    assert names(lake) == {
        "current": True,
        "nessie-branch dev": True,
        "nessie-tag q1": True,
        f"commit {commit[:16]} of dev": False,
    }
    Path(old).unlink()
    assert list(names(lake)) == ["current", "nessie-branch dev", "nessie-tag q1"]


def test_a_copy_that_stands_for_a_reference_has_that_state_alone(lake: Lake) -> None:
    lake.publish(lake.table())
    lake.server.make("dev", "BRANCH")
    lake.server.make("q1", "TAG")
    assert list(names(lake, "nes.db.people@dev", ref="dev", ref_kind="nessie-branch")) == ["nessie-branch dev"]
    assert list(names(lake, "nes.db.people@q1", ref="q1", ref_kind="nessie-tag")) == ["nessie-tag q1"]
    assert names(lake, "nes.db.people@gone", ref="gone", ref_kind="nessie-branch") == {}


def test_a_branch_made_since_and_a_renamed_table_are_states_too(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("late", "BRANCH")
    lake.server.commit("late", {"type": "DELETE", "key": {"elements": ["db", "people"]}})
    lake.publish(table, "late", "db", "folk")
    assert list(names(lake)) == ["current", "nessie-branch late"]
