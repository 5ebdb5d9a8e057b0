"""The attestations of a state folder, as they describe themselves. Only `attest verify` checks them, with keys from
somebody else."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_folder import evidence_of
from pii_tracer.app.state_views.untrusted_files import Broken, Remembered, key_of
from pii_tracer.common.atomic_files import real_path
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import PiiTracerError, ProofError
from pii_tracer.proof.attestation_issuing import stamp_of
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, leaves_under
from pii_tracer.proof.untrusted_json import json_object, read_limited

_MOST_BYTES = 256 * 1024 * 1024
_HEX = re.compile(r"(?:sha256:)?[0-9a-f]{8,128}")


@dataclass(frozen=True)
class AttestationClaim:
    """What an attestation says. scope: digest of the searched files. exceptions: what it names as not erased, with why.

    count: how many requests it is about. requests: their ids, as the evidence has them; none where that has others.
    signers: ids of keys, of whomever. stamped: a time stamp lies beside it. certificate: a page for people lies there.
    """

    key: str
    run: str
    run_key: str
    count: int
    requests: tuple[str, ...]
    at: datetime
    files: int
    scope: str
    root: str
    leaves: int
    exceptions: tuple[tuple[str, str], ...]
    not_proved: tuple[str, ...]
    signers: tuple[str, ...]
    stamped: bool
    path: str


class AttestationFolder:
    """Attestations below the runs of a state folder."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._kept: Remembered[AttestationClaim | Broken] = Remembered(20_000)

    def all(self) -> tuple[tuple[AttestationClaim, ...], tuple[Broken, ...]]:
        """Every attestation, the newest first; and those that cannot be read."""
        claims, broken = [], []
        for path in self._files():
            found = self._read(path)
            broken.append(found) if isinstance(found, Broken) else claims.append(found)
        return tuple(sorted(claims, key=lambda c: (-c.at.timestamp(), c.path))), tuple(broken)

    def one(self, key: str) -> AttestationClaim | Broken | None:
        """The attestation of a key; None where there is none."""
        return next((self._read(path) for path in self._files() if self._key(path) == key), None)

    def _files(self) -> list[Path]:
        runs = real_path(self._state) / "runs"
        return sorted(path for path in runs.glob("*/attestation.json") if path.is_file())

    def _key(self, path: Path) -> str:
        return key_of(str(path.relative_to(real_path(self._state))))

    def _read(self, path: Path) -> AttestationClaim | Broken:
        def read() -> AttestationClaim | Broken:
            try:
                return self._claim(path)
            except (PiiTracerError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return self._broken(path)

        try:
            return self._kept.get(path, read)
        except OSError:
            return self._broken(path)

    def _broken(self, path: Path) -> Broken:
        name = str(path.relative_to(real_path(self._state)))
        what = "The attestation cannot be read: the file was cut or edited, or is none"
        return Broken(self._key(path), name, what, "`pii-tracer attest verify` says more; restore it from the evidence")

    def _claim(self, path: Path) -> AttestationClaim:
        envelope = json_object(read_limited(path, _MOST_BYTES))
        said: dict[str, Any] = json_object(base64.b64decode(envelope["payload"], validate=True))["predicate"]
        run = path.relative_to(real_path(self._state) / "runs").parts[0]
        return AttestationClaim(
            key=self._key(path),
            run=run,
            run_key=key_of(run),
            count=int(said["requests"]["count"]),
            requests=_ids(said["requests"], path),
            at=parse_time(said["scope"]["at"]),
            files=int(said["scope"]["files"]),
            scope=_hex(said["scope"]["digest"]),
            root=_hex(said["merkle"]["root"]),
            leaves=int(said["merkle"]["leaves"]),
            exceptions=tuple((str(item["what"]), str(item["why"])) for item in said["exceptions"]),
            not_proved=tuple(str(item) for item in said["not_proved"]),
            signers=tuple(str(one["keyid"]) for one in envelope["signatures"]),
            stamped=stamp_of(path).is_file(),
            path=str(path),
        )


def _ids(said: dict[str, Any], path: Path) -> tuple[str, ...]:
    try:
        return tuple(leaf.id for leaf in leaves_under(said, read_limited(evidence_of(path) / REQUESTS, _MOST_BYTES)))
    except (OSError, ValueError, ProofError):
        return ()


def _hex(value: object) -> str:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("not a digest")
    return value
