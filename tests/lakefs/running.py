"""A plan over the shop, made by the command line and run step by step without Spark, on the stand-in's clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from executors.context import ExecutionContext
from executors.stores.lakefs.executor import LakefsExecutor
from pii_tracer.app.lakefs_objects import look
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.stores.lakefs.lakefs_objects import LakefsLook
from tests.lakefs.shop import MAIL, NOW, USER, Shop


def cli(shop: Shop, *words: str) -> int:
    return run([*words, "--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")])


def plan(shop: Shop, *words: str, days: float = 0) -> tuple[int, dict[str, Any]]:
    """The exit code, and the plan file as it was written."""
    out = shop.base / "p.plan.json"
    as_of = (NOW + timedelta(days=days)).isoformat()
    code = cli(shop, "plan", str(shop.base / "request.yaml"), "--as-of", as_of, "--out", str(out), *words)
    return code, json.loads(out.read_text())


class Keyring:
    """The person's keys, as the sealed manifest holds them."""

    key_sets = (
        KeySet(name="user.uid", origin="uid", weak=False, values=(("person", USER),)),
        KeySet(name="user.mail", origin="mail", weak=False, values=(("person", MAIL),)),
    )

    def key_set(self, name: str) -> KeySet:
        return next(keys for keys in self.key_sets if keys.name == name)


@dataclass
class Run:
    """The plan's steps on the repository."""

    shop: Shop
    plan: ErasurePlan
    copy: Copy
    steps: dict[str, Step]
    estate: Estate
    now: datetime = NOW
    verified: dict[str, datetime] = field(default_factory=dict)
    keyring: Keyring = field(default_factory=Keyring)

    @property
    def executor(self) -> LakefsExecutor:
        return LakefsExecutor(
            ExecutionContext(self.estate, self.shop.base, self.keyring, lambda: self.now, self.verified.get)
        )

    def act(self, action: str) -> Outcome:
        """check, run and, where it does not wait, verify."""
        step = self.steps[action]
        self.executor.check(step, self.copy)
        outcome = self.executor.run(step, self.copy)
        if outcome.waiting_until is None:
            assert self.verify(action).ok
            self.verified[step.id] = self.now
        return outcome

    def verify(self, action: str) -> Check:
        return self.executor.verify(self.steps[action], self.copy)

    def probe(self, action: str) -> Progress:
        return self.executor.probe(self.steps[action], self.copy)

    def at(self, days: float) -> None:
        """Both clocks."""
        self.now = NOW + timedelta(days=days)
        self.shop.lakefs.now = self.now

    def look(self) -> LakefsLook:
        patterns = build_patterns(self.keyring.key_sets)
        return look(self.estate, self.shop.base, self.copy, patterns, patterns, self.plan.plan_id)


def prepared(shop: Shop, *words: str, **more: Any) -> Run:
    """Plan, and take the steps of the repository out of the plan."""
    shop.write(**more)
    plan(shop, *words)
    made = ErasurePlan.model_validate_json((shop.base / "p.plan.json").read_bytes())
    copy = next(c for c in made.copies if c.location.startswith("lakefs://"))
    steps = {s.action.value: s for s in made.steps if s.copy_ == copy.id}
    return Run(shop, made, copy, steps, load_estate(shop.base / "pii-tracer.yaml"))


class Killed(BaseException):
    """The process is gone: nothing catches this."""


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> Iterator[Callable[[], int]]:
    """Kill the run after so many requests that write; the request itself is done. Gives how many there were."""
    from pii_tracer.lake.stores.lakefs.client import LakefsClient

    real, count = LakefsClient._bytes, 0

    def counted(self: LakefsClient, method: str, path: str, **more: Any) -> bytes:
        nonlocal count
        answer = real(self, method, path, **more)
        if method != "GET" and not path.endswith("prepare_commits"):
            count += 1
            if count == calls:
                raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(LakefsClient, "_bytes", counted)
        yield lambda: count
