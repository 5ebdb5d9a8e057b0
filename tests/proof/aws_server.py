"""As much of S3, CloudTrail and KMS on loopback as the AWS CLI and boto3 ask here. It refuses what AWS refuses."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.proof.aws import ACCOUNT, BUCKET, NAME, REGION, RSA_KEY, keys_json
from tests.servers import served

TRAIL = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/{NAME}"
ALIAS = "alias/attester"


@dataclass
class Kms:
    """Keys by id; `aliases` lead to them. disabled: ids of keys that may not sign."""

    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    algorithms: tuple[str, ...] = ("ECDSA_SHA_256",)

    def answer(self, act: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html and API_GetPublicKey.html"""
        name = self.aliases.get(asked["KeyId"], asked["KeyId"])
        key = self.keys.get(name.rpartition("/")[2])
        if key is None:
            return 400, {"__type": "NotFoundException"}
        arn = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{name.rpartition('/')[2]}"
        if name.rpartition("/")[2] in self.disabled:
            return 400, {"__type": "DisabledException"}
        if act == "GetPublicKey":
            der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            public = base64.b64encode(der).decode()
            return 200, {"KeyId": arn, "PublicKey": public, "SigningAlgorithms": self.algorithms}
        message = base64.b64decode(asked["Message"])
        digest = asked.get("MessageType") == "DIGEST"
        if asked["SigningAlgorithm"] not in self.algorithms or len(message) > 4096 or (digest and len(message) != 32):
            return 400, {"__type": "ValidationException"}
        hashed = message if digest else hashlib.sha256(message).digest()
        signature = key.sign(hashed, ec.ECDSA(Prehashed(SHA256())))
        return 200, {"KeyId": arn, "Signature": base64.b64encode(signature).decode()}


@contextmanager
def serving(folder: Path, kms: Kms | None = None) -> Iterator[str]:
    """A trail's bucket (its objects lie in `folder`), CloudTrail's answers about keys and trails, and KMS."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
            service, _, act = (self.headers["X-Amz-Target"] or "").rpartition(".")
            if service == "TrentService" and kms is not None:
                status, said = kms.answer(act, asked)
                self._answer(json.dumps(said).encode(), status=status)
            elif act == "ListPublicKeys":
                keys = json.loads(keys_json(RSA_KEY))["PublicKeyList"]
                listed = [{**key, "ValidityStartTime": 0, "ValidityEndTime": 4e9} for key in keys]
                self._answer(json.dumps({"PublicKeyList": listed}).encode())
            else:
                trail = {"Name": NAME, "S3BucketName": BUCKET, "TrailARN": TRAIL, "HomeRegion": REGION}
                self._answer(json.dumps({"trailList": [trail]}).encode())

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
            bucket, _, key = unquote(url.path).lstrip("/").partition("/")
            if bucket != BUCKET:
                self._answer(b"<Error><Code>NoSuchBucket</Code></Error>", status=404)
            elif "location" in query:
                self._answer(f"<LocationConstraint>{REGION}</LocationConstraint>".encode())
            elif not key:
                self._answer(self._listing(query))
            elif not (folder / key).exists():
                self._answer(b"<Error><Code>NoSuchKey</Code></Error>", status=404)
            else:
                beside = folder / f"{key}.head.json"
                said = json.loads(beside.read_text())["Metadata"] if beside.exists() else {}
                self._answer((folder / key).read_bytes(), {f"x-amz-meta-{k}": v for k, v in said.items()})

        def _listing(self, query: dict[str, str]) -> bytes:
            prefix, end = query.get("prefix", ""), query.get("delimiter", "")
            after = query.get("marker") or query.get("continuation-token") or ""
            keys = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json.gz"))
            chosen = [k for k in keys if k.startswith(prefix) and k > after]
            folders = {k[: k.index(end, len(prefix)) + 1] for k in chosen if end and end in k[len(prefix) :]}
            alone = [k for k in chosen if not end or end not in k[len(prefix) :]]
            page = alone[:3] if query.get("list-type") else alone  # small pages: a reader that takes one is found out
            inside = "<IsTruncated>false</IsTruncated>"
            if len(page) < len(alone):
                inside = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{page[-1]}</NextContinuationToken>"
            inside += "".join(f"<Contents><Key>{escape(k)}</Key></Contents>" for k in page)
            if not after:
                inside += "".join(f"<CommonPrefixes><Prefix>{f}</Prefix></CommonPrefixes>" for f in sorted(folders))
            return f"<ListBucketResult>{inside}</ListBucketResult>".encode()

        def _answer(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}"


def environment(url: str, folder: Path) -> dict[str, str]:
    """What makes the AWS CLI and boto3 ask this server and nobody else."""
    config = folder / "aws-config"
    config.write_text("[default]\ns3 =\n  addressing_style = path\n")
    return {
        "AWS_CONFIG_FILE": str(config),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
