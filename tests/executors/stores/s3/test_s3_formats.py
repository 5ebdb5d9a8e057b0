"""Archives in JSON lines, Avro, ORC and CSV: erased as bare folders are, on a server that keeps old versions."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.compression import writing
from executors.formats.plain_files.stored_file import InMemory
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, Match, MatchTerm
from pii_tracer.model.hive_text.layout import Serde, TextColumn, TextLayout, TextTable, text_properties
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.run.run_state import State
from pii_tracer.scan.decode.avro_container import open_container
from pii_tracer.scan.decode.compression import unpack
from tests.executors.formats.plain_files.alone import drop_rows
from tests.executors.stores.s3.s3_runs import (
    PERSON,
    PREFIX,
    Bucket,
    Deadly,
)
from tests.scan.support import avro
from tests.storeservers import Store, signed, store

__all__ = ["signed", "store"]

MATCH = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
KEYS = {"uid": frozenset({PERSON})}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "uid", "type": ["null", "long"]}, {"name": "n", "type": "string"}],
}
CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".deflate": "deflate", ".snappy": "snappy"}


def rows(*users: str) -> list[dict[str, Any]]:
    return [{"uid": int(user), "n": f"é {user}"} for user in users]


def json_lines(*users: str) -> bytes:
    """As different writers lay lines out; each must stay as it is."""
    texts = [json.dumps(r) if r["uid"] % 2 else json.dumps(r, separators=(" , ", ":")) + "\r" for r in rows(*users)]
    return "".join(f"{text}\n" for text in texts).encode()


def packed(name: str, plain: bytes) -> bytes:
    """As the codec that the name ends in has it."""
    file = InMemory(name)
    with writing(file, CODECS.get(file.suffix, "plain")) as stream:
        stream.write(plain)
    return file.data


def plain(name: str, data: bytes) -> bytes:
    """Unpacked by the verifier's own code."""
    found = unpack(name, memoryview(data))
    return found[2] if found else data


def text_lines(*users: str) -> bytes:
    """Delimited text of a Hive table, without a header: numbers with zeros, and ends of lines of both kinds."""
    ends = ("\n", "\r\n")
    return b"".join(f"00{user}|{user[::-1]}\\|é{ends[int(user) % 2]}".encode() for user in users)


TEXT = TextTable(
    columns=(TextColumn(name="uid", type="string", whole=64), TextColumn(name="n", type="string")),
    layout=TextLayout(serde=Serde.DELIMITED, delimiter="|", escape="\\", null="\\N"),
)


def avro_file(*users: str) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA, rows(*users), codec="deflate", sync_interval=20, metadata={"owner": "team 7"})
    return sink.getvalue()


def read_avro(data: bytes) -> tuple[list[Any], bytes]:
    """The records, by the verifier's own code, and the header as it stands, but for the random marker behind it."""
    records = list(open_container(memoryview(data)).records())
    return records, data[: data.index(b"team 7") + 6]


def orc_file(*users: str, codec: str = "zstd") -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows(*users)), sink, compression=codec)
    return sink.getvalue()


def read_orc(data: bytes) -> tuple[list[Any], Any]:
    file = orc.ORCFile(io.BytesIO(data))
    return file.read().to_pylist(), (file.schema, file.compression, file.file_version)


# --- one object ---


@pytest.mark.parametrize("suffix", ["", *CODECS])
@pytest.mark.parametrize("kind", [Format.JSON, Format.CSV])
def test_lines_of_others_stay_as_they_are_in_every_codec(kind: Format, suffix: str) -> None:
    name = f"{PREFIX}a.{kind}{suffix}"

    def text(*users: str) -> bytes:
        lines = "".join(f'"{row["n"]}",{row["uid"]}\r\n' for row in rows(*users))
        return json_lines(*users) if kind is Format.JSON else f"n,uid\r\n{lines}".encode()

    old = packed(name, text("1", PERSON, "2", PERSON, "3"))
    done = drop_rows(old, kind, MATCH, KEYS, frozenset(), name)
    assert (done.rows_before, done.rows_after, done.missing) == (5, 3, ())
    assert done.data is not None
    assert plain(name, done.data) == text("1", "2", "3")
    assert done.data[:2] == old[:2] or not suffix, "the same codec"
    assert drop_rows(done.data, kind, MATCH, KEYS, frozenset(), name).data is None
    assert drop_rows(packed(name, b""), kind, MATCH, KEYS, frozenset(), name).data is None


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_avro_keeps_header_codec_and_records(codec: str) -> None:
    old = avro(SCHEMA, rows("1", PERSON, "2"), {"owner": "team 7"}, codec)
    done = drop_rows(old, Format.AVRO, MATCH, KEYS, frozenset())
    assert done.data is not None
    head = old.index(b"0123456789abcdef") + 16
    assert done.data[:head] == old[:head]
    assert read_avro(done.data)[0] == rows("1", "2")


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "zstd", "lz4"])
def test_orc_keeps_schema_codec_and_rows(codec: str) -> None:
    old = orc_file("1", PERSON, "2", codec=codec)
    done = drop_rows(old, Format.ORC, MATCH, KEYS, frozenset())
    assert done.data is not None
    assert read_orc(done.data) == (rows("1", "2"), read_orc(old)[1])
    assert PERSON.encode() not in done.data
    none = drop_rows(orc_file(PERSON), Format.ORC, MATCH, KEYS, frozenset())
    assert none.data is not None
    assert read_orc(none.data)[0] == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{\n "uid": 1\n}\n{\n "uid": 1234567890\n}\n'),
        ("a.json", b'{"uid": 1, "uid": 1234567890}\n'),
        ("a.json", b'{"id": 1234567890}\n'),
        ("a.json.gz", gzip.compress(json_lines(PERSON, "1"), mtime=0)[:-4]),
        ("a.json.gz", json_lines(PERSON)),
        ("a.json.lz4", b"\x04\x22\x4d\x18" + PERSON.encode()),
        ("a.avro", avro_file(PERSON, "1")[:-3]),
        ("a.avro", b"Obj\x01" + PERSON.encode()),
        ("a.orc", b"ORC" + PERSON.encode()),
        ("a.orc", json_lines(PERSON)),
    ],
)
def test_what_a_bare_folder_refuses_an_archive_refuses(name: str, data: bytes) -> None:
    with pytest.raises(RowsError) as caught:
        drop_rows(data, Format(name.split(".")[1]), MATCH, KEYS, frozenset(), name)
    assert PERSON not in str(caught.value)


# --- whole runs ---


@dataclass(frozen=True)
class Kind:
    """A format: how its objects are made and what must be the same in them afterwards. text: of a table of text."""

    format: Format
    ending: str
    make: Callable[..., bytes]
    read: Callable[[bytes], Any]
    text: TextTable | None = None


KINDS = (
    Kind(Format.JSON, "json.gz", lambda *u: gzip.compress(json_lines(*u)), gzip.decompress),
    Kind(Format.AVRO, "avro", avro_file, read_avro),
    Kind(Format.ORC, "orc", orc_file, read_orc),
    Kind(Format.CSV, "txt.gz", lambda *u: gzip.compress(text_lines(*u)), gzip.decompress, TEXT),
)


@dataclass(frozen=True)
class Place:
    """A bucket with an archive of one format: an object with an old version, one without the person, a deleted one."""

    client: Any
    lake: Bucket
    kind: Kind

    @property
    def bucket(self) -> str:
        return self.lake.name

    def key(self, name: str) -> str:
        return f"{PREFIX}{name}.{self.kind.ending}"

    def plan(self) -> ErasurePlan:
        plan, told = self.lake.plan(), text_properties(self.kind.text)
        copies = (copy.model_copy(update={"facts": copy.facts | told}) for copy in plan.copies)
        return plan.model_copy(update={"copies": tuple(copies)})

    def put(self, name: str, *users: str) -> None:
        more = {"Metadata": {"job": "export"}, "ContentType": "application/x-rows"}
        self.client.put_object(Bucket=self.bucket, Key=self.key(name), Body=self.kind.make(*users), **more)

    def get(self, name: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.bucket, Key=self.key(name))["Body"].read()
        return data

    def hits(self, plan: ErasurePlan) -> int:
        """Versions in which the verifier finds the person; all of them could be read."""
        verdict = self.lake.verdict(_archive(plan))
        assert verdict.unverified == ()
        return len({item.file for item in verdict.residue})

    def versions(self) -> int:
        return len(self.client.list_object_versions(Bucket=self.bucket)["Versions"])


def place(store: Store, kind: Kind, name: str) -> Place:
    client, bucket = store.client(), f"{name}-{kind.format}"
    client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    found = Place(client, Bucket(store.endpoint_url, bucket, more={"format": kind.format.value}), kind)
    found.put("a", PERSON, "5")
    found.put("a", "1", PERSON, "2", "77", PERSON)
    found.put("b", "1234567891", "3")
    found.put("gone", PERSON, "8")
    client.delete_object(Bucket=bucket, Key=found.key("gone"))
    return found


def _archive(plan: ErasurePlan) -> Copy:
    return next(copy for copy in plan.copies if copy.origin is None)


def others_are_there(here: Place) -> None:
    kind = here.kind
    assert kind.read(here.get("a")) == kind.read(kind.make("1", "2", "77"))
    assert kind.read(here.get("b")) == kind.read(kind.make("1234567891", "3"))
    head = here.client.head_object(Bucket=here.bucket, Key=here.key("a"))
    assert (head["Metadata"]["job"], head["ContentType"]) == ("export", "application/x-rows")


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.format.value)
def test_the_person_leaves_every_version_and_nobody_else_does(store: Store, tmp_path: Path, kind: Kind) -> None:
    careless, here = place(store, kind, "careless"), place(store, kind, "whole")
    plan = here.plan()
    assert {s.parameters["format"] for s in plan.steps if s.action is Action.S3_REWRITE_ARCHIVE} == {kind.format.value}
    before = careless.hits(careless.plan())
    # the naive way: write one object again, delete the other by its name
    careless.put("a", "1", "2", "77")
    careless.client.delete_object(Bucket=careless.bucket, Key=careless.key("b"))
    assert (before, careless.hits(careless.plan())) == (3, 3)
    state = here.lake.attempt(plan, tmp_path / "journal.jsonl")
    assert state is not None
    assert (state.state, state.failed) == (State.COMPLETE, ())
    assert here.hits(plan) == 0
    assert all(here.lake.verdict(copy).clean for copy in plan.copies)
    assert here.versions() == 2
    others_are_there(here)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.format.value)
def test_a_run_that_dies_anywhere_is_resumed_to_the_same_end(store: Store, tmp_path: Path, kind: Kind) -> None:
    deaths = 0
    for moment in range(20):
        here = place(store, kind, f"dying-{moment}")
        plan, journal = here.plan(), tmp_path / f"{moment}.jsonl"
        if here.lake.attempt(plan, journal, Deadly(here.lake.clients, moment)) is not None:
            break
        deaths += 1
        state = here.lake.attempt(plan, journal)
        assert state is not None
        assert (moment, state.state, state.failed) == (moment, State.COMPLETE, ())
        assert (here.hits(plan), here.versions()) == (0, 2)
        others_are_there(here)
    assert deaths >= 4
