"""A table format of another package goes the whole way: discovered, planned, erased, verified by rows and by bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from tests.cli.small import declared, request
from tests.toyformat.installation import toy_installed
from tests.toyformat.tables import open_toy, write_toy

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

EMAIL = "ilse.brandt@example.org"
USERS = [
    {"user_id": 7340219981, "email": EMAIL},
    {"user_id": 7340219982, "email": "bo.lind@example.org"},
]
ORDERS = [{"order_id": n, "user_id": USERS[n % 2]["user_id"], "amount": n * 10} for n in range(6)]
USER_COLUMNS = {"user_id": "bigint", "email": "string"}
ORDER_COLUMNS = {"order_id": "bigint", "user_id": "bigint", "amount": "bigint"}
SUBJECTS = "  - {name: user, source: app.users, key: user_id, identifiers: [{column: email, category: email}]}\n"
JOBS = "INSERT INTO app.orders SELECT 1 AS order_id, user_id, 1 AS amount FROM app.users;\n"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Two toy tables, of which each has a former version that holds the person as well."""
    folder = tmp_path / "tables"
    for _ in range(2):
        write_toy(folder / "users", USERS, USER_COLUMNS)
        write_toy(folder / "orders", ORDERS, ORDER_COLUMNS)
    (tmp_path / "jobs.sql").write_text(JOBS)
    (tmp_path / "pii-tracer.yaml").write_text(declared("tables", {"app.users": "toy", "app.orders": "toy"}) + SUBJECTS)
    (tmp_path / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    (tmp_path / "request.yaml").write_text(request("user", "7340219981"))
    return tmp_path


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def test_a_person_leaves_tables_of_a_format_that_the_product_does_not_know(
    spark: Any, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with toy_installed(tmp_path_factory.mktemp("toy")):
        plan, result = base / "r.plan.json", base / "result.json"
        immediately = ["--retention", "immediate", "--reason", "test: nobody writes or reads"]
        assert cli(base, "plan", str(base / "request.yaml"), *immediately, "--out", str(plan)) == 0
        actions = [step["action"] for step in json.loads(plan.read_text())["steps"]]
        assert actions.count("toy_delete_rows") == actions.count("toy_remove_old") == 2
        signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--unsigned"]
        assert cli(base, "approve", str(plan), *signed) == 0

        # the naive way: a new version without her, and the old file still has her
        assert EMAIL in (base / "tables" / "users" / "rows-0.jsonl").read_text()

        assert cli(base, "apply", str(plan), "--result", str(result)) == 0
        assert cli(base, "verify", str(plan)) == 0
        found = json.loads(result.read_text())
        assert (found["copies_erased"], found["rows_erased"], found["residue"]) == (2, 4, [])

        # what another writer brings back is seen again
        write_toy(base / "tables" / "orders", ORDERS, ORDER_COLUMNS)
        assert cli(base, "verify", str(plan)) == 9
    texts = "".join(path.read_text() for path in (base / "tables" / "users").rglob("*") if path.is_file())
    assert EMAIL not in texts
    assert "7340219981" not in texts
    assert open_toy(base / "tables" / "users").rows() == USERS[1:]
