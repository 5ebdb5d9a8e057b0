"""Places in S3: told apart from paths, spread over all that a table's metadata tells, listed, and fetched to be read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.planning.s3_place_search import search_places, with_remote
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.iceberg.s3_folders import iceberg_folders
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, ObjectVersion, RemotePlace
from pii_tracer.lake.stores.s3 import version_bytes
from pii_tracer.lake.stores.s3.object_versions import iter_object_versions
from pii_tracer.lake.stores.s3.version_bytes import fetch
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import (
    S3Location,
    is_s3,
    local_path,
    location_of,
)
from pii_tracer.scan.value_forms import build_patterns
from planners.copies.scan_evidence import RemoteEvidence, RemoteKind
from planners.gaps.copy_gaps import inventory_gaps
from planners.gaps.unerasable_s3_tables import remote_gap
from tests.s3support import World, cut_short, estate, standin, world

__all__ = ["standin", "world"]

MAIL, UID = "asha.rao@mail.example", "8841302"
PERSON = build_patterns(
    [
        KeySet(name="email", origin="email", weak=False, values=(("s", MAIL),)),
        KeySet(name="uid", origin="uid", weak=True, values=(("s", UID),)),
    ]
)


def quiet(_: str) -> None:
    return None


def at(text: str) -> S3Location:
    place = location_of(text)
    assert isinstance(place, S3Location)
    return place


def test_locations_are_a_path_or_a_place_in_a_bucket() -> None:
    assert location_of("/lake/a%20b") == Path("/lake/a%20b")
    assert location_of("file:///lake/a%20b") == Path("/lake/a b")
    for scheme in ("s3", "s3a", "s3n", "S3"):
        assert location_of(f"{scheme}://b/wh/t/") == S3Location(bucket="b", key="wh/t")
    assert (at("s3://b").prefix, at("s3://b/").prefix, at("s3://b/t").prefix) == ("", "", "t/")
    assert at("s3://b/wh/t/1.parquet").parent == at("s3://b/wh/t")
    assert at("s3://b/wh").holds(at("s3://b/wh/t"))
    assert at("s3://b").holds(at("s3://b/t"))
    assert not at("s3://b/t").holds(at("s3://b/t2"))
    assert not at("s3://b/t").holds(at("s3://c/t"))
    assert not is_s3("s3_folder/t")
    with pytest.raises(EstateError, match="only a path"):
        local_path("s3://b/t")
    with pytest.raises(EstateError, match="`gs` locations"):
        location_of("gs://b/t")


def test_credentials_in_an_old_form_of_location_are_not_repeated() -> None:
    with pytest.raises(EstateError) as refused:
        location_of("s3n://AKIAKEY:SECRET@bucket/t")
    assert "SECRET" not in str(refused.value)


def test_places_in_s3_need_to_be_told_how_s3_is_reached() -> None:
    given = estate("http://127.0.0.1:1").model_dump(by_alias=True) | {"s3": None}
    for roots, catalogs in (
        (["s3://b/t"], {}),
        ([], {"c": {"type": "declared", "tables": [{"name": "p.t", "format": "delta", "location": "s3a://b/t"}]}}),
    ):
        with pytest.raises(ValueError, match="roots or tables in S3"):
            Estate.model_validate({**given, "roots": roots, "catalogs": catalogs})


def test_all_folders_that_a_metadata_file_tells() -> None:
    metadata = {
        "location": "s3://b/wh/t",
        "properties": {
            "write.data.path": "s3://data/t",
            "write.metadata.path": "s3a://b/wh/t/metadata",
            "x": "s3://no/t",
        },
        "metadata-log": [{"metadata-file": "s3://b/old/t/metadata/1.metadata.json"}],
        "snapshots": [{"manifest-list": "s3://b/wh/t/metadata/snap-1.avro"}, {"manifests": []}],
        "statistics": [{"statistics-path": "hdfs://host/t/metadata/1.stats"}],
    }
    folders, doubt = iceberg_folders(metadata, at("s3://b/wh/t/metadata/2.metadata.json"))
    assert [str(f) for f in folders] == ["s3://b/wh/t", "s3://data/t", "s3://b/old/t/metadata"]
    assert doubt == "1 path in its metadata leads out of S3"
    wide = {"location": "s3://b/wh/t", "properties": {"write.data.path": "s3://b"}}
    assert iceberg_folders(wide, at("s3://b/wh/t/metadata/2.metadata.json")) == ((at("s3://b"),), None)


def looked(world: World, base: Path, *roots: str, tables: dict[str, str] | None = None) -> dict[str, Any]:
    """Gap of every place in S3, by location, and its evidence."""
    inventory, seen = searched(world, base, *roots, tables=tables)
    facts: Any = type("World", (), {"inventory": inventory, "evidence": {}, "masked": {}, "remote": seen})
    return {gap.evidence.partition(";")[0]: gap for gap in inventory_gaps(facts)}


def searched(
    world: World, base: Path, *roots: str, tables: dict[str, str] | None = None
) -> tuple[Inventory, dict[str, RemoteEvidence]]:
    named = [{"name": n, "format": "delta", "location": p} for n, p in (tables or {}).items()]
    given = estate(world.endpoint_url, roots=roots, catalogs={"c": {"type": "declared", "tables": named}})
    inventory = with_remote(discover(given, base), given, EstatePaths(given, base), quiet)
    return inventory, search_places(inventory, given, PERSON, True, quiet).places


def test_an_object_belongs_to_the_innermost_place(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    for key in ("a/1", "a/t/2", "a/t2/3", "b/4"):
        world.put(bucket, key, key.encode())
    inventory, _ = searched(
        world, tmp_path, f"s3://{bucket}", tables={"p.t": f"s3://{bucket}/a/t", "q.t": f"s3a://{bucket}/a/t/"}
    )
    found = {str(p.location): ([v.key for v in p.versions], p.tables) for p in inventory.remote}
    assert found == {
        f"s3://{bucket}/": (["a/1", "a/t2/3", "b/4"], ()),
        f"s3://{bucket}/a/t": (["a/t/2"], ("p.t", "q.t")),
    }


def test_discovery_alone_names_the_places_and_asks_nobody(tmp_path: Path) -> None:
    given = estate("http://127.0.0.1:1", roots=["s3://b/t"])
    [gap] = discover(given, tmp_path).gaps
    assert (gap.kind, gap.evidence) == ("remote_table", "s3://b/t")
    assert "does not look into it" in gap.reason


def test_short_numbers_names_and_what_stands_beside(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    world.put(bucket, "digits/1.csv", f"user_id,n\n{UID},1\n".encode())
    world.put(bucket, f"named/{MAIL}.csv", b"n\n1\n")
    world.client().delete_object(Bucket=bucket, Key=f"named/{MAIL}.csv")
    world.put(bucket, "beside/1.csv", b"n\n1\n", Metadata={"uploader": MAIL}, Tagging="a=b")
    world.put(bucket, "tagged/1.csv", b"n\n1\n", Tagging=f"by={MAIL.replace('@', '%40')}")
    gaps = looked(world, tmp_path, *(f"s3://{bucket}/{f}" for f in ("digits", "named", "beside", "tagged", "empty")))
    told = {location.rpartition("/")[2]: gap for location, gap in gaps.items()}
    assert {name: gap.id.split("-")[2] for name, gap in told.items()} == {
        "digits": "digits",
        "named": "person",
        "beside": "person",
        "tagged": "person",
        "empty": "clean",
    }
    assert "digits of a short key are in user_id; 1 version contains nothing else" in told["digits"].reason
    assert "(under ten digits) look like" in told["digits"].reason
    assert "the names of 1 object contain a value" in told["named"].reason
    assert told["empty"].reason.endswith("; the place contains no object")
    assert MAIL not in repr(gaps)
    assert UID not in repr(gaps)


def test_an_archived_object_is_not_looked_at_until_it_is_restored(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    world.put(bucket, "t/1.csv", b"n\n1\n")
    old = world.put(bucket, "t/old.csv", f"mail\n{MAIL}\n".encode(), StorageClass="GLACIER")
    told = looked(world, tmp_path, f"s3://{bucket}/t")[f"s3://{bucket}/t"]
    assert told.id.startswith("gap-remote_table-unread-")
    assert "1 of 2 versions of 2 objects were read" in told.reason
    assert f"old.csv?versionId={old['version_id']}: archived (GLACIER) and not restored" in told.evidence
    world.client().restore_object(Bucket=bucket, Key="t/old.csv", RestoreRequest={"Days": 1})
    world.advance()
    told = looked(world, tmp_path, f"s3://{bucket}/t")[f"s3://{bucket}/t"]
    assert "1 of 2 objects contain the person" in told.reason


def test_a_bound_that_two_people_share_is_told_from_the_file_it_describes(world: World, tmp_path: Path) -> None:
    """Delta cuts bounds to 32 characters; the other person's file has nothing of ours."""
    import pyarrow as pa
    from deltalake import write_deltalake

    mine, theirs = ("n" * 32 + end + "@mail.example" for end in ("a", "b"))
    patterns = build_patterns([KeySet(name="email", origin="email", weak=False, values=(("s", mine),))])
    bucket, table = world.new("lake"), tmp_path / "t"
    write_deltalake(table, pa.table({"mail": [theirs]}))
    for file in table.rglob("*"):
        if file.is_file():
            text = file.read_bytes()
            if file.suffix == ".json":  # as engines cut it
                text = text.replace(f'\\"mail\\":\\"{theirs}\\"'.encode(), f'\\"mail\\":\\"{theirs[:32]}\\"'.encode())
                assert theirs.encode() not in text
            world.put(bucket, f"t/{file.relative_to(table).as_posix()}", text)
    given = estate(world.endpoint_url, roots=[f"s3://{bucket}/t"])
    inventory = with_remote(discover(given, tmp_path), given, EstatePaths(given, tmp_path), quiet)
    [seen] = search_places(inventory, given, patterns, False, quiet).places.values()
    assert not seen.found
    data = next(v for [p] in [inventory.remote] for v in p.versions if v.key.endswith(".parquet"))
    world.client().delete_object(Bucket=bucket, Key=data.key, VersionId=data.version_id)
    inventory = with_remote(discover(given, tmp_path), given, EstatePaths(given, tmp_path), quiet)
    [seen] = search_places(inventory, given, patterns, False, quiet).places.values()
    assert seen.holding == {RemoteKind.LOG: 1}


def test_files_that_metadata_names_elsewhere_are_counted(world: World, tmp_path: Path) -> None:
    bucket = world.new("lake")
    paths = (
        f"s3://{bucket}/t/1.parquet",
        f"s3a://{bucket}/u/2.parquet",
        f"s3://{bucket}/far/3%204.parquet",
        "file:/x/5",
        "6.parquet",
    )
    lines = [json.dumps({"add": {"path": path, "size": 1}}) for path in paths]
    world.put(bucket, "t/_delta_log/00000000000000000000.json", "\n".join(lines).encode())
    gaps = looked(world, tmp_path, tables={"p.t": f"s3://{bucket}/t", "p.u": f"s3://{bucket}/u"})
    world.put(bucket, "u/_delta_log/00000000000000000000.json", b"{")
    torn = looked(world, tmp_path, tables={"p.u": f"s3://{bucket}/u"})[f"s3://{bucket}/u"]
    assert "the files that it names are unknown (JSONDecodeError)" in torn.evidence
    told = gaps[f"s3://{bucket}/t"]
    assert "2 files referenced by metadata of this place are outside of it, and were not read" in told.reason
    assert told.id.startswith("gap-remote_table-unread-")


@pytest.fixture
def version(world: World) -> tuple[World, str, ObjectVersion]:
    bucket = world.new("one", versioned=False)
    world.put(bucket, "a.csv", f"mail\n{MAIL}\n".encode())
    [found] = iter_object_versions(world.client(), bucket, "")
    return world, bucket, found


def test_large_objects_go_through_a_file_without_a_name(
    version: tuple[World, str, ObjectVersion], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, bucket, found = version
    in_memory, _ = fetch(world.client(), bucket, found)
    monkeypatch.setattr(version_bytes, "IN_MEMORY", 4)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data, answer = fetch(world.client(), bucket, found)
    assert bytes(data) == bytes(in_memory)
    assert type(data.obj).__name__ == "mmap"
    assert list(tmp_path.iterdir()) == []
    assert answer["ContentLength"] == len(data)


def test_what_is_no_longer_what_was_listed_is_not_read(version: tuple[World, str, ObjectVersion]) -> None:
    world, bucket, found = version
    world.put(bucket, "a.csv", b"mail\nanother@x.example\n")
    with pytest.raises(EstateError, match="the object differs from the listed object"):
        fetch(world.client(), bucket, found)
    world.client().delete_object(Bucket=bucket, Key="a.csv")
    with pytest.raises(EstateError, match="gone since it was listed"):
        fetch(world.client(), bucket, found)


def test_a_refusal_is_told_by_its_code(version: tuple[World, str, ObjectVersion]) -> None:
    from botocore.awsrequest import AWSResponse

    world, bucket, found = version
    client, body = world.client(), b"<Error><Code>AccessDenied</Code><Message>for a.csv</Message></Error>"

    class Raw:
        def stream(self, **_: Any) -> Iterator[bytes]:
            yield body

    client.meta.events.register(
        "before-send.s3.GetObject", lambda request, **_: AWSResponse(request.url, 403, {}, Raw())
    )
    with pytest.raises(EstateError, match=r"cannot be had \(AccessDenied\)"):
        fetch(client, bucket, found)


@pytest.mark.parametrize("in_memory", [4, 1000])
def test_a_body_that_ends_early_is_not_taken_for_the_object(
    version: tuple[World, str, ObjectVersion], monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    world, bucket, found = version
    monkeypatch.setattr(version_bytes, "IN_MEMORY", in_memory)
    client = world.client()
    cut_short(client, found.size, found.etag)
    with pytest.raises(EstateError, match=r"cannot be had \((IncompleteRead|ResponseStreaming)Error\)"):
        fetch(client, bucket, found)


def test_an_unreadable_metadata_file_leaves_the_folder_it_lies_in(world: World, tmp_path: Path) -> None:
    """The catalog names the file alone; where it is refused, the folder above is listed and the doubt is told."""
    from pii_tracer.lake.catalogs.registered_tables import RemoteTable
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients
    from pii_tracer.lake.stores.s3.table_versions import list_places

    bucket = world.new("lake")
    world.put(bucket, "wh/t/data/1.csv", b"x")
    clients = s3_clients(estate(world.endpoint_url))
    table = RemoteTable(
        "c.p.t", "c.p.t", ICEBERG, at(f"s3://{bucket}/wh/t"), at(f"s3://{bucket}/wh/t/metadata/1.metadata.json")
    )
    [place] = list_places([table], (), clients, quiet)
    assert (str(place.location), len(place.versions)) == (f"s3://{bucket}/wh/t", 1)
    assert place.doubt == "its metadata file cannot be read (NoSuchKey)"
    told = gzip.compress(json.dumps({"location": f"s3://{bucket}/moved/t"}).encode())
    world.put(bucket, "wh/t/metadata/1.metadata.json", told)
    world.put(bucket, "moved/t/data/2.csv", b"y")
    places = list_places([table], (), clients, quiet)
    assert {str(p.location): len(p.versions) for p in places} == {
        f"s3://{bucket}/moved/t": 1,
        f"s3://{bucket}/wh/t/metadata": 1,
    }
    assert not any(p.doubt for p in places)


def test_the_words_of_the_gap_say_what_was_not_read() -> None:
    place = RemotePlace(location=at("s3://b/t"), tables=("p.t",), doubt="its metadata file cannot be read (NoSuchKey)")
    gap = discover(estate("http://127.0.0.1:1", roots=["s3://b/t"]), Path("/")).gaps[0]
    seen = RemoteEvidence(
        objects=9,
        versions=12,
        holding={},
        unread=tuple(f"{n}: refused (AccessDenied)" for n in range(7)),
        unread_versions=7,
    )
    told = remote_gap(gap, place, seen)
    assert "5 of 12 versions of 9 objects were read" in told.reason
    assert "7 versions could not be read" in told.reason
    assert "its metadata file cannot be read" in told.reason
    assert told.evidence.endswith("4: refused (AccessDenied); 2 more")


ROOTS = {
    "tables": ([], False),
    "a table that holds nothing": ([("other/x", b"n\n1\n")], True),
    "an object beside": ([("wh/stray.csv", b"n\n1\n")], True),
    "a deleted object beside": ([("wh/gone.csv", None)], True),
}


@pytest.mark.parametrize("name", ROOTS)
def test_a_root_of_which_all_belongs_to_tables_is_no_gap(name: str, world: World, tmp_path: Path) -> None:
    objects, is_gap = ROOTS[name]
    bucket = world.new("lake")
    if "nothing" not in name:
        world.put(bucket, "wh/t/1.csv", b"n\n1\n")
    for key, data in objects:
        world.put(bucket, key, data or b"n\n1\n")
        if data is None:
            version = world.client().list_object_versions(Bucket=bucket, Prefix=key)["Versions"][0]["VersionId"]
            world.client().delete_object(Bucket=bucket, Key=key)
            world.client().delete_object(Bucket=bucket, Key=key, VersionId=version)
    root, table = f"s3://{bucket}/wh", f"s3://{bucket}/wh/t"
    assert (root in looked(world, tmp_path, root, tables={"p.t": table})) is is_gap
