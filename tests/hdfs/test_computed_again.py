"""Aggregates in HDFS that their owner computes again: a file is known by its id, under any name."""

from __future__ import annotations

import urllib.request
from datetime import timedelta

from pii_tracer.verify.verdicts import ComputedAgain
from tests.hdfssupport import Hdfs
from tests.verify.test_computed_again import BEGAN, counts, estate, looked, noted, old


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


def test_an_old_file_that_was_touched_or_appended_to_is_left(hdfs: Hdfs) -> None:
    root = f"{hdfs.folder()}/counts"
    told, copy = estate(hdfs=[hdfs.declared]), counts(f"{hdfs.uri}{root}")
    for name in ("1.csv", "2.csv", "3.csv"):
        hdfs.put(f"{root}/{name}", f"people\n{name}\n".encode())
    before = noted(copy, told)
    hdfs.ask(f"{root}/3.csv", "TRUNCATE", method="POST", newlength="0")
    late = str(int((BEGAN + timedelta(minutes=9)).timestamp() * 1000))
    hdfs.ask(f"{root}/1.csv", "SETTIMES", modificationtime=late)
    for name in ("2.csv", "3.csv"):
        place = str(hdfs.ask(f"{root}/{name}", "APPEND", method="POST", noredirect="true")["Location"])
        with urllib.request.urlopen(urllib.request.Request(place, data=b"7\n", method="POST"), timeout=60):
            pass
    assert old(looked(copy, before, told)) == ["1.csv", "2.csv", "3.csv"], "the last one has other bytes, and its id"


def test_an_old_file_that_was_copied_is_left(hdfs: Hdfs) -> None:
    root = f"{hdfs.folder()}/counts"
    told, copy = estate(hdfs=[hdfs.declared]), counts(f"{hdfs.uri}{root}")
    hdfs.put(f"{root}/1.csv", b"people\n3\n")
    before = noted(copy, told)
    hdfs.ask(f"{root}/1.csv", "DELETE", method="DELETE")
    hdfs.put(f"{root}/2.csv", b"people\n3\n")
    assert old(looked(copy, before, told)) == ["2.csv"], "it has another id and the same bytes"


def test_an_old_file_in_the_trash_is_left(hdfs: Hdfs) -> None:
    above = hdfs.folder()
    root, trash = f"{above}/counts", f"{above}/.Trash/lake/Current{above}/counts"
    told, copy = estate(hdfs=[hdfs.declared]), counts(f"{hdfs.uri}{root}")
    hdfs.put(f"{root}/1.csv", b"people\n3\n")
    before = noted(copy, told)
    hdfs.put(f"{trash}/0.csv", b"people\n9\n")
    hdfs.ask(f"{root}/1.csv", "RENAME", destination=f"{trash}/1.csv")
    hdfs.put(f"{root}/1.csv", b"people\n2\n")
    assert old(looked(copy, before, told)) == [f"{trash}/1.csv"]
    hdfs.ask(root, "DELETE", method="DELETE", recursive="true")
    assert old(looked(copy, before, told)) == [f"{trash}/1.csv"], "the folder is gone, and its old file is not"
    hdfs.ask(f"{above}/.Trash", "DELETE", method="DELETE", recursive="true")
    assert looked(copy, before, told).clean
