"""What doctor says of Java, by the Java that is there, of jars, and of tickets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from pii_tracer.app import installation_checks
from pii_tracer.app.installation_checks import Level, examine
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogEntry, CatalogText, Listing, TableCatalog
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG


@pytest.mark.parametrize(
    ("printed", "level", "shown"),
    [
        ('openjdk version "17.0.9" 2025-10-17', Level.OK, 'openjdk version "17.0.9" 2025-10-17'),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.9"', Level.OK, 'openjdk version "17.0.9"'),
        ('openjdk version "8.0.1"', Level.WARNING, 'openjdk version "8.0.1"'),
        ("something else", Level.WARNING, "unknown"),
    ],
)
def test_the_version_of_java_is_the_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, level: Level, shown: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{printed}\nEND\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,) = [one for one in examine(tmp_path / "pii-tracer.yaml") if one.what == "Java"]
    assert (found.level, found.detail) == (level, shown)


def test_a_ticket_of_each_principal_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class GSSError(Exception):
        pass

    def credentials(*, name: str, usage: str) -> SimpleNamespace:
        if name.startswith("none"):
            raise GSSError
        return SimpleNamespace(lifetime=7260)

    kinds, errors = SimpleNamespace(kerberos_principal=1), SimpleNamespace(GSSError=GSSError)
    library = SimpleNamespace(Credentials=credentials, Name=lambda name, kind: name, NameType=kinds, exceptions=errors)
    monkeypatch.setitem(sys.modules, "gssapi", library)
    name_nodes = [
        {"namenode": f"hdfs://{name}:8020", "webhdfs": f"https://{name}:9871", "kerberos": f"{name}@EXAMPLE.COM"}
        for name in ("some", "none")
    ]
    estate = {"version": 1, "estate": "e", "environment": "local", "catalogs": {}, "roots": ["."], "lineage": {}}
    subject = {"name": "user", "source": "s", "key": "id"}
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump({**estate, "subjects": [subject], "hdfs": name_nodes}))
    none, some = [one for one in examine(tmp_path / "pii-tracer.yaml") if one.what == "Kerberos"]
    assert (some.level, some.detail) == (Level.OK, "some@EXAMPLE.COM: a ticket for 121 more minutes")
    assert (none.level, none.detail) == (Level.MISSING, "none@EXAMPLE.COM: NoTicket")
    assert "kinit none@EXAMPLE.COM" in none.mend


def _jars_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **parts: object) -> dict[str, Level]:
    """What doctor says of the jars beside the table formats'; of each the part of its coordinates that names it."""
    monkeypatch.setattr(installation_checks, "_untold", lambda *_: iter(()))  # no catalog is there
    monkeypatch.setenv("PII_TRACER_IVY", str(tmp_path / "ivy"))
    monkeypatch.setenv("HOME", str(tmp_path))
    estate = {"version": 1, "estate": "e", "environment": "local", "catalogs": {}, "roots": ["."], "lineage": {}}
    estate["subjects"] = [{"name": "user", "source": "s", "key": "id"}]
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump({**estate, **parts}))
    found = [one for one in examine(tmp_path / "pii-tracer.yaml") if one.what == "Spark jar"]
    assert all(one.mend == "run `pii-tracer doctor --fetch`" for one in found if one.level is Level.WARNING)
    formats = ("delta", "iceberg-spark", "hudi")
    told = {one.detail: one.level for one in found}
    return {detail: level for detail, level in told.items() if not any(name in detail for name in formats)}


S3 = {"s3": {"region": "ap-south-1"}}


def _declared(kind: str, location: str) -> dict[str, object]:
    table = {"name": "db.t", "format": kind, "location": location}
    return {"catalogs": {"spark_catalog": {"type": "declared", "tables": [table]}}}


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({}, []),
        ({**S3, **_declared("delta", "s3://lake/t")}, ["hadoop-aws"]),
        ({**S3, **_declared("parquet", "s3://lake/t")}, []),
        ({"object_stores": [{"store": "gs://lake", "places": [{"prefix": "t"}]}]}, ["gcs-connector"]),
        (
            {"object_stores": [{"store": "abfss://lake@account.dfs.core.windows.net", "places": [{"prefix": "t"}]}]},
            ["hadoop-azure"],
        ),
    ],
    ids=["local", "delta-s3", "bare-s3", "gcs", "azure"],
)
def test_the_jars_of_the_stores_of_an_estate_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, object], wanted: list[str]
) -> None:
    told = _jars_of(tmp_path, monkeypatch, **parts)
    assert [name for name in wanted if any(name in detail for detail in told)] == wanted
    assert len(told) == len(wanted)
    assert set(told.values()) <= {Level.WARNING}


def test_the_jars_of_a_glue_catalog_and_its_tables_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = CatalogEntry("aws.db.t", ("db", "t"), ICEBERG, None, metadata="s3://lake/t/metadata/1.metadata.json")
    monkeypatch.setattr(installation_checks, "list_catalogs", lambda estate, base: iter([Listing((entry,), ())]))
    jar = tmp_path / "ivy" / "jars" / "org.apache.iceberg_iceberg-aws-bundle-1.12.0.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    glue = {"catalogs": {"aws": {"type": "glue", "region": "ap-south-1"}}}
    told = _jars_of(tmp_path, monkeypatch, **S3, **glue)
    assert told["org.apache.iceberg:iceberg-aws-bundle:1.12.0"] is Level.OK
    assert [detail for detail, level in told.items() if level is Level.WARNING] == [
        "org.apache.hadoop:hadoop-aws:3.3.4 is not cached"
    ]


def test_what_a_catalog_refuses_to_tell_of_its_tables_is_known_before_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listed its tables, so all was well; the first plan had a gap for each of them."""

    class Glue(TableCatalog):
        capabilities = frozenset({Capability.TEXTS})

        def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
            yield CatalogText(("shop", "a"), "properties", {})
            yield CatalogText(("shop", "a"), "column statistics", unread="AccessDeniedException")
            for number in range(1_000):
                assert number < 5, "every table is asked"
                yield CatalogText(("shop", f"t{number}"), "column statistics", unread="AccessDeniedException")

    monkeypatch.setattr(installation_checks, "list_catalogs", lambda estate, base: iter([Listing((), ())]))
    monkeypatch.setattr(installation_checks, "catalog_of", lambda kind: Glue())
    estate = {"version": 1, "estate": "e", "environment": "local", "roots": ["."], "lineage": {}}
    subject = {"name": "user", "source": "s", "key": "id"}
    catalogs = {"aws": {"type": "glue", "region": "ap-south-1"}}
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump({**estate, "catalogs": catalogs, "subjects": [subject]}))
    found = examine(tmp_path / "pii-tracer.yaml")
    [told] = [one for one in found if one.what == "catalog aws" and one.level is Level.WARNING]
    assert told.detail == "of its first tables, it does not return column statistics (AccessDeniedException)"
