"""An estate full of copies, made by jobs and by people: every file with the person is in the plan or in a gap.

What truly holds the person is told by a search of its own that knows nothing of the project. No Spark: the jobs write
through PyIceberg, delta-rs and Arrow.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run
from tests.cli.small import RECEIVED
from tests.executors.world import _decoded

PERSON, MAIL = "MEM-7701204", "kavya.nair.5521@example.org"
NEEDLE = re.compile(re.escape(PERSON.encode()) + rb"(?!\d)|" + re.escape(MAIL[:16].encode()))
"""The number, which is the beginning of somebody else's, and the address cut as Iceberg cuts its bounds."""
PEOPLE = pa.table(
    {
        "member_no": [PERSON, "MEM-1", "MEM-2", "MEM-3", PERSON, "MEM-77012040"],
        "email": [MAIL, "a@example.net", "b@example.net", "c@example.net", MAIL, "d@example.net"],
        "city": ["Pune", "Pune", "Kochi", "Kochi", "Kochi", "Pune"],
    }
)
OTHERS = PEOPLE.filter(pa.compute.not_equal(PEOPLE["member_no"], PERSON))

SQL = """
INSERT OVERWRITE core.prod.visits SELECT member_no, city FROM core.prod.members;
INSERT OVERWRITE core.prod.pruned SELECT member_no, email FROM core.prod.members WHERE city = 'Mysuru';
INSERT OVERWRITE shop.orders SELECT member_no AS buyer, email FROM core.prod.members;
INSERT OVERWRITE DIRECTORY '{lake}/extract' USING parquet SELECT member_no, email FROM core.prod.members
"""

ESTATE: dict[str, Any] = {
    "version": 1,
    "estate": "recall",
    "environment": "local",
    "catalogs": {
        "core": {"type": "iceberg-sql", "uri": "sqlite:///core.db", "warehouse": "lake/core"},
        "spark_catalog": {
            "type": "declared",
            "tables": [{"name": "shop.orders", "format": "delta", "location": "lake/orders"}],
        },
    },
    "roots": ["lake"],
    "dev_roots": ["lake/dev"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "member",
            "source": "core.prod.members",
            "key": "member_no",
            "identifiers": [{"column": "email", "category": "email"}],
        }
    ],
}


def build(base: Path) -> None:
    """Jobs that lineage knows, and copies that it does not."""
    lake = base / "lake"
    (lake / "core").mkdir(parents=True)
    core = catalog(base, "core")
    members = table(core, "prod.members", PEOPLE)
    table(core, "prod.visits", PEOPLE.select(["member_no", "city"]))
    table(core, "prod.pruned", OTHERS.select(["member_no", "email"]).slice(0, 0))
    with core.load_table("prod.visits").manage_snapshots() as manage:
        manage.create_tag(core.load_table("prod.visits").current_snapshot().snapshot_id, "year_end")  # type: ignore[union-attr]
    core.load_table("prod.visits").overwrite(OTHERS.select(["member_no", "city"]))  # only history has the person now
    write_deltalake(lake / "orders", PEOPLE.select(["member_no", "email"]).rename_columns(["buyer", "email"]))
    DeltaTable(lake / "orders").delete("buyer = 'MEM-3'")
    folder(lake / "extract")
    pq.write_table(PEOPLE.select(["member_no", "email"]), lake / "extract" / "part-0.parquet")
    pq.write_table(OTHERS.select(["member_no", "email"]), lake / "extract" / "part-1.parquet")
    _copies(base, lake, core, members)
    _bystanders(lake, core)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1}))
    (base / "jobs.sql").write_text(SQL.format(lake=lake))
    request = {"id": "R-1", "law": "GDPR", "received": RECEIVED}
    whom = {"subject": {"type": "member", "key": PERSON}}
    (base / "request.yaml").write_text(yaml.safe_dump({**request, **whom}))


def _copies(base: Path, lake: Path, core: SqlCatalog, members: Any) -> None:
    """Copies that nobody told of."""
    shutil.copytree(lake / "orders", lake / "dev" / "orders_of_ravi")
    extract = lake / "extract" / "part-0.parquet"
    shutil.copy(extract, folder(lake / "tmp") / "renamed.bin")  # by content, whatever its name
    pq.write_table(pa.table({"n": [1, 2, 3]}), lake / "tmp" / "0.parquet")
    with pq.ParquetWriter(folder(lake / "merged") / "all.parquet", PEOPLE.schema, compression="zstd") as writer:
        writer.write_table(OTHERS)
        writer.write_table(PEOPLE)
    pa.csv.write_csv(PEOPLE, folder(lake / "csv") / "plain.csv")
    (lake / "csv" / "packed.csv.gz").write_bytes(gzip.compress((lake / "csv" / "plain.csv").read_bytes()))
    pa.orc.write_table(PEOPLE, folder(lake / "orc") / "x.orc", compression="zlib")
    with zipfile.ZipFile(folder(lake / "mail") / "export.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("members.csv", (lake / "csv" / "plain.csv").read_text())
    (folder(lake / "_old") / "x.json").write_text(json.dumps({"member": PERSON}))
    dropped = table(core, "prod.dropped", PEOPLE)
    core.drop_table("prod.dropped")
    assert Path(dropped.metadata_location.removeprefix("file://")).exists()
    table(catalog(base, "other"), "prod.theirs", PEOPLE)
    taken = table(core, "prod.taken", OTHERS)
    (data,) = [t.file.file_path for t in members.scan().plan_files()]
    taken.add_files([data])


def _bystanders(lake: Path, core: SqlCatalog) -> None:
    """Places that look alike and do not hold the person."""
    table(core, "prod.strangers", OTHERS)
    write_deltalake(lake / "dev" / "others", OTHERS)
    pq.write_table(OTHERS, folder(lake / "looks_alike") / "part-0.parquet")


def folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def catalog(base: Path, name: str) -> SqlCatalog:
    return SqlCatalog(name, uri=f"sqlite:///{base / 'core.db'}", warehouse=(base / "lake" / "core").as_uri())


def table(at: SqlCatalog, name: str, rows: pa.Table) -> Any:
    at.create_namespace_if_not_exists("prod")
    made = at.create_table(name, schema=rows.schema)
    made.append(rows)
    return made


def holders(lake: Path) -> set[Path]:
    """Every file in which the person stands, packed or not."""
    found = set()
    for path in sorted(p for p in lake.rglob("*") if p.is_file()):
        data = path.read_bytes()
        texts = _decoded(data)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                texts = [packed.read(name) for name in packed.namelist()]
        elif data.startswith(b"ORC"):
            texts = [repr(pa.orc.read_table(path).to_pylist()).encode()]
        if any(NEEDLE.search(text) for text in texts):
            found.add(path)
    return found


@dataclass(frozen=True)
class Planned:
    lake: Path
    plan: dict[str, Any]
    holders: set[Path]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    base = tmp_path_factory.mktemp("recall")
    build(base)
    words = [
        "--estate",
        str(base / "pii-tracer.yaml"),
        "--state",
        str(base / "state"),
        "--out",
        str(base / "r.plan.json"),
    ]
    run(["plan", str(base / "request.yaml"), *words])
    return Planned(base / "lake", json.loads((base / "r.plan.json").read_text()), holders(base / "lake"))


def covered(path: Path, plan: dict[str, Any]) -> bool:
    places = [copy["location"] for copy in plan["copies"]]
    places += [gap["dataset"]["name"] for gap in plan["gaps"] if gap["dataset"]]
    places += [gap["evidence"] for gap in plan["gaps"]]
    return any(place.startswith("/") and path.is_relative_to(place) for place in places)


def test_every_file_with_the_person_is_in_the_plan_or_in_a_gap(planned: Planned) -> None:
    assert len(planned.holders) >= 18
    assert {str(p) for p in planned.holders if not covered(p, planned.plan)} == set()


def test_the_copies_and_what_each_is_known_by(planned: Planned) -> None:
    here = {c["table"] or Path(c["location"]).name: c for c in planned.plan["copies"] if c["origin"] is None}
    known = {"core.prod.members", "core.prod.visits", "shop.orders", "extract"}
    by_files = {"orders_of_ravi": "shop.orders", "tmp": "extract"}  # a copied table; one file under another name
    by_rows = {"merged": "core.prod.members"}  # a row group among others, under another codec
    nameless = {"dropped", "theirs"}  # of no catalog that the estate file names
    assert set(here) == {*known, *by_files, *by_rows, *nameless}
    for name, origin in (*by_files.items(), *by_rows.items()):
        assert here[name]["reason"].startswith(f"same files as {origin}")
        assert here[name]["strategy"] == "delete_by_key"
    assert {name for name, copy in here.items() if copy["strategy"] == "blocked"} == nameless
    assert planned.plan["applyable"] is False
    # beside the copy lies a file of something else: no step can write both again as one table
    assert [Path(g["dataset"]["name"]).name for g in planned.plan["gaps"] if g["kind"] == "mixed_columns"] == ["tmp"]
    unexpected = [g for g in planned.plan["gaps"] if g["kind"] == "unexpected_copy"]
    strangers = {Path(g["dataset"]["name"] if g["dataset"] else g["evidence"]).name for g in unexpected}
    # `taken` reads a file of the source, in the source's folder; the archive belongs to no table
    assert strangers == {"csv", "orc", "taken", "export.zip"}


def test_places_without_the_person_are_not_deleted_from(planned: Planned) -> None:
    touched = {Path(str(s["parameters"].get("location"))).name for s in planned.plan["steps"]}
    assert not touched & {"strangers", "others", "looks_alike", "pruned"}
    gaps = " ".join(gap["evidence"] + str(gap["dataset"]) for gap in planned.plan["gaps"])
    for name in ("strangers", "others", "looks_alike", "pruned"):
        assert name not in gaps


def test_no_value_of_the_person_is_in_the_plan(planned: Planned) -> None:
    text = json.dumps(planned.plan)
    assert PERSON not in text
    assert MAIL not in text
