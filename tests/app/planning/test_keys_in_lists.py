"""Rows that belong to everybody in a list or a map of theirs: the person's elements go, and the row stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.model.errors import ExitCode
from planners.locate.sql import shared_rows
from tests.app.planning.test_nested_subject import called
from tests.app.planning.test_several_persons import actions, copy_of
from tests.cli.small import declared, request

LONG = (5511223344, 5511223345, 5511223346)
SHORT = (71234, 71235, 71236)
SUBJECT = "  - name: user\n    source: app.users\n    key: user_id\n"
TOLD = "    tables: [{table: app.teams, key: %s, row: keep%s}]\n"
STRUCT = pa.list_(pa.struct([("user_id", pa.int64()), ("note", pa.string())]))


def teams(keys: Sequence[int]) -> pa.Table:
    """Of the person: alone, twice among others, not at all, an empty list, none."""
    one, two, three = keys
    lists = [[one], [two, one, three, one], [three, None], [], None]
    columns: Mapping[str, Any] = {
        "id": [1, 2, 3, 4, 5],
        "members": pa.array(lists, pa.list_(pa.int64())),
        "texts": pa.array([None if x is None else [None if v is None else str(v) for v in x] for x in lists]),
        "attendees": pa.array([None if x is None else [{"user_id": v, "note": "n"} for v in x] for x in lists], STRUCT),
        "scores": pa.array(
            [None if x is None else [(str(v), 1) for v in dict.fromkeys(x)] for x in lists],
            pa.map_(pa.string(), pa.int32()),
        ),
        "lead": ["a", "b", "c", "d", "e"],
        "meta": pa.array([{"ids": x} for x in lists], pa.struct([("ids", pa.list_(pa.int64()))])),
        "pairs": pa.array([None if x is None else [x] for x in lists], pa.list_(pa.list_(pa.int64()))),
    }
    return pa.table(columns)


def planned(
    base: Path,
    more: str,
    keys: Sequence[int] = LONG,
    *,
    table: pa.Table | None = None,
    jobs: str = "SELECT 1;\n",
    form: str = "delta",
    report: pa.Table | None = None,
) -> dict[str, Any]:
    """A plan for the first of three users. table: the teams', with a report that jobs make of them."""
    (base / "w" / "teams").mkdir(parents=True)
    write_deltalake(base / "w" / "users", pa.table({"user_id": list(keys)}))
    rows = teams(keys) if table is None else table
    if form == "delta":
        write_deltalake(base / "w" / "teams", rows)
    elif form == "parquet":
        pq.write_table(rows, base / "w" / "teams" / "part-0.parquet")
    else:
        lines = (json.dumps(row) + "\n" for row in only(keys, "members").to_pylist())
        (base / "w" / "teams" / "part-0.json").write_text("".join(lines))
    made = pa.table({"who": [keys[1], keys[0]], "id": [2, 2]}) if report is None else report
    write_deltalake(base / "w" / "report", made)
    formats = {"app.users": "delta", "app.teams": form, "app.report": "delta"}
    (base / "pii-tracer.yaml").write_text(declared("w", formats) + SUBJECT + more)
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(request("user", str(keys[0])))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "p.plan.json"
    code = called(base, "plan", str(base / "request.yaml"), "--out", str(out))
    plan: dict[str, Any] = json.loads(out.read_bytes())
    assert code == (ExitCode.DONE if plan["complete"] else ExitCode.INCOMPLETE)
    assert not any(str(key) in out.read_text() for key in LONG)
    return plan


def only(keys: Sequence[int], *names: str) -> pa.Table:
    return teams(keys).select(["id", *names, "lead"])


@pytest.mark.parametrize("keys", [LONG, SHORT])
@pytest.mark.parametrize(
    ("column", "name", "kind"),
    [
        ("members", "members.element", "bigint"),
        ("texts", "texts.element", "string"),
        ("attendees", "attendees.element.user_id", "bigint"),
        ("scores", "scores.key", "string"),
    ],
)
def test_a_list_of_keys_loses_the_persons_elements(
    tmp_path: Path, keys: tuple[int, int, int], column: str, name: str, kind: str
) -> None:
    plan = planned(tmp_path, TOLD % (name, ""), keys, table=only(keys, column).slice(0, 5))
    gaps = [g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams")]
    assert gaps == []
    copy = copy_of(plan, "app.teams")
    assert (copy["strategy"], copy["match"]) == ("clear_mentions", None)
    (mention,) = copy["mentions"]
    (term,) = mention["match"]["terms"]
    way = [{"kind": "field", "name": "user_id"}] if column == "attendees" else []
    step = {"kind": "element", "name": "key" if column == "scores" else "element"}
    assert (term["column"], term["access"], term["type"]) == (column, [step, *way], kind)
    assert mention["mask"] == {"columns": [], "held": [], "found_by": ["id", column, "lead"]}
    assert actions(plan, "app.teams")[:2] == ["delta_mask_rows", "delta_purge"]
    (step,) = (s for s in plan["steps"] if s["action"] == "delta_mask_rows")
    assert f"{column} lose the person's elements" in step["reason"]
    assert step["parameters"]["columns"] == [column]


def test_files_of_a_bare_folder_are_written_again_without_the_persons_elements(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        TOLD % ("attendees.element.user_id", ", clears: [lead]"),
        table=only(LONG, "attendees"),
        form="parquet",
    )
    assert [g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams")] == []
    copy = copy_of(plan, "app.teams")
    assert (copy["strategy"], copy["match"], len(copy["mentions"])) == ("clear_mentions", None, 1)
    assert actions(plan, "app.teams")[0] == "files_mask_rows"
    (step,) = (s for s in plan["steps"] if s["action"] == "files_mask_rows")
    assert (step["parameters"]["columns"], step["irreversible"]) == (["attendees", "lead"], True)


def test_what_says_more_of_the_person_is_cleared_with_the_element(tmp_path: Path) -> None:
    plan = planned(tmp_path, TOLD % ("members.element", ", clears: [lead]"), table=only(LONG, "members"))
    (mention,) = copy_of(plan, "app.teams")["mentions"]
    assert mention["mask"] == {"columns": ["lead"], "held": [], "found_by": ["id", "members"]}


@pytest.mark.parametrize(
    ("name", "table", "form", "why"),
    [
        (
            "members.element",
            None,
            "json",
            "no step removes elements of lists and maps in the format json: members.element",
        ),
        ("pairs.element.element", None, "parquet", "pairs.element.element is in a nested list"),
        ("meta.ids.element", None, "delta", "meta.ids.element is in a nested list"),
        ("pairs.element.element", None, "delta", "pairs.element.element is in a nested list"),
    ],
)
def test_where_no_step_removes_elements_the_copy_is_blocked(
    tmp_path: Path, name: str, table: pa.Table | None, form: str, why: str
) -> None:
    plan = planned(tmp_path, TOLD % (name, ""), table=table, form=form)
    (gap,) = (g for g in plan["gaps"] if g["kind"] == "several_persons")
    assert why in gap["reason"]
    assert "hen plan again" in gap["reason"]
    assert copy_of(plan, "app.teams")["strategy"] == "blocked"
    assert actions(plan, "app.teams") == []


def test_what_the_step_for_a_list_refuses_the_plan_says(tmp_path: Path) -> None:
    """Spark reads a list of a fixed size, and the step does not write one again: the run would stop in the middle."""
    pairs = pa.array([[LONG[0], LONG[1]], None], pa.list_(pa.int64(), 2))
    table = pa.table({"id": [1, 2], "pairs": pairs, "lead": ["a", "b"]})
    plan = planned(tmp_path, TOLD % ("pairs.element", ""), table=table, form="parquet")
    (gap,) = (g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams"))
    assert (gap["kind"], plan["complete"]) == ("unreadable", False)
    assert "`pairs.element` is not in a list or map of a column: fixed_size_list" in gap["reason"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("    tables: [{table: app.teams, key: members.element}]\n", "such a row belongs to everybody in it"),
        ("    tables: [{table: app.teams, key: members.element, row: delete}]\n", "with `row: keep`"),
        ("    tables: [{table: app.teams, key: id, record_keys: [members.element]}]\n", "such a row belongs to"),
        ("    tables: [{table: app.teams, key: members, row: keep}]\n", "members of app.teams is a list"),
        ("    tables: [{table: app.teams, key: scores.value, row: keep}]\n", "whose values cannot be named"),
        ("    tables: [{table: app.teams, key: members.user_id, row: keep}]\n", "elements are named `element`"),
        ("    tables: [{table: app.teams, key: [id, members.element]}]\n", "has 2 columns"),
    ],
)
def test_what_the_estate_file_cannot_say_of_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, told: str
) -> None:
    with pytest.raises(FileNotFoundError):
        planned(tmp_path, more)
    assert told in capsys.readouterr().err


def test_what_else_an_element_or_a_row_says_of_the_person_is_a_gap(tmp_path: Path) -> None:
    """Naively her elements go, and her number stays in a note of another's element."""
    one, two, _ = LONG
    lists = [[{"user_id": one, "note": f"{one}"}], [{"user_id": two, "note": f"guest of {one}"}]]
    table = pa.table({"id": [1, 2], "attendees": pa.array(lists, STRUCT), "lead": ["a", f"{one}"]})
    plan = planned(tmp_path, TOLD % ("attendees.element.user_id", ""), table=table)
    gaps = [g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams")]
    assert [g["kind"] for g in gaps] == ["others_rows", "others_rows"]
    for place in ("attendees.note", "lead"):
        assert any(place in g["reason"] for g in gaps), place
    assert not any("attendees.user_id" in g["reason"] for g in gaps)


def test_an_undeclared_list_of_keys_is_a_gap(tmp_path: Path) -> None:
    told = "    tables: [{table: app.teams, key: lead}]\n"
    lists = pa.array([[{"user_id": key, "note": "n"} for key in LONG]] * 2, STRUCT)
    table = pa.table({"attendees": lists, "lead": [str(LONG[0]), str(LONG[1])]})
    plan = planned(tmp_path, told, table=table)
    (gap,) = (g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams"))
    assert "them in attendees.user_id" in gap["reason"]
    assert "add `attendees.element.user_id` under `tables` or `other_keys` with `row: keep`" in gap["evidence"]
    assert not plan["applyable"]


@pytest.mark.parametrize(
    "taken",
    [
        "attendees.user_id AS who, id",
        "attendees[0].user_id AS who, id",
        "attendees AS who, id",
        "transform(attendees, a -> a.user_id) AS who, id",
        "size(attendees) AS n, id, explode(attendees).user_id AS who",
    ],
)
def test_what_jobs_make_of_a_list_is_never_deleted_by_the_key(tmp_path: Path, taken: str) -> None:
    jobs = f"INSERT INTO app.report SELECT {taken} FROM app.teams;\n"
    plan = planned(tmp_path, TOLD % ("attendees.element.user_id", ""), table=only(LONG, "attendees"), jobs=jobs)
    assert copy_of(plan, "app.report")["strategy"] == "blocked"
    assert not plan["applyable"]


def test_rows_of_a_list_can_be_declared_themselves(tmp_path: Path) -> None:
    told = (TOLD % ("attendees.element.user_id", "")).rstrip("]\n") + ", {table: app.report, key: who}]\n"
    jobs = "INSERT INTO app.report SELECT a.user_id AS who, id FROM app.teams LATERAL VIEW explode(attendees) e AS a;\n"
    plan = planned(tmp_path, told, table=only(LONG, "attendees"), jobs=jobs)
    assert copy_of(plan, "app.report")["strategy"] in ("blocked", "delete_by_key")


@pytest.mark.parametrize("declared_too", [False, True])
def test_a_list_that_a_job_collects_can_be_declared(tmp_path: Path, declared_too: bool) -> None:
    """Lineage alone does not say whose an element of such a list is."""
    jobs = "INSERT INTO app.teams SELECT 1 AS id, collect_list(user_id) AS members, 'x' AS lead FROM app.users;\n"
    told = TOLD % ("members.element", "") if declared_too else ""
    plan = planned(tmp_path, told, table=only(LONG, "members"), jobs=jobs)
    assert copy_of(plan, "app.teams")["strategy"] == ("clear_mentions" if declared_too else "blocked")


REFS = pa.struct([("user_id", pa.int64()), ("ref", pa.int64())])
A, B, C = SHORT
ELSEWHERE: dict[str, tuple[str, pa.Array, str]] = {
    "a list": (
        TOLD % ("who.element.user_id", ""),
        pa.array([[{"user_id": A, "ref": B}], [{"user_id": B, "ref": A}]], pa.list_(REFS)),
        "who.ref",
    ),
    "a map": (
        TOLD % ("who.key", ""),
        pa.array([[(A, B), (B, C)], [(C, A)]], pa.map_(pa.int64(), pa.int64())),
        "who.value",
    ),
    "fields of a map": (
        TOLD % ("who.key", ""),
        pa.array([[(A, {"user_id": B, "ref": 1})], [(B, {"user_id": A, "ref": 2})]], pa.map_(pa.int64(), REFS)),
        "who.value.user_id",
    ),
    "a struct": (
        "    tables: [{table: app.teams, key: who.user_id}]\n",
        pa.array([{"user_id": A, "ref": B}, {"user_id": B, "ref": A}], REFS),
        "who.ref",
    ),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_short_key_elsewhere_in_the_column_is_a_gap(tmp_path: Path, kind: str) -> None:
    """Naively the plan is complete: the key in one field explains the digits in another."""
    told, column, place = ELSEWHERE[kind]
    plan = planned(tmp_path, told, SHORT, table=pa.table({"id": [1, 2], "who": column, "lead": ["a", "b"]}))
    (gap,) = (g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams"))
    assert gap["kind"] == "others_rows"
    assert f"in {place}" in gap["reason"]
    assert not plan["applyable"]


def test_another_things_number_in_an_element_is_no_residue(tmp_path: Path) -> None:
    """Of seats one is called as the person's key by chance, as it may be in a column beside the list."""
    seats = [[{"user_id": A, "ref": n} for n in range(9)], [{"user_id": B, "ref": A}]]
    table = pa.table({"id": [1, 2], "who": pa.array(seats, pa.list_(REFS)), "lead": ["a", "b"]})
    plan = planned(tmp_path, TOLD % ("who.element.user_id", ""), SHORT, table=table)
    assert [g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams")] == []
    others = copy_of(plan, "app.teams")["other_keys"]
    assert "who.ref" in others
    assert not {"who", "who.user_id"} & set(others)


def test_a_map_of_persons_does_not_make_every_key_theirs(tmp_path: Path) -> None:
    """Columns are called `key` everywhere: values that are no keys of the source tell that it is something else."""
    lists = pa.array([[(A, 1)], [(B, 1)]], pa.map_(pa.int64(), pa.int32()))
    table = pa.table({"id": [1, 2], "scores": lists, "lead": ["a", "b"]})
    report = pa.table({"key": [A, *range(90_001, 90_080)], "element": [A, *range(90_001, 90_080)]})
    plan = planned(tmp_path, TOLD % ("scores.key", ""), SHORT, table=table, report=report)
    assert [g for g in plan["gaps"] if g["kind"] == "same_digits"] == []


@pytest.mark.parametrize(("many", "comparisons", "blocked"), [(0, 4, True), (1, 4, False), (0, 5, False)])
def test_too_many_keys_for_a_table_with_lists_are_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, comparisons: int, blocked: bool
) -> None:
    """Every row is compared with every key: naively a plan for very many persons is approved, and never ends."""
    monkeypatch.setattr(shared_rows, "MANY_KEYS", many)
    monkeypatch.setattr(shared_rows, "COMPARISONS", comparisons)
    plan = planned(tmp_path, TOLD % ("members.element", ""), table=only(LONG, "members"))
    found = [g for g in plan["gaps"] if g["dataset"]["name"].endswith("teams")]
    assert [g["kind"] for g in found] == ["several_persons"] * blocked
    assert all("Plan for fewer persons at a time" in g["reason"] for g in found)
    assert copy_of(plan, "app.teams")["strategy"] == ("blocked" if blocked else "clear_mentions")
