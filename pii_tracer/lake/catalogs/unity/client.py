"""A client of Unity Catalog's REST interface: what a metastore lists, read to its end.

https://docs.databricks.com/api/workspace/catalogs and api/all.yaml of the open-source server. A bearer token comes from
the environment (`PII_TRACER_CATALOG_<NAME>_TOKEN`). A server lists only what the account may see, or at least browse
(`include_browse`, which the open-source server does not know and does not mind).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from time import sleep
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from pii_tracer.common.http import NoAnswer, ask, bearer, patiently
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import secret, secret_name
from pii_tracer.lake.catalogs.unity.answers import (
    Answer,
    CatalogInfo,
    ExternalLocationInfo,
    SchemaInfo,
    TableInfo,
    TagAssignment,
    VolumeInfo,
)
from pii_tracer.model.errors import EstateError

ANSWER_SECONDS = 60.0
MOST_PAGES = 20_000
"""Of one list: a server that always has one more page is not followed for ever."""
_LONGEST = 256 * 1024 * 1024
_BUSY = frozenset({429, 502, 503, 504})
_CODE = re.compile(r"[A-Z][A-Z0-9_.]{0,79}")
_NO_INTERFACE = frozenset({"", "ENDPOINT_NOT_FOUND"})
"""Codes of a 404 about the path itself, and not about what it names."""

A = TypeVar("A", bound=Answer)


class UnityRefusal(EstateError):
    """A request that a server refuses, or does not answer. status: of HTTP; code: the server's `error_code`."""

    def __init__(self, what: str, where: str, todo: str, status: int | None = None, code: str = "") -> None:
        super().__init__(what, where=where, todo=todo)
        self.status = status
        self.code = code

    @property
    def reason(self) -> str:
        """What happened and what to do about it, as one text."""
        return f"{self.what}: {self.todo}"


class UnityClient:
    """One server, as the estate file names it. A server that has fallen silent is asked no second time.

    Every method raises `UnityRefusal` when it does not answer as it should.
    """

    def __init__(self, name: str, catalog: Catalog) -> None:
        """name: the catalog's key in the estate file."""
        self._where = f"catalog {name}"
        self._uri = str(catalog.uri).rstrip("/")
        self._token = secret(name, "TOKEN")
        self._variable = secret_name(name, "TOKEN")
        self._silent: NoAnswer | None = None

    def catalogs(self) -> tuple[CatalogInfo, ...]:
        """Every catalog of the metastore."""
        return self._pages(
            "the catalogs", "/catalogs", "catalogs", CatalogInfo, {}, "BROWSE or USE CATALOG on each catalog"
        )

    def schemas(self, catalog: str) -> tuple[SchemaInfo, ...]:
        """Every schema of a catalog."""
        grant = f"USE CATALOG on `{catalog}`, and BROWSE on it or USE SCHEMA on each schema"
        return self._pages("the schemas", "/schemas", "schemas", SchemaInfo, {"catalog_name": catalog}, grant)

    def tables(self, catalog: str, schema: str) -> tuple[TableInfo, ...]:
        """Every table and view of a schema."""
        query = {"catalog_name": catalog, "schema_name": schema}
        return self._pages("the tables", "/tables", "tables", TableInfo, query, _in_schema(query, "SELECT"))

    def volumes(self, catalog: str, schema: str) -> tuple[VolumeInfo, ...]:
        """Every volume of a schema."""
        query = {"catalog_name": catalog, "schema_name": schema}
        return self._pages("the volumes", "/volumes", "volumes", VolumeInfo, query, _in_schema(query, "READ VOLUME"))

    def external_locations(self) -> tuple[ExternalLocationInfo, ...]:
        """Every external location of the metastore."""
        grant = "BROWSE or READ FILES on each external location"
        return self._pages(
            "the external locations", "/external-locations", "external_locations", ExternalLocationInfo, {}, grant
        )

    def tags(self, kind: str, full_name: str) -> tuple[TagAssignment, ...] | None:
        """The tags of a thing; None where the server has no interface for tags. kind: `tables`, `columns` …"""
        path = f"/entity-tag-assignments/{kind}/{quote(full_name, safe='')}/tags"
        grant = f"BROWSE on `{full_name}`"
        try:
            return self._pages("the tags", path, "tag_assignments", TagAssignment, {}, grant)
        except UnityRefusal as error:
            if error.status == 404 and error.code in _NO_INTERFACE:
                return None
            raise

    # -- wire ---------------------------------------------------------------------------------------------------------

    def _pages(
        self, what: str, path: str, part: str, kind: type[A], query: Mapping[str, str], grant: str
    ) -> tuple[A, ...]:
        """A list, page by page: a page without entries may have a next one, and only the last one has no token."""
        found: list[A] = []
        tokens = {""}
        token = ""
        for _ in range(MOST_PAGES):
            words = {**query, "max_results": "0", "include_browse": "true", **({"page_token": token} if token else {})}
            page = self._ask(what, path, words, grant)
            found += self._entries(what, page.get(part), kind, query)
            token = page.get("next_page_token") or ""
            if not token:
                return self._distinct(what, found)
            if not isinstance(token, str) or token in tokens:
                break
            tokens.add(token)
        raise self._odd(f"sent an incomplete list of {what}")

    def _entries(self, what: str, entries: Any, kind: type[A], query: Mapping[str, str]) -> list[A]:
        """The entries of a page. One that belongs elsewhere is an error; servers leave an empty list out."""
        try:
            made = [kind.model_validate(entry) for entry in ([] if entries is None else entries)]
        except (ValidationError, TypeError):
            raise self._odd(f"sent an answer for {what} that does not follow its interface") from None
        for entry in made:
            if any(getattr(entry, key).casefold() != value.casefold() for key, value in query.items()):
                raise self._odd(f"lists {what} of a different catalog or schema than requested")
        return made

    def _distinct(self, what: str, found: list[A]) -> tuple[A, ...]:
        """Each entry once: a list that changes while it is read may repeat some. Two of one name are an error."""
        by_name: dict[str, A] = {}
        for entry in found:
            name = str(getattr(entry, "name", len(by_name)))
            if by_name.setdefault(name, entry) != entry:
                raise self._odd(f"lists two entries with the same name among {what}")
        return tuple(by_name[name] for name in sorted(by_name))

    def _ask(self, what: str, path: str, query: Mapping[str, str], grant: str) -> dict[str, Any]:
        headers = {"Accept": "application/json", **bearer(self._token)}

        def once() -> bytes:
            return ask(self._uri + path, seconds=ANSWER_SECONDS, limit=_LONGEST, query=query, headers=headers)

        if self._silent:
            raise self._refusal(what, self._silent, grant)
        try:
            page = json.loads(patiently(once, _BUSY, sleep))
        except NoAnswer as error:
            if error.status is None:
                self._silent = error
            raise self._refusal(what, error, grant) from None
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict):
            raise self._odd(f"sent an answer for {what} that does not follow its interface")
        return page

    def _refusal(self, what: str, error: NoAnswer, grant: str) -> UnityRefusal:
        code = _code(error.said)
        shown = f"HTTP {error.status}" + (f", {code}" if code else "")
        if error.status == 401:
            told = "does not accept the token" if self._token else "wants a token"
            message = f"the Unity Catalog server {told} ({shown})"
            todo = f"set {self._variable} to a valid token of an account that sees all of the metastore"
        elif error.status == 403:
            message = f"the Unity Catalog server rejects the request to list {what} ({shown})"
            todo = f"grant the account {grant}"
        elif error.status == 404:
            message = f"the Unity Catalog server does not have {what} ({shown})"
            todo = "correct `uri` or `databases` of the catalog"
        elif error.status in _BUSY:
            message = f"the Unity Catalog server is too busy to list {what} ({shown})"
            todo = "run the command again later"
        else:
            message = f"the Unity Catalog server {error}"
            todo = "correct `uri` of the catalog, or check the server"
        return UnityRefusal(message, self._where, todo, error.status, code)

    def _odd(self, what: str) -> UnityRefusal:
        return UnityRefusal(
            f"the Unity Catalog server {what}", self._where, "check `uri` of the catalog, and at the server"
        )


def _in_schema(query: Mapping[str, str], privilege: str) -> str:
    catalog, schema = query["catalog_name"], query["schema_name"]
    return f"USE CATALOG on `{catalog}`, USE SCHEMA on `{catalog}.{schema}`, and {privilege} or BROWSE on its objects"


def _code(said: bytes) -> str:
    """The `error_code` of a refusal; its message is never looked at."""
    try:
        code = json.loads(said)["error_code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
