"""What only a database server brings: one that is away, passwords, others who write at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pii_tracer.app.intake import request_lists
from pii_tracer.app.intake.planned_requests import refuse_withdrawn
from pii_tracer.app.settings import Settings
from pii_tracer.intake.request_databases.postgres import PostgresDatabase
from pii_tracer.intake.schema import MIGRATIONS
from pii_tracer.model.errors import ConfigError, ExitCode, RequestError
from tests.intake.places import counts, opened, place, took
from tests.intake.test_states import PERSONS, SAID, asked, called, lake, made
from tests.leaks import Person, leaks
from tests.postgressupport import server, started


@pytest.fixture
def database() -> Iterator[str]:
    with server().schema() as url:
        yield url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://pii:hunter2@db.example/requests",
        "postgresql://db.example/requests?user=pii&password=hunter2",
        "postgresql://db.example/requests?sslpassword=hunter2",
        "mysql://db.example/hunter2",
    ],
)
def test_a_password_in_the_estate_file_is_refused_and_not_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="request_store") as caught:
        place(tmp_path, database=url).estate()
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_away_stops_what_has_to_ask_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether somebody was withdrawn is not known then, and nobody is erased on the chance that nobody was."""
    pytest.importorskip("psycopg")
    kept = lake(tmp_path)
    asked(kept, PERSONS[0])
    _, plan = made(kept)
    away = lake_at(kept, f"postgresql:///none?host={tmp_path}")
    with pytest.raises(RequestError, match="PostgreSQL says OperationalError"):
        refuse_withdrawn(away, plan)
    assert called(away, "requests", "list") == ExitCode.ERROR
    assert "where: postgresql:///none\n" in capsys.readouterr().err


def lake_at(settings: Settings, url: str) -> Settings:
    """The same estate with its requests in another place."""
    with settings.estate_file.open("a") as file:
        file.write(f"request_store: {url}\n")
    return settings


def test_those_who_add_the_same_list_at_once_add_each_row_once(tmp_path: Path, database: str) -> None:
    settings = place(tmp_path, database=database)
    opened(settings)
    (tmp_path / "list.csv").write_text("key\n" + "".join(f"44177001{n:02}\n" for n in range(40)))
    text = (tmp_path / "list.csv").read_text()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda name: counts(took(settings, text, name)), ["a.csv", "b.csv", "c.csv", "d.csv"]))
    assert sorted(done) == [(0, 0, 0, 40, 0)] * 3 + [(40, 0, 0, 0, 0)]
    assert sum(opened(settings).counts().values()) == 40


def test_a_server_that_dies_in_the_middle_of_a_list_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of parts that were committed stay; the same list again adds the others."""
    monkeypatch.setattr(request_lists, "ROWS_AT_ONCE", 10)
    lasting = "-c listen_addresses='' -c fsync=off -c shared_buffers=16MB"
    mine = started(lasting)
    try:
        settings = place(tmp_path, database=mine.url("public"))
        opened(settings)
        rows = [f"44177001{n:02}\n" for n in range(35)]
        text = "key\n" + "".join(rows[:24]) + '""\n' + "".join(rows[24:])
        with pytest.raises(RequestError, match="PostgreSQL says") as caught:
            took(settings, text, tell=lambda line, why: mine.kill())
        assert "check that the server runs" in str(caught.value.todo)
        assert "add the same list again" in str(caught.value.todo)
        assert called(settings, "requests", "list") == ExitCode.ERROR
        mine.start(lasting)
        assert sum(opened(settings).counts().values()) == 20
        assert counts(took(settings, text)) == (15, 0, 0, 20, 1)
        assert [one.receipts for one in opened(settings).requests()] == [1] * 35
    finally:
        mine.end()


def test_no_value_is_in_the_clear_and_an_ended_request_has_none(tmp_path: Path, database: str) -> None:
    import psycopg

    settings = place(tmp_path, database=database)
    took(settings, "id,key\nREQ-1,4417700101\nREQ-2,4417700102\n")
    with psycopg.connect(database) as connection:
        tables = ("requests", "receipts", "changes", "settings", "migrations", "work_items", "decisions", "narrowings")
        held = "\n".join(str(row) for t in tables for row in connection.execute(f"SELECT * FROM {t}".encode()))
    assert "REQ-1" in held
    (tmp_path / "held.txt").write_text(held)
    (tmp_path / "list.csv").unlink()
    assert leaks(Person(values=("4417700101", "4417700102")), [tmp_path]) == []
    assert called(settings, "requests", "withdraw", "REQ-1", *SAID) == ExitCode.DONE
    with psycopg.connect(database) as connection:
        sealed = dict(connection.execute("SELECT id, sealed IS NULL FROM requests").fetchall())
    assert sealed == {"REQ-1": True, "REQ-2": False}


def test_a_schema_of_a_later_version_is_refused_and_one_of_the_first_mended(tmp_path: Path, database: str) -> None:
    import psycopg

    settings = place(tmp_path, database=database)
    store = PostgresDatabase(database)
    with store.connected() as connection, connection.transaction():
        for statement in MIGRATIONS[0]:
            connection.execute(statement.format(**store.words))
        assert connection.version() == 0
        connection.set_version(1)
    took(settings, "key\n4417700101\n")
    with psycopg.connect(database) as other:
        assert other.execute("SELECT max(number) FROM migrations").fetchone() == (len(MIGRATIONS),)
        other.execute("INSERT INTO migrations VALUES (99)")
    with pytest.raises(RequestError, match="later version"):
        opened(settings)


def test_messages_of_the_server_are_not_told(database: str) -> None:
    """They quote the row that they refuse."""
    with pytest.raises(RequestError, match="SQLSTATE 22P02") as caught, PostgresDatabase(database).connected() as to:
        to.execute("SELECT CAST(? AS INTEGER)", ("meera.iyer@club.example",))
    assert "meera" not in str(caught.value)
