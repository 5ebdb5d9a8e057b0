"""Discovery of tables under Nessie: every reference that reaches a table is found, and what cannot be told is a gap."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.lake.catalogs.nessie import client
from pii_tracer.lake.inventory import (
    Inventory,
    NessieTable,
    Ref,
    RefKind,
)
from pii_tracer.model.errors import EstateError
from tests import servers
from tests.kits.catalog_kit import CatalogKit, Filled
from tests.nessiesupport import ROWS, Lake, lake, put, running, table_content

__all__ = ["lake", "running"]


def snapshot_of(table: Table) -> str:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return str(snapshot.snapshot_id)


def told(found: Inventory) -> list[tuple[str, str]]:
    return [(gap.kind, gap.evidence) for gap in found.gaps]


def test_every_reference_that_reaches_a_table_is_a_head_of_its_one_place(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    first = snapshot_of(table)
    lake.server.make("dev", "BRANCH")
    lake.server.make("q1", "TAG")
    table.append(ROWS)
    lake.publish(table)
    found = lake.discover()
    (state,) = found.tables
    assert found.gaps == ()
    assert (state.table, state.snapshot, state.rows) == ("nes.db.people", snapshot_of(table), 6)
    assert state.nessie == NessieTable(catalog="nes", ref="main", kind=RefKind.NESSIE_BRANCH)
    assert state.refs == (
        Ref(name="dev", kind=RefKind.NESSIE_BRANCH, at=first, table="nes.db.people@dev"),
        Ref(name="q1", kind=RefKind.NESSIE_TAG, at=first, table="nes.db.people@q1"),
    )


def test_plain_names_mean_the_branch_that_the_estate_file_names(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("dev", "BRANCH")
    table.append(ROWS)
    lake.publish(table, "dev")
    state = lake.state(ref="dev")
    assert (state.table, state.rows, [r.table for r in state.refs]) == ("nes.db.people", 6, ["nes.db.people@main"])


def test_a_table_that_only_another_branch_has_is_named_by_it(lake: Lake) -> None:
    lake.server.make("dev", "BRANCH")
    lake.publish(lake.table(), "dev")
    state = lake.state()
    assert state.nessie == NessieTable(catalog="nes", ref="dev", kind=RefKind.NESSIE_BRANCH)
    assert (state.table, state.refs) == ("nes.db.people@dev", ())


def test_a_table_renamed_on_a_branch_is_the_same_place(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("dev", "BRANCH")
    lake.server.commit("dev", {"type": "DELETE", "key": {"elements": ["db", "people"]}})
    lake.publish(table, "dev", "db", "folk")
    assert [r.table for r in lake.state().refs] == ["nes.db.folk@dev"]


def test_two_keys_for_one_place_are_a_gap(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.publish(table, "main", "db", "folk")
    assert told(lake.discover()) == [("registered_twice", str(lake.base / "warehouse" / "db" / "people"))]


def test_names_that_sql_cannot_write_are_gaps(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("release-1.0", "TAG")
    found = lake.discover()
    assert [kind for kind, _ in told(found)] == ["unnameable_table"]
    assert [r.table for r in found.tables[0].refs] == [None]


def test_a_snapshot_that_the_metadata_does_not_name_is_a_gap(lake: Lake) -> None:
    table = lake.table()
    lake.server.commit("main", put(table_content(table.metadata_location, 42), "db", "people"))
    assert told(lake.discover()) == [("nessie_state", table.metadata_location)]


def test_a_tag_whose_files_are_gone_is_a_gap(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    old = table.metadata_location
    lake.server.make("q1", "TAG")
    table.append(ROWS)
    lake.publish(table)
    Path(old).unlink()
    assert told(lake.discover()) == [("unreadable", old)]


def test_a_table_that_only_old_commits_name_and_that_lies_elsewhere_is_a_gap(lake: Lake, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    table = lake.writer.create_table("db.gone", ROWS.schema, location=str(outside))
    lake.server.commit("main", put(table_content(table.metadata_location, -1), "db", "gone"))
    lake.server.commit("main", {"type": "DELETE", "key": {"elements": ["db", "gone"]}})
    assert told(lake.discover()) == [("outside_roots", table.metadata_location)]


def test_icebergs_own_branches_are_seen_below_those_of_nessie(lake: Lake) -> None:
    table = lake.table()
    lake.server.make("dev", "BRANCH")
    lake.publish(table)
    table.manage_snapshots().create_branch(int(snapshot_of(table)), "own").commit()
    lake.publish(table, "dev")
    assert [(r.name, r.kind) for r in lake.state().refs] == [
        ("dev", RefKind.NESSIE_BRANCH),
        ("dev/own", RefKind.BRANCH),
    ]


def test_more_than_fits_on_a_page_is_read_to_the_end(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    lake.publish(lake.table())
    names = {f"b{n}" for n in range(5)}
    for name in names:
        lake.server.make(name, "BRANCH")
    assert {r.name for r in lake.state().refs} == names


def test_a_branch_that_is_not_there_is_a_gap(lake: Lake) -> None:
    assert told(lake.discover(ref="release")) == [("catalog_unreadable", "catalog nes")]


class _Answers(BaseHTTPRequestHandler):
    """Answers every request in one way, as servers do that are old, guarded, or elsewhere."""

    answer = (200, b"{}")
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Authorization", ""))
        status, body = self.answer
        self.send_response(status)
        if status == 302:
            self.send_header("Location", body.decode())
            body = b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    handler = type("Once", (_Answers,), {"answer": (status, body), "asked": []})
    httpd = HTTPServer(("127.0.0.1", 0), handler)
    with servers.served(httpd):
        yield f"http://127.0.0.1:{httpd.server_port}/api/v2", handler.asked  # type: ignore[attr-defined]


OLD = b'{"defaultBranch": "main", "maxSupportedApiVersion": 1}'


@pytest.mark.parametrize(("status", "body"), [(200, OLD), (401, b""), (403, b"{}"), (500, b"oops"), (200, b"[1]")])
def test_a_server_that_does_not_answer_as_it_should_is_a_gap(lake: Lake, status: int, body: bytes) -> None:
    lake.publish(lake.table())
    with answering(status, body) as (uri, _):
        found = lake.discover(uri=uri)
    assert ("catalog_unreadable", "catalog nes") in told(found)
    assert [state.table for state in found.tables] == [None]  # nothing names it, so that nothing can be written


def test_a_list_that_leads_back_is_an_error() -> None:
    """Over another page, too."""
    asked: list[str] = []

    class Endless(servers.Json):
        def do_GET(self) -> None:
            asked.append(self.path)
            told = {"references": [], "hasMore": True, "token": "ab"[len(asked) % 2]}
            self.answer(200, json.dumps(told).encode())

    with servers.answering(Endless) as uri:
        server = client.NessieClient(
            "nes", Catalog(type=CatalogType.NESSIE, uri=f"{uri}/api/v2", warehouse="warehouse")
        )
        with pytest.raises(EstateError, match="an incomplete list"):
            server.references()
    assert len(asked) == 3


def test_a_server_that_is_not_there_is_a_gap(lake: Lake) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{nobody.getsockname()[1]}/api/v2"
        assert told(lake.discover(uri=uri)) == [("catalog_unreadable", "catalog nes")]


def test_the_token_is_sent_and_does_not_follow_a_redirect(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_NES_TOKEN", "s3same")
    with answering(200, OLD) as (other, there), answering(302, f"{other}/config".encode()) as (uri, asked):
        found = lake.discover(uri=uri)
    assert (asked, there) == (["Bearer s3same"], [])
    assert told(found) == [("catalog_unreadable", "catalog nes")]
    assert urlsplit(uri).port != urlsplit(other).port


def test_files_that_only_another_branch_shares_are_seen(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("dev", "BRANCH")
    folder = lake.base / "warehouse" / "drop"
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    table.add_files([str(folder / "a.parquet")])
    lake.publish(table, "dev")
    state = next(s for s in lake.discover().tables if s.nessie)
    assert (state.rows, [o.location for o in state.sharing]) == (3, [str(folder)])
    assert state.outside == (str(folder / "a.parquet"),)


def test_a_table_whose_commits_delete_what_other_references_name_is_a_gap(lake: Lake) -> None:
    table = lake.table()
    lake.publish(table)
    lake.server.make("dev", "BRANCH")
    table.transaction().set_properties({"write.metadata.delete-after-commit.enabled": "true"}).commit_transaction()
    lake.publish(table, "dev")
    assert told(lake.discover()) == [("deletes_metadata", table.metadata_location)]


def test_commits_that_an_account_does_not_see_are_a_gap(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_NES_TOKEN", "s3same")
    table = lake.writer.create_table("db.people", ROWS.schema)
    lake.server.commit("main", put(table_content(table.metadata_location, -1), "db", "people"))
    table.append(ROWS)
    lake.publish(table)
    lake.server.make("hidden", "BRANCH")
    table.append(ROWS)
    lake.publish(table, "hidden")
    assert lake.discover().gaps == ()
    lake.server.ask("DELETE", f"/trees/hidden@{lake.server.at('hidden')['hash']}?type=BRANCH")
    assert told(lake.discover()) == [("unseen_commits", table.metadata_location)]
    monkeypatch.delenv("PII_TRACER_CATALOG_NES_TOKEN")  # without an account nothing is hidden from it
    assert lake.discover().gaps == ()


class TestNessieKit(CatalogKit):
    @pytest.fixture
    def filled(self, lake: Lake) -> Filled:
        lake.publish(lake.table())
        return Filled("nes", lake.estate().catalogs["nes"], lake.base, ("nes.db.people",))

    @pytest.fixture
    def silent(self) -> Catalog:
        return Catalog(type=CatalogType.NESSIE, uri="http://127.0.0.1:9/api/v2", warehouse="warehouse")
