"""CSV by declared options, and JSON documents, in Cloud Storage: found, planned, erased and verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.hdfs.shop import REFILLS
from tests.leaks import Person, leaks

pytestmark = pytest.mark.slow

USER, MAIL = "M'4410027", "zq.person@example.net"
OTHERS = b"#M'1\n'a\n'';b';'c'\n"
HERS = b"'M''4410027';'x\ny'\n"
VISITS = {
    "name": "prod.visits",
    "format": "csv",
    "location": f"gs://{BUCKET}/visits",
    "options": {"sep": ";", "quote": "'", "escape": "'", "comment": "#", "multiLine": True},
    "columns": [{"name": "uid"}, {"name": "note"}],
}
OTHER = {"uid": "M'44100271", "mail": None, "n": 1.5}


def test_the_person_leaves_declared_csv_and_documents_of_json(gcs: Gcs, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.user = USER
    shop.export("visits", "part-0", OTHERS + HERS + OTHERS)
    shop.export("visits", "part-1", OTHERS)
    shop.export("cards", "a.json", json.dumps([OTHER, {"uid": USER, "mail": MAIL, "n": 2}, OTHER], indent=2).encode())
    shop.export("cards", "b.json", json.dumps({"uid": USER, "mail": MAIL, "n": 2}, indent=1).encode())
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    code, plan = shop.plan(catalogs={"spark_catalog": {"type": "declared", "tables": [users, VISITS]}})
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert {copy["table"] or copy["location"]: copy["strategy"] for copy in plan["copies"]} == {
        "shop.users": "exempt",
        "prod.visits": "delete_by_key",
        f"gs://{BUCKET}/cards": "delete_by_key",
    }
    assert not [value for value in (USER, "4410027", MAIL) if value in shop.plan_file.read_text()]
    shop.approve()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (3, 0)
    assert [shop.read(f"visits/part-{n}") for n in (0, 1)] == [OTHERS + OTHERS, OTHERS]
    assert [shop.read(f"cards/{name}.json") for name in "ab"] == [json.dumps([OTHER, OTHER], indent=2).encode(), b"[]"]
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    shop.put("visits/part-2", HERS)
    assert shop.verify() == ExitCode.RESIDUE
