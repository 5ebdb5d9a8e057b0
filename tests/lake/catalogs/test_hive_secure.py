"""A Hive metastore with Kerberos, with TLS, and with both: 2.3.9 out of Spark's own jars, and a real KDC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.common.kerberos import NoTicket
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Listing
from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.lake.catalogs.hive.security import Security
from pii_tracer.lake.catalogs.hive.tables import list_hive
from tests.certificates import HOST, PASSWORD, Authority
from tests.hivesupport import STANDALONE, Hive, Secured, serving
from tests.kerberossupport import Kdc, centre, environment, hadoop_xml, java_options, needs_kerberos, principal

PII = principal("pii")


def listed(uri: str, security: Security) -> Listing:
    """What is found of a metastore, as the estate file would name it."""
    more = {"kerberos": security.principal, "ca": security.ca, "tls": security.tls}
    catalog = Catalog.model_validate({"type": "hive", "uri": uri, **{k: v for k, v in more.items() if v}})
    assert Security.of(catalog) == security
    return list_hive("lake", catalog)


def reason(uri: str, security: Security) -> str:
    """Of the one gap that a metastore is."""
    found = listed(uri, security)
    assert not found.entries
    [gap] = found.gaps
    return gap.reason


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with centre(tmp_path_factory.mktemp("kdc") / "kdc") as running, environment(running.client("pii")):
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("ca"))


def with_tls(authority: Authority) -> Secured:
    settings = {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.keystore.path": str(authority.store),
        "hive.metastore.keystore.password": PASSWORD,
    }
    return Secured(settings=settings, host=HOST, security=Security(tls=True, ca=str(authority.ca)))


def with_kerberos(kdc: Kdc, protection: str) -> Secured:
    settings = {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.keytab.file": str(kdc.keytab),
        "hive.metastore.kerberos.principal": principal("hive"),
    }
    core = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": protection}
    files = {"core-site.xml": hadoop_xml(core)}
    return Secured(settings, files, tuple(java_options(kdc)), HOST, Security(PII))


def _finds_a_table(hive: Hive) -> None:
    with hive.database("prod"):
        for n in range(3):
            hive.table(f"prod.t{n}", f"file:/nowhere/t{n}", partitions={"1": f"file:/nowhere/t{n}/day=1"})
        found = listed(hive.uri, hive.security)
    assert [entry.parts for entry in found.entries] == [("prod", "t0"), ("prod", "t1"), ("prod", "t2")]
    assert not found.gaps


@pytest.mark.nightly
def test_tls(authority: Authority, tmp_path: Path) -> None:
    with serving(tmp_path, secured=with_tls(authority)) as hive:
        _finds_a_table(hive)
        another = Authority.made(tmp_path, "another")
        for wrong in (None, str(another.ca)):
            assert "`ca` to the file with the CA" in reason(hive.uri, Security(tls=True, ca=wrong))
        elsewhere = hive.uri.replace(HOST, "127.1")
        assert "SSLCertVerificationError" in reason(elsewhere, hive.security)
        assert "`tls: true`" in reason(hive.uri, Security())


@pytest.mark.nightly
@needs_kerberos
@pytest.mark.parametrize("protection", ["authentication", "integrity", "privacy"])
def test_kerberos(kdc: Kdc, protection: str, tmp_path: Path) -> None:
    with serving(tmp_path, secured=with_kerberos(kdc, protection)) as hive:
        _finds_a_table(hive)
        if protection != "privacy":
            return
        assert "`kerberos: USER@REALM`" in reason(hive.uri, Security())
        assert "kinit ann@" in reason(hive.uri, Security(principal("ann")))
        with pytest.raises(NoTicket), Metastore(hive.uri, replace(hive.security, service="other")) as store:
            store.ask("get_all_databases")


@pytest.mark.nightly
@needs_kerberos
def test_kerberos_and_tls(kdc: Kdc, authority: Authority, tmp_path: Path) -> None:
    tls, kerberos = with_tls(authority), with_kerberos(kdc, "authentication")
    both = replace(
        kerberos, settings={**tls.settings, **kerberos.settings}, security=replace(tls.security, principal=PII)
    )
    with serving(tmp_path, STANDALONE, secured=both) as hive:
        _finds_a_table(hive)


SERVER = {"host": "hive.example", "user": "pii", "scratch": "hdfs://nn:8020/keys"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ca": "/etc/ca.pem"}, "`ca` applies only with `tls`"),
        ({"kerberos_service": "hms"}, "`kerberos_service` applies only with `kerberos`"),
        ({"kerberos": "pii"}, "pattern"),
        ({"kerberos": "pii@EXAMPLE.COM", "ca": "ca.pem"}, "pattern"),
        ({"type": "unity", "uri": "https://h/api/2.1/unity-catalog", "kerberos": PII}, "has no `kerberos`"),
        ({"hiveserver2": SERVER, "kerberos": PII}, "not supported with `kerberos` or `tls`"),
        ({"hiveserver2": SERVER, "tls": True}, "not supported with `kerberos` or `tls`"),
        ({"hiveserver2": {**SERVER, "scratch": "hdfs://nn/k' OR"}}, "pattern"),
        ({"hiveserver2": {**SERVER, "scratch": "/tmp"}}, "pattern"),
        ({"type": "glue", "region": "eu-west-1", "uri": None, "hiveserver2": SERVER}, "has no `hiveserver2`"),
    ],
)
def test_what_the_estate_file_may_not_say(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Catalog.model_validate({"type": "hive", "uri": "thrift://hms:9083", **more})
