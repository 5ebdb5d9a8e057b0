"""Steps on objects in the stand-in, run one by one, with what the journal would keep."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import pytest

from executors.context import ExecutionContext
from executors.stores.object_places.executor import ObjectsExecutor
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.stores.gcs.json_api import GcsBucket
from pii_tracer.model.actions import Action
from pii_tracer.model.locations import object_location
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from planners.content_digests import keyed
from tests.gcs.shop import BUCKET, Shop
from tests.hdfs.running import Keyring, Killed, files_at, step_on
from tests.waivers import MARKS

PLACE = f"gs://{BUCKET}/a"


@dataclass
class Run:
    """One step on the objects in `a/`."""

    shop: Shop
    action: Action
    parameters: dict[str, Any]
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def rewriting(cls, shop: Shop) -> Run:
        """A rewrite of what is live there now."""
        return cls(shop, Action.OBJECT_REWRITE, {**_PLAN, "format": "csv", "versions": refs(shop, "live")})

    @classmethod
    def deleting(cls, shop: Shop, replaced: list[dict[str, Any]], *, without_object: bool = False) -> Run:
        """A deletion of what is noncurrent there now, and of what was replaced."""
        old = [one for one in refs(shop, "noncurrent") if one not in replaced]
        more = {"versions": old, "replaced": replaced, "without_object": without_object}
        return cls(shop, Action.OBJECT_DELETE_VERSIONS, {**_PLAN, **more})

    @classmethod
    def waiting(cls, shop: Shop, versions: list[dict[str, Any]]) -> Run:
        """A wait for deleted bytes."""
        names = [{name: one[name] for name in ("key", "version_id")} for one in versions]
        return cls(shop, Action.OBJECT_AWAIT_PURGE, {**_PLAN, "versions": names, "soft_delete_seconds": 1})

    @property
    def executor(self) -> ObjectsExecutor:
        return ObjectsExecutor(
            ExecutionContext(
                load_estate(self.shop.base / "pii-tracer.yaml"),
                self.shop.base,
                Keyring(),
                lambda: datetime.now(timezone.utc),
                told=lambda step: self.notes,
                note=lambda step, facts: self.notes.append(facts),
                finds=ScanFinder,
                marks=MARKS,
            )
        )

    @property
    def step(self) -> Step:
        step = step_on(PLACE, self.action, "objects")
        return step.model_copy(update={"parameters": keyed(self.parameters, MARKS)})

    @property
    def copy(self) -> Copy:
        return files_at(PLACE, object_location(PLACE).dataset)

    def check(self) -> None:
        self.executor.check(self.step, self.copy)

    def outcome(self) -> Outcome:
        return self.executor.run(self.step, self.copy)

    def run(self) -> dict[str, Any]:
        """Its facts."""
        return self.outcome().facts

    def seen(self) -> Check:
        return self.executor.verify(self.step, self.copy)

    def probe(self) -> Progress:
        return self.executor.probe(self.step, self.copy)


_PLAN = {"location": PLACE, "plan_id": "plan-1"}


def refs(shop: Shop, state: str) -> list[dict[str, Any]]:
    """Versions of a state as a plan names them."""
    store, found = shop.gcs.store(BUCKET), []
    for version in store.all_versions("a/"):
        if version.state.value == state:
            told = {name: getattr(version, name) for name in ("key", "version_id", "mark", "size")}
            digest = hashlib.sha256(store.read_version(version, 0, version.size)).hexdigest()
            found.append({**told, "sha256": digest})
    return found


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> Any:
    """Kill the run after so many requests that write; the request itself is done. Gives how many there were."""
    real, count = GcsBucket._asked, 0

    def counted(self: GcsBucket, what: str, key: str | None, method: str, *rest: Any, **more: Any) -> bytes:
        nonlocal count
        answer = real(self, what, key, method, *rest, **more)
        if method != "GET":
            count += 1
            if count == calls:
                raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(GcsBucket, "_asked", counted)
        yield lambda: count
