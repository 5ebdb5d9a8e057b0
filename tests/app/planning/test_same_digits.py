"""A person whose key is a short number: the same digits where no lineage leads are a gap where they look like the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run
from tests.app.planning.test_others_rows import WRITERS
from tests.cli.small import declared, request
from tests.waivers import write_waivers

KEY, OTHER, MAIL = 7812301, 7812302, "pia.ek@x.example"
ESTATE = (
    declared("lake", {"s.cust": "delta"})
    + """\
  - name: c
    source: s.cust
    key: cust_id
    identifiers: [{column: email, category: email}]
"""
)


def estate(base: Path, *keys: int, jobs: str = "SELECT 1;\n") -> Path:
    """A source with these keys, the first of which is the person's."""
    keys = keys or (KEY, OTHER)
    mails = [MAIL, *(f"m{n}@x.example" for n in range(len(keys) - 1))]
    write_deltalake(base / "lake" / "cust", pa.table({"cust_id": list(keys), "email": mails}))
    (base / "pii-tracer.yaml").write_text(ESTATE)
    (base / "jobs.sql").write_text(jobs)
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "request.yaml").write_text(request("c", str(keys[0])))
    return base


def folder(base: Path, name: str) -> Path:
    place = base / "lake" / name
    place.mkdir(parents=True)
    return place


def parquet(base: Path, columns: dict[str, Any], name: str = "loose") -> None:
    pq.write_table(pa.table(columns), folder(base, name) / "p.parquet")


def planned(base: Path, *words: str) -> dict[str, Any]:
    given = ["--format", "json", "--out", str(base / "r.plan.json"), "--estate", str(base / "pii-tracer.yaml")]
    code = run(["plan", str(base / "request.yaml"), *given, "--state", str(base / "state"), *words])
    plan: dict[str, Any] = json.loads((base / "r.plan.json").read_text())
    assert not any(value in (base / "r.plan.json").read_text() for value in (str(KEY), MAIL))
    assert code == (0 if plan["complete"] else 3), plan["gaps"]
    assert {g["kind"] for g in plan["gaps"]} <= {"same_digits", "others_rows", "column_names", "unexpected_copy"}
    return plan


def gaps(base: Path) -> dict[str, str]:
    return {g["id"].removeprefix("gap-same_digits-"): g["reason"].split(": ", 1)[1] for g in planned(base)["gaps"]}


NAMED = "(named as the key is)"
VALUES = "(its values are keys of the source)"
UNREAD = "(no readable values there to compare them with)"


def partition(base: Path) -> None:
    place = folder(base, f"loose/cust_id={KEY}")
    pq.write_table(pa.table({"x": [1]}), place / "a.parquet")


HELD: dict[str, tuple[Callable[[Path], object], str]] = {
    "delta": (
        lambda base: write_deltalake(base / "lake" / "loose", pa.table({"cust_id": [KEY, 5], "v": [1, 2]})),
        f"cust_id {NAMED}",
    ),
    "csv": (
        lambda base: (folder(base, "loose") / "a.csv").write_text(f"Cust Id,diag\n{KEY},flu\n5,ok\n6,ok\n"),
        f"Cust Id {NAMED}",
    ),
    "partition folder": (partition, f"cust_id {NAMED}"),
    "struct": (lambda base: parquet(base, {"who": [{"custId": KEY}, {"custId": 5}]}), f"who.custId {NAMED}"),
    "another name": (
        lambda base: parquet(base, {"customer": pa.array([KEY, OTHER, 5], pa.int32()), "d": ["flu", "ok", "ok"]}),
        f"customer {VALUES}",
    ),
    "map": (lambda base: parquet(base, {"m": pa.array([[(KEY, "a")]], pa.map_(pa.int64(), pa.string()))}), "m.key"),
    "nested": (lambda base: parquet(base, {"a": [[{"b": [{"c": str(KEY)}]}]]}), f"a.b.c {VALUES}"),
    "json text": (
        lambda base: parquet(base, {"p": [json.dumps({"who": n, "n": 1}) for n in (KEY, OTHER)]}),
        f"p.$.who {VALUES}",
    ),
    "letters before": (lambda base: parquet(base, {"c": [f"C{KEY}", f"C{OTHER}", "C5"]}), f"c {VALUES}"),
    "text with a fraction": (
        lambda base: (folder(base, "loose") / "a.csv").write_text(f"c\n{KEY}.0\n"),
        f"c {VALUES}",
    ),
    "doubles": (lambda base: parquet(base, {"c": [float(KEY), None, float(OTHER)]}), f"c {VALUES}"),
    "no header": (lambda base: (folder(base, "loose") / "a.csv").write_text(f"{KEY},2\n{OTHER},3\n"), f"_c0 {VALUES}"),
}


@pytest.mark.parametrize("form", sorted(HELD))
def test_what_looks_like_the_key_is_a_gap(tmp_path: Path, form: str) -> None:
    base = estate(tmp_path)
    make, told = HELD[form]
    make(base)
    (place, reason), *others = gaps(base).items()
    assert place == "loose"
    assert told in reason
    assert not others


def test_it_can_be_waived(tmp_path: Path) -> None:
    base = estate(tmp_path)
    parquet(base, {"customer": [KEY]})
    waivers = write_waivers(base / "waivers.yaml", planned(base)["gaps"])
    plan = planned(base, "--waivers", str(waivers))
    assert plan["complete"]
    assert plan["gaps"][0]["waiver"]["who"] == "Asha Rao"
    assert [e["dataset"]["name"][-6:] for e in plan["examined"]] == ["/loose"]  # and so it is looked at after the run


def test_an_ordinary_column_that_holds_the_number_by_chance_is_none(tmp_path: Path) -> None:
    base = estate(tmp_path)
    parquet(base, {"amount": [KEY, 12, 990, 18_000], "note": ["a", f"order {KEY} came", "b", "c"]})
    plan = planned(base)
    assert plan["gaps"] == []
    assert "digits of a short key are in amount, note" in plan["examined"][0]["reason"]


@pytest.mark.parametrize(("key", "column", "gap"), [(412, "cust_id", True), (412, "n", False), (41_200, "n", True)])
def test_tiny_numbers_count_only_under_the_keys_name(tmp_path: Path, key: int, column: str, gap: bool) -> None:
    base = estate(tmp_path, key, key + 1)
    parquet(base, {column: [key, key + 1]})
    assert bool(gaps(base)) is gap


def test_a_key_called_id_says_nothing_by_its_name(tmp_path: Path) -> None:
    base = estate(tmp_path, 412, 413)
    write_deltalake(
        base / "lake" / "cust",
        pa.table({"id": [412, 413, 414], "email": [MAIL, "b@x.example", "c@x.example"]}),
        mode="overwrite",
        schema_mode="overwrite",
    )
    (base / "pii-tracer.yaml").write_text(ESTATE.replace("cust_id", "id"))
    parquet(base, {"id": [412, 1, 2, 3, 4, 5, 6]}, "orders")
    parquet(base, {"id": [412, 413]}, "people")
    assert gaps(base) == {"people": f"id {VALUES}"}


def test_what_no_current_row_can_be_compared_with_counts_from_six_digits_on(tmp_path: Path) -> None:
    for key, told in ((78_123, {}), (781_230, {"loose": f"c {UNREAD}"})):
        base = estate(tmp_path / str(key), key, key + 1)
        write_deltalake(base / "lake" / "loose", pa.table({"c": [key, 2, 3, 4]}))
        DeltaTable(base / "lake" / "loose").delete()
        assert gaps(base) == told


JOB = """\
INSERT OVERWRITE DIRECTORY '{lake}/par' USING parquet
SELECT cust_id, NULL AS parent, 1 AS n, upper(email) AS o FROM s.cust;
"""


def test_that_lineage_tells_a_constant_does_not_explain_the_key(tmp_path: Path) -> None:
    base = estate(tmp_path, jobs=JOB.format(lake=tmp_path / "lake"))
    parquet(base, {"cust_id": [OTHER, OTHER], "parent": [KEY, None], "n": [1, 2], "o": ["a", "b"]}, "par")
    plan = planned(base)
    (gap,) = plan["gaps"]
    assert (gap["id"], gap["reason"][:5]) == ("gap-others_rows-par-parent", "1 row")
    (copy,) = [c for c in plan["copies"] if c["location"].endswith("par")]
    assert copy["other_keys"] == ["n"]


@pytest.mark.parametrize(
    "columns",
    [
        {"cust_id": [KEY, OTHER], "parent": [KEY, None], "n": [1, 2], "o": ["a", "b"]},  # goes with her row
        {"cust_id": [OTHER] * 3, "parent": [None] * 3, "n": [KEY, 2, 3], "o": ["a", "b", "c"]},  # by chance
        {"cust_id": [OTHER], "parent": [None], "n": [1], "o": [str(KEY)]},  # comes from another column
    ],
)
def test_what_lineage_explains_or_goes_or_is_there_by_chance_is_none(tmp_path: Path, columns: dict[str, Any]) -> None:
    base = estate(tmp_path, jobs=JOB.format(lake=tmp_path / "lake").replace("upper(email)", "vip"))
    write_deltalake(
        base / "lake" / "cust",
        pa.table({"cust_id": [KEY, OTHER], "email": [MAIL, "b@x.example"], "vip": ["x", "y"]}),
        mode="overwrite",
        schema_mode="overwrite",
    )
    parquet(base, columns, "par")
    assert planned(base)["gaps"] == []


@pytest.mark.parametrize("value", [str(KEY), MAIL])
def test_a_column_called_by_the_person_is_a_gap(tmp_path: Path, value: str) -> None:
    base = estate(tmp_path)
    parquet(base, {"day": ["a"], "7812302": [1], "p": [{value: 1}]})
    found = [g for g in planned(base)["gaps"] if g["kind"] == "column_names"]
    assert [g["reason"][:9] for g in found] == ["1 column "]


def test_columns_called_by_words_and_tiny_numbers_are_none(tmp_path: Path) -> None:
    base = estate(tmp_path, 12, 13)
    parquet(base, {"day": ["a"], "12": [1], "c": [2]})
    assert planned(base)["gaps"] == []


def test_a_pivot_that_lineage_leads_to_shows_no_value_in_the_plan(tmp_path: Path) -> None:
    base = estate(tmp_path, jobs=JOB.format(lake=tmp_path / "lake"))
    parquet(base, {"cust_id": [OTHER], "parent": [None], str(KEY): [1], "o": ["a"]}, "par")
    assert [g["id"] for g in planned(base)["gaps"]] == ["gap-column_names-par"]


def test_keys_that_lineage_casts_are_compared_as_well(tmp_path: Path) -> None:
    jobs = "INSERT OVERWRITE DIRECTORY '{lake}/par' USING parquet SELECT CAST(cust_id AS STRING) AS c FROM s.cust;\n"
    base = estate(tmp_path, jobs=jobs.format(lake=tmp_path / "lake"))
    parquet(base, {"c": [str(KEY), str(OTHER)]}, "par")
    parquet(base, {"who": [KEY, OTHER]})
    assert gaps(base) == {"loose": f"who {VALUES}"}
    parquet(base, {"C": [KEY, 1, 2]}, "more")  # as the copy calls it
    assert gaps(base)["more"] == f"C {NAMED}"


def test_of_what_is_only_joined_to_the_persons_lineage_explains_columns_that_come_from_others(tmp_path: Path) -> None:
    jobs = """\
INSERT OVERWRITE DIRECTORY '{lake}/shops' USING parquet
SELECT o.ref AS cust, NULL AS who FROM s.o o JOIN s.cust c ON o.mail = c.email;
"""
    base = estate(tmp_path, jobs=jobs.format(lake=tmp_path / "lake"))
    declared = "      - {name: s.o, format: parquet, location: lake/o}\n"
    (base / "pii-tracer.yaml").write_text(ESTATE.replace("roots:", f"{declared}roots:"))
    parquet(base, {"ref": [1, 2], "mail": ["x", "y"]}, "o")
    parquet(base, {"cust": [KEY, OTHER], "who": [3, 4]}, "shops")
    plan = planned(base)
    assert plan["gaps"] == []
    assert {e["dataset"]["name"][-6:] for e in plan["examined"] if "only filters or joins" in e["reason"]} == {"/shops"}
    parquet(base, {"cust": [1, 2], "who": [KEY, OTHER]}, "shops/more=1")
    assert gaps(base) == {"shops": f"who {VALUES}"}


def test_a_row_key_in_a_column_of_another_key_says_nothing_by_its_name(tmp_path: Path) -> None:
    base = estate(tmp_path)
    people = {"cust_id": [KEY, OTHER], "email": [MAIL, "b@x.example"], "pay": [654_321, 654_322]}
    write_deltalake(base / "lake" / "cust", pa.table(people), mode="overwrite", schema_mode="overwrite")
    (base / "pii-tracer.yaml").write_text(
        ESTATE.replace("    key: cust_id\n", "    key: cust_id\n    record_keys: [pay]\n")
    )
    parquet(base, {"cust_id": [654_321, 1, 2]}, "loose")
    parquet(base, {"pay": [654_321, 1, 2]}, "paid")
    assert gaps(base) == {"paid": f"pay {NAMED}"}


@pytest.mark.parametrize("keys", [1, 2])
def test_columns_are_compared_in_every_format(tmp_path: Path, keys: int) -> None:
    """One of four values is no more than chance; two are customers."""
    base = estate(tmp_path)
    held = [*(KEY, OTHER)[:keys], 6, 7, 8][:4]
    for kind, write in WRITERS.items():
        write(folder(base, f"bare_{kind}") / f"a.{kind}", *({"n": str(n), "at": "x"} for n in held))
    rows = pa.table({"n": held, "s": [{"a": n} for n in held], "l": [[n] for n in held]})
    write_deltalake(base / "lake" / "delta", rows)
    write_deltalake(base / "lake" / "parts", rows, partition_by=["n"])
    DeltaTable(base / "lake" / "delta").create_checkpoint()
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake/w")
    catalog.create_namespace("s")
    table = catalog.create_table("s.renamed", rows.schema)
    table.append(rows)
    with table.update_schema() as change:
        change.rename_column("n", "number")
    found = gaps(base)
    assert set(found) == (set() if keys == 1 else {*(f"bare_{kind}" for kind in WRITERS), "delta", "parts", "renamed"})
    assert {reason for name, reason in found.items() if name.startswith("bare_")} <= {f"n {VALUES}"}
    assert found.get("delta", "") in ("", f"l {VALUES}; n {VALUES}; s.a {VALUES}")


@pytest.mark.parametrize("anonymiser", ["abs", "loose.token"])
@pytest.mark.parametrize(
    ("tokens", "seen"),
    [([KEY, OTHER], f"token {VALUES}"), ([KEY, 1, 2, 3], None)],
    ids=["keys as they are", "tokens, of which one is hers by chance"],
)
def test_an_anonymiser_that_leaves_the_keys_is_not_believed(
    tmp_path: Path, anonymiser: str, tokens: list[int], seen: str | None
) -> None:
    """The estate file's word ends the persons there: a table with every key as it is was called clean."""
    base = estate(tmp_path, jobs="INSERT OVERWRITE s.loose SELECT abs(cust_id) AS token FROM s.cust;\n")
    (base / "pii-tracer.yaml").write_text(
        ESTATE.replace(
            "{name: s.cust,", "{name: s.loose, format: parquet, location: lake/loose}\n      - {name: s.cust,"
        )
        + f"anonymisers: [{anonymiser.replace('loose', 's.loose')}]\n"
    )
    parquet(base, {"token": tokens})
    assert gaps(base) == ({"s.loose": seen} if seen else {})
