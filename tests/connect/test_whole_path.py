"""The whole path on a Spark Connect server: an ordinary DELETE leaves the person, the plan's steps do not, and nobody else
loses a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.connect.conftest import Cli, Server, shop
from tests.connect.shop import KEY, files_with_the_person, write_estate
from tests.e2e.processes import Ended

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(3000)]


@dataclass(frozen=True)
class Done:
    """What the run left. naive: rows and files with the person after an ordinary DELETE, by format."""

    base: Path
    plan: dict[str, Any]
    result: dict[str, Any]
    ended: dict[str, Ended]
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    naive: dict[str, list[int]]


@pytest.fixture(scope="module")
def done(server: Server, cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("shop")
    write_estate(base, server.address)
    shop("build", base)
    naive = shop("naive", base)
    before = shop("rows", base)
    public = public_pem(generate(base / "approver.pem")).decode()
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
    file = str(base / "r.plan.json")
    plan = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", file]
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right"]
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    ended = {
        "plan": cli(base, "plan", str(base / "request.yaml"), *plan),
        "verify before": cli(base, "verify", file),
        "approve": cli(base, "approve", file, *signed, "--key", str(base / "approver.pem")),
        "apply": cli(base, "apply", file, *trusted),
        "verify": cli(base, "verify", file),
    }
    result = json.loads((base / "result.json").read_text())
    return Done(base, json.loads(Path(file).read_text()), result, ended, before, shop("rows", base), naive)


def test_every_command_ends_as_it_should(done: Done) -> None:
    codes = {name: ended.code for name, ended in done.ended.items()}
    told = {name: (e.stdout + e.stderr)[-1500:] for name, e in done.ended.items() if e.code}
    assert codes == {"plan": 0, "verify before": 9, "approve": 0, "apply": 0, "verify": 0}, told
    assert (done.plan["complete"], done.plan["gaps"]) == (True, [])


def test_an_ordinary_delete_over_connect_leaves_the_person_readable(done: Done) -> None:
    assert {name: seen for name, (seen, _) in done.naive.items()} == {"delta": 0, "iceberg": 0}
    assert all(files for _, files in done.naive.values())


def test_nobody_is_left_and_nobody_else_is_lost(done: Done) -> None:
    assert files_with_the_person(done.base / "warehouse") == files_with_the_person(done.base / "tables") == 0
    assert any(KEY in row for rows in done.before.values() for row in rows)
    assert done.after == {name: [row for row in rows if KEY not in row] for name, rows in done.before.items()}
    told = {name: done.result[name] for name in ("state", "residue", "bystander_rows_lost", "copies_erased")}
    assert told == {"state": "complete", "residue": [], "bystander_rows_lost": 0, "copies_erased": 3}


def test_the_table_has_its_own_settings_back(done: Done) -> None:
    log = sorted((done.base / "tables" / "cards" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    now = [action["metaData"]["configuration"] for action in actions if "metaData" in action][-1]
    assert now["delta.checkpointInterval"] == "3"
    assert not [key for key in now if key.startswith("pii-tracer.")]


def test_functions_run_on_the_servers_workers(done: Done) -> None:
    assert shop("workers", done.base) == {"parsed_alike": True, "hidden": True, "read": "0711 555"}
