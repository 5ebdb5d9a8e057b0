"""California's DROP: hashed lists matched against the source, equal to a slow model; and the file that answers them."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import random
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.app.intake import drop_lists
from pii_tracer.app.intake.drop_lists import Matched, add_drop, write_answers
from pii_tracer.app.intake.planned_requests import begin_requests
from pii_tracer.app.intake.request_states import narrow_request, refuse_request, withdraw_request
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run as cli
from pii_tracer.intake.drop.identifier_normalization import digest_told, email_form, phone_form
from pii_tracer.intake.kept_scopes import Wish, hold_of
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.run_results import CameTo, settle
from pii_tracer.intake.state_changes import begin, carry_each_over, plan_them
from pii_tracer.model.errors import ExitCode, RequestError, UsageError
from pii_tracer.model.plan import PlannedHold
from tests.intake.places import NOW, opened, place
from tests.intake.test_states import made as made_plan
from tests.intake.test_states import ran
from tests.leaks import Person, leaks

IDENTIFIERS = "    identifiers: [{column: mail, category: email}, {column: phone, category: phone}]\n"
USERS = {
    "user_id": [71234501, 71234502, 71234503, 71234504],
    "mail": ["Asha@North.example ", "family@north.example", "FAMILY@north.example", None],
    "phone": ["+1(415)555-9317", None, "+84(90)123 4567", ""],
}
RECEIVED = datetime(2026, 11, 1, tzinfo=timezone.utc)


def hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def item(number: int) -> str:
    return f"Item{number:08d}"


def archive(file: Path, lists: Mapping[str, Sequence[tuple[str, ...]]], header: str = "ID,Hash") -> Path:
    with zipfile.ZipFile(file, "w") as made:
        for name, rows in lists.items():
            text = io.StringIO()
            text.write((f"{header},ListType" if name == "Removed" else header) + "\r\n")
            csv.writer(text).writerows(rows)
            made.writestr(f"1234_{name}_20261101.csv", text.getvalue())
    return file


@pytest.fixture
def shop(tmp_path: Path, database: str | None) -> Settings:
    return made(tmp_path, USERS, database)


def made(base: Path, users: Mapping[str, Sequence[Any]], database: str | None = None) -> Settings:
    found = place(base, IDENTIFIERS, database)
    kinds = [("user_id", pa.int64()), ("mail", pa.string()), ("phone", pa.string())]
    write_deltalake(base / "w" / "users", pa.table(dict(users), schema=pa.schema(kinds)), mode="overwrite")
    return found


def add(shop: Settings, lists: Mapping[str, Sequence[tuple[str, ...]]], **more: Any) -> Matched:
    return add_drop(shop, archive(shop.base / "drop.zip", lists), subject="user", received=RECEIVED, **more)


def states(shop: Settings) -> dict[str, RequestState]:
    return {one.id: one.state for one in opened(shop).requests()}


def answered(shop: Settings) -> dict[str, str]:
    write_answers(shop, shop.base / "answers.csv")
    with (shop.base / "answers.csv").open() as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == ["Id", "Status"]
    return dict(map(tuple, rows[1:]))  # type: ignore[arg-type]


def test_the_authoritys_own_examples() -> None:
    """Its published pairs of a phone number and its hash."""
    for written, told in (
        ("+1(415)555-9317", "vGM7y5n+hBXRSEAklhHDPCbysyNgYTmXdMcagGUOY8E="),
        ("+84(90)123 4567", "ptzVkgbv9DonwvPCHmXmJ2SEOaolSh37z3ZzY/Gmm+U="),
    ):
        assert hashed(phone_form(written)) == told
    assert email_form(" a.lice+Tag@Co.COM ") == "a.lice+tag@co.com"
    assert [digest_told(text) for text in ("", "abc", "vGM7y5n+hBXRSEAklhHDPCbysyNgYTmXdMcagGUOY8E", "é")] == [None] * 4


def test_who_is_found_is_a_request_and_who_is_not_is_answered(shop: Settings, tmp_path: Path) -> None:
    lists = {
        "Email": [
            (item(1), hashed("asha@north.example")),
            (item(2), hashed("family@north.example")),
            (item(3), hashed("x@y.example")),
        ],
        "Phone": [(item(4), hashed("4155559317")), (item(5), hashed("4901234567")), (item(6), hashed(""))],
    }
    told: list[tuple[int, str]] = []
    done = add(shop, lists, tell=lambda file, line, why: told.append((line, why)))
    assert (done.matched, done.not_found, done.shared, done.refused) == (3, 2, 1, 0)
    assert [line for line, _ in told] == [3]
    assert "several persons" in told[0][1]
    store = opened(shop)
    keys = {one.id: store.key_of(one.id) for one in store.requests()}
    assert keys == {item(1): "71234501", item(5): "71234503"}, "her e-mail address and her phone are one request"
    assert {r.id for r in store.receipts(item(1))} == {item(1), item(4)}
    assert {one.law for one in store.requests()} == {"DELETE-ACT"}
    assert answered(shop) == {item(3): "5", item(6): "5"}
    values = [shop.state, tmp_path / "answers.csv"]
    assert leaks(Person(("asha@north.example", "4155559317", "71234501", hashed("asha@north.example"))), values) == []
    again = add(shop, lists)
    assert (again.known, again.not_found, again.matched) == (4, 2, 0)


def test_a_named_person_decides_of_an_identifier_of_several(shop: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 4 stands for a decision alone; deleted is nothing that anybody can decide."""
    mail = hashed("family@north.example")
    add(shop, {"Email": [(item(1), hashed("asha@north.example")), (item(2), mail), (item(3), mail), (item(4), mail)]})
    where = ["--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.state)]
    said = ["--by", "Meera Iyer", "--reason", "both were opted out on 2 November", *where]
    out = str(shop.base / "answers.csv")
    assert cli(["requests", "answers", out, "--open", *where]) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "0 opted out" in told
    assert [item(n) in told for n in (1, 2, 3, 4)] == [False, True, True, True]
    assert cli(["requests", "decide", item(2), item(4), "--status", "opted-out", *said]) == ExitCode.DONE
    assert answered(shop) == {item(2): "4", item(4): "4"}
    assert cli(["requests", "decide", item(4), item(3), "--status", "exempted", *said]) == ExitCode.DONE
    assert answered(shop) == {item(2): "4", item(3): "2", item(4): "2"}, "the last decision counts"
    for words in ([item(1)], ["Item99999999"], [item(2), item(1)]):
        assert cli(["requests", "decide", *words, "--status", "exempted", *said]) == ExitCode.USAGE
    assert answered(shop)[item(2)] == "4", "all or none"
    assert cli(["requests", "decide", item(3), "--status", "deleted", *said]) == ExitCode.USAGE
    assert cli(["requests", "decide", item(3), "--status", "opted-out", *said[2:], "--by", " "]) == ExitCode.USAGE
    with opened(shop).connected() as connection:
        kept = list(connection.execute("SELECT item, status, who, reason FROM decisions ORDER BY seq"))
    assert kept[-1] == (item(3), 2, "Meera Iyer", "both were opted out on 2 November")
    assert len(kept) == 4
    capsys.readouterr()
    assert cli(["requests", "answers", out, "--open", *where]) == ExitCode.DONE
    assert "decide" not in capsys.readouterr().out
    assert add(shop, {"Removed": [(item(2), "x", "Email")]}).removed == 1
    assert item(2) not in answered(shop)


def test_who_was_not_found_is_looked_for_again(shop: Settings) -> None:
    lists = {"Email": [(item(1), hashed("late@north.example"))]}
    assert add(shop, lists).not_found == 1
    made(shop.base, {"user_id": [7], "mail": ["late@north.example"], "phone": [None]})
    assert add(shop, lists).matched == 1
    assert answered(shop) == {}


def test_statuses_follow_what_became_of_requests(shop: Settings) -> None:
    users = {"user_id": list(range(1, 7)), "mail": [f"u{n}@x.example" for n in range(1, 7)], "phone": [None] * 6}
    made(shop.base, users)
    add(shop, {"Email": [(item(n), hashed(f"u{n}@x.example")) for n in range(1, 7)]})
    store = opened(shop)
    plan_them(store, [item(1), item(2)], "plan-1", NOW)
    begin(store, [item(1), item(2)], "plan-1", NOW)
    settle(store, "plan-1", lambda _: CameTo(proofs={item(1): "proof x"}, due=lambda law, at: at), NOW)
    carry_each_over(store, {item(2): "data is kept by the hold H1"}, NOW, ["H1"])
    carry_each_over(store, {item(3): "the run left something"}, NOW)
    refuse_request(shop, item(4), by="Meera", reason="no consumer")
    withdraw_request(shop, item(5), by="Meera", reason="by mistake")
    assert answered(shop) == {item(1): "3", item(2): "2", item(4): "2"}
    done = write_answers(shop, shop.base / "answers.csv")
    assert (done.deleted, done.exempted, done.not_found, done.still_open) == (1, 2, 0, 3)


@pytest.mark.parametrize("kept", [True, False])
def test_who_keeps_data_is_not_said_to_be_deleted(shop: Settings, kept: bool) -> None:
    made(shop.base, {"user_id": [1], "mail": ["u1@x.example"], "phone": [None]})
    add(shop, {"Email": [(item(1), hashed("u1@x.example"))]})
    narrow_request(shop, item(1), Wish(keep=("app.orders",)), by="Meera", reason="her warranties")
    store, own = opened(shop), frozenset([hold_of("app.orders")])
    plan_them(store, [item(1)], "plan-1", NOW, own, own if kept else frozenset())
    begin(store, [item(1)], "plan-1", NOW, own)
    assert answered(shop) == {}
    settle(store, "plan-1", lambda _: CameTo(proofs={item(1): "proof x"}, due=lambda law, at: at), NOW)
    assert answered(shop) == {item(1): "2" if kept else "3"}


def test_of_whom_a_held_run_left_something_is_not_said_to_be_exempted(shop: Settings) -> None:
    made(shop.base, {"user_id": [1, 2], "mail": ["u1@x.example", "u2@x.example"], "phone": [None] * 2})
    add(shop, {"Email": [(item(n), hashed(f"u{n}@x.example")) for n in (1, 2)]})
    (shop.base / "jobs.sql").write_text("")
    _, plan = made_plan(shop)
    begin_requests(shop, plan, NOW)
    keeps = PlannedHold(
        id="H1", kind="legal_hold", basis="o", citation="c", from_=NOW, until=None, approver="m", copies=("c",)
    )
    ran(shop, plan.model_copy(update={"holds": (keeps,)}), state="partial", residue=[1], open_requests=[item(2)])
    assert answered(shop) == {item(1): "2"}
    assert opened(shop).find(item(2)).holds == ()


def test_what_a_consumer_takes_back_is_not_erased(shop: Settings) -> None:
    """One who stands in another list as well is still to be erased."""
    add(shop, {"Email": [(item(1), hashed("asha@north.example"))], "Phone": [(item(2), hashed("4901234567"))]})
    add(shop, {"Phone": [(item(3), hashed("4155559317"))]})
    gone = [(item(n), "x", "Email") for n in (1, 2)]
    assert add(shop, {"Removed": gone}).removed == 2
    assert states(shop) == {item(1): RequestState.RECEIVED, item(2): RequestState.WITHDRAWN}
    assert add(shop, {"Removed": [(item(3), "x", "Phone")]}).removed == 1
    assert states(shop)[item(1)] is RequestState.WITHDRAWN
    assert answered(shop) == {}
    again = add(shop, {"Removed": gone, "Email": [(item(1), hashed("asha@north.example"))]})
    assert (again.removed, again.known, again.matched) == (0, 3, 0), "a list that came late brings nobody back"


def test_what_was_taken_back_before_a_crash_is_withdrawn_by_the_next_call(
    shop: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(shop, {"Email": [(item(1), hashed("asha@north.example"))]})
    gone = {"Removed": [(item(1), "x", "Email")]}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(drop_lists, "_withdraw", killed)
        with pytest.raises(KeyboardInterrupt):
            add(shop, gone)
    assert add(shop, gone).known == 1
    assert states(shop) == {item(1): RequestState.WITHDRAWN}
    ended: list[object] = []
    monkeypatch.setattr(drop_lists, "end", lambda *what: ended.append(what))
    assert (add(shop, gone).known, ended) == (1, []), "who has withdrawn is not withdrawn by each later list"


def test_lines_that_are_wrong_are_named_and_the_others_taken(
    shop: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    good = hashed("asha@north.example")
    rows = [("short", good), (item(2), "nohash"), (item(3), good, "more"), ("", ""), (item(5), good)]
    file = archive(shop.base / "drop.zip", {"Email": rows})
    words = ["requests", "add-drop", str(file), "--subject", "user", "--received", "2026-11-01T00:00:00Z"]
    where = ["--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.state)]
    assert cli([*words, *where]) == ExitCode.PARTIAL
    told = capsys.readouterr()
    assert [line.split(": ")[0] for line in told.err.splitlines() if "not taken" in line] == [
        f"1234_Email_20261101.csv, line {n}" for n in (2, 3, 4, 5)
    ]
    assert good not in told.err + told.out
    assert "1 matched" in told.out
    assert cli(["requests", "answers", str(shop.base / "a.csv"), *where]) == ExitCode.DONE
    assert (shop.base / "a.csv").read_text() == "Id,Status\n"


def test_archives_that_are_none_are_refused(shop: Settings) -> None:
    with pytest.raises(UsageError, match="NDZ is not matched here"):
        add(shop, {"NDZ": [], "Email": []})
    assert add(shop, {"NDZ": [(item(1), hashed("x"))], "Email": []}, skip=["NDZ"]).skipped == ("NDZ",)
    assert answered(shop) == {}, "what is left out is not answered"
    with pytest.raises(RequestError, match="does not begin with the columns"):
        add_drop(shop, archive(shop.base / "x.zip", {"Email": []}, "Hash,ID"), subject="user", received=RECEIVED)
    with pytest.raises(RequestError, match="does not have the name of a DROP list"):
        add(shop, {"Else": []})
    (shop.base / "no.zip").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(RequestError, match="it is no ZIP"):
        add_drop(shop, shop.base / "no.zip", subject="user", received=RECEIVED)
    whole = archive(shop.base / "x.zip", {"Email": [(item(n), hashed(str(n))) for n in range(400)]}).read_bytes()
    damaged = bytearray(whole)
    damaged[200:230] = bytes(30)
    (shop.base / "damaged.zip").write_bytes(damaged)
    with pytest.raises(RequestError):
        add_drop(shop, shop.base / "damaged.zip", subject="user", received=RECEIVED)
    with pytest.raises(UsageError, match="no such subject"):
        add_drop(shop, shop.base / "x.zip", subject="nobody", received=RECEIVED)


def became(shop: Settings) -> dict[str, tuple[str, str | None]]:
    """What became of each work item, and the key of the person that it became a request of."""
    store = opened(shop)
    query = "SELECT w.id, w.outcome, e.request FROM work_items w LEFT JOIN receipts e ON e.id = w.id ORDER BY w.id"
    with store.connected() as connection:
        rows = connection.execute(query).fetchall()
    keys = iter(store.keys_of([request for _, _, request in rows if request]))
    return {name: (outcome, next(keys) if request else None) for name, outcome, request in rows}


def slowly(
    users: Mapping[str, Sequence[Any]], lists: Mapping[str, Sequence[tuple[str, ...]]]
) -> dict[str, tuple[str, str | None]]:
    """The same by the text of the specification: each item against each row of the source."""
    mails = [None if mail is None else mail.strip().lower() for mail in users["mail"]]
    phones = [None if told is None else "".join(sign for sign in told if "0" <= sign <= "9") for told in users["phone"]]
    phones = [None if digits is None else digits[max(0, len(digits) - 10) :] for digits in phones]
    rows = {
        kind: [(hashed(form), str(key)) for form, key in zip(forms, users["user_id"], strict=True) if form]
        for kind, forms in (("Email", mails), ("Phone", phones))
    }
    found = {}
    for kind, items in lists.items():
        for name, digest in items:
            keys = {key for of_row, key in rows[kind] if of_row == digest}
            outcome = "matched" if len(keys) == 1 else "shared" if keys else "not_found"
            found[name] = (outcome, min(keys) if outcome == "matched" else None)
    return found


MAILS = st.sampled_from(["a@x.example", "A@X.example", " a@x.example", "b@x.example", "", "  ", None])
PHONES = st.sampled_from(["+1 415 555 9317", "4155559317", "(90) 123", "90123", "", "none", None])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), MAILS, PHONES), max_size=6),
    st.lists(st.sampled_from(["a@x.example", "b@x.example", ""])),
)
def test_each_item_matches_as_in_a_slow_model(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str | None, str | None]], asked: list[str]
) -> None:
    users = {name: [row[n] for row in rows] for n, name in enumerate(("user_id", "mail", "phone"))}
    shop = made(tmp_path_factory.mktemp("model"), users)
    lists = {
        "Email": [(item(n), hashed(mail)) for n, mail in enumerate(asked)],
        "Phone": [(item(100 + n), hashed(phone)) for n, phone in enumerate(["4155559317", "90123", ""])],
    }
    add(shop, lists)
    assert became(shop) == slowly(users, lists)


@pytest.mark.slow
def test_each_of_ten_thousand_items_matches_as_in_a_slow_model(tmp_path: Path) -> None:
    """Persons with several rows, identifiers of several persons, and other ways to write them."""
    draw, number = random.Random(28), 10_000
    people = [draw.randrange(9 * number // 10) for _ in range(number)]
    mails = [draw.choice(("U{}@x.example", " u{}@X.Example ", "u{}@x.example")).format(n) for n in people]
    phones = [draw.choice(("+1 (415) {:07d}", "415{:07d}", "001-415-{:07d}")).format(n) for n in people]
    # of some, the e-mail address or the number of somebody else; of some, none
    others = [draw.choice(("u{}@x.example", None)) for _ in range(number)]
    mails = [
        m if draw.random() < 0.9 else o and o.format(draw.choice(people)) for m, o in zip(mails, others, strict=True)
    ]
    phones = [p if draw.random() < 0.9 else draw.choice(("", None, phones[0])) for p in phones]
    users = {"user_id": people, "mail": mails, "phone": phones}
    wanted = [draw.randrange(number) for _ in range(number)]
    lists = {
        "Email": [(item(n), hashed(f"u{who}@x.example")) for n, who in enumerate(wanted[: number // 2])],
        "Phone": [(item(number + n), hashed(f"415{who:07d}")) for n, who in enumerate(wanted[number // 2 :])],
    }
    shop = made(tmp_path, users)
    add(shop, lists)
    expected = slowly(users, lists)
    assert became(shop) == expected
    counts = Counter(outcome for outcome, _ in expected.values())
    assert min(counts[outcome] for outcome in ("matched", "shared", "not_found")) > 50, counts
