"""Plans over a lakeFS repository, from the command line: what is rewritten, which rules, until when, and the gaps."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.lakefs.running import plan
from tests.lakefs.shop import MAIL, NOW, OTHERS, PERSON, PREFIX, USER, Shop, csv, parquet

IMMEDIATE = ("--retention", "immediate", "--reason", "test")


def lakefs_copy(made: dict[str, Any]) -> dict[str, Any]:
    (copy,) = [c for c in made["copies"] if c["location"].startswith("lakefs://")]
    found: dict[str, Any] = copy
    return found


def steps(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {s["action"]: s for s in made["steps"] if s["copy"] == lakefs_copy(made)["id"]}


def kinds(made: dict[str, Any]) -> set[str]:
    return {g["kind"] for g in made["gaps"]}


def test_every_head_that_holds_the_person_and_every_line_that_keeps_them(shop: Shop) -> None:
    shop.write()
    code, made = plan(shop)
    assert code == 0
    assert made["applyable"]
    copy, found = lakefs_copy(made), steps(made)
    assert copy["strategy"] == "rewrite_branches"
    assert copy["facts"]["branches"] == ["dev", "main"]
    assert list(found) == [
        "lakefs_rewrite",
        "lakefs_set_rules",
        "lakefs_await_collection",
        "lakefs_restore_rules",
        "verify_copy",
    ]
    rewritten = {
        b["branch"]: [o["path"] for o in b["objects"]] for b in found["lakefs_rewrite"]["parameters"]["branches"]
    }
    assert rewritten == {
        "dev": [PREFIX + f"users-{n}.csv" for n in (1, 3, 4)],
        "main": [PREFIX + f"users-{n}.csv" for n in (1, 3)],
    }
    waited = found["lakefs_await_collection"]
    assert {o["address"] for o in waited["parameters"]["objects"]} == shop.addresses(PERSON)
    # the lost commit (15 days old) follows the default; free stands on main's history; all must be over in time
    rules = found["lakefs_set_rules"]["parameters"]
    assert rules["before"] == {"default_days": 60, "branches": {"dev": 90}}
    due = datetime.fromisoformat(made["requests"][0]["deadline"].replace("Z", "+00:00"))
    left = (due - timedelta(days=3) - NOW).days
    assert rules["after"]["branches"] == {"dev": left, "free": left + 1, "main": left}
    assert rules["after"]["default_days"] == left + 15
    assert found["lakefs_set_rules"]["irreversible"]
    assert datetime.fromisoformat(waited["earliest_start"].replace("Z", "+00:00")) >= NOW + timedelta(days=left)
    assert made["totals"]["slack_days"] >= 0
    assert USER not in json.dumps(made)
    assert MAIL not in json.dumps(made)


def test_lower_retention_costs_history_and_says_so(shop: Shop) -> None:
    shop.at(-1.2)
    shop.lakefs.put(shop.repo, "main", "report.txt", b"somebody else's, deleted since")
    reported = shop.lakefs.commit(shop.repo, "main")
    shop.at(-1.1)
    shop.lakefs.delete(shop.repo, "main", "report.txt")
    deleted = shop.lakefs.commit(shop.repo, "main")
    shop.at(0)
    shop.write()
    _, made = plan(shop, *IMMEDIATE)
    rules = steps(made)["lakefs_set_rules"]["parameters"]["after"]
    # the lost commit is 15 days old, and free's history holds the person until a day and a half ago
    assert rules == {"default_days": 15, "branches": {"dev": 0, "free": 1, "main": 0}}
    (override,) = [o for o in made["overrides"] if o["kind"] == "lakefs_retention"]
    assert "default 60, dev 90 → default 15, dev 0, free 1, main 0" in override["reason"]
    assert "1 object without the person that only these commits reference will be lost" in override["reason"]
    waited = steps(made)["lakefs_await_collection"]["parameters"]
    assert datetime.fromisoformat(waited["until"].replace("Z", "+00:00")) == NOW
    holders = {shop.commits[n] for n in ("first", "second", "third", "dev", "gone")}
    assert set(waited["holders"]) == holders | {reported, deleted}


def test_rules_that_end_in_time_are_left_alone(shop: Shop) -> None:
    shop.repo.rules = {"default_retention_days": 3, "branches": []}
    shop.write()
    code, made = plan(shop)
    assert code == 0
    assert "lakefs_set_rules" not in steps(made)
    assert "lakefs_restore_rules" not in steps(made)
    assert not made["overrides"]
    until = datetime.fromisoformat(steps(made)["lakefs_await_collection"]["parameters"]["until"].replace("Z", "+00:00"))
    assert until == NOW + timedelta(days=3)


def test_a_repository_without_the_person_is_examined(shop: Shop) -> None:
    for entry_of in list(shop.repo.commits.values()):
        entry_of["tree"] = {}
    shop.repo.staging = {name: {} for name in shop.repo.heads}
    for path in (shop.root / "shop" / "data").iterdir():
        path.unlink()
    shop.lakefs.put(shop.repo, "main", PREFIX + "a.csv", csv(*OTHERS))
    shop.lakefs.commit(shop.repo, "main")
    shop.write()
    code, made = plan(shop)
    assert code == 0
    assert [e["dataset"]["name"] for e in made["examined"]] == ["shop"]


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("lakefs_protected", lambda s: s.repo.protected.append("main")),
        ("lakefs_staged", lambda s: s.lakefs.put(s.repo, "main", "x.csv", b"other,people\n")),
        ("lakefs_staged", lambda s: s.lakefs.put(s.repo, "free", PREFIX + "x.csv", csv(PERSON))),
        ("lakefs_tag", lambda s: s.repo.tags.update(old=s.commits["second"])),
        (
            "object_names",
            lambda s: (s.lakefs.put(s.repo, "free", f"of/{MAIL}.csv", b"a\n"), s.lakefs.commit(s.repo, "free")),
        ),
        ("object_names", lambda s: s.lakefs.branch(s.repo, f"fix-{USER}", "free")),
        (
            "object_names",
            lambda s: (
                s.lakefs.put(s.repo, "free", "m", b"a\n", metadata={"of": MAIL}),
                s.lakefs.commit(s.repo, "free"),
            ),
        ),
        (
            "lakefs_messages",
            lambda s: (s.lakefs.put(s.repo, "free", "m", b"a\n"), s.lakefs.commit(s.repo, "free", f"of {MAIL}")),
        ),
        (
            "unexpected_copy",
            lambda s: (s.lakefs.put(s.repo, "main", "n.csv", csv(PERSON)), s.lakefs.commit(s.repo, "main")),
        ),
        (
            "cannot_be_proved",
            lambda s: (
                s.lakefs.put(s.repo, "free", f"{PREFIX}t/_delta_log/0.json", b"{}"),
                s.lakefs.commit(s.repo, "free"),
            ),
        ),
        ("lakefs_dangling", lambda s: setattr(s.repo, "rules", None)),
        ("lakefs_repository", lambda s: setattr(s.lakefs, "faults", lambda m, p: 500 if p.endswith("/tags") else None)),
        (
            "cannot_be_proved",
            lambda s: setattr(s.lakefs, "faults", lambda m, p: 500 if p.endswith("/objects") else None),
        ),
    ],
)
def test_what_stands_against_it_is_a_gap(shop: Shop, kind: str, spoil: Any) -> None:
    spoil(shop)
    shop.write()
    code, made = plan(shop)
    assert code == 3
    assert kind in kinds(made)
    assert not made["applyable"]
    assert USER not in json.dumps(made)
    assert MAIL not in json.dumps(made)


def test_objects_that_were_imported_are_never_collected_and_are_a_gap(shop: Shop) -> None:
    entry = shop.repo.commits[shop.repo.heads["main"]]["tree"][PREFIX + "users-1.csv"]
    elsewhere = shop.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes(csv(PERSON))
    for commit in shop.repo.commits.values():
        if PREFIX + "users-1.csv" in commit["tree"] and commit["tree"][PREFIX + "users-1.csv"] is entry:
            commit["tree"][PREFIX + "users-1.csv"] = {**entry, "physical_address": "local://elsewhere/x"}
    shop.write()
    code, made = plan(shop)
    assert code == 3
    assert "lakefs_imported" in kinds(made)


def test_young_objects_are_given_the_collectors_day_of_grace(shop: Shop) -> None:
    shop.at(-0.1)
    shop.lakefs.put(shop.repo, "main", PREFIX + "users-9.csv", csv(PERSON))
    shop.lakefs.commit(shop.repo, "main")
    shop.at(0)
    shop.write()
    _, made = plan(shop, *IMMEDIATE)
    until = datetime.fromisoformat(steps(made)["lakefs_await_collection"]["parameters"]["until"].replace("Z", "+00:00"))
    assert until == NOW + timedelta(days=0.9)


def test_half_an_object_is_not_taken_for_the_whole(shop: Shop) -> None:
    """Its first half would be good CSV, and without the person."""
    shop.lakefs.faults = lambda method, path: "cut" if method == "GET" and path.endswith("/objects") else None
    shop.write()
    code, made = plan(shop)
    assert code == 3
    (gap,) = [g for g in made["gaps"] if g["kind"] == "cannot_be_proved"]
    assert "cut off" in gap["evidence"] or "does not answer" in gap["evidence"]


def test_a_short_number_is_the_persons_only_where_the_match_looks(shop: Shop) -> None:
    """As a merchant's number, or in a note, the same digits are somebody else's."""
    number = "8841302"
    ours = shop.lakefs.put(shop.repo, "free", PREFIX + "a.csv", f"uid,mail\n{number},none@example.org\n".encode())
    shop.lakefs.put(
        shop.repo, "free", PREFIX + "b.csv", f"shop,uid,mail\n{number},{OTHERS[0][0]},x@y.example\n".encode()
    )
    shop.lakefs.put(shop.repo, "free", "notes.txt", f"order {number} was paid".encode())
    shop.lakefs.commit(shop.repo, "free")
    shop.write()
    (shop.base / "tables" / "users" / "part-0.parquet").write_bytes(parquet(*OTHERS, (number, "none@example.org")))
    request = (shop.base / "request.yaml").read_text()
    (shop.base / "request.yaml").write_text(request.replace(USER, number))
    code, made = plan(shop)
    assert code == 0
    waited = steps(made)["lakefs_await_collection"]["parameters"]["objects"]
    assert [o["address"] for o in waited] == [ours["physical_address"]]


def test_a_tag_that_loses_somebody_elses_object_is_a_gap_and_one_that_loses_none_is_not(shop: Shop) -> None:
    shop.at(-1.2)
    shop.lakefs.put(shop.repo, "main", "report.txt", b"somebody else's, deleted since")
    reported = shop.lakefs.commit(shop.repo, "main")
    shop.lakefs.delete(shop.repo, "main", "report.txt")
    shop.at(-1.1)
    shop.lakefs.commit(shop.repo, "main")
    shop.lakefs.branch(shop.repo, "side", "free")
    shop.lakefs.put(shop.repo, "side", "side.txt", b"on no branch any more")
    side = shop.lakefs.commit(shop.repo, "side")
    shop.lakefs.drop_branch(shop.repo, "side")
    shop.at(0)
    shop.repo.tags |= {"report": reported, "side": side}
    shop.write()
    _, made = plan(shop, *IMMEDIATE)
    # below the lost commit of `side` stands one with the person: its line is cut, and side.txt with it. v1's is not
    gaps = [g["id"] for g in made["gaps"] if g["kind"] == "lakefs_tag"]
    assert gaps == ["gap-lakefs_tag-lake-shop-report", "gap-lakefs_tag-lake-shop-side"]
    assert "2 objects without the person" in next(o["reason"] for o in made["overrides"] if "lakefs" in o["kind"])


def test_a_storage_that_cannot_be_listed_is_said_before_anything_is_done(shop: Shop) -> None:
    shop.lakefs.presign = True
    shop.write()
    file = shop.base / "pii-tracer.yaml"
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "local_root" not in line))
    code, made = plan(shop)
    assert code == 3
    assert [g["kind"] for g in made["gaps"]] == ["lakefs_storage"]
