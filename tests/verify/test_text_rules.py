"""Text is searched by the rules by which it is read, in every store and by every command: else a value is there that
only those rules show, and the place is called clean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.app.verification import Verification
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ExitCode, ScanError
from pii_tracer.model.plan import ErasurePlan
from tests.app.planning_gaps import test_folders_below_text as text
from tests.gcssupport import strict_gcs
from tests.s3support import REGION, World, standin, world
from tests.waivers import MARKS

__all__ = ["standin", "world"]

KEY = "O^Brien^77"
HERS = b"'O^^Brien^^77';x\n3;y\n"
"""Her key, as a writer with the escape sign `^` writes it."""
NOBODY = b"'zz';y\n3;y\n"


def no_spark() -> Any:
    raise ScanError("no Spark", where="here", todo="")


@dataclass
class Lake:
    """An estate with a table of text in a store. put: writes a file of it."""

    base: Path
    location: str
    put: Callable[[str, bytes], Any]

    def run(self, *words: str) -> int:
        return run([*words, "--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")])

    def plan(self) -> dict[str, Any]:
        out = self.base / "r.plan.json"
        self.run("plan", str(self.base / "request.yaml"), "--format", "json", "--out", str(out))
        plan: dict[str, Any] = json.loads(out.read_text())
        return plan

    def verification(self) -> Verification:
        """Of the plan, without the rows that Spark reads."""
        plan = ErasurePlan.model_validate_json((self.base / "r.plan.json").read_text())
        keys = (KeySet(name="cust", origin="people.cust", weak=False, values=(("s", KEY),)),)
        estate = load_estate(self.base / "pii-tracer.yaml")
        return Verification(plan, estate, self.base, keys, MARKS, no_spark, lambda: datetime.now(timezone.utc))

    def values(self, *words: str) -> int:
        (self.base / "values.txt").write_text(f"{KEY}\n")
        return self.run("verify", "--values", str(self.base / "values.txt"), *words)

    def change(self, change: Callable[[dict[str, Any]], None]) -> None:
        file = self.base / "pii-tracer.yaml"
        told = yaml.safe_load(file.read_text())
        change(told)
        file.write_text(yaml.safe_dump(told))


def tables(told: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told["catalogs"]["spark_catalog"]["tables"]
    return found


@pytest.fixture(params=["folder", "s3", "gs", "gs: below a declared place"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    folder = text.estate(tmp_path, KEY)
    for file in (tmp_path / "lake" / "people").iterdir():
        text.pq.write_table(text.pa.table({"cust": ["zz", "3"], "email": ["a", "b"]}), file)
    if request.param == "folder":
        (folder / "old").mkdir(parents=True)
        yield Lake(tmp_path, str(folder), lambda name, data: (folder / name).write_bytes(data))
        return

    def moved(told: dict[str, Any], location: str, **more: Any) -> None:
        next(table for table in tables(told) if table["name"] == "s.copy")["location"] = location
        told.update(more)

    if request.param == "s3":
        here: World = request.getfixturevalue("world")
        bucket = here.new("text", versioned=True)
        made = Lake(tmp_path, f"s3://{bucket}/t", lambda name, data: here.put(bucket, f"t/{name}", data))
        made.change(partial(moved, location=made.location, s3={"region": REGION, "endpoint_url": here.endpoint_url}))
        yield made
        return
    with strict_gcs() as gcs:
        gcs.bucket("text")
        place = "data" if "below" in request.param else "data/t"
        stored = {"store": "gs://text", "endpoint": gcs.endpoint, "anonymous": True, "places": [{"prefix": place}]}
        made = Lake(tmp_path, "gs://text/data/t", lambda name, data: gcs.put("text", f"data/t/{name}", data))
        made.change(partial(moved, location=made.location, object_stores=[stored]))
        yield made


def her_source(lake: Lake) -> None:
    """The source has her; else her only file is the text."""
    people = lake.base / "lake" / "people" / "a.parquet"
    text.pq.write_table(text.pa.table({"cust": [KEY, "3"], "email": ["a", "b"]}), people)


def test_a_plan_finds_her(lake: Lake) -> None:
    her_source(lake)
    lake.put("a.csv", HERS)
    plan = lake.plan()
    found = [copy["location"] for copy in plan["copies"]] + [gap["evidence"] for gap in plan["gaps"]]
    assert any(one.startswith(lake.location.rpartition("/")[0]) for one in found)


@pytest.mark.parametrize("name", ["a.csv", "old/a.csv", "_tmp.csv"])
def test_a_search_for_values_finds_her(lake: Lake, name: str) -> None:
    lake.put("n.csv", NOBODY)
    assert lake.values() == ExitCode.DONE
    lake.put(name, HERS)
    assert lake.values() == ExitCode.RESIDUE
    assert lake.values("--in", lake.location) == ExitCode.RESIDUE


def test_a_verification_finds_her_in_a_copy(lake: Lake) -> None:
    her_source(lake)
    lake.put("a.csv", HERS)
    lake.plan()
    looks = lake.verification()
    copies = [copy for copy in looks.plan.copies if copy.location.startswith(lake.location)]
    seen = [verdict for copy in copies if (verdict := looks.look(copy).bytes)]
    assert any(verdict.residue for verdict in (*seen, *looks.elsewhere()))


@pytest.mark.parametrize("name", ["a.csv", "old/a.csv"])
def test_a_verification_finds_her_in_what_was_examined(lake: Lake, name: str) -> None:
    """As a run does at its end, and `verify` at any time."""
    her_source(lake)
    lake.put("a.csv", NOBODY)
    plan = lake.plan()
    assert not any(copy["location"].startswith(lake.location) for copy in plan["copies"])
    assert not any(verdict.residue for verdict in lake.verification().elsewhere())
    lake.put(name, HERS)
    assert any(verdict.residue for verdict in lake.verification().elsewhere())
