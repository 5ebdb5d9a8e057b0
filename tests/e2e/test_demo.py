"""The demo as a process of its own: it ends well, and whatever it prints, logs and leaves names nobody."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sample_lineage import people
from sample_lineage.s3_standin import running, stop
from tests.e2e.processes import run_until
from tests.leaks import Person, leaks

AS_USERS_RUN_IT = {"SPARK_SUBMIT_OPTS": ""}
"""With generated code, plans that adapt and Java's second compiler, which other tests do without (Makefile)."""

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]


def test_the_demo_names_nobody(tmp_path: Path) -> None:
    """Spark's own logs are left out: the demo builds its lakehouse in the same session, persons and all."""
    state = tmp_path / "state"
    try:
        ended = run_until(["demo", "--state", str(state)], tmp_path / "demo", more=AS_USERS_RUN_IT)
    finally:
        standin = running(state / "demo")
        if standin is not None:
            stop(standin)
    assert ended.code == 0, ended
    result = json.loads((state / "demo" / "result.json").read_text())
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    made = people.populate(datetime.now(timezone.utc))
    user = next(u for u in made.users if u.user_id == people.PERSON)
    told = Person((user.pan, user.phone, user.aadhaar_ref))
    assert leaks(told, [tmp_path / "demo.out", tmp_path / "demo.err"]) == []
    left = [path for path in state.rglob("*") if path.is_file() and "estate" not in path.relative_to(state).parts]
    assert len(left) > 20
    # the demo's own panel about a plain DELETE and its S3 server's log are not a run's
    left = [path for path in left if path.name not in ("naive.json", "s3-standin.log")]
    assert leaks(Person(told.values, (str(people.PERSON),)), left) == []
