"""Short keys that come after planning into what was searched and is no copy, or into what is new."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.verify.verdicts import ByteVerdict, RunVerdict, with_since
from tests.app.planning.test_same_digits import KEY, OTHER, estate, parquet, planned
from tests.verify.s3lake import no_spark

CHANCE = {"amount": [KEY, 12, 990, 18_000], "note": ["a", f"order {KEY} came", "b", "c"]}
JOB = "INSERT OVERWRITE DIRECTORY '{lake}/par' USING parquet SELECT cust_id, 1 AS n FROM s.cust;\n"


def lake(base: Path, *, jobs: str = "SELECT 1;\n", key: int = KEY) -> ErasurePlan:
    """A plan with a copy, its source."""
    estate(base, key, key + 1, jobs=jobs)
    parquet(base, CHANCE)
    if jobs != "SELECT 1;\n":
        parquet(base, {"cust_id": [key + 1], "n": [1]}, "par")
    planned(base)
    plan = ErasurePlan.model_validate_json((base / "r.plan.json").read_bytes())
    assert (plan.complete, len(plan.copies)) == (True, 1)
    return plan


def looked(base: Path, plan: ErasurePlan, key: int = KEY) -> dict[str, ByteVerdict]:
    settings = Settings(base / "pii-tracer.yaml", base / "state")
    looks = Verification(
        plan=plan,
        estate=settings.estate(),
        base=base,
        keys=(KeySet(name="c.cust_id", origin="cust_id", weak=True, values=(("l", str(key)),)),),
        marks=settings.key().marks,
        spark=no_spark,
        now=lambda: datetime.now(timezone.utc),
    )
    found = looks.elsewhere()
    assert str(KEY) not in repr(found)
    return {verdict.copy_id.rpartition("/")[2]: verdict for verdict in found}


def more(base: Path, columns: dict[str, Any], name: str = "loose") -> None:
    (base / "lake" / name).mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), base / "lake" / name / "q.parquet")


def test_what_was_judged_at_planning_stays_as_it_was_judged(tmp_path: Path) -> None:
    plan = lake(tmp_path)
    assert looked(tmp_path, plan)["loose"].clean
    more(tmp_path, CHANCE)  # written again, in another file
    (tmp_path / "lake/loose/p.parquet").unlink()
    assert looked(tmp_path, plan)["loose"].clean


COME: dict[str, Callable[[Path], object]] = {
    "column of its own": lambda base: more(base, {"amount": [5], "Cust Id": [KEY]}),
    "struct": lambda base: more(base, {"who": [{"custId": KEY}]}),
    "a text file": lambda base: (base / "lake/loose/a.csv").write_text(f"a,cust_id\n1,{KEY}\n"),
    "a folder": lambda base: more(base, {"amount": [5]}, f"loose/cust_id={KEY}"),
}


@pytest.mark.parametrize("how", sorted(COME))
def test_one_that_came_in_a_column_called_as_the_key_is_unverified(tmp_path: Path, how: str) -> None:
    plan = lake(tmp_path)
    COME[how](tmp_path)
    verdict = looked(tmp_path, plan)["loose"]
    (told,) = verdict.unverified
    assert "Plan again to check them" in told
    assert "`not_keys`" in told
    assert not verdict.residue
    assert with_since(RunVerdict(copies=()), [verdict]).unverified  # and so nothing is attested


def test_numbers_of_other_things_that_grow_keep_no_run_open(tmp_path: Path) -> None:
    plan = lake(tmp_path)
    more(tmp_path, {"amount": [KEY], "n": [KEY], "note": [f"call {KEY}"]})
    more(tmp_path, {"ref": [KEY]}, "late")
    (tmp_path / "lake/dump.bin").write_bytes(b"\x01 ref %d \x02" % KEY)
    found = looked(tmp_path, plan)
    assert found.keys() >= {"loose", "late", "dump.bin"}
    assert all(verdict.clean for verdict in found.values())


def test_one_in_a_new_table_and_in_a_new_file_is_unverified(tmp_path: Path) -> None:
    plan = lake(tmp_path)
    more(tmp_path, {"cust_id": [KEY]}, "late")
    (tmp_path / "lake/alone.csv").write_text(f"a,cust_id\n1,{KEY}\n")
    found = looked(tmp_path, plan)
    assert {name for name, verdict in found.items() if verdict.unverified} == {"late", "lake"}
    assert not any(verdict.residue for verdict in found.values())


def test_a_table_inside_of_a_folder_is_counted_once(tmp_path: Path) -> None:
    """Planning looks at each in its own right: the numbers of the inner one are not new in the outer one."""
    estate(tmp_path, KEY, OTHER, jobs=JOB.format(lake=tmp_path / "lake"))
    parquet(tmp_path, {"cust_id": [OTHER], "n": [1]}, "par")
    inner = pa.table({"amount": [KEY, 12, 990, 18_000]})
    write_deltalake(tmp_path / "lake/par/inner", inner)
    planned(tmp_path)
    plan = ErasurePlan.model_validate_json((tmp_path / "r.plan.json").read_bytes())
    found = looked(tmp_path, plan)
    assert found.keys() >= {"par", "inner"}
    assert all(verdict.clean for verdict in found.values())


def test_where_lineage_leads_it_is_the_person_in_a_column_called_as_the_key(tmp_path: Path) -> None:
    plan = lake(tmp_path, jobs=JOB.format(lake=tmp_path / "lake"))
    assert looked(tmp_path, plan)["par"].clean
    more(tmp_path, {"cust_id": [OTHER], "n": [KEY]}, "par")  # a column that lineage explains
    assert looked(tmp_path, plan)["par"].clean
    more(tmp_path, {"cust_id": [KEY], "n": [1]}, "par")
    assert {item.where for item in looked(tmp_path, plan)["par"].residue} == {"cust_id"}


@pytest.mark.parametrize(("column", "told"), [("n", False), ("custId", True)])
def test_tiny_numbers_count_only_under_the_keys_name(tmp_path: Path, column: str, told: bool) -> None:
    plan = lake(tmp_path, key=412)
    more(tmp_path, {column: [412]}, "late")
    more(tmp_path, {column: [412]})
    found = looked(tmp_path, plan, 412)
    assert {name for name, verdict in found.items() if verdict.unverified} == ({"late", "loose"} if told else set())


def test_without_copies_nothing_else_tells_whether_the_person_is_there(tmp_path: Path) -> None:
    plan = lake(tmp_path, jobs=JOB.format(lake=tmp_path / "lake")).model_copy(update={"copies": ()})
    more(tmp_path, {"any": [KEY]}, "late")
    more(tmp_path, {"any": [KEY]}, "par")
    more(tmp_path, {"cust_id": [KEY]})
    found = looked(tmp_path, plan)
    assert {name for name, verdict in found.items() if verdict.residue} >= {"late", "par"}
    assert not found["loose"].residue
    assert found["loose"].unverified


def test_a_plan_that_did_not_count_them_says_nothing_of_them(tmp_path: Path) -> None:
    plan = lake(tmp_path)
    before = tuple(item.model_copy(update={"digits": None}) for item in plan.examined)
    more(tmp_path, {"cust_id": [KEY]})
    assert looked(tmp_path, plan.model_copy(update={"examined": before}))["loose"].clean
