"""Tables under Nessie: killed after each thing that is asked of the server, and after files that are removed."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from executors.context import ExecutionContext
from executors.registry import build
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.catalogs.nessie.client import NessieClient
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import KeySet, Match, MatchTerm
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.scan.folder_scan import scan_tree
from tests.e2e import clubhouse
from tests.e2e.crashes.test_executor_crashes import planned
from tests.e2e.stores.test_nessie import HERS, PERSON, THEIRS
from tests.executors.crashes import Effects, die_and_resume
from tests.executors.world import Steps
from tests.nessiesupport import serving

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

_HASH = re.compile(r"[0-9a-f]{64}")
REFERENCES = ["nessie-branch dev", "nessie-branch main", "nessie-tag q1"]


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> Effects:
    counted = Effects(sweeps=2)
    ask, unlink = NessieClient._ask, Path.unlink

    def watched_ask(self: NessieClient, method: str, path: str, *more: Any, **query: Any) -> dict[str, Any]:
        counted.refuse_the_dead()
        answer = ask(self, method, path, *more, **query)
        if method != "GET":
            counted.after(f"{method} {_HASH.sub('N', path)}")
        return answer

    def watched_unlink(self: Path, missing_ok: bool = False) -> None:
        counted.refuse_the_dead()
        unlink(self, missing_ok)
        if "journal" not in self.name:
            counted.after(f"unlink {self}", sweep=True)

    monkeypatch.setattr(NessieClient, "_ask", watched_ask)
    monkeypatch.setattr(Path, "unlink", watched_unlink)
    return counted


def steps_of(base: Path) -> Steps:
    """Of the table `members`, by the member's number."""
    estate = load_estate(base / "pii-tracer.yaml")
    keys = KeyRing((KeySet(name="no", origin="members.member_no", weak=False, values=(("subj_1", clubhouse.MEMBER),)),))
    (state,) = (s for s in discover(estate, base).tables if s.table == "nes.core.members")
    ctx = ExecutionContext(estate, base, keys, lambda: datetime.now(timezone.utc))
    match = Match(terms=(MatchTerm(column="member_no", key_set="no", type="string"),))
    return Steps(ctx, "nessie", state.table, Path(state.location), ICEBERG, match)


def test_killed_in_the_middle_and_resumed(spark: Any, tmp_path: Path, effects: Effects) -> None:
    with serving(tmp_path) as server:
        clubhouse.build(tmp_path, spark, server)
        steps, before = steps_of(tmp_path), clubhouse.rows(spark, THEIRS)
        branch = {"ref": "dev", "kind": "nessie-branch", "table": "nes.core.members@dev"}
        tag = {"ref": "q1", "kind": "nessie-tag", "table": "nes.core.members@q1"}
        order: list[tuple[Action, dict[str, Any]]] = [
            (ICEBERG_DELETE_ROWS, {}),
            (ICEBERG_REWRITE_REF, branch),
            (ICEBERG_REWRITE_REF, tag),
            (ICEBERG_REWRITE_FILES, {}),
            (ICEBERG_REWRITE_MANIFESTS, {}),
            (ICEBERG_EXPIRE_SNAPSHOTS, {}),
            (ICEBERG_REMOVE_ORPHANS, {}),
        ]
        plan = planned(steps, [(action, {**words, "references": REFERENCES}) for action, words in order])
        sessions = die_and_resume(plan, lambda: build(steps.ctx), tmp_path / "journal", effects, acts=False)
        assert sessions > 4, effects.deaths
        assert {death.split()[1] for death in effects.deaths} >= {"POST", "PUT", "DELETE", "unlink"}
        assert [f.path for f in scan_tree(steps.location, PERSON).files if f.hits or f.unread] == []
        mine = clubhouse.rows(spark, HERS)
        assert {name: len(rows) for name, rows in mine.items() if name.startswith("members")} == {
            f"members on {ref}": 0 for ref in clubhouse.REFERENCES
        }
        assert clubhouse.rows(spark, THEIRS) == before
        assert {r["name"] for r in server.ask("GET", "/trees")["references"]} == set(clubhouse.REFERENCES)
