"""An HDFS that lineage and metadata name as it was called before: one place with the one of now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hdfs.shop import OTHERS, PERSON, REFILLS, Shop, csv
from tests.hdfssupport import Hdfs

OLD = "hdfs://old.example:8020"


class Renamed(Shop):
    """Its lineage has the older name."""

    def _dataset(self, folder: str) -> dict[str, str]:
        return {"namespace": OLD, "name": f"{self.root}/{folder}"}


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Renamed:
    shop = Renamed(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    return shop


def test_lineage_by_the_older_name_leads_to_the_folder(shop: Renamed) -> None:
    assert shop.gaps() != []
    shop.name_node = {"also": [OLD]}
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert [step["action"] for step in plan["steps"] if step["action"] == "hdfs_rewrite"] == ["hdfs_rewrite"]


def test_a_file_that_metadata_names_by_the_older_name_is_not_written_again(shop: Renamed) -> None:
    shop.name_node = {"also": [OLD]}
    add = {"add": {"path": f"{OLD}{shop.root}/csv/a.csv", "size": 1, "dataChange": True}}
    shop.put(f"clone/_delta_log/{0:020}.json", json.dumps(add).encode())
    gaps = {
        gap["dataset"]["name"].rpartition("/")[2]: gap["reason"] for gap in shop.plan()[1]["gaps"] if gap["dataset"]
    }
    assert "the metadata of a table references files" in gaps["csv"]
