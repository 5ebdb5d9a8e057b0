"""An estate whose persons are known from inside structs: in Iceberg, in Delta, and in a folder of Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.e2e.clinic import use_catalog
from tests.leaks import Person
from tests.sparksession import small_spark

MEMBER, GUEST, BUYER = "M-70411", "70998877661", "B-20417"
MAILS = {MEMBER: "Ilse.Brandt@guild.example", GUEST: "tomas.lind@guest.example", BUYER: "neh\u00e1.iyer@buyer.example"}
PERSONS = tuple(Person((mail,), (key,)) for key, mail in MAILS.items())
OTHERS = 4
_WHO = "struct<no:string,since:int>"
_CONTACT = "struct<email:string,home:struct<phone:string,city:string>>"

JOBS = """
CREATE TABLE IF NOT EXISTS med.guild.mails USING iceberg AS
SELECT m.who.no AS member_no, m.contact.email AS mail, m.contact.home.city AS city FROM med.guild.members m;

CREATE TABLE IF NOT EXISTS guild.cards USING delta LOCATION '{base}/tables/cards' AS
SELECT who AS card, contact.home AS home FROM med.guild.members;

CREATE TABLE IF NOT EXISTS med.guild.cities (city string, members bigint) USING iceberg;

INSERT OVERWRITE med.guild.cities
SELECT contact.home.city AS city, count(DISTINCT who.no) AS members FROM med.guild.members GROUP BY contact.home.city;

CREATE TABLE IF NOT EXISTS guild.letters USING delta LOCATION '{base}/tables/letters' AS
SELECT sha2(lower(contact.email), 256) AS mail_hash, nights FROM guild.guests;

INSERT OVERWRITE DIRECTORY '{base}/tables/stays' USING json
SELECT named_struct('person', contact, 'n', nights) AS stay FROM guild.guests;

INSERT OVERWRITE DIRECTORY '{base}/tables/invoices' USING orc
SELECT buyer.no AS buyer_no, buyer.mail AS mail, total FROM guild.sales;

INSERT OVERWRITE DIRECTORY '{base}/tables/boxes' USING parquet
SELECT buyer AS sold_to, `buyer.note`, total FROM guild.sales;

INSERT OVERWRITE DIRECTORY '{base}/tables/labels' USING csv OPTIONS (header 'true', encoding 'windows-1252')
SELECT buyer.mail AS mail, `buyer.note` AS note FROM guild.sales
"""

ESTATE = {
    "version": 1,
    "estate": "guild",
    "environment": "local",
    "spark": small_spark(),
    "catalogs": {
        "med": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
        "spark_catalog": {
            "type": "declared",
            "tables": [
                {"name": f"guild.{name}", "format": kind, "location": f"tables/{name}"}
                for name, kind in (("guests", "delta"), ("cards", "delta"), ("letters", "delta"), ("sales", "parquet"))
            ]
            + [{"name": "guild.labels", "format": "csv", "location": "tables/labels", "encoding": "windows-1252"}],
        },
    },
    "roots": ["warehouse", "tables"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "member",
            "source": "med.guild.members",
            "key": "who.no",
            "identifiers": [
                {"column": "contact.email", "category": "email"},
                {"column": "contact.home.phone", "category": "phone"},
            ],
        },
        {
            "name": "guest",
            "source": "guild.guests",
            "key": "guest_no",
            "identifiers": [{"column": "contact.email", "category": "email"}],
        },
        {
            "name": "buyer",
            "source": "guild.sales",
            "key": "buyer.no",
            "identifiers": [{"column": "buyer.mail", "category": "email"}],
        },
    ],
}


def write_estate(base: Path) -> None:
    """Estate file, policy, requests and the jobs' SQL."""
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    for kind, key in (("member", MEMBER), ("guest", GUEST), ("buyer", BUYER)):
        request = {
            "id": f"GUILD-{kind}",
            "law": "GDPR",
            "received": RECEIVED,
            "subject": {"type": kind, "key": key},
        }
        (base / f"{kind}.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS.format(base=base))


def members() -> list[tuple[Any, ...]]:
    """One person in the middle of others; of one of these the contact is not known at all."""
    rows: list[tuple[Any, ...]] = [
        ((f"M-{n}", 2000 + n), (f"m{n}@guild.example", (f"+49 30 55500{n}", "Bonn")), n) for n in range(OTHERS)
    ]
    rows += [(("M-nobody", 2000), None, 9), ((MEMBER, 2020), (MAILS[MEMBER], ("+49 30 771199", "Bonn")), 5)]
    # the member's number in another field of another struct is somebody's city
    return [*rows, (("M-8", 2001), ("m8@guild.example", (None, MEMBER + "0")), 8)]


def guests() -> list[tuple[Any, ...]]:
    """The key is a column of its own, the e-mail is not."""
    rows = [(60_000_000_000 + n, (f"g{n}@guest.example", ("", "Riga")), n) for n in range(OTHERS)]
    return [*rows, (int(GUEST), (MAILS[GUEST], ("", "Oslo")), 3), (int(GUEST), (MAILS[GUEST], ("", "Oslo")), 4)]


def sales() -> list[tuple[Any, ...]]:
    """`buyer.note` is a column of that name: no field of the struct `buyer`."""
    rows = [((f"B-{n}", f"b\u00e9{n}@buyer.example"), "vor die T\u00fcr", n) for n in range(OTHERS)]
    return [*rows, ((BUYER, MAILS[BUYER]), "to the gate", 7), (None, "cash", 8)]


def build(base: Path, spark: Any) -> None:
    """Create the tables by running the jobs that lineage is read from."""
    use_catalog(base, spark)
    write_estate(base)
    spark.sql("CREATE DATABASE IF NOT EXISTS med.guild")
    spark.sql("CREATE DATABASE IF NOT EXISTS guild")
    for name in ("guests", "cards", "letters", "sales"):
        spark.sql(f"DROP TABLE IF EXISTS guild.{name}")
    frame = frame_of_rows(spark, members(), f"who {_WHO}, contact {_CONTACT}, seats int")
    frame.coalesce(1).writeTo("med.guild.members").using("iceberg").tableProperty(
        "write.delete.mode", "merge-on-read"
    ).create()
    frame = frame_of_rows(spark, guests(), f"guest_no bigint, contact {_CONTACT}, nights int")
    frame.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").option(
        "path", str(base / "tables" / "guests")
    ).saveAsTable("guild.guests")
    frame = frame_of_rows(spark, sales(), "buyer struct<no:string,mail:string>, `buyer.note` string, total int")
    frame.coalesce(1).write.format("parquet").option("path", str(base / "tables" / "sales")).saveAsTable("guild.sales")
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)


TABLES = {
    "members": "SELECT * FROM med.guild.members",
    "mails": "SELECT * FROM med.guild.mails",
    "cards": "SELECT * FROM delta.`{base}/tables/cards`",
    "guests": "SELECT * FROM delta.`{base}/tables/guests`",
    "letters": "SELECT * FROM delta.`{base}/tables/letters`",
    "stays": "SELECT * FROM json.`{base}/tables/stays`",
    "sales": "SELECT * FROM parquet.`{base}/tables/sales`",
    "invoices": "SELECT * FROM orc.`{base}/tables/invoices`",
    "boxes": "SELECT * FROM parquet.`{base}/tables/boxes`",
}


def rows(base: Path, spark: Any) -> dict[str, list[str]]:
    """Every table's rows as text, sorted."""
    frames = {name: spark.sql(query.format(base=base)) for name, query in TABLES.items()}
    labels = spark.read.option("header", "true").option("encoding", "windows-1252")
    frames["labels"] = labels.csv(str(base / "tables" / "labels"))
    return {name: sorted(str(row) for row in frame.collect()) for name, frame in frames.items()}
