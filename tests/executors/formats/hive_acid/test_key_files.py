"""The persons' keys in the scratch folder: whole or not there, of one statement alone, and gone after a kill."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest

from executors.context import ExecutionContext
from executors.formats.hive_acid import key_files
from executors.formats.hive_acid.executor import HiveAcidExecutor
from executors.formats.hive_acid.key_files import KeyFiles
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.hive_acid import key_folder_check
from pii_tracer.lake.formats.hive_acid.key_folder_check import unusable
from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID_DELETE_ROWS
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Step
from tests.memoryhdfs import MemoryHdfs

SCRATCH = "hdfs://nn/keys"
ESTATE = cast(Estate, None)


@pytest.fixture
def hdfs(monkeypatch: pytest.MonkeyPatch) -> MemoryHdfs:
    return standing(monkeypatch)


def standing(monkeypatch: pytest.MonkeyPatch, **more: Any) -> MemoryHdfs:
    """The scratch folder's NameNode."""
    hdfs = MemoryHdfs(files={"/keys/.keep": b""}, **more)
    for module in (key_files, key_folder_check):
        monkeypatch.setattr(module, "client_at", lambda estate, place: hdfs)
    return hdfs


def keys_in(hdfs: MemoryHdfs, place: str) -> list[str]:
    """What Hive reads in a folder: no file whose name begins with `_` or a dot."""
    front = place.removeprefix("hdfs://nn") + "/"
    files = [data for path, data in hdfs.files.items() if path.startswith(front) and path[len(front)] not in "_."]
    return [base64.b64decode(line).decode() for data in files for line in data.split()]


def test_two_runs_of_one_step_have_keys_of_their_own(hdfs: MemoryHdfs) -> None:
    mine, others = KeyFiles.new(ESTATE, SCRATCH), KeyFiles.new(ESTATE, SCRATCH)
    with mine.holding({"user.uid": ["a1"]}) as places:
        with others.holding({"user.uid": ["b2"]}) as theirs:
            assert keys_in(hdfs, theirs["user.uid"]) == ["b2"]
        assert keys_in(hdfs, places["user.uid"]) == ["a1"]
        assert mine.left()
        assert not others.left()
    assert hdfs.files.keys() == {"/keys/.keep"}


def test_a_file_has_its_name_when_it_is_whole(hdfs: MemoryHdfs) -> None:
    with KeyFiles.new(ESTATE, SCRATCH).holding({"user.uid": ["a1"]}) as places:
        front = places["user.uid"].removeprefix("hdfs://nn")
        assert hdfs.steps == [f"create {front}/_keys", f"rename {front}/_keys {front}/keys"]


def test_half_a_file_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    hdfs = standing(monkeypatch, half=True)
    with pytest.raises(RunError, match="not written completely"), KeyFiles.new(ESTATE, SCRATCH).holding({"k": ["a1"]}):
        pytest.fail("Hive would read it")
    assert hdfs.files.keys() == {"/keys/.keep"}


def test_a_key_that_is_no_text_is_refused_without_its_value(hdfs: MemoryHdfs) -> None:
    with pytest.raises(RunError) as refused, KeyFiles.new(ESTATE, SCRATCH).holding({"user.uid": ["zq\udce4"]}):
        pytest.fail("it has no bytes")
    assert "user.uid" in str(refused.value)
    assert "zq" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_keys_of_a_killed_run_are_removed_though_the_table_is_gone(hdfs: MemoryHdfs) -> None:
    left = KeyFiles.new(ESTATE, SCRATCH)
    hdfs.files[f"{left.place.removeprefix('hdfs://nn')}/0/keys"] = b"YTE=\n"
    told = {"c/01": [{"keys_folder": left.place}]}
    estate = SimpleNamespace(catalogs={})
    ctx = SimpleNamespace(estate=estate, told=lambda step: told.get(step, []))
    step = SimpleNamespace(id="c/01", action=HIVE_ACID_DELETE_ROWS, parameters={"location": "hdfs://nn/t"})
    with pytest.raises(RunError, match="no HiveServer2"):
        HiveAcidExecutor(cast(ExecutionContext, ctx)).check(cast(Step, step), None)
    assert not left.left()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, None),
        ({"permission": "775"}, "all users can read"),
        ({"access_list": True}, "has an access list"),
        ({"snapshottable": frozenset({"/keys"})}, "a snapshot could retain the keys"),
        # the root always seems to allow them
        ({"snapshottable": frozenset({"/"})}, None),
        ({"files": {"/t/1": b""}}, "is missing"),
        ({"files": {"/keys": b""}}, "is not a folder"),
    ],
)
def test_what_the_scratch_folder_must_not_be(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], why: str) -> None:
    hdfs = standing(monkeypatch, **{name: value for name, value in more.items() if name != "files"})
    if "files" in more:
        hdfs.files.clear()
        hdfs.files.update(more["files"])
    found = unusable(ESTATE, SCRATCH)
    assert (found is None) if why is None else (found is not None and why in found)


def test_a_folder_above_the_scratch_folder_allows_no_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    hdfs = standing(monkeypatch, snapshottable=frozenset({"/safe"}))
    hdfs.files["/safe/in/keys/.keep"] = b""
    assert "a snapshot could retain" in str(unusable(ESTATE, "hdfs://nn/safe/in/keys"))


def test_a_name_node_that_is_not_declared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def undeclared(estate: Estate, place: object) -> MemoryHdfs:
        raise EstateError("the estate file does not declare this NameNode", todo="add it to `hdfs` in the estate file")

    monkeypatch.setattr(key_folder_check, "client_at", undeclared)
    assert "add it to `hdfs` in the estate file" in str(unusable(ESTATE, SCRATCH))
