"""The whole path on a real Airflow with its scheduler and triggerer: plan, approval, apply, verify, recheck."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pii_tracer.app import Settings
from pii_tracer.run.journal import Kind, Record, parse
from tests.estate import KEY, MAIL, OTHERS, add_back, add_copy, add_request, sign, users, write_estate
from tests.services import Airflow, running

EXAMPLE = """
# Airflow reads files alone in which its name and that of a DAG stand
from datetime import timedelta
from example_dags.pii_erasure import erasure, watch
for task in (*erasure.tasks, *watch.tasks):
    task.retry_delay = timedelta(seconds=1)
    if task.task_id == "approved":
        task.poke_interval = 2
"""
SCHEDULED = ("pii_erasure", "pii_watch")
APPLY_ONLY = """
from datetime import timedelta
from airflow.sdk import DAG
from pii_tracer_airflow.operators import ApplyOperator
for name in ("late", "backed"):
    home = {homes!r} + name
    with DAG(name, schedule=None) as dag:
        ApplyOperator(
            task_id="apply", plan_file=home + "/one.plan.json", trusted=home + "/trusted.yaml", retries=3,
            retry_delay=timedelta(seconds=1), estate_file=home + "/pii-tracer.yaml", state=home + "/.pii-tracer",
        )
    globals()[name] = dag
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all estates of this file."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(scope="module")
def airflow(homes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("airflow")
    dags = {"example.py": EXAMPLE, "apply_only.py": APPLY_ONLY.format(homes=f"{homes}/")}
    with running(home, dags, {"PII_TRACER_HOME": str(homes / "example")}) as services:
        wanted = {"pii_erasure", "pii_watch", "late", "backed"}
        services.until("DAGs are parsed", lambda: {row[0] for row in services.rows("SELECT dag_id FROM dag")} >= wanted)
        yield services


def begin(airflow: Airflow, dag: str) -> None:
    """Let a DAG run. One with a schedule begins the run of today by itself."""
    airflow.run("dags", "unpause", dag)
    if dag not in SCHEDULED:
        airflow.run("dags", "trigger", dag)


def approved_plan(home: Path, **more: bool) -> tuple[Settings, Path]:
    """An estate with a plan that both approvers signed."""
    from pii_tracer.app import plan_due

    home.mkdir()
    settings, plan_file = write_estate(home, **more), home / "one.plan.json"
    add_request(settings)
    assert plan_due(settings, planner="Erasure pipeline", out=plan_file).marked
    for name in ("meera", "ben"):
        sign(settings, plan_file, name)
    return settings, plan_file


def journal(settings: Settings) -> tuple[Record, ...]:
    """What the only run has written down."""
    found = list((settings.state / "runs").glob("*/journal.jsonl"))
    assert len(found) <= 1, "a second run"
    return parse(found[0].read_bytes())[0] if found else ()


def count(settings: Settings, kind: Kind) -> int:
    return sum(record.kind is kind for record in journal(settings))


def runner(settings: Settings) -> dict[str, object]:
    """Who has or had the run last."""
    [lease] = (settings.state / "runs").glob("*/lease.json")
    return dict(json.loads(lease.read_bytes()))


def javas(pid: int) -> list[int]:
    """The Java processes that a process has started."""
    found = subprocess.run(["pgrep", "-P", str(pid), "java"], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def test_from_the_plan_to_the_proof(airflow: Airflow, homes: Path) -> None:
    (homes / "example").mkdir()
    settings = write_estate(homes / "example")
    add_request(settings)
    begin(airflow, "pii_erasure")

    # it waits for people in the triggerer, and another triggerer goes on with that
    airflow.until_task("pii_erasure", "approved", "deferred")
    [plan_file] = (settings.state / "plans").glob("*.plan.json")
    sign(settings, plan_file, "meera")
    airflow.until("1 of 2", lambda: "1 of 2 approvers have approved" in airflow.log("pii_erasure", "approved"))
    airflow.kill("triggerer")
    sign(settings, plan_file, "ben")
    assert airflow.task("pii_erasure", "approved")[0] == "deferred"
    assert users(settings.base).count(KEY) == 2
    airflow.start("triggerer")
    airflow.until_task("pii_erasure", "approved", "success")

    # it is told to stop in the middle of a step: Spark ends first, and the run is given back
    airflow.until("a step begins", lambda: count(settings, Kind.STEP_INTENT) == 1)
    pid = int(str(runner(settings)["pid"]))
    engines = javas(pid)
    os.kill(pid, signal.SIGTERM)
    airflow.until("the task ends", lambda: not Path(f"/proc/{pid}").exists(), 60)
    assert engines
    assert not [one for one in engines if Path(f"/proc/{one}").exists()]
    assert runner(settings)["released"] is True

    # the second try is killed, the third one goes on with the same run
    begun = count(settings, Kind.STEP_INTENT) + count(settings, Kind.STEP_PROBED)
    airflow.until("it goes on", lambda: count(settings, Kind.LEASE) == 2)
    airflow.until(
        "the next step", lambda: count(settings, Kind.STEP_INTENT) + count(settings, Kind.STEP_PROBED) > begun
    )
    os.kill(int(str(runner(settings)["pid"])), signal.SIGKILL)
    assert airflow.until_task("pii_erasure", "apply", "success") == 3
    assert count(settings, Kind.LEASE) == 3
    assert count(settings, Kind.STEP_PROBED) >= 1
    airflow.until_task("pii_erasure", "verify", "success")
    assert users(settings.base) == sorted([*OTHERS, *OTHERS])

    # what Airflow keeps of it
    facts = {
        task: json.loads(value)
        for task, value in airflow.rows(
            "SELECT task_id, value FROM xcom WHERE dag_id = 'pii_erasure' AND key = 'return_value'"
        )
    }
    assert facts["apply"]["state"] == facts["verify"]["state"] == "complete"
    assert Path(facts["apply"]["attestation"]).exists()
    assert facts["apply"]["residue"] == facts["verify"]["residue"] == 0

    # and they look again: all is well, until a backup brings the person back
    begin(airflow, "pii_watch")
    airflow.until_task("pii_watch", "recheck", "success")
    airflow.until_task("pii_watch", "readiness", "success")
    add_back(settings.base)
    airflow.run("dags", "trigger", "pii_watch")  # its schedule has had the run of today
    airflow.until(
        "a second run", lambda: airflow.rows("SELECT count(*) FROM dag_run WHERE dag_id='pii_watch'")[0][0] == 2
    )
    airflow.until_task("pii_watch", "recheck", "failed")
    assert airflow.task("pii_watch", "recheck") == ("failed", 1)
    assert "1 erased persons are back" in airflow.log("pii_watch", "recheck")


def test_residue_fails_the_task_at_the_first_try(airflow: Airflow, homes: Path) -> None:
    settings, _ = approved_plan(homes / "late")
    add_copy(settings.base)
    begin(airflow, "late")
    assert airflow.until_task("late", "apply", "failed") == 1
    told = airflow.log("late", "apply")
    assert re.search(r"residue [1-9]", told)
    assert "exit code: 9" in told
    assert "plan again" in told


def test_a_run_that_waits_frees_its_worker_and_is_gone_on_with(airflow: Airflow, homes: Path) -> None:
    settings, _ = approved_plan(homes / "backed", backups=True)
    begin(airflow, "backed")
    airflow.until_task("backed", "apply", "deferred")
    assert users(settings.base) == sorted([*OTHERS, *OTHERS])
    assert runner(settings)["released"] is True
    confirm(settings)
    airflow.run("tasks", "clear", "--yes", "backed")
    airflow.until_task("backed", "apply", "success")
    assert count(settings, Kind.LEASE) == 2


def test_no_value_of_a_person_is_in_what_airflow_keeps(airflow: Airflow) -> None:
    """Its database whole (XCom, rendered templates, triggers), and every log. Runs last: the others fill them."""
    with closing(sqlite3.connect(f"file:{airflow.database}?mode=ro", uri=True)) as database:
        kept = {"database": "\n".join(database.iterdump())}
    kept |= {str(path): path.read_text(errors="replace") for path in airflow.home.rglob("*") if is_text(path)}
    for table in ("xcom", "rendered_task_instance_fields"):
        assert airflow.rows(f"SELECT count(*) FROM {table}")[0][0] > 0
    assert "is approved" in airflow.log("pii_erasure", "approved")
    assert {(name, value) for name, text in kept.items() for value in (KEY, MAIL, *OTHERS) if value in text} == set()


def is_text(path: Path) -> bool:
    return path.is_file() and path.suffix in {".log", ".out", ".txt", ".json"}


def confirm(settings: Settings) -> None:
    """The backup's owner says that the recovery points are gone."""
    from pii_tracer.cli.main import run

    (settings.base / "ticket.txt").write_text("recovery points deleted")
    words = ["--evidence", str(settings.base / "ticket.txt"), "--by", "Ben Okafor", "--role", "data owner"]
    said = [
        "--said",
        "recovery points deleted",
        "--key",
        str(settings.base / "ben.pem"),
        "--state",
        str(settings.state),
    ]
    assert run(["confirm", "vault", *words, *said]) == 0
