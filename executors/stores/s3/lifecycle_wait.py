"""Leave versions to the bucket's own lifecycle, and look that they are gone: a rule's promise is not believed.

S3 removes what has expired some time after the day is over and names no bound for the delay
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-expire-general-considerations.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.delete_versions import listed_versions
from executors.stores.s3.step_base import ExpiryParameters, S3Part, refused
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.archive_versions import expiry_of
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Check, Outcome

_LOOK_AGAIN = timedelta(hours=6)


@dataclass(frozen=True)
class AwaitingExpiry(S3Part[ExpiryParameters]):
    """One S3_AWAIT_EXPIRY step."""

    def check(self) -> None:
        """Raise `RunError` when the rules no longer promise what the plan relies on: waiting would be in vain."""
        parameters = self.parameters
        client = self.client
        try:
            rules = client.get_bucket_lifecycle_configuration(Bucket=parameters.bucket)["Rules"]
        except (ClientError, BotoCoreError) as error:
            if error_code(error) != "NoSuchLifecycleConfiguration":
                raise refused("GetBucketLifecycleConfiguration", error, parameters.bucket, parameters.prefix) from None
            rules = []
        try:
            versioning = client.get_bucket_versioning(Bucket=parameters.bucket).get("Status")
        except (ClientError, BotoCoreError) as error:
            raise refused("GetBucketVersioning", error, parameters.bucket, parameters.prefix) from None
        now = expiry_of(rules, parameters.prefix, versioning in ("Enabled", "Suspended"))
        if (
            now is None
            or now.total > parameters.expires_after_days
            # the same sum counted from another day is another date
            or now.noncurrent > parameters.noncurrent_days
            or now.current > parameters.expires_after_days - parameters.noncurrent_days
        ):
            raise RunError(
                "the lifecycle rules changed: they no longer remove these versions in the planned time",
                where=f"s3://{parameters.bucket}/{parameters.prefix}",
                todo="restore the rules, or make a new plan that deletes the versions",
            )

    def run(self) -> Outcome:
        """Wait for the date; after it, look every few hours until `give_up`.

        Raises:
            RunError: the versions are still there when the plan gives up.
        """
        left = self._left()
        facts: dict[str, Any] = {"left": left, "lapsed": len(self.parameters.versions) - left}
        if not left:
            return Outcome(facts)
        now = self.ctx.now()
        if now >= self.parameters.give_up:
            raise RunError(
                f"{counted(left, 'version is', 'versions are')} not removed, although the lifecycle rules should have "
                "done so",
                where=f"s3://{self.parameters.bucket}/{self.parameters.prefix}",
                todo="correct the bucket's lifecycle rules, or plan again: a new plan can delete the versions",
            )
        return Outcome(facts, waiting_until=max(self.parameters.until, min(now + _LOOK_AGAIN, self.parameters.give_up)))

    def verify(self) -> Check:
        """None of the listed versions exists."""
        left = self._left()
        return Check(
            not left,
            (counted(left, "listed version still exists", "listed versions still exist"),) if left else (),
            {"left": left},
        )

    def _left(self) -> int:
        there = listed_versions(self.client, self.parameters.bucket, self.parameters.versions)
        return sum((item.key, item.version_id) in there for item in self.parameters.versions)
