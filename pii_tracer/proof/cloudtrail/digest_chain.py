"""CloudTrail's digest chain, checked from a folder that was synced from the trail's bucket.

A digest names the log files of about an hour with their SHA-256, and the digest before it. It is signed with RSA
(PKCS#1 v1.5, SHA-256) over four lines: its end time as it is written, `bucket/key`, the SHA-256 of its content in hex,
and the signature of the digest before it (`null` where there is none). All hashes are over the content, unzipped.
Source: https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-custom-validation.html

The signature is metadata of the S3 object, which a sync does not bring along. It is read from a file beside the digest,
`NAME.json.gz.head.json`, as `aws s3api head-object` prints it. Digests of a backfill are not read.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.cloudtrail.deletion_events import Deletion, trail_deletions, zoned
from pii_tracer.proof.findings import Check, ProofFinding
from pii_tracer.proof.untrusted_json import MAX_SMALL_BYTES, json_object, read_limited

SIDECAR = ".head.json"
MAX_UNZIPPED = 2**29
"""CloudTrail's files are some 50 MB at most; more is no log file."""
_ALGORITHM = "SHA256withRSA"


@dataclass(frozen=True)
class Digest:
    """A digest file. place: its path from `AWSLogs/` on. sha256: hex, of its content."""

    place: str
    body: Mapping[str, Any]
    sha256: str
    signature: str | None
    start: datetime
    end: datetime

    @property
    def chain(self) -> str:
        """Account, region and trail: the name without its time."""
        return self.place.rsplit("/", 1)[-1].rsplit("_", 1)[0]


@dataclass
class Trail:
    """What a folder's digests prove. logs: the log files that a sound digest names and that have its hash.

    deletions: what these log files tell. spans: for each sound chain the time that its digests cover.
    """

    logs: set[str] = field(default_factory=set)
    deletions: list[Deletion] = field(default_factory=list)
    spans: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    findings: list[ProofFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def broken(self, message: str) -> None:
        """Note something about the chain that does not hold."""
        self.findings.append(ProofFinding(Check.TRAIL_CHAIN, message))


def load_keys(data: bytes) -> dict[str, RSAPublicKey]:
    """Public keys by fingerprint, from what `aws cloudtrail list-public-keys` prints (Value: DER, PKCS#1, in Base64).

    Raises:
        ProofError: it is something else.
    """
    keys = {}
    try:
        for item in json_object(data)["PublicKeyList"]:
            key = load_der_public_key(base64.b64decode(item["Value"], validate=True))
            if not isinstance(key, RSAPublicKey):
                raise ValueError
            keys[str(item["Fingerprint"])] = key
    except (ValueError, KeyError, TypeError, UnsupportedAlgorithm):
        raise ProofError(
            "the trail's public keys cannot be read", todo="give the output of `aws cloudtrail list-public-keys`"
        ) from None
    return keys


def read_trail(folder: Path, keys: Mapping[str, RSAPublicKey]) -> Trail:
    """Check every digest chain in a folder and every log file that it names."""
    trail = Trail()
    files = _places(folder, trail)
    chains: dict[str, list[Digest]] = {}
    for place in sorted(p for p in files if "/CloudTrail-Digest/" in p):
        if place.endswith("_backfill.json.gz"):
            trail.notes.append(f"{place}: digests of a backfill are not supported")
            continue
        digest = _digest(place, files[place], trail)
        if digest:
            chains.setdefault(digest.chain, []).append(digest)
    if not chains:
        trail.broken("the folder contains no digest file")
    for name in sorted(chains):
        _chain(name, sorted(chains[name], key=lambda d: d.end), keys, files, trail)
    unnamed = sum("/CloudTrail/" in place and place not in trail.logs for place in files)
    if unnamed:
        trail.notes.append(f"not read: {counted(unnamed, 'log file')} without a digest, which cannot prove anything")
    return trail


def _places(folder: Path, trail: Trail) -> dict[str, Path]:
    """Files by their path from `AWSLogs/` on: what lies before it depends on how the bucket was synced."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.json.gz")):
        place = _place("/" + path.relative_to(folder).as_posix())
        if place is None or not path.is_file():
            continue
        if place in found:
            trail.broken(f"{place} appears twice")
        found[place] = path
    return found


def _place(key: str) -> str | None:
    at = ("/" + key).find("/AWSLogs/")
    return ("/" + key)[at + 1 :] if at >= 0 else None


def _unzipped(path: Path) -> bytes:
    """The whole content. Raises `ValueError` when it is cut off, followed by anything, or too large."""
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = unzip.decompress(read_limited(path, MAX_UNZIPPED), MAX_UNZIPPED)
    except (zlib.error, OSError, ProofError):
        raise ValueError from None
    if not unzip.eof or unzip.unused_data:
        raise ValueError
    return data


def _digest(place: str, path: Path, trail: Trail) -> Digest | None:
    try:
        content = _unzipped(path)
        body = json_object(content)
        start, end = zoned(body["digestStartTime"]), zoned(body["digestEndTime"])
        if _place(body["digestS3Object"]) != place or not start < end or not isinstance(body["logFiles"], list):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        trail.broken(f"{place} is not a digest, or a digest of a different place")
        return None
    return Digest(place, body, hashlib.sha256(content).hexdigest(), _signature(path), start, end)


def _signature(path: Path) -> str | None:
    beside = path.with_name(path.name + SIDECAR)
    try:
        said = json_object(read_limited(beside, MAX_SMALL_BYTES))["Metadata"]
        if said["signature-algorithm"] != _ALGORITHM:
            raise ValueError
        return str(said["signature"])
    except (OSError, ProofError, ValueError, KeyError, TypeError):
        return None


def _chain(
    name: str, digests: list[Digest], keys: Mapping[str, RSAPublicKey], files: Mapping[str, Path], trail: Trail
) -> None:
    sound = True
    before: Digest | None = None
    for digest in digests:
        wrong = _wrong(digest, before, keys)
        for message in wrong:
            trail.broken(f"{digest.place}: {message}")
        missing = _logs(digest, files, trail) if not wrong else 0
        sound = sound and not wrong and not missing
        before = digest
    if sound:
        trail.spans[name] = digests[0].start, digests[-1].end


def _wrong(digest: Digest, before: Digest | None, keys: Mapping[str, RSAPublicKey]) -> list[str]:
    found = []
    body = digest.body
    if digest.signature is None:
        found.append(f"its signature is missing (a file NAME{SIDECAR}, as `aws s3api head-object` prints it)")
    elif not _signed(digest, keys):
        found.append("its signature is not valid, or was made with a key that was not given")
    if before is None:
        return found
    previous = body.get("previousDigestS3Object")
    if previous is None:
        found.append("a new chain begins here: logging was off, or digests were removed")
    elif _place(str(previous)) != before.place:
        found.append("the digest before it is missing")
    elif (body.get("previousDigestHashValue"), body.get("previousDigestSignature")) != (
        before.sha256,
        before.signature,
    ):
        found.append("the digest before it is not its predecessor")
    if digest.start != before.end:
        found.append("no digest covers the time between it and the digest before it")
    return found


def _signed(digest: Digest, keys: Mapping[str, RSAPublicKey]) -> bool:
    body = digest.body
    key = keys.get(str(body.get("digestPublicKeyFingerprint")))
    if key is None or digest.signature is None:
        return False
    previous = body.get("previousDigestSignature")
    place = f"{body.get('digestS3Bucket')}/{body['digestS3Object']}"
    lines = (str(body["digestEndTime"]), place, digest.sha256, "null" if previous is None else str(previous))
    try:
        key.verify(bytes.fromhex(digest.signature), "\n".join(lines).encode(), PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


def _logs(digest: Digest, files: Mapping[str, Path], trail: Trail) -> int:
    """Read the log files that a sound digest names; how many of them do not hold."""
    wrong = 0
    for item in digest.body["logFiles"]:
        place = _place(str(item.get("s3Object"))) if isinstance(item, dict) else None
        if place is None or place not in files:
            trail.broken(f"{place}: a digest lists this log file, but the file is missing")
            wrong += 1
            continue
        try:
            content = _unzipped(files[place])
            if item["hashAlgorithm"] != "SHA-256" or hashlib.sha256(content).hexdigest() != item["hashValue"]:
                raise ValueError
        except (ValueError, KeyError):
            trail.broken(f"{place}: the log file differs from its digest")
            wrong += 1
            continue
        trail.logs.add(place)
        try:
            trail.deletions += trail_deletions(place, content)
        except (ValueError, KeyError, TypeError, AttributeError):
            trail.broken(f"{place} is not a log file of CloudTrail")
            wrong += 1
    return wrong
