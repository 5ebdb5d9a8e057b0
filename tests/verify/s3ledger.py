"""A folder in a bucket, searched as planning and verification do, with a scan ledger."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pii_tracer.app.planning.s3_place_search import search_places, with_remote
from pii_tracer.app.s3_reading import look_at
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.s3.archive_versions import iter_version_bytes, s3_clients
from pii_tracer.model.datasets import Format, KeyPart, KeySet, Match, MatchTerm
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.locations import S3Location
from pii_tracer.scan.hits import Reading
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.byte_search import verify_objects
from tests.s3support import REGION, World, estate
from tests.verify.conftest import a_copy

HER, HERS, OTHERS = "ipsita.nayak@mail.example", "ipsita.nayak@mail.exampla", "someone.other@mail.exampl"
NOW = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
OBJECTS = 9
LAST = f"{OBJECTS - 1}.csv"


def patterns() -> Patterns:
    return build_patterns([KeySet(name="email", origin="people.email", weak=False, values=(("s", HER),)), NUMBER])


NUMBER = KeySet(
    name="number", origin="people.number", weak=False, columns=("tenant", "no"), values=(("s", joined(["7", "55"])),)
)
"""Her key of two columns, of which each value is other people's, too."""
BY_NUMBER = Match(
    terms=(MatchTerm(column="tenant", type="string", key_set="number", beside=(KeyPart(column="no", type="string"),)),)
)


def rows(mail: str) -> bytes:
    return f"n,mail\n1,{mail}\n".encode()


class First(random.Random):
    """Draws the first of them: the last object is never in the sample."""

    def sample(self, population: Any, k: int, **more: Any) -> list[Any]:
        return list(population)[:k]


@dataclass
class Place:
    """A folder in a bucket with a few objects, and the ledger. sizes: of what GetObject sent."""

    world: World
    base: Path
    versioned: bool
    sizes: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    draw: random.Random = field(default_factory=First)

    def __post_init__(self) -> None:
        self.bucket = self.world.new("known", versioned=self.versioned)
        self.estate = estate(self.world.endpoint_url, roots=[f"s3://{self.bucket}/t"])
        self.client = s3_clients(self.estate)(REGION)
        for number in range(OBJECTS):
            self.put(f"{number}.csv", rows(f"{number:09}.other@mail.exampl"))

    def put(self, name: str, body: bytes, **more: Any) -> None:
        self.world.put(self.bucket, f"t/{name}", body, **more)

    @property
    def ledger(self) -> ScanLedger:
        return ScanLedger(self.base / "ledger.sqlite", b"k" * 32, lambda: NOW, self.told.append)

    def searchers(self, *, kept: bool = True) -> LedgerSearchers:
        return LedgerSearchers(self.ledger if kept else None, THREADS, draw=self.draw)

    def plan(self, *, kept: bool = True) -> tuple[str, Reading]:
        """What planning sees of the folder, and how it was read."""
        inventory, paths = discover(self.estate, self.base), EstatePaths(self.estate, self.base)
        inventory, searchers = with_remote(inventory, self.estate, paths, str), self.searchers(kept=kept)
        seen = self.counted(lambda: search_places(inventory, self.estate, patterns(), True, str, searchers=searchers))
        return repr(seen), searchers.reading

    def verify(self, *, kept: bool = True) -> tuple[str, Reading]:
        """What the verifier sees of it."""
        place, searchers = S3Location(bucket=self.bucket, key="t"), self.searchers(kept=kept)
        seen = self.counted(lambda: look_at(self.estate, place, "t", patterns(), NO_TEXTS, searchers, alone=True))
        return seen.model_dump_json(), searchers.reading

    def archive(self, *, kept: bool = True, match: Match | None = None) -> tuple[str, Reading]:
        """The same as an archive. match: by which its rows are compared."""
        copy, searchers = a_copy(Format.CSV, f"s3://{self.bucket}/t", match=match), self.searchers(kept=kept)
        versions = iter_version_bytes(self.client, self.bucket, "t/", datetime.now(timezone.utc))
        seen = self.counted(lambda: verify_objects(copy, patterns(), versions, searchers))
        return seen.model_dump_json(), searchers.reading

    def counted(self, look: Callable[[], Any]) -> Any:
        """Notes how much was downloaded for it."""
        self.sizes.clear()

        def note(parsed: Any, **_: Any) -> None:
            self.sizes.append(parsed.get("ContentLength", 0))

        with hooked(self.client, "after-call.s3.GetObject", note):
            return look()

    @property
    def whole(self) -> int:
        """So many objects were downloaded."""
        return sum(size > 1 for size in self.sizes)


class hooked:
    """For a while, something that boto does with requests or answers."""

    def __init__(self, client: Any, event: str, act: Callable[..., Any]) -> None:
        self._events, self._event, self._act = client.meta.events, event, act

    def __enter__(self) -> None:
        self._events.register(self._event, self._act)

    def __exit__(self, *_: object) -> None:
        self._events.unregister(self._event, self._act)


LOOKS = [Place.plan, Place.verify, Place.archive]
Look = Callable[..., tuple[str, Reading]]
