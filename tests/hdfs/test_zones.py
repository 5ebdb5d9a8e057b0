"""Encryption zones and erasure-coded files on a real NameNode with a key provider and three DataNodes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from planners.stores.hdfs.places import untreated
from tests.hdfssupport import Hdfs, hadoop_jars, java, running
from tests.lake.stores.hdfs.test_hdfs_discovery import OTHER, ROW, looked

pytestmark = pytest.mark.nightly

_PROVIDER = "hadoop.security.key.provider.path"
NO_STEP = "no step rewrites or deletes encrypted or erasure-coded files"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of keys, with one of the zone."""
    place = f"jceks://file{tmp_path_factory.mktemp('keys')}/zone.jceks"
    _hadoop("org.apache.hadoop.crypto.key.KeyShell", "create", "zone", "-size", "128", "-provider", place)
    return place


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory, keys: str) -> Iterator[Hdfs]:
    with running(tmp_path_factory.mktemp("hdfs"), datanodes=3, settings={_PROVIDER: keys}) as cluster:
        yield cluster


def _hadoop(program: str, *words: str) -> None:
    command = [*java(f"{hadoop_jars()}/*", "128m"), program, *words]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


def test_files_in_an_encryption_zone_are_read_and_are_a_gap(hdfs: Hdfs, keys: str, tmp_path: Path) -> None:
    root = hdfs.folder()
    hdfs.ask(f"{root}/zone", "MKDIRS")
    given = ("-D", f"fs.defaultFS={hdfs.uri}", "-D", f"{_PROVIDER}={keys}")
    _hadoop(
        "org.apache.hadoop.hdfs.tools.CryptoAdmin", *given, "-createZone", "-keyName", "zone", "-path", f"{root}/zone"
    )
    hdfs.put(f"{root}/zone/a.csv", ROW)
    hdfs.put(f"{root}/plain/a.csv", ROW)
    hdfs.put(f"{root}/zone/clean/a.csv", OTHER)
    found, seen = looked(hdfs, root, tmp_path)
    places = {p.location.path.removeprefix(f"{root}/"): p for p in found.hdfs}
    zone = places["zone"]
    assert zone.encrypted
    assert seen[str(zone.location)].holders == 1, "the DataNode gives the plain bytes"
    assert untreated(zone, seen[str(zone.location)]) == NO_STEP
    assert untreated(places["plain"], seen[str(places["plain"].location)]) is None
    assert untreated(places["zone/clean"], seen[str(places["zone/clean"].location)]) is None, "nobody is in it"
    assert "it is in an encryption zone" in {g.evidence: g.reason for g in found.gaps}[str(zone.location)]


def test_an_erasure_coded_file_is_read_and_is_a_gap(hdfs: Hdfs, tmp_path: Path) -> None:
    root = hdfs.folder()
    hdfs.ask("/", "ENABLEECPOLICY", ecpolicy="XOR-2-1-1024k")
    hdfs.ask(f"{root}/coded", "MKDIRS")
    hdfs.ask(f"{root}/coded", "SETECPOLICY", ecpolicy="XOR-2-1-1024k")
    hdfs.put(f"{root}/coded/a.csv", ROW)
    [place] = [p for p in looked(hdfs, root, tmp_path)[0].hdfs if p.location.path == f"{root}/coded"]
    hdfs.ask(f"{root}/coded", "UNSETECPOLICY", method="POST")
    found, seen = looked(hdfs, root, tmp_path)
    [again] = [p for p in found.hdfs if p.location.path == f"{root}/coded"]
    for one in (place, again):
        assert one.striped, "the file stays coded without the policy of its folder"
    assert seen[str(again.location)].holders == 1
    assert untreated(again, seen[str(again.location)]) == NO_STEP
