"""Plans and verdicts are the same, byte for byte, with the scan ledger and the shapes of columns on and off."""

from __future__ import annotations

import json
import random
import shutil
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
from tests.cli.small import declared

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
        (self.base / "pii-tracer.yaml").write_text(tables + SUBJECT + switches)
        made = Settings(self.base / "pii-tracer.yaml", self.base / f"state-{ledger}-{shapes}")
        known = next(self.base.glob("state-*/keys"), None)
        if known is not None and not made.key_file().exists():
            shutil.copytree(known, made.key_file().parent)
        return made

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
