"""Abort unfinished multipart uploads: their parts are bytes that no listing of objects shows.

One abort may not be enough while a part is on its way, so what is left is looked at and aborted again
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.step_base import (
    AbortParameters,
    S3Part,
    UploadRef,
    request_id,
    server_time,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.listing import upload_items
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

_ROUNDS = 3
_BUSY = "a part was added after the plan was made: an upload is still running"


@dataclass
class _Aborted:
    """aborted: the uploads that are gone by our hand. refused: reason by upload id. idle_at: when one may go."""

    aborted: list[UploadRef] = field(default_factory=list)
    idle_at: dict[str, datetime] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AbortingUploads(S3Part[AbortParameters]):
    """One S3_ABORT_UPLOADS step."""

    def run(self) -> Outcome:
        """Abort what is listed and still there, and look again; what was touched lately is waited for.

        Raises:
            PartlyDone: uploads are left: refused, or somebody still writes to them.
        """
        done = _Aborted()
        there = self._existing()
        gone = len(self.parameters.uploads) - len(there)
        for _ in range(_ROUNDS):
            for upload in there:
                self._abort(upload, done)
            there = [u for u in self._existing() if u.upload_id not in done.refused.keys() | done.idle_at.keys()]
            if not there:
                break
        left = {upload.upload_id: "the upload still receives parts" for upload in there} | done.refused
        facts: dict[str, Any] = {
            "aborted": [u.model_dump() for u in done.aborted if u.upload_id not in left],
            "already_gone": gone,
            "touched_lately": len(done.idle_at),
            "request_ids": done.requests,
        }
        if left:
            facts["failed"] = [{"upload_id": upload, "reason": reason} for upload, reason in sorted(left.items())]
            raise PartlyDone(
                f"{counted(len(left), 'upload was', 'uploads were')} not aborted:"
                f" {', '.join(sorted(set(left.values())))}",
                facts,
                where=f"s3://{self.parameters.bucket}/{self.parameters.prefix}",
                todo=(
                    "wait until the writer finishes, then make a new plan. Or grant s3:AbortMultipartUpload, then "
                    "run `pii-tracer resume`"
                ),
            )
        return Outcome(facts, waiting_until=min(done.idle_at.values(), default=None))

    def verify(self) -> Check:
        """None of the listed uploads is there."""
        left = len(self._existing())
        return Check(
            not left,
            (counted(left, "listed upload still exists", "listed uploads still exist"),) if left else (),
            {"left": left},
        )

    def probe(self) -> Progress:
        """How many of the listed are there."""
        left = len(self._existing())
        if not left:
            return Progress.DONE
        return Progress.PARTIAL if left < len(self.parameters.uploads) else Progress.NOT_STARTED

    def _existing(self) -> list[UploadRef]:
        wanted = {upload.upload_id: upload for upload in self.parameters.uploads}
        try:
            found = {item["UploadId"] for item in upload_items(self.client, self.parameters.bucket)}
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"ListMultipartUploads failed: {error_code(error)}",
                where=f"s3://{self.parameters.bucket}",
                todo="check the bucket and the permission to list uploads",
            ) from None
        return [upload for upload_id, upload in wanted.items() if upload_id in found]

    def _abort(self, upload: UploadRef, done: _Aborted) -> None:
        which = {"Bucket": self.parameters.bucket, "Key": upload.key, "UploadId": upload.upload_id}
        try:
            last, now = self._touched(which, upload)
            if last > upload.touched:
                done.refused[upload.upload_id] = _BUSY
                return
            idle_at = last + timedelta(hours=self.parameters.idle_hours)
            if now < idle_at:
                done.idle_at[upload.upload_id] = idle_at
                return
            done.requests.append(request_id(self.client.abort_multipart_upload(**which)))
        except (ClientError, BotoCoreError) as error:
            code = error_code(error)
            if code != "NoSuchUpload":
                done.refused[upload.upload_id] = code
            return
        if upload not in done.aborted:
            done.aborted.append(upload)

    def _touched(self, which: dict[str, str], upload: UploadRef) -> tuple[datetime, datetime]:
        """When the newest part came, and what time it is: both by the server's clock."""
        last, now = upload.touched, self.ctx.now()
        for page in self.client.get_paginator("list_parts").paginate(**which):
            now = server_time(page, now)
            last = max([last, *(part["LastModified"] for part in page.get("Parts", ()))])
        return last, now
