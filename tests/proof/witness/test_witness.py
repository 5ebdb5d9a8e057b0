"""What a step did is counted in the storage, by somebody else than who did it, and a crash does not lose it."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pii_tracer.app.execution.storage_witnesses import watched
from pii_tracer.app.verification import Verification
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import CopyKind, Format
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.proof.evidence_leaves import ScopeFile, lines_digest, scope_lines
from pii_tracer.proof.storage_change_witness import (
    FileBefore,
    Seen,
    Witness,
    before_place,
    in_log,
    manifest_of,
    read_before,
)
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.runner import run
from tests.review.plans import copy, plan, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Fuse,
    Killed,
    Ticking,
    World,
)

PERSON = "8841302"


@dataclass
class Vacuum(FakeExecutor):
    """Its second step removes what lies in the copy's folder and writes one file; it counts nothing itself."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        if step.id == "c1/2" and copy is not None:
            for path in Path(copy.location).rglob("*.parquet"):
                path.unlink()
            (Path(copy.location) / "new.parquet").write_bytes(b"n")
        return super().run(step, copy)


def lake(folder: Path) -> ErasurePlan:
    for name, size in (("a.parquet", 10), (f"uid={PERSON}/b.parquet", 20), ("keep.txt", 5)):
        (folder / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "lake" / name).write_bytes(b"x" * size)
    place = str(folder / "lake")
    branch = copy("c2", kind=CopyKind.TABLE_HISTORY, location=place)
    steps = [step("c2/1", "c2"), step("c1/1", "c1", after=["c2/1"]), step("c1/2", "c1", after=["c1/1"])]
    return plan(steps=steps, copies=[copy("c1", location=place, format=Format.PARQUET), branch])


def verification(made: ErasurePlan) -> Verification:
    mask = SimpleNamespace(mask=lambda text: text.replace(PERSON, "[uid]"))
    return cast(Verification, SimpleNamespace(plan=made, patterns=mask))


def walk(folder: Path, made: ErasurePlan, inner: FakeExecutor, clock: Ticking, token: int = 1) -> Journal:
    executors = watched({"fake": inner}, verification(made), folder / "run")
    journal = Journal.open(folder / "journal", clock)
    run(made, executors, journal, clock=clock, lease=FakeLease(token))
    return journal


def facts_of(journal: Journal, step_id: str) -> dict[str, object]:
    records = [r for r in journal.records if r.kind is Kind.STEP_VERIFIED and r.facts["step"] == step_id]
    return dict(records[-1].facts["facts"])


REMOVED = {"files_removed": 2, "bytes_removed": 30, "files_added": 1}


def test_files_and_bytes_are_counted_and_hashed_before(tmp_path: Path) -> None:
    journal = walk(tmp_path, lake(tmp_path), Vacuum(World()), Ticking())
    assert REMOVED.items() <= facts_of(journal, "c1/2").items()
    assert {"files_removed": 0, "bytes_removed": 0}.items() <= facts_of(journal, "c2/1").items()
    shown = facts_of(journal, "c1/2")
    names = ("keep.txt", b"x" * 5), ("new.parquet", b"n")
    scope = [ScopeFile(path=f"c1/{name}", sha256=hashlib.sha256(data).hexdigest()) for name, data in names]
    assert shown["manifest"] == lines_digest(scope_lines(scope)), "as the verifier's scope"
    assert shown["manifest_before"] == facts_of(journal, "c1/1")["manifest"] != shown["manifest"]
    before = read_before(before_place(tmp_path / "run", "c1"))
    assert [(f.path, f.size) for f in before] == [("a.parquet", 10), ("keep.txt", 5), ("uid=[uid]/b.parquet", 20)]
    assert all(len(f.sha256 or "") == 64 for f in before)
    kept = b"".join(p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file())
    assert PERSON.encode() not in kept + (tmp_path / "journal").read_bytes()


@pytest.mark.parametrize("moment", range(11, 15))
def test_a_crash_does_not_lose_the_count(tmp_path: Path, moment: int) -> None:
    made, world, clock = lake(tmp_path), World(), Ticking()
    with pytest.raises(Killed):
        walk(tmp_path, made, Vacuum(world, Fuse(moment)), clock)
    clock.now += timedelta(minutes=1)
    journal = walk(tmp_path, made, Vacuum(world), clock, 2)
    assert REMOVED.items() <= facts_of(journal, "c1/2").items()
    assert len(read_before(before_place(tmp_path / "run", "c1"))) == 3


def test_what_cannot_be_looked_at_is_not_known_and_stops_nothing(tmp_path: Path) -> None:
    def refuse(_: Copy) -> Seen:
        raise ScanError("the folder is gone")

    def refuse_too(_: Step, __: Copy) -> Iterable[FileBefore]:
        raise OSError

    made, clock = lake(tmp_path), Ticking()
    watched = Witness(Vacuum(World()), tmp_path / "run", refuse, refuse_too, lambda c: c)
    journal = Journal.open(tmp_path / "journal", clock)
    state = run(made, {"fake": watched}, journal, clock=clock, lease=FakeLease())
    assert len(state.done) == 3
    assert facts_of(journal, "c1/2") == {"rows": 0}
    assert read_before(before_place(tmp_path / "run", "c1")) == ()


def test_a_place_that_cannot_be_listed_any_more_keeps_what_was_known_before(tmp_path: Path) -> None:
    seen = iter([Seen({"a": 1}, "sha256:1"), None])
    watched = Witness(Vacuum(World(done=["c1/1"])), tmp_path, lambda _: next(seen), lambda *_: None, lambda c: c)
    watched.run(step("c1/1"), copy("c1"))
    assert watched.verify(step("c1/1"), copy("c1")).facts == {"rows": 0, "manifest_before": "sha256:1"}


@pytest.mark.parametrize(
    "kept", [b"", b"no listing", gzip.compress(b"[1]", mtime=0), gzip.compress(b"{}", mtime=0)[:-3]]
)
def test_a_listing_that_cannot_be_read_is_none(tmp_path: Path, kept: bytes) -> None:
    watched = Witness(Vacuum(World(done=["c1/1"])), tmp_path, lambda _: Seen({}), lambda *_: None, lambda c: c)
    watched.run(step("c1/1"), copy("c1"))
    (listing,) = (tmp_path / "before").iterdir()
    listing.write_bytes(kept)
    assert watched.verify(step("c1/1"), copy("c1")).facts == {"rows": 0}


def test_a_place_without_files_tells_its_version(tmp_path: Path) -> None:
    seen = iter([Seen(None, "sha256:1", "id 0-5"), Seen(None, "sha256:2", "id 3-5")])
    watched = Witness(Vacuum(World(done=["c1/1"])), tmp_path, lambda _: next(seen), lambda *_: None, lambda c: c)
    watched.run(step("c1/1"), copy("c1"))
    assert watched.verify(step("c1/1"), copy("c1")).facts == {
        "rows": 0,
        "manifest_before": "sha256:1",
        "manifest": "sha256:2",
        "snapshot_before": "id 0-5",
        "snapshot": "id 3-5",
    }


@pytest.mark.parametrize(
    ("kind", "older", "newest", "not_it"),
    [
        (DELTA, f"_delta_log/{9:020}.json", f"_delta_log/{10:020}.json", f"_delta_log/{11:020}.crc"),
        (ICEBERG, "metadata/v9.metadata.json", "metadata/v10.metadata.json", "metadata/snap-99.avro"),
        (
            ICEBERG,
            "metadata/00009-ab.metadata.json",
            "metadata/00010-aa.gz.metadata.json",
            "metadata/version-hint.text",
        ),
        (
            HUDI,
            ".hoodie/timeline/20261121090000000_20261121090001000.deltacommit",
            ".hoodie/timeline/20261121090002000_20261121090003000.clean",
            ".hoodie/timeline/20261121090009000.clean.inflight",
        ),
        (
            HUDI,
            ".hoodie/20261121090000000.commit",
            ".hoodie/20261121090002000.clean",
            ".hoodie/hoodie.properties",
        ),
    ],
)
def test_the_newest_file_of_a_table_s_log(tmp_path: Path, kind: Format, older: str, newest: str, not_it: str) -> None:
    assert manifest_of(tmp_path, kind) is None
    for name in (older, newest, not_it):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    first = manifest_of(tmp_path, kind)
    (tmp_path / not_it).write_bytes(b"changed")
    (tmp_path / older).write_bytes(b"changed")
    assert manifest_of(tmp_path, kind) == first
    (tmp_path / newest).write_bytes(b"changed")
    assert manifest_of(tmp_path, kind) != first
    assert manifest_of(tmp_path, Format.PARQUET) is None
    [before, last, nothing] = (in_log(name, kind) for name in (older, newest, not_it))
    assert before is not None
    assert last is not None
    assert before < last
    assert nothing is None
