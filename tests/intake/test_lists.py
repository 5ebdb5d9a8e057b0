"""Lists of requests: each right row is taken once, each wrong one is named by its line and by nothing else of it."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.intake import request_lists
from pii_tracer.app.intake.request_lists import add_requests
from pii_tracer.app.settings import Settings
from pii_tracer.intake.list_files import Form
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.schema import MIGRATIONS
from pii_tracer.model.errors import ConfigError, PiiTracerError, RequestError, UsageError
from tests.cli.small import request
from tests.intake.places import GIVEN, NOW, ago, counts, ids, opened, place, took
from tests.leaks import Person, leaks


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return place(tmp_path, database=database)


@pytest.fixture
def in_a_file(tmp_path: Path) -> Settings:
    return place(tmp_path)


def refused(settings: Settings, text: str | bytes, form: Form | None = None) -> dict[int, str]:
    return {item.line: item.reason for item in took(settings, text, form=form).refusals}


def test_the_same_rows_are_taken_once(settings: Settings) -> None:
    text = "key\n4417700101\n4417700102\n4417700103\n"
    assert counts(took(settings, text)) == (3, 0, 0, 0, 0)
    assert counts(took(settings, text)) == (0, 0, 0, 3, 0)
    # another file with the same persons, law and time, and one more
    assert counts(took(settings, text + "4417700104\n", "again.csv")) == (1, 0, 0, 3, 0)
    # the same person twice in one list is one request with one receipt
    assert counts(took(settings, "key\n4417700105\n4417700105\n", "twice.csv")) == (1, 0, 0, 1, 0)


def test_a_person_who_asks_again_has_one_request_with_both_receipts(settings: Settings) -> None:
    took(settings, f"id,key,law,received\nREQ-1,4417700101,GDPR,{ago(2)}\n")
    later = f"id,key,law,received\nREQ-2,4417700101,CCPA,{ago(1)}\nREQ-3,4417700101,GDPR,{ago(9)}\n"
    assert counts(took(settings, later, "later.csv")) == (0, 2, 0, 0, 0)
    store = opened(settings)
    [found] = store.requests()
    assert (found.id, found.law, found.receipts) == ("REQ-1", "GDPR", 3)
    assert found.received == NOW - timedelta(days=9)  # the earliest deadline is the request's
    assert found.due == store.find("REQ-2").due
    assert [receipt.id for receipt in store.receipts("REQ-1")] == ["REQ-3", "REQ-1", "REQ-2"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("REQ-1,4417700199,GDPR,{day},user", "a different request"),
        ("REQ-1,4417700101,CCPA,{day},user", "a different law or time"),
        ("REQ 5,4417700102,GDPR,{day},user", "`id`"),
        ("REQ-5,,GDPR,{day},user", "`key` is empty"),
        ("REQ-5,   ,GDPR,{day},user", "`key` is empty"),
        ("REQ-5, 4417700102,GDPR,{day},user", "space"),
        ("REQ-5,44177\u200b00102,GDPR,{day},user", "invisible character"),
        ("REQ-5,4417700102,LEX,{day},user", "`law` is not known"),
        ("REQ-5,4417700102,GDPR,2026-11-19,user", "time zone"),
        ("REQ-5,4417700102,GDPR,20261119,user", "time zone"),
        ("REQ-5,4417700102,GDPR,{tomorrow},user", "future"),
        ("REQ-5,4417700102,GDPR,1969-01-01T00:00:00Z,user", "before 1970"),
        ("REQ-5,4417700102,GDPR,{day},buyer", "`subject`"),
        ("REQ-5,4417700102,GDPR,{day}", "4 fields, and the header has 5"),
        ("REQ-5,4417700102,GDPR,{day},user,x", "6 fields"),
        ("REQ-4417700102,4417700102,GDPR,{day},user", "must not contain the person's key"),
        ('REQ-5,"4417700102,GDPR,{day},user', "quotes"),
        ("REQ-5," + "9" * 70_000 + ",GDPR,{day},user", "longer than"),
        ("REQ-5," + "9" * 2_000 + ",GDPR,{day},user", "longer than"),
        ("REQ-5,4417\ufffd,GDPR,{day},user", "not valid in"),
    ],
)
def test_a_wrong_row_is_named_and_the_others_are_taken(settings: Settings, row: str, reason: str) -> None:
    head = "id,key,law,received,subject\n"
    took(settings, f"{head}REQ-1,4417700101,GDPR,{ago(3)},user\n", "first.csv", given={})
    wrong = row.format(day=ago(2), tomorrow=ago(-1))
    text = f"{head}REQ-6,4417700106,GDPR,{ago(2)},user\n{wrong}\nREQ-7,4417700107,GDPR,{ago(2)},user\n"
    told: list[tuple[int, str]] = []
    done = took(settings, text, given={}, tell=lambda line, why: told.append((line, why)))
    assert counts(done) == (2, 0, 0, 0, 1)
    assert [line for line, _ in told] == [3]
    assert reason in told[0][1]
    assert not re.search(r"44177|LGPD|buyer|2026-11-19", told[0][1])  # nothing of the row
    assert set(ids(opened(settings))) == {"REQ-1", "REQ-6", "REQ-7"}


@pytest.mark.parametrize("right", ["access", "objection", "rectification", "portability", "Restriction", "sale"])
def test_what_is_no_erasure_is_refused_with_the_reason(settings: Settings, right: str) -> None:
    told = refused(settings, f"key,right\n4417700101,{right}\n4417700102,erasure\n4417700103,\n")
    assert list(told) == [2]
    assert "only erasures" in told[2]


@pytest.mark.parametrize(
    ("text", "form", "what"),
    [
        ("key,key\n1,2\n", Form(), "columns 1 and 2 of the header have the same name"),
        ("4417700101\n4417700102\n", Form(), "column 1 of the header belongs to no field"),
        ("key,recieved\n1,2\n", Form(), "column 2 of the header belongs to no field"),
        ("law\nGDPR\n", Form(), "no column for `key`"),
        ("key\n1\n", Form(columns={"key": "user_id"}), "column 1 of the header"),
        ("user_id\n1\n", Form(columns={"key": "user_id", "id": "ticket"}), "no column for `id`"),
        ("", Form(), "column 1 of the header"),
        ('"key\n1\n', Form(), "header of the list cannot be read"),
        ("key\n4417700101\n".encode("utf-16"), Form(), "encoding"),
        ("key\n4417700101\n".encode("utf-32-be"), Form(), "encoding"),
    ],
)
def test_a_wrong_header_is_told_by_numbers(settings: Settings, text: str | bytes, form: Form, what: str) -> None:
    with pytest.raises(RequestError, match=re.escape(what)) as wrong:
        took(settings, text, form=form)
    assert "44177" not in str(wrong.value)
    assert ids(opened(settings)) == []


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (b"\xef\xbb\xbfkey\r\nstra\xc3\x9fe-1\r\n\r\n", Form()),
        ("key\nstraße-1\n".encode("cp1252"), Form(encoding="cp1252")),
        ("key\nstraße-1\n".encode("utf-16"), Form(encoding="utf-16")),
        ("id;key;note\nT-1;straße-1;a,b\n", Form(delimiter=";", ignore_others=True)),
        ('customer\tticket\n"straße-1"\tT-1\n', Form(delimiter="\t", columns={"key": "customer", "id": "ticket"})),
        ("key\rstraße-1\r", Form()),
    ],
)
def test_lists_are_read_as_they_are_written(settings: Settings, text: str | bytes, form: Form) -> None:
    assert counts(took(settings, text, form=form)) == (1, 0, 0, 0, 0)
    store = opened(settings)
    assert [store.key_of(name) for name in ids(store)] == ["straße-1"]


def test_a_row_in_another_encoding_is_refused_alone(settings: Settings) -> None:
    told = refused(settings, b"key\nasha-1\n" + "straße-1\n".encode("latin-1") + b"chen-1\n")
    assert list(told) == [3]
    assert len(ids(opened(settings))) == 2


@pytest.mark.parametrize("how", [{"delimiter": ""}, {"delimiter": ",,"}, {"encoding": "no-such"}, {"encoding": "hex"}])
def test_a_form_that_cannot_be_is_refused(how: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Form(**how)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no field `name`"):
        Form(columns={"name": "x"})


def test_parquet_is_a_list_too(settings: Settings) -> None:
    times = pa.array([NOW - timedelta(days=1)] * 4, pa.timestamp("us", "UTC"))
    table = pa.table({"user_id": [4417700101, 4417700102, None, 4417700101], "received": times})
    pq.write_table(table, settings.base / "list.parquet")
    done = add_requests(settings, settings.base / "list.parquet", form=Form(columns={"key": "user_id"}), given=GIVEN)
    assert counts(done) == (2, 0, 0, 1, 1)
    assert [(item.line, item.reason) for item in done.refusals] == [(3, "`key` is empty")]
    pq.write_table(pa.table({"key": [7.0]}), settings.base / "odd.parquet")
    [odd] = add_requests(settings, settings.base / "odd.parquet", given=GIVEN).refusals
    assert "whole number" in odd.reason
    naive = pa.table({"key": ["4417700103"], "received": pa.array([NOW.replace(tzinfo=None)], pa.timestamp("us"))})
    pq.write_table(naive, settings.base / "naive.parquet")
    [odd] = add_requests(settings, settings.base / "naive.parquet", given=GIVEN).refusals
    assert "time zone" in odd.reason
    (settings.base / "no.parquet").write_bytes(b"key\n1\n")
    with pytest.raises(RequestError, match="as Parquet"):
        add_requests(settings, settings.base / "no.parquet", given=GIVEN)


def test_a_request_file_is_a_list_of_one(settings: Settings) -> None:
    assert counts(took(settings, request("user", "4417700101"), "r.yaml", given={})) == (1, 0, 0, 0, 0)
    assert counts(took(settings, request("user", "4417700101"), "copy.yml", given={})) == (0, 0, 0, 1, 0)
    with pytest.raises(ConfigError, match="1 mistake"):
        took(settings, "id: R-2\nlaw: GDPR\nsubject: {type: user, key: '4417700101'}\n", "bad.yaml")
    assert ids(opened(settings)) == ["R-1"]


def test_what_is_no_file_is_an_error(settings: Settings) -> None:
    for name in ("missing.csv", "."):
        with pytest.raises(RequestError):
            add_requests(settings, settings.base / name, given=GIVEN)


def test_a_clock_that_runs_backwards_takes_nothing_from_the_future(settings: Settings) -> None:
    took(settings, f"key,received\n4417700101,{ago(1)}\n", now=NOW)
    early = took(
        settings, f"key,received\n4417700102,{ago(1)}\n4417700103,{ago(5)}\n", "b.csv", now=NOW - timedelta(days=3)
    )
    assert counts(early) == (1, 0, 0, 0, 1)
    assert counts(took(settings, f"key,received\n4417700102,{ago(1)}\n4417700103,{ago(5)}\n", "b.csv")) == (
        1,
        0,
        0,
        1,
        0,
    )


def test_no_value_is_in_the_clear(in_a_file: Settings) -> None:
    person = Person(values=("4417700101", "Straße-4417"))
    took(in_a_file, "id,key\nREQ-1,4417700101\nREQ-2,Straße-4417\n")
    (in_a_file.base / "list.csv").unlink()
    assert leaks(person, [in_a_file.base]) == []
    store, path = opened(in_a_file), in_a_file.state / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert store.key_of("REQ-1") == "4417700101"
    with sqlite3.connect(path) as connection:  # one person's value under another's name does not open
        connection.execute("UPDATE requests SET sealed = (SELECT sealed FROM requests WHERE id = 'REQ-1')")
    with pytest.raises(PiiTracerError, match="does not open"):
        store.key_of("REQ-2")


def test_a_store_of_the_first_schema_is_brought_to_the_newest(in_a_file: Settings) -> None:
    """As the first release wrote it: its requests are there, and what came later can be written."""
    took(in_a_file, "key\n4417700101\n")
    path = in_a_file.state / FILE
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE decisions")
        connection.execute("DROP TABLE work_items")
        connection.execute("DROP TABLE extensions")
        connection.execute("DROP TABLE narrowings")
        connection.execute("ALTER TABLE requests DROP COLUMN extended")
        connection.execute("ALTER TABLE requests DROP COLUMN kept")
        connection.execute("ALTER TABLE requests DROP COLUMN first_begun")
        for table in ("requests", "receipts"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN ground")
            connection.execute(f"ALTER TABLE {table} DROP COLUMN noticed")
        connection.execute("PRAGMA user_version = 1")
    assert [(one.state.value, one.ground.value) for one in opened(in_a_file).requests()] == [("received", "request")]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("SELECT count(*) FROM work_items").fetchone() == (0,)


def test_the_store_is_refused_where_it_cannot_be_trusted(in_a_file: Settings) -> None:
    took(in_a_file, "key\n4417700101\n")
    path = in_a_file.state / FILE
    path.chmod(0o640)
    with pytest.raises(RequestError, match="other users of this machine"):
        opened(in_a_file)
    path.chmod(0o600)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(RequestError, match="later version"):
        opened(in_a_file)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    in_a_file.key_file().unlink()
    with pytest.raises(RequestError, match="a different estate key"):
        opened(in_a_file)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(RequestError, match="cannot be used"):
        opened(in_a_file)
    path.unlink()
    path.symlink_to(in_a_file.base / "elsewhere")
    with pytest.raises(RequestError, match="cannot be opened"):
        opened(in_a_file)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_store_that_goes_away_in_the_middle_is_not_said_to_have_the_rows(
    in_a_file: Settings, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """SQLite ends its transaction in a file that no name leads to any more."""
    monkeypatch.setattr(request_lists, "ROWS_AT_ONCE", 2)
    took(in_a_file, "key\n4417700101\n", "first.csv")
    path = in_a_file.state / FILE
    copy = path.read_bytes()

    def goes(line: int, why: str) -> None:
        path.unlink()
        if how == "replaced":
            path.write_bytes(copy)
            path.chmod(0o600)

    text = 'key\n4417700102\n4417700103\n4417700104\n""\n'
    with pytest.raises(RequestError, match="moved, removed or replaced") as gone:
        took(in_a_file, text, tell=goes)
    assert "add the same list again" in str(gone.value.todo)
    there = 1 if how == "replaced" else 0
    assert len(ids(opened(in_a_file))) == there
    assert counts(took(in_a_file, text)) == (3, 0, 0, 0, 1)


def test_a_store_that_is_gone_is_not_made_again_by_who_had_it(in_a_file: Settings) -> None:
    store = opened(in_a_file)
    (in_a_file.state / FILE).unlink()
    with pytest.raises(RequestError, match="cannot be used"):
        store.counts()
    assert not (in_a_file.state / FILE).exists()


KILLED = """
import os, signal, sys
from pathlib import Path
import pii_tracer.app.intake.request_lists as lists
from pii_tracer.app.settings import Settings
lists.ROWS_AT_ONCE = 50
take, begun = lists._take, []
def until_the_fourth(*told):
    take(*told)
    begun.append(told)
    if len(begun) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
lists._take = until_the_fourth
base = Path(sys.argv[1])
lists.add_requests(Settings(base / "pii-tracer.yaml", base / "state"), base / "list.csv", given=eval(sys.argv[2]))
"""


def test_a_run_that_is_killed_leaves_what_a_second_one_completes(settings: Settings) -> None:
    store = opened(settings)
    (settings.base / "list.csv").write_text("key\n" + "".join(f"44177{n:06}\n" for n in range(400)))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(settings.base), repr(GIVEN)], check=False)
    assert killed.returncode == -signal.SIGKILL
    there = store.counts()[RequestState.RECEIVED]
    assert there == 3 * 50, "the fourth transaction had not ended"
    done = add_requests(settings, settings.base / "list.csv", given=GIVEN)
    assert counts(done) == (400 - there, 0, 0, there, 0)


MEASURED = """
import resource, sys
from pathlib import Path
from pii_tracer.app.intake import request_lists
from pii_tracer.app.intake.request_lists import add_requests
from pii_tracer.app.settings import Settings
from pii_tracer.intake.list_files import Form
base = Path(sys.argv[1])
def most(name):
    given = eval(sys.argv[2])
    add_requests(Settings(base / "pii-tracer.yaml", base / "state"), base / name, form=Form(ignore_others=True), given=given)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(most("few.csv"), most("many.csv"))
"""


def test_memory_does_not_grow_with_the_list(in_a_file: Settings) -> None:
    note = "x" * 2_000
    for name, start, end in (("few.csv", 0, 500), ("many.csv", 500, 50_500)):
        with (in_a_file.base / name).open("w") as stream:
            stream.write("key,note\n")
            stream.writelines(f"44177{n:06},{note}\n" for n in range(start, end))
    command = [sys.executable, "-c", MEASURED, str(in_a_file.base), repr(GIVEN)]
    few, many = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert opened(in_a_file).counts()[RequestState.RECEIVED] == 50_500
    size = (in_a_file.base / "many.csv").stat().st_size
    assert (int(many) - int(few)) * 1024 < size / 2  # SQLite's own cache grows with the store, up to 64 MiB
    (in_a_file.base / "many.csv").unlink()


def test_keys_of_many_requests_come_in_the_order_they_are_asked_for(settings: Settings) -> None:
    took(settings, "id,key\nR-1,4417700101\nR-2,4417700102\nR-3,4417700103\n")
    store = opened(settings)
    assert store.keys_of(("R-3", "R-1", "R-2")) == ["4417700103", "4417700101", "4417700102"]
    with pytest.raises(UsageError, match="R-9 has ended"):
        store.keys_of(("R-1", "R-9"))
