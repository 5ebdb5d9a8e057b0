"""A SQL catalog's pointer to a metadata file: one of two who swap it from the same file succeeds."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

import pytest

from executors.catalogs.sql.metadata_pointer import SqlPointer
from pii_tracer.model.errors import RunError
from tests.executors.formats.iceberg.kept_history.people import People


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)


def pointer(people: People, driver: bool, table: str = "people") -> SqlPointer:
    """driver: through SQLAlchemy, as for databases other than SQLite."""
    uri = f"sqlite+pysqlite:///{people.base}/core.db" if driver else "sqlite:///core.db"
    return SqlPointer("core", uri, people.base, ("eu", table))


@pytest.mark.parametrize("driver", [False, True], ids=["sqlite", "sqlalchemy"])
def test_one_of_two_swaps_succeeds(people: People, driver: bool) -> None:
    one = pointer(people, driver)
    before = one.current()
    assert before == people.table.metadata_location
    data = people.folder.joinpath("metadata", before.rpartition("/")[2]).read_bytes()
    first, second = (one.successor(before, uuid.uuid4()) for _ in range(2))
    assert first.rpartition("/")[2].startswith("00001-")
    assert one.swap(before, first, data) is True
    assert one.swap(before, second, data) is False
    assert one.current() == first == people.table.metadata_location
    names = {path.name for path in (people.folder / "metadata").glob("*.metadata.json")}
    assert second.rpartition("/")[2] not in names
    with sqlite3.connect(people.base / "core.db") as connection:
        assert connection.execute("SELECT previous_metadata_location FROM iceberg_tables").fetchall() == [(before,)]


@pytest.mark.parametrize("driver", [False, True], ids=["sqlite", "sqlalchemy"])
def test_a_table_that_is_not_there(people: People, driver: bool) -> None:
    with pytest.raises(RunError, match="the catalog has no such table"):
        pointer(people, driver, "nobody").current()


def test_a_database_that_does_not_answer_tells_its_kind_of_error_alone(people: People) -> None:
    (people.base / "core.db").write_bytes(b"no database at all, and somebody's name")
    with pytest.raises(RunError, match=r"^the catalog's database rejects the statement: DatabaseError") as refused:
        pointer(people, False).current()
    assert "somebody" not in str(refused.value)


def test_a_catalog_of_another_name_in_the_same_database_is_left_alone(people: People) -> None:
    other = SqlPointer("other", "sqlite:///core.db", people.base, ("eu", "people"))
    with pytest.raises(RunError, match="no such table"):
        other.current()
