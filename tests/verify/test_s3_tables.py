"""The person planted in every place of a Delta table in S3, old versions included: each is seen, and nothing else is."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.app.s3_reading import listing, look
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import HeldColumn, Mask, Mention
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from pii_tracer.verify.verdicts import ByteVerdict
from tests.s3support import World, standin, world
from tests.verify.s3lake import MAIL, MATCH, OTHER, Lake, parquet

__all__ = ["standin", "world"]


@pytest.fixture
def lake(world: World, tmp_path: Path) -> Lake:
    return Lake(world, tmp_path)


STATS = {"numRecords": 1, "minValues": {"mail": MAIL}, "maxValues": {"mail": MAIL}, "nullCount": {"mail": 0}}
ADD = {"path": "gone.parquet", "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True}


def in_data(lake: Lake) -> None:
    lake.write([MAIL])
    client, log = lake.client, f"{lake.key}/_delta_log/00000000000000000001.json"
    for version in list(lake.versions(log)):  # the log names its bounds, too: here only the data shall
        client.delete_object(Bucket=lake.bucket, Key=log, VersionId=version["VersionId"])


def in_an_old_version(lake: Lake) -> None:
    lake.put("a.parquet", parquet(MAIL))
    lake.put("a.parquet", parquet(OTHER))


def under_a_marker(lake: Lake) -> None:
    lake.put("a.parquet", parquet(MAIL))
    lake.hide("a.parquet")


def in_a_commit(lake: Lake) -> None:
    lake.commit(1, {"add": {**ADD, "stats": json.dumps(STATS)}})


def in_a_cleaned_commit(lake: Lake) -> None:
    in_a_commit(lake)
    lake.hide("_delta_log/00000000000000000001.json")


def in_a_checkpoint(lake: Lake) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": [{"path": "gone.parquet", "stats": json.dumps(STATS)}]}), sink)
    lake.put("_delta_log/00000000000000000001.checkpoint.parquet", sink.getvalue())


def in_the_change_feed(lake: Lake) -> None:
    lake.put("_change_data/cdc-0.parquet", parquet(MAIL))


def behind_a_deletion_vector(lake: Lake) -> None:
    """The row is gone for every reader, and its file is as it was."""
    lake.put("part-1.parquet", parquet(OTHER, MAIL))
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^",
        "offset": 1,
        "sizeInBytes": 9,
        "cardinality": 1,
    }
    lake.commit(1, {"add": {**ADD, "path": "part-1.parquet", "deletionVector": vector}})
    lake.put("deletion_vector_0.bin", b"\x01rows")


def in_user_metadata(lake: Lake) -> None:
    lake.put("a.parquet", parquet(OTHER), Metadata={"owner": MAIL})


def in_a_tag(lake: Lake) -> None:
    lake.put("a.parquet", parquet(OTHER), Tagging=f"owner={MAIL}")


def in_a_partition_folder(lake: Lake) -> None:
    lake.put(f"mail={MAIL}/a.parquet", parquet(OTHER))


def in_a_markers_name(lake: Lake) -> None:
    """Nothing but the marker is left, and its name tells."""
    name = f"mail={MAIL}/a.parquet"
    lake.put(name, parquet(OTHER))
    lake.hide(name)
    [version] = [v for v in lake.versions(f"{lake.key}/{name}") if "Size" in v]
    lake.client.delete_object(Bucket=lake.bucket, Key=version["Key"], VersionId=version["VersionId"])


def in_somebodys_file(lake: Lake) -> None:
    lake.put("finance.csv", f"mail\n{MAIL}\n".encode())


@pytest.mark.parametrize(
    ("plant", "seen"),
    [
        (in_data, {("parquet", "data: mail"), ("parquet", "statistics: mail")}),
        (in_an_old_version, {("parquet", "data: mail"), ("parquet", "statistics: mail")}),
        (under_a_marker, {("parquet", "data: mail"), ("parquet", "statistics: mail")}),
        (in_a_commit, {("_delta_log", "statistics: mail")}),
        (in_a_cleaned_commit, {("_delta_log", "statistics: mail")}),
        (in_a_checkpoint, {("_delta_log", "statistics: mail")}),
        (in_the_change_feed, {("_change_data", "data: mail")}),
        (behind_a_deletion_vector, {("parquet", "data: mail")}),
        (in_user_metadata, {("parquet", "object metadata: owner")}),
        (in_a_tag, {("parquet", "object tag: owner")}),
        (in_a_partition_folder, {("mail=[mail]", "file path")}),
        (in_a_markers_name, {("mail=[mail]", "file path")}),
        (in_somebodys_file, {("csv", "data: mail")}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_person_is_seen_wherever_they_are(
    lake: Lake, plant: Callable[[Lake], None], seen: set[tuple[str, str]]
) -> None:
    assert lake.seen() == (set(), ())
    before = {v["VersionId"] for v in lake.versions()}
    plant(lake)
    found, unverified = lake.seen()
    assert seen <= found
    assert {kind for kind, _ in found} == {kind for kind, _ in seen}
    assert unverified == ()
    for version in list(lake.versions()):
        if version["VersionId"] not in before:
            lake.client.delete_object(Bucket=lake.bucket, Key=version["Key"], VersionId=version["VersionId"])
    assert lake.seen() == (set(), ())


def test_an_unfinished_upload_is_not_verified(lake: Lake) -> None:
    key = f"{lake.key}/a.parquet"
    upload = lake.client.create_multipart_upload(Bucket=lake.bucket, Key=key)["UploadId"]
    found, unverified = lake.seen()
    assert (found, len(unverified)) == (set(), 1)
    assert "1 unfinished multipart upload" in unverified[0]
    lake.client.abort_multipart_upload(Bucket=lake.bucket, Key=key, UploadId=upload)
    assert lake.seen() == (set(), ())


def test_what_is_archived_cannot_be_read(lake: Lake) -> None:
    lake.put("old.parquet", parquet(OTHER), StorageClass="GLACIER")
    found, [told] = lake.seen()
    assert found == set()
    assert told.startswith("old.parquet?versionId=")
    assert told.endswith("archived (GLACIER) and not restored")


@pytest.mark.parametrize("refused", ["GetObject", "GetObjectTagging", "ListObjectVersions", "ListMultipartUploads"])
def test_what_is_refused_is_not_verified_and_hides_nothing_else(
    lake: Lake, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a policy; the store's own text is not repeated."""
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    in_a_partition_folder(lake)
    inner = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: BaseClient, name: str, args: dict[str, object]) -> object:
        if name == refused:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": f"no {MAIL}"}}, name)
        return inner(self, name, args)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    found, unverified = lake.seen()
    assert unverified
    assert all("AccessDenied" in told for told in unverified)
    assert found == (set() if refused == "ListObjectVersions" else {("mail=[mail]", "file path")})


def test_whatever_lies_in_the_folder_counts_and_a_neighbour_does_not(lake: Lake) -> None:
    """Another table that has come into the folder, and one beside it whose name begins alike."""
    lake.write([MAIL], key=f"{lake.key}2")
    assert lake.seen() == (set(), ())
    lake.write([MAIL], key=f"{lake.key}/inner")
    assert {kind for kind, _ in lake.seen()[0]} == {"inner", "inner/_delta_log"}


def test_a_folder_without_any_object_is_no_clean_table(lake: Lake) -> None:
    lake.key = "wh/moved"
    found, [told] = lake.seen()
    assert found == set()
    assert told.endswith("the place contains no object; was the table moved?")


def test_a_longer_key_in_a_key_column_is_somebody_elses(lake: Lake) -> None:
    lake.put("a.parquet", parquet(f"{MAIL}x"))
    copy = lake.copy(match=MATCH)
    verification = lake.verification(copy)
    assert copy.s3_table is not None
    verdict = look(verification.estate, copy, copy.s3_table, verification.patterns)
    assert (verdict.residue, verdict.compared) == ((), ("mail",))
    assert lake.seen()[0], "without the plan's match nobody knows that it is a whole key"


def test_a_column_that_is_only_cleared_is_compared_as_on_this_machine(lake: Lake, tmp_path: Path) -> None:
    """Payees in rows that are other people's: one whose address begins as the person's is not hers."""
    mention = Mention(match=MATCH, mask=Mask(columns=("mail",), held=(), found_by=("n",)))
    for number, mails in enumerate(([f"{MAIL}x"], [OTHER, MAIL])):
        lake.put("a.parquet", parquet(*mails))
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "a.parquet").write_bytes(parquet(*mails))
        copy = lake.copy(mentions=(mention,))
        verification = lake.verification(copy)
        assert copy.s3_table is not None
        there = look(verification.estate, copy, copy.s3_table, verification.patterns)
        here = verify_bytes(copy, verification.patterns, folder)
        assert bool(here.residue) is (MAIL in mails)
        assert {r.where for r in there.residue} == {r.where for r in here.residue}
        assert there.compared == here.compared == ("mail",)


LONG = "christian.mueller" * 2


@pytest.mark.parametrize(("mail", "clean"), [(f"{LONG}@b.example", True), (f"{LONG}@a.example", False)])
def test_a_cut_bound_is_the_rows_of_the_file_it_describes(lake: Lake, mail: str, clean: bool) -> None:
    """Delta cuts bounds to 32 characters, so that two people's are one; an old version of the file proves nothing."""
    data = parquet(mail)
    stats = json.dumps({"numRecords": 1, "minValues": {"mail": mail[:32]}, "maxValues": {"mail": mail[:32] + "\x7f"}})
    lake.put("a.parquet", data)
    lake.commit(1, {"add": {**ADD, "path": "a.parquet", "size": len(data), "stats": stats}})
    copy = lake.copy()
    verification = lake.verification(copy)
    verification.patterns = build_patterns(
        [KeySet(name="mail", origin="m", weak=False, values=(("s", f"{LONG}@a.example"),))]
    )

    def bounds() -> int:
        found = verification.look(copy).bytes
        assert found is not None
        return sum(r.file.startswith("_delta_log") for r in found.residue)

    assert (bounds() == 0) is clean
    lake.put("a.parquet", data)
    assert bounds() > 0
    lake.clear()
    assert (bounds() == 0) is clean


HELD: dict[str, Any] = {
    "mask": Mask(columns=("n",), held=(HeldColumn(name="mail", holds=("h",), until=None),)),
    "match": MATCH,
}


def masked(*numbers: int | None, kind: str = "parquet") -> bytes:
    sink = io.BytesIO()
    rows = pa.table({"mail": [MAIL] * len(numbers), "n": pa.array(numbers, pa.int64())})
    if kind == "avro":
        fields = [{"name": "mail", "type": "string"}, {"name": "n", "type": ["null", "long"]}]
        fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())
    else:
        (orc if kind == "orc" else pq).write_table(rows, sink)
    return sink.getvalue()


def judged(lake: Lake) -> ByteVerdict:
    """By bytes alone: a copy with a match would be read by Spark, too."""
    copy = lake.copy(**HELD)
    verification = lake.verification(copy)
    assert copy.s3_table is not None
    found = look(verification.estate, copy, copy.s3_table, verification.patterns)
    assert MAIL not in found.model_dump_json()
    return found


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_what_a_hold_keeps_is_no_residue_unless_its_row_holds_more(lake: Lake, kind: str) -> None:
    assert judged(lake).clean
    name = f"a.{kind}"
    lake.put(name, masked(None, None, kind=kind))
    found = judged(lake)
    assert found.clean
    assert ("mail", "mail") in {(h.column, h.key_set) for h in found.held}
    lake.put(name, masked(None, 5, kind=kind))
    lake.put(name, masked(None, kind=kind))
    found = judged(lake)
    [old] = [v["VersionId"] for v in lake.versions() if v["Key"].endswith(name) and not v["IsLatest"]][:1]
    assert [(r.file, r.where) for r in found.residue] == [
        (f"{name}?versionId={old}", "data: rows with values that are not held")
    ]
    lake.clear()
    assert judged(lake).clean
    in_user_metadata(lake)
    assert [r.where for r in judged(lake).residue] == ["object metadata: owner"], "a hold keeps columns of rows"


def test_the_newest_metadata_file_tells_which_state_a_listing_is_of(lake: Lake) -> None:
    """By its number, not by its name; one that a marker hides counts no longer."""
    copy = lake.copy(match=MATCH).model_copy(update={"format": ICEBERG})
    verification, place = lake.verification(copy), copy.s3_table
    assert place is not None

    def told() -> str | None:
        return listing(verification.estate, copy, place, verification.patterns).manifest

    assert told() is None
    for name in ("9-b.metadata.json", "00010-a.metadata.json", "00010-b.gz.metadata.json", "snap-99.avro"):
        lake.put(f"metadata/{name}", name.encode())
    assert told() == f"sha256:{hashlib.sha256(b'00010-b.gz.metadata.json').hexdigest()}"
    lake.client.delete_object(Bucket=lake.bucket, Key=f"{lake.key}/metadata/00010-b.gz.metadata.json")
    assert told() == f"sha256:{hashlib.sha256(b'00010-a.metadata.json').hexdigest()}"


def test_a_masked_name_does_not_tell_which_object_to_read_again(world: World, tmp_path: Path) -> None:
    """Without versions both are called the same, and only one of them holds more than what is held."""
    lake = Lake(world, tmp_path, versioned=False)
    for folder, number in ((MAIL, 5), (MAIL.upper(), None)):
        lake.put(f"mail={folder}/a.parquet", masked(number))
    found = judged(lake)
    assert len([told for told in found.unverified if "cannot be read: ValueError" in told]) == 2


@pytest.mark.parametrize("name", ["left.csv", "left.json"])
def test_what_cannot_be_read_row_by_row_is_not_verified(lake: Lake, name: str) -> None:
    lake.put(name, f"mail,n\n{MAIL},\n".encode() if name.endswith("csv") else json.dumps({"mail": MAIL}).encode())
    found = judged(lake)
    assert not found.clean
    assert any("other values of its rows are unknown in this format" in told for told in found.unverified)


def test_memory_does_not_follow_the_objects_bytes(lake: Lake) -> None:
    """Thirty megabytes in small objects; what is kept of each is its name and digest."""
    import tracemalloc

    body = f"note\n{'a late parcel ' * 21_000}\n".encode()
    for number in range(100):
        lake.put(f"notes/{number}.csv", body)
    copy = lake.copy()
    verification = lake.verification(copy)
    verification.look(copy)
    tracemalloc.start()
    found = verification.look(copy).bytes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert len(found.files) > 100
    assert peak < 15_000_000
