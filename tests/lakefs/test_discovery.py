"""What discovery tells of a lakeFS repository, and that it never takes a part for the whole."""

from __future__ import annotations

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.lakefs.repository_discovery import discover_lakefs, repository_state
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.model.errors import EstateError
from tests.lakefs.shop import PERSON, PREFIX, Shop, csv, estate_data
from tests.lakefs.standin import Lakefs


def found(shop: Shop, estate: Estate | None = None) -> LakefsState:
    ((state,), gaps) = discover_lakefs(estate or shop.estate(), shop.base)
    assert gaps == ()
    return state


def gap(shop: Shop, estate: Estate | None = None) -> InventoryGap:
    (states, (gap,)) = discover_lakefs(estate or shop.estate(), shop.base)
    assert states == ()
    assert gap.kind == "lakefs_repository"
    return gap


def test_everything_that_any_commit_names_is_found(shop: Shop) -> None:
    state = found(shop)
    assert state.location == "lakefs://lake/shop"
    assert {b.name: b.head for b in state.branches} == shop.repo.heads
    assert state.tags == {"v1": shop.commits["free"]}
    # the commit of the deleted branch is in no log: only lakeFS's list of active commits tells of it
    assert {c.id for c in state.commits} == set(shop.repo.commits)
    assert state.dangling is None
    assert {c.id: c.parent for c in state.commits}[shop.commits["gone"]] == shop.commits["first"]
    assert {o.address for o in state.objects} == set(shop.lakefs.everything(shop.repo))
    assert state.stray == ()
    assert state.rules is not None
    assert state.rules.told() == "default 60, dev 90"
    persons = frozenset(shop.addresses(PERSON))
    assert state.holding(persons) == {shop.commits[n] for n in ("first", "second", "third", "dev", "gone")}
    # pages are three entries long: none of the listings came in one piece
    assert sum("after" in call.query for call in shop.lakefs.calls) > 5


def test_the_list_of_active_commits_also_comes_by_a_presigned_url(shop: Shop) -> None:
    shop.lakefs.presign = True
    data = estate_data(shop.lakefs.url, str(shop.root))
    del data["lakefs"][0]["local_root"]
    state = found(shop, Estate.model_validate(data))
    assert state.dangling is None
    assert shop.commits["gone"] in {c.id for c in state.commits}
    assert state.stray is None


def test_lost_commits_that_cannot_be_listed_are_said(shop: Shop) -> None:
    data = estate_data(shop.lakefs.url, str(shop.root))
    del data["lakefs"][0]["local_root"]
    assert "in a storage that this machine cannot read" in (found(shop, Estate.model_validate(data)).dangling or "")
    shop.lakefs.faults = lambda method, path: 403 if path.endswith("prepare_commits") else None
    assert "no right to prepare" in (found(shop).dangling or "")
    shop.lakefs.faults = lambda method, path: None
    shop.repo.rules = None
    state = found(shop)
    assert state.rules is None
    assert state.dangling == "the repository has no rules"
    # what only the lost commit names lies in the storage all the same
    lost = shop.repo.commits[shop.commits["gone"]]["tree"][PREFIX + "users-1.csv"]["physical_address"]
    assert state.stray == (lost,)


def test_what_is_staged_and_what_is_protected(shop: Shop) -> None:
    staged = shop.lakefs.put(shop.repo, "dev", PREFIX + "new.csv", csv(PERSON))
    shop.lakefs.delete(shop.repo, "dev", "notes.txt")
    shop.repo.protected = ["ma*"]
    branches = {b.name: b for b in found(shop).branches}
    assert branches["dev"].staged == {PREFIX + "new.csv": staged["physical_address"], "notes.txt": None}
    assert [b for b in branches if branches[b].protected] == ["main"]
    assert branches["main"].staged == {}


def test_an_object_of_a_commit_that_expired_is_still_named(shop: Shop) -> None:
    shop.repo.rules = {"default_retention_days": 0, "branches": []}
    shop.lakefs.collect(shop.repo)
    state = found(shop)
    assert shop.commits["gone"] not in {c.id for c in state.commits}
    # third names them, and main's head is third
    assert shop.addresses(PERSON) <= {o.address for o in state.objects}


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_refusal_is_a_gap(shop: Shop, status: int) -> None:
    shop.lakefs.faults = lambda method, path: status if path.endswith("/branches") else None
    assert gap(shop).evidence == f"lakeFS refused: HTTP {status}"


@pytest.mark.parametrize("fault", ["cut", "odd"])
@pytest.mark.parametrize("call", ["/objects/ls", "/commits", "/branches", "/gc_rules", "/prepare_commits", "/shop"])
def test_half_an_answer_is_no_answer(shop: Shop, fault: str, call: str) -> None:
    shop.lakefs.faults = lambda method, path: fault if path.endswith(call) else None
    assert "example.net" not in gap(shop).evidence


def test_a_page_that_leads_nowhere_is_not_the_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.lakefs.standin_api._Handler._page", _endless)
    assert "does not follow the lakeFS API" in gap(shop).evidence


def _endless(self: object, items: list[dict[str, str]], key: str, query: dict[str, str]) -> dict[str, object]:
    pagination = {"has_more": True, "next_offset": items[0][key], "results": 1, "max_per_page": 1000}
    return {"pagination": pagination, "results": items[:1]}


def test_wrong_key_pairs_and_missing_ones(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY", "wrong")
    assert gap(shop).evidence == "lakeFS refused: HTTP 401"
    monkeypatch.delenv("LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY")
    assert gap(shop).evidence == "the environment has no key pair for the lakeFS server"


def test_a_server_that_is_away(shop: Shop) -> None:
    data = estate_data("http://127.0.0.1:1", str(shop.root))
    assert "does not answer" in gap(shop, Estate.model_validate(data)).evidence


def test_a_storage_that_is_not_mounted_is_not_taken_for_an_empty_one(shop: Shop) -> None:
    estate = Estate.model_validate(estate_data(shop.lakefs.url, str(shop.root / "elsewhere")))
    server = estate.lakefs[0]
    with pytest.raises(EstateError, match="cannot be read"):
        repository_state(estate, shop.base, server, server.repositories[0])


def test_the_stand_in_notes_what_the_api_does_not_describe(lakefs_alone: Lakefs) -> None:
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(lakefs_alone.url + "/api/v1/repositories/shop/refs/main/objects/ls?wrong=1", timeout=60)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(lakefs_alone.url + "/api/v1/nothing", timeout=60)
    assert len(lakefs_alone.violations) == 2
