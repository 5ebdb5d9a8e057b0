"""Files in a real HDFS that a scan ledger knows by their blocks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.stored_places import hdfs_files, hdfs_reading
from pii_tracer.app.stored_places.hdfs_search import search_hdfs
from pii_tracer.config.estate_file import Estate, LineageSources
from pii_tracer.config.hdfs import NameNode
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.datasets import Format, Match, MatchTerm
from pii_tracer.model.locations import HdfsLocation, hdfs_location
from pii_tracer.scan.hits import Reading
from pii_tracer.verify.stores.stored_files import PlaceLook
from tests.hdfssupport import SUPERUSER, Hdfs
from tests.kits import known_objects_kit as kit
from tests.kits.known_objects_kit import HER, LAST, OBJECTS, Place, patterns_of, rows
from tests.verify.conftest import a_copy


@dataclass
class Files(Place):
    """The folder `out` below a new root."""

    hdfs: Any = None
    root: str = ""

    @classmethod
    def below(cls, hdfs: Hdfs, base: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
        root = hdfs.folder()
        one = NameNode(namenode=hdfs.uri, webhdfs=(hdfs.webhdfs,), user=SUPERUSER)
        estate = Estate(
            version=1,
            estate="hdfs",
            environment="local",
            catalogs={},
            roots=(f"{hdfs.uri}{root}/out",),
            lineage=LineageSources(),
            subjects=(Subject(name="customer", source="s", key="id"),),
            hdfs=(one,),
        )

        def write(name: str, data: bytes) -> None:
            hdfs.client().delete(f"{root}/{name}")
            hdfs.put(f"{root}/{name}", data)

        made = cls(estate, base, write, hdfs=hdfs, root=root)
        true = hdfs_files.fetch

        def noted(client: Any, file: Any, kept: bool) -> memoryview:
            made.read.append(file.path.removeprefix(f"{root}/"))
            return true(client, file, kept)

        monkeypatch.setattr(hdfs_files, "fetch", noted)
        for number in range(OBJECTS):
            write(f"out/{number}.csv", rows(f"{number:09}.other@mail.exampl"))
        return made

    @property
    def location(self) -> HdfsLocation:
        return hdfs_location(f"{self.hdfs.uri}{self.root}/out")

    def refuse_the_last(self, monkeypatch: pytest.MonkeyPatch) -> None:
        true = WebHdfs.read

        def refused(client: WebHdfs, path: str, first: int, at_most: int) -> bytes:
            if path.endswith(LAST):
                raise Absent("a file cannot be read", "FileNotFoundException", where=client.name)
            return true(client, path, first, at_most)

        monkeypatch.setattr(WebHdfs, "read", refused)

    def plan(self, *, kept: bool = True, who: str = HER) -> tuple[str, Reading]:
        """What planning sees of the folder: other tests may leave files in a user's trash."""
        searchers, found = self.searchers(kept), discover(self.estate, self.base)
        found = found.model_copy(update={"hdfs": tuple(p for p in found.hdfs if self.location.holds(p.location))})
        seen = search_hdfs(found, self.estate, patterns_of(who), False, str, OtherNumbers(), searchers=searchers)
        return repr(seen), searchers.reading

    def count(self, *, kept: bool = True, values: Sequence[str] = (HER,)) -> tuple[PlaceLook, Reading]:
        match = Match(terms=(MatchTerm(column="mail", key_set="email", type="string"),))
        searchers, copy = self.searchers(kept), a_copy(Format.CSV, str(self.location), match=match)
        return hdfs_reading.look(self.estate, copy, patterns_of(*values), searchers), searchers.reading

    def verify(self, *, kept: bool = True, who: str = HER) -> tuple[str, Reading]:
        searchers = self.searchers(kept)
        given = (self.estate, self.location, "out", patterns_of(who), Registry())
        return hdfs_reading.look_at(*given, searchers, alone=True).model_dump_json(), searchers.reading

    def change(self, name: str, kept: int, data: bytes, *, back: bool = True) -> None:
        """Cut a file, append other bytes, and set the time of writing back: the listing stays the same. back: whether
        it is set."""
        path, client = f"{self.root}/{name}", self.hdfs.client()
        before = client.status(path)
        self.hdfs.ask(path, "TRUNCATE", method="POST", newlength=str(kept))
        until = time.monotonic() + 60
        while client.is_open(path):
            assert time.monotonic() < until
            time.sleep(0.1)
        place = self.hdfs.ask(path, "APPEND", method="POST", noredirect="true")["Location"]
        urlopen(Request(str(place), data=data, method="POST"), timeout=60).read()
        if back:
            self.hdfs.ask(path, "SETTIMES", modificationtime=str(before.modified))
            assert client.status(path) == before


@pytest.fixture
def place(hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files.below(hdfs, tmp_path, monkeypatch)


def test_a_file_is_downloaded_once(place: Files) -> None:
    kit.read_once(place)


def test_a_file_in_the_place_of_another_is_read(place: Files) -> None:
    kit.found_in_other_bytes(place)


def test_a_known_file_that_cannot_be_read_is_unverified(place: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.unread_as_without_the_ledger(place, monkeypatch)


def test_rows_of_a_known_file_are_not_counted_again(place: Files) -> None:
    kit.counted_once(place)


def test_rows_of_other_bytes_are_counted(place: Files) -> None:
    kit.counted_in_other_bytes(place)


def test_sums_of_rows_are_compared_in_the_sample(place: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.other_sums_are_found_out(place, monkeypatch)


def test_rows_of_a_known_file_that_cannot_be_read_are_not_told(place: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.rows_of_an_unread_object_are_not_told(place, monkeypatch)


def test_other_bytes_of_the_same_file_size_and_time_are_read(place: Files) -> None:
    place.verify()
    place.change(LAST, 9, HER.encode() + b"\n\n\n")
    found, _ = place.verify()
    assert LAST in place.read
    assert '"residue":[{' in found
    assert found == place.verify(kept=False)[0]


def test_a_known_file_that_changes_before_it_is_read_again_is_no_disagreement(
    place: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file is the sample."""
    place.verify()
    true = hdfs_files.fetch

    def late(client: Any, file: Any, kept: bool) -> memoryview:
        if file.path.endswith("out/0.csv"):
            place.change("out/0.csv", 9, HER.encode() + b"\n\n\n")
        return true(client, file, kept)

    monkeypatch.setattr(hdfs_files, "fetch", late)
    assert '"residue":[{' in place.verify()[0]


@pytest.mark.parametrize("kept", [True, False])
def test_a_checksum_of_other_bytes_than_were_searched_is_none(
    place: Files, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """A step that compares with it would take the other bytes for those that were searched. kept: with a ledger, which
    shows the change though the time of writing was set back."""
    place.write(LAST, rows(HER))
    true = WebHdfs.checksum

    def late(client: WebHdfs, path: str) -> str:
        if path.endswith(LAST):
            place.change(LAST, 9, b"o" * (len(rows(HER)) - 9), back=kept)
        return true(client, path)

    monkeypatch.setattr(WebHdfs, "checksum", late)
    assert "while it was read" in place.plan(kept=kept)[0]


def test_an_open_file_is_never_known(place: Files) -> None:
    with place.hdfs.writing(f"{place.root}/out/open.csv", rows(HER)):
        place.verify()
        found, reading = place.verify()
        assert "out/open.csv" in place.read
        assert reading.by_store == OBJECTS - 1
        assert "recoverLease" in found
