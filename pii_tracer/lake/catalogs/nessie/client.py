"""A client of Nessie's REST API v2: references, what they hold, and their commits.

https://projectnessie.org/develop/rest/, tried with server 0.99.0. A bearer token comes from the environment
(`PII_TRACER_CATALOG_<NAME>_TOKEN`). Every list is read to its end, page by page. A server lists only the references
that the account may see: it has to be an account that sees all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pii_tracer.common.http import NoAnswer, ask, bearer
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import secret
from pii_tracer.model.errors import EstateError

API_VERSION = 2
ANSWER_SECONDS = 120.0
PAGE = 500
_LONGEST = 256 * 1024 * 1024


class RefType(StrEnum):
    """Named references of Nessie. A tag is moved only by assigning it."""

    BRANCH = "BRANCH"
    TAG = "TAG"


@dataclass(frozen=True)
class Reference:
    """A branch or tag and the commit it points at."""

    name: str
    type: RefType
    hash: str


@dataclass(frozen=True)
class Content:
    """What a key means in one commit. kind: Nessie's content type.

    content: its id, the same on every branch and after a rename. metadata and snapshot: of an Iceberg table.
    """

    key: tuple[str, ...]
    kind: str
    content: str
    metadata: str | None = None
    snapshot: int | None = None


@dataclass(frozen=True)
class Commit:
    """A commit of a reference's history with what it puts; newest first. deleted keys are not in it."""

    hash: str
    at: datetime
    puts: tuple[Content, ...]


class NessieConflict(EstateError):
    """A reference is not where it was read: somebody committed in between."""


class NessieClient:
    """One server, as the estate file names it. All methods raise EstateError when it does not answer as it should."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        self._name = name
        self._uri = str(catalog.uri).rstrip("/")
        self._token = secret(name, "TOKEN")

    @property
    def has_token(self) -> bool:
        """Whether an account is used, which may be shown less than there is."""
        return self._token is not None

    def default_branch(self) -> str:
        """Name of the server's default branch.

        Raises:
            EstateError: it does not answer, or speaks another version of the API.
        """
        config = self._ask("GET", "/config")
        if int(config.get("maxSupportedApiVersion", 1)) < API_VERSION or "defaultBranch" not in config:
            raise self._odd(
                f"the Nessie server does not support version {API_VERSION} of the API", "use a newer Nessie server"
            )
        return str(config["defaultBranch"])

    def references(self) -> tuple[Reference, ...]:
        """Every branch and tag, by name."""
        found = [_reference(item) for item in self._pages("/trees", "references", {})]
        return tuple(sorted(found, key=lambda r: r.name))

    def contents(self, reference: Reference) -> tuple[Content, ...]:
        """Every key at the commit that was read of a reference, namespaces left out."""
        found = []
        for entry in self._pages(f"/trees/{_at(reference)}/entries", "entries", {"content": "true"}):
            if entry.get("type") == "NAMESPACE":
                continue
            if not isinstance(entry.get("content"), dict):
                raise self._odd(
                    "the Nessie server lists a table without its content", "check the server's access rules"
                )
            found.append(_content(entry["name"], entry["content"]))
        return tuple(sorted(found, key=lambda c: c.key))

    def history(self, reference: Reference) -> Iterator[Commit]:
        """The commits of a reference, newest first, down to the first one."""
        for entry in self._pages(f"/trees/{_at(reference)}/history", "logEntries", {"fetch": "ALL"}):
            meta = entry["commitMeta"]
            operations = entry.get("operations") or []
            puts = tuple(_content(o["key"], o["content"]) for o in operations if o.get("type") == "PUT")
            yield Commit(str(meta["hash"]), _time(str(meta["commitTime"])), puts)

    def commits(self, references: Iterable[Reference]) -> Iterator[tuple[Reference, Commit]]:
        """Every commit of any of the references' histories once, with the first of them that has it."""
        seen: set[str] = set()
        for reference in references:
            for commit in self.history(reference):
                if commit.hash in seen:
                    break  # everything before it was seen with it
                seen.add(commit.hash)
                yield reference, commit

    def create_branch(self, name: str, at: Reference) -> Reference:
        """A new branch at the commit of another reference."""
        query = {"name": name, "type": RefType.BRANCH.value}
        return _reference(self._ask("POST", "/trees", _body(at), query)["reference"])

    def assign(self, reference: Reference, to: Reference) -> None:
        """Move a reference to another's commit.

        Raises:
            NessieConflict: it is not at the commit any more that was read.
        """
        self._ask("PUT", f"/trees/{_at(reference)}", _body(to), {"type": reference.type.value})

    def delete(self, reference: Reference) -> None:
        """Delete a reference.

        Raises:
            NessieConflict: it is not at the commit any more that was read.
        """
        self._ask("DELETE", f"/trees/{_at(reference)}", query={"type": reference.type.value})

    # -- wire ----------------------------------------------------------------------------------------------------

    def _pages(self, path: str, part: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        token, tokens = "", {""}
        while True:
            words = {**query, "max-records": str(PAGE), **({"page-token": token} if token else {})}
            answer = self._ask("GET", path, query=words)
            if not isinstance(answer.get(part), list):
                raise self._odd(
                    f"the Nessie server's answer has no `{part}`", "check the version and the log of the server"
                )
            yield from answer[part]
            if not answer.get("hasMore"):
                return
            token = str(answer.get("token") or "")
            if token in tokens:
                raise self._odd(
                    "the Nessie server sent an incomplete list", "check the version and the log of the server"
                )
            tokens.add(token)

    def _ask(
        self, method: str, path: str, body: Mapping[str, str] | None = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json", **bearer(self._token)}
        given: dict[str, Any] = {"method": method, "query": query, "body": body, "headers": headers}
        try:
            text = ask(self._uri + path, seconds=ANSWER_SECONDS, limit=_LONGEST, **given)
            found = json.loads(text) if text else {}
        except NoAnswer as error:
            if error.status == 409:
                raise NessieConflict(
                    "a Nessie reference changed after it was read", where=self._where(), todo="run `pii-tracer resume`"
                ) from None
            refused = "rejects this account" if error.status in (401, 403) else str(error)
            raise self._odd(
                f"the Nessie server {refused}", "start the server, and check its log and access rules"
            ) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._odd("the answer does not follow the Nessie API", "check `uri` of the catalog")
        return found

    def _odd(self, what: str, todo: str) -> EstateError:
        return EstateError(what, where=self._where(), todo=todo)

    def _where(self) -> str:
        return f"catalog {self._name}"


def _at(reference: Reference) -> str:
    return quote(reference.name, safe="") + "@" + quote(reference.hash, safe="")


def _body(reference: Reference) -> dict[str, str]:
    return {"type": reference.type.value, "name": reference.name, "hash": reference.hash}


def _reference(data: Mapping[str, Any]) -> Reference:
    try:
        return Reference(str(data["name"]), RefType(data["type"]), str(data["hash"]))
    except (KeyError, ValueError):
        raise EstateError(
            "a Nessie reference has an unsupported type", todo="check the Nessie server's version"
        ) from None


def _content(name: Mapping[str, Any], content: Mapping[str, Any]) -> Content:
    try:
        snapshot = content.get("snapshotId")
        return Content(
            key=tuple(str(part) for part in name["elements"]),
            kind=str(content["type"]),
            content=str(content["id"]),
            metadata=content.get("metadataLocation"),
            snapshot=int(snapshot) if snapshot is not None else None,
        )
    except (KeyError, TypeError, ValueError):
        raise EstateError(
            "the answer of the Nessie server cannot be read", todo="check the Nessie server's version"
        ) from None


def _time(text: str) -> datetime:
    """ISO 8601 with up to nine digits of a second, of which Python takes six."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{(rest or '0')[:6].ljust(6, '0')}+00:00")
