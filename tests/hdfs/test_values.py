"""`verify --values` in a real HDFS: an auditor's own search, in snapshots and in the trash, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hdfs.shop import MAIL, OTHERS, PERSON, Shop, csv, parquet
from tests.hdfssupport import Hdfs


def test_the_estate_or_a_place_is_searched(hdfs: Hdfs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    shop.write()
    (tmp_path / "tables" / "users" / "part-0.parquet").write_bytes(parquet(*OTHERS))
    (tmp_path / "values.txt").write_text(f"{MAIL}\n")

    def look(*words: str) -> tuple[int, Any]:
        code = shop.cli("verify", "--values", str(tmp_path / "values.txt"), *words, "--format", "json")
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    path = shop.put("a/x.csv", csv(PERSON))
    hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="s1")
    hdfs.put(f"/user/eve/.Trash/Current{shop.root}/x.csv", csv(PERSON))
    hdfs.client().delete(path)
    shop.put("a/x.csv", csv(*OTHERS))
    code, told = look()
    assert code == 9
    assert sorted(item["file"].rpartition("/")[0] for item in told["residue"]) == [
        f"{shop.root}/.snapshot/s1/a".lstrip("/"),
        f"user/eve/.Trash/Current{shop.root}",
    ]
    assert look("--in", f"{hdfs.uri}{shop.root}/a")[0] == 0
    assert look("--in", f"{hdfs.uri}{shop.root}/.snapshot/s1")[0] == 9
    for nothing in ("nowhere", "a/x.csv"):
        assert look("--in", f"{hdfs.uri}{shop.root}/{nothing}")[0] == 7
    hdfs.ask(shop.root, "DELETESNAPSHOT", method="DELETE", snapshotname="s1")
    shop.no_trash()
    assert look()[0] == 0
