"""The readers of table formats that are installed, by the format's name."""

from __future__ import annotations

from functools import cache
from typing import cast

from pii_tracer.common import plugins
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ScanError
from pii_tracer.verify.formats.base import TableReader

GROUP = "pii_tracer.format_verifiers"


@cache
def reader_of(name: Format) -> TableReader:
    """The reader of a format's rows.

    Raises:
        ScanError: no installed package reads the format.
    """
    made = plugins.required(GROUP, name.value, f"reads the rows of {name} tables", ScanError)
    return cast(TableReader, made())


def formats_in_s3() -> tuple[Format, ...]:
    """The formats whose tables are read in S3, too, sorted by name."""
    return tuple(Format(name) for name in plugins.names(GROUP) if reader_of(Format(name)).reads_s3)
