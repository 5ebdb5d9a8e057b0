"""`kept`: what keeps an object alive, until when, and what would let it go."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.model.canonical_json import iso
from tests.lakefs.running import cli
from tests.lakefs.shop import NOW, PREFIX, Shop


def asked(shop: Shop, capsys: pytest.CaptureFixture[str], path: str, *words: str) -> list[dict[str, Any]]:
    shop.write()
    assert cli(shop, "kept", "shop", path, "--as-of", NOW.isoformat(), "--format", "json", *words) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["objects"]
    return found


def test_what_keeps_an_object_and_until_when(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = asked(shop, capsys, PREFIX + "users-4.csv")
    head = {"why": "head", "branch": "dev", "commit": shop.commits["dev"], "until": None}
    assert (found["commits"], found["free_from"], found["kept_by"]) == (1, None, [head])
    assert found["to_let_go"]["delete_on"] == ["dev"]
    assert found["to_let_go"]["days"] == {"dev": 0}
    lost = {
        "why": "dangling",
        "branch": None,
        "commit": shop.commits["gone"],
        "until": iso(NOW + timedelta(days=60 - 15)),
    }
    by_address = {o["address"]: o for o in asked(shop, capsys, PREFIX + "users-1.csv")}
    address = shop.repo.commits[shop.commits["gone"]]["tree"][PREFIX + "users-1.csv"]["physical_address"]
    assert by_address[address]["kept_by"] == [lost]
    assert by_address[address]["free_from"] == lost["until"]
    assert by_address[address]["to_let_go"]["default_days"] == 15
    assert len(by_address) == 3


def test_more_time_costs_less_history(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    later = ("--by", (NOW + timedelta(days=20)).isoformat())
    (found,) = asked(shop, capsys, PREFIX + "users-4.csv", *later)
    assert found["to_let_go"]["days"] == {"dev": 20}
    assert found["to_let_go"]["free_from"] == iso(NOW + timedelta(days=20))


def test_people_read_it_too_and_wrong_names_are_told(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.repo.rules = None
    shop.write()
    assert cli(shop, "kept", "lake/shop", PREFIX + "users-4.csv") == 0
    told = capsys.readouterr().out
    assert "stays as long as nothing is changed" in told
    assert "the repository has no rules" in told
    assert cli(shop, "kept", "other", "x") == 2
    assert cli(shop, "kept", "shop", "nothing/there") == 2
