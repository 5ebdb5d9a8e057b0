"""SQL on a warehouse of a Databricks workspace, by the Statement Execution API, with the catalog's own token.

https://docs.databricks.com/api/workspace/statementexecution. Results come as `JSON_ARRAY` by `EXTERNAL_LINKS`: results
that come within answers end at 25 MiB. A link is a secret and short-lived, goes to another server, and gets no token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationError

from pii_tracer.common.http import NoAnswer, ask, bearer, patiently
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import secret, secret_name
from pii_tracer.lake.catalogs.unity.answers import Answer
from pii_tracer.lake.catalogs.unity.client import UnityRefusal

Row = tuple[str | None, ...]
"""Values as text, or NULL."""

_INTERFACE = "/api/2.0/sql/statements"
_CATALOG = re.compile(r"/api/2\.1/unity-catalog/?$")
_WAIT = "30s"
"""How long the server waits for the end of a statement before it answers: 5 to 50 seconds."""
_ANSWER_SECONDS = 90.0
_STATEMENT_SECONDS = 1_800.0
_LONGEST_PAUSE = 15.0
_LARGEST = 256 * 1024 * 1024
_BUSY = frozenset({429, 502, 503, 504})
_CODE = re.compile(r"[A-Z][A-Z0-9_.]{0,79}")
_ID = re.compile(r"[0-9A-Za-z-]{1,128}")
_LINK_TRIES = 3
"""Links of one chunk: each further one is requested after the one before it expired."""


class _Column(Answer):
    name: str


class _Schema(Answer):
    columns: list[_Column] = Field(default_factory=list)


class _Manifest(Answer):
    """What a result consists of. truncated: whether rows are missing."""

    format: str
    schema_: _Schema = Field(alias="schema")
    total_chunk_count: int = 0
    total_row_count: int = 0
    truncated: bool = False


class _Link(Answer):
    """Where a chunk lies. http_headers: to be sent with the request."""

    chunk_index: int
    external_link: str
    http_headers: dict[str, str] | None = None


class _Result(Answer):
    external_links: list[_Link] = Field(default_factory=list)


class _Error(Answer):
    error_code: str | None = None


class _Status(Answer):
    state: str
    error: _Error | None = None


class _Statement(Answer):
    statement_id: str
    status: _Status
    manifest: _Manifest | None = None
    result: _Result | None = None


def workspace(catalog: Catalog) -> str:
    """The address of a catalog's workspace."""
    return _CATALOG.sub("", str(catalog.uri)).rstrip("/")


@dataclass(frozen=True)
class Clock:
    """now: seconds of a clock that only goes forward. pause: waits so many seconds."""

    now: Callable[[], float] = monotonic
    pause: Callable[[float], None] = sleep


class Warehouse:
    """One SQL warehouse. Every method raises `UnityRefusal` where a result is not whole, for whatever reason.

    What a server says in words is never shown.
    """

    def __init__(self, name: str, catalog: Catalog, warehouse: str, clock: Clock | None = None) -> None:
        """name: the catalog's key in the estate file. warehouse: its id."""
        self._where = f"catalog {name}"
        self._address = workspace(catalog) + _INTERFACE
        self._token = secret(name, "TOKEN")
        self._variable = secret_name(name, "TOKEN")
        self._warehouse = warehouse
        self._clock = clock or Clock()

    def rows(self, sql: str, columns: Sequence[str], grant: str) -> list[Row]:
        """All rows of a query. columns: the names of its columns, in their order. grant: what it needs."""
        request = {
            "warehouse_id": self._warehouse,
            "statement": sql,
            "wait_timeout": _WAIT,
            "on_wait_timeout": "CONTINUE",
            "disposition": "EXTERNAL_LINKS",
            "format": "JSON_ARRAY",
        }
        done = self._finished(self._statement("", request), grant)
        manifest = done.manifest
        if manifest is None or manifest.format != "JSON_ARRAY":
            raise self._odd("sent a result in an unknown form")
        if [column.name for column in manifest.schema_.columns] != list(columns):
            raise self._odd("sent different columns than requested")
        if manifest.truncated:
            raise self._refused(
                "truncated the result, because it is too large",
                "export the table, and list the files in the estate file",
            )
        first = done.result.external_links if done.result else []
        found = [row for n in range(manifest.total_chunk_count) for row in self._chunk(done.statement_id, n, first)]
        if len(found) != manifest.total_row_count or any(len(row) != len(columns) for row in found):
            raise self._odd(f"announced {counted(manifest.total_row_count, 'row')}, but sent a different number")
        return found

    def _finished(self, made: _Statement, grant: str) -> _Statement:
        """The statement once it is over."""
        begun, wait = self._clock.now(), 1.0
        while made.status.state in ("PENDING", "RUNNING"):
            if self._clock.now() - begun > _STATEMENT_SECONDS:
                raise self._refused(
                    f"has not finished a query after {_STATEMENT_SECONDS:.0f} seconds", "check the SQL warehouse"
                )
            self._clock.pause(wait)
            wait = min(_LONGEST_PAUSE, wait * 2)
            made = self._statement(f"/{quote(made.statement_id, safe='')}")
        if made.status.state == "SUCCEEDED":
            return made
        code = made.status.error.error_code if made.status.error else None
        shown = f" ({code})" if code and _CODE.fullmatch(code) else ""
        if made.status.state == "FAILED":
            raise self._refused(f"failed to run a query{shown}", f"grant the account {grant}")
        raise self._refused(f"ended a query before its result was read{shown}", "run the command again")

    def _statement(self, path: str, body: dict[str, str] | None = None) -> _Statement:
        try:
            made = _Statement.model_validate(self._json(path, body))
        except ValidationError:
            raise self._odd("sent an answer that does not follow its interface") from None
        if _ID.fullmatch(made.statement_id) is None:
            raise self._odd("sent an answer that does not follow its interface")
        return made

    def _chunk(self, statement: str, number: int, given: Sequence[_Link]) -> Iterator[Row]:
        """The rows of one chunk. A link that is not good any more is replaced by a new one."""
        links = [link for link in given if link.chunk_index == number]
        for attempt in range(_LINK_TRIES):
            link = links[0] if links and not attempt else self._link(statement, number)
            try:
                data = self._download(link)
            except NoAnswer as error:
                if error.status in (400, 401, 403, 404, 410) and attempt + 1 < _LINK_TRIES:
                    continue
                raise self._refused(
                    f"redirects to a results store that {error}", "allow this machine to access the workspace's storage"
                ) from None
            yield from self._parsed(data)
            return

    def _link(self, statement: str, number: int) -> _Link:
        """A new link to a chunk."""
        try:
            answer = self._json(f"/{quote(statement, safe='')}/result/chunks/{number}", None)
            links = _Result.model_validate(answer).external_links
        except ValidationError:
            links = []
        link = next((link for link in links if link.chunk_index == number), None)
        if link is None:
            raise self._odd("sent no link to a part of the result")
        return link

    def _download(self, link: _Link) -> bytes:
        try:
            scheme = urlsplit(link.external_link).scheme
        except ValueError:  # it says the host
            raise self._odd("sent a link without an address to a result") from None
        if scheme == "http" and not self._address.startswith("http://"):
            raise self._odd("sent a link to a result without TLS")

        def once() -> bytes:
            headers = link.http_headers or {}
            return ask(link.external_link, seconds=_ANSWER_SECONDS, limit=_LARGEST, headers=headers)

        return patiently(once, _BUSY, self._clock.pause)

    def _parsed(self, data: bytes) -> Iterator[Row]:
        try:
            rows = json.loads(data)
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list):
            raise self._odd("sent a part of a result that is not a list of rows")
        for row in rows:
            if not isinstance(row, list) or not all(value is None or isinstance(value, str) for value in row):
                raise self._odd("sent a part of a result that is not a list of rows")
            yield tuple(row)

    def _json(self, path: str, body: dict[str, str] | None) -> Any:
        headers = {"Accept": "application/json", **bearer(self._token)}

        def once() -> bytes:
            return ask(self._address + path, seconds=_ANSWER_SECONDS, limit=_LARGEST, body=body, headers=headers)

        try:
            return json.loads(patiently(once, _BUSY, self._clock.pause))
        except NoAnswer as error:
            raise self._unanswered(error) from None
        except (ValueError, RecursionError):
            raise self._odd("sent an answer that does not follow its interface") from None

    def _unanswered(self, error: NoAnswer) -> UnityRefusal:
        todo = "correct `uri` of the catalog, or check the workspace"
        if error.status == 401:
            told, todo = "does not accept the token, or it expired", f"set {self._variable} to a valid token"
        elif error.status == 403:
            told, todo = (
                "rejects the SQL warehouse",
                ("grant the account CAN USE on the warehouse, and the API scope `sql`"),
            )
        elif error.status in (400, 404):
            told, todo = f"rejects the request (HTTP {error.status})", "correct `warehouse` of `lineage.unity`"
        elif error.status in _BUSY:
            told, todo = f"is too busy (HTTP {error.status})", "run the command again later"
        else:
            told = str(error)
        return self._refused(told, todo, error.status)

    def _refused(self, what: str, todo: str, status: int | None = None) -> UnityRefusal:
        return UnityRefusal(f"the Databricks workspace {what}", self._where, todo, status)

    def _odd(self, what: str) -> UnityRefusal:
        return self._refused(what, "check `uri` of the catalog, and at the workspace")
