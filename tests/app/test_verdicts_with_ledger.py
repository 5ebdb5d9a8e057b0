"""Plans and verdicts are the same, byte for byte, with the scan ledger and the shapes of columns on and off."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Collection
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app import Settings, plan
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.scan_ledger_file import ledger_of
from pii_tracer.app.settings import moment
from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Request
from pii_tracer.model.errors import ScanError
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.scan.hits import Reading
from pii_tracer.scan.incremental_search import KeptShapes
from pii_tracer.scan.shapes.file_shapes import FileShapes
from tests.cli.small import declared
from tests.s3support import REGION, World, standin, world
from tests.scan import wide_objects

__all__ = ["standin", "world"]

AT = moment("2026-11-28T00:00:00Z")
HIM, HER = 8841302001, 8841302002
MAIL = {HIM: "rahul.menon@mail.example", HER: "ipsita.nayak@mail.example"}
OTHERS = {8841303000 + n: f"x{n}@mail.example" for n in range(40)}
SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: email, category: email}]
"""
JOBS = "INSERT OVERWRITE app.mails SELECT user_id, email FROM app.users;\n"
SETTINGS = tuple(product((True, False), (True, False)))
"""Ledger and shapes."""


class Lake:
    """Delta, bare Parquet and CSV of two persons among others; read with one setting at a time, on the same paths."""

    more, roots = "", "roots: [w]\n"

    def __init__(self, base: Path) -> None:
        self.base = base
        people = MAIL | OTHERS
        for name, part in (("users", people), ("mails", {HIM: MAIL[HIM]} | OTHERS)):
            rows = {"user_id": list(part), "email": list(part.values()), "amount": [n / 3 for n in range(len(part))]}
            write_deltalake(base / "w" / name, pa.table(rows))
        (base / "w" / "bare").mkdir()
        (base / "w" / "bare" / "a.csv").write_text(f"id,note\n1,nobody\n2,of {MAIL[HER]}\n")
        (base / "w" / "bare" / "b.csv").write_text(f"id,note\n1,{HIM}\n")
        (base / "w" / "stray.txt").write_text(f"sent to {MAIL[HIM]}\n")
        (base / "w" / "exports").mkdir()
        self.export("")
        (base / "jobs.sql").write_text(JOBS)
        (base / "policy.yaml").write_text("version: 1\n")
        self.settings((True, False)).key(create=True)

    def export(self, note: str) -> None:
        rows = {
            "mail": list(OTHERS.values()),
            "note": [note, *("-" for _ in list(OTHERS)[1:])],
            "n": range(len(OTHERS)),
        }
        pq.write_table(pa.table(rows), self.base / "w" / "exports" / "part-0.parquet", write_statistics=False)

    def settings(self, given: tuple[bool, bool]) -> Settings:
        """With a state folder of their own, and the same estate key."""
        ledger, shapes = given
        tables = declared("w", {"app.users": "delta", "app.mails": "delta", "app.exports": "parquet"})
        switches = f"scan_ledger: {json.dumps(ledger)}\ncolumn_shapes: {json.dumps(shapes)}\n"
        tables = tables.replace("roots: [w]\n", self.roots)
        (self.base / "pii-tracer.yaml").write_text(tables + SUBJECT + switches + self.more)
        made = Settings(self.base / "pii-tracer.yaml", self.base / f"state-{ledger}-{shapes}")
        known = next(self.base.glob("state-*/keys"), None)
        if known is not None and not made.key_file().exists():
            shutil.copytree(known, made.key_file().parent)
        return made

    def place_in_s3(self, world: World, *, versioned: bool) -> None:
        """The same persons in S3: a Delta table of mails, a folder that no catalog names, and an archive of the users."""
        bucket = self.bucket = world.new("known", versioned=versioned)
        place = {"AWS_ENDPOINT_URL": world.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
        rows = {"user_id": list(MAIL), "email": list(MAIL.values())}
        options = {**place, "AWS_CONDITIONAL_PUT": "etag"}
        write_deltalake(f"s3://{bucket}/mails", pa.table(rows), storage_options=options)
        for number in range(3):
            world.put(bucket, f"stray/{number}.csv", f"id,note\n{number},nobody\n".encode())
        world.put(bucket, "stray/his.csv", f"id,note\n1,{MAIL[HIM]}\n".encode())
        world.put(bucket, "stray/wide.parquet", self.wide({}))
        world.put(bucket, "mails/wide.parquet", self.wide({5: f"of {MAIL[HIM]}"}))
        world.put(bucket, "old/users.csv", f"user_id,email\n{HER},{MAIL[HER]}\n".encode())
        archive = f"  - {{name: old, bucket: {bucket}, prefix: old/, of: app.users, format: csv}}\n"
        reached = f"s3: {{endpoint_url: '{world.endpoint_url}', region: {REGION}}}\n"
        self.more = f"{reached}archives:\n{archive}"
        self.roots = f"roots: [w, 's3://{bucket}/mails', 's3://{bucket}/stray']\n"

    def wide(self, cells: dict[int, str]) -> bytes:
        """An object of which a part is read for another person."""
        return wide_objects.parquet(wide_objects.columns(first=cells))

    def told(self, given: tuple[bool, bool], person: int, out: str) -> tuple[dict[str, str], Reading]:
        """Plan and verdicts as they are written, by what they are about; how the verdicts' files were read."""
        settings = self.settings(given)
        request = {"id": "R-1", "law": "GDPR", "received": AT, "subject": {"type": "user", "key": str(person)}}
        file = settings.state / f"{out}.plan.json"
        plan(settings, [Request.model_validate(request)], as_of=AT, out=file)
        made = load_plan(file).plan
        ring = KeyRing.open(manifest_path(file), made.subjects_digest, settings.key())
        estate = settings.estate()

        def no_spark() -> Any:
            raise ScanError("rows are not looked at here")

        ledger = ledger_of(settings, estate, lambda told: pytest.fail(told))
        looking = Verification(
            made, estate, self.base, ring.key_sets, settings.key().marks, no_spark, lambda: AT, ledger=ledger
        )
        looking.searchers = replace(looking.searchers, draw=random.Random(person))
        # rows are read by Spark, whatever is kept of bytes, and count as not looked at here
        found = {f"verdict {copy.id}": looking.look(copy).model_copy(update={"reading": None}) for copy in made.copies}
        found |= {f"beside {beside.copy_id}": beside for beside in looking.elsewhere()}  # type: ignore[misc]
        text = file.read_text()
        for digest, name in ((made.plan_id, "PLAN"), (made.estate_digest, "ESTATE"), (made.subjects_digest, "SEALED")):
            text = text.replace(digest, name)
        verdicts = {name: verdict.model_dump_json() for name, verdict in found.items()}
        return {**verdicts, "plan": text}, looking.whole_reading()


def test_plans_and_verdicts_are_the_same_with_ledger_and_shapes_on_and_off(tmp_path: Path) -> None:
    """Twice for him, then for her, then for both after a file was changed that had been clean."""
    lake = Lake(tmp_path)
    rounds = [(HIM, "him"), (HIM, "him again"), (HER, "her"), (HER, "her again")]
    readings: dict[tuple[bool, bool], list[Reading]] = {given: [] for given in SETTINGS}
    shown = []
    for changed in (False, True):
        if changed:
            lake.export(f"of {MAIL[HER]}, by {HIM}")
        for person, name in rounds:
            here = {given: lake.told(given, person, f"{name} {changed}") for given in SETTINGS}
            bare = here[False, False][0]
            for given, (told, reading) in here.items():
                assert told == bare, (given, name)
                readings[given].append(reading)
            shown.append(bare)
    for given in ((False, False), (False, True)):
        assert not any(r.before or r.left for r in readings[given]), "nothing is kept where the ledger is off"
    assert all(r.before for r in readings[True, False])
    assert any(r.left for r in readings[True, True])
    first, after = shown[0], shown[4]
    assert sum('"residue":[{' in verdict for verdict in first.values()) > 2
    assert not any("exports" in text for name, text in first.items() if '"residue":[{' in text and name != "plan")
    assert any("part-0.parquet" in text for name, text in after.items() if '"residue":[{' in text and name != "plan")


@pytest.mark.parametrize("versioned", [True, False])
def test_plans_and_verdicts_of_an_estate_in_s3_are_the_same_with_ledger_and_shapes_on_and_off(
    tmp_path: Path, world: World, versioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice for him, then for her, then for her after an object was written over."""
    wide_objects.small(monkeypatch)
    lake = Lake(tmp_path)
    lake.place_in_s3(world, versioned=versioned)
    parts: dict[str, int] = dict.fromkeys(("him", "again", "her", "then"), 0)
    count = KeptShapes.count

    def counted(kept: KeptShapes, shapes: FileShapes, told: str, unfetched: Collection[Any] = ()) -> None:
        parts[name] += bool(unfetched)
        count(kept, shapes, told, unfetched)

    monkeypatch.setattr(KeptShapes, "count", counted)
    on, shaped, off, shown = (True, False), (True, True), (False, False), []
    for person, name in ((HIM, "him"), (HIM, "again"), (HER, "her"), (HER, "then")):
        if name == "then":
            world.put(lake.bucket, "stray/0.csv", f"id,note\n0,{MAIL[HER]}\n".encode())
            world.put(lake.bucket, "stray/wide.parquet", lake.wide({5: f"of {MAIL[HER]}"}))
        told, reading = lake.told(on, person, name)
        in_parts, _ = lake.told(shaped, person, name)
        bare, all_read = lake.told(off, person, name)
        assert told == in_parts == bare, name
        assert not all_read.before
        assert not reading.left
        assert reading.by_store, name
        shown.append(bare)
    residue = [{name for name, text in found.items() if '"residue":[{' in text} for found in shown]
    assert all(any(lake.bucket in name or "stray" in name for name in found) for found in (residue[0], residue[3]))
    assert len(residue[3]) > len(residue[2])
    assert parts["him"] == parts["again"] == 0, "the first search, and the same again"
    assert parts["her"] > parts["then"] >= 0, "what was written over is read whole"
