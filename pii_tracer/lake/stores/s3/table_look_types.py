"""What is asked of the tables in S3, and what looking at one of them gave, of whatever format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.aws_errors import error_code, remedy
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location

_SETTINGS = "s3:GetBucketVersioning, s3:GetBucketObjectLockConfiguration and s3:GetReplicationConfiguration"


@dataclass(frozen=True)
class TablesAsked:
    """What is named in S3, for a format to look at the tables of its own.

    declared: by the estate file; registered: by catalogs. names: by location, of all that anybody names there. sources:
    tables that tell who the persons are. options: how libraries reach S3.
    """

    declared: Sequence[RemoteTable]
    registered: Sequence[RemoteTable]
    names: Mapping[str, Collection[str]]
    sources: Collection[str]
    folders: Folders
    options: Callable[[], Mapping[str, str]]

    @property
    def by_place(self) -> list[RemoteTable]:
        """Tables that are known by their folder: all that the estate file declares, and of those that catalogs name
        what no metadata file of theirs tells; each place once, as the estate file names it if it does. How text is read
        catalogs alone know."""
        registered = [table for table in self.registered if table.metadata is None and not table.branched]
        first: dict[str, RemoteTable] = {}
        for table in (*self.declared, *registered):
            first.setdefault(str(table.location), table)
        told = {str(table.location): table for table in self.registered if table.text is not None}
        return [
            replace(table, text=told[place].text, misread=told[place].misread) if place in told else table
            for place, table in first.items()
        ]


@dataclass(frozen=True)
class Looked:
    """One table. result: its state, or why nothing is erased in it.

    reads: folders outside of its own in which files of it lie, or are to lie, as far as its metadata could be read.
    """

    table: RemoteTable
    result: Found | str
    reads: Collection[S3Location] = ()

    @property
    def title(self) -> str:
        return self.table.title or str(self.location)

    @property
    def location(self) -> S3Location:
        return self.table.location


def judged(look: Callable[[], Found | str]) -> Found | str:
    """What a look gives; where it fails, why."""
    try:
        return look()
    except EstateError as error:
        return "; ".join(filter(None, (error.what, error.todo)))
    except (ClientError, BotoCoreError) as error:
        code = error_code(error)
        return f"S3 does not say what keeps deleted objects there ({code}){remedy(code, _SETTINGS)}"
    except OSError as error:
        code = str(error).rpartition(": ")[2]
        return f"S3 refuses to show it ({code}){remedy(code, 's3:ListBucket and s3:GetObject')}"
