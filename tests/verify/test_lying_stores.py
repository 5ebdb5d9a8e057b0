"""A store that does not list everything: what can be noticed of it is never called clean."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, PaginationError

from pii_tracer.app.s3_reading import look_at
from pii_tracer.app.unplanned_places import declared_since
from pii_tracer.app.verification import Verification
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.stores.s3.archive_versions import discover_archives
from pii_tracer.lake.stores.s3.listing import upload_items, version_pages
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    KeySet,
    Strategy,
)
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS
from pii_tracer.model.locations import S3Location
from pii_tracer.model.plan import Copy, ErasurePlan, Examined, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.verify.verdicts import (
    NO_COPY,
    SINCE,
    ByteVerdict,
    RunVerdict,
    with_since,
)
from sample_lineage import s3_standin
from tests.lyingstore import Lies, lying
from tests.s3support import REGION, World, estate, standin, step
from tests.waivers import MARKS

__all__ = ["standin"]

HERS, OTHERS = b"id,note\n1,ABCDE1234F\n", b"id,note\n2,nobody\n"


@pytest.fixture
def store(standin: s3_standin.Standin, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Lies]]:
    for name, value in s3_standin.demo_credentials().items():
        monkeypatch.setenv(name, value)
    with lying(standin.endpoint_url) as (url, lies):
        yield World(url), lies


def no_spark() -> Any:
    raise AssertionError("objects are verified without Spark")


def archive(bucket: str, kind: CopyKind = CopyKind.ARCHIVE, **more: Any) -> Copy:
    told: dict[str, Any] = {
        "id": f"c-{kind.value.lower()}",
        "kind": kind,
        "dataset": DatasetId(namespace=f"s3://{bucket}", name="archive"),
        "table": None,
        "location": f"s3://{bucket}/archive/",
        "format": Format.CSV,
        "carries": Carries.KEY,
        "strategy": Strategy.DELETE_VERSIONS,
        "columns": (),
        "lineage": (),
        "reason": "",
        "facts": {"region": REGION},
        **more,
    }
    return Copy(**told)


def verification(world: World, *copies: Copy, archives: list[dict[str, Any]] | None = None, **parts: Any) -> Any:
    plan: dict[str, Any] = {"copies": copies, "examined": (), "steps": (), "gaps": (), **parts}
    return Verification(
        plan=ErasurePlan.model_construct(**plan),
        estate=estate(world.endpoint_url, archives),
        base=Path(),
        keys=(KeySet(name="pan", origin="pan", weak=False, values=(("person", "ABCDE1234F"),)),),
        marks=MARKS,
        spark=no_spark,
        now=lambda: datetime.now(timezone.utc),
    )


def looked(world: World, copy: Copy, *others: Copy, **parts: Any) -> ByteVerdict:
    found = verification(world, copy, *others, **parts).look(copy).bytes
    assert found is not None
    return found


# --- the scope follows from what is there now ---


@pytest.mark.parametrize("then", ["written over", "deleted"])
def test_a_version_that_came_after_planning_is_looked_at_by_the_archive(store: tuple[World, Lies], then: str) -> None:
    """No old version at planning, so that no copy stands for old versions."""
    world, _ = store
    bucket = world.new("since")
    copy = archive(bucket)
    world.put(bucket, "archive/a.csv", HERS)
    if then == "written over":
        world.put(bucket, "archive/a.csv", OTHERS)
    else:
        world.client().delete_object(Bucket=bucket, Key="archive/a.csv")
    assert [r.where for r in looked(world, copy).residue] != []


def test_old_versions_are_their_own_copys_where_there_is_one(store: tuple[World, Lies]) -> None:
    world, _ = store
    bucket = world.new("both")
    world.put(bucket, "archive/a.csv", HERS)
    world.put(bucket, "archive/a.csv", OTHERS)
    now, old = archive(bucket), archive(bucket, CopyKind.OBJECT_VERSION)
    assert looked(world, now, old).clean
    assert looked(world, old, now).residue


def test_every_version_is_for_one_of_the_copies_of_its_place() -> None:
    from pii_tracer.verify.object_version_claims import counts_uploads, looks_at

    kinds = (CopyKind.ARCHIVE, CopyKind.OBJECT_VERSION, CopyKind.REPLICA)
    for chosen in ({k for i, k in enumerate(kinds) if number >> i & 1} for number in range(1, 8)):
        copies = [archive("b", kind) for kind in chosen]
        for latest in (True, False):
            assert any(looks_at(copy, copies, latest=latest) for copy in copies), chosen
        assert any(counts_uploads(copy, copies) for copy in copies), chosen
    alone = archive("b")
    elsewhere = archive("b", CopyKind.OBJECT_VERSION, location="s3://b/archive/other/")
    assert looks_at(alone, [alone, elsewhere], latest=False)


def test_an_upload_begun_since_the_verdict_is_a_change(store: tuple[World, Lies]) -> None:
    world, _ = store
    bucket = world.new("begun")
    world.put(bucket, "archive/a.csv", OTHERS)
    copy = archive(bucket)
    looking = verification(world, copy)
    verdict = looking.look(copy)
    assert verdict.erased
    assert not looking.changed(copy, verdict)
    world.client().create_multipart_upload(Bucket=bucket, Key="archive/b.csv")
    assert looking.changed(copy, verdict)


def test_a_replica_that_came_after_planning_is_looked_at(store: tuple[World, Lies]) -> None:
    world, _ = store
    source, target, further = world.new("source"), world.new("target"), world.new("further")
    world.put(target, "archive/a.csv", HERS)
    world.put(target, "archive/a.csv", OTHERS)
    copy = archive(source)
    assert verification(world, copy).elsewhere() == ()
    world.replicate(source, target, "archive/")
    world.replicate(target, further, status="Disabled")
    found = {v.copy_id: (bool(v.residue), v.unverified) for v in verification(world, copy).elsewhere()}
    assert found == {f"(new) s3://{target}/archive/": (True, ()), f"(new) s3://{further}/archive/": (False, ())}
    known = archive(target, CopyKind.REPLICA)
    assert [v.copy_id for v in verification(world, copy, known).elsewhere()] == [f"(new) s3://{further}/archive/"]
    kept = archive(source, strategy=Strategy.EXEMPT)
    assert verification(world, kept).elsewhere() == ()


def test_an_archive_that_was_empty_at_planning_is_looked_at(store: tuple[World, Lies]) -> None:
    world, _ = store
    bucket = world.new("empty")
    table = archive(
        "b", CopyKind.SOURCE, table="prod.a", location="/lake/a", dataset=DatasetId(namespace="file", name="/lake/a")
    )
    told = [{"name": "a", "of": "prod.a", "bucket": bucket, "prefix": "archive/", "format": "csv"}]
    [clean] = verification(world, table, archives=told).elsewhere()
    assert (clean.copy_id, clean.clean) == (f"(new) s3://{bucket}/archive/", True)
    world.put(bucket, "archive/a.csv", HERS)
    [found] = verification(world, table, archives=told).elsewhere()
    assert found.residue


def test_rules_that_cannot_be_read_are_told(store: tuple[World, Lies]) -> None:
    world, lies = store
    copy = archive(world.new("rules"))
    lies.refused["replication"] = "AccessDenied"
    [told] = verification(world, copy).elsewhere()
    assert "GetBucketReplication is rejected (AccessDenied)" in told.unverified[0]
    lies.refused["replication"] = "NotImplemented"
    assert verification(world, copy).elsewhere() == ()


# --- unfinished uploads ---


def test_uploads_are_seen_where_a_server_lists_them_by_their_key_alone(store: tuple[World, Lies]) -> None:
    world, lies = store
    lies.uploads_by_key = True
    bucket = world.new("minio")
    client = world.client()
    for key in ("archive/half.csv", "other/half.csv"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    assert looked(world, archive(bucket)).unverified == (
        f"s3://{bucket}/archive/: 1 unfinished multipart upload with bytes that nobody can read",
    )
    world.put(bucket, "archive/a.csv", OTHERS)
    told = [{"name": "a", "of": "prod.a", "bucket": bucket, "prefix": "archive/", "format": "csv"}]
    [found], _ = discover_archives(estate(world.endpoint_url, told), lambda region: world.client(region), Path())
    assert [upload.key for upload in found.uploads] == ["archive/half.csv"]
    uploads = [u.model_dump() for u in found.uploads]
    where = {"bucket": bucket, "region": REGION, "plan_id": "plan_0001", "prefix": "archive/"}
    aborting = step(Action.S3_ABORT_UPLOADS, {**where, "uploads": uploads, "idle_hours": 0})
    executor = world.executor()
    assert executor.probe(aborting, None).value == "not_started"
    assert len(executor.run(aborting, None).facts["aborted"]) == 1
    assert executor.verify(aborting, None).ok
    assert looked(world, archive(bucket)).clean
    assert [item["Key"] for item in upload_items(client, bucket)] == ["other/half.csv"]


MANY = ("archive/a", "archive/b", "archive/b", "archive/b", "archive/b2", "other/c")


@pytest.mark.parametrize(("page", "more"), [(3, False), (4, False), (6, False), (4, True), (5, True)])
def test_a_server_that_refuses_uploads_as_markers_is_asked_by_keys(
    store: tuple[World, Lies], page: int, more: bool
) -> None:
    """No key has more than a page. more: the server says that more are to come, and where."""
    world, lies = store
    bucket, client = world.new("markers"), world.client()
    made = {client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"] for key in MANY}
    lies.no_upload_ids, lies.uploads_page, lies.uploads_more = True, page, more
    assert {item["UploadId"] for item in upload_items(client, bucket)} == made
    assert looked(world, archive(bucket)).unverified == (
        f"s3://{bucket}/archive/: 5 unfinished multipart uploads with bytes that nobody can read",
    )


def test_what_a_refused_marker_hides_is_never_called_clean(store: tuple[World, Lies]) -> None:
    """One upload of two of a key is on a page that is called the last: the place is clean when the last is gone."""
    world, lies = store
    bucket, client = world.new("hiding"), world.client()
    for key in ("archive/b", "archive/b", "other/c"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    lies.no_upload_ids, lies.uploads_page = True, 1
    aborted = 0
    while not looked(world, archive(bucket)).clean:
        known = list(upload_items(client, bucket, "archive/"))
        assert known
        client.abort_multipart_upload(Bucket=bucket, Key=known[0]["Key"], UploadId=known[0]["UploadId"])
        aborted += 1
    assert aborted == 2


def test_a_server_that_says_more_are_to_come_and_refuses_to_go_on_there_is_refused(store: tuple[World, Lies]) -> None:
    world, lies = store
    bucket, client = world.new("stuck"), world.client()
    for key in MANY:
        client.create_multipart_upload(Bucket=bucket, Key=key)
    lies.no_upload_ids, lies.uploads_page, lies.uploads_more = True, 2, True
    with pytest.raises(ClientError, match="InvalidArgument"):
        list(upload_items(client, bucket))
    told = f"s3://{bucket}/archive/: ListMultipartUploads is rejected (InvalidArgument), so its answer is unknown"
    assert looked(world, archive(bucket)).unverified == (told,)


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown"])
def test_a_denial_of_the_question_behind_the_last_upload_is_no_refusal_of_a_marker(
    store: tuple[World, Lies], code: str
) -> None:
    world, lies = store
    bucket = world.new("denied")
    world.client().create_multipart_upload(Bucket=bucket, Key="other/half.csv")
    lies.refused["upload-id-marker"] = code
    [told] = looked(world, archive(bucket)).unverified
    assert f"ListMultipartUploads is rejected ({code})" in told


@pytest.mark.parametrize("code", ["AccessDenied", "NotImplemented"])
def test_uploads_that_may_not_be_listed_are_unverified_unless_somebody_waived_that(
    store: tuple[World, Lies], code: str
) -> None:
    world, lies = store
    bucket = world.new("asked")
    world.put(bucket, "archive/a.csv", OTHERS)
    lies.refused["uploads"] = code
    copy = archive(bucket)
    told = f"s3://{bucket}/archive/: ListMultipartUploads is rejected ({code}), so its answer is unknown"
    assert looked(world, copy).unverified == (told,)
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    gap = Gap(
        id="g",
        dataset=copy.dataset,
        kind="s3_setting",
        reason="",
        evidence=f"bucket {bucket}: ListMultipartUploads {code}",
        waiver=Waiver(why="no such writers", who="Dr. Sen", until=now),
    )
    waived = looked(world, copy, gaps=(gap,))
    assert (waived.clean, waived.not_asked) == (True, (told,))
    of_another = gap.model_copy(update={"evidence": f"bucket {bucket}: GetBucketLogging {code}"})
    assert looked(world, copy, gaps=(of_another,)).unverified == (told,)
    open_gap = gap.model_copy(update={"waiver": None})
    assert looked(world, copy, gaps=(open_gap,)).unverified == (told,)


# --- listings ---


def filled(world: World) -> str:
    """Her row is in the last version of the last key: whatever is cut, that is cut off."""
    bucket = world.new("cut")
    for key in ("a.csv", "b.csv", "ü.csv"):
        for body in (HERS if key == "ü.csv" else OTHERS, OTHERS, OTHERS):
            world.put(bucket, f"archive/{key}", body)
    world.client().delete_object(Bucket=bucket, Key="archive/b.csv")
    return bucket


@pytest.mark.parametrize("page", [1, 2, 3, 4, 9])
def test_a_page_that_is_cut_and_called_the_last_is_not_believed(store: tuple[World, Lies], page: int) -> None:
    world, lies = store
    bucket = filled(world)
    whole = sorted(world.versions(bucket))
    lies.page = page
    pages = version_pages(world.client(), bucket, "archive/")
    assert sorted((i["Key"], i["VersionId"]) for p in pages for part in p.values() for i in part) == whole
    assert looked(world, archive(bucket)).residue


@pytest.mark.parametrize("versioned", [True, False])
def test_a_listing_is_asked_once_more_behind_its_end(store: tuple[World, Lies], versioned: bool) -> None:
    world, lies = store
    bucket = world.new("once", versioned=versioned)
    assert list(version_pages(world.client(), bucket, "")) == []
    assert len(lies.asked) == 1
    world.put(bucket, "a", b"a")
    assert len(list(version_pages(world.client(), bucket, ""))) == 1
    assert len(lies.asked) == 3


@pytest.mark.parametrize("lie", ["nowhere", "circle"])
def test_a_listing_without_an_end_is_refused(store: tuple[World, Lies], lie: str) -> None:
    world, lies = store
    bucket = filled(world)
    setattr(lies, lie, True)
    with pytest.raises(PaginationError):
        list(version_pages(world.client(), bucket, "archive/"))
    assert looked(world, archive(bucket)).unverified == ("the bucket cannot be listed: PaginationError",)


def test_a_listing_that_is_refused_is_unverified(store: tuple[World, Lies]) -> None:
    world, lies = store
    bucket = filled(world)
    lies.refused["versions"] = "AccessDenied"
    assert looked(world, archive(bucket)).unverified == ("the bucket cannot be listed: AccessDenied",)


def test_a_version_that_the_plan_names_and_no_listing_shows_is_found(store: tuple[World, Lies]) -> None:
    """A store that hides old versions: those that steps were to delete are asked for one by one."""
    world, lies = store
    bucket = world.new("hidden")
    named = world.put(bucket, "archive/a.csv", HERS)
    world.put(bucket, "archive/a.csv", OTHERS)
    lies.old_versions = True
    copy = archive(bucket)
    delete = step(Action.S3_DELETE_VERSIONS, {"bucket": bucket, "versions": [named]})
    delete = delete.model_copy(update={"copy_": copy.id})
    assert looked(world, copy, steps=(delete,)).residue
    assert looked(world, copy).clean  # nobody named it: a proof says that this cannot be noticed
    world.client().delete_object(Bucket=bucket, Key="archive/a.csv", VersionId=named["version_id"])
    assert looked(world, copy, steps=(delete,)).clean


# --- tables in S3, and what is no copy ---


@pytest.mark.parametrize("lie", [{"page": 1}, {"nowhere": True}, {"refused": {"versions": "AccessDenied"}}])
@pytest.mark.parametrize("what", ["table", "examined", "values"])
def test_no_listing_of_a_table_that_is_cut_or_refused_is_clean(
    store: tuple[World, Lies], what: str, lie: dict[str, Any]
) -> None:
    world, lies = store
    bucket = filled(world)
    place = DatasetId(namespace=f"s3://{bucket}", name="archive")
    for name, value in lie.items():
        setattr(lies, name, value)
    if what == "table":
        location = f"s3://{bucket}/archive"
        table = archive(bucket, CopyKind.SOURCE, location=location, format=DELTA, table="sales.orders")
        found = looked(world, table)
    elif what == "examined":
        examined = (Examined(dataset=place, table=None, carries=Carries.NONE, reason=""),)
        [found] = verification(world, examined=examined).elsewhere()
    else:
        at, patterns = S3Location(bucket=bucket, key="archive"), verification(world).patterns
        found = look_at(estate(world.endpoint_url), at, "values", patterns, NO_TEXTS, alone=True)
    assert bool(found.residue) is (lie == {"page": 1})
    assert bool(found.unverified) is (lie != {"page": 1})


def test_uploads_of_a_table_are_seen_where_a_server_lists_them_by_their_key_alone(store: tuple[World, Lies]) -> None:
    world, lies = store
    bucket = filled(world)
    lies.uploads_by_key = True
    world.client().create_multipart_upload(Bucket=bucket, Key="archive/half.parquet")
    table = archive(bucket, CopyKind.SOURCE, location=f"s3://{bucket}/archive", format=DELTA)
    assert "1 unfinished multipart upload" in looked(world, table).unverified[-1]


# --- what the end of a run makes of it ---


def test_what_came_since_and_cannot_be_looked_at_keeps_a_run_from_being_complete() -> None:
    unread = ("it cannot be read",)
    verdicts = {
        name: ByteVerdict(copy_id=name, root="r", files=(), unverified=unread if name != f"{SINCE}read" else ())
        for name in (f"{SINCE}unread", f"{SINCE}read", f"{NO_COPY}examined at planning")
    }
    whole = with_since(RunVerdict(copies=()), verdicts.values())
    assert whole.unverified == (f"{SINCE}unread: it cannot be read",)
    assert whole.erased == ()


def test_topics_and_repositories_that_are_declared_since_are_looked_at() -> None:
    topic = {"name": "t", "of": "prod.a", "value": {"format": "json"}}
    cluster = {"name": "k", "bootstrap": "broker:9092", "topics": [topic, {**topic, "name": "u"}]}
    told = estate("http://127.0.0.1:9", kafka=[cluster])
    known = {DatasetId(namespace="kafka://broker:9092", name="t")}
    assert [d.name for d in declared_since(told, known)] == ["u"]
