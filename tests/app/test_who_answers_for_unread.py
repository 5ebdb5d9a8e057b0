"""Who answers for what could not be read beside the copies: whoever waived that very place, however it is called."""

from __future__ import annotations

import pytest

from pii_tracer.app.execution.attesting import who_answers
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.verify.verdicts import NO_COPY, SINCE, ByteVerdict
from tests.planners.smalllake import NOW

BUCKET = DatasetId(namespace="s3://b", name="x/t")
WAIVER = Waiver(who="Asha Rao", why="a picture", until=NOW, of="g1")


def plan(kind: GapKind, dataset: DatasetId | None = BUCKET, evidence: str = "s3://b/x/t; scan.tiff") -> ErasurePlan:
    gap = Gap(id="gap-1", dataset=dataset, kind=kind, reason="unread", evidence=evidence, waiver=WAIVER)
    return ErasurePlan.model_construct(gaps=(gap,), examined=())


def unread(name: str) -> ByteVerdict:
    return ByteVerdict(copy_id=name, root="r", files=(), unread_as_waived=("scan.tiff: no known format",))


@pytest.mark.parametrize("kind", [GapKind.REMOTE_TABLE, GapKind.HDFS_PLACE, GapKind.OBJECT_PLACE, GapKind.NOT_SCANNED])
@pytest.mark.parametrize("name", [f"{SINCE}x.t", f"{NO_COPY}s3://b/x/t"])
def test_a_place_is_known_by_its_dataset(kind: GapKind, name: str) -> None:
    [found] = who_answers([unread(name).at(BUCKET)], plan(kind))
    assert (found.who, found.what) == ("Asha Rao", name)


def test_a_lone_file_is_known_by_its_path() -> None:
    lone = plan(GapKind.UNKNOWN_FILE, None, "/w/a; b.tiff")
    [found] = who_answers([unread("any").at("/w/a; b.tiff")], lone)
    assert found.who == "Asha Rao"


def test_another_place_and_another_kind_of_gap_answer_for_nothing() -> None:
    other = DatasetId(namespace="s3://b", name="x/u")
    for made, place in ((plan(GapKind.REMOTE_TABLE), other), (plan(GapKind.REGISTERED_TWICE), BUCKET)):
        [found] = who_answers([unread(f"{NO_COPY}s3://b/x/t").at(place)], made)
        assert found.who is None
