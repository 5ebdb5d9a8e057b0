"""Bytes searched by Spark's workers: the same answers as here, sealed on their way, and here where they cannot."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from pii_tracer.config.estate_file import Spark
from pii_tracer.scan.folder_scan import FileLook, scan_tree
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.search_workers import (
    THREADS,
    Look,
    Stamp,
    T,
)
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify import cluster_byte_search
from pii_tracer.verify.cluster_byte_search import Executors, searchers_of
from tests.s3support import World, standin, world
from tests.scan.decode.test_places import PLACES
from tests.scan.support import BOTH, OTHER_PHONE, PHONE, USER, write
from tests.verify.s3lake import KEYS, MAIL, OTHER, Lake, parquet
from tests.verify.s3lake import MATCH as BY_MAIL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["standin", "world"]
pytestmark = pytest.mark.spark


class Here:
    """The threads of this process, and how many things they were given."""

    def __init__(self) -> None:
        self.things: list[Any] = []

    def search(self, look: Look[T], things: Iterable[T], patterns: Patterns) -> Iterator[tuple[T, FileScan]]:
        for thing in things:
            self.things.append(thing)
            yield thing, look(thing, patterns)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    seen = Here()
    monkeypatch.setattr(cluster_byte_search, "THREADS", seen)
    return seen


def refuse(told: str) -> None:
    raise AssertionError(told)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """The person in every place that the scanner reads, a twin beside each, and things that cannot be read."""
    root = tmp_path / "t"
    for number, place in enumerate(PLACES.values()):
        for twin, (phone, user) in enumerate(((PHONE, USER), (OTHER_PHONE, 1))):
            name, data = place(phone, user)
            write(root / f"{number}-{twin}", name, data)
    (root / "link.txt").symlink_to("/etc/hostname")
    os.mkfifo(root / "pipe")
    return root


def test_every_place_is_seen_as_here(spark: SparkSession, planted: Path, here: Here) -> None:
    found = scan_tree(planted, BOTH, searchers=Executors(lambda: spark, refuse))
    assert {name for name, _ in here.things} == {"link.txt", "pipe"}, "what no worker can read is told by this machine"
    assert found == scan_tree(planted, BOTH)
    assert len(found.with_person) > len(PLACES) / 2


def test_key_columns_are_compared_as_a_whole_there_too(spark: SparkSession, tmp_path: Path, here: Here) -> None:
    write(tmp_path, "a.csv", f"mail,n\n{MAIL}x,5\n".encode())
    anywhere = build_patterns(KEYS)
    patterns = anywhere.comparing(key_columns(BY_MAIL, tmp_path))
    found = scan_tree(tmp_path, patterns, searchers=Executors(lambda: spark, refuse))
    assert (found, here.things) == (scan_tree(tmp_path, patterns), [])
    assert not found.with_person
    assert scan_tree(tmp_path, anywhere).with_person


@dataclass(frozen=True)
class Elsewhere(FileLook):
    """Files that look otherwise from every other process, as on a machine with a disk of its own."""

    process: int = 0

    def stamp(self, thing: tuple[str, Path]) -> Stamp:
        return super().stamp(thing)[0], "" if os.getpid() == self.process else "another"


def test_a_file_that_a_worker_sees_otherwise_is_searched_here(spark: SparkSession, tmp_path: Path, here: Here) -> None:
    write(tmp_path, "a.txt", PHONE.encode())
    look, files = Elsewhere(tmp_path, process=os.getpid()), [("a.txt", tmp_path / "a.txt")]
    [(_, scan)] = Executors(lambda: spark, refuse).search(look, files, BOTH)
    assert scan.strong
    assert here.things == files


class Fails(FileLook):
    """A decoder that ends in an error nobody foresaw, with a cell in its words."""

    def __call__(self, thing: tuple[str, Path], patterns: Patterns) -> FileScan:
        raise ValueError(f"cannot convert {PHONE}")


def test_a_decoder_that_fails_there_fails_here_and_writes_no_logs_there(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "a.txt", PHONE.encode())
    with pytest.raises(ValueError, match="cannot convert"):
        list(Executors(lambda: spark, refuse).search(Fails(tmp_path), [("a.txt", tmp_path / "a.txt")], BOTH))


def test_another_search_there_is_not_believed(
    spark: SparkSession, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.txt", PHONE.encode())
    monkeypatch.setattr(cluster_byte_search, "scanner_version", lambda: "of another version")
    told: list[str] = []
    executors = Executors(lambda: spark, told.append)
    for _ in range(2):
        assert scan_tree(tmp_path, BOTH, searchers=executors).with_person
    assert len(here.things) == 2
    [reason] = told
    assert "lacks this version of pii-tracer" in reason
    assert PHONE not in reason


def test_a_python_without_pii_tracer_is_told(
    spark: SparkSession, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(plain))
    write(tmp_path, "a.txt", PHONE.encode())
    told: list[str] = []
    assert scan_tree(tmp_path, BOTH, searchers=Executors(lambda: spark, told.append)).with_person
    assert len(here.things) == 1
    assert "or one of its packages" in told[0]


def test_an_estate_with_keys_of_encrypted_files_is_searched_here(tmp_path: Path, here: Here) -> None:
    write(tmp_path, "a.txt", PHONE.encode())
    keys = FileKeys(lambda wrapped, name: b"")
    found = scan_tree(tmp_path, build_patterns(BOTH.key_sets, keys), searchers=Executors(lambda: refuse(""), refuse))
    assert found.with_person
    assert len(here.things) == 1


def test_values_go_sealed_and_their_key_another_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, f"phone={PHONE}/a.txt", PHONE.encode())
    context, sent = spark.sparkContext, []
    parallelize = context.parallelize

    class Spied:
        def __init__(self, rows: Any, slices: int) -> None:
            sent.append(pickle.dumps(rows))
            self.rdd = parallelize(rows, slices)

        def map(self, function: Any) -> Any:
            sent.append(cloudpickle.dumps(function))
            [secret] = function.args
            assert secret in sent[1]
            assert secret not in sent[0]
            return self.rdd.map(function)

    monkeypatch.setattr(context, "parallelize", Spied)
    assert scan_tree(tmp_path, BOTH, searchers=Executors(lambda: spark, refuse)).with_person
    assert len(sent) == 2
    for data in sent:
        assert PHONE.encode() not in data
        assert str(USER).encode() not in data


def test_empty_files_come_first_as_success_files_do(spark: SparkSession, tmp_path: Path, here: Here) -> None:
    """Spark writes `_SUCCESS`, which sorts before `part-…`; a link that cannot be looked at has no size at all."""
    write(tmp_path, "_SUCCESS", b"")
    write(tmp_path, "part-0.txt", PHONE.encode())
    found = scan_tree(tmp_path, BOTH, searchers=Executors(lambda: spark, refuse))
    assert (found, here.things) == (scan_tree(tmp_path, BOTH), [])
    assert [f.path for f in found.with_person] == ["part-0.txt"]


def test_many_things_are_searched_in_several_jobs_and_keep_their_order(
    spark: SparkSession, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_byte_search, "JOB", 5)
    monkeypatch.setattr(cluster_byte_search, "PACKET_THINGS", 2)
    monkeypatch.setattr(cluster_byte_search, "PACKET_BYTES", 100)
    for number in range(12):
        write(tmp_path, f"{number:02}.txt", (PHONE if number % 5 == 0 else OTHER_PHONE).encode() * (number + 1))
    found = scan_tree(tmp_path, BOTH, searchers=Executors(lambda: spark, refuse))
    assert (found, here.things) == (scan_tree(tmp_path, BOTH), [])
    assert [f.path for f in found.with_person] == ["00.txt", "05.txt", "10.txt"]


@pytest.mark.parametrize(
    ("mib", "cores", "tasks"),
    [
        ([30] * 16, 2, [60] * 8),  # no core waits long for the last task
        ([5] * 41, 2, [30] + [25] * 7),  # as many tasks for each core
        ([1] * 12, 8, [4] * 3),  # starting a task costs as much as searching a few MiB
        ([30] * 100, 2, [150] * 4 + [120] * 20),  # a task that is lost costs about 128 MiB
        ([1, 300, 1], 2, [300, 1, 1]),  # what takes longest begins first
        ([0, -1], 2, [-1]),
        ([], 2, []),
    ],
)
def test_a_job_has_a_few_tasks_of_even_size_for_each_core(mib: list[int], cores: int, tasks: list[int]) -> None:
    packets = cluster_byte_search._packets([size << 20 for size in mib], cores)
    assert [sum(mib[thing] for thing in packet) for packet in packets] == tasks
    assert sorted(thing for packet in packets for thing in packet) == list(range(len(mib)))


def test_versions_in_s3_are_read_by_the_workers(
    spark: SparkSession, world: World, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in os.environ.items():  # a worker has the environment of its machine, here that of the test
        if name.startswith("AWS_"):
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
    lake = Lake(world, tmp_path)
    lake.put("a.parquet", parquet(MAIL))
    lake.put("a.parquet", parquet(OTHER))
    lake.hide("a.parquet")
    lake.client.put_object_tagging(
        Bucket=lake.bucket,
        Key=f"{lake.key}/_delta_log/00000000000000000000.json",
        Tagging={"TagSet": [{"Key": "owner", "Value": MAIL}]},
    )
    copy = lake.copy()
    verification = lake.verification(copy)
    verification.searchers.inner = THREADS
    expected = verification.look(copy).bytes
    verification.searchers.inner = Executors(lambda: spark, refuse)
    assert verification.look(copy).bytes == expected
    assert expected is not None
    assert {r.where for r in expected.residue} > {"data: mail", "object tag: owner"}
    assert here.things == []


def test_who_searches(spark: SparkSession) -> None:
    def of(**settings: Any) -> object:
        return searchers_of(Spark(**settings), lambda: spark, refuse)

    assert of() is of(master="local[4]") is of(remote="sc://127.0.0.1:1") is THREADS
    for master in ("spark://127.0.0.1:7077", "yarn", "k8s://127.0.0.1:1"):
        assert isinstance(of(master=master), Executors)
