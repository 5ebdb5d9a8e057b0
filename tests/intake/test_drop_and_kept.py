"""A consumer's registration in DROP beside what she asked to keep: a person decides which of the two counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pii_tracer.app.intake.drop_lists import Matched, add_drop
from pii_tracer.app.intake.request_states import narrow_request
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Wish, hold_of
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.run_results import CameTo, settle
from pii_tracer.intake.state_changes import begin, plan_them
from pii_tracer.model.errors import ExitCode
from tests.intake.places import NOW, opened, took
from tests.intake.test_drop import USERS, answered, archive, hashed, item
from tests.intake.test_drop import made as drop_shop
from tests.intake.test_states import SAID, called

ASHA = hashed("asha@north.example")
MATCHED, REMOVED = {"Email": [(item(1), ASHA)]}, {"Removed": [(item(1), ASHA, "Email")]}
OWN = frozenset([hold_of("app.orders")])


@pytest.fixture
def shop(tmp_path: Path, database: str | None) -> Settings:
    """Asha asked for her erasure, and later to keep her orders."""
    made = drop_shop(tmp_path, USERS, database)
    took(made, f"id,key,received\nR-1,71234501,{(NOW - timedelta(days=9)).isoformat()}\n")
    keep(made, "R-1", NOW - timedelta(days=8))
    return made


def keep(shop: Settings, name: str, asked: datetime, **wish: tuple[str, ...]) -> None:
    wish = wish or {"keep": ("app.orders",)}
    narrow_request(shop, name, Wish(**wish), by="Meera", reason="her warranties", asked=asked)


def add(shop: Settings, lists: dict[str, list[tuple[str, ...]]], received: datetime = NOW) -> Matched:
    return add_drop(shop, archive(shop.base / "drop.zip", lists), subject="user", received=received)


def erased(shop: Settings, name: str, hours: float = 0, own: frozenset[str] = OWN) -> None:
    """A run erases her; what comes in meanwhile came in already."""
    store, at = opened(shop), NOW + timedelta(hours=hours)
    plan_them(store, [name], f"plan-{name}", at, own, own)
    begin(store, [name], f"plan-{name}", at, own)
    settle(store, f"plan-{name}", lambda _: CameTo(proofs={name: "proof x"}, due=lambda law, at, _=None: at), at)


def test_a_registration_ends_nothing_that_she_keeps_and_is_told(
    shop: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(shop, MATCHED).kept == {"R-1": ("app.orders",)}
    assert list(opened(shop).kept()) == ["R-1"], "nobody knows whether she registered before or after"
    keep(shop, "R-1", NOW - timedelta(days=7), keep=("app.visits",))
    words = ["requests", "add-drop", str(archive(shop.base / "d.zip", {"Phone": [(item(2), hashed("4155559317"))]}))]
    assert called(shop, *words, "--subject", "user", "--received", NOW.isoformat()) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "R-1 still keeps app.orders, app.visits." in told
    assert "`pii-tracer requests narrow R-1 --take-back`" in told
    for name in ("app.orders", "app.visits"):
        assert called(shop, "requests", "narrow", "R-1", "--take-back", name, *SAID) == ExitCode.DONE
    assert opened(shop).kept() == {}, "a person decided it"
    add(shop, REMOVED)
    assert opened(shop).kept() == {}
    assert add(shop, {"Email": [(item(3), ASHA)]}).kept == {}


def test_a_new_registration_of_whom_a_run_erased_keeps_on(shop: Settings) -> None:
    erased(shop, "R-1")
    assert add(shop, MATCHED).kept == {item(1): ("app.orders",)}
    assert opened(shop).find(item(1)).repeats == "R-1"
    keep(shop, item(1), NOW, take_back=("app.orders",))
    assert opened(shop).kept() == {}


@pytest.mark.parametrize("removed", [True, False])
def test_a_registration_of_after_the_run_began_is_asked_for_unless_it_was_removed(
    shop: Settings, removed: bool
) -> None:
    add(shop, MATCHED)
    if removed:
        add(shop, REMOVED)
    erased(shop, "R-1", hours=-1)
    states = {one.id: one.state for one in opened(shop).requests()}
    assert states == {"R-1": RequestState.ERASED} | ({} if removed else {item(1): RequestState.RECEIVED})
    assert list(opened(shop).kept()) == ([] if removed else [item(1)])


def test_she_is_said_to_be_deleted_once_all_is_erased(shop: Settings) -> None:
    add(shop, MATCHED, NOW - timedelta(days=5))
    erased(shop, "R-1")
    assert answered(shop) == {item(1): "2"}
    took(shop, f"id,key,received\nR-9,71234501,{NOW.isoformat()}\n", "again.csv")
    assert answered(shop) == {item(1): "2"}
    erased(shop, "R-9", hours=1, own=frozenset())
    assert answered(shop) == {item(1): "3"}


def test_a_row_that_is_not_taken_is_no_work_item(shop: Settings) -> None:
    took(shop, f"id,key,received\n{item(1)},71234502,{NOW.isoformat()}\n", "other.csv")
    done = add(shop, MATCHED)
    assert (done.matched, done.refused, done.kept, answered(shop)) == (0, 1, {}, {})
