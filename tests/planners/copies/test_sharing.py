"""Tables that share files: nothing is removed, or written again in place, while another table reads it."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Sharing
from pii_tracer.model.datasets import Column, Format
from tests.planners.smalllake import Lake, hold


def sharing(name: str, fmt: Format) -> dict[str, Any]:
    table = f"lake.core.{name}" if fmt is ICEBERG else None
    shared = Sharing(table=table, location=f"/w/{name}", format=fmt, files=("/w/f.parquet",))
    return {"sharing": (shared,)}


def test_two_iceberg_tables_forget_before_either_is_swept() -> None:
    iceberg = {"format": ICEBERG}
    lake = Lake(
        states={
            "a": {**iceberg, "table": "lake.core.a", **sharing("b", ICEBERG)},
            "b": {**iceberg, "table": "lake.core.b", **sharing("a", ICEBERG)},
        }
    )
    steps = {s.id: s for s in lake.plan().steps}
    expire, sweep = {}, {}
    for step in steps.values():
        if step.action.value == "iceberg_expire_snapshots":
            expire[step.parameters["table"][-1]] = step
        elif step.action.value == "iceberg_remove_orphans":
            sweep[step.parameters["table"][-1]] = step
    for one, other in (("a", "b"), ("b", "a")):
        assert expire[one].parameters["sharing"] == [{"table": f"lake.core.{other}", "location": f"/w/{other}"}]
        assert sweep[one].parameters["sharing"] == expire[one].parameters["sharing"]
        assert expire[other].id in sweep[one].depends_on
        assert "I7" in sweep[one].hazards


@pytest.mark.parametrize("held", [(), ("uid",)])
def test_a_folder_is_rewritten_after_the_table_that_added_its_files_has_forgotten_them(held: tuple[str, ...]) -> None:
    """Or masked, where a hold keeps columns."""
    columns = tuple(Column(name=name, type="bigint") for name in ("uid", "note"))
    lake = Lake(
        states={
            "a": {"format": Format.PARQUET, "table": None, "columns": columns, **sharing("b", ICEBERG)},
            "b": {"format": ICEBERG, "table": "lake.core.b", **sharing("a", Format.PARQUET)},
        },
        inputs={"b": "a"},
    )
    steps = lake.plan(*([hold("/w/a", columns=list(held))] if held else [])).steps
    action = "files_mask_rows" if held else "files_rewrite"
    (rewrite,) = [s for s in steps if s.action.value == action and s.parameters["location"] == "/w/a"]
    (expire,) = [s for s in steps if s.action.value == "iceberg_expire_snapshots" and s.parameters["table"][-1] == "b"]
    assert expire.id in rewrite.depends_on
    assert rewrite.parameters["sharing"] == [{"table": "lake.core.b", "location": "/w/b"}]
    assert expire.parameters["sharing"] == []  # a folder has no history that could read the table's files


def test_the_first_step_relies_on_who_else_reads_the_files() -> None:
    lake = Lake(
        states={
            "a": {"format": ICEBERG, "table": "lake.core.a", **sharing("x", ICEBERG)},
            "b": {"clones": ("/w/c1", "/w/c2")},
        }
    )
    relied = {(p.kind, p.target): p.expected for s in lake.plan().steps for p in s.preconditions}
    assert relied["sharing", "/w/a"] == "/w/x"
    assert relied["clones", "/w/b"] == "/w/c1\n/w/c2"
    assert relied["clones", "/w/users"] == ""


def test_a_table_that_forbids_to_remove_files_is_expired_in_its_metadata_alone() -> None:
    """`snapshot` makes tables with `gc.enabled=false`; the procedure refuses them."""
    forbids = {"format": ICEBERG, "table": "lake.core.a", "properties": {"gc.enabled": "false"}}
    steps = Lake(states={"a": forbids}).plan().steps
    (expire,) = [s for s in steps if s.action.value == "iceberg_expire_snapshots"]
    assert expire.parameters["sharing"] == []
