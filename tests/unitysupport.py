"""A strict stand-in for Unity Catalog's REST interface: it refuses what the real servers refuse.

Made from api/all.yaml of the open-source server (https://github.com/unitycatalog/unitycatalog) and, for what that one
lacks (browse-only entries, tags, types of catalogs), from https://docs.databricks.com/api/workspace. Privileges are
granted as there: nothing is inherited that the pages do not say. What it lies about is set in `Lies`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from executors.catalogs import registry as spark_registry
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.lake.catalogs import registry
from tests.servers import served

ROOT = "/api/2.1/unity-catalog"
TOKEN = "dapi-test-0123456789"
_TYPES = {
    *("MANAGED", "EXTERNAL", "VIEW", "MATERIALIZED_VIEW", "STREAMING_TABLE", "METRIC_VIEW"),
    *("MANAGED_SHALLOW_CLONE", "EXTERNAL_SHALLOW_CLONE", "FOREIGN"),
}
_PAGED = {"max_results", "page_token", "include_browse"}
_LISTS = {
    "/catalogs": ("catalogs", _PAGED, 1000),
    "/schemas": ("schemas", {*_PAGED, "catalog_name"}, 1000),
    "/tables": ("tables", {*_PAGED, "catalog_name", "schema_name"}, 50),
    "/volumes": ("volumes", {*_PAGED, "catalog_name", "schema_name"}, 10000),
    "/external-locations": ("external_locations", _PAGED, 1000),
}
_TAGS = re.compile(r"/entity-tag-assignments/(catalogs|schemas|tables|columns|volumes)/([^/]+)/tags")


class Refusal(Exception):
    def __init__(self, status: int, code: str | None, headers: dict[str, str] | None = None) -> None:
        self.status, self.code, self.headers = status, code, headers or {}


@dataclass
class Lies:
    """busy: (status, Retry-After) of answers that want patience first. circle: the last page leads back to the first.
    empty: an empty page with a token stands before each page. instead: what is answered to every question on a path.
    """

    busy: list[tuple[int, str]] = field(default_factory=list)
    circle: bool = False
    empty: bool = False
    instead: dict[str, Any] = field(default_factory=dict)


@dataclass
class Unity:
    """A running stand-in. page: entries on a page. grants: privileges by full name; the account is no admin.
    databricks: whether it has what only Databricks has. asked: paths with their queries."""

    uri: str = ""
    page: int = 2
    databricks: bool = True
    admin: bool = True
    catalogs: dict[str, dict[str, Any]] = field(default_factory=dict)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    locations: dict[str, dict[str, Any]] = field(default_factory=dict)
    grants: dict[str, set[str]] = field(default_factory=dict)
    tags: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    lies: Lies = field(default_factory=Lies)
    asked: list[str] = field(default_factory=list)
    issued: set[tuple[str, str]] = field(default_factory=set)

    # -- what an owner does --------------------------------------------------------------------------------------------

    def catalog(self, name: str, **more: Any) -> None:
        kind = {"catalog_type": "MANAGED_CATALOG"} if self.databricks else {}
        self.catalogs[name] = {"name": name, "comment": None, "created_at": 1, **kind, **more}

    def schema(self, full_name: str, **more: Any) -> None:
        catalog, _, name = full_name.partition(".")
        if catalog not in self.catalogs:
            self.catalog(catalog)
        self.schemas[full_name] = {"name": name, "catalog_name": catalog, "full_name": full_name, **more}

    def table(self, full_name: str, location: str | None, stored: str | None = "DELTA", **more: Any) -> None:
        kind = more.pop("table_type", "EXTERNAL")
        assert kind in _TYPES or kind.startswith("X_")
        columns = more.pop("columns", [{"name": "uid", "type_name": "LONG"}, {"name": "name", "type_name": "STRING"}])
        made = {**self._in_schema(full_name), "table_type": kind, "data_source_format": stored, "columns": columns}
        self.tables[full_name] = {**made, "storage_location": location, "properties": {}, "owner": "etl", **more}

    def view(self, full_name: str, text: str, **more: Any) -> None:
        self.table(full_name, None, None, table_type="VIEW", view_definition=text, **more)

    def volume(self, full_name: str, location: str | None, kind: str = "EXTERNAL", **more: Any) -> None:
        self.volumes[full_name] = {
            **self._in_schema(full_name), "volume_type": kind, "storage_location": location, **more
        }  # fmt: skip

    def location(self, name: str, url: str | None) -> None:
        self.locations[name] = {"name": name, "url": url, "credential_name": "c"}

    def _in_schema(self, full_name: str) -> dict[str, Any]:
        catalog, schema, name = full_name.split(".")
        if f"{catalog}.{schema}" not in self.schemas:
            self.schema(f"{catalog}.{schema}")
        return {"name": name, "catalog_name": catalog, "schema_name": schema}

    def made(self, **more: Any) -> Catalog:
        """As estate files write it."""
        return Catalog(type=CatalogType.UNITY, uri=self.uri, **more)

    # -- the interface -------------------------------------------------------------------------------------------------

    def answer(self, path: str, query: dict[str, str], authorization: str) -> Any:
        if self.lies.busy:
            status, after = self.lies.busy.pop(0)
            raise Refusal(status, "REQUEST_LIMIT_EXCEEDED", {"Retry-After": after} if after else None)
        if authorization != f"Bearer {TOKEN}":
            raise Refusal(401, "UNAUTHENTICATED")
        if path in self.lies.instead:
            return self.lies.instead[path]
        if path in _LISTS:
            return self._list(path, query)
        if self.databricks and (found := _TAGS.fullmatch(path)):
            if query.keys() - _PAGED:
                raise Refusal(400, "INVALID_PARAMETER_VALUE")
            return self._tags(found[1], unquote(found[2]))
        # the open-source server's answer to a path that it does not have is no JSON of its own
        raise Refusal(404, "ENDPOINT_NOT_FOUND" if self.databricks else None)

    def _list(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        part, known, most = _LISTS[path]
        needed = known - _PAGED
        if query.keys() - known or needed - query.keys():
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        size = query.get("max_results", "")
        if not size.isdecimal() or int(size) > most:
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        entries = self._entries(path, query)
        shape = json.dumps([path, sorted((k, v) for k, v in query.items() if k in needed)])
        token = query.get("page_token")
        if token is not None and (shape, token) not in self.issued:
            raise Refusal(400, "INVALID_PARAMETER_VALUE")
        start, blank = (int(token[1:]), token[0] == "b") if token else (0, self.lies.empty)
        if blank:
            return {"next_page_token": self._issue(shape, f"p{start}")}
        end = start + min(self.page, int(size) or self.page)
        page: dict[str, Any] = {part: entries[start:end]} if entries[start:end] or not self.databricks else {}
        if end < len(entries):
            page["next_page_token"] = self._issue(shape, f"{'b' if self.lies.empty else 'p'}{end}")
        elif self.lies.circle and start:
            page["next_page_token"] = self._issue(shape, f"p{self.page}")
        elif not self.databricks:
            page["next_page_token"] = None
        return page

    def _issue(self, shape: str, token: str) -> str:
        self.issued.add((shape, token))
        return token

    def _entries(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        browse = query.get("include_browse") == "true" and self.databricks
        if path == "/catalogs":
            return self._seen(self.catalogs, browse, "USE CATALOG")
        if path == "/external-locations":
            return self._seen(self.locations, browse, "READ FILES")
        catalog = query["catalog_name"]
        if catalog not in self.catalogs:
            raise Refusal(404, "CATALOG_DOES_NOT_EXIST")
        self._use(catalog, "USE CATALOG")
        if path == "/schemas":
            within = {n: s for n, s in self.schemas.items() if s["catalog_name"] == catalog}
            return self._seen(within, browse, "USE SCHEMA")
        schema = f"{catalog}.{query['schema_name']}"
        if schema not in self.schemas:
            raise Refusal(404, "SCHEMA_DOES_NOT_EXIST")
        self._use(schema, "USE SCHEMA")
        things, privilege = (self.tables, "SELECT") if path == "/tables" else (self.volumes, "READ VOLUME")
        within = {n: t for n, t in things.items() if n.startswith(f"{schema}.")}
        return self._seen(within, browse, privilege)

    def _use(self, full_name: str, privilege: str) -> None:
        if not self.admin and not self._granted(full_name) & {privilege, "BROWSE"}:
            raise Refusal(403, "PERMISSION_DENIED")

    def _granted(self, full_name: str) -> set[str]:
        parts = full_name.split(".")
        above = (".".join(parts[:end]) for end in range(1, len(parts)))
        inherited = {"BROWSE"} if any("BROWSE" in self.grants.get(name, ()) for name in above) else set()
        return self.grants.get(full_name, set()) | inherited

    def _seen(self, things: dict[str, dict[str, Any]], browse: bool, privilege: str) -> list[dict[str, Any]]:
        """What the account may see of each; of what it may only browse, neither the place nor a text."""
        found = []
        for name, made in sorted(things.items()):
            granted = self._granted(name)
            if self.admin or privilege in granted:
                found.append(made)
            elif browse and "BROWSE" in granted:
                hidden = {"storage_location", "view_definition", "url"}
                found.append({**{k: v for k, v in made.items() if k not in hidden}, "browse_only": True})
        return found

    def _tags(self, kind: str, full_name: str) -> dict[str, Any]:
        tags = self.tags.get((kind, full_name), {})
        told = [{"entity_type": kind, "entity_name": full_name, "tag_key": k, "tag_value": v} for k, v in tags.items()]
        return {"tag_assignments": told} if told else {}


class Handler(BaseHTTPRequestHandler):
    unity: Unity

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        path = parts.path.removeprefix(ROOT) if parts.path.startswith(ROOT) else ""
        with _LOCK:
            self.unity.asked.append(path)
            try:
                status, headers = 200, dict[str, str]()
                body = json.dumps(self.unity.answer(path, query, self.headers.get("Authorization", ""))).encode()
            except Refusal as refusal:
                status, headers = refusal.status, refusal.headers
                told = {"error_code": refusal.code, "message": "the account etl-robot may not see main.secret"}
                body = json.dumps(told).encode() if refusal.code else b"Status: 404\nDescription: Not Found\n"
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_LOCK = threading.Lock()


@contextmanager
def serving(**settings: Any) -> Iterator[Unity]:
    """A metastore of one test's own, on loopback."""
    unity = Unity(**settings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"unity": unity}))
    unity.uri = f"http://127.0.0.1:{server.server_port}{ROOT}"
    with served(server):
        yield unity


_CACHED = (plugins.registered, plugins.names, plugins.load, registry.catalog_of, spark_registry.spark_catalog_of)
_ENTRY_POINTS = f"""\
[{registry.GROUP}]
unity = pii_tracer.lake.catalogs.unity.adapter:UnityCatalogs
[{spark_registry.GROUP}]
unity = executors.catalogs.unity.spark_catalog:UnityOnSpark
"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The type is registered, also where the package was installed before it had the type."""
    if "unity" in plugins.names(registry.GROUP):
        yield
        return
    info: Path = tmp_path_factory.mktemp("packages") / "unitycatalogs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: unitycatalogs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(info.parent))
        for made in _CACHED:
            made.cache_clear()
        yield
    for made in _CACHED:
        made.cache_clear()


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of the catalog `uc`, in the environment."""
    monkeypatch.setenv("PII_TRACER_CATALOG_UC_TOKEN", TOKEN)
