"""Steps on files in a real HDFS, run one by one, with what the journal would keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from executors.context import ExecutionContext
from executors.stores.hdfs.executor import HdfsExecutor
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import DatasetId, Format, KeySet, Match, MatchTerm
from pii_tracer.model.locations import hdfs_location
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Progress
from planners.content_digests import keyed
from tests.hdfs.shop import MAIL, USER, Shop
from tests.review import plans
from tests.waivers import MARKS

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)


class Keyring:
    """The person's keys, as the sealed manifest holds them."""

    key_sets = (
        KeySet(name="user.uid", origin="uid", weak=False, values=(("person", USER),)),
        KeySet(name="user.mail", origin="mail", weak=False, values=(("person", MAIL),)),
    )

    def key_set(self, name: str) -> KeySet:
        return next(keys for keys in self.key_sets if keys.name == name)


def step_on(location: str, action: Action = Action.HDFS_REWRITE, executor: str = "hdfs") -> Step:
    """A step on a place."""
    return plans.step("c/01", "c", action=action, executor=executor, parameters={"location": location})


def files_at(location: str, dataset: DatasetId, kind: Format = Format.CSV) -> Copy:
    """A folder of bare files that hold the key of the person."""
    match = Match(terms=(MatchTerm(column="uid", key_set="user.uid", type="string"),))
    return plans.copy("c", dataset=dataset, table=None, location=location, format=kind, match=match)


@dataclass
class Run:
    """One step on a place."""

    shop: Shop
    action: Action
    parameters: dict[str, Any]
    format: Format = Format.CSV
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def of_files(cls, shop: Shop, action: Action, *paths: str, folder: str) -> Run:
        """A step on some files as they are now."""
        client, files = shop.hdfs.client(), []
        for path in paths:
            found = client.status(path)
            one = {"path": path, "size": found.size, "modified": found.modified, "file_id": found.file_id}
            files.append(one | {"checksum": client.checksum(path)})
        more = {"format": "csv"} if action is Action.HDFS_REWRITE else {}
        place = {"location": f"{shop.hdfs.uri}{folder}", "plan_id": "plan-1"}
        return cls(shop, action, {**place, "files": files, **more})

    @property
    def executor(self) -> HdfsExecutor:
        estate = load_estate(self.shop.base / "pii-tracer.yaml")
        return HdfsExecutor(
            ExecutionContext(
                estate,
                self.shop.base,
                Keyring(),
                lambda: NOW,
                told=lambda step: self.notes,
                note=lambda step, facts: self.notes.append(facts),
                marks=MARKS,
            )
        )

    @property
    def step(self) -> Step:
        step = step_on(self.parameters["location"], self.action)
        return step.model_copy(update={"parameters": keyed(self.parameters, MARKS)})

    @property
    def copy(self) -> Copy:
        location = self.parameters["location"]
        return files_at(location, hdfs_location(location).dataset, self.format)

    def check(self) -> None:
        self.executor.check(self.step, self.copy)

    def run(self) -> dict[str, Any]:
        """Its facts."""
        return self.executor.run(self.step, self.copy).facts

    def ok(self) -> bool:
        return self.executor.verify(self.step, self.copy).ok

    def probe(self) -> Progress:
        return self.executor.probe(self.step, self.copy)


class Killed(BaseException):
    """The process is gone: nothing catches this."""


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> Iterator[Callable[[], int]]:
    """Kill the run after so many requests that write; the request itself is done. Gives how many there were."""
    real, count = WebHdfs._asked, 0

    def counted(self: WebHdfs, what: str, path: str, method: str, url: str, **more: Any) -> bytes:
        nonlocal count
        answer = real(self, what, path, method, url, **more)
        if method != "GET" and "noredirect" not in url:
            count += 1
            if count == calls:
                raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(WebHdfs, "_asked", counted)
        yield lambda: count


@contextmanager
def appending(shop: Shop, path: str) -> Iterator[None]:
    """Somebody has begun to write at the end of a file, and not ended."""
    place = urlsplit(str(shop.hdfs.ask(path, "APPEND", method="POST", noredirect="true")["Location"]))
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        connection.putrequest("POST", f"{place.path}?{place.query}")
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b"1")
        until = datetime.now().timestamp() + 60
        while not shop.hdfs.client().is_open(path):
            assert datetime.now().timestamp() < until
        yield
    finally:
        connection.close()
