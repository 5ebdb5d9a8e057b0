"""The interface for Python programs: every function that needs no Spark, called; and its page, held to it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import pii_tracer.app as api
from pii_tracer.app import Settings
from pii_tracer.model import errors
from pii_tracer.model.errors import ExitCode, NotApproved, PiiTracerError, UsageError
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED, declared, request

PAGE = (Path(__file__).parents[2] / "docs" / "python-api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FUNCTIONS = sorted(name for name in api.__all__ if name.islower())
USERS = {
    "user_id": [7, 8],
    "email": ["asha@north.example", "chen@north.example"],
    "phone": ["+91 98450 11111", "+91 98450 33333"],
}
SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: email, category: email}, {column: phone, category: phone}]
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "w").mkdir()
    write_deltalake(tmp_path / "w" / "users", pa.table(USERS))
    estate = declared("w", {"app.users": "delta", "app.mails": "delta"}) + SUBJECT
    write_deltalake(tmp_path / "w" / "mails", pa.table({"user_id": [7], "email": ["asha@north.example"]}))
    (tmp_path / "pii-tracer.yaml").write_text(estate)
    (tmp_path / "jobs.sql").write_text("INSERT OVERWRITE app.mails SELECT user_id, email FROM app.users;\n")
    (tmp_path / "request.yaml").write_text(request("user", "7"))
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    return Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state")


def test_lineage_and_what_exists(settings: Settings) -> None:
    found = api.harvest(settings)
    assert found.summary.statements == found.summary.resolved == 1
    assert (settings.state / "lineage.graph").exists()
    there = api.inventory(settings)
    assert {table.table for table in there.tables} == {"app.users", "app.mails"}
    assert not there.gaps


def test_a_plan_is_made_checked_and_approved(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    base = settings.base
    made = api.plan(settings, [base / "request.yaml"], planner="Ben Okafor")
    assert made.plan.complete
    assert made.path == settings.state / "plans" / f"{made.plan.plan_id}.plan.json"
    assert made.path.read_bytes() == made.plan.to_bytes()
    assert {copy.table for copy in made.plan.copies} == {"app.users", "app.mails"}
    assert api.check(settings, made.path).exit_code is ExitCode.DONE

    key = base / "meera.pem"
    role = "data protection officer"
    (base / "trusted.yaml").write_bytes(trusted_yaml([("Meera Iyer", role, public_pem(generate(key)).decode())]))
    path = api.approve(settings, made.path, approver="Meera Iyer", role=role, reason="request R-1", key=key)
    assert path.parent == made.path.parent
    assert not api.check(settings, made.path, trusted=base / "trusted.yaml").denied
    assert api.status(settings.state) == ()
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")  # a library that prints spoils its caller's output


def test_a_list_is_taken_in_and_planned(settings: Settings) -> None:
    """Whom the source does not know waits with the reason, and delays nobody."""
    (settings.base / "today.csv").write_text("id,key\nR-1,7\nR-2,9000\nR-3,\n")
    given = {"subject": "user", "law": "GDPR", "received": RECEIVED}
    added = api.add_requests(settings, settings.base / "today.csv", given=given)
    assert (added.added, [row.line for row in added.refusals]) == (2, [4])
    due = api.plan_due(settings, planner="Ben Okafor")
    assert (due.marked, due.requests) == (True, ("R-1",))
    assert {one.id: one.state.value for one in api.list_requests(settings)} == {"R-1": "planned", "R-2": "carried_over"}


def test_what_cannot_be_done_is_an_error_with_its_exit_code(settings: Settings) -> None:
    made = api.plan(settings, [settings.base / "request.yaml"])
    with pytest.raises(UsageError) as unsure:
        api.approve(settings, made.path, approver="a", role="b", reason="c")
    assert unsure.value.exit_code is ExitCode.USAGE
    with pytest.raises(UsageError, match="no run `p-1`"):
        api.status(settings.state, "p-1")
    with pytest.raises(UsageError, match="no unfinished run"):
        api.resume(settings.state)
    with pytest.raises(NotApproved):
        api.apply(settings, made.path)
    assert not list((settings.state / "runs").glob("*/journal.jsonl"))


def test_it_is_told_how_far_the_work_is(settings: Settings) -> None:
    class Told:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def stage(self, title: str) -> None:
            self.lines.append(f"# {title}")

        def step(self, name: str, detail: str = "") -> None:
            self.lines.append(name)

        def stop(self, why: str) -> None:
            self.lines.append(why)

        def warn(self, message: str) -> None:
            self.lines.append(message)

    told = Told()
    api.plan(settings, [settings.base / "request.yaml"], show=told)
    assert told.lines[0] == "# plan"
    assert "harvesting lineage" in told.lines


def test_importing_it_loads_no_engine() -> None:
    code = (
        "import sys, pii_tracer.app as api\n"
        f"assert set({api.__all__!r}) <= set(dir(api))\n"
        "assert not {'pyspark', 'boto3', 'pyarrow', 'click'} & set(sys.modules)\n"
        "[getattr(api, name) for name in api.__all__]\n"
        "assert not {'pyspark', 'click'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_it_has_not_is_none() -> None:
    with pytest.raises(AttributeError):
        api.nothing  # noqa: B018


@pytest.mark.parametrize("name", [name for name in api.__all__ if name not in FUNCTIONS])
def test_results_are_frozen(name: str) -> None:
    kind = getattr(api, name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[union-attr]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_on_the_page_with_an_example(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE
    calls = (node for text in EXAMPLES for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    mine = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]
    assert mine
    for call in mine:
        keywords = {str(k.arg): None for k in call.keywords}
        inspect.signature(getattr(api, name)).bind(*call.args, **keywords)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_documented_and_known(name: str) -> None:
    text = inspect.getdoc(getattr(api, name)) or ""
    assert "Raises:" in text
    raised = set(re.findall(r"\b[A-Z]\w+(?=[,:])", text.partition("Raises:")[2]))
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    told = set(re.findall(r"`(\w+)`", row.split("|")[3]))
    for error in (raised | told) - {"apply", "trusted"}:
        assert issubclass(getattr(errors, error), PiiTracerError), error
