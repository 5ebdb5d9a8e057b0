"""Folders of JSON lines whose values change their type: read as Spark reads them, or blocked by name; never not found."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.planning.test_others_rows import planned as planned_with
from tests.cli.small import declared, request

KEY = "55102"
ESTATE = declared("lake", {"s.people": "json", "s.visits": "json"}) + "  - {name: user, source: s.people, key: uid}\n"


def estate(
    base: Path, *files: str, jobs: str = "INSERT INTO s.visits (uid, n) SELECT uid, city AS n FROM s.people;"
) -> Path:
    (base / "lake" / "people").mkdir(parents=True)
    (base / "lake" / "people" / "a.json").write_text(
        f'{{"uid": {KEY}, "city": "Pune"}}\n{{"uid": "7", "city": "Goa"}}\n'
    )
    (base / "lake" / "visits").mkdir()
    for number, text in enumerate(files):
        (base / "lake" / "visits" / f"{number}.json.gz").write_bytes(gzip.compress(text.encode()))
    (base / "pii-tracer.yaml").write_text(ESTATE)
    (base / "jobs.sql").write_text(jobs + "\n")
    (base / "request.yaml").write_text(request("user", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    return base


def copies(base: Path) -> dict[str, Any]:
    plan = planned_with(base)
    assert plan["gaps"] == []
    return {copy["table"]: copy for copy in plan["copies"]}


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ([f'{{"uid": {KEY}}}\n{{"uid": "{KEY}"}}\n{{"uid": 8}}\n'], 2),
        ([f'{{"uid": {KEY}}}\n{{"uid": 8}}\n', f'{{"uid": "{KEY}"}}\n\n{{"n": true}}\n', ""], 2),
        ([f'{{"uid": "{KEY}"}}\n{{"uid": {KEY}}}\n{{"uid": {{"x": 1}}}}\n{{"uid": [1]}}'], 2),
        ([f'{{"uid": {KEY}}}\n{{"uid": {KEY}.0}}\n', '{"uid": 5.5102E4, "N": 1}\n{"n": 1}\n{"uid": 8.5}\n'], 3),
        ([f'{{"uid": {KEY}, "n": "x"}}\n{{"uid": false, "n": 1}}\n{{"uid": {2**70}, "n": null}}\n'], 1),
        ([f'{{"uid": "{KEY}", "n": {"x" * 10}}}\n'.replace("x" * 10, json.dumps("x" * (1 << 21)))], 1),
    ],
)
def test_both_writings_of_a_key_are_found(tmp_path: Path, files: list[str], rows: int) -> None:
    found = copies(estate(tmp_path, *files))
    assert {name: copy["found"]["rows"] for name, copy in found.items()} == {"s.people": 1, "s.visits": rows}
    assert found["s.people"]["match"]["terms"][0]["type"] == "string"


@pytest.mark.parametrize(
    "files",
    [
        [f'{{"uid": {KEY}}}\n{{"uid": "{KEY}"}}\n{{"uid": {KEY}.0}}\n{{"uid": 8}}\n'],
        [f'{{"uid": {KEY}}}\n{{"uid": 5.5102E4}}\n', f'{{"uid": "{KEY}"}}\n'],
        [f'{{"uid": {KEY}}}\n{{"uid": true}}\n{{"uid": 7.5}}\n'],
        [f'{{"uid": {KEY}}}\n{{"UID": {KEY}}}\n{{"uid": 8}}\n'],
        [f'{{"uid": {KEY}}}\n', f'{{"Uid": "{KEY}"}}\n'],
    ],
)
def test_a_key_that_lines_write_so_that_readers_differ_is_blocked(tmp_path: Path, files: list[str]) -> None:
    plan = planned_with(estate(tmp_path, *files))
    (gap,) = plan["gaps"]
    assert gap["kind"] == "cannot_be_proved"
    assert gap["reason"].lower().startswith("lineage says that uid is a key, but readers disagree about its values")
    assert {c["table"]: c["strategy"] for c in plan["copies"]}["s.visits"] == "blocked"


def test_a_field_that_lines_name_in_two_ways_is_no_key(tmp_path: Path) -> None:
    jobs = "INSERT INTO s.visits (who) SELECT named_struct('uid', uid) AS who FROM s.people;"
    base = estate(tmp_path, f'{{"who": {{"uid": {KEY}}}}}\n{{"who": {{"UID": {KEY}}}}}\n', jobs=jobs)
    (gap,) = [g for g in planned_with(base)["gaps"] if g["kind"] != "others_rows"]
    assert gap["reason"].startswith("lineage says that who.uid is a key, but readers disagree about its values")


def test_what_takes_turns_with_an_object_is_read_as_text(tmp_path: Path) -> None:
    base = estate(tmp_path, f'{{"uid": {KEY}, "n": {{"a": [1, {{}}]}}}}\n{{"uid": 8, "n": {{"a": [2]}}}}\n')
    assert [c["facts"] for c in copies(base).values()] == [{}, {"texts": ["n"]}]


def test_a_key_inside_of_what_is_not_always_an_object_is_blocked(tmp_path: Path) -> None:
    jobs = "INSERT INTO s.visits (who) SELECT named_struct('uid', uid) AS who FROM s.people;"
    base = estate(tmp_path, f'{{"who": {{"uid": {KEY}}}}}\n{{"who": "{KEY}"}}\n', jobs=jobs)
    (gap,) = [g for g in planned_with(base)["gaps"] if g["kind"] != "others_rows"]
    assert gap["kind"] == "cannot_be_proved"
    assert gap["reason"].startswith("lineage says that who contains a key, but some lines have an object")


@pytest.mark.parametrize("text", [f'{{"uid": {KEY}\n', f"[{KEY}]\n", f'{{"uid": 1, "uid": "{KEY}"}}\n', "\xff\n"])
def test_a_folder_that_cannot_be_read_is_not_called_missing(tmp_path: Path, text: str) -> None:
    plan = planned_with(estate(tmp_path, text))
    (gap,) = plan["gaps"]
    assert gap["kind"] == "unreadable"
    assert gap["evidence"].endswith("/0.json.gz")
    assert ("has the same member twice" in gap["reason"]) is text.endswith(f'"uid": "{KEY}"}}\n')
