"""The estate file's part about leases: where runners on several machines agree on who runs a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LeasePlace = Annotated[str, Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.'()-]+)*$")]
"""`s3://bucket/prefix`. Names that S3 takes without quoting
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html)."""
