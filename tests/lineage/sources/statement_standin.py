"""A strict stand-in for Databricks' Statement Execution API, with the two lineage tables of `system.access`.

Made from https://docs.databricks.com/api/workspace/statementexecution (requests, states, chunks, links, limits) and
https://docs.databricks.com/admin/system-tables/lineage (columns). It runs no SQL but a grouping of one of these tables,
which sqlglot reads as Databricks' dialect. What it lies about is set in `Lies`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import sqlglot
from sqlglot import exp

from tests.servers import served

TOKEN = "dapi-test-0123456789"
WAREHOUSE = "1234567890abcdef"
SECRET_TEXT = "no table system.access.x for asha.rao@mail.example"
_ENDS = [
    f"{end}_{part}" for end in ("source", "target")
    for part in ("table_full_name", "table_catalog", "table_schema", "table_name", "path", "type")
]  # fmt: skip
TABLE = [
    *("account_id", "metastore_id", "workspace_id", "entity_type", "entity_id", "entity_run_id"),
    *_ENDS,
    *("created_by", "event_time", "event_date", "record_id", "event_id", "statement_id", "entity_metadata"),
]
SCHEMAS = {"table_lineage": TABLE, "column_lineage": [*TABLE, "source_column_name", "target_column_name"]}
_REQUEST = {
    *("statement", "warehouse_id", "byte_limit", "catalog", "disposition", "format", "on_wait_timeout", "parameters"),
    *("row_limit", "schema", "wait_timeout", "query_tags"),
}
_PATH = re.compile(r"/api/2\.0/sql/statements(?:/(?P<id>[0-9a-f-]+)(?:/result/chunks/(?P<chunk>\d+))?)?")


class Refusal(Exception):
    def __init__(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.code, self.headers = status, code, headers or {}


@dataclass
class Lies:
    """busy: answers of 429 that come first. states: of a statement before it is over. ends: its last state. truncated:
    rows are missing, and the manifest says so. short: they are, and it does not. expired: so many links, the first ones,
    are refused.
    token_for: requests before the token is not good any more. renamed: a column has another name. unreadable: a chunk
    is no JSON. link: leads to a chunk in place of the right one.
    """

    busy: int = 0
    states: tuple[str, ...] = ()
    ends: str = "SUCCEEDED"
    truncated: bool = False
    short: bool = False
    expired: int = 0
    token_for: int | None = None
    renamed: bool = False
    unreadable: bool = False
    link: str = ""


@dataclass
class _Statement:
    columns: list[str]
    rows: list[list[str | None]]
    states: list[str]


@dataclass
class Workspace:
    """rows: those of each table, with the columns that are not NULL. page: rows of a chunk."""

    rows: dict[str, list[dict[str, Any]]]
    page: int = 2
    lies: Lies = field(default_factory=Lies)
    uri: str = ""
    links: int = 0
    asked: list[str] = field(default_factory=list)
    statements: dict[str, _Statement] = field(default_factory=dict)

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        waits = re.fullmatch(r"(\d+)s", body.get("wait_timeout", "10s"))
        if set(body) - _REQUEST or not waits or not (int(waits[1]) == 0 or 5 <= int(waits[1]) <= 50):
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        if body.get("on_wait_timeout", "CONTINUE") not in ("CONTINUE", "CANCEL"):
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        if (body.get("disposition"), body.get("format")) != ("EXTERNAL_LINKS", "JSON_ARRAY"):
            raise AssertionError("the stand-in gives links to JSON alone")
        if body.get("warehouse_id") != WAREHOUSE:
            raise Refusal(404, "RESOURCE_DOES_NOT_EXIST")
        columns, rows = self._grouped(body["statement"])
        name = f"01f0-{len(self.statements):04x}"
        self.statements[name] = _Statement(columns, rows, [*self.lies.states, self.lies.ends])
        return self.state(name)

    def state(self, name: str) -> dict[str, Any]:
        made = self._statement(name)
        state = made.states.pop(0) if len(made.states) > 1 else made.states[0]
        answer: dict[str, Any] = {"statement_id": name, "status": {"state": state}}
        if state == "FAILED":
            answer["status"]["error"] = {"error_code": "BAD_REQUEST", "message": SECRET_TEXT}
        if state == "SUCCEEDED":
            columns = [{"name": c, "position": n, "type_name": "STRING"} for n, c in enumerate(made.columns)]
            answer["manifest"] = {
                "format": "JSON_ARRAY",
                "schema": {"column_count": len(columns), "columns": columns},
                "total_chunk_count": -(-len(made.rows) // self.page),
                "total_row_count": len(made.rows) + (1 if self.lies.short else 0),
                "truncated": self.lies.truncated,
            }
            answer["result"] = self.chunk(name, 0) if made.rows else {}
        return answer

    def chunk(self, name: str, number: int) -> dict[str, Any]:
        made = self._statement(name)
        start = number * self.page
        if start >= len(made.rows):
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        at = urlsplit(self.uri)
        self.links += 1
        link = {
            "chunk_index": number,
            "row_offset": start,
            "row_count": len(made.rows[start : start + self.page]),
            "external_link": self.lies.link
            or f"{at.scheme}://{at.netloc}/storage/{name}/{number}?sig=secret-{self.links}",
            "expiration": "2026-11-30T10:15:00.000Z",
            "http_headers": {"x-key": "of the store"},
        }
        if start + self.page < len(made.rows):
            link["next_chunk_index"] = number + 1
            link["next_chunk_internal_link"] = f"/api/2.0/sql/statements/{name}/result/chunks/{number + 1}"
        return {"external_links": [link]}

    def download(self, path: str, query: str, headers: Any) -> bytes:
        """As a store: who sends a token besides the signature is refused."""
        number = re.fullmatch(r"secret-(\d+)", parse_qs(query).get("sig", [""])[0])
        if (
            number is None
            or not self.lies.expired < int(number[1]) <= self.links
            or headers.get("x-key") != "of the store"
        ):
            raise Refusal(403, "AccessDenied")
        if "Authorization" in headers:
            raise Refusal(400, "InvalidArgument")
        if self.lies.unreadable:
            return b'[["cut'
        name, chunk = path.split("/")[2:]
        start = int(chunk) * self.page
        return json.dumps(self.statements[name].rows[start : start + self.page], separators=(",", ":")).encode()

    def _statement(self, name: str) -> _Statement:
        if name not in self.statements:
            raise Refusal(404, "RESOURCE_DOES_NOT_EXIST")
        return self.statements[name]

    def _grouped(self, sql: str) -> tuple[list[str], list[list[str | None]]]:
        """A query's columns and rows; every value a text, or NULL."""
        query = sqlglot.parse_one(sql, dialect="databricks")
        table = query.find(exp.Table)
        assert isinstance(query, exp.Select)
        assert table is not None
        assert (table.catalog, table.db) == ("system", "access")
        known = SCHEMAS[table.name]
        assert {column.name for column in query.find_all(exp.Column)} <= set(known)
        grouped = [column.name for column in query.args["group"].expressions]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row in self.rows.get(table.name, []):
            groups.setdefault(tuple(row.get(c) for c in grouped), []).append(_micros(row["event_time"]))
        names, values = [], []
        for item in query.expressions:
            name, inner = item.alias_or_name, item.unalias()
            names.append(name)
            if isinstance(inner, exp.Column):
                values.append([key[grouped.index(inner.name)] for key in groups])
                continue
            how = {exp.Min: min, exp.Max: max, exp.Count: len}
            found = inner.find(*how)
            assert found is not None
            assert isinstance(found, exp.Count) or inner.name.lower() == "unix_micros" or "UNIX_MICROS" in inner.sql()
            values.append([str(how[type(found)](times)) for times in groups.values()])
        if self.lies.renamed:
            names[0] = "entity"
        return names, [list(row) for row in zip(*values, strict=True)]


def _micros(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000_000)


class Handler(BaseHTTPRequestHandler):
    workspace: Workspace

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(lambda: self.workspace.post(body))

    def do_GET(self) -> None:
        found = _PATH.fullmatch(self.path)
        if found is None or not found["id"]:
            return self._answer(None)
        name, chunk = found["id"], found["chunk"]
        space = self.workspace
        return self._answer(lambda: space.chunk(name, int(chunk)) if chunk else space.state(name))

    def _answer(self, make: Any) -> None:
        space, url, headers = self.workspace, urlsplit(self.path), dict[str, str]()
        with _LOCK:
            space.asked.append(f"{self.command} {url.path}")
            try:
                status, body = 200, self._body(make, url.path, url.query)
            except Refusal as refusal:
                status, headers = refusal.status, refusal.headers
                body = json.dumps({"error_code": refusal.code, "message": SECRET_TEXT}).encode()
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self, make: Any, path: str, query: str) -> bytes:
        lies = self.workspace.lies
        if path.startswith("/storage/"):
            return self.workspace.download(path, query, self.headers)
        if lies.token_for is not None:
            lies.token_for -= 1
        if self.headers.get("Authorization") != f"Bearer {TOKEN}" or (lies.token_for or 0) < 0:
            raise Refusal(401, "UNAUTHENTICATED")
        if lies.busy:
            lies.busy -= 1
            raise Refusal(429, "REQUEST_LIMIT_EXCEEDED", {"Retry-After": "7"})
        if make is None or not _PATH.fullmatch(path):
            raise Refusal(404, "ENDPOINT_NOT_FOUND")
        return json.dumps(make()).encode()

    def log_message(self, *_: object) -> None:
        pass


_LOCK = threading.Lock()


@contextmanager
def serving(
    tables: Sequence[dict[str, Any]] = (), columns: Sequence[dict[str, Any]] = (), **lies: Any
) -> Iterator[Workspace]:
    """A workspace of one test's own, on loopback."""
    space = Workspace({"table_lineage": list(tables), "column_lineage": list(columns)}, lies=Lies(**lies))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"workspace": space}))
    space.uri = f"http://127.0.0.1:{server.server_port}/api/2.1/unity-catalog"
    with served(server):
        yield space
