"""No statement or clause that moves data hides in a statement that moves none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lineage.sql.accounting.administration import administration
from pii_tracer.lineage.sql.parse_lines import answer_sql
from tests.lineage.test_administration import ALL

TABLES = {name: [("id", ""), ("mail", "")] for name in ("s", "t", "u", "log")}

HIDDEN = [
    ("mysql", "ALTER TABLE t DROP INDEX i, RENAME TO z"),
    ("mysql", "ALTER TABLE t ADD INDEX i (mail), CHANGE mail m2 TEXT"),
    ("mysql", "ALTER TABLE t ADD INDEX i (mail), RENAME COLUMN mail TO m2"),
    ("mysql", "ALTER TABLE t ADD INDEX i (mail), ADD COLUMN up TEXT AS (upper(mail)) STORED"),
    ("mysql", "ALTER TABLE t CONVERT TO CHARACTER SET utf8, ADD COLUMN m TEXT DEFAULT (mail)"),
    ("postgres", "ALTER TABLE t DROP CONSTRAINT c, RENAME TO z"),
    ("postgres", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (id), ADD COLUMN up TEXT GENERATED ALWAYS AS (upper(mail)) STORED"),
    ("postgres", "ALTER TABLE t DROP CONSTRAINT c, ALTER COLUMN mail TYPE TEXT USING id||mail"),
    ("postgres", "ALTER TABLE t DROP CONSTRAINT c, ATTACH PARTITION s FOR VALUES IN (1)"),
    ("postgres", "ALTER TABLE t VALIDATE CONSTRAINT c, INHERIT u"),
    ("tsql", "ALTER TABLE t DROP CONSTRAINT c\nALTER TABLE t SWITCH TO z"),
    ("tsql", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (id)\nCREATE SYNONYM z FOR s"),
    ("tsql", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (id)\nALTER SCHEMA a TRANSFER b.t"),
    ("tsql", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (id)\nRESTORE DATABASE d FROM DISK='x'"),
    ("tsql", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (id), up AS UPPER(mail)"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, MOVE PARTITION 'p' TO TABLE u"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, REPLACE PARTITION 'p' FROM s"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, ATTACH PARTITION 'p' FROM s"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, FETCH PARTITION 'p' FROM '/x'"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, RENAME COLUMN mail TO m"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, ADD COLUMN up String MATERIALIZED mail"),
    ("clickhouse", "ALTER TABLE t DROP INDEX i, MODIFY COLUMN id String MATERIALIZED mail"),
    ("clickhouse", "ALTER TABLE t RESET SETTING a, MOVE PARTITION 'y' TO TABLE u"),
    ("clickhouse", "ALTER TABLE t DROP DETACHED PARTITION 'x', MOVE PARTITION 'y' TO TABLE u"),
    ("oracle", "ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY (id) ADD (m VARCHAR2(9) AS (UPPER(mail)))"),
    ("oracle", "ALTER TABLE t DROP CONSTRAINT p RENAME TO z"),
    ("mysql", "ANALYZE UPDATE t JOIN s ON s.id=t.id SET t.mail = s.mail"),
    ("mysql", "ANALYZE FORMAT=JSON UPDATE t JOIN s ON s.id=t.id SET t.mail = s.mail"),
    ("tsql", "EXEC sp_helpdesk_archive @from='s', @to='t'"),
    ("oracle", "CREATE TYPE x AS TABLE OF NUMBER\nRENAME s TO z"),
    ("oracle", "CREATE TYPE x AS OBJECT (a NUMBER)\nCREATE TABLE z AS TABLE s"),
    ("snowflake", "ALTER SHARE p SET TAG a='x', ACCOUNTS = y"),
    ("snowflake", "ALTER SHARE p SET COMMENT='x' ACCOUNTS=a.b"),
    ("tsql", "EXEC sp_who\nBACKUP LOG d TO DISK='x'"),
    ("tsql", "GRANT SELECT ON t TO b\nEXEC p"),
    ("tsql", "GRANT SELECT ON t TO b\nALTER TABLE s SWITCH TO t"),
    ("tsql", "CREATE USER x FOR LOGIN y\nALTER TABLE s SWITCH TO t"),
    ("tsql", "DBCC CLONEDATABASE (d, e)"),
    ("tsql", "CREATE TABLE z (id INT, mail VARCHAR(9)) WITH (LEDGER = ON)"),
    ("postgres", "SELECT pg_create_logical_replication_slot('a', 'b')"),
    ("postgres", "SELECT pg_copy_logical_replication_slot('a', 'b')"),
    ("spark", "SELECT java_method('x.Mover', 'move')"),
]  # fmt: skip


FOLLOWED = [
    ("mysql", "ALTER TABLE t DROP INDEX i, MODIFY mail TEXT FIRST; INSERT INTO t SELECT mail, id FROM s", "s.mail -> t.mail"),
    ("oracle", "CREATE PROCEDURE p IS BEGIN NULL; END;\n/\nSHOW ERRORS\nCREATE PROCEDURE q IS BEGIN INSERT INTO log SELECT id, "
     "mail FROM u; END;\n/", "u.mail -> log.mail"),
]  # fmt: skip


def silent(text: str, dialect: str) -> bool:
    """Whether the answer says that all is followed, and nothing moves."""
    answer = answer_sql(text, dialect, TABLES)
    return answer["complete"] and not answer["edges"]


@pytest.mark.parametrize(("dialect", "text"), HIDDEN, ids=[text[:60] for _, text in HIDDEN])
def test_what_hides_in_administration_is_not_silent(dialect: str, text: str) -> None:
    assert administration(text) is None
    assert not silent(text, dialect)


@pytest.mark.parametrize(("dialect", "text", "edge"), FOLLOWED, ids=[text[:60] for _, text, _ in FOLLOWED])
def test_what_is_next_to_it_is_followed(dialect: str, text: str, edge: str) -> None:
    answer = answer_sql(text, dialect, TABLES)
    assert edge in {f"{e['from']} -> {e['to']}" for e in answer["edges"]}


@pytest.mark.parametrize(
    "text", ["SHOW TABLES", "SHOW ERRORS", "SHOW GRANTS FOR u", "GRANT SELECT ON t TO b", "SET ROLE admin"]
)
def test_a_command_hides_none_on_the_next_line(text: str) -> None:
    for dialect in ("oracle", "tsql", "spark", "snowflake", "trino", "hive"):
        for another in ON_THE_NEXT_LINE:
            assert not silent(f"{text}\n{another}", dialect), (dialect, another)


BEHIND_A_COMMA = (
    *("RENAME TO z", "RENAME COLUMN mail TO m", "CHANGE mail m TEXT", "MODIFY mail TEXT FIRST", "INHERIT u"),
    *("ADD COLUMN m TEXT DEFAULT (mail)", "ADD COLUMN m TEXT AS (mail)", "ALTER COLUMN mail TYPE TEXT USING id||mail"),
    *("ATTACH PARTITION 'p' FROM s", "REPLACE PARTITION 'p' FROM s", "MOVE PARTITION 'p' TO TABLE u", "SWITCH TO z"),
    *("FETCH PARTITION 'p' FROM '/x'", "EXCHANGE PARTITION p WITH TABLE u", "UPDATE mail = id WHERE 1", "SET SCHEMA z"),
    *("MODIFY COLUMN id String MATERIALIZED mail", "UNION = (s, u)", "m AS UPPER(mail)"),
)
ON_THE_NEXT_LINE = (
    *("ALTER TABLE s SWITCH TO t", "ALTER SCHEMA a TRANSFER b.t", "CREATE SYNONYM z FOR s", "EXEC p", "EXECUTE p 1"),
    *("RESTORE DATABASE d FROM DISK = 'x'", "BACKUP LOG d TO DISK = 'x'", "RENAME s TO z", "RENAME TABLE s TO z"),
    *("CREATE TABLE z AS TABLE s", "INSERT INTO t SELECT id, mail FROM s", "CALL p()"),
    *("INSERT t EXEC p", "UPDATE t SET mail = id", "MERGE t USING s ON 1 = 1", "COPY s TO '/x'",),
    *("BULK INSERT t FROM 'x'", "FETCH NEXT FROM c INTO @m", "SELECT id, mail INTO z FROM s", "ALTER TABLE s RENAME TO z"),
)  # fmt: skip
TABLES_ALTERED = [one for one in ALL if one[1].startswith(("ALTER TABLE", "ALTER VIEW", "ALTER MATERIALIZED VIEW"))]


@given(st.sampled_from(TABLES_ALTERED), st.sampled_from(BEHIND_A_COMMA))
def test_no_clause_that_moves_data_hides_behind_a_comma(one: tuple[str, str], clause: str) -> None:
    dialect, text = one
    assert administration(f"{text}, {clause}") is None
    assert not silent(f"{text}, {clause}", dialect)


@given(st.sampled_from(ALL), st.sampled_from(ON_THE_NEXT_LINE))
def test_no_second_statement_hides_on_the_next_line(one: tuple[str, str], another: str) -> None:
    dialect, text = one
    assert administration(f"{text}\n{another}") is None
    assert not silent(f"{text}\n{another}", dialect)
