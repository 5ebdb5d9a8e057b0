"""Who answers for what could not be read beside the copies: whoever waived that very place, however it is called."""

from __future__ import annotations

import pytest

from pii_tracer.app.execution.attesting import who_answers
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import MarkKey, Waiver
from pii_tracer.scan.hits import FileScan
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.verdicts import NO_COPY, SINCE, ByteVerdict, ScannedFile
from pii_tracer.verify.waived_files import waived_files
from tests.planners.smalllake import NOW

BUCKET = DatasetId(namespace="s3://b", name="x/t")
WAIVER = Waiver(who="Asha Rao", why="a picture", until=NOW, of="g1")


MARK = "0123456789abcdef"


def gap(
    kind: GapKind,
    dataset: DatasetId | None = BUCKET,
    evidence: str = "s3://b/x/t; scan.tiff",
    *,
    who: str = "Asha Rao",
    mark: str = MARK,
) -> Gap:
    waiver = WAIVER.model_copy(update={"who": who})
    return Gap(id=who, dataset=dataset, kind=kind, reason="unread", evidence=evidence, waiver=waiver, unread=(mark,))


def plan(*gaps: Gap) -> ErasurePlan:
    return ErasurePlan.model_construct(gaps=gaps, examined=())


def unread(name: str, *marks: str) -> ByteVerdict:
    marks = marks or (MARK,)
    told = tuple(f"scan{n}.tiff: an unknown format" for n in range(len(marks)))
    return ByteVerdict(copy_id=name, root="r", files=(), unread_as_waived=told, marks_waived=marks)


@pytest.mark.parametrize("kind", [GapKind.REMOTE_TABLE, GapKind.HDFS_PLACE, GapKind.OBJECT_PLACE, GapKind.NOT_SCANNED])
@pytest.mark.parametrize("name", [f"{SINCE}x.t", f"{NO_COPY}s3://b/x/t"])
def test_a_place_is_known_by_its_dataset(kind: GapKind, name: str) -> None:
    [found] = who_answers([unread(name).at(BUCKET)], plan(gap(kind)))
    assert (found.who, found.what) == ("Asha Rao", name)


def test_a_lone_file_is_known_by_its_path() -> None:
    lone = gap(GapKind.UNKNOWN_FILE, None, "/w/a; b.tiff")
    [found] = who_answers([unread("any").at("/w/a; b.tiff")], plan(lone))
    assert found.who == "Asha Rao"


def test_another_place_and_other_bytes_are_answered_for_by_nobody() -> None:
    other = DatasetId(namespace="s3://b", name="x/u")
    for mark, place in ((MARK, other), ("f" * 16, BUCKET)):
        made = plan(gap(GapKind.REMOTE_TABLE, mark=mark))
        [found] = who_answers([unread(f"{NO_COPY}s3://b/x/t").at(place)], made)
        assert found.who is None


def test_each_file_is_answered_for_by_whoever_waived_its_bytes() -> None:
    other = "f" * 16
    gaps = gap(GapKind.REMOTE_TABLE), gap(GapKind.NOT_SCANNED, who="Noor Haddad", mark=other)
    found = who_answers([unread("any", MARK, other).at(BUCKET)], plan(*gaps))
    assert [one.who for one in found] == ["Asha Rao", "Noor Haddad"]


def test_nobody_answers_for_bytes_that_came_after_the_waiver() -> None:
    """Of one folder, the file that was waived, and one that was put there since."""
    made = MarkKey(b"a key of tests")
    waived = gap(GapKind.NOT_SCANNED, mark=made.of_file(BUCKET, "aa"))
    scans = [
        FileScan(path=name, size=1, sha256=sha, decoded_as="binary", unread=("an unknown format",), hits=())
        for name, sha in (("old.tiff", "aa"), ("new.tiff", "bb"))
    ]
    stays = waived_files(plan(waived), made)[BUCKET]
    found = who_answers([look_past("any", "r", scans, waived=stays).at(BUCKET)], plan(waived))
    assert {one.why.partition(":")[0]: one.who for one in found} == {"old.tiff": "Asha Rao", "new.tiff": None}
    assert {one.until is None for one in found if one.who is None} == {True}


@pytest.mark.parametrize(
    ("read", "marks", "who"), [((), (), "Asha Rao"), (("now.csv",), (), None), ((), (MARK,), None)]
)
def test_a_place_that_nobody_could_read_is_answered_for_as_long_as_that_is_so(
    read: tuple[str, ...], marks: tuple[str, ...], who: str | None
) -> None:
    waived = gap(GapKind.HDFS_UNREAD).model_copy(update={"unread": marks})
    files = tuple(ScannedFile(path=name, size=1, sha256="a" * 64, decoded_as="csv") for name in read)
    seen = ByteVerdict(copy_id="any", root="r", files=files, unverified=("no right to read the folder",)).at(BUCKET)
    [found] = who_answers([seen], plan(waived))
    assert found.who == who
