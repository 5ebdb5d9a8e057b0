"""`verify --values` in a real HDFS: an auditor's own search, in snapshots and in the trash, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hdfs.shop import MAIL, OTHERS, PERSON, Shop, csv, parquet
from tests.hdfs.test_hive_tables import SPARK_CSV, at, named
from tests.hdfssupport import Hdfs
from tests.hivesupport import TEXT, serving


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


@pytest.mark.slow
def test_values_are_found_by_the_signs_of_their_table(
    hdfs: Hdfs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes have the value's letters with the escape sign of the table between them."""
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    (tmp_path / "values.txt").write_text('M"4410027\n')
    shop.export("letters", "000000_0", b'uid;said\n"M^"4410027";"dear"\n"M^"441";"dear"\n')
    shop.export("others", "000000_0", b'uid;said\n"M^"441";"dear"\n')
    (tmp_path / "hive").mkdir()
    with serving(tmp_path / "hive") as hive, hive.database("core"):
        signs: dict[str, Any] = {"options": {"sep": ";", "escape": "^", "header": "true"}, "parameters": SPARK_CSV}
        for folder in ("letters", "others"):
            columns = {"uid": "string", "said": "string"}
            hive.table(f"core.{folder}", at(shop, folder), TEXT, columns=columns, **signs)
        shop.write(**named(shop, hive))
        found = {}
        for folder in ("letters", "others"):
            words = ["--values", str(tmp_path / "values.txt"), "--in", f"{hdfs.uri}{shop.root}/{folder}"]
            found[folder] = shop.cli("verify", *words, "--format", "json")
            told = json.loads(capsys.readouterr().out)
            assert len(told["residue"]) == (1 if folder == "letters" else 0)
    assert found == {"letters": 9, "others": 0}
