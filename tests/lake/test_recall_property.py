"""Whoever copies a person's rows, in whatever form, under whatever name and place: it is seen or it is a gap."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.lake.catalogs.test_catalogs import estate

MAIL = "meera.pillai.4410@example.org"
KEYS = (KeySet(name="mail", origin="t.mail", weak=False, values=(("subj_1", MAIL),)),)
MINE = pa.table({"mail": [MAIL, "b@example.net"], "n": pa.array([1, 2], pa.int64())})
OTHERS = pa.table({"mail": ["c@example.net", "d@example.net"], "n": pa.array([3, 4], pa.int64())})


def _csv() -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(MINE, sink)
    return sink.getvalue()


def _parquet(codec: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(MINE, sink, compression=codec)
    return sink.getvalue()


def _orc() -> bytes:
    sink = io.BytesIO()
    pa.orc.write_table(MINE, sink, compression="zstd")
    return sink.getvalue()


def _avro() -> bytes:
    fields = [{"name": "mail", "type": "string"}, {"name": "n", "type": "long"}]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, MINE.to_pylist(), codec="deflate")
    return sink.getvalue()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x.csv", _csv())
    return sink.getvalue()


def _feather() -> bytes:
    sink = io.BytesIO()
    pa.feather.write_feather(MINE, sink, compression="zstd")
    return sink.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "snappy.parquet": lambda: _parquet("snappy"),
    "zstd.parquet": lambda: _parquet("zstd"),
    "orc": _orc,
    "avro": _avro,
    "csv": _csv,
    "csv.gz": lambda: gzip.compress(_csv()),
    "json": lambda: "\n".join(json.dumps(row) for row in MINE.to_pylist()).encode(),
    "zip": _zip,
    "feather": _feather,
    "log": lambda: f"mail to {MAIL} bounced".encode(),
}
PLACES = ("", "plain", "a/b", "_hidden", ".dot/deep", "day=1", "plain/_tmp", "table", "table/_stray", "table/sub")
STEMS = ("part-0", "_part", ".part", "x y", "naïve")

copies = st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from(PLACES), st.sampled_from(STEMS), st.booleans())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=st.lists(copies, min_size=1, max_size=4, unique=True))
def test_no_copy_is_missed(made: list[tuple[str, str, str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        lake = base / "warehouse"
        write_deltalake(lake / "table", OTHERS)
        (lake / "plain").mkdir()
        pq.write_table(OTHERS, lake / "plain" / "others.parquet")
        holders = set()
        for form, place, stem, ending in made:
            path = lake / place / (f"{stem}.{form}" if ending else stem)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(FORMS[form]())
            holders.add(path)
        found = discover(estate(), base)
        seen = scan_estate(found, build_patterns(KEYS), Readings(), lambda _: None)
        suspected = [Path(place) for place, evidence in seen.items() if evidence.found or evidence.unread]
        told = [*suspected, *(Path(gap.evidence) for gap in found.gaps)]
        missed = {path for path in holders if not any(path.is_relative_to(place) for place in told)}
        assert not missed
        if not any(path.is_relative_to(lake / "table") for path in holders):
            assert lake / "table" not in suspected  # whoever is not there is not found there
