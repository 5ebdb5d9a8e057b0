"""Objects in S3 that the store says are the same are not downloaded again, and nothing is clean for that."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from botocore.awsrequest import AWSResponse
from botocore.response import StreamingBody

from pii_tracer.lake.stores.s3 import known_versions
from pii_tracer.lake.stores.s3.archive_versions import iter_version_bytes
from pii_tracer.model.errors import ScanError
from tests.s3support import World, standin, world
from tests.verify.s3lake import parquet
from tests.verify.s3ledger import BY_NUMBER, HER, HERS, LAST, LOOKS, NOW, OBJECTS, OTHERS, Look, Place, hooked, rows

__all__ = ["standin", "world"]


@pytest.fixture(params=[True, False], ids=["versions", "no versions"])
def place(world: World, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(world, tmp_path, request.param)


@pytest.mark.parametrize("look", LOOKS)
def test_what_the_store_says_is_the_same_is_not_downloaded(place: Place, look: Look) -> None:
    place.put("hers.csv", rows(HER))
    bare, _ = look(place, kept=False)
    first, reading = look(place)
    assert (place.whole, reading.now, reading.before) == (OBJECTS + 1, OBJECTS + 1, 0)
    again, reading = look(place)
    assert first == again == bare
    assert place.whole == 1, "the sample"
    assert sum(place.sizes) < 100
    assert (reading.now, reading.again, reading.oldest) == (1, 1, NOW)
    assert reading.before == reading.by_store == OBJECTS


def test_verification_knows_what_planning_read(place: Place) -> None:
    place.put("hers.csv", rows(HER))
    place.plan()
    assert HER not in (place.base / "ledger.sqlite").read_text("latin-1")
    for look in (Place.verify, Place.archive):
        bare, _ = look(place, kept=False)
        found, reading = look(place)
        assert found == bare
        assert '"residue":[{' in found
        assert (place.whole, reading.by_store) == (1, OBJECTS)


@pytest.mark.parametrize("look", [Place.plan, Place.verify])
def test_rows_are_compared_where_a_search_of_the_bytes_found_nothing(place: Place, look: Look) -> None:
    """No bytes show a key of several columns, and planning did not know the columns of the folder."""
    for number in range(OBJECTS):
        place.put(f"{number}.csv", f"tenant,no\n9,{number}\n8,55\n".encode())
    place.put(LAST, b"tenant,no\n7,55\n8,1\n")
    look(place)
    found, _ = place.archive(match=BY_NUMBER)
    assert '"residue":[{' in found
    assert found == place.archive(match=BY_NUMBER)[0] == place.archive(kept=False, match=BY_NUMBER)[0]


@pytest.mark.parametrize("look", LOOKS)
def test_an_object_that_was_written_over_in_the_same_second_is_read(place: Place, look: Look) -> None:
    """With as many bytes: only the ETag, and where there are versions the id, are others."""
    place.put(LAST, rows(HERS))
    clean, _ = look(place)
    place.put(LAST, rows(HER))
    found, reading = look(place)
    assert found != clean
    assert found == look(place, kept=False)[0]
    # an old version is known; the new one is not
    assert (reading.now, reading.again) == (2, 1)


def tag(place: Place) -> None:
    tags = {"TagSet": [{"Key": "of", "Value": HER}]}
    place.client.put_object_tagging(Bucket=place.bucket, Key=f"t/{LAST}", Tagging=tags)


def metadata(place: Place) -> None:
    """Where there are no versions, ETag, size and perhaps the second of the time stay."""
    source = {"Bucket": place.bucket, "Key": f"t/{LAST}"}
    replaced = {"Metadata": {"of": HER}, "MetadataDirective": "REPLACE"}
    place.client.copy_object(**source, CopySource=source, **replaced)


@pytest.mark.parametrize("change", [tag, metadata])
@pytest.mark.parametrize("look", LOOKS)
def test_what_comes_beside_known_bytes_is_found(place: Place, look: Look, change: Callable[[Place], None]) -> None:
    clean, _ = look(place)
    change(place)
    found, _ = look(place)
    assert found != clean
    assert found == look(place, kept=False)[0]


@pytest.mark.parametrize("look", LOOKS)
def test_user_metadata_and_names_of_known_objects_are_searched(place: Place, look: Look) -> None:
    place.put("with.csv", rows(OTHERS), Metadata={"uploader": HER})
    place.put(f"of={HER}/1.csv", rows(OTHERS))
    first, _ = look(place)
    again, reading = look(place)
    assert again == first == look(place, kept=False)[0]
    assert reading.by_store == OBJECTS + 1


def test_a_listing_that_tells_of_other_bytes_than_are_there_makes_nothing_clean(place: Place) -> None:
    """The store lists each object as it was when it was searched, and the person came since."""
    before = {v["Key"]: v for v in place.client.list_object_versions(Bucket=place.bucket)["Versions"]}
    place.verify()
    place.put(LAST, rows(HER))

    def lie(parsed: Any, **_: Any) -> None:
        for listed in parsed.get("Versions", ()):
            listed.update({name: before[listed["Key"]][name] for name in ("ETag", "LastModified", "Size")})

    with hooked(place.client, "after-call.s3.ListObjectVersions", lie):
        found, _ = place.verify()
    verdict = json.loads(found)
    assert verdict["unverified"] or verdict["residue"]
    assert any(LAST in told for told in verdict["unverified"])


def test_a_store_that_sends_other_bytes_under_the_same_identity_is_found_out_by_the_sample(place: Place) -> None:
    place.verify()

    def lie(parsed: Any, **_: Any) -> None:
        if parsed["ContentLength"] > 1:
            other = rows(HER)[: parsed["ContentLength"]].ljust(parsed["ContentLength"])
            parsed["Body"] = StreamingBody(io.BytesIO(other), len(other))

    with hooked(place.client, "after-call.s3.GetObject", lie):
        with pytest.raises(ScanError, match="read again"):
            place.verify()
        assert '"residue":[{' in place.verify()[0], "the ledger is empty: everything is read"


@pytest.mark.parametrize("look", LOOKS)
def test_an_object_that_nobody_may_read_any_more_is_unread(place: Place, look: Look) -> None:
    class Empty:
        def stream(self, **_: Any) -> Any:
            return iter(())

        def read(self, *_: Any) -> bytes:
            return b""

    look(place)

    def refuse(request: Any, **_: Any) -> Any:
        return AWSResponse(request.url, 403, {}, Empty()) if f"/{LAST}" in request.url else None

    with hooked(place.client, "before-send.s3.GetObject", refuse):
        bare = attempt(place, look, kept=False)
        assert attempt(place, look, kept=True) == bare
    assert "403" in bare


def attempt(place: Place, look: Look, *, kept: bool) -> str:
    try:
        return look(place, kept=kept)[0]
    except Exception as error:  # an archive is refused as a whole
        return str(error)


def test_an_archived_object_that_was_written_over_since_it_was_asked_about_is_not_the_same(
    world: World, tmp_path: Path
) -> None:
    """Else a search of its new bytes would be kept as one of the old."""
    place = Place(world, tmp_path, False)
    asked = list(iter_version_bytes(place.client, place.bucket, "t/", datetime.now(timezone.utc)))
    assert all(version.answer_now() and version.read()[2] for version in asked)
    place.put(LAST, rows(OTHERS))
    assert [version.key for version in asked if not version.answer_now()] == [f"t/{LAST}"]
    assert [version.key for version in asked if not version.read()[2]] == [f"t/{LAST}"]


def test_what_could_not_be_read_is_downloaded_each_time(place: Place) -> None:
    place.put(LAST, b"PAR1 and then nothing PAR1")
    first, _ = place.plan()
    again, _ = place.plan()
    assert first == again
    assert "cannot be decoded" in first
    assert place.whole == 2, "that object, and the sample"


def test_files_that_metadata_names_are_told_each_time(world: World, tmp_path: Path) -> None:
    place = Place(world, tmp_path, True)
    place.put("_delta_log/00000000000000000000.json", b'{"add": {"path": "s3://elsewhere/x.parquet", "size": 1}}\n')
    place.put("x.parquet", parquet(OTHERS))
    first, _ = place.plan()
    again, _ = place.plan()
    assert again == first
    assert "beyond=1" in first
    assert place.whole == 2, "the log, and the sample"


@pytest.mark.parametrize("look", LOOKS)
def test_a_store_that_does_not_know_ranges_sends_no_object_for_its_first_byte(
    place: Place, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such objects are searched each time, and the store is asked for a first byte only once."""
    monkeypatch.setattr(known_versions, "_WITHOUT_RANGES", WeakSet())
    place.put("0.csv", b"n\n" + b"0" * 100_000)
    first, _ = look(place)
    asked, read, true = list[Any](), list[StreamingBody](), StreamingBody.read

    def whole(params: Any, **_: Any) -> None:
        if params["headers"].pop("Range", None):
            asked.append(params)

    def noted(body: StreamingBody, *given: Any, **more: Any) -> bytes:
        read.append(body)
        return true(body, *given, **more)

    monkeypatch.setattr(StreamingBody, "read", noted)
    with hooked(place.client, "before-call.s3.GetObject", whole):
        again, reading = look(place)
    versions = OBJECTS + place.versioned
    assert again == first
    assert (reading.by_store, reading.now, len(read)) == (0, versions, versions)
    assert 1 <= len(asked) <= 8, "those that were asked at once"


def without(*names: str) -> Callable[..., None]:
    def drop(parsed: Any, **_: Any) -> None:
        for name in names:
            parsed.pop(name, None)

    return drop


@pytest.mark.parametrize("call", ["GetObject", "HeadObject"])
@pytest.mark.parametrize("look", LOOKS)
def test_an_answer_without_a_time_is_about_no_known_object(place: Place, look: Look, call: str) -> None:
    first, _ = look(place)
    with hooked(place.client, f"after-call.s3.{call}", without("LastModified")):
        found, reading = look(place)
    assert found == first
    assert reading.by_store == (0 if call == "GetObject" else OBJECTS - 1)


def another_time(parsed: Any, **_: Any) -> None:
    parsed["LastModified"] = parsed["LastModified"].replace(year=2001)


def another_size(parsed: Any, **_: Any) -> None:
    """One byte more, which came since the listing."""
    parsed["Body"] = StreamingBody(io.BytesIO(parsed["Body"].read() + b"\n"), parsed["ContentLength"] + 1)
    parsed["ContentLength"] += 1


@pytest.mark.parametrize("change", [another_time, another_size])
@pytest.mark.parametrize("look", LOOKS)
def test_bytes_that_came_with_another_answer_than_was_listed_are_not_kept(
    place: Place, look: Look, change: Callable[..., None]
) -> None:
    with hooked(place.client, "after-call.s3.GetObject", change):
        look(place)
    _, reading = look(place)
    assert (reading.now, reading.before) == (OBJECTS, 0)


@pytest.mark.parametrize("look", LOOKS)
def test_an_empty_object_is_known_by_one_answer(place: Place, look: Look) -> None:
    """It has no first byte. What stands beside it is searched as of all others."""
    for number in range(OBJECTS):
        place.put(f"{number}.csv", b"", Metadata={"of": HER} if number == OBJECTS - 1 else {})
    first, _ = look(place)
    asked: list[Any] = []
    with hooked(place.client, "before-call.s3.GetObject", lambda params, **_: asked.append(params)):
        again, reading = look(place)
    assert again == first == look(place, kept=False)[0]
    assert '"residue":[{' in again or "holders=1" in again
    versions = OBJECTS * (1 + place.versioned)
    assert (len(asked), reading.now) == (versions, reading.again)


@pytest.mark.parametrize("kept", [True, False])
def test_metadata_that_was_replaced_since_an_archived_object_was_asked_about_is_found(
    world: World, tmp_path: Path, kept: bool
) -> None:
    """HeadObject answered before; the answer with the bytes, or with the first of them, is newer."""
    place, asked = Place(world, tmp_path, False), list[Any]()

    def same_second(parsed: Any, **_: Any) -> None:
        parsed["LastModified"] = NOW

    def change(parsed: Any, **_: Any) -> None:
        asked.append(parsed)
        if len(asked) == OBJECTS:
            metadata(place)

    with hooked(place.client, "after-call.s3.*", same_second):
        place.archive()
        with hooked(place.client, "after-call.s3.HeadObject", change):
            found, reading = place.archive(kept=kept)
    assert reading.by_store == (OBJECTS - 1) * kept
    assert '"residue":[{' in found
