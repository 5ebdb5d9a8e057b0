"""A person's key is destroyed in the key table and its history; the ciphertext stays, and opens for nobody."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pii_tracer.cli.main import run
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from tests.e2e import shredded
from tests.e2e.shredded import OTHERS, PERSON, PHONE, approve, build, numbers, plan
from tests.leaks import Person, leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_the_naive_way_leaves_the_key_in_the_tables_history(tmp_path: Path) -> None:
    build(tmp_path)
    assert numbers(tmp_path).count(PHONE) == 2
    DeltaTable(str(tmp_path / "tables" / "keys")).delete(f"caller = '{PERSON}'")
    assert PHONE not in numbers(tmp_path)
    assert PHONE in numbers(tmp_path, version=0)


def test_a_destroyed_key_is_gone_everywhere_and_complete_only_after_the_caches(spark: Any, tmp_path: Path) -> None:
    build(tmp_path)
    cells = (tmp_path / "tables" / "calls" / "part-0.parquet").read_bytes()
    assert plan(tmp_path) == 0
    made = json.loads((tmp_path / "p.plan.json").read_text())
    assert {c["table"]: (c["kind"], c["strategy"]) for c in made["copies"]} == {
        "tel.users": ("SOURCE", "delete_by_key"),
        "tel.keys": ("KEY", "delete_by_key"),
        "tel.calls": ("DERIVED", "destroy_key"),
        None: ("BACKUP", "confirm"),
    }
    assert approve(tmp_path) == 0
    result = tmp_path / "result.json"
    trusted = ["--trusted", str(tmp_path / "approvers.yaml"), "--result", str(result)]
    assert shredded.cli(tmp_path, "apply", str(tmp_path / "p.plan.json"), *trusted) == 8
    waiting = json.loads(result.read_text())
    assert (waiting["state"], waiting["attestation"]) == ("waiting", None)
    assert waiting["waiting_until"] is not None
    resume = ["resume", "--state", str(tmp_path / "state"), "--wait", "120"]
    assert run(resume) == 8  # the caches are over, and nobody has confirmed the backup
    assert shredded.confirm(tmp_path, "somebody else") == 5
    assert run(resume) == 8
    assert shredded.confirm(tmp_path, "Dr. Sen") == 0
    assert run(resume) == 0
    done = json.loads(result.read_text())
    assert (done["state"], done["residue"], done["bystander_rows_lost"]) == ("complete", [], 0)
    assert (done["copies_total"], done["copies_erased"], done["copies_confirmed"]) == (4, 3, 1)
    assert (tmp_path / "tables" / "calls" / "part-0.parquet").read_bytes() == cells  # nobody wrote to it
    table = DeltaTable(str(tmp_path / "tables" / "keys"))
    assert numbers(tmp_path) == [None, None, *[n for n in OTHERS.values() for _ in range(2)]]
    for version in range(table.version()):
        with pytest.raises(Exception, match=r"(?i)version|log|not found|no such"):
            pa.table(DeltaTable(str(tmp_path / "tables" / "keys"), version=version).to_pyarrow_table())
    envelope = json.loads(Path(done["attestation"]).read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    exceptions = {e["what"]: (e["kind"], e["who"], e["why"]) for e in predicate["exceptions"]}
    kind, _, why = exceptions["c-tel.calls"]
    assert (kind, "ciphertext" in why) == ("sealed", True)
    kind, who, why = exceptions["c-backup-vault"]
    assert (kind, who, "nobody looked at it" in why) == ("confirmed", "Dr. Sen", True)
    public = str(tmp_path / "state" / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", done["attestation"], "--key", public]) == 0
    page = tmp_path / "certificate.html"
    assert run(["attest", "certificate", "--state", str(tmp_path / "state"), "--out", str(page)]) == 0
    assert page.read_text().count("unreadable since") == 1
    states = {e.copy_id: e.state.value for e in DeletionLog(Path(done["deletion_log"]), "telephony").entries()}
    assert states["c-backup-vault"] == "confirmed"
    tried = next(s["result"] for s in predicate["steps"] if s["action"] == "key_try_to_read")
    assert tried == {"rows": 6, "rows_without_key": 2, "rows_opened": 4}
    caller = Person((PERSON, PHONE))
    assert leaks(caller, [tmp_path / "state", *tmp_path.glob("p.*"), result]) == []
