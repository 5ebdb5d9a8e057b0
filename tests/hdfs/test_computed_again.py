"""Aggregates in HDFS that their owner computes again: a file is known by its id, under any name."""

from __future__ import annotations

from pii_tracer.verify.verdicts import ComputedAgain
from tests.hdfssupport import Hdfs
from tests.verify.test_computed_again import counts, estate, looked, noted, old


def test_a_file_is_known_by_its_id(hdfs: Hdfs) -> None:
    root = f"{hdfs.folder()}/counts"
    told, copy = estate(hdfs=[hdfs.declared]), counts(f"{hdfs.uri}{root}")
    for name in ("1.csv", "2.csv"):
        hdfs.put(f"{root}/{name}", b"people\n3\n")
    before = noted(copy, told)
    assert old(looked(copy, before, told)) == ["1.csv", "2.csv"]
    hdfs.ask(f"{root}/1.csv", "DELETE", method="DELETE")
    hdfs.put(f"{root}/1.csv", b"people\n2\n")
    hdfs.ask(f"{root}/2.csv", "RENAME", destination=f"{root}/3.csv")
    assert old(looked(copy, before, told)) == ["3.csv"]
    hdfs.ask(f"{root}/3.csv", "DELETE", method="DELETE")
    seen = looked(copy, before, told)
    assert (seen.residue, seen.unverified) == ((), ())
    assert seen.again == ComputedAgain(before=2, after=1)
    hdfs.ask(root, "DELETE", method="DELETE", recursive="true")
    assert looked(copy, before, told).clean, "all of it is gone"
