"""Containers are read by their bytes, however small and whatever their names."""

from __future__ import annotations

import io
import zipfile

import pyarrow as pa
import pyarrow.feather
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import build_patterns

MAIL = "meera.pillai.4410@example.org"
PATTERNS = build_patterns([KeySet(name="mail", origin="t.mail", weak=False, values=(("s", MAIL),))])


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x.csv", f"mail\n{MAIL}\n")
    return sink.getvalue()


def _feather() -> bytes:
    sink = io.BytesIO()
    pa.feather.write_feather(pa.table({"mail": [MAIL]}), sink, compression="zstd")
    return sink.getvalue()


@pytest.mark.parametrize("data", [_zip(), _feather()], ids=["zip", "feather"])
@pytest.mark.parametrize("name", ["part-0", "x.bin"])
def test_a_small_container_is_read(data: bytes, name: str) -> None:
    found = scan_bytes(name, data, PATTERNS)
    assert found.strong
    assert found.unread == ()
