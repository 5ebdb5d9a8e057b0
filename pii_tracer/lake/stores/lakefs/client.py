"""A client of lakeFS's HTTP API, as far as discovery and erasure need it.

https://docs.lakefs.io/reference/api.html, paths and fields as in `api/swagger.yml` of github.com/treeverse/lakeFS. The
key pair goes to this server alone (no redirection is followed) and comes from the environment. What a server says in
its own words is never repeated: only the status.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pii_tracer.common.http import NoAnswer, ask, basic
from pii_tracer.config.lakefs import LakefsServer
from pii_tracer.lake.stores.base import PagesSeen
from pii_tracer.model.errors import EstateError

ANSWER_SECONDS = 120.0
MAX_OBJECT_BYTES = 2 * 1024**3
"""Objects above this are refused: a rewrite holds one object and its new self in memory."""
PLAN_MARK = "pii-tracer-plan"
"""Metadata of what a plan wrote, objects and commits alike: it tells a run after a crash what is done already."""

_PAGE = 1000
_LARGEST_ANSWER = 256 * 1024**2
_NEXT: dict[int | None, str] = {
    None: "check the network, and the server's log",
    400: "check the server's log",
    401: "set the key pair in the environment variables that the estate file names",
    403: "grant the key's user the right, or remove the branch's protection",
    404: "check the names in the estate file",
    409: "run `pii-tracer resume`, because somebody wrote at the same time",
    410: "plan again, because lakeFS removed the object",
    412: "check the repository's hooks in lakeFS, or plan again if an object changed",
}


class LakefsError(EstateError):
    """The server refused, or did not answer. status: of HTTP, None where no whole answer came."""

    def __init__(self, what: str, status: int | None, *, where: str, todo: str) -> None:
        super().__init__(what, where=where, todo=todo)
        self.status = status


class LakefsClient:
    """One server. Every method raises `LakefsError` when it is refused or gets no whole answer."""

    def __init__(self, server: LakefsServer) -> None:
        """Raises `LakefsError` where the environment has no key pair."""
        self._server = server
        base = server.endpoint.rstrip("/")
        self._base = base if base.endswith("/api/v1") else base + "/api/v1"
        pair = [os.environ.get(name) for name in (server.access_key_env, server.secret_key_env)]
        if not all(pair):
            raise LakefsError(
                "the environment has no key pair for the lakeFS server",
                None,
                where=server.name,
                todo=f"set {server.access_key_env} and {server.secret_key_env}",
            )
        self._authorization = basic(f"{pair[0]}:{pair[1]}")

    # --- reading ---

    def repository(self, name: str) -> dict[str, Any]:
        """`storage_namespace`, `default_branch`, …"""
        return self._json("GET", _path(name))

    def branches(self, repository: str) -> Iterator[dict[str, Any]]:
        """`id` and `commit_id` of each branch, hidden ones too."""
        return self._pages(_path(repository, "branches"), "id", show_hidden="true")

    def tags(self, repository: str) -> Iterator[dict[str, Any]]:
        """`id` and `commit_id` of each tag."""
        return self._pages(_path(repository, "tags"), "id")

    def log(self, repository: str, ref: str) -> Iterator[dict[str, Any]]:
        """Commits that a reference leads to, over every parent, the newest first."""
        return self._pages(_path(repository, "refs", ref, "commits"), "id")

    def head(self, repository: str, branch: str) -> str:
        """Id of a branch's newest commit."""
        return _text(self._json("GET", _path(repository, "branches", branch)), "commit_id", branch)

    def objects(self, repository: str, ref: str) -> Iterator[dict[str, Any]]:
        """`path`, `physical_address`, `size_bytes`, `mtime`, … of everything in a commit, or on a branch as staged."""
        return self._pages(_path(repository, "refs", ref, "objects", "ls"), "path")

    def staged(self, repository: str, branch: str) -> Iterator[dict[str, Any]]:
        """`type` and `path` of what is uncommitted on a branch."""
        return self._pages(_path(repository, "branches", branch, "diff"), "path")

    def stat(self, repository: str, ref: str, path: str) -> dict[str, Any] | None:
        """What lakeFS knows of an object; None where the reference has none of that path."""
        try:
            return self._json("GET", _path(repository, "refs", ref, "objects", "stat"), query={"path": path})
        except LakefsError as error:
            if error.status == 404:
                return None
            raise

    def read(self, repository: str, ref: str, path: str) -> bytes | None:
        """An object's bytes; None where they were collected (410)."""
        place = _path(repository, "refs", ref, "objects")
        try:
            return self._bytes("GET", place, query={"path": path}, limit=MAX_OBJECT_BYTES)
        except LakefsError as error:
            if error.status == 410:
                return None
            raise

    def there(self, repository: str, ref: str, path: str) -> bool:
        """Whether an object's bytes can still be read, seen by asking for the first of them."""
        place, first = _path(repository, "refs", ref, "objects"), {"Range": "bytes=0-0"}
        try:
            self._bytes("GET", place, query={"path": path}, headers=first, limit=MAX_OBJECT_BYTES)
        except LakefsError as error:
            if error.status == 410:
                return False
            if error.status != 416:  # an empty object has no first byte
                raise
        return True

    def rules(self, repository: str) -> dict[str, Any] | None:
        """The garbage collection rules; None where there are none."""
        found = self._or_none("GET", _path(repository, "settings", "gc_rules"))
        if found is not None and not isinstance(found, dict):
            raise self._odd(_path(repository, "settings", "gc_rules"))
        return found

    def protection(self, repository: str) -> list[dict[str, Any]]:
        """Branch protection rules, each a `pattern`."""
        found = self._or_none("GET", _path(repository, "settings", "branch_protection"))
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._odd(_path(repository, "settings", "branch_protection"))
        return found

    def prepare(self, repository: str) -> dict[str, Any]:
        """Let the server write its list of active commits, as a garbage collection begins. Changes no data."""
        return self._json("POST", _path(repository, "gc", "prepare_commits"), body=b"")

    def presigned(self, url: str) -> bytes:
        """What a presigned URL gives; no credentials go there."""
        return _asked(url, "a presigned URL", limit=_LARGEST_ANSWER)

    # --- writing ---

    def upload(
        self, repository: str, branch: str, path: str, data: bytes, old: Mapping[str, Any], mark: Mapping[str, str]
    ) -> None:
        """Stage an object in place of an old one, as which it is typed and marked; refused (412) where that changed.

        old: what `stat` said of it. mark: user metadata beside its own.
        """
        kind = str(old.get("content_type") or "application/octet-stream")
        if not kind.isprintable():
            raise self._odd(_path(repository, "branches", branch, "objects"))
        boundary = secrets.token_hex(16)
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="content"\r\n'
        body = head.encode() + f"Content-Type: {kind}\r\n\r\n".encode() + data + f"\r\n--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        headers |= {f"x-lakefs-meta-{name}": value for name, value in {**(old.get("metadata") or {}), **mark}.items()}
        headers["If-Match"] = str(old["checksum"])
        place = _path(repository, "branches", branch, "objects")
        self._bytes("POST", place, query={"path": path}, headers=headers, body=body)

    def reset(self, repository: str, branch: str, path: str) -> None:
        """Take back what is staged under one path."""
        self._bytes("PUT", _path(repository, "branches", branch), body={"type": "object", "path": path})

    def commit(self, repository: str, branch: str, message: str, mark: Mapping[str, str]) -> dict[str, Any]:
        """Commit what is staged on a branch."""
        body = {"message": message, "metadata": dict(mark)}
        return self._json("POST", _path(repository, "branches", branch, "commits"), body=body)

    def set_rules(self, repository: str, rules: Mapping[str, Any]) -> None:
        """Put rules in force, in place of what was there."""
        self._bytes("PUT", _path(repository, "settings", "gc_rules"), body=rules)

    def delete_rules(self, repository: str) -> None:
        """Take the rules away: nothing committed is collected any more."""
        self._bytes("DELETE", _path(repository, "settings", "gc_rules"))

    # --- requests ---

    def _pages(self, path: str, key: str, **query: str) -> Iterator[dict[str, Any]]:
        """Entries of a listing, asked once more behind its last one until none come."""
        after: str | None = None
        seen = PagesSeen()
        while True:
            page = self._json("GET", path, query={**query, "amount": str(_PAGE), **({"after": after} if after else {})})
            results, pagination = page.get("results"), page.get("pagination")
            if not isinstance(results, list) or not isinstance(pagination, dict) or "has_more" not in pagination:
                raise self._odd(path)
            for number, item in enumerate(results):
                if not isinstance(item, dict) or not isinstance(item.get(key), str):
                    raise self._odd(path)
                if not number and seen.again(item[key]):
                    raise self._odd(path)
                yield item
            if not results and not pagination["has_more"]:
                return
            following = pagination.get("next_offset") if pagination["has_more"] else results[-1][key]
            if not results or not isinstance(following, str) or not following or following == after:
                raise self._odd(path)  # a page that leads nowhere must not be taken for the end
            after = following

    def _or_none(self, method: str, path: str) -> Any:
        try:
            return self._decoded(path, self._bytes(method, path))
        except LakefsError as error:
            if error.status == 404:
                return None
            raise

    def _json(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        found = self._decoded(path, self._bytes(method, path, **given))
        if not isinstance(found, dict):
            raise self._odd(path)
        return found

    def _decoded(self, path: str, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except ValueError:
            raise self._odd(path) from None

    def _odd(self, path: str) -> LakefsError:
        what = "the answer does not follow the lakeFS API"
        return LakefsError(
            what, None, where=self._base + path, todo="correct the endpoint in the estate file, or update the server"
        )

    def _bytes(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Mapping[str, Any] | None = None,
        limit: int = _LARGEST_ANSWER,
    ) -> bytes:
        url, headers = self._base + path, {**self._authorization, **(headers or {})}
        return _asked(url, url, method=method, query=query, body=body, headers=headers, limit=limit)


def _asked(url: str, where: str, **given: Any) -> bytes:
    try:
        return ask(url, seconds=ANSWER_SECONDS, **given)
    except NoAnswer as error:
        todo = _NEXT.get(error.status, "check the server's log, then run `pii-tracer resume`")
        raise LakefsError(f"lakeFS {error}", error.status, where=where, todo=todo) from None


def _text(found: Mapping[str, Any], key: str, where: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise LakefsError(f"an answer of lakeFS has no `{key}`", None, where=where, todo=_NEXT[400])
    return value


def _path(repository: str, *parts: str) -> str:
    return "/repositories/" + "/".join(quote(part, safe="") for part in (repository, *parts))
