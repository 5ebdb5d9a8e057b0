"""`init --discover`: from folders and buckets alone to an estate file whose plan is complete, with no value in it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake

from pii_tracer.app import Settings, inventory, plan
from pii_tracer.cli.main import run as cli
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.model.errors import ExitCode
from sample_lineage import s3_standin
from tests.cli.small import request
from tests.s3support import REGION, World, standin, world

__all__ = ["standin", "world"]

USERS = pa.table(
    {
        "customer_id": [71234501, 71234502, 71234503],
        "contactEmail": ["asha@north.example", "chen@north.example", None],
        "mobile": ["+91 98450 11111", "+91 98450 22222", "+91 98450 33333"],
    }
)
ODD = "news\nletter: {x} #1"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "lake/crm/customers", USERS)
    orders = {"order_id": [10, 11], "customer_id": [71234501, 71234503], "amount": [1.0, 2.0]}
    write_deltalake(tmp_path / "lake/crm/orders", pa.table(orders))
    write_deltalake(tmp_path / "lake/dev/customers_copy", USERS)
    trips = pa.table({"trip_id": [1], "customer_id": [900]})
    write_deltalake(tmp_path / "lake/fleet/trips", trips)
    for name in (ODD, "calls"):
        (tmp_path / "lake/exports" / name).mkdir(parents=True)
    pq.write_table(USERS.select(["contactEmail", "customer_id"]), tmp_path / "lake/exports" / ODD / "p.parquet")
    calls = pa.table({"CustomerID": [71234501], "length": [60]})
    pc.write_csv(calls, tmp_path / "lake/exports/calls/c.csv")
    return tmp_path


def made(base: Path, *words: str) -> Estate:
    assert cli(["init", str(base), "--state", str(base / "state"), *words]) == ExitCode.DONE
    return load_estate(base / "pii-tracer.yaml")


def test_the_plan_of_a_drafted_estate_erases_from_every_table(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = made(lake, "--discover", str(lake / "lake"))
    said = capsys.readouterr()
    text = (lake / "pii-tracer.yaml").read_text()
    for value in ("71234501", "asha", "98450", "north.example"):
        assert value not in text + said.out + said.err
    [subject] = estate.subjects
    assert (subject.name, subject.source, subject.key) == ("customer", "crm.customers", "customer_id")
    assert {i.column: i.category for i in subject.identifiers} == {"contactEmail": "email", "mobile": "phone"}
    assert "# - {table: fleet.trips" in text, "none of its keys is a customer's: named, and not taken"
    assert {t.location for t in estate.catalogs["spark_catalog"].tables} >= {f"lake/exports/{ODD}", "lake/crm/orders"}
    assert estate.dev_roots == ("lake/dev",)
    settings = Settings(lake / "pii-tracer.yaml", lake / "state")
    assert not inventory(settings).gaps
    (lake / "request.yaml").write_text(request("customer", "71234501"))
    found = plan(settings, [lake / "request.yaml"]).plan
    assert found.complete
    assert {copy.table for copy in found.copies} == {
        "crm.customers",
        "crm.orders",
        "dev.customers_copy",
        "exports.calls",
        "exports.news_letter_x_1",
    }


def test_lineage_is_told_apart(lake: Path) -> None:
    (lake / "jobs").mkdir()
    (lake / "jobs" / "a.sql").write_text("SELECT 1;\n")
    (lake / "events.ndjson").write_text("")
    (lake / "shop").mkdir()
    (lake / "shop" / "dbt_project.yml").write_text("name: shop\n")
    words = [word for name in ("jobs", "events.ndjson", "shop") for word in ("--lineage", str(lake / name))]
    estate = made(lake, "--discover", str(lake / "lake"), *words)
    assert (estate.lineage.sql, estate.lineage.events, estate.lineage.dbt) == (("jobs",), ("events.ndjson",), ("shop",))
    file = lake / "pii-tracer.yaml"
    file.write_text(file.read_text().replace("  # dialect: athena", "  dialect: athena"))
    assert load_estate(file).lineage.dialect == "athena", "the comment is a line to take in"


def test_a_dbt_project_without_a_manifest_says_how_to_make_it(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lake / "shop").mkdir()
    (lake / "shop" / "dbt_project.yml").write_text("name: shop\n")
    made(lake, "--discover", str(lake / "lake"), "--lineage", str(lake / "shop"))
    assert "shop has no target/manifest.json yet: run `dbt compile` there" in capsys.readouterr().out
    words = ["--estate", str(lake / "pii-tracer.yaml"), "--state", str(lake / "state")]
    assert cli(["harvest", *words]) == ExitCode.ERROR
    said = capsys.readouterr().err
    assert "the dbt project has no manifest" in said
    assert f"where: {lake / 'shop/target/manifest.json'}" in said
    assert "run `dbt compile` in the project" in said


def test_columns_with_the_sources_values_are_comments_to_take_in(tmp_path: Path) -> None:
    """Uncommented, the lines are right as they are; until then a table that a job makes stays lineage's."""
    write_deltalake(tmp_path / "lake/crm/customers", USERS)
    sent = pa.table({"sent_to": ["asha@north.example", "chen@north.example"]})
    write_deltalake(tmp_path / "lake/mail/log", sent)
    assert made(tmp_path, "--discover", str(tmp_path / "lake")).subjects[0].tables == ()
    text = (tmp_path / "pii-tracer.yaml").read_text()
    assert "- {table: mail.log, key: sent_to, of: contactEmail}" in text
    (tmp_path / "pii-tracer.yaml").write_text(
        text.replace("    # tables:", "    tables:").replace("      # - {table", "      - {table")
    )
    [table] = load_estate(tmp_path / "pii-tracer.yaml").subjects[0].tables
    assert (table.table, table.key, table.of) == ("mail.log", "sent_to", "contactEmail")


def test_another_number_is_a_comment_until_its_owner_takes_it_in(tmp_path: Path) -> None:
    """Without a word of the owner a table that has it alone keeps its rows."""
    keys, numbers = [71234000 + n for n in range(20)], [f"N-{n:05}" for n in range(20)]
    people = {"customer_id": keys, "email": [f"a{n}@x.example" for n in keys], "customer_no": numbers}
    write_deltalake(tmp_path / "lake/crm/customers", pa.table(people))
    write_deltalake(tmp_path / "lake/crm/gifts", pa.table({"receiver": numbers}))
    [subject] = made(tmp_path, "--discover", str(tmp_path / "lake")).subjects
    assert ([i.column for i in subject.identifiers], subject.tables) == (["email"], ())
    file = tmp_path / "pii-tracer.yaml"
    text = file.read_text()
    assert "# guess: take it in only if it is the same person's\n" in text
    assert "100% of its values are in the source; only if you take in customer_no above" in text
    file.write_text(text.replace("# - {", "- {").replace("# tables:", "tables:"))
    [subject] = load_estate(file).subjects
    assert [(table.key, table.of) for table in subject.tables] == [("receiver", "customer_no")]


def test_a_persons_row_is_no_header(tmp_path: Path) -> None:
    """Her cells are words, and those of all others are not; but a table knows her name."""
    people = {"customer_id": [71234501, 71234502], "email": ["a@x.example", "b@x.example"], "of": ["Asha Rao", "Jo Li"]}
    write_deltalake(tmp_path / "lake/crm/customers", pa.table(people))
    (tmp_path / "lake/exports/notes").mkdir(parents=True)
    (tmp_path / "lake/exports/notes/a.csv").write_text("asha rao;soon;later\nJo Li, x;5;6\n")
    estate = made(tmp_path, "--discover", str(tmp_path / "lake"))
    [notes] = [t for t in estate.catalogs["spark_catalog"].tables if t.name == "exports.notes"]
    assert (dict(notes.options), notes.columns) == ({}, ())
    assert "asha" not in (tmp_path / "pii-tracer.yaml").read_text().lower()


def test_a_folder_above_the_root_makes_no_development_clones(tmp_path: Path) -> None:
    """Whoever names a folder means it, wherever it lies; `dev` in the way there says nothing of its tables."""
    write_deltalake(tmp_path / "dev/disk1/crm/customers", USERS)
    write_deltalake(tmp_path / "dev/disk1/sandbox/customers", USERS)
    estate = made(tmp_path / "mine", "--discover", str(tmp_path / "dev/disk1"))
    assert estate.dev_roots == (str(tmp_path / "dev/disk1/sandbox"),)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ftp://host/lake"], "`--discover` cannot search a `ftp:` place"),
        (["https://a.blob.core.windows.net/c/x?sig=S3CRET"], "an address with `?` or `#` can hold a signature"),
        (["HTTPS://shop.example/x#S3CRET"], "an address with `?` or `#` can hold a signature"),
        (["abfss://lake@shop.dfs.core.windows.net/x?sv=1&sig=S3CRET"], "can hold a signature"),
        (["https://a.blob.core.windows.net/c/x"], "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        (["https://a.dfs.core.windows.net:443/c/x"], "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        (["gs://u:S3CRET@b/x"], "write gs://BUCKET/PREFIX"),
        (["gs:///lake"], "write gs://bucket/prefix"),
        (["hdfs:///lake"], "write hdfs://host:port/path"),
        (["abfss://lake/users"], "write abfss://container@account.dfs.core.windows.net/path"),
        (["hdfs://127.0.0.1:1/lake"], "add `--webhdfs http://HOST:PORT`"),
        (
            ["hdfs://a/x", "--discover", "hdfs://b/x", "--webhdfs", "http://c:1"],
            "write `--webhdfs hdfs://a=http://c:1`",
        ),
        (["hdfs://a/x", "--webhdfs", "http://me:secret@c:1"], "write `http://host:port`"),
        (["nowhere"], "there is no such folder"),
        (["http://127.0.0.1:1/api/v2"], "needs `warehouse`"),
        (["thrift://user@host:1"], "`--discover` cannot search a `thrift:` place"),
    ],
)
def test_what_cannot_be_looked_into_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert cli(["init", str(tmp_path), "--state", str(tmp_path / "state"), "--discover", *words]) != ExitCode.DONE
    told = "".join(capsys.readouterr())
    assert said in told
    assert "S3CRET" not in told
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_a_name_node_that_is_not_there_is_refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--discover", str(lake / "lake"), "--webhdfs", "nn=http://c:1"]
    assert cli(["init", str(lake), "--state", str(lake / "state"), *words]) == ExitCode.USAGE
    assert (
        "names hdfs://nn, which is not a NameNode of these places: no place in HDFS was found"
        in capsys.readouterr().err
    )


def test_a_table_in_a_persons_folder_is_not_named(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deltalake(lake / "lake/users/asha@north.example/orders", USERS)
    estate = made(lake, "--discover", str(lake / "lake"))
    text = (lake / "pii-tracer.yaml").read_text()
    assert "asha" not in text + "".join(capsys.readouterr())
    assert "# look at this: 1 table in folders whose names look like mails" in text
    assert "crm.customers" in {table.name for table in estate.catalogs["spark_catalog"].tables}


def test_an_estate_file_is_never_written_over(lake: Path) -> None:
    (lake / "pii-tracer.yaml").write_text("version: 1\n")
    words = ["init", str(lake), "--state", str(lake / "state"), "--discover", str(lake / "lake")]
    assert cli(words) == ExitCode.USAGE
    assert (lake / "pii-tracer.yaml").read_text() == "version: 1\n"


def test_no_password_gets_into_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address of a store is written into the estate file, which everybody reads."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:s3cr3t@store.example:9000")
    assert cli(["init", str(tmp_path), "--discover", "s3://lake/app", "--region", REGION]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert "must not contain a user or password" in said.err
    assert "s3cr3t" not in said.out + said.err
    assert not (tmp_path / "pii-tracer.yaml").exists()


def test_a_place_in_s3_that_holds_nothing_is_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelled bucket would become an estate without persons."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint_url)
    words = ["init", str(tmp_path / "d"), "--state", str(tmp_path / "d" / "state"), "--region", REGION]
    bucket = world.new("nothing")
    for place, said in (("s3://no-such-bucket-here/lake", "NoSuchBucket"), (f"s3://{bucket}/lake", "no object lies")):
        assert cli([*words, "--discover", place]) == ExitCode.USAGE
        told = capsys.readouterr().err
        assert said in told
        assert place in told
    assert not (tmp_path / "d").exists()


def test_files_that_are_here_stop_before_anything_is_read(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint_url)
    words = ["init", str(tmp_path), "--state", str(tmp_path / "state")]
    assert cli(words) == ExitCode.DONE
    assert cli([*words, "--discover", "s3://no-such-bucket-here", "--region", REGION]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "the estate file is here already; nothing was read" in told
    assert "name another folder" in told


def test_an_endpoint_without_a_store_that_it_is_for_is_refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["init", str(lake / "one"), "--state", str(lake / "one/state"), "--endpoint", "http://127.0.0.1:1"]
    assert cli([*words, "--discover", str(lake / "lake")]) == ExitCode.USAGE
    assert "AWS_ENDPOINT_URL_GLUE" in capsys.readouterr().err
    assert not (lake / "one").exists()


def test_tables_of_a_bucket_are_declared(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In S3 steps erase what the estate file names: the draft names it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint_url)
    bucket = world.new("drafted")
    access = {**s3_standin.demo_credentials(), "AWS_ENDPOINT_URL": world.endpoint_url, "AWS_REGION": REGION}
    options = {**access, "AWS_ALLOW_HTTP": "true", "AWS_CONDITIONAL_PUT": "etag"}
    write_deltalake(f"s3://{bucket}/lake/crm/customers", USERS, storage_options=options)
    world.client().put_object(Bucket=bucket, Key="lake/exports/calls/day=1/c.csv", Body=b"CustomerID,n\n71234501,60\n")
    world.client().put_object(Bucket=bucket, Key="lake/ice/members/metadata/v1.metadata.json", Body=b"{}")
    estate = made(tmp_path, "--discover", f"s3://{bucket}/lake", "--region", REGION, "--name", "shop")
    assert {(t.name, t.format.value, t.location) for t in estate.catalogs["spark_catalog"].tables} == {
        ("crm.customers", "delta", f"s3://{bucket}/lake/crm/customers"),
        ("exports.calls", "csv", f"s3://{bucket}/lake/exports/calls"),
    }
    assert yaml.safe_load((tmp_path / "pii-tracer.yaml").read_text())["s3"]["region"] == REGION
    [subject] = estate.subjects
    assert (subject.source, [t.table for t in subject.tables]) == ("crm.customers", ["exports.calls"])
    note = f"1 Iceberg table (s3://{bucket}/lake/ice/members) needs a catalog, and none names it"
    assert f"# look at this: {note}" in (tmp_path / "pii-tracer.yaml").read_text()
    said = capsys.readouterr()
    assert f"{note}: run this command again with its catalog" in said.out
    assert "71234501" not in (tmp_path / "pii-tracer.yaml").read_text() + said.err


def test_archives_are_of_the_table_that_they_are_called_as(
    world: World, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of others nobody can tell what they hold: they stay, and are told."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint_url)
    bucket = world.new("archived")
    for key in ("old/orders/2025/1.csv", "old/2024/customers/1.csv", "old/strange/1.csv"):
        world.client().put_object(Bucket=bucket, Key=key, Body=b"customer_id\n71234501\n", StorageClass="GLACIER")
    world.client().put_object(Bucket=bucket, Key="new/orders/1.csv", Body=b"order_id\n10\n")
    estate = made(lake, "--discover", str(lake / "lake"), "--discover", f"s3://{bucket}", "--region", REGION)
    assert {(a.name, a.of, a.bucket, a.prefix, a.format.value) for a in estate.archives} == {
        ("orders", "crm.orders", bucket, "old/orders/", "csv"),
        ("customers", "crm.customers", bucket, "old/2024/customers/", "csv"),
    }
    text = (lake / "pii-tracer.yaml").read_text()
    assert f"# look at this: s3://{bucket}/old/strange may be an archive (objects in GLACIER)" in text
    in_s3 = {t.location for t in estate.catalogs["spark_catalog"].tables if t.location.startswith("s3://")}
    assert in_s3 == {f"s3://{bucket}/new/orders", f"s3://{bucket}/old/strange"}


def test_jobs_and_what_they_say_of_tables_are_drafted(lake: Path) -> None:
    """The lineage was recorded elsewhere; one of its jobs has the name of a person."""
    (lake / "jobs").mkdir()
    where = {"customers": "crm/customers", "orders": "crm/orders", "calls": "exports/calls"}
    for name, place in where.items():
        made_by = f"CREATE TABLE shop.{name} (customer_id bigint) USING delta LOCATION '/old/lake/{place}';\n"
        (lake / "jobs" / f"make_{name}.sql").write_text(made_by if name != "calls" else "")
    fill = "INSERT INTO shop.orders SELECT 1 AS order_id, customer_id, 1.0 AS amount FROM shop.customers;\n"
    (lake / "jobs" / "fill_orders.sql").write_text(fill)
    (lake / "jobs" / "for_asha@north.example.sql").write_text(fill)
    estate = made(lake, "--discover", str(lake / "lake"), "--lineage", str(lake / "jobs"))
    assert [(r.from_, r.to) for r in estate.relocations] == [("/old", ".")]
    names = {t.location: t.name for t in estate.catalogs["spark_catalog"].tables}
    assert (names["lake/crm/customers"], names["lake/crm/orders"]) == ("shop.customers", "shop.orders")
    assert names["lake/exports/calls"] == "exports.calls"
    assert {t.table for t in estate.subjects[0].tables}.isdisjoint({"shop.orders"}), "the lineage leads there"
    text = (lake / "pii-tracer.yaml").read_text()
    assert "\n# writers: [{job: fill_orders, stopped: true}]\n" in text
    assert "asha" not in text
    assert "# look at this: 1 job whose names look like mails" in text


@pytest.mark.parametrize("folder", ["loose", "lone"])
def test_a_bare_folder_is_declared_unless_jobs_know_it_by_its_path_alone(lake: Path, folder: str) -> None:
    """A name that jobs use is not known otherwise; one that nobody uses is of no use."""
    for name in ("loose", "lone"):
        (lake / "lake/files" / name).mkdir(parents=True)
        pq.write_table(pa.table({"n": [1, 2]}), lake / "lake/files" / name / "1.parquet")
    query = "SELECT order_id AS n FROM shop.orders;\n"
    by_path = f"INSERT OVERWRITE DIRECTORY '{lake}/lake/files/{folder}' USING parquet {query}"
    (lake / "jobs.sql").write_text(f"INSERT INTO files.loose {query}" + by_path)
    estate = made(lake, "--discover", str(lake / "lake"), "--lineage", str(lake / "jobs.sql"))
    names = {table.name for table in estate.catalogs["spark_catalog"].tables}
    assert "files.loose" in names
    assert ("files.lone" in names) is (folder != "lone")


def test_a_root_called_dev_beside_others_is_one_of_development(lake: Path) -> None:
    (lake / "lake/dev").rename(lake / "dev")
    estate = made(lake, "--discover", str(lake / "lake"), "--discover", str(lake / "dev"))
    assert estate.dev_roots == ("dev",)


def test_a_list_of_comments_alone_is_no_list(tmp_path: Path) -> None:
    """The only further table has other keys: named in a comment, and the file is one that can be read."""
    write_deltalake(tmp_path / "lake/crm/customers", USERS)
    write_deltalake(tmp_path / "lake/fleet/trips", pa.table({"trip_id": [1], "customer_id": [900]}))
    assert made(tmp_path, "--discover", str(tmp_path / "lake")).subjects[0].tables == ()
    assert "# - {table: fleet.trips" in (tmp_path / "pii-tracer.yaml").read_text()


@pytest.mark.parametrize("words", [["inventory"], ["harvest"]])
def test_whoever_waits_for_discovery_is_told_so(
    lake: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """A large lake takes minutes to list; every command that lists it says that it does."""
    made(lake, "--discover", str(lake / "lake"))
    said = capsys.readouterr().err
    assert said.index("discovering what exists") < said.index("looking into")
    cli([*words, "--estate", str(lake / "pii-tracer.yaml"), "--state", str(lake / "state")])
    assert capsys.readouterr().err.count("discovering what exists") == 1
