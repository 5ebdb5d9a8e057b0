"""A reading of an estate in HDFS, whose files it does not search: it does not know, and says so once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.hdfs.shop import OTHERS, PERSON, Shop, csv
from tests.hdfs.tables import delta
from tests.hdfssupport import Hdfs

LAWS = {"laws": ["GDPR"]}


def test_what_only_a_search_tells_is_unknown(hdfs: Hdfs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    delta(shop, "calls", [*OTHERS, PERSON])
    shop.export("out", "a.csv", csv(PERSON, *OTHERS))
    called = {"name": "shop.calls", "format": "delta", "location": f"{hdfs.uri}{shop.root}/calls"}
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    catalogs = {"spark_catalog": {"type": "declared", "tables": [users, called]}}
    shop.write(holds=[], catalogs=catalogs, readiness=LAWS)
    assert shop.cli("readiness") == ExitCode.INCOMPLETE
    told = capsys.readouterr().out
    assert told.startswith("unknown: only the search of a plan shows whether 2 places would keep a plan incomplete")
    assert told.count("the place was not searched") == 2, "once for each place"
    assert "next: make a plan for a person" in told
    shop.cli("readiness", "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert (found["ready"], found["answer"]) == (False, "unknown")
    assert [(one["level"], one["gap"]) for one in found["findings"] if one["kind"] == "gap"] == [
        ("unknown", "hdfs_place")
    ] * 2
    shop.write(holds=[], catalogs=catalogs, readiness=LAWS, roots=["tables", "gone", f"{hdfs.uri}{shop.root}"])
    shop.cli("readiness")
    assert capsys.readouterr().out.startswith("no: 1 finding ")
