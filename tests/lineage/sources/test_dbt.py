from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import LineageError

PROJECT = Path(__file__).with_name("dbt_clinic")
MANIFEST = json.loads((PROJECT / "manifest.json").read_text())
TABLES = ["patients", "visits", "stg_patients", "patient_visits", "recent", "patients_snap", "cities", "scores"]


def table(name: str) -> DatasetId:
    return DatasetId(namespace="file", name=f"/clinic/{name}")


ALIASES = {f"clinic.main.{name}": table(name) for name in TABLES} | {
    "clinic.main.visits_copy": table("visits_copy"),
    "clinic.main_dbt_test__audit.not_null_stg_patients_phone": table("failures"),
}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Harvest the project, with a changed manifest or without its catalog."""

    def make(change: Any = None, catalog: bool = True, place: str = "target") -> Harvested:
        manifest = copy.deepcopy(MANIFEST)
        if change:
            change(manifest["nodes"])
        (tmp_path / "target").mkdir(exist_ok=True)
        (tmp_path / "target" / "manifest.json").write_text(json.dumps(manifest))
        if catalog:
            shutil.copy(PROJECT / "catalog.json", tmp_path / "target")
        return harvest_all(LineageSources(dbt=(place,)), Given(tmp_path, aliases=ALIASES))

    return make


def arrows(found: Harvested, name: str) -> set[str]:
    edges = found.graph.edges_into(table(name))
    return {f"{e.source.dataset.name.rpartition('/')[2]}.{e.source.column} -> {e.target.column}" for e in edges}


def test_a_real_project(read):
    found = read()
    assert arrows(found, "stg_patients") == {
        "patients.patient_id -> patient_id", "patients.email -> email", "patients.phone -> phone", "patients.city -> city",
    }  # fmt: skip
    assert arrows(found, "patient_visits") == {
        "stg_patients.patient_id -> patient_id", "stg_patients.email -> email", "stg_patients.phone -> phone",
        "stg_patients.city -> city", "visits.visited_at -> visited_at", "cities.zone -> zone",
    }  # fmt: skip
    assert arrows(found, "recent") == {
        "patient_visits.patient_id -> patient_id", "patient_visits.visited_at -> visited_at",
    }  # fmt: skip
    assert arrows(found, "patients_snap") == {"patients.patient_id -> patient_id", "patients.phone -> phone"}
    assert "patient_visits.phone -> phone" in arrows(found, "visits_copy"), "a hook copied it"
    assert "stg_patients.phone -> phone" in arrows(found, "failures"), "a test stored the rows that failed it"
    assert {m.source.column for m in found.graph.memberships_into(table("patient_visits"))} == {
        "patient_id",
        "kind",
        "city",
    }
    assert [c.name for c in found.graph.columns(table("patients_snap"))][:3] == ["patient_id", "phone", "dbt_scd_id"]
    assert [(g.kind, g.dataset) for g in found.graph.gaps] == [
        ("dbt_opaque", table("scores")),
        ("unresolved_name", DatasetId(namespace="unresolved", name="main.audit")),
    ]


def test_a_python_model_is_a_gap_that_names_what_it_reads(read):
    found = read()
    gap = found.graph.gaps[0]
    assert "clinic.main.patient_visits" in gap.reason
    assert "python" in gap.reason
    assert table("scores") in found.graph.downstream(table("patients"))


def test_a_model_that_was_not_compiled_is_a_gap_and_reads_through_ephemeral_ones(read):
    def change(nodes: dict[str, Any]) -> None:
        del nodes["model.clinic.patient_visits"]["compiled_code"]

    found = read(change)
    (gap,) = [g for g in found.graph.gaps if g.dataset == table("patient_visits")]
    assert "dbt compile" in gap.closes
    assert arrows(found, "patient_visits") == set()
    assert set(found.graph.upstream(table("patient_visits"))) == {
        table("patients"), table("stg_patients"), table("visits"), table("cities"),
    }  # fmt: skip


def test_without_the_catalog_models_still_know_each_other(read):
    found = read(catalog=False)
    assert arrows(found, "recent") == {
        "patient_visits.patient_id -> patient_id", "patient_visits.visited_at -> visited_at",
    }  # fmt: skip
    assert "stg_patients.phone -> phone" in arrows(found, "patient_visits")


def test_tags_and_meta_of_columns_are_noted(read):
    tags = read().notes.tags
    assert {(t.dataset, t.field, t.key, t.value, t.source) for t in tags} == {
        (table("stg_patients"), "phone", "pii", "true", "DBT"),
        (table("stg_patients"), "phone", "category", "phone", "DBT"),
        (table("failures"), None, "pii", "true", "DBT"),  # a test takes over the tags of its column
    }


def test_templates_in_hooks_and_foreign_materializations_are_gaps(read):
    def change(nodes: dict[str, Any]) -> None:
        nodes["model.clinic.recent"]["config"] = {
            "materialized": "own_kind", "pre-hook": [{"sql": "insert into x select * from {{ this }}"}],
        }  # fmt: skip

    reasons = [g.reason for g in read(change).graph.gaps]
    assert any("`own_kind` is not dbt's own" in r for r in reasons)
    assert any("is a template" in r for r in reasons)


def test_only_tables_on_spark_are_given_for_a_rebuild(read, monkeypatch: pytest.MonkeyPatch):
    assert {j.sql for name in TABLES for j in read().graph.jobs_into(table(name))} == {None}

    def change(nodes: dict[str, Any]) -> None:
        for node in nodes.values():
            for key in ("relation_name", "compiled_code"):
                node[key] = (node.get(key) or "").replace('"', "`") or None

    monkeypatch.setitem(MANIFEST["metadata"], "adapter_type", "databricks")
    found = read(change)
    rebuilt = {name for name in TABLES for j in found.graph.jobs_into(table(name)) if j.sql}
    assert rebuilt == {"patient_visits"}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"nodes": []}', b'{"nodes"', b"\xff"])
def test_what_is_no_manifest_is_a_gap(tmp_path: Path, content: bytes):
    (tmp_path / "manifest.json").write_bytes(content)
    found = harvest_all(LineageSources(dbt=("manifest.json",)), Given(tmp_path))
    assert [g.kind for g in found.graph.gaps] == ["unreadable_dbt"]


def test_places(read, tmp_path: Path):
    assert read(place="target").graph.digest() == read(place="target/manifest.json").graph.digest()
    assert read(place=".").summary == read().summary
    with pytest.raises(LineageError, match="does not exist"):
        harvest_all(LineageSources(dbt=("nowhere",)), Given(tmp_path))


@pytest.mark.parametrize(
    "junk", [5, None, [], {"config": 3, "depends_on": [1], "columns": 2}, {"resource_type": "model"}]
)
def test_wrong_types_in_nodes_stop_nothing(read, junk: Any):
    def change(nodes: dict[str, Any]) -> None:
        nodes["model.clinic.junk"] = junk

    found = read(change)
    assert "stg_patients.phone -> phone" in arrows(found, "patient_visits")
    assert ("unreadable_dbt" in {g.kind for g in found.graph.gaps}) is not isinstance(junk, dict)


def test_a_broken_catalog_is_a_gap(read, tmp_path: Path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "catalog.json").write_text("{")
    found = read(catalog=False)
    assert "unreadable_dbt" in {g.kind for g in found.graph.gaps}
    assert "stg_patients.phone -> phone" in arrows(found, "patient_visits")


def test_an_adapter_nobody_knows_is_a_gap(read, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MANIFEST["metadata"], "adapter_type", "klingon")
    assert "unknown_dialect" in {g.kind for g in read().graph.gaps}
