"""The same envelope, checked by a tool that is not ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from pii_tracer.review.trusted_keys import public_pem
from tests.proof.test_attestation import APPROVER, KEY, made


def test_securesystemslib_verifies_it_alone_and_refuses_a_changed_one(tmp_path: Path) -> None:
    envelope = made(tmp_path)
    keyid = json.loads(envelope)["signatures"][0]["keyid"]
    key, stranger = (SSlibKey.from_crypto(k.public_key(), keyid=keyid) for k in (KEY, APPROVER))
    Envelope.from_dict(json.loads(envelope)).verify([key], threshold=1)
    with pytest.raises(VerificationError):
        Envelope.from_dict(json.loads(envelope)).verify([stranger], threshold=1)
    changed = json.loads(envelope)
    changed["payload"] = changed["payload"].replace("A", "B", 1)
    with pytest.raises(VerificationError):
        Envelope.from_dict(changed).verify([key], threshold=1)


def test_the_verifier_needs_no_engine_no_executor_and_no_network(tmp_path: Path) -> None:
    """What an auditor runs: a fresh interpreter that may not open a socket, and what it loads."""
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise SystemExit('a socket was opened')\n"
        "socket.socket.connect = refuse\n"
        "from pii_tracer.cli.main import run\n"
        "code = run(['attest', 'verify', *sys.argv[1:]])\n"
        "heavy = {'pyspark', 'boto3', 'botocore', 'executors', 'planners', 'networkx', 'sqlglot', 'pyarrow', 'deltalake'}\n"
        "raise SystemExit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *_arguments(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "everything holds" in done.stdout


def _arguments(folder: Path) -> list[str]:
    made(folder)
    (folder / "key.pub").write_bytes(public_pem(KEY.public_key()))
    return [str(folder / "attestation.json"), "--key", str(folder / "key.pub")]
