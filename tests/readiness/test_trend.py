"""The trend: whole after a kill at any moment, never altered unnoticed, one reading at a time."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from pii_tracer.app.estate_readiness.trend_file import TREND, alone, append, read
from pii_tracer.config.laws import laws_of
from pii_tracer.model.errors import EstateError, UsageError
from pii_tracer.readiness.earliest_proof_day import Keeper
from pii_tracer.readiness.estate_snapshot import Coverage, EstateState, PlaceFacts, Setting, TableFacts
from pii_tracer.readiness.findings import FindingKind
from pii_tracer.readiness.readiness_reading import Given, Readiness, assess

NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)
TABLE = TableFacts("lake.sales.orders", "/w/orders", "sales", Coverage.FULL, (("id", "bigint"),), explained=1)


def given(number: int, places: tuple[PlaceFacts, ...] = (), keepers: tuple[Keeper, ...] = ()) -> Given:
    state = EstateState(number, NOW.isoformat(), (TABLE,), places)
    gdpr = {name: law for name, law in laws_of(()).items() if name == "GDPR"}
    return Given(estate="shop", now=NOW, state=state, laws=gdpr, keepers=keepers)


def add(folder: Path) -> Readiness:
    before = read(folder)
    made, state = assess(given(len(before.points) + 1), before.last, before.points)
    append(folder, before, made, state)
    return made


def test_a_line_a_reading_and_the_state_of_the_last(tmp_path: Path) -> None:
    for _ in range(3):
        add(tmp_path)
    found = read(tmp_path)
    assert [point.number for point in found.points] == [1, 2, 3]
    assert found.last is not None
    assert found.last.tables == (TABLE,)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state-000003.json.gz", TREND]


KILLED = """
import os, signal, sys
from pathlib import Path
from pii_tracer.app.estate_readiness.trend_file import read
from tests.readiness.test_trend import add, given

given(1)  # the laws are read once, and not by each process
NAMES = ("open", "fsync", "rename", "replace", "unlink")
MODULES = ("posix", "io", "_io")
folder = Path(sys.argv[1])

def add_until(left):
    def hook(frame, event, called):
        nonlocal left
        if event in ("c_call", "c_return") and called.__name__ in NAMES and called.__module__ in MODULES:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(hook)
    add(folder)
    sys.setprofile(None)
    os._exit(0)

known, kills = read(folder).points, 0
while True:
    child = os.fork()
    if not child:
        add_until(kills)
    _, status = os.waitpid(child, 0)
    now = read(folder).points
    assert now in (known, (*known, now[-1])), kills
    known = now
    if not os.WIFSIGNALED(status):
        assert status == 0
        break
    kills += 1
print(kills)
"""


def test_a_run_killed_at_any_moment_leaves_the_readings_whole(tmp_path: Path) -> None:
    """Before and after each call that opens, syncs, renames or removes a file, one process a moment."""
    folder = tmp_path / "readiness"
    folder.mkdir()
    add(folder)
    command = [sys.executable, "-c", KILLED, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, done.stdout
    with alone(tmp_path):
        assert not list(folder.glob(".*.tmp"))


@pytest.mark.parametrize("name", [TREND, "state-000002.json.gz"])
@pytest.mark.parametrize("harm", ["cut", "empty", "gone"])
def test_what_was_altered_is_refused(tmp_path: Path, name: str, harm: str) -> None:
    add(tmp_path)
    add(tmp_path)
    file = tmp_path / name
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: -20 if harm == "cut" else 0])
    if (name, harm) == (TREND, "gone"):
        with pytest.raises(EstateError, match="the trend is missing"):
            read(tmp_path)
        return
    with pytest.raises(EstateError):
        read(tmp_path)


def test_two_readings_at_once_are_refused(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(UsageError, match="another process"), alone(tmp_path):
        pass


BUCKET = PlaceFacts("s3://lake/archive/", "archive team", False, {"lifecycle expiry": Setting("30", 30)})


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"versioned": True}, FindingKind.VERSIONING_ON),
        ({"settings": {"lifecycle expiry": Setting("90", 90)}}, FindingKind.KEPT_LONGER),
        ({"settings": {"lifecycle expiry": Setting("7", 7)}}, FindingKind.KEPT_SHORTER),
        ({"settings": {"lifecycle expiry": Setting("off")}}, FindingKind.CHANGED_SETTING),
        ({}, None),
    ],
)
def test_settings_of_a_bucket_that_drift(change: dict[str, object], kind: FindingKind | None) -> None:
    _, before = assess(given(1, (BUCKET,)), None)
    found, _ = assess(given(2, (msgspec.structs.replace(BUCKET, **change),)), before)
    assert [(f.kind, f.where, f.owner) for f in found.findings] == (
        [(kind, BUCKET.name, "archive team")] if kind else []
    )


def test_the_last_end_decides_when_a_proof_is_there() -> None:
    soon = Keeper("lake.a", "a", "retention", datetime(2026, 12, 4, tzinfo=timezone.utc))
    late = Keeper("s3://b/", "b", "an object lock in S3", datetime(2027, 3, 1, tzinfo=timezone.utc))
    never = Keeper("lakefs://c", "c", "a repository without collection rules", None)
    for keepers, decides, ready in (((soon,), soon, True), ((soon, late), late, False), ((never, late), never, False)):
        found, _ = assess(given(1, keepers=keepers), None)
        assert (found.provable.decided_by, found.provable.on, found.ready) == (decides, decides.until, ready)
        assert [f.owner for f in found.findings] == ([] if ready else [decides.owner])
