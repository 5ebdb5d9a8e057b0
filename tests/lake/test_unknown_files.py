"""Files of no table: read all the same. What is clean is no gap, what holds the person is one, and so is the rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.discovery import discover
from pii_tracer.lineage.graph.canonical_facts import Facts
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.scan.value_forms import build_patterns
from planners.gaps.copy_gaps import inventory_gaps
from planners.locate.subject_survey import World
from tests.lake.s3_lakehouse import estate_of

MAIL, UID = "asha.rao@mail.example", 8841302
PERSON = build_patterns(
    [
        KeySet(name="email", origin="email", weak=False, values=(("s", MAIL),)),
        KeySet(name="uid", origin="uid", weak=True, values=(("s", str(UID)),)),
    ]
)


def test_what_they_hold_decides(tmp_path: Path) -> None:
    lake = tmp_path / "warehouse"
    lake.mkdir()
    (lake / "README.md").write_text("How this lake is fed.")
    (lake / "load.log").write_text(f"1 row rejected: {MAIL}")
    (lake / "ids.log").write_text(f"row {UID} rejected")
    (lake / "logo.bin").write_bytes(b"\x00\x01\x02\xff" * 9)
    found = discover(estate_of().model_copy(update={"catalogs": {}, "roots": ("warehouse",)}), tmp_path)
    assert [gap.kind for gap in found.gaps] == [GapKind.UNKNOWN_FILE] * 4
    seen = scan_estate(found, PERSON, Readings(), lambda _: None)
    gaps = inventory_gaps(World(LineageGraph(Facts()), found, seen, lambda _: False))
    told = {Path(gap.evidence).name: gap.kind for gap in gaps}
    assert told == {"load.log": "unexpected_copy", "ids.log": GapKind.UNKNOWN_FILE, "logo.bin": GapKind.UNKNOWN_FILE}
    assert MAIL not in repr(gaps)


def test_an_iceberg_view_is_no_table_and_its_text_is_read(tmp_path: Path) -> None:
    lake = tmp_path / "warehouse"
    for name, text in (("v_plain", "SELECT uid FROM lake.prod.people"), ("v_her", f"SELECT 1 WHERE mail = '{MAIL}'")):
        (lake / name / "metadata").mkdir(parents=True)
        version = {"version-id": 1, "representations": [{"type": "sql", "sql": text, "dialect": "spark"}]}
        told = {"view-uuid": "8a7e", "format-version": 1, "location": str(lake / name), "versions": [version]}
        (lake / name / "metadata" / "00000-8a7e.gz.metadata.json").write_bytes(gzip.compress(json.dumps(told).encode()))
    found = discover(estate_of().model_copy(update={"catalogs": {}, "roots": ("warehouse",)}), tmp_path)
    assert [gap.kind for gap in found.gaps] == [GapKind.UNKNOWN_FILE] * 2
    assert found.tables == ()
    seen = scan_estate(found, PERSON, Readings(), lambda _: None)
    gaps = inventory_gaps(World(LineageGraph(Facts()), found, seen, lambda _: False))
    assert [(Path(gap.evidence).parents[1].name, gap.kind) for gap in gaps] == [("v_her", "unexpected_copy")]
