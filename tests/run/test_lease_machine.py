"""Any interleaving of runners on one lease in S3, with answers lost: who was overtaken never passes again."""

from __future__ import annotations

import io
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import utc_now
from pii_tracer.run.s3.s3_lease import LeaseObject, S3Lease
from tests.run.test_s3_lease import Told, Watch


class Store:
    """A bucket with conditional writes, as S3 has them; it can lose an answer before or after the write."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.writes = 0
        self.lost: list[bool] = []

    def put_object(self, **words: Any) -> Any:
        lost = self.lost.pop() if self.lost and "probe" not in words["Key"] else None
        if lost is False:
            raise ReadTimeoutError(endpoint_url="http://store")
        there = self.objects.get(words["Key"])
        if "IfNoneMatch" in words and there is not None:
            raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
        if "IfMatch" in words and there is None:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "PutObject")
        if "IfMatch" in words and there is not None and there[1] != words["IfMatch"]:
            raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
        self.writes += 1
        self.objects[words["Key"]] = (words["Body"], f'"{self.writes}"')
        if lost:
            raise ReadTimeoutError(endpoint_url="http://store")
        return {"ETag": f'"{self.writes}"'}

    def get_object(self, **words: Any) -> Any:
        if words["Key"] not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        body, etag = self.objects[words["Key"]]
        return {"Body": io.BytesIO(body), "ETag": etag}

    def list_object_versions(self, **words: Any) -> Any:
        return {"Versions": [{"Key": k, "VersionId": "null"} for k in self.objects if k.startswith(words["Prefix"])]}

    def delete_object(self, **words: Any) -> None:
        self.objects.pop(words["Key"], None)


class Leases(RuleBasedStateMachine):
    """passed: the tokens under which a runner was told that it holds the lease, in order."""

    @initialize()
    def start(self) -> None:
        self.store = Store()
        self.place = LeaseObject(self.store, "b", "plan.lease.json")
        self.history = Told()
        self.leases: list[S3Lease] = []
        self.passed: list[int] = []

    @rule(alive=st.booleans(), which=st.integers(0, 5), lost=st.none() | st.booleans())
    def acquire(self, alive: bool, which: int, lost: bool | None) -> None:
        """Somebody wants it; the one who is watched gives a sign, or is silent."""
        held = self.leases[which % len(self.leases)] if self.leases else None
        sign = (lambda: self._check(held)) if alive and held is not None else (lambda: None)
        watch = Watch(meanwhile=sign)
        self.store.lost = [] if lost is None else [lost]
        try:
            lease = S3Lease.acquire(
                self.place, self.history, utc_now, beat_seconds=1e6, sleep=watch.sleep, monotonic=watch.monotonic
            )
        except Refused:
            return
        finally:
            self.store.lost = []
        self.leases.append(lease)
        self.passed.append(lease.token)

    @rule(which=st.integers(0, 5), lost=st.none() | st.booleans())
    def check(self, which: int, lost: bool | None) -> None:
        if self.leases:
            self.store.lost = [] if lost is None else [lost]
            self._check(self.leases[which % len(self.leases)])
            self.store.lost = []

    def _check(self, lease: S3Lease) -> None:
        try:
            lease.check()
        except Refused:
            return
        self.passed.append(lease.token)

    @rule(which=st.integers(0, 5), lost=st.none() | st.booleans())
    def release(self, which: int, lost: bool | None) -> None:
        if self.leases:
            self.store.lost = [] if lost is None else [lost]
            self.leases[which % len(self.leases)].release()
            self.store.lost = []

    @rule(head=st.text("abc", min_size=1, max_size=3))
    def written(self, head: str) -> None:
        self.history.heads.append(head)

    @invariant()
    def who_was_overtaken_never_passes_again(self) -> None:
        if hasattr(self, "passed"):
            assert self.passed == sorted(self.passed)

    @invariant()
    def no_two_have_one_token(self) -> None:
        if hasattr(self, "leases"):
            tokens = [lease.token for lease in self.leases]
            assert len(set(tokens)) == len(tokens)

    def teardown(self) -> None:
        for lease in getattr(self, "leases", ()):
            lease.release()


Leases.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestLeases = Leases.TestCase
