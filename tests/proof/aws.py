"""A trail as CloudTrail writes it: log files, signed digests, and the same deletions in S3's access logs."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ACCOUNT, REGION, NAME, BUCKET = "123456789012", "eu-west-1", "erasures", "trail-bucket"
RUN_ARN = "arn:aws:sts::123456789012:assumed-role/erasure/run"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
START = datetime(2026, 11, 21, 8, 30, tzinfo=timezone.utc)


def stamp(time: datetime) -> str:
    """As AWS writes times in JSON."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def keys_json(*keys: rsa.RSAPrivateKey) -> bytes:
    """What `aws cloudtrail list-public-keys` prints."""
    listed = []
    for key in keys:
        der = key.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
        listed.append(
            {
                "Value": base64.b64encode(der).decode(),
                "ValidityStartTime": stamp(START - timedelta(days=30)),
                "ValidityEndTime": stamp(START + timedelta(days=30)),
                "Fingerprint": fingerprint(key),
            }
        )
    return json.dumps({"PublicKeyList": listed}).encode()


def fingerprint(key: rsa.RSAPrivateKey) -> str:
    """A name for a key, 16 bytes in hex."""
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    return hashlib.sha256(der).hexdigest()[:32]


def event(name: str, bucket: str, request_id: str, time: datetime, **more: Any) -> dict[str, Any]:
    """One record of a data event, in the shape that the service logs."""
    parameters = {"bucketName": bucket, "Host": f"{bucket}.s3.{REGION}.amazonaws.com", **more.pop("parameters", {})}
    return {
        "eventVersion": "1.11",
        "userIdentity": {"type": "AssumedRole", "arn": RUN_ARN, "accountId": ACCOUNT},
        "eventTime": stamp(time),
        "eventSource": "s3.amazonaws.com",
        "eventName": name,
        "awsRegion": REGION,
        "requestParameters": parameters,
        "responseElements": None,
        "additionalEventData": {"SignatureVersion": "SigV4", "x-amz-id-2": "hostid"},
        "requestID": request_id,
        "eventID": "00000000-0000-4000-8000-000000000000",
        "readOnly": False,
        "resources": [
            {"type": "AWS::S3::Object", "ARNPrefix": f"arn:aws:s3:::{bucket}/"},
            {"type": "AWS::S3::Bucket", "ARN": f"arn:aws:s3:::{bucket}", "accountId": ACCOUNT},
        ],
        "eventType": "AwsApiCall",
        "managementEvent": False,
        "eventCategory": "Data",
        **more,
    }


def call(bucket: str, request_id: str, time: datetime) -> dict[str, Any]:
    """The record of a DeleteObjects call: it names no object."""
    return event("DeleteObjects", bucket, request_id, time, parameters={"delete": "", "x-id": "DeleteObjects"})


def one(bucket: str, key: str, version: str | None, request_id: str, time: datetime, **more: Any) -> dict[str, Any]:
    """The record of one deleted object."""
    parameters = {"key": key, **({"versionId": version} if version else {})}
    resources = [
        {"type": "AWS::S3::Object", "ARN": f"arn:aws:s3:::{bucket}/{key}"},
        {"type": "AWS::S3::Bucket", "ARN": f"arn:aws:s3:::{bucket}", "accountId": ACCOUNT},
    ]
    return event("DeleteObject", bucket, request_id, time, parameters=parameters, resources=resources, **more)


def access_line(
    operation: str, bucket: str, key: str, version: str | None, request_id: str, time: datetime, **more: str
) -> str:
    """One line of a server access log."""
    uri = more.get("uri", "-")
    status, error = more.get("status", "204"), more.get("error", "-")
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000")
    agent = more.get("agent", '"Boto3/1.40 md/Botocore"')
    return (
        f"79a59df900b949e5 {bucket} [{when}] 192.0.2.3 {RUN_ARN} {request_id} {operation} {key} {uri} {status} {error} "
        f'- 120 12 10 "-" {agent} {version or "-"} hostid= SigV4 TLS_AES_128_GCM_SHA256 AuthHeader '
        f"{bucket}.s3.{REGION}.amazonaws.com TLSv1.3 - -"
    )


@dataclass
class TrailWriter:
    """Writes a trail into a folder as `aws s3 sync` would: one digest an hour, each over one log file."""

    folder: Path
    key: rsa.RSAPrivateKey = RSA_KEY
    prefix: str = ""
    before: dict[str, Any] = field(default_factory=dict)
    digests: list[Path] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    def hour(self, start: datetime, records: list[dict[str, Any]] | None = None) -> None:
        """One hour of the trail; without records the digest names no log file."""
        named = [self._log(start, records)] if records else []
        self._digest(start, start + timedelta(hours=1), named)

    def _put(self, place: str, content: bytes) -> Path:
        path = self.folder / (self.prefix + place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0))
        return path

    def _log(self, start: datetime, records: list[dict[str, Any]]) -> dict[str, Any]:
        content = json.dumps({"Records": records}).encode()
        day, time = start.strftime("%Y/%m/%d"), start.strftime("%Y%m%dT%H%MZ")
        place = f"AWSLogs/{ACCOUNT}/CloudTrail/{REGION}/{day}/{ACCOUNT}_CloudTrail_{REGION}_{time}_Ab12.json.gz"
        self.logs.append(self._put(place, content))
        return {
            "s3Bucket": BUCKET,
            "s3Object": self.prefix + place,
            "hashValue": hashlib.sha256(content).hexdigest(),
            "hashAlgorithm": "SHA-256",
            "newestEventTime": stamp(start),
            "oldestEventTime": stamp(start),
        }

    def _digest(self, start: datetime, end: datetime, named: list[dict[str, Any]]) -> None:
        file = f"{ACCOUNT}_CloudTrail-Digest_{REGION}_{NAME}_{REGION}_{end.strftime('%Y%m%dT%H%M%SZ')}.json.gz"
        place = f"AWSLogs/{ACCOUNT}/CloudTrail-Digest/{REGION}/{end.strftime('%Y/%m/%d')}/{file}"
        body = {
            "awsAccountId": ACCOUNT,
            "digestStartTime": stamp(start),
            "digestEndTime": stamp(end),
            "digestS3Bucket": BUCKET,
            "digestS3Object": self.prefix + place,
            "digestPublicKeyFingerprint": fingerprint(self.key),
            "digestSignatureAlgorithm": "SHA256withRSA",
            "newestEventTime": stamp(end) if named else None,
            "oldestEventTime": stamp(start) if named else None,
            "previousDigestS3Bucket": self.before.get("bucket"),
            "previousDigestS3Object": self.before.get("place"),
            "previousDigestHashValue": self.before.get("hash"),
            "previousDigestHashAlgorithm": "SHA-256" if self.before else None,
            "previousDigestSignature": self.before.get("signature"),
            "logFiles": named,
        }
        content = json.dumps(body).encode()
        digest = hashlib.sha256(content).hexdigest()
        lines = (stamp(end), f"{BUCKET}/{self.prefix}{place}", digest, self.before.get("signature") or "null")
        signature = self.key.sign("\n".join(lines).encode(), PKCS1v15(), SHA256()).hex()
        path = self._put(place, content)
        head = {"ContentType": "application/json", "Metadata": {"signature": signature}}
        head["Metadata"]["signature-algorithm"] = "SHA256withRSA"  # type: ignore[index]
        path.with_name(path.name + ".head.json").write_text(json.dumps(head))
        self.digests.append(path)
        self.before = {"bucket": BUCKET, "place": self.prefix + place, "hash": digest, "signature": signature}
