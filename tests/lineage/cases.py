"""SQL with the lineage it must give: `source -> target KIND[ masked]`, and `column KIND` for the whole output."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMAS = {
    "payments": ["payment_id", "user_id", "pan", "phone", "city", "amount", "paid_at"],
    "users": ["user_id", "email", "age"],
    "merchants": ["merchant_id", "name"],
    "target": ["user_id", "pan", "total"],
    "parted": ["user_id", "pan", "ds"],
}


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    edges: str
    indirect: str = ""
    complete: bool = True
    dialect: str = "spark"
    schemas: bool = True


CASES = (
    Case("identity", "SELECT user_id FROM payments", "payments.user_id -> lineage_out.user_id IDENTITY"),
    Case("rename", "SELECT user_id AS uid FROM payments", "payments.user_id -> lineage_out.uid IDENTITY"),
    Case("cast", "SELECT CAST(user_id AS STRING) a FROM payments", "payments.user_id -> lineage_out.a TRANSFORMATION"),
    Case("hash masks", "SELECT sha2(pan, 256) h FROM payments", "payments.pan -> lineage_out.h TRANSFORMATION masked"),
    Case("hash by name", "SELECT xxhash64(pan) h FROM payments", "payments.pan -> lineage_out.h TRANSFORMATION masked"),
    Case(
        "aggregates",
        "SELECT city, sum(amount) s, count(pan) n, count(*) r FROM payments GROUP BY city HAVING max(paid_at) > 1",
        """payments.city -> lineage_out.city IDENTITY
        payments.amount -> lineage_out.s AGGREGATION
        payments.pan -> lineage_out.n AGGREGATION masked""",
        "payments.city GROUP_BY, payments.paid_at FILTER",
    ),
    Case(
        "masked aggregate",
        "SELECT sha1(string(sum(amount))) s FROM payments",
        "payments.amount -> lineage_out.s AGGREGATION masked",
    ),
    Case(
        "every column in a function",
        "SELECT to_json(struct(*)) j, sha2(concat_ws('|', u.*), 256) h, count(*) OVER () n FROM users u",
        """users.user_id -> lineage_out.j TRANSFORMATION
        users.email -> lineage_out.j TRANSFORMATION
        users.age -> lineage_out.j TRANSFORMATION
        users.user_id -> lineage_out.h TRANSFORMATION masked
        users.email -> lineage_out.h TRANSFORMATION masked
        users.age -> lineage_out.h TRANSFORMATION masked""",
    ),
    Case(
        "every column in a function, but some",
        "SELECT to_json(struct(* EXCEPT (age, email))) j, count(DISTINCT u.*) n FROM users u",
        """users.user_id -> lineage_out.j TRANSFORMATION
        users.user_id -> lineage_out.n AGGREGATION masked
        users.email -> lineage_out.n AGGREGATION masked
        users.age -> lineage_out.n AGGREGATION masked""",
        dialect="databricks",
    ),
    Case(
        "every column decides",
        "SELECT age FROM users WHERE coalesce(*) IS NOT NULL ORDER BY hash(*)",
        "users.age -> lineage_out.age IDENTITY",
        "users.user_id FILTER, users.email FILTER, users.age FILTER, "
        "users.user_id SORT, users.email SORT, users.age SORT",
    ),
    Case(
        "every column becomes rows",
        "SELECT t.c FROM users LATERAL VIEW explode(array(*)) t AS c",
        """users.user_id -> lineage_out.c TRANSFORMATION
        users.email -> lineage_out.c TRANSFORMATION
        users.age -> lineage_out.c TRANSFORMATION""",
    ),
    Case(
        "every column in an aggregate of a pivot",
        "SELECT a FROM users PIVOT (collect_list(struct(*)) FOR age IN (1 AS a))",
        """users.user_id -> lineage_out.a AGGREGATION
        users.email -> lineage_out.a AGGREGATION
        users.age -> lineage_out.a AGGREGATION
        users.age -> lineage_out.a CONDITIONAL""",
        "users.user_id GROUP_BY, users.email GROUP_BY",
    ),
    Case(
        "a text names what a pivot aggregates",
        "SELECT a FROM users PIVOT (max(IDENTIFIER('email')) FOR age IN (1 AS a))",
        """users.user_id -> lineage_out.a AGGREGATION
        users.email -> lineage_out.a AGGREGATION
        users.age -> lineage_out.a AGGREGATION
        users.age -> lineage_out.a CONDITIONAL""",
        "users.user_id GROUP_BY, users.email GROUP_BY",
        complete=False,
        dialect="databricks",
    ),
    Case(
        "a member of a struct of every column",
        "SELECT s.mail FROM (SELECT struct(*) AS s FROM (SELECT user_id, lower(email) AS mail FROM users))",
        "users.email -> lineage_out.mail TRANSFORMATION",
    ),
    Case(
        "every column in a function, of a table without a schema",
        "SELECT to_json(struct(*)) j FROM nowhere",
        "nowhere.* -> lineage_out.j TRANSFORMATION",
        complete=False,
    ),
    Case(
        "a column that a text names",
        "SELECT identifier('email') e FROM users",
        """users.user_id -> lineage_out.e TRANSFORMATION
        users.email -> lineage_out.e TRANSFORMATION
        users.age -> lineage_out.e TRANSFORMATION""",
        complete=False,
    ),
    Case(
        "columns that a text names, in a function",
        "SELECT sha2(columns('e.*'), 256) e FROM users",
        """users.user_id -> lineage_out.e TRANSFORMATION masked
        users.email -> lineage_out.e TRANSFORMATION masked
        users.age -> lineage_out.e TRANSFORMATION masked""",
        complete=False,
        dialect="duckdb",
    ),
    Case(
        "every column as an object",
        "SELECT object_construct(*) o FROM users",
        """users.user_id -> lineage_out.o TRANSFORMATION
        users.email -> lineage_out.o TRANSFORMATION
        users.age -> lineage_out.o TRANSFORMATION""",
        dialect="snowflake",
    ),
    Case(
        "case",
        "SELECT CASE WHEN amount > 1 THEN pan ELSE phone END x FROM payments",
        """payments.amount -> lineage_out.x CONDITIONAL
        payments.pan -> lineage_out.x TRANSFORMATION
        payments.phone -> lineage_out.x TRANSFORMATION""",
    ),
    Case(
        "coalesce",
        "SELECT coalesce(pan, 'x') x FROM payments",
        "payments.pan -> lineage_out.x CONDITIONAL\npayments.pan -> lineage_out.x TRANSFORMATION",
    ),
    Case(
        "window",
        "SELECT row_number() OVER (PARTITION BY city ORDER BY paid_at) n, lag(pan) OVER w p, sum(amount) OVER w s "
        "FROM payments WINDOW w AS (ORDER BY user_id)",
        """payments.city -> lineage_out.n WINDOW
        payments.paid_at -> lineage_out.n WINDOW
        payments.pan -> lineage_out.p TRANSFORMATION
        payments.user_id -> lineage_out.p WINDOW
        payments.amount -> lineage_out.s AGGREGATION
        payments.user_id -> lineage_out.s WINDOW""",
    ),
    Case(
        "join, filter, sort",
        "SELECT p.pan, u.email FROM payments p LEFT JOIN users u ON p.user_id = u.user_id "
        "WHERE u.age > 3 ORDER BY city",
        "payments.pan -> lineage_out.pan IDENTITY\nusers.email -> lineage_out.email IDENTITY",
        "payments.user_id JOIN, users.user_id JOIN, users.age FILTER, payments.city SORT",
    ),
    Case(
        "using",
        "SELECT user_id, email FROM payments JOIN users USING (user_id)",
        "payments.user_id -> lineage_out.user_id IDENTITY\nusers.email -> lineage_out.email IDENTITY",
        "payments.user_id JOIN, users.user_id JOIN",
    ),
    Case(
        "full join using",
        "SELECT user_id FROM payments FULL JOIN users USING (user_id)",
        "payments.user_id -> lineage_out.user_id IDENTITY\nusers.user_id -> lineage_out.user_id IDENTITY",
        "payments.user_id JOIN, users.user_id JOIN",
    ),
    Case(
        "anti join",
        "SELECT pan FROM payments p LEFT ANTI JOIN users u ON p.user_id = u.user_id",
        "payments.pan -> lineage_out.pan IDENTITY",
        "payments.user_id JOIN, users.user_id JOIN",
    ),
    Case(
        "subqueries",
        "SELECT pan, (SELECT max(email) FROM users u WHERE u.user_id = p.user_id) e FROM payments p "
        "WHERE EXISTS (SELECT 1 FROM merchants m WHERE m.name = p.city) AND amount IN (SELECT age FROM users)",
        "payments.pan -> lineage_out.pan IDENTITY\nusers.email -> lineage_out.e AGGREGATION",
        "users.user_id FILTER, payments.user_id FILTER, merchants.name FILTER, payments.city FILTER, "
        "payments.amount FILTER, users.age FILTER",
    ),
    Case(
        "composition keeps the strongest",
        "WITH a AS (SELECT user_id u, sum(amount) t FROM payments GROUP BY user_id), "
        "b AS (SELECT md5(u) h, t+1 t FROM a) "
        "SELECT upper(h) h, t FROM b",
        "payments.user_id -> lineage_out.h TRANSFORMATION masked\npayments.amount -> lineage_out.t AGGREGATION",
        "payments.user_id GROUP_BY",
    ),
    Case(
        "union by position",
        "SELECT pan x FROM payments UNION ALL SELECT email FROM users",
        "payments.pan -> lineage_out.x IDENTITY\nusers.email -> lineage_out.x IDENTITY",
    ),
    Case(
        "except",
        "SELECT user_id FROM payments EXCEPT ALL SELECT user_id FROM users",
        "payments.user_id -> lineage_out.user_id IDENTITY",
        "users.user_id FILTER",
    ),
    Case(
        "distinct",
        "SELECT DISTINCT city FROM payments",
        "payments.city -> lineage_out.city IDENTITY",
        "payments.city GROUP_BY",
    ),
    Case(
        "recursive",
        "WITH RECURSIVE r(n) AS (SELECT user_id FROM users UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "users.user_id -> lineage_out.n IDENTITY\nusers.user_id -> lineage_out.n TRANSFORMATION",
    ),
    Case(
        "lateral view",
        "SELECT w FROM payments LATERAL VIEW explode(split(city, ' ')) t AS w",
        "payments.city -> lineage_out.w TRANSFORMATION",
    ),
    Case(
        "pivot",
        "SELECT * FROM (SELECT user_id, city, amount FROM payments) PIVOT (sum(amount) FOR city IN ('blr' AS blr))",
        """payments.user_id -> lineage_out.user_id IDENTITY
        payments.amount -> lineage_out.blr AGGREGATION
        payments.city -> lineage_out.blr CONDITIONAL""",
        "payments.user_id GROUP_BY",
    ),
    Case(
        "struct member",
        "SELECT s.id FROM (SELECT named_struct('id', user_id, 'p', pan) s FROM payments)",
        "payments.user_id -> lineage_out.id IDENTITY",
    ),
    Case(
        "star of a struct",
        "SELECT s.* FROM (SELECT named_struct('id', user_id, 'p', pan) s FROM payments)",
        "payments.user_id -> lineage_out.id IDENTITY\npayments.pan -> lineage_out.p IDENTITY",
    ),
    Case(
        "lateral alias",
        "SELECT amount + 1 AS a, a * 2 AS b FROM payments",
        "payments.amount -> lineage_out.a TRANSFORMATION\npayments.amount -> lineage_out.b TRANSFORMATION",
    ),
    Case("star without schema", "SELECT * FROM nowhere", "nowhere.* -> lineage_out.* IDENTITY", complete=False),
    Case(
        "column of an unknown table",
        "SELECT a FROM nowhere",
        "nowhere.a -> lineage_out.a IDENTITY",
    ),
    Case(
        "two unknown tables",
        "SELECT a FROM one JOIN two ON one.x = two.x",
        "one.a -> lineage_out.a IDENTITY\ntwo.a -> lineage_out.a IDENTITY",
        "one.x JOIN, two.x JOIN",
        complete=False,
    ),
    Case(
        "insert by position",
        "INSERT INTO target SELECT user_id, phone, amount FROM payments",
        """payments.user_id -> target.user_id IDENTITY
        payments.phone -> target.pan IDENTITY
        payments.amount -> target.total IDENTITY""",
    ),
    Case(
        "insert with a list",
        "INSERT INTO target (total, pan) SELECT amount, pan FROM payments",
        "payments.amount -> target.total IDENTITY\npayments.pan -> target.pan IDENTITY",
    ),
    Case(
        "insert by name",
        "INSERT INTO target BY NAME SELECT pan FROM payments",
        "payments.pan -> target.pan IDENTITY",
    ),
    Case(
        "static partition",
        "INSERT OVERWRITE TABLE parted PARTITION (ds = 'x') SELECT user_id, pan FROM payments",
        "payments.user_id -> parted.user_id IDENTITY\npayments.pan -> parted.pan IDENTITY",
    ),
    Case(
        "dynamic partition",
        "INSERT OVERWRITE TABLE parted PARTITION (ds) SELECT user_id, pan, paid_at FROM payments",
        """payments.user_id -> parted.user_id IDENTITY
        payments.pan -> parted.pan IDENTITY
        payments.paid_at -> parted.ds IDENTITY""",
    ),
    Case(
        "insert with the wrong width",
        "INSERT INTO target SELECT user_id FROM payments",
        """payments.user_id -> target.user_id TRANSFORMATION
        payments.user_id -> target.pan TRANSFORMATION
        payments.user_id -> target.total TRANSFORMATION""",
        complete=False,
    ),
    Case(
        "insert into an unknown table",
        "INSERT INTO nowhere SELECT a FROM elsewhere",
        "elsewhere.a -> nowhere.a IDENTITY",
        complete=False,
    ),
    Case(
        "directory",
        "INSERT OVERWRITE DIRECTORY '/lakehouse/out' USING csv OPTIONS (header 'true') SELECT pan FROM payments",
        "payments.pan -> path.`/lakehouse/out`.pan IDENTITY",
    ),
    Case(
        "multi insert",
        "FROM payments INSERT OVERWRITE TABLE parted PARTITION (ds='a') SELECT user_id, pan WHERE amount > 1 "
        "INSERT INTO merchants SELECT user_id, city",
        """payments.user_id -> parted.user_id IDENTITY
        payments.pan -> parted.pan IDENTITY
        payments.user_id -> merchants.merchant_id IDENTITY
        payments.city -> merchants.name IDENTITY""",
        "payments.amount FILTER",
        dialect="hive",
    ),
    Case(
        "merge",
        "MERGE INTO target t USING (SELECT user_id, pan, amount FROM payments) s ON t.user_id = s.user_id "
        "WHEN MATCHED AND s.amount > 0 THEN UPDATE SET t.total = t.total + s.amount "
        "WHEN NOT MATCHED THEN INSERT (user_id, pan) VALUES (s.user_id, s.pan) WHEN NOT MATCHED BY SOURCE THEN DELETE",
        """target.total -> target.total TRANSFORMATION
        payments.amount -> target.total TRANSFORMATION
        payments.user_id -> target.user_id IDENTITY
        payments.pan -> target.pan IDENTITY""",
        "target.user_id JOIN, payments.user_id JOIN, payments.amount FILTER",
    ),
    Case(
        "merge star",
        "MERGE INTO target USING payments ON target.user_id = payments.user_id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        "payments.user_id -> target.user_id IDENTITY\npayments.pan -> target.pan IDENTITY",
        "target.user_id JOIN, payments.user_id JOIN",
    ),
    Case(
        "update from",
        "UPDATE target SET pan = upper(p.pan) FROM payments p WHERE p.user_id = target.user_id",
        "payments.pan -> target.pan TRANSFORMATION",
        "payments.user_id FILTER, target.user_id FILTER",
    ),
    Case("delete", "DELETE FROM target WHERE user_id IN (SELECT user_id FROM users)", "",
         "target.user_id FILTER, users.user_id FILTER"),
    Case(
        "temporary view",
        "CREATE TEMPORARY VIEW v AS SELECT pan, amount FROM payments WHERE city = 'x'; "
        "CREATE TABLE done AS SELECT upper(pan) p FROM v",
        "payments.pan -> done.p TRANSFORMATION",
        "payments.city FILTER",
    ),
    Case(
        "contraction",
        "CREATE TABLE mid AS SELECT user_id u, amount FROM payments; "
        "CREATE TABLE done AS SELECT u, amount * 2 a FROM mid",
        "payments.user_id -> done.u IDENTITY\npayments.amount -> done.a TRANSFORMATION",
    ),
    Case(
        "shallow clone",
        "CREATE OR REPLACE TABLE dev SHALLOW CLONE users VERSION AS OF 3 LOCATION '/x'",
        """users.user_id -> dev.user_id IDENTITY
        users.email -> dev.email IDENTITY
        users.age -> dev.age IDENTITY""",
    ),
    Case("clone of an unknown path", "CREATE TABLE delta.`/a` DEEP CLONE delta.`/b`",
         "delta.`/b`.* -> delta.`/a`.* IDENTITY", complete=False),
    Case(
        "iceberg snapshot",
        "CALL lake.system.snapshot('users', 'lake.dev.copy')",
        """users.user_id -> lake.dev.copy.user_id IDENTITY
        users.email -> lake.dev.copy.email IDENTITY
        users.age -> lake.dev.copy.age IDENTITY""",
    ),
    Case("unknown procedure", "CALL sys.do_something('x')", "", complete=False),
    Case("maintenance", "CALL lake.system.expire_snapshots('users'); VACUUM users; OPTIMIZE users", ""),
    Case(
        "copy into",
        "COPY INTO target FROM '/landing' FILEFORMAT = PARQUET",
        """path.`/landing`.user_id -> target.user_id IDENTITY
        path.`/landing`.pan -> target.pan IDENTITY
        path.`/landing`.total -> target.total IDENTITY""",
        dialect="databricks",
    ),
    Case(
        "transform is opaque",
        "SELECT TRANSFORM(pan, city) USING 'cat' AS (x, y) FROM payments",
        """payments.pan -> lineage_out.x TRANSFORMATION
        payments.city -> lineage_out.x TRANSFORMATION
        payments.pan -> lineage_out.y TRANSFORMATION
        payments.city -> lineage_out.y TRANSFORMATION""",
        complete=False,
    ),
    Case("rename column", "ALTER TABLE users RENAME COLUMN email TO mail", "users.email -> users.mail IDENTITY"),
    Case("conflict", "INSERT INTO merchants SELECT user_id, email FROM users ON CONFLICT (merchant_id) DO UPDATE "
         "SET name = EXCLUDED.name || merchants.name",
         """users.user_id -> merchants.merchant_id IDENTITY
         users.email -> merchants.name IDENTITY
         users.email -> merchants.name TRANSFORMATION
         merchants.name -> merchants.name TRANSFORMATION""", dialect="postgres"),
    Case("insert all", "INSERT ALL WHEN age > 1 THEN INTO merchants (name) VALUES (email) SELECT email, age FROM users",
         "users.email -> merchants.name IDENTITY", "users.age FILTER", dialect="oracle"),
    Case("partition from elsewhere", "ALTER TABLE parted ADD PARTITION (ds = 'x') LOCATION '/y'",
         """path.`/y`.user_id -> parted.user_id IDENTITY
         path.`/y`.pan -> parted.pan IDENTITY
         path.`/y`.ds -> parted.ds IDENTITY"""),
    Case("swap", "ALTER TABLE merchants SWAP WITH merchants_new",
         """merchants.merchant_id -> merchants_new.merchant_id IDENTITY
         merchants.name -> merchants_new.name IDENTITY
         merchants_new.merchant_id -> merchants.merchant_id IDENTITY
         merchants_new.name -> merchants.name IDENTITY""", dialect="snowflake"),
    Case("changed column", "ALTER TABLE users CHANGE COLUMN email mail string", "users.email -> users.mail IDENTITY"),
    Case("renamed table", "ALTER TABLE users RENAME TO people; CREATE TABLE z AS SELECT email FROM people",
         "users.email -> z.email IDENTITY"),
    Case("match recognize", "SELECT user_id FROM users MATCH_RECOGNIZE (PARTITION BY age ORDER BY user_id "
         "MEASURES email AS e PATTERN (x) DEFINE x AS age > 1)",
         "users.user_id -> lineage_out.user_id IDENTITY", complete=False, dialect="snowflake"),
    Case("array of structs", "SELECT ARRAY(SELECT AS STRUCT email, age FROM users) AS k",
         "users.email -> lineage_out.k TRANSFORMATION\nusers.age -> lineage_out.k TRANSFORMATION", dialect="bigquery"),
    Case("same name in another database", "INSERT INTO archive.users SELECT * FROM users",
         """users.user_id -> archive.users.user_id IDENTITY
         users.email -> archive.users.email IDENTITY
         users.age -> archive.users.age IDENTITY"""),
    Case("procedure", "CREATE PROCEDURE p AS BEGIN INSERT INTO target (pan) SELECT pan FROM payments END",
         "payments.pan -> target.pan IDENTITY", dialect="tsql"),
    Case("procedure with control flow and no semicolons", """CREATE PROCEDURE p (@d date) AS BEGIN
           BEGIN TRY
             IF EXISTS (SELECT 1 FROM users)
             BEGIN
               INSERT INTO merchants (merchant_id, name)
               SELECT user_id, email FROM users WHERE age > 3
               UPDATE merchants SET name += 'x'
             END
             ELSE TRUNCATE TABLE merchants
           END TRY
           BEGIN CATCH
             THROW;
           END CATCH
         END;
         INSERT INTO target (pan) SELECT pan FROM payments""",
         """users.user_id -> merchants.merchant_id IDENTITY
         users.email -> merchants.name IDENTITY
         users.email -> merchants.name TRANSFORMATION
         payments.pan -> target.pan IDENTITY""", "users.age FILTER", dialect="tsql"),
    Case("quoted procedure", """CREATE PROCEDURE f() LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN
         IF x > 1 THEN INSERT INTO merchants SELECT user_id, email FROM users; END IF; END; $$""",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", dialect="postgres"),
    Case("a value through a variable", """CREATE PROCEDURE f() LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN
         SELECT age INTO x FROM users; END; $$""", "", complete=False, dialect="postgres"),
    Case("a function's body", """CREATE FUNCTION f() RETURNS void AS $$ BEGIN
         INSERT INTO merchants SELECT user_id, email FROM users; END; $$ LANGUAGE plpgsql""",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", complete=False,
         dialect="postgres"),
    Case("a procedure in Python", "CREATE PROCEDURE f() LANGUAGE PYTHON AS $$ run('INSERT INTO a SELECT 1') $$", "",
         complete=False, dialect="snowflake"),
    Case("block", "BEGIN INSERT INTO merchants SELECT user_id, email FROM users; EXCEPTION WHEN ERROR THEN SELECT 1; END;",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", dialect="bigquery"),
    Case("transaction", "BEGIN; INSERT INTO merchants SELECT user_id, email FROM users; COMMIT",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", dialect="postgres"),
    Case("no semicolons", "INSERT INTO merchants SELECT user_id, email FROM users\nSELECT pan FROM payments",
         """users.user_id -> merchants.merchant_id IDENTITY
         users.email -> merchants.name IDENTITY
         payments.pan -> lineage_out.pan IDENTITY""", dialect="tsql"),
    Case("task", "CREATE TASK t WAREHOUSE = w AS INSERT INTO merchants SELECT user_id, email FROM users",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", dialect="snowflake"),
    Case("static partition of a table without schema", "INSERT INTO nowhere PARTITION (ds = 1) SELECT * FROM elsewhere",
         "elsewhere.* -> nowhere.* IDENTITY", complete=False),
    Case("joins in parentheses", "SELECT m.name, u.email FROM ((payments p LEFT JOIN users u ON p.user_id = u.user_id) "
         "LEFT JOIN merchants m ON m.merchant_id = p.city)",
         "merchants.name -> lineage_out.name IDENTITY\nusers.email -> lineage_out.email IDENTITY",
         "payments.user_id JOIN, users.user_id JOIN, merchants.merchant_id JOIN, payments.city JOIN"),
    Case("query and table in parentheses", "SELECT pan, email FROM ((SELECT pan FROM payments), users)",
         "payments.pan -> lineage_out.pan IDENTITY\nusers.email -> lineage_out.email IDENTITY"),
    Case("lateral view in parentheses", "SELECT w FROM (payments CROSS JOIN users LATERAL VIEW explode(split(city, ' ')) t AS w)",
         "payments.city -> lineage_out.w TRANSFORMATION"),
    Case("star of an expression", "SELECT f(pan).* FROM payments", "payments.pan -> lineage_out..* TRANSFORMATION",
         complete=False),
    Case("a window made from a window", "SELECT rank() OVER v r FROM users WINDOW w AS (PARTITION BY age), v AS (w ORDER BY email)",
         "users.email -> lineage_out.r WINDOW\nusers.age -> lineage_out.r WINDOW"),
    Case("table function nobody knows", "SELECT * FROM leak(1)", "", complete=False),
    Case("change feed", "SELECT email FROM table_changes('users', 2)", "users.email -> lineage_out.email IDENTITY",
         dialect="databricks"),
    Case("read_files", "SELECT a FROM read_files('/landing', format => 'csv')",
         "path.`/landing`.a -> lineage_out.a IDENTITY", dialect="databricks"),
    Case("a column of either unknown table under a star", "SELECT a FROM (SELECT * FROM one JOIN two ON one.x = two.x)",
         "one.a -> lineage_out.a IDENTITY\ntwo.a -> lineage_out.a IDENTITY", "one.x JOIN, two.x JOIN", complete=False),
    Case("export", "EXPORT TABLE merchants TO '/x'", "merchants.merchant_id -> path.`/x`.merchant_id IDENTITY\n"
         "merchants.name -> path.`/x`.name IDENTITY", dialect="hive"),
    Case("import", "IMPORT TABLE merchants FROM '/x'", "path.`/x`.merchant_id -> merchants.merchant_id IDENTITY\n"
         "path.`/x`.name -> merchants.name IDENTITY", dialect="hive"),
    Case("export data", "EXPORT DATA OPTIONS (uri = 'gs://b/x/*.csv', format = 'CSV') AS SELECT email FROM users",
         "users.email -> path.`gs://b/x`.email IDENTITY", dialect="bigquery"),
    Case("unload", "UNLOAD ('SELECT email FROM users WHERE age > 1') TO 's3://b/x' IAM_ROLE 'r'",
         "users.email -> path.`s3://b/x`.email IDENTITY", "users.age FILTER", dialect="redshift"),
    Case("copy out", "COPY (SELECT email FROM users) TO '/x.csv'", "users.email -> path.`/x.csv`.email IDENTITY",
         dialect="postgres"),
    Case("copy to a stage", "COPY INTO @stage/x FROM (SELECT email FROM users)",
         "users.email -> path.`@stage/x`.email IDENTITY", dialect="snowflake"),
    Case("exchange partition", "ALTER TABLE parted EXCHANGE PARTITION (ds = 1) WITH TABLE other", "other.user_id -> parted.user_id "
         "IDENTITY\nother.pan -> parted.pan IDENTITY\nother.ds -> parted.ds IDENTITY", dialect="hive"),
    Case("rename statement", "RENAME TABLE merchants TO shops; CREATE TABLE z AS SELECT name FROM shops",
         "merchants.name -> z.name IDENTITY", dialect="mysql"),
    Case("convert", "CONVERT TO DELTA parquet.`/x`", "parquet.`/x`.* -> delta.`/x`.* IDENTITY", complete=False,
         dialect="databricks"),
    Case("restore brings nothing of another table", "RESTORE TABLE users TO VERSION AS OF 3", "", dialect="databricks"),
    Case("replace into", "REPLACE INTO merchants SELECT user_id, email FROM users",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", dialect="mysql"),
    Case("update with a join", "UPDATE users JOIN payments ON users.user_id = payments.user_id SET users.email = payments.pan",
         "payments.pan -> users.email IDENTITY", "users.user_id JOIN, payments.user_id JOIN", dialect="mysql"),
    Case("a write in a WITH clause", "WITH m AS (DELETE FROM users WHERE age > 3 RETURNING *) "
         "INSERT INTO merchants SELECT user_id, email FROM m",
         "users.user_id -> merchants.merchant_id IDENTITY\nusers.email -> merchants.name IDENTITY", "users.age FILTER",
         dialect="postgres"),
    Case("columns of an intermediate table that nobody reads are ends",
         "CREATE TABLE mid AS SELECT user_id, email FROM users; CREATE TABLE z AS SELECT email FROM mid",
         "users.email -> z.email IDENTITY\nusers.user_id -> mid.user_id IDENTITY"),
    Case("a dropped intermediate table is no end",
         "CREATE TABLE mid AS SELECT user_id, email FROM users; CREATE TABLE z AS SELECT email FROM mid; DROP TABLE mid",
         "users.email -> z.email IDENTITY"),
    Case("an older column of an intermediate table", "INSERT INTO target (pan) SELECT pan FROM payments; "
         "CREATE TABLE z AS SELECT pan, total FROM target",
         "payments.pan -> z.pan IDENTITY\ntarget.total -> z.total IDENTITY"),
    Case("the query names the columns of a new target", "INSERT INTO brand_new SELECT email AS mail FROM users",
         "users.email -> brand_new.mail IDENTITY"),
    Case("merge that adds columns", "MERGE WITH SCHEMA EVOLUTION INTO merchants USING users ON merchants.merchant_id = users.user_id "
         "WHEN NOT MATCHED THEN INSERT *",
         """users.user_id -> merchants.user_id IDENTITY
         users.email -> merchants.email IDENTITY
         users.age -> merchants.age IDENTITY""", "merchants.merchant_id JOIN, users.user_id JOIN", dialect="databricks"),
    Case("ORDER BY means the output", "SELECT u.email AS city FROM payments p, users u ORDER BY city",
         "users.email -> lineage_out.city IDENTITY", "users.email SORT"),
    Case("WHERE may mean an alias", "SELECT email AS mail FROM users WHERE mail > 'a'",
         "users.email -> lineage_out.mail IDENTITY", "users.email FILTER", dialect="snowflake"),
    Case("whole row", "SELECT to_json_string(u) AS j FROM users u", """users.user_id -> lineage_out.j TRANSFORMATION
         users.email -> lineage_out.j TRANSFORMATION
         users.age -> lineage_out.j TRANSFORMATION""", dialect="bigquery"),
    Case("EXCEPT of one side", "SELECT * EXCEPT (u.user_id) FROM merchants m JOIN users u ON m.merchant_id = u.user_id",
         """merchants.merchant_id -> lineage_out.merchant_id IDENTITY
         merchants.name -> lineage_out.name IDENTITY
         users.email -> lineage_out.email IDENTITY
         users.age -> lineage_out.age IDENTITY""", "merchants.merchant_id JOIN, users.user_id JOIN"),
    Case("EXISTS selects nothing", "SELECT name FROM merchants WHERE EXISTS (SELECT * FROM users WHERE age = merchant_id)",
         "merchants.name -> lineage_out.name IDENTITY", "users.age FILTER, merchants.merchant_id FILTER"),
    Case("column aliases of an unknown table", "SELECT a FROM nowhere AS n (a, b)", "nowhere.* -> lineage_out.a TRANSFORMATION",
         complete=False),
    Case("aliases before a pivot", "SELECT v FROM users AS u (a, b, c) UNPIVOT (v FOR k IN (b, c))",
         "users.email -> lineage_out.v IDENTITY\nusers.age -> lineage_out.v IDENTITY", dialect="snowflake"),
    Case("rows of a function", "SELECT r.id, email FROM users CROSS JOIN range(3) r", "users.email -> lineage_out.email IDENTITY"),
    Case("create schema", "CREATE SCHEMA s", ""),
    Case("not a statement", "FROBNICATE x", "", complete=False),
    Case("does not parse", "SELEC pan FRM payments WHERE", "", complete=False),
    Case("select into", "SELECT TOP 5 email AS mail INTO copy FROM users", "users.email -> copy.mail IDENTITY",
         dialect="tsql"),
    Case("unnest", "SELECT w FROM payments CROSS JOIN UNNEST(split(city, ' ')) AS u (w)",
         "payments.city -> lineage_out.w TRANSFORMATION", dialect="trino"),
    Case("qualify", "SELECT email FROM users QUALIFY row_number() OVER (PARTITION BY age ORDER BY user_id) = 1",
         "users.email -> lineage_out.email IDENTITY", "users.age FILTER, users.user_id FILTER", dialect="snowflake"),
)  # fmt: skip
