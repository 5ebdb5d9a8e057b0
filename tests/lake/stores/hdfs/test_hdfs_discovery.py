"""Places in HDFS on a real NameNode and DataNode: what is deleted there stays, is found, read, and never called clean."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.app.stored_places.hdfs_quotas import crowded, room_in
from pii_tracer.app.stored_places.hdfs_search import search_hdfs
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, joined
from pii_tracer.lineage.graph.canonical_facts import Facts
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.scan.value_forms import build_patterns
from planners.copies.scan_evidence import HdfsEvidence, HdfsRead
from planners.gaps.copy_gaps import inventory_gaps
from planners.locate.subject_survey import World
from planners.stores.hdfs.places import hdfs_gap, untreated
from tests.hdfssupport import SUPERUSER, Hdfs

MAIL = "ada.byron@example.org"
PATTERNS = build_patterns((KeySet(name="mail", origin="test", weak=False, values=(("mail", MAIL),)),))
ROW = f"id,mail\n1,{MAIL}\n".encode()
OTHER = b"id,mail\n2,bob@example.org\n"


def estate(hdfs: Hdfs, *roots: str, user: str = SUPERUSER, webhdfs: str | None = None) -> Estate:
    return Estate(
        version=1,
        estate="hdfs",
        environment="local",
        catalogs={},
        roots=tuple(f"{hdfs.uri}{root}" for root in roots),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="s", key="id"),),
        hdfs=(NameNode(namenode=hdfs.uri, webhdfs=(webhdfs or hdfs.webhdfs,), user=user),),
    )


def looked(hdfs: Hdfs, root: str, tmp_path: Path) -> tuple[Inventory, dict[str, HdfsEvidence]]:
    """What is found of one root, and what reading it showed; by location."""
    one = estate(hdfs, root)
    found = discover(one, tmp_path)
    return found, search_hdfs(found, one, PATTERNS, False, lambda _: None)


def states(hdfs: Hdfs, root: str, tmp_path: Path) -> dict[str, str]:
    """By the path of each place that no step erases: the gap's kind and what was seen, as the plan's gap says it."""
    found, seen = looked(hdfs, root, tmp_path)
    world = World(LineageGraph(Facts()), found, {}, lambda _: False, hdfs=seen)
    assert sum(gap.kind in HDFS_PLACES for gap in found.gaps) == len(found.hdfs), "discovery knows of no step"
    gaps = {gap.evidence: gap for gap in inventory_gaps(world) if gap.kind != GapKind.HDFS_UNREAD}
    return {
        evidence.removeprefix(hdfs.uri): gap.id.removeprefix("gap-").rpartition("-127")[0]
        for evidence, gap in gaps.items()
        if root in evidence
    }


def test_tables_and_folders_are_found_and_read(hdfs: Hdfs, tmp_path: Path) -> None:
    root = hdfs.folder()
    own = "hudi/.hoodie/metadata/.hoodie/x"  # a table of the table's own
    for path in ("delta/_delta_log/0.json", own, "ice/metadata/v1.metadata.json", "bare/day=1/b.csv"):
        hdfs.put(joined(root, path), b"{}")
    for path in ("delta/a.csv", "hudi/p/a.csv", "ice/data/a.csv", "bare/day=1/a.csv", "bare/_temporary/0/a.csv"):
        hdfs.put(joined(root, path), ROW)
    hdfs.put(joined(root, "others/a.csv"), OTHER)
    found, _ = looked(hdfs, root, tmp_path)
    formats = {p.location.path.rpartition("/")[2]: p.format and p.format.value for p in found.hdfs}
    assert "metadata" not in formats
    assert {name: formats[name] for name in ("delta", "hudi", "ice", "bare")} == {
        "delta": "delta",
        "hudi": "hudi",
        "ice": "iceberg",
        "bare": None,
    }
    assert states(hdfs, root, tmp_path) == {
        f"{root}/delta": "hdfs_place-person",
        f"{root}/hudi": "hdfs_place-person",
        f"{root}/ice": "hdfs_place-person",
        f"{root}/bare": "hdfs_place-person",  # two files without a column in common
        f"{root}/bare/_temporary": f"{GapKind.HDFS_TEMPORARY.value}-person",
    }


def test_a_deleted_person_stays_in_snapshots_and_in_the_trash(hdfs: Hdfs, tmp_path: Path) -> None:
    above = hdfs.folder()
    root = f"{above}/lake"
    hdfs.put(f"{root}/a.csv", ROW)
    hdfs.put(f"{root}/b.csv", OTHER)
    hdfs.ask(above, "ALLOWSNAPSHOT")
    hdfs.ask(above, "CREATESNAPSHOT", snapshotname="s1")
    hdfs.ask(f"/user/ann/.Trash/Current{root}", "MKDIRS")
    hdfs.put(f"/user/ann/.Trash/Current{root}/c.csv", ROW)
    hdfs.client().delete(f"{root}/a.csv")
    found, seen = looked(hdfs, root, tmp_path)
    assert (GapKind.HDFS_TRASH, f"{hdfs.uri}/user/ann/.Trash") in {(gap.kind, gap.evidence) for gap in found.gaps}
    assert seen[f"{hdfs.uri}{root}"].holders == 0, "a plain delete leaves nothing in sight"
    assert seen[f"{hdfs.uri}{above}/.snapshot/s1"].holders == 1
    assert seen[f"{hdfs.uri}/user/ann/.Trash"].holders == 1
    assert states(hdfs, above, tmp_path)[f"{above}/.snapshot/s1"] == f"{GapKind.HDFS_SNAPSHOT.value}-person"
    hdfs.ask(above, "DELETESNAPSHOT", method="DELETE", snapshotname="s1")
    hdfs.client().delete(f"/user/ann/.Trash/Current{root}/c.csv")
    assert states(hdfs, root, tmp_path) == {}


def test_what_cannot_be_listed_or_read_is_never_clean(hdfs: Hdfs, tmp_path: Path) -> None:
    root = hdfs.folder()
    hdfs.put(f"{root}/open/a.csv", OTHER)
    hdfs.put(f"{root}/shut/a.csv", ROW)
    hdfs.put(f"{root}/dark/a.csv", ROW)
    hdfs.ask(f"{root}/dark/a.csv", "SETPERMISSION", permission="600")
    hdfs.ask(f"{root}/shut", "SETPERMISSION", permission="700")
    one = estate(hdfs, root, user="somebody")
    found = discover(one, tmp_path)
    unread = {g.evidence.removeprefix(hdfs.uri): g.reason for g in found.gaps if g.kind == GapKind.HDFS_UNREAD}
    assert "AccessControlException" in unread[f"{root}/shut"]
    assert "right" in unread[f"{root}/shut"]
    seen = search_hdfs(found, one, PATTERNS, False, lambda _: None)
    [gap] = [hdfs_gap(g, seen[g.evidence]) for g in found.gaps if g.evidence.endswith(f"{root}/dark")]
    assert "-unread-" in gap.id
    assert f"{root}/dark/a.csv" in gap.evidence


def test_a_file_that_is_being_written_is_unread(hdfs: Hdfs, tmp_path: Path) -> None:
    root = hdfs.folder()
    with hdfs.writing(f"{root}/a.csv", OTHER):
        seen = looked(hdfs, root, tmp_path)[1][f"{hdfs.uri}{root}"]
    assert [why for why in seen.unread if f"{root}/a.csv" in why and "recoverLease" in why]
    assert not seen.hashes.unread, "nobody has its bytes, and it is not the empty file"


@pytest.mark.parametrize("webhdfs", ["http://127.0.0.1:1", None])
def test_a_root_without_an_answer_is_a_gap(hdfs: Hdfs, tmp_path: Path, webhdfs: str | None) -> None:
    found = discover(estate(hdfs, "/nowhere", webhdfs=webhdfs), tmp_path)
    kinds = {gap.kind for gap in found.gaps if gap.evidence == f"{hdfs.uri}/nowhere"}
    assert kinds & {GapKind.MISSING_ROOT, GapKind.HDFS_UNREAD}


def test_an_undeclared_name_node_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not declare"):
        estate(Hdfs("hdfs://nn:8020", "http://nn:9870"), "/a").model_copy().model_validate(
            {
                "version": 1,
                "estate": "e",
                "environment": "local",
                "catalogs": {},
                "roots": ["hdfs://other/a"],
                "lineage": {},
                "subjects": [{"name": "c", "source": "s", "key": "id"}],
            }
        )


def test_places_of_hdfs_are_no_places_of_this_machine(tmp_path: Path) -> None:
    assert EstatePaths(estate(Hdfs("hdfs://nn:8020", "http://nn:9870"), "/a"), tmp_path).roots == ()


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        ({"namespacequota": "3"}, "leaves 0 more names, and to write files there again needs 1 name"),
        ({"storagespacequota": str(20 << 20)}, f"needs {128 << 20:,} bytes for all replicas"),
        ({"namespacequota": "1000", "storagespacequota": str(1 << 40)}, None),
    ],
    ids=["names", "bytes", "room"],
)
def test_a_quota_without_room_for_a_rewrite_is_told_at_planning(
    hdfs: Hdfs, tmp_path: Path, quota: dict[str, str], told: str | None
) -> None:
    """HDFS refuses a new block where a whole one does not fit, however few bytes it gets."""
    above = hdfs.folder()
    root = f"{above}/lake"
    hdfs.put(f"{root}/a.csv", ROW)
    hdfs.ask(above, "SETQUOTA", **quota)
    found, seen = looked(hdfs, root, tmp_path)
    [place] = [p for p in found.hdfs if p.location.path == root]
    why = untreated(place, seen[str(place.location)])
    if told is None:
        assert why is None
        hdfs.put(f"{root}/b.csv", OTHER)
        return
    assert why is not None
    assert f"the quota of {above}" in why
    assert told in why
    with pytest.raises(StoreError, match="QuotaExceeded"):
        hdfs.put(f"{root}/b.csv", OTHER)


def test_a_connection_that_is_lost_is_no_folder_without_a_quota() -> None:
    gone = WebHdfs("hdfs://ns", NameNodes(("http://127.0.0.1:9",), ""), "lake")
    file = HdfsRead("/lake/a.csv", 1, 1, 1, "", holds=True)
    why = crowded(gone, [file], partial(room_in, gone), by_engine=False)
    assert why is not None
    assert "it is not known whether a quota has room" in why


def test_a_file_below_several_quotas_is_looked_at_once(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    above, asked = hdfs.folder(), list[str]()
    hdfs.put(f"{above}/lake/a.csv", ROW)
    for folder in (above, f"{above}/lake"):
        hdfs.ask(folder, "SETQUOTA", namespacequota="1000")
    rights = WebHdfs.rights
    monkeypatch.setattr(WebHdfs, "rights", lambda self, path: asked.append(path) or rights(self, path))
    client = WebHdfs(hdfs.uri, NameNodes((hdfs.webhdfs,), ""), SUPERUSER)
    file = HdfsRead(f"{above}/lake/a.csv", len(ROW), 1, 1, "", holds=True)
    assert crowded(client, [file], partial(room_in, client), by_engine=False) is None
    assert asked == [file.path]


def test_a_folder_without_the_person_needs_no_room(hdfs: Hdfs, tmp_path: Path) -> None:
    root = hdfs.folder()
    hdfs.put(f"{root}/a.csv", OTHER)
    hdfs.ask(root, "SETQUOTA", namespacequota="2")
    found, seen = looked(hdfs, root, tmp_path)
    [place] = [p for p in found.hdfs if p.location.path == root]
    assert untreated(place, seen[str(place.location)]) is None


def test_a_folder_with_a_policy_of_erasure_coding_is_a_gap(hdfs: Hdfs, tmp_path: Path) -> None:
    """Its files may be older than the policy; whatever is written there again would be coded."""
    root = hdfs.folder()
    for folder in ("older", "inner/deep"):
        hdfs.put(f"{root}/{folder}/a.csv", ROW)
    hdfs.ask("/", "ENABLEECPOLICY", ecpolicy="XOR-2-1-1024k")
    for folder in ("older", "inner/deep"):
        hdfs.ask(f"{root}/{folder}", "SETECPOLICY", ecpolicy="XOR-2-1-1024k")
    found, seen = looked(hdfs, root, tmp_path)
    places = {p.location.path: p for p in found.hdfs}
    for folder in ("older", "inner/deep"):
        place = places[f"{root}/{folder}"]
        assert place.striped
        assert untreated(place, seen[str(place.location)]) == (
            "no step rewrites or deletes encrypted or erasure-coded files"
        )
    told = {gap.evidence: gap.reason for gap in found.gaps}
    assert "it is erasure-coded" in told[f"{hdfs.uri}{root}/older"]
