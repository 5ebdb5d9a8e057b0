"""The stand-in's HTTP API, held to `api_facts.json`: what a call may not do there is noted, and a test then fails."""

from __future__ import annotations

import base64
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft202012Validator

from tests.lakefs.standin import Call, Entry, Lakefs, Refused, Repo
from tests.servers import Kept

FACTS = json.loads((Path(__file__).parent / "api_facts.json").read_text(encoding="utf-8"))
ACCESS, SECRET = "AKIAIOSFODNN7EXAMPLE", "example-secret"

_OPERATIONS: list[tuple[str, re.Pattern[str], str]] = [
    (name.split()[0], re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", name.split()[1]) + r"\Z"), name)
    for name in FACTS["operations"]
]


def _schema_errors(name: str, value: Any) -> list[str]:
    schema = {**FACTS["schemas"][name], "schemas": FACTS["schemas"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


class _Handler(Kept):
    lakefs: Lakefs

    def do_GET(self) -> None:
        self._serve()

    do_PUT = do_POST = do_DELETE = do_GET

    def _serve(self) -> None:
        split = urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        call = Call(self.command, split.path, query)
        self.lakefs.calls.append(call)
        if split.path.startswith("/collector/"):  # stands for the collector's own job, and is no part of the API
            self.lakefs.collect(self.lakefs.repos[split.path.rpartition("/")[2]])
            self._send(200, None)
            return
        if split.path.startswith("/presigned/"):
            self._presigned(split.path)
            return
        path = split.path.removeprefix("/api/v1")
        for method, pattern, name in _OPERATIONS:
            match = pattern.match(path) if method == self.command else None
            if match:
                self._operation(name, {k: unquote(v) for k, v in match.groupdict().items()}, query, data, call)
                return
        self._violation(f"{self.command} {path} is no operation")
        self._send(404, {"message": "no such operation"})

    def _operation(self, name: str, names: dict[str, str], query: dict[str, str], data: bytes, call: Call) -> None:
        facts = FACTS["operations"][name]
        allowed = facts.get("query", {})
        for key in query.keys() - allowed.keys():
            self._violation(f"{name} has no parameter {key}")
        for key, needed in allowed.items():
            if needed and key not in query:
                self._violation(f"{name} needs the parameter {key}")
        fault = self.lakefs.faults(self.command, call.path)
        given = self.headers.get("Authorization", "")
        try:
            if given != "Basic " + base64.b64encode(f"{ACCESS}:{SECRET}".encode()).decode():
                raise Refused(401, "error authenticating request")
            if isinstance(fault, int):
                raise Refused(fault, "as the test wants")
            body = self._body(name, facts, data)
            if names["repository"] not in self.lakefs.repos:
                raise Refused(404, "no such repository")
            repo = self.lakefs.repos[names["repository"]]
            if "branch" in names and names["branch"] not in repo.heads:
                raise Refused(404, "no such branch")
            status, answer = _ACTS[name](self, repo, names, query, body)
        except Refused as refused:
            status, answer = refused.status, {"message": str(refused)}
            if status not in facts["refuses"]:
                self._violation(f"{name} is never refused with {status}")
        call.status = status
        if str(status) in facts["answers"]:
            wanted = facts["answers"][str(status)]
            if wanted not in (None, "bytes"):
                for error in _schema_errors(wanted, answer):
                    self._violation(f"{name} answers {error}")
        self._send(status, answer, fault)

    def _body(self, name: str, facts: dict[str, Any], data: bytes) -> Any:
        wanted = facts.get("body")
        if wanted == "multipart":
            return data
        if wanted is None:
            if data:
                self._violation(f"{name} takes no body")
            return None
        if self.headers.get("Content-Type") != "application/json":
            self._violation(f"{name} takes JSON")
        body = json.loads(data)
        errors = _schema_errors(wanted, body)
        if errors:
            self._violation(f"{name}: {errors}")
            raise Refused(400, "validation")
        return body

    def _violation(self, text: str) -> None:
        self.lakefs.violations.append(text)

    def _send(self, status: int, answer: Any, fault: int | str | None = None) -> None:
        data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        if fault == "odd":
            data = b"<html>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault == "cut":
            data, self.close_connection = data[: len(data) // 2], True
        self.wfile.write(data)

    def _presigned(self, path: str) -> None:
        if self.headers.get("Authorization"):
            self._violation("credentials went to a presigned URL")
        file = self.lakefs.root / unquote(path.removeprefix("/presigned/"))
        self._send(200, file.read_bytes())

    # --- operations ---

    def _page(self, items: list[dict[str, Any]], key: str, query: dict[str, str]) -> dict[str, Any]:
        keys = [item[key] for item in items]
        start = keys.index(query["after"]) + 1 if query.get("after") in keys else 0
        size = min(self.lakefs.page, int(query.get("amount", 100)))
        part = items[start : start + size]
        more = start + size < len(items)
        pagination = {
            "has_more": more,
            "next_offset": part[-1][key] if more else "",
            "results": len(part),
            "max_per_page": 1000,
        }
        return {"pagination": pagination, "results": part}

    def repository(self, repo: Repo, *_: Any) -> tuple[int, Any]:
        namespace = f"local://{repo.name}"
        return 200, {"id": repo.name, "creation_date": 0, "default_branch": "main", "storage_namespace": namespace}

    def refs(self, found: dict[str, str], query: dict[str, str]) -> tuple[int, Any]:
        items = [{"id": name, "commit_id": found[name]} for name in sorted(found)]
        return 200, self._page(items, "id", query)

    def log(self, repo: Repo, names: dict[str, str], query: dict[str, str], _: Any) -> tuple[int, Any]:
        seen: dict[str, None] = {}
        stack = [repo.commit_of(names["ref"])]
        while stack:
            name = stack.pop(0)
            if name not in seen:
                seen[name] = None
                stack += repo.commits[name]["parents"]
        return 200, self._page([self._commit(repo, name) for name in seen], "id", query)

    def _commit(self, repo: Repo, name: str) -> dict[str, Any]:
        commit = repo.commits[name]
        return {
            "id": name,
            "parents": commit["parents"],
            "committer": "test",
            "message": commit["message"],
            "creation_date": int(commit["created"].timestamp()),
            "meta_range_id": commit["meta_range_id"],
            "metadata": commit["metadata"],
            "version": 1,
        }

    def objects(self, repo: Repo, names: dict[str, str], query: dict[str, str], _: Any) -> tuple[int, Any]:
        tree = repo.tree(names["ref"])
        return 200, self._page([tree[path] for path in sorted(tree)], "path", query)

    def stat(self, repo: Repo, names: dict[str, str], query: dict[str, str], _: Any) -> tuple[int, Any]:
        return 200, self._entry(repo, names["ref"], query["path"])

    def get_object(self, repo: Repo, names: dict[str, str], query: dict[str, str], _: Any) -> tuple[int, Any]:
        data = self.lakefs.bytes_of(self._entry(repo, names["ref"], query["path"]))
        wanted = re.match(r"bytes=(\d+)-(\d+)\Z", self.headers.get("Range", ""))
        if not wanted:
            return 200, data
        first, last = int(wanted[1]), int(wanted[2])
        if first >= len(data):
            raise Refused(416, "range")
        return 206, data[first : last + 1]

    def _entry(self, repo: Repo, ref: str, path: str) -> Entry:
        tree = repo.tree(ref)
        if path not in tree:
            raise Refused(404, "no such object")
        return tree[path]

    def diff(self, repo: Repo, names: dict[str, str], query: dict[str, str], _: Any) -> tuple[int, Any]:
        branch = names["branch"]
        committed = repo.commits[repo.heads[branch]]["tree"]
        kinds = {
            path: "removed" if entry is None else "changed" if path in committed else "added"
            for path, entry in repo.staging[branch].items()
        }
        items = [{"type": kinds[path], "path": path, "path_type": "object"} for path in sorted(kinds)]
        return 200, self._page(items, "path", query)

    def upload(self, repo: Repo, names: dict[str, str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        branch, path = names["branch"], query["path"]
        self._writable(repo, branch)
        boundary = self.headers["Content-Type"].partition("boundary=")[2]
        head, _, rest = body.partition(b"\r\n\r\n")
        if not head.startswith(f"--{boundary}\r\n".encode()) or b'name="content"' not in head:
            raise Refused(400, "no part is called content")
        data = rest[: -len(f"\r\n--{boundary}--\r\n")]
        there = repo.tree(branch).get(path)
        wanted = self.headers.get("If-Match")
        if wanted is not None and (there is None or there["checksum"] != wanted):
            raise Refused(412, "precondition failed")
        marks = {
            k.lower().removeprefix("x-lakefs-meta-"): v
            for k, v in self.headers.items()
            if k.lower().startswith("x-lakefs-meta-")
        }
        kind = re.search(rb"Content-Type: ([^\r]+)", head)
        more = {"metadata": marks, "content_type": kind[1].decode() if kind else "application/octet-stream"}
        return 201, self.lakefs.put(repo, branch, path, data, **more)

    def _writable(self, repo: Repo, branch: str) -> None:
        if repo.protects(branch):
            raise Refused(403, "cannot write to protected branch")

    def reset(self, repo: Repo, names: dict[str, str], _: Any, body: dict[str, Any]) -> tuple[int, Any]:
        self._writable(repo, names["branch"])
        staged = repo.staging[names["branch"]]
        if body["type"] != "object" or body["path"] not in staged:
            raise Refused(404, "nothing to reset")
        del staged[body["path"]]
        return 204, None

    def commit(self, repo: Repo, names: dict[str, str], _: Any, body: dict[str, Any]) -> tuple[int, Any]:
        self._writable(repo, names["branch"])
        if repo.staging[names["branch"]] and not self.lakefs.hook(names["branch"]):
            raise Refused(412, "a pre-commit hook failed")
        made = self.lakefs.commit(repo, names["branch"], body["message"], **body.get("metadata", {}))
        return 201, self._commit(repo, made)

    def get_rules(self, repo: Repo, *_: Any) -> tuple[int, Any]:
        if repo.rules is None:
            raise Refused(404, "no rules")
        return 200, repo.rules

    def put_rules(self, repo: Repo, _: Any, __: Any, body: dict[str, Any]) -> tuple[int, Any]:
        repo.rules = body
        return 204, None

    def drop_rules(self, repo: Repo, *_: Any) -> tuple[int, Any]:
        repo.rules = None
        return 204, None

    def protection(self, repo: Repo, *_: Any) -> tuple[int, Any]:
        return 200, [{"pattern": pattern} for pattern in repo.protected]

    def prepare(self, repo: Repo, *_: Any) -> tuple[int, Any]:
        if repo.rules is None:
            raise Refused(404, "no rules")
        run = uuid.uuid4().hex
        place = f"{repo.name}/_lakefs/retention/gc/commits/run_id={run}/commits.csv"
        file = self.lakefs.root / place
        file.parent.mkdir(parents=True)
        file.write_text("commit_id,metarange_id\n" + "".join(f"{c},x\n" for c in sorted(self.lakefs.active(repo))))
        answer = {"run_id": run, "gc_commits_location": f"local://{place}", "gc_addresses_location": "local://x"}
        if self.lakefs.presign:
            answer["gc_commits_presigned_url"] = f"{self.lakefs.url}/presigned/{place}"
        return 201, answer


_BRANCH, _REF = "/repositories/{repository}/branches/{branch}", "/repositories/{repository}/refs/{ref}"
_SETTINGS = "/repositories/{repository}/settings"
_ACTS: dict[str, Callable[..., tuple[int, Any]]] = {
    "GET /repositories/{repository}": _Handler.repository,
    "GET /repositories/{repository}/branches": lambda h, r, n, q, b: h.refs(r.heads, q),
    "GET /repositories/{repository}/tags": lambda h, r, n, q, b: h.refs(r.tags, q),
    f"GET {_BRANCH}": lambda h, r, n, q, b: (200, {"id": n["branch"], "commit_id": r.heads[n["branch"]]}),
    f"PUT {_BRANCH}": _Handler.reset,
    f"GET {_BRANCH}/diff": _Handler.diff,
    f"POST {_BRANCH}/commits": _Handler.commit,
    f"POST {_BRANCH}/objects": _Handler.upload,
    f"GET {_REF}/commits": _Handler.log,
    f"GET {_REF}/objects": _Handler.get_object,
    f"GET {_REF}/objects/ls": _Handler.objects,
    f"GET {_REF}/objects/stat": _Handler.stat,
    f"GET {_SETTINGS}/gc_rules": _Handler.get_rules,
    f"PUT {_SETTINGS}/gc_rules": _Handler.put_rules,
    f"DELETE {_SETTINGS}/gc_rules": _Handler.drop_rules,
    f"GET {_SETTINGS}/branch_protection": _Handler.protection,
    "POST /repositories/{repository}/gc/prepare_commits": _Handler.prepare,
}


@contextmanager
def serving(root: Path, now: datetime | None = None) -> Iterator[Lakefs]:
    """A server on loopback, over a folder for its objects."""
    lakefs = Lakefs(root, now or datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc))
    handler = type("Handler", (_Handler,), {"lakefs": lakefs})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    lakefs.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield lakefs
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
