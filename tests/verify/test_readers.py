"""Which reader the verifier takes for a copy."""

from __future__ import annotations

import pytest

from pii_tracer.common import plugins
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ScanError
from pii_tracer.verify.formats.base import TableReader
from pii_tracer.verify.formats.registry import GROUP, formats_in_s3, reader_of


def test_a_format_that_nobody_reads_is_refused() -> None:
    with pytest.raises(ScanError, match="no installed package reads the rows of nobodys tables"):
        reader_of(Format("nobodys"))


def test_every_registered_reader_loads() -> None:
    assert all(isinstance(reader_of(Format(name)), TableReader) for name in plugins.names(GROUP))


def test_formats_with_a_log_are_read_in_s3_and_bare_folders_are_not() -> None:
    assert [name.value for name in formats_in_s3()] == ["delta", "hudi", "iceberg"]
