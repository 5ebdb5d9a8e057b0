"""What stands beside an object's bytes: read before it is written anew, so that nothing of it is lost or leaked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.step_base import refused
from executors.value_search_protocol import Finder
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import (
    NULL,
    S3Client,
    ask_version,
    tags_of,
)
from pii_tracer.model.errors import RunError


@dataclass(frozen=True)
class Beside:
    """Looks at objects of one bucket. finder: of all that the plan knows of the persons, not only of what their rows
    are found by. others: columns in which a short number means something else.
    """

    client: S3Client
    bucket: str
    finder: Finder
    others: frozenset[str]

    def tags(self, key: str, answer: Mapping[str, Any]) -> dict[str, str]:
        """The tags of a version that is about to be kept or written anew.

        Raises:
            RunError: metadata, a header or a tag holds a person, or could not be read.
        """
        where = f"s3://{self.bucket}/{key}"
        try:
            tags = tags_of(self.client, self.bucket, key, answer.get("VersionId", NULL))
        except (ClientError, BotoCoreError) as error:
            raise refused("GetObjectTagging", error, self.bucket, key) from None
        seen = self.finder.beside(answer, tags, self.others)
        if seen.held:
            raise RunError(
                "metadata, a header or a tag of the object contains the person",
                where=where,
                todo="copy the object onto itself without this value, then make a new plan",
            )
        if seen.unread:
            raise RunError(
                f"in its metadata, headers or tags: {seen.unread[0]}",
                where=where,
                todo="check the object's metadata, headers and tags by hand, then run `pii-tracer resume`",
            )
        return tags

    def keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Make sure that a version can be written anew as it is: a new object is its writer's alone, whoever could
        read the old one, and PutObject takes dates only.

        Raises:
            RunError: its access list grants others something or cannot be read, or its `Expires` is no date.
        """
        where = f"s3://{self.bucket}/{key}"
        if answer.get("ExpiresString") and answer.get("Expires") is None:
            raise RunError("the object's Expires header is not a date", where=where, todo="correct the header by hand")
        version = answer.get("VersionId", NULL)
        try:
            found = ask_version(self.client.get_object_acl, self.client, self.bucket, key, version)
        except (ClientError, BotoCoreError) as error:
            if error_code(error) == "NotImplemented":  # a store without access lists
                return
            raise refused("GetObjectAcl", error, self.bucket, key) from None
        if any(not _owners(grant["Grantee"], found.get("Owner", {})) for grant in found.get("Grants", ())):
            raise RunError(
                "the object's access list has grants to other accounts, which a rewritten object would lose",
                where=where,
                todo=(
                    "add these grants to the bucket's policy, remove them from the access list, then run `pii-tracer "
                    "resume`"
                ),
            )


def _owners(grantee: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    # MinIO, which has no access lists, names nobody: neither the owner nor whom it grants everything
    return grantee.get("Type") == "CanonicalUser" and grantee.get("ID", "") == owner.get("ID", "")
