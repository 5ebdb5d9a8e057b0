"""A run on the strict stand-in: what the naive way leaves, what stops it, and what a killed one leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lake.stores.azure import store
from pii_tracer.lake.stores.azure.client import patiently
from tests.azure.blob_service import BlobService
from tests.azure.shop import Shop
from tests.hdfs.running import Killed
from tests.hdfs.shop import MAIL, OTHERS, PERSON, csv


def test_a_plain_overwrite_and_a_plain_delete_leave_the_person(azure: BlobService, tmp_path: Path) -> None:
    for settings in ({"versioning": True}, {"versioning": False, "soft_delete_days": 7}):
        shop = Shop.on(azure, tmp_path, **settings)
        shop.put("a/x.csv", csv(PERSON))
        shop.put("a/x.csv", csv(OTHERS[0]))
        shop.put("a/y.csv", csv(PERSON))
        shop.drop("a/y.csv")
        assert [MAIL.encode() in data for data in shop.kept()] == [True, True], settings
    shop = Shop.on(azure, tmp_path, versioning=False, soft_delete_days=0)
    shop.put("a/x.csv", csv(PERSON))
    shop.snapshot("a/x.csv")
    shop.put("a/x.csv", csv(OTHERS[0]))
    assert [MAIL.encode() in data for data in shop.kept()] == [True], "a snapshot outlives what it was taken of"


@pytest.mark.parametrize("moment", [1, 2, 3, 4])
def test_a_run_that_is_killed_anywhere_is_taken_up_again(
    moment: int, azure: BlobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, done = Shop.on(azure, tmp_path, versioning=True), 0
    for n in range(2):
        shop.export("a", f"{n}.csv", csv(OTHERS[n], PERSON))
    assert shop.plan()[0] == 0
    shop.approve()

    def counted(ask: Callable[[], Any]) -> Any:
        nonlocal done
        answer, done = patiently(ask), done + 1
        if done == moment:
            raise Killed
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(store, "patiently", counted)
        with pytest.raises(Killed):
            shop.apply()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert result["bystander_rows_lost"] == 0
    assert [shop.read(f"a/{n}.csv") for n in range(2)] == [csv(OTHERS[0]), csv(OTHERS[1])]
    assert shop.kept() == []


def test_who_writes_between_the_look_and_the_write_keeps_what_they_wrote(
    azure: BlobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.on(azure, tmp_path)
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == 0
    shop.approve()

    def between(ask: Callable[[], Any]) -> Any:
        shop.put("a/x.csv", csv(OTHERS[3]))
        return patiently(ask)

    monkeypatch.setattr(store, "patiently", between)
    code, result = shop.apply()
    assert code != 0
    assert result["state"] != "complete"
    assert shop.read("a/x.csv") == csv(OTHERS[3])
