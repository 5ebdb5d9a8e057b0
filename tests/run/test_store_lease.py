"""One runner a plan over a store (S3): real conditional writes, real processes, answers that get lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from pydantic import ValidationError

from pii_tracer.app.execution import run_lock
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.execution.run_lock import held
from pii_tracer.app.settings import Settings
from pii_tracer.lake.stores.base import Changed, Content
from pii_tracer.lake.stores.s3.store import S3Store
from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import GENESIS, Kind, utc_now
from pii_tracer.run.store_lease import LeaseObject, StoreLease
from tests.kits.lease_kit import Told, Watch, take
from tests.kits.memory_store import MemoryStore
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]

HOLDER = """
import sys
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.store import S3Store
from pii_tracer.run.journal import utc_now
from pii_tracer.run.store_lease import LeaseObject, StoreLease
from tests.kits.lease_kit import Told
from tests.s3support import estate
place = LeaseObject(S3Store(s3_clients(estate(sys.argv[1]))(None), sys.argv[2]), sys.argv[3])
lease = StoreLease.acquire(place, Told(), utc_now, beat_seconds=0.1, silence_seconds=float(sys.argv[4]))
for line in sys.stdin:
    try:
        lease.check()
        print("held", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture
def place(world: World) -> LeaseObject:
    return LeaseObject(S3Store(world.client(), world.new("leases")), "estate/plan-1.lease.json")


@pytest.fixture
def other(place: LeaseObject, world: World) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """Starts another runner as a process of its own that holds the lease."""
    started: list[subprocess.Popen[str]] = []

    def start(silence: float) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", HOLDER, world.endpoint_url, place.store.bucket, place.key, str(silence)]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        started.append(process)
        assert asked(process) == "held"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def asked(process: subprocess.Popen[str]) -> str:
    """What a runner finds when it checks its lease."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("?\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_people_are_told_who_holds_it(place: LeaseObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "plan-1")
    settings = Settings(tmp_path / "pii-tracer.yaml", tmp_path)
    monkeypatch.setattr(run_lock, "lease_object", lambda *_: place)
    assert run_lock.held_by(settings, folder) is None
    with take(place):
        assert (run_lock.held_by(settings, folder) or "").endswith(f"by the lease {place.name}")
        assert f"process {os.getpid()} on " in (run_lock.held_by(settings, folder) or "")
    assert run_lock.held_by(settings, folder) is None
    place.store.client.put_object(Bucket=place.store.bucket, Key=place.key, Body=b"{}")
    assert (run_lock.held_by(settings, folder) or "").startswith("unknown: the lease cannot be read")
    monkeypatch.undo()
    assert "unknown: " in (run_lock.held_by(settings, folder) or ""), "there is no estate file"


def test_a_second_runner_is_refused_as_soon_as_the_first_gives_a_sign(
    place: LeaseObject, other: Callable[[float], subprocess.Popen[str]]
) -> None:
    process = other(3600)
    with pytest.raises(Refused, match=f"process {process.pid} on "):
        StoreLease.acquire(place, Told(), utc_now)
    assert asked(process) == "held"


def test_a_frozen_process_is_overtaken_and_fenced_when_it_wakes(
    place: LeaseObject, other: Callable[[float], subprocess.Popen[str]]
) -> None:
    process = other(1.0)
    os.kill(process.pid, signal.SIGSTOP)
    with StoreLease.acquire(place, Told(), utc_now) as second:
        assert second.token == 2
        assert second.took_over is not None
        assert second.took_over.pid == process.pid
        os.kill(process.pid, signal.SIGCONT)
        assert asked(process) == "Refused"
        second.check()


def test_a_killed_process_is_silent_and_taken_over(
    place: LeaseObject, other: Callable[[float], subprocess.Popen[str]]
) -> None:
    process = other(1.0)
    process.kill()
    process.wait()
    with StoreLease.acquire(place, Told(), utc_now) as second:
        assert second.token == 2


def test_tokens_grow_and_a_released_lease_is_free_at_once(place: LeaseObject) -> None:
    with take(place) as lease:
        lease.check()
        assert lease.token == 1
    with pytest.raises(Refused, match="another runner now has the lease"):
        lease.check()
    watch = Watch()
    with take(place, watch=watch) as lease:
        assert (lease.token, lease.took_over, watch.slept) == (2, None, 0)
    lease.release()
    place.store.client.delete_object(Bucket=place.store.bucket, Key=place.key)
    with take(place, token_above=2) as lease:
        assert lease.token == 3, "the journal remembers what the store has forgotten"


def test_no_clock_of_another_machine_is_believed(place: LeaseObject) -> None:
    """The holder's clock is years behind or ahead: only whether it still writes counts."""
    for shift in (-10_000, 10_000):
        first = StoreLease.acquire(
            place, Told(), lambda shift=shift: utc_now() + timedelta(days=shift), beat_seconds=1e6
        )  # type: ignore[misc]
        with pytest.raises(Refused, match="already being run"):
            take(place, watch=Watch(meanwhile=first.check))
        first.check()
        first.release()


def test_of_two_who_see_the_same_silence_one_takes_over(place: LeaseObject) -> None:
    silent = take(place)
    won: list[StoreLease] = []

    def another_is_quicker() -> None:
        if watch.now >= silent.holder.silence_seconds:
            won.append(take(place))

    watch = Watch(meanwhile=another_is_quicker)
    with pytest.raises(Refused, match="already being run"):
        take(place, watch=watch)
    assert [lease.token for lease in won] == [2]
    won[0].check()
    with pytest.raises(Refused, match="another runner now has the lease"):
        silent.check()
    won[0].release()


def test_one_that_is_given_back_while_it_is_watched_is_taken(place: LeaseObject) -> None:
    first = take(place)
    with take(place, watch=Watch(meanwhile=first.release)) as second:
        assert (second.token, second.took_over) == (2, None)


class Lossy:
    """A client whose next answers to writes of the lease are lost: after the write, or before it."""

    def __init__(self, client: Any, key: str) -> None:
        self._client, self._key = client, key
        self.lose, self.worked = 0, True

    def put_object(self, **words: Any) -> Any:
        if words["Key"] != self._key or not self.lose:
            return self._client.put_object(**words)
        self.lose -= 1
        if self.worked:
            self._client.put_object(**words)
            # what the library's own second try is told
            self._client.put_object(**words)
        raise ReadTimeoutError(endpoint_url="http://store")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_write_whose_answer_was_lost_is_known_as_our_own(place: LeaseObject) -> None:
    lossy = Lossy(place.store.client, place.key)
    through = LeaseObject(S3Store(lossy, place.store.bucket), place.key)
    lossy.lose = 1
    with take(through) as lease:  # making it
        lossy.lose = 1
        lease.check()  # keeping it
        lossy.lose = 1
    assert take(place).token == 2, "giving it back"


def test_a_taking_over_whose_answer_was_lost_is_known_as_our_own(place: LeaseObject) -> None:
    silent, lossy = take(place), Lossy(place.store.client, place.key)
    lossy.lose = 1
    with take(LeaseObject(S3Store(lossy, place.store.bucket), place.key)) as second:
        assert second.token == 2
        with pytest.raises(Refused, match="another runner now has the lease"):
            silent.check()


def test_a_write_that_never_arrived_is_no_lease(place: LeaseObject) -> None:
    lossy = Lossy(place.store.client, place.key)
    lossy.lose, lossy.worked = 1, False
    with pytest.raises(Refused, match="cannot be confirmed: ReadTimeoutError"):
        take(LeaseObject(S3Store(lossy, place.store.bucket), place.key))
    lease = take(LeaseObject(S3Store(lossy, place.store.bucket), place.key))
    lossy.lose = 1
    lease.check()  # tried again
    lossy.lose = 100
    with pytest.raises(Refused, match="cannot be confirmed"):
        lease.check()
    lossy.lose = 0
    lease.check()  # the store answers again, and it is still ours
    lease.release()


class Careless:
    """A store that takes every write, or every write of one kind, whatever its condition."""

    def __init__(self, client: Any, ignored: tuple[str, ...]) -> None:
        self._client, self._ignored = client, ignored

    def put_object(self, **words: Any) -> Any:
        return self._client.put_object(**{k: v for k, v in words.items() if k not in self._ignored})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.parametrize("ignored", [("IfMatch",), ("IfNoneMatch",), ("IfMatch", "IfNoneMatch")])
def test_a_store_without_conditional_writes_is_refused_before_the_lease_is_touched(
    place: LeaseObject, ignored: tuple[str, ...]
) -> None:
    lease = take(place)
    before = place.read()
    with pytest.raises(Refused, match="condition is false"):
        take(LeaseObject(S3Store(Careless(place.store.client, ignored), place.store.bucket), place.key))
    assert place.read() == before
    lease.check()
    lease.release()
    listed = place.store.client.list_object_versions(Bucket=place.store.bucket)
    assert {v["Key"] for v in (*listed["Versions"], *listed.get("DeleteMarkers", ()))} == {place.key}


def test_a_state_folder_that_knows_less_than_the_lease_is_refused(place: LeaseObject) -> None:
    """Another machine with an empty folder, or an old copy of the right one, would do everything again."""
    ours = Told([GENESIS, "sha256:1"])
    with take(place, ours) as lease:
        ours.heads.append("sha256:2")
        lease.check()
        ours.heads.append("sha256:3")
    for known in ([GENESIS], [GENESIS, "sha256:1", "sha256:2"]):
        with pytest.raises(Refused, match="steps that this state folder does not know"):
            take(place, Told(known))
    with take(place, ours) as lease:
        assert lease.token == 2


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 70_000, b'{"pid": 1}'])
def test_what_is_no_lease_is_not_taken(place: LeaseObject, body: bytes) -> None:
    place.store.client.put_object(Bucket=place.store.bucket, Key=place.key, Body=body)
    with pytest.raises(Refused, match="unknown who runs"):
        take(place)


def test_a_bucket_that_is_not_there_is_told(world: World) -> None:
    with pytest.raises(Refused, match="cannot be confirmed: NoSuchBucket"):
        take(LeaseObject(S3Store(world.client(), f"nowhere-{world.suffix}"), "k"))


def test_the_server_that_these_tests_run_on_refuses(place: LeaseObject) -> None:
    """Otherwise they would prove nothing."""
    where = {"Bucket": place.store.bucket, "Key": "k", "Body": b"1"}
    etag = place.store.client.put_object(**where, IfNoneMatch="*")["ETag"]
    for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"0"'}):
        with pytest.raises(ClientError, match="PreconditionFailed"):
            place.store.client.put_object(**where, **condition)
    place.store.client.put_object(**where, IfMatch=etag)


class Busy(MemoryStore):
    """A store whose object changes while it is read, for some reads."""

    changes = 0

    def read(self, key: str, at_most: int) -> Content:
        self.changes -= 1
        if self.changes >= 0:
            raise Changed("written while it was read", "Changed", where=key)
        return super().read(key, at_most)


def test_one_that_is_written_while_it_is_read_is_read_again() -> None:
    store = Busy()
    place = LeaseObject(store, "k")
    with take(place):
        store.changes = 3
        assert place.read() is not None
        store.changes = 100
        with pytest.raises(Refused, match="cannot be confirmed: Changed"):
            place.read()
        store.changes = 0


BUCKET, CONTAINER = "gs://bucket", "abfss://box@account.dfs.core.windows.net"
DECLARED: dict[str, Any] = {
    "hdfs": [{"namenode": "hdfs://nn:8020", "webhdfs": "http://nn:9870", "user": "lake"}],
    "object_stores": [{"store": store, "places": [{"prefix": "x"}]} for store in (BUCKET, CONTAINER)],
}


@pytest.mark.parametrize(
    "wrong",
    [
        "bucket/prefix",
        "s3://b",
        "s3://Bucket/x",
        "s3://bucket/a b",
        "s3://bucket/../x y",
        "s3://bucket/../x",
        "gs://bucket/./x",
        "abfss://box/x",
        "wasbs://box@account.blob.core.windows.net/x",
        "file:///leases",
        "hdfs:///leases",
        "gs://other/x",
        "abfss://other@account.dfs.core.windows.net/x",
        "hdfs://other:8020/x",
    ],
)
def test_a_place_that_is_none_or_is_not_declared_is_refused_in_the_estate_file(wrong: str) -> None:
    with pytest.raises(ValidationError):
        estate("http://127.0.0.1:1", lease=wrong, **DECLARED)


@pytest.mark.parametrize(
    "place", ["s3://bucket/prefix", f"{BUCKET}/a/b", f"{CONTAINER}/x", "hdfs://nn:8020/ops/leases"]
)
def test_a_place_in_a_declared_store_is_taken(place: str) -> None:
    assert estate("http://127.0.0.1:1", lease=place, **DECLARED).lease == place


def test_the_command_line_holds_both_leases(world: World, tmp_path: Path) -> None:
    """A second machine, with a state folder of its own, neither runs beside the first nor after it from the start."""
    bucket = world.new("leases")
    file = tmp_path / "pii-tracer.yaml"
    with_lease = estate(world.endpoint_url, lease=f"s3://{bucket}/estate")
    file.write_text(with_lease.model_dump_json(exclude_none=True))
    here, there = (RunFolder(tmp_path / machine / "runs" / "plan-1") for machine in ("here", "there"))
    settings = Settings(file, tmp_path)
    with held(settings, here, utc_now, take_over=False) as (journal, lease):
        journal.append(Kind.LEASE, token=lease.token)
        lease.check()
    with (
        pytest.raises(Refused, match="steps that this state folder does not know"),
        held(settings, there, utc_now, take_over=False),
    ):
        pass
    with held(settings, here, utc_now, take_over=False) as (journal, lease):
        assert lease.token == 2
        (here.path / "lease.json").write_text(
            (here.path / "lease.json").read_text().replace('"token": 2', '"token": 9')
        )
        with pytest.raises(Refused, match="another runner now has the lease"):
            lease.check()
