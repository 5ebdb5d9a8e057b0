"""Statements of administration are recognised as a whole, and nothing that moves data hides among them."""

from __future__ import annotations

import pytest

from pii_tracer.lineage.sql.accounting.administration import administration, kind_of
from pii_tracer.lineage.sql.parse_lines import answer_sql

SPARK = """
ALTER TABLE db.t CREATE TAG audit
ALTER TABLE db.t CREATE BRANCH IF NOT EXISTS b AS OF VERSION 12 RETAIN 7 DAYS WITH SNAPSHOT RETENTION 5 SNAPSHOTS
ALTER TABLE db.t CREATE OR REPLACE TAG `end-of-year` AS OF VERSION 12
ALTER TABLE db.t REPLACE BRANCH b AS OF VERSION 4 RETAIN 30 DAYS
ALTER TABLE db.t DROP BRANCH IF EXISTS b
ALTER TABLE db.t WRITE LOCALLY ORDERED BY category ASC NULLS LAST, bucket(16, id)
ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id
ALTER TABLE db.t WRITE UNORDERED
ALTER TABLE db.t ADD PARTITION FIELD bucket(16, id) AS shard
ALTER TABLE db.t REPLACE PARTITION FIELD ts_day WITH hours(ts)
ALTER TABLE db.t DROP PARTITION FIELD days(ts)
ALTER TABLE db.t SET IDENTIFIER FIELDS id, data
ALTER TABLE db.t DROP IDENTIFIER FIELDS id
ALTER TABLE db.t UNSET TBLPROPERTIES IF EXISTS ('comment', 'key')
ALTER TABLE db.t SET TAGS ('pii' = 'mail')
ALTER TABLE db.t ADD CONSTRAINT positive CHECK (id > 0)
ALTER TABLE db.t DROP FEATURE deletionVectors TRUNCATE HISTORY
ALTER TABLE db.t RECOVER PARTITIONS
ALTER TABLE db.t PARTITION (day = '2026-01-01') COMPACT 'major'
ALTER TABLE db.t EXECUTE expire_snapshots(retention_threshold => '7d')
GENERATE symlink_format_manifest FOR TABLE delta.`/lake/t`
FSCK REPAIR TABLE db.t DRY RUN
CREATE STORAGE CREDENTIAL c WITH (AZURE_MANAGED_IDENTITY = 'x')
ALTER SCHEMA s OWNER TO `data engineers`
GRANT SELECT, MODIFY ON TABLE db.t TO `analysts`
REVOKE ALL PRIVILEGES ON SCHEMA s FROM somebody
"""
OTHERS = """
snowflake: ALTER WAREHOUSE w SET WAREHOUSE_SIZE = 'LARGE' AUTO_SUSPEND = 60
snowflake: CREATE RESOURCE MONITOR m WITH CREDIT_QUOTA = 1000 TRIGGERS ON 90 PERCENT DO SUSPEND
snowflake: ALTER TABLE t ADD ROW ACCESS POLICY p ON (region)
snowflake: ALTER TABLE t MODIFY COLUMN mail SET MASKING POLICY hide
snowflake: CREATE OR REPLACE MASKING POLICY hide AS (v STRING) RETURNS STRING -> CASE WHEN CURRENT_ROLE() = 'DPO' THEN v ELSE '*' END
snowflake: ALTER TASK nightly RESUME
snowflake: ALTER TABLE t CLUSTER BY (day)
snowflake: CREATE USER asha PASSWORD = 'x' DEFAULT_ROLE = r
snowflake: CREATE API INTEGRATION i API_PROVIDER = aws_api_gateway ENABLED = TRUE
postgres: CREATE POLICY own ON t FOR SELECT USING (owner = current_user)
postgres: ALTER TABLE t ENABLE ROW LEVEL SECURITY
postgres: ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO r
postgres: REINDEX TABLE t
postgres: ALTER TABLE t REPLICA IDENTITY FULL
postgres: LOCK TABLE t IN ACCESS EXCLUSIVE MODE
mysql: KILL QUERY 17
mysql: FLUSH PRIVILEGES
mysql: CHECK TABLE t QUICK
tsql: CREATE LOGIN l WITH PASSWORD = 'x', CHECK_POLICY = ON
tsql: DBCC CHECKDB ('shop') WITH NO_INFOMSGS
tsql: CREATE NONCLUSTERED INDEX i ON t (a) INCLUDE (b)
bigquery: ALTER TABLE d.t SET OPTIONS (expiration_timestamp = NULL)
clickhouse: SYSTEM FLUSH LOGS
oracle: ALTER SYSTEM SET open_cursors = 300
redshift: ALTER TABLE t ALTER DISTSTYLE ALL
trino: SET ROLE admin
postgres: CREATE DATABASE d LC_COLLATE 'en_IE.UTF-8'
redshift: CREATE SCHEMA s AUTHORIZATION dba QUOTA 100 MB
postgres: ALTER DATABASE d RESET work_mem
tsql: ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 4
oracle: ALTER SESSION FORCE PARALLEL QUERY PARALLEL 2
clickhouse: TRUNCATE ALL TABLES FROM IF EXISTS d LIKE 'tmp%'
snowflake: ALTER DYNAMIC TABLE t UNSET LOG_LEVEL
postgres: ALTER MATERIALIZED VIEW m RESET (fillfactor)
postgres: ALTER FUNCTION f(int, text) PARALLEL SAFE
oracle: DBMS_OUTPUT.PUT_LINE('rows: ' || n)
oracle: END LOOP
snowflake: ALTER TABLE t ALTER COLUMN mail SET PROJECTION POLICY p
postgres: SECURITY LABEL FOR anon ON ROLE r IS 'MASKED'
databricks: UNSET TAG ON TABLE db.t `pii`
snowflake: ALTER SCHEMA s ENABLE MANAGED ACCESS
tsql: CREATE SECURITY POLICY p ADD FILTER PREDICATE dbo.mine(a) ON dbo.t, ADD BLOCK PREDICATE dbo.mine(a) ON dbo.t AFTER INSERT
postgres: DROP PUBLICATION IF EXISTS p CASCADE
snowflake: ALTER SHARE s SET COMMENT = 'for partners'
tsql: EXEC sp_help t
duckdb: FORCE INSTALL h3 FROM community
postgres: ALTER EXTENSION hstore UPDATE TO '2.0'
ansi: DROP CAST IF EXISTS (int AS bool) RESTRICT
oracle: DROP PACKAGE BODY p
oracle: ALTER PACKAGE hr.p COMPILE BODY
snowflake: ALTER FUNCTION f(NUMBER) RENAME TO g
snowflake: ALTER STAGE s SET FILE_FORMAT = (TYPE = 'CSV')
databricks: ALTER CATALOG c INHERIT PREDICTIVE OPTIMIZATION
hive: CREATE DATABASE d COMMENT 'x' LOCATION 'hdfs://d' WITH DBPROPERTIES ('a' = '1')
postgres: ALTER DATABASE d WITH IS_TEMPLATE true ALLOW_CONNECTIONS false
mysql: ALTER DATABASE d DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin
tsql: ALTER DATABASE d MODIFY (EDITION = 'Standard', MAXSIZE = 250 GB)
tsql: ALTER FULLTEXT INDEX ON dbo.t START FULL POPULATION
tsql: CREATE PARTITION SCHEME s AS PARTITION f ALL TO ([PRIMARY])
tsql: CREATE TYPE dbo.n FROM DECIMAL(38, 10) NOT NULL
oracle: CREATE OR REPLACE TYPE x AS OBJECT (a NUMBER, MEMBER FUNCTION f RETURN NUMBER) NOT FINAL
clickhouse: SYSTEM STOP REPLICATION QUEUES db.t
tsql: OPEN c
mysql: GET DIAGNOSTICS CONDITION 1 @a = CLASS_ORIGIN
mysql: CHECKSUM TABLE t EXTENDED
hive: MSCK TABLE t SYNC PARTITIONS
clickhouse: TRUNCATE TABLE IF EXISTS t ON CLUSTER '{cluster}' SYNC
clickhouse: ALTER TABLE t ON CLUSTER c COMMENT COLUMN a 'x'
clickhouse: ALTER TABLE t MODIFY COLUMN a REMOVE TTL
clickhouse: ALTER TABLE t MODIFY TTL day + INTERVAL 1 MONTH
snowflake: ALTER TABLE t RENAME CONSTRAINT a TO b
postgres: ALTER TABLE t ALTER COLUMN a SET (n_distinct = 5)
postgres: ALTER VIEW v SET (security_barrier = true)
databricks: ALTER VIEW v WITH SCHEMA TYPE EVOLUTION
databricks: ALTER MATERIALIZED VIEW v ADD SCHEDULE CRON '0 0 0 * * ? *' AT TIME ZONE 'UTC'
snowflake: ALTER TASK a REMOVE AFTER b, c
snowflake: DESC RESULT LAST_QUERY_ID()
postgres: ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 5
"""
ALL = [("spark", line) for line in SPARK.strip().splitlines()]
ALL += [(line.partition(": ")[0], line.partition(": ")[2]) for line in OTHERS.strip().splitlines()]
TABLES = {"db.t": [("id", ""), ("data", "")], "t": [("a", ""), ("mail", "")]}


@pytest.mark.parametrize(("dialect", "text"), ALL, ids=[text[:50] for _, text in ALL])
def test_administration_leaves_nothing_open(dialect: str, text: str) -> None:
    assert administration(text)
    for written in (text, f"/* every night */ {text}; -- done", text.replace(" ", "\n  ")):
        answer = answer_sql(written, dialect, TABLES)
        assert (answer["complete"], answer["edges"]) == (True, []), answer["unresolved"]


MOVING = (
    *("INSERT INTO u SELECT * FROM t", "AS SELECT * FROM t", "SELECT a INTO u FROM t", "MERGE INTO u USING t ON 1 = 1"),
    *("INSERT INTO u VALUES (1)", "COPY INTO u", "CREATE TABLE u AS SELECT 1", "/*! INSERT INTO u SELECT * FROM t */"),
    *("UPDATE u SET a = 1", "DELETE FROM u"),
)


@pytest.mark.parametrize("moving", MOVING)
def test_no_statement_that_moves_data_hides_in_one(moving: str) -> None:
    """Wherever it is put, behind the first two words, and without a semicolon."""
    for words in (text.split() for _, text in ALL):
        for place in range(2, len(words) + 1):
            mixed = " ".join([*words[:place], moving, *words[place:]])
            assert _in_quotes(words[:place]) or administration(mixed) is None, mixed


def _in_quotes(words: list[str]) -> bool:
    before = " ".join(words)
    return any(before.count(sign) % 2 for sign in "'`")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD UNIQUE (a), ADD COLUMN b TEXT GENERATED ALWAYS AS (upper(mail)) STORED",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t APPEND FROM s",
        "ALTER TABLE t SWAP WITH u",
        "ALTER TABLE t EXCHANGE PARTITION (day = 1) WITH TABLE u",
        "ALTER TABLE t ATTACH PARTITION p FROM u",
        "ALTER TABLE t SET LOCATION '/other'",
        "ALTER SHARE s ADD TABLE t",
        "ALTER DATABASE d ENABLE REPLICATION TO ACCOUNTS a",
        "CREATE PUBLICATION p FOR TABLE t",
        "CREATE SUBSCRIPTION p CONNECTION 'x' PUBLICATION p",
        "CREATE SYNONYM s FOR t",
        "UNDROP TABLE t",
        "RESTORE TABLE t TO VERSION AS OF 1",
        "BACKUP DATABASE d TO DISK = 'x'",
        "ALTER TASK nightly MODIFY AS INSERT INTO u SELECT * FROM t",
        "ALTER PROCEDURE p AS BEGIN INSERT INTO u SELECT * FROM t END",
        "CREATE RULE r AS ON INSERT TO t DO ALSO INSERT INTO u VALUES (new.a)",
        "GRANT SELECT ON t TO b INSERT INTO u SELECT * FROM t",
        "PRINT 'now' SELECT * INTO u FROM t",
        "PUT file:///tmp/x @stage",
        "CREATE DATABASE d TEMPLATE shop",
        "CREATE DATABASE d AS REPLICA OF org.a.d",
        "CREATE DATABASE d ENGINE = MySQL('host', 'shop', 'u', 'p')",
        "CREATE DATABASE d FROM SHARE p.s",
        "CREATE DATABASE LINK l CONNECT TO u IDENTIFIED BY p USING 'x'",
        "ALTER DATABASE d REFRESH",
        "ALTER SCHEMA s TRANSFER t",
        "ALTER MATERIALIZED VIEW m SET SCHEMA s",
        "ALTER FUNCTION f() RETURNS TABLE AS RETURN SELECT mail FROM t",
        "ALTER TABLE t ADD COLUMN up TEXT DEFAULT upper(mail)",
        "ALTER TABLE t ON CLUSTER c ADD COLUMN up String MATERIALIZED upper(mail)",
        "ALTER TABLE t DROP COLUMN mail",
        "ALTER TABLE t MODIFY COLUMN up String MATERIALIZED upper(mail)",
        "ALTER TABLE t MODIFY COLUMN mail String FIRST",
        "ALTER EXTERNAL TABLE t REFRESH",
        "ALTER TABLE t FREEZE WITH NAME 'kept'",
        "ALTER TABLE t MODIFY TTL day + INTERVAL 1 MONTH GROUP BY a SET mail = any(phone)",
        "ALTER TABLE t ON CLUSTER c UPDATE a = mail WHERE 1",
        "ALTER TABLE t MODIFY QUERY SELECT mail FROM s",
        "ALTER TABLE t SET (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.h))",
        "ALTER TABLE t SET (REMOTE_DATA_ARCHIVE = ON)",
        "ALTER TABLE t SET SCHEMA other",
        "ALTER STAGE s SET URL = 's3://other/'",
        "ALTER DATABASE d MODIFY NAME = e",
        "ALTER DATABASE d ADD SECONDARY ON SERVER s",
        "CREATE TYPE BODY x AS MEMBER PROCEDURE p IS BEGIN INSERT INTO u SELECT * FROM t; END; END",
        "CREATE DBT PROJECT p FROM '@stage/p'",
        "DEFINE TABLE d.t (a NUMBER)",
        "DEFINE DYNAMIC TABLE d.t TARGET_LAG = '1 DAY' AS SELECT a FROM t",
        "DEFINE PIPE p AS COPY INTO t FROM @s",
        "SPOOL people.txt",
        "ALTER FULLTEXT SELECT a INTO u FROM t INDEX ON dbo.t START FULL POPULATION",
        "DESC SELECT a INTO u FROM t",
        "EXECUTE TASK t",
        "EXEC sp_rename 't.a', 'b', 'COLUMN'",
        "EXEC sp_executesql N'SELECT 1'",
        "SYSTEM RESTORE REPLICA t",
        "OPEN c FOR SELECT mail FROM t",
        "DESC t SELECT mail INTO u FROM t",
        "DROP DATABASE LINK l INSERT INTO u SELECT * FROM t",
    ],
)
def test_what_moves_data_or_names_is_none(text: str) -> None:
    assert administration(text) is None


def test_what_is_not_supported_is_called_by_its_kind() -> None:
    """Whoever waives `UNDROP TABLE` does not waive `ALTER SHARE`."""
    assert kind_of("alter share s add table t") == "ALTER SHARE"
    assert kind_of("UNDROP TABLE t") == "UNDROP TABLE"
    assert kind_of("ship everything") == "SHIP"
    assert answer_sql("ALTER SHARE s ADD TABLE t", "snowflake", TABLES)["unresolved"] == [
        "the statement shares rows with others, which lineage does not follow; tables: t"
    ]
