"""Keys of several columns in a repository: her rows leave every commit, and her namesake's of another tenant stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kits.tenants_kit import ASHA, BY_KEY, MAIL, OTHERS, SUBJECT, WRITERS, Row, as_parquet
from tests.lakefs.running import cli
from tests.lakefs.shop import KEY_PAIR, PREFIX, Shop
from tests.lakefs.standin_api import serving
from tests.lakefs.test_whole_path import HELD, _run
from tests.leaks import Person, leaks

CSV = WRITERS["csv"]


@dataclass
class Tenants(Shop):
    """A shop whose users are known by tenant and number."""

    def write(self, holds: Any = (), **more: Any) -> None:
        super().write(holds, **more)
        (self.base / "tables" / "users" / "part-0.parquet").write_bytes(as_parquet(ASHA, *OTHERS[:2]))
        key = {"subject": {"type": "user", "key": {"tenant": "north", "uid": "7"}}}
        for name, changed in (("pii-tracer", {"subjects": [SUBJECT]}), ("request", key)):
            file = self.base / f"{name}.yaml"
            file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changed))

    def put(self, path: str, *rows: Row, branch: str = "main") -> None:
        self.lakefs.put(self.repo, branch, path, CSV(*rows))

    def stored(self) -> list[bytes]:
        """Everything in the storage, whoever names it."""
        return sorted(self.lakefs.everything(self.repo).values())


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenants]:
    """A branch, and an older commit, that have her by the key alone; an object with nobody but others."""
    for name, value in KEY_PAIR.items():
        monkeypatch.setenv(name, value)
    root, base, now = tmp_path / "store", tmp_path / "estate", datetime.now(timezone.utc)
    root.mkdir()
    base.mkdir()
    with serving(root, now) as lakefs:
        shop = Tenants(lakefs, lakefs.repository("shop"), base, root, now)
        shop.at(-9)
        shop.put(PREFIX + "a.csv", BY_KEY, *OTHERS)
        shop.put(PREFIX + "b.csv", BY_KEY)
        shop.put(PREFIX + "c.csv", *OTHERS)
        lakefs.commit(shop.repo, "main")
        lakefs.branch(shop.repo, "dev", "main")
        shop.at(-6)
        lakefs.delete(shop.repo, "main", PREFIX + "b.csv")
        lakefs.commit(shop.repo, "main")
        shop.repo.rules = {"default_retention_days": 60, "branches": []}
        shop.at(0)
        yield shop
        assert lakefs.violations == []


def planned(shop: Tenants) -> dict[str, Any]:
    out = shop.base / "p.plan.json"
    cli(shop, "plan", str(shop.base / "request.yaml"), "--out", str(out))
    return dict(json.loads(out.read_text()))


def test_one_person_leaves_every_commit_and_her_namesake_stays(shop: Tenants) -> None:
    shop.write(holds=[HELD | {"datasets": ["shop.users"]}])
    done = _run(shop)
    assert [gap["id"] for gap in done.plan["gaps"]] == []
    assert done.codes == {"plan": 0, "approve": 0, "apply": 8, "apply again": 0, "verify": 0}
    assert (done.result["state"], done.result["residue"], done.result["unverified"]) == ("complete", [], [])
    assert (done.result["bystander_rows_lost"], done.result["rows_erased"]) == (0, 3)
    tables = [data for data in shop.stored() if data.startswith(b"tenant,")]
    assert {data for data in tables if data != CSV()} == {CSV(*OTHERS)}
    for branch in ("main", "dev"):
        tree = shop.repo.tree(branch)
        assert shop.lakefs.bytes_of(tree[PREFIX + "a.csv"]) == CSV(*OTHERS)
        assert shop.lakefs.bytes_of(tree[PREFIX + "c.csv"]) == CSV(*OTHERS)
    assert leaks(Person((MAIL,)), [shop.base / "state"]) == []


@pytest.mark.parametrize(
    ("path", "data", "kind"),
    [("notes.txt", b"nothing of anybody", "key_of_several"), (PREFIX + "d.csv", b"uid,mail\n7,\n", "cannot_be_proved")],
)
def test_what_cannot_be_compared_is_a_gap(shop: Tenants, path: str, data: bytes, kind: str) -> None:
    """An object that is not declared to hold rows of the table, and one that lacks the tenant."""
    shop.lakefs.put(shop.repo, "main", path, data)
    shop.lakefs.commit(shop.repo, "main")
    shop.write(holds=[HELD])
    made = planned(shop)
    assert [gap["kind"] for gap in made["gaps"]] == [kind]


def test_rows_of_hers_that_no_commit_names_are_found(shop: Tenants) -> None:
    """A file in the storage that lakeFS does not know, as a broken upload leaves it."""
    place = next(path for path in shop.root.rglob("*") if path.is_file() and path.read_bytes() == CSV(BY_KEY, *OTHERS))
    place.with_name("lost").write_bytes(CSV(BY_KEY))
    place.with_name("others").write_bytes(CSV(*OTHERS))
    shop.write(holds=[HELD])
    made = planned(shop)
    copy = next(copy for copy in made["copies"] if copy["location"].startswith("lakefs://"))
    assert copy["found"]["files_with_person"] == 3
