"""Rows with a list or a map of users, from plan to attestation: one user's elements go, and every other element stays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.e2e.exchange import begin, write_files
from tests.leaks import Person, leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

USER, TWO, THREE = "U-771204", "U-771205", "U-9"
NAME = "Asha Rao of Pune"
LISTS: list[list[str | None] | None] = [
    [USER],
    [TWO, USER, THREE, USER, None],
    [THREE, TWO],
    [],
    None,
    [THREE, TWO, USER],
]
"""Of the person alone, twice among others, of others, of nobody; the last row is another's copy of the second."""

COLUMNS = (
    "id int, members array<string>, attendees array<struct<user_id:string,seat:int>>, scores map<string,int>,"
    " lead_name string"
)


def _row(number: int, users: list[str | None] | None, lead: str) -> tuple[Any, ...]:
    if users is None:
        return number, None, None, None, lead
    attendees = [None if user is None else (user, seat) for seat, user in enumerate(users)]
    return number, users, attendees, {user: len(user) for user in users if user}, lead


def rows() -> list[tuple[Any, ...]]:
    return [_row(n, users, NAME if users == [USER] else f"lead {n}") for n, users in enumerate(LISTS)]


def left() -> list[tuple[Any, ...]]:
    """What shall be left: where she was in it, `lead_name` is cleared."""
    found = []
    for number, members, attendees, scores, lead in rows():
        if members is not None:
            lead = None if USER in members else lead
            members = [user for user in members if user != USER]
            attendees = [one for one in attendees if one is None or one[0] != USER]
            scores = {user: score for user, score in scores.items() if user != USER}
        found.append((number, members, attendees, scores, lead))
    return found


TABLES = {"app.teams": "delta", "ex.core.teams": "iceberg", "app.shelves": "parquet", "app.drawers": "orc"}
NAMES = ("members.element", "attendees.element.user_id", "scores.key")


@dataclass(frozen=True)
class Run:
    """What the run left."""

    base: Path
    plan: dict[str, Any]
    result: dict[str, Any]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def write_estate(base: Path) -> None:
    first, *others = NAMES
    told = {"key": first, "row": "keep", "clears": ["lead_name"]}
    told |= {"other_keys": [{"column": name, "row": "keep"} for name in others]}
    subject = {"name": "user", "source": "app.users", "key": "user_id"}
    subject |= {"other_keys": [{"column": "friends.element", "row": "keep"}]}
    declared = [{"name": "app.users", "format": "delta", "location": "tables/users"}]
    folders = {"app.teams": "teams", "app.shelves": "shelves", "app.drawers": "drawers"}
    declared += [{"name": n, "format": TABLES[n], "location": f"tables/{folder}"} for n, folder in folders.items()]
    subject |= {"tables": [{"table": name, **told} for name in TABLES]}
    write_files(base, "teams", declared, subject)


def build(base: Path, spark: Any) -> None:
    """The tables, each with a history, deletion vectors or delete files, a change feed, a branch and a tag."""
    write_estate(base)
    begin(base, spark, ("app", "ex.core"), ("app.users", "app.teams", "app.shelves", "app.drawers"))
    users = [(USER, [TWO]), (TWO, [USER, THREE]), (THREE, [])]
    spark.createDataFrame(users, "user_id string, friends array<string>").createOrReplaceTempView("made_users")
    spark.sql(f"CREATE TABLE app.users USING delta LOCATION '{base}/tables/users' AS SELECT * FROM made_users")
    spark.createDataFrame(rows(), COLUMNS).coalesce(1).createOrReplaceTempView("made")
    vectors = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE TABLE app.teams USING delta {vectors} LOCATION '{base}/tables/teams' AS SELECT * FROM made")
    modes = ", ".join(f"'write.{act}.mode'='merge-on-read'" for act in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE ex.core.teams USING iceberg TBLPROPERTIES ({modes}) AS SELECT * FROM made")
    spark.sql("ALTER TABLE ex.core.teams CREATE BRANCH audit")
    spark.sql("ALTER TABLE ex.core.teams CREATE TAG q1")
    for name in ("app.shelves", "app.drawers"):
        place = f"{base}/tables/{name.partition('.')[2]}"
        spark.sql(f"CREATE TABLE {name} USING {TABLES[name]} LOCATION '{place}' AS SELECT * FROM made")
    for name in ("app.teams", "ex.core.teams"):
        spark.sql(f"UPDATE {name} SET id = id WHERE id = 1")


def read(spark: Any, table: str) -> str:
    spark.sql(f"REFRESH TABLE {table}")
    return text([tuple(row) for row in spark.table(table).collect()])


def text(rows_: list[tuple[Any, ...]]) -> str:
    """Rows in one form, to be compared: the order of a map's entries is none."""
    return json.dumps(sorted(rows_), indent=1, sort_keys=True)


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("teams")
    build(base, spark)
    for name in TABLES:
        assert read(spark, name) == text(rows()), name
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    file, result = base / "p.plan.json", base / "result.json"
    options = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    codes = [cli(base, "plan", str(base / "request.yaml"), *options)]
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    codes.append(cli(base, "approve", str(file), *signed))
    codes.append(cli(base, "apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(result)))
    codes.append(cli(base, "verify", str(file)))
    plan = json.loads(file.read_text())
    assert codes == [0, 0, 0, 0], [plan["gaps"], json.loads(result.read_text()) if result.exists() else None]
    return Run(base, plan, json.loads(result.read_text()))


@pytest.mark.parametrize("name", [*TABLES, "ex.core.teams.branch_audit", "ex.core.teams.tag_q1"])
def test_her_elements_are_gone_and_everything_else_is_there(done: Run, spark: Any, name: str) -> None:
    assert read(spark, name) == text(left())


def test_a_list_in_the_source_loses_her_too(done: Run, spark: Any) -> None:
    users = {row[0]: row[1] for row in spark.table("app.users").collect()}
    assert users == {TWO: [THREE], THREE: []}


def test_the_result_says_it_and_claims_no_more(done: Run) -> None:
    result = done.result
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert result["bystander_rows_lost"] == 0
    strategies = {c["table"]: c["strategy"] for c in done.plan["copies"] if c["origin"] is None}
    assert strategies == {"app.users": "delete_by_key", **dict.fromkeys(TABLES, "clear_mentions")}
    assert (
        leaks(Person((), (USER,)), [done.base / "state", *done.base.glob("p.plan*"), done.base / "result.json"]) == []
    )


def test_nothing_of_her_is_in_any_file(done: Run) -> None:
    for path in (p for folder in ("tables", "warehouse") for p in (done.base / folder).rglob("*") if p.is_file()):
        assert USER.encode() not in path.read_bytes(), path
        assert NAME.encode() not in path.read_bytes(), path


def test_an_element_that_comes_back_is_found(done: Run, spark: Any) -> None:
    """Last: it changes the table."""
    spark.sql(f"INSERT INTO app.teams VALUES (99, array('{THREE}', '{USER}'), NULL, NULL, 'x')")
    assert cli(done.base, "verify", str(done.base / "p.plan.json")) == 9
    assert cli(done.base, "recheck") == 9
