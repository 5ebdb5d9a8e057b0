"""Tables that are known by their folder: a number of a metadata file is taken once."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from executors.catalogs.hadoop.metadata_pointer import FolderPointer
from executors.formats.iceberg.kept_history.rewrite import HistoryRewrite
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.iceberg.history_files import History
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg, newest_metadata
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import placed
from tests.executors.formats.iceberg.kept_history.people import People, brief, without
from tests.executors.world import residue


@dataclass
class InFolder(People):
    """The same table without its SQL catalog: `v1.metadata.json` counts, as the hint says."""

    def settle(self) -> InFolder:
        table, folder = super().table, self.folder / "metadata"
        shutil.copy(placed(table.metadata_location), self.base / "v1")
        for path in folder.glob("*.metadata.json"):
            path.unlink()
        shutil.move(self.base / "v1", folder / "v1.metadata.json")
        (folder / "version-hint.text").write_text("1")
        (folder / ".version-hint.text.crc").write_bytes(b"crc")
        return self

    @property
    def settled(self) -> bool:
        return (self.base / "core/eu/people/metadata/version-hint.text").exists()

    @property
    def table(self) -> StaticTable:  # type: ignore[override]
        return load_iceberg(self.base / "core/eu/people") if self.settled else super().table  # type: ignore[return-value]

    @property
    def estate(self) -> Estate:
        catalog = Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="core")
        return super().estate.model_copy(update={"catalogs": {"core": catalog}})


def made(base: Path) -> InFolder:
    people = InFolder(base)
    brief(people)
    return people.settle()


def test_every_snapshot_stays_without_the_person(tmp_path: Path) -> None:
    people = made(tmp_path)
    before = people.told()
    people.erase()
    metadata = people.folder / "metadata"
    assert newest_metadata(people.folder) == metadata / "v2.metadata.json"
    assert (metadata / "version-hint.text").read_text() == "2"
    assert not (metadata / ".version-hint.text.crc").exists(), "Hadoop would refuse the hint by it"
    assert people.told() == without(before) != before
    named = History.read(newest_metadata(people.folder)).named
    for path in people.folder.rglob("*"):
        if path.is_file() and path.resolve() not in named and path.name != "version-hint.text":
            path.unlink()
    assert residue(people.folder) == []
    assert people.told() == without(before)


def test_a_number_that_somebody_else_has_taken_is_left_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = made(tmp_path)
    theirs = people.folder / "metadata" / "v2.metadata.json"
    inner = HistoryRewrite._written

    def overtaken(self: HistoryRewrite, *words: object) -> object:
        written = inner(self, *words)  # type: ignore[arg-type]
        shutil.copy(theirs.with_name("v1.metadata.json"), theirs)
        return written

    monkeypatch.setattr(HistoryRewrite, "_written", overtaken)
    before = theirs.with_name("v1.metadata.json").read_bytes()
    with pytest.raises(RunError, match="a different writer committed"):
        people.rewrite.run()
    assert theirs.read_bytes() == before
    assert not list(people.folder.rglob("pii-tracer-*"))
    monkeypatch.undo()
    people.erase()
    assert theirs.read_bytes() == before
    assert newest_metadata(people.folder).name == "v3.metadata.json"


def test_a_file_that_appears_between_the_look_and_the_link_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path).folder
    theirs = folder / "metadata" / "v2.metadata.json"
    monkeypatch.setattr(FolderPointer, "current", lambda self: str(theirs.with_name("v1.metadata.json")))
    theirs.write_text("{}")
    pointer = FolderPointer(partial(newest_metadata, folder))
    assert pointer.swap(pointer.current(), str(theirs), b"ours") is False
    assert theirs.read_text() == "{}"
    assert not list(theirs.parent.glob("_pii_tracer_*"))


def test_files_with_other_names_are_refused(tmp_path: Path) -> None:
    folder = made(tmp_path).folder
    (folder / "metadata" / "v1.metadata.json").rename(folder / "metadata" / "v1.gz.metadata.json")
    with pytest.raises(RunError, match=r"is not like v1\.metadata\.json"):
        FolderPointer(partial(newest_metadata, folder)).current()
