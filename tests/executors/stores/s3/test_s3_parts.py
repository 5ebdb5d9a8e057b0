"""Large Parquet objects: S3 copies the row groups that stay, and only the others are sent."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from executors.formats.plain_files.parquet_surgery.recipe import File, Piece, Recipe, Span
from executors.stores.s3.executor import S3Executor
from executors.stores.s3.multipart_copy import copy_like
from executors.stores.s3.multipart_parts import LEAST, MOST, upload_parts
from executors.stores.s3.replica_wait import _same_content
from executors.stores.s3.step_base import PLAN_TAG
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from tests.executors.stores.s3.test_s3_executor import rewrite
from tests.s3support import PERSON, PLAN, Context, World, estate, keyring, standin, user_rows, world

__all__ = ["standin", "world"]

KEY = "archive/large.parquet"
GROUPS, ROWS = 4, 6


@pytest.fixture(scope="module")
def large() -> bytes:
    """Four row groups of 6 MiB that nothing packs; the person has a row in the second."""
    noise = np.random.default_rng(3)
    count = GROUPS * ROWS
    users = [int(PERSON) if n == ROWS else 1000 + n for n in range(count)]
    blobs = pa.array([noise.bytes(1 << 20) for _ in range(count)], pa.binary())
    table = pa.table({"user_id": pa.array(users, pa.int64()), "blob": blobs})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=ROWS, compression="none", use_dictionary=False)
    return sink.getvalue()


def expected(data: bytes) -> pa.Table:
    table = pq.read_table(io.BytesIO(data))
    return table.filter(pa.array([str(user) != PERSON for user in table.column("user_id").to_pylist()]))


class Client:
    """A client of which some calls are somebody else's; it counts the bytes of bodies that were sent."""

    def __init__(self, client: Any, **calls: Callable[..., Any]) -> None:
        self.client, self.calls, self.sent = client, calls, 0

    def __getattr__(self, name: str) -> Any:
        call = self.calls.get(name) or getattr(self.client, name)

        def counted(**given: Any) -> Any:
            self.sent += len(given.get("Body", b""))
            return call(**given)

        return counted if name in ("put_object", "upload_part") else call


def executor(world: World, client: Any, **context: Any) -> S3Executor:
    return S3Executor(replace(Context(estate(world.endpoint_url), keyring()), **context), lambda region: client)


def uploads(world: World, bucket: str) -> list[str]:
    found = world.client().list_multipart_uploads(Bucket=bucket).get("Uploads", ())
    return [upload["UploadId"] for upload in found]


def denied(code: str) -> Callable[..., Any]:
    def call(**given: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Call")

    return call


def test_only_new_bytes_are_sent_and_all_else_is_kept(world: World, large: bytes) -> None:
    bucket = world.new("parts")
    old = world.put(bucket, KEY, large, Metadata={"origin": "export"}, Tagging="team=data", StorageClass="STANDARD_IA")
    client = Client(world.client())
    noted: list[Mapping[str, Any]] = []
    steps = executor(world, client, note=lambda step, facts: noted.append(facts))
    step = rewrite(bucket, [old])
    fact = steps.run(step, None).facts["objects"][0]
    assert (fact["row_groups_copied"], fact["row_groups_written"]) == (3, 1)
    assert fact["bytes_sent"] == client.sent < 12 * 1024**2 < len(large) / 2
    new = world.get(bucket, KEY)
    assert fact["sha256"] == hashlib.sha256(new).hexdigest()
    assert fact["bytes"] == len(new)
    assert pq.read_table(io.BytesIO(new)).equals(expected(large))
    head = world.client().head_object(Bucket=bucket, Key=KEY, ChecksumMode="ENABLED")
    assert head["Metadata"] == {"origin": "export", PLAN_TAG: PLAN}
    assert head["StorageClass"] == "STANDARD_IA"
    assert head["ChecksumSHA256"].rpartition("-")[2] == head["ETag"].strip('"').rpartition("-")[2]
    tags = world.client().get_object_tagging(Bucket=bucket, Key=KEY)["TagSet"]
    assert tags == [{"Key": "team", "Value": "data"}]
    assert (len(noted), uploads(world, bucket)) == (1, [])
    assert steps.verify(step, None).ok
    again = steps.run(step, None).facts["objects"][0]
    assert (again["resumed"], again["sha256"], again["rows_after"]) == (True, fact["sha256"], GROUPS * ROWS - 1)


def test_who_writes_meanwhile_keeps_the_object(world: World, large: bytes) -> None:
    bucket = world.new("race", versioned=False)
    old = world.put(bucket, KEY, large)
    real = world.client()

    def complete(**given: Any) -> Any:
        world.put(bucket, KEY, b"theirs")
        return real.complete_multipart_upload(**given)

    with pytest.raises(PartlyDone, match="somebody changed the object"):
        executor(world, Client(real, complete_multipart_upload=complete)).run(rewrite(bucket, [old]), None)
    assert world.get(bucket, KEY) == b"theirs"
    assert uploads(world, bucket) == []

    old = world.put(bucket, KEY, large)

    def copy(**given: Any) -> Any:
        world.put(bucket, KEY, b"theirs")
        return real.upload_part_copy(**given)

    with pytest.raises(PartlyDone, match="somebody changed the object"):
        executor(world, Client(real, upload_part_copy=copy)).run(rewrite(bucket, [old]), None)
    assert world.get(bucket, KEY) == b"theirs"
    assert uploads(world, bucket) == []


class Killed(BaseException):
    """The process ends."""


def test_an_upload_of_a_killed_run_is_aborted_by_the_next(world: World, large: bytes) -> None:
    bucket = world.new("killed")
    old = world.put(bucket, KEY, large)
    noted: list[Mapping[str, Any]] = []
    client = world.client()

    def die(**given: Any) -> Any:
        raise Killed

    dying = Client(client, upload_part_copy=die, abort_multipart_upload=denied("RequestTimeout"))
    journal: dict[str, Any] = {"note": lambda step, facts: noted.append(facts), "told": lambda step: noted}
    step = rewrite(bucket, [old])
    with pytest.raises(Killed):
        executor(world, dying, **journal).run(step, None)
    assert len(uploads(world, bucket)) == 1
    assert user_rows(world.get(bucket, KEY)) == 1
    steps = executor(world, client, **journal)
    assert steps.probe(step, None) is Progress.NOT_STARTED
    assert steps.run(step, None).facts["rewritten"] == 1
    assert uploads(world, bucket) == []
    assert user_rows(world.get(bucket, KEY)) == 0


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("create_multipart_upload", "AccessDenied"),
        ("upload_part_copy", "AccessDenied"),
        ("complete_multipart_upload", "AccessDenied"),
    ],
)
def test_where_parts_cannot_be_copied_the_object_is_sent_as_a_whole(
    world: World, large: bytes, call: str, code: str
) -> None:
    bucket = world.new("whole")
    old = world.put(bucket, KEY, large)
    client = Client(world.client(), **{call: denied(code)})
    fact = executor(world, client).run(rewrite(bucket, [old]), None).facts["objects"][0]
    assert "bytes_sent" not in fact
    assert pq.read_table(io.BytesIO(world.get(bucket, KEY))).equals(expected(large))
    assert uploads(world, bucket) == []


def test_an_archived_object_is_sent_as_a_whole_so_that_its_checksum_is_known(world: World, large: bytes) -> None:
    bucket = world.new("cold")
    old = world.put(bucket, KEY, large, StorageClass="GLACIER")
    client = world.client()
    client.restore_object(Bucket=bucket, Key=KEY, RestoreRequest={"Days": 2})
    world.advance()
    fact = executor(world, client).run(rewrite(bucket, [old]), None).facts["objects"][0]
    assert "bytes_sent" not in fact
    head = client.head_object(Bucket=bucket, Key=KEY, ChecksumMode="ENABLED")
    assert "-" not in head["ChecksumSHA256"]


def test_bytes_that_the_store_copied_wrong_are_no_result(world: World, large: bytes) -> None:
    bucket = world.new("wrong")
    real = world.client()

    def shifted(**given: Any) -> Any:
        first, last = map(int, given["CopySourceRange"].removeprefix("bytes=").split("-"))
        return real.upload_part_copy(**given | {"CopySourceRange": f"bytes={first + 1}-{last + 1}"})

    old = world.put(bucket, KEY, large)
    with pytest.raises(PartlyDone, match="copied bytes that differ"):
        executor(world, Client(real, upload_part_copy=shifted)).run(rewrite(bucket, [old]), None)
    assert uploads(world, bucket) == []
    assert user_rows(world.get(bucket, KEY)) == 1


def without_checksums(real: Any, **calls: Callable[..., Any]) -> Client:
    """A store as MinIO is: it copies no part into an upload with checksums."""
    plain = set()

    def create(**given: Any) -> Any:
        answer = real.create_multipart_upload(**given)
        if "ChecksumAlgorithm" not in given:
            plain.add(answer["UploadId"])
        return answer

    def copy(**given: Any) -> Any:
        if given["UploadId"] not in plain:
            return denied("InvalidArgument")()
        return calls.get("upload_part_copy", real.upload_part_copy)(**given)

    return Client(real, **calls | {"create_multipart_upload": create, "upload_part_copy": copy})


def test_where_an_upload_with_checksums_takes_no_copies_the_etag_says_what_was_copied(
    world: World, large: bytes
) -> None:
    bucket = world.new("minio")
    old = world.put(bucket, KEY, large)
    client = without_checksums(world.client())
    fact = executor(world, client).run(rewrite(bucket, [old]), None).facts["objects"][0]
    assert fact["bytes_sent"] < 12 * 1024**2
    new = world.get(bucket, KEY)
    assert fact["sha256"] == hashlib.sha256(new).hexdigest()
    assert pq.read_table(io.BytesIO(new)).equals(expected(large))
    assert uploads(world, bucket) == []


def test_an_etag_that_is_not_that_of_the_bytes_is_no_result(world: World, large: bytes) -> None:
    """As that of an encrypted part is, or of one that was copied wrong: the object is sent as a whole."""
    bucket = world.new("etag")
    real = world.client()

    def shifted(**given: Any) -> Any:
        first, last = map(int, given["CopySourceRange"].removeprefix("bytes=").split("-"))
        return real.upload_part_copy(**given | {"CopySourceRange": f"bytes={first + 1}-{last + 1}"})

    old = world.put(bucket, KEY, large)
    client = without_checksums(real, upload_part_copy=shifted)
    fact = executor(world, client).run(rewrite(bucket, [old]), None).facts["objects"][0]
    assert "bytes_sent" not in fact
    assert pq.read_table(io.BytesIO(world.get(bucket, KEY))).equals(expected(large))
    assert uploads(world, bucket) == []


def test_a_replica_in_parts_is_known_by_the_checksum_of_its_parts() -> None:
    """Encrypted by another key, it has another ETag."""
    origin = {"ContentLength": 9, "ETag": '"a-2"', "ChecksumSHA256": "c-2", "Metadata": {PLAN_TAG: PLAN}}
    assert _same_content(origin, origin | {"ETag": '"b-2"'}, PLAN)
    assert _same_content(origin, origin | {"ChecksumSHA256": None}, PLAN)
    assert not _same_content(origin, origin | {"ETag": '"b-2"', "ChecksumSHA256": "d-2"}, PLAN)
    assert not _same_content(origin, origin | {"ETag": '"b-2"', "ContentLength": 8}, PLAN)


SIZES = st.sampled_from([1, 1000, LEAST - 1, LEAST, LEAST + 1, 3 * LEAST, MOST, MOST + 1, 3 * MOST - 1])


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    pieces: list[Piece] = []
    place = 0
    for size in draw(st.lists(SIZES, min_size=1, max_size=12)):
        kind = draw(st.sampled_from(["copied", "scratch"]))
        place += draw(st.sampled_from([0, 7]))
        pieces.append(Span(File.SOURCE if kind == "copied" else File.SCRATCH, range(place, place + size)))
        place += size
    return Recipe((*pieces, b"footer"), (0,), (1,))


@given(recipes())
def test_parts_are_large_enough_and_give_the_new_object(recipe: Recipe) -> None:
    parts = upload_parts(recipe)
    if not parts:
        assert not any(isinstance(p, Span) and p.file is File.SOURCE and len(p) >= 2 * LEAST for p in recipe.pieces)
        return
    assert [part.new.start for part in parts] == [0, *(part.new.stop for part in parts[:-1])]
    assert parts[-1].new.stop == recipe.size
    assert all(len(part.new) >= LEAST for part in parts[:-1])
    at, sources = 0, []
    for piece in recipe.pieces:
        if isinstance(piece, Span) and piece.file is File.SOURCE:
            sources.append((range(at, at + len(piece)), piece.extent.start - at))
        at += len(piece)
    for part in parts:
        if part.old is not None:
            assert len(part.old) == len(part.new) <= MOST
            assert any(
                part.new.start in new and part.new.stop - 1 in new and part.old.start - part.new.start == shift
                for new, shift in sources
            )


def test_no_upload_is_begun_for_what_has_no_parts() -> None:
    """Its id would be in no journal, and nobody would abort it."""
    asked: list[str] = []

    class Noting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return lambda **_: {"UploadId": "1"}

    with pytest.raises(ValueError, match="not enough values"):
        copy_like(Noting(), "bucket", KEY, b"", (), {"ETag": '"1"'}, PLAN, {}, str)
    assert asked == []
